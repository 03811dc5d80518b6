//! Bounds on text that comes from outside.

use serde_json::Value;

/// Longest name-like text: titles, agents, owners, aliases, reasons.
pub const NAME_CHARS_MAX: usize = 1_000;
/// Longest prompt or message, in bytes. Larger content belongs in files.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Names of the arguments of a tool call that say most, in this order.
const TELLING: [&str; 8] = ["command", "cmd", "pattern", "query", "url", "path", "file_path", "filePath"];

/// The argument of a tool call that says most.
#[must_use]
pub fn telling(arguments: &Value) -> Option<String> {
    TELLING.iter().find_map(|name| match &arguments[*name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    })
}

/// An amount in millionths of a dollar: `$1.25`; below a cent with four places, so that it is not nothing.
#[must_use]
pub fn dollars(micros: u64) -> String {
    const CENT: u64 = 10_000;
    if micros < CENT {
        format!("$0.{:04}", micros.div_ceil(100).min(99))
    } else {
        let cents = (micros + CENT / 2) / CENT;
        format!("${}.{:02}", cents / 100, cents % 100)
    }
}

/// The first `max` Unicode scalars of `text`, and whether anything was cut.
#[must_use]
pub fn cut(text: &str, max: usize) -> (&str, bool) {
    match text.char_indices().nth(max) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// Words as one line of at most `max` Unicode scalars. Nothing may be left of them.
#[must_use]
pub fn one_line(words: &str, max: usize) -> String {
    let line: String = without_escapes(words).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(line.trim(), max).0.to_owned()
}

/// The text without terminal escape sequences: colours, cursor moves, titles and links go whole, not their first byte
/// alone. Other control characters stay as they are.
#[must_use]
pub fn without_escapes(text: &str) -> String {
    const ESC: char = '\u{1b}';
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek().copied()) {
            // CSI: parameters and intermediates, then one final character.
            ('\u{9b}', _) | (ESC, Some('[')) => {
                if c == ESC {
                    rest.next();
                }
                while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
                let _ = rest.next_if(|c| ('@'..='~').contains(c));
            }
            // OSC, DCS, SOS, PM, APC: text up to BEL, ST or the end of the line.
            ('\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}', _)
            | (ESC, Some(']' | 'P' | 'X' | '^' | '_')) => {
                if c == ESC {
                    rest.next();
                }
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    if c == '\u{7}' || c == '\u{9c}' || (c == ESC && rest.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            // Two or three characters: intermediates, then a final one.
            (ESC, Some(_)) => {
                while rest.next_if(|c| (' '..='/').contains(c)).is_some() {}
                let _ = rest.next_if(|c| ('0'..='~').contains(c));
            }
            (ESC, None) => {}
            (c, _) => plain.push(c),
        }
    }
    plain
}

/// Levels of nesting a JSON value may have in an event. Parsers give up at 128, and pages of events add their own.
pub const VALUE_DEPTH_MAX: usize = 64;

/// The value itself or, when it is nested deeper than an event may be, its JSON text: a log that could be written and
/// not read again would be lost.
#[must_use]
pub fn shallow(value: &Value) -> Value {
    if fits(value, VALUE_DEPTH_MAX) { value.clone() } else { Value::String(value.to_string()) }
}

fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|field| fits(field, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The one of `names` that `text` was probably meant to be: the nearest by single letters, unless most of it differs.
#[must_use]
pub fn near<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let text = text.to_lowercase();
    let far = text.chars().count().div_ceil(3);
    let distances = names.iter().map(|name| (distance(&text, &name.to_lowercase()), *name));
    distances.filter(|(distance, _)| *distance <= far).min().map(|(_, name)| name)
}

/// Edit distance: letters to insert, delete or change to turn one text into the other.
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in (1..).zip(from.chars()) {
        let mut diagonal = std::mem::replace(&mut row[0], number);
        for (place, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[to.len()]
}

/// A short, stable fingerprint of content, for telling a repeat from something new.
#[must_use]
pub fn content_hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_a_far_one_is_not() {
        let names = ["claude", "codex", "opencode"];
        for (text, found) in [
            ("opencod", Some("opencode")),
            ("Claud", Some("claude")),
            ("coedx", Some("codex")),
            ("ghost", None),
            ("", None),
        ] {
            assert_eq!(near(text, &names), found, "{text}");
        }
    }

    #[test]
    fn cutting_counts_scalars_and_never_splits_one() {
        assert_eq!(cut("héllo🎈x", 6), ("héllo🎈", true));
        assert_eq!(cut("héllo🎈", 6), ("héllo🎈", false));
        assert_eq!(cut("", 0), ("", false));
    }

    #[test]
    fn an_amount_below_a_cent_is_not_nothing() {
        let words = [1, 9_780, 10_000, 421_000, 12_345_678].map(dollars);
        assert_eq!(words, ["$0.0001", "$0.0098", "$0.01", "$0.42", "$12.35"]);
    }

    #[test]
    fn a_line_has_no_ends_within_and_no_more_than_it_may() {
        assert_eq!(one_line("\ttwo\nlines\u{7}\r\n", 100), "two lines");
        assert_eq!(one_line(" héllo there", 6), "héllo ");
        assert_eq!(one_line("\n \n", 6), "");
    }

    /// FND-R15.
    #[test]
    fn fnd_r15_escape_sequences_go_whole() {
        for (given, left) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no key", "error: no key"),
            ("\u{1b}[38;5;196mred\u{1b}[m \u{9b}1mbold\u{9b}0m", "red bold"),
            ("\u{1b}]0;a title\u{7}x \u{1b}]8;;http://h\u{1b}\\link\u{1b}]8;;\u{1b}\\", "x link"),
            ("\u{1b}Pq\u{1b}\\a\u{1b}(Bb\u{1b}=c\u{1b}7d\u{1b}M", "abcd"),
            ("cut \u{1b}[31", "cut "),
            ("cut \u{1b}]0;no end\nnext", "cut \nnext"),
            ("\u{1b}", ""),
            ("[31m is text, and so is 0;1 \u{7}", "[31m is text, and so is 0;1 \u{7}"),
        ] {
            assert_eq!(without_escapes(given), left, "{given:?}");
        }
        assert_eq!(one_line("\u{1b}[33mtwo\n\u{1b}[0mlines", 100), "two lines");
    }

    #[test]
    fn deep_nesting_is_kept_as_text() {
        let nested = |levels: usize| (0..levels).fold(Value::from(1), |inner, _| Value::Array(vec![inner]));
        assert_eq!(shallow(&nested(64)), nested(64));
        assert_eq!(shallow(&nested(65)), Value::String(format!("{}1{}", "[".repeat(65), "]".repeat(65))));
    }
}
