//! Bounds on text that comes from outside.

use serde_json::Value;

/// Longest name-like text: titles, agents, owners, aliases, reasons.
pub const NAME_CHARS_MAX: usize = 1_000;
/// Longest prompt or message, in bytes. Larger content belongs in files.
pub const BODY_BYTES_MAX: usize = 1 << 20;

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

/// The first `max` Unicode scalars of `text`, and whether anything was cut (S0-B19).
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
    let line: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    cut(line.trim(), max).0.to_owned()
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

/// A short, stable fingerprint of content, for telling a repeat from something new.
#[must_use]
pub fn content_hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn deep_nesting_is_kept_as_text() {
        let nested = |levels: usize| (0..levels).fold(Value::from(1), |inner, _| Value::Array(vec![inner]));
        assert_eq!(shallow(&nested(64)), nested(64));
        assert_eq!(shallow(&nested(65)), Value::String(format!("{}1{}", "[".repeat(65), "]".repeat(65))));
    }
}
