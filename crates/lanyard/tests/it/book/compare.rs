//! Whether a command printed what its page shows.
//!
//! Times, spans, ports and hashes differ from run to run and are masked on both sides. An id of the page stands for the
//! one that was printed in its place, from then on also in commands; so does the end of an id in a listing. `…` stands
//! for any text in a line, and alone for any lines. Runs of spaces are equal, since columns are as wide as their cells.

use std::collections::BTreeMap;

/// Ids of the page, each with the id that it stands for.
pub(super) type Ids = BTreeMap<String, String>;

/// Texts that differ from run to run, and what stands for them. `d` is a digit, `D` one or more, `h` a hexadecimal digit;
/// all other characters are themselves.
const MASKS: [(&str, &str); 17] = [
    ("dddd-dd-ddTdd:dd:dd.DZ", "‹time›"),
    ("dddd-dd-ddTdd:dd:ddZ", "‹time›"),
    ("dddd-dd-dd", "‹date›"),
    ("dd:dd:dd", "‹clock›"),
    ("127.0.0.1:D", "‹address›"),
    ("just now", "‹ago›"),
    ("Ds ago", "‹ago›"),
    ("Dm ago", "‹ago›"),
    ("Dms", "‹span›"),
    ("D.Ds", "‹span›"),
    ("Dm Ds", "‹span›"),
    ("Ds", "‹span›"),
    ("D ms", "‹span›"),
    ("D s", "‹span›"),
    ("D.D s", "‹span›"),
    ("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", "‹commit›"),
    ("hhhhhhhhhhhh", "‹commit›"),
];

/// The length of a mask's shape at the beginning of a text.
fn shape(shape: &str, text: &str) -> Option<usize> {
    let mut rest = text;
    for wanted in shape.chars() {
        let first = rest.chars().next()?;
        let length = match wanted {
            'd' if first.is_ascii_digit() => 1,
            'D' if first.is_ascii_digit() => rest.bytes().take_while(u8::is_ascii_digit).count(),
            'h' if first.is_ascii_digit() || ('a'..='f').contains(&first) => 1,
            'd' | 'D' | 'h' => return None,
            letter if letter == first => first.len_utf8(),
            _ => return None,
        };
        rest = &rest[length..];
    }
    let end = rest.chars().next().is_none_or(|next| !is_word(next));
    end.then_some(text.len() - rest.len())
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn masked(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line.trim_end();
    while let Some(first) = rest.chars().next() {
        let begins = text.chars().last().is_none_or(|before| !is_word(before) && before != '-');
        let found = MASKS.iter().filter(|_| begins);
        let found =
            found.filter_map(|(mask, name)| Some((shape(mask, rest)?, *name))).max_by_key(|found| found.0);
        let (length, shown) = match found {
            Some((length, name)) => (length, name.to_owned()),
            None if first == ' ' => (rest.len() - rest.trim_start_matches(' ').len(), " ".to_owned()),
            None => (first.len_utf8(), first.to_string()),
        };
        text.push_str(&shown);
        rest = &rest[length..];
    }
    text
}

/// The id at the beginning of a text: a kind, `_` and 26 characters.
fn id_at(text: &str) -> Option<&str> {
    let kind =
        text.find('_').filter(|end| *end > 0 && text[..*end].bytes().all(|c| c.is_ascii_lowercase()))?;
    let id = text.get(..kind + 27)?;
    id[kind + 1..].bytes().all(is_id_byte).then_some(id)
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Six characters, as listings show the end of an id. Those of a page have a digit and a letter.
fn short_at(text: &str, on_page: bool) -> Option<&str> {
    let short = text.get(..6).filter(|short| short.bytes().all(is_id_byte))?;
    let ends = text[6..].chars().next().is_none_or(|next| !is_word(next));
    let digits = short.bytes().filter(u8::is_ascii_digit).count();
    (ends && (!on_page || (1..6).contains(&digits))).then_some(short)
}

/// The text that an id of the page stands for, where it is known: a short one may be the end of a whole one.
fn known<'a>(id: &str, ids: &'a Ids) -> Option<&'a str> {
    let whole = ids.iter().find(|(page, _)| page.len() > id.len() && page.ends_with(id));
    ids.get(id).map(String::as_str).or_else(|| whole.map(|(_, real)| &real[real.len() - id.len()..]))
}

/// Whether a line is what the page says. Returns what is known of ids then.
fn fits(wanted: &str, line: &str, before: char, ids: &Ids) -> Option<Ids> {
    if let Some(rest) = wanted.strip_prefix('…') {
        let ends = (0..=line.len()).filter(|end| line.is_char_boundary(*end));
        return ends.into_iter().find_map(|end| fits(rest, &line[end..], '…', ids));
    }
    let at = |text| id_at(text).filter(|_| !is_word(before));
    let (id, real) = match at(wanted) {
        Some(id) => (Some(id), at(line)),
        // Behind `_` it is the end of an id with its kind.
        None if is_word(before) && before != '_' => (None, None),
        None => (short_at(wanted, true), short_at(line, false)),
    };
    if let Some(id) = id
        && let Some(real) = real.filter(|real| known(id, ids).is_none_or(|known| known == *real))
    {
        let mut ids = ids.clone();
        ids.insert(id.to_owned(), real.to_owned());
        return fits(&wanted[id.len()..], &line[real.len()..], 'x', &ids);
    }
    match (wanted.chars().next(), line.chars().next()) {
        (None, None) => Some(ids.clone()),
        (Some(one), Some(other)) if one == other => {
            fits(&wanted[one.len_utf8()..], &line[one.len_utf8()..], one, ids)
        }
        (_, _) => None,
    }
}

/// Whether all lines are what the page says. Returns what is known of ids then.
pub(super) fn all_fit(wanted: &[String], lines: &[&str], ids: &Ids) -> Option<Ids> {
    match (wanted, lines) {
        ([], []) => Some(ids.clone()),
        ([any, rest @ ..], _) if any == "…" => {
            (0..=lines.len()).find_map(|skipped| all_fit(rest, &lines[skipped..], ids))
        }
        ([one, rest @ ..], [line, lines @ ..]) => {
            fits(&masked(one), &masked(line), ' ', ids).and_then(|ids| all_fit(rest, lines, &ids))
        }
        (_, _) => None,
    }
}

/// A command of the page with the ids of this run.
pub(super) fn with_ids(command: &str, ids: &Ids) -> String {
    // Whole ids first: a short one is part of them.
    let mut all: Vec<(&String, &String)> = ids.iter().collect();
    all.sort_by_key(|(page, _)| std::cmp::Reverse(page.len()));
    all.into_iter().fold(command.to_owned(), |command, (page, real)| command.replace(page.as_str(), real))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_fits(wanted: &str, line: &str, ids: &Ids) -> Option<Ids> {
        all_fit(&[wanted.to_owned()], &[line], ids)
    }

    #[test]
    fn a_line_fits_with_other_ids_and_with_any_text_at_the_dots() {
        let page = "session sess_01m7n5djg0fayvh8t5cxyjkdnf made … ago";
        let real = "session sess_01m9n5djg0fayvh8t5cxyjkdaa made 3 days ago";
        let ids = line_fits(page, real, &Ids::new()).unwrap();
        assert!(
            line_fits("sess_01m7n5djg0fayvh8t5cxyjkdnf", "sess_01m9n5djg0fayvh8t5cxyjkdaa", &ids).is_some()
        );
        assert!(
            line_fits("sess_01m7n5djg0fayvh8t5cxyjkdnf", "sess_01m9n5djg0fayvh8t5cxyjkdbb", &ids).is_none()
        );
        assert!(line_fits("made … ago", "made 3 days later", &ids).is_none());
        let wanted: Vec<String> = ["one", "…", "four"].map(str::to_owned).into();
        assert!(all_fit(&wanted, &["one", "two", "three", "four"], &ids).is_some());
        assert!(all_fit(&wanted, &["one", "two", "three"], &ids).is_none());
    }

    #[test]
    fn the_end_of_an_id_is_that_of_the_whole_one() {
        let ids =
            line_fits("sess_01m7n5djg0fayvh8t5cxyj1dnf", "sess_01m9n5djg0fayvh8t5cxyjkdaa", &Ids::new())
                .unwrap();
        assert!(line_fits("yj1dnf idle", "yjkdaa idle", &ids).is_some());
        assert!(line_fits("yj1dnf idle", "yjkdab idle", &ids).is_none());
        assert!(line_fits("answer sess_yj1dnf", "answer sess_yjkdaa", &ids).is_some());
        assert!(line_fits("answer sess_yj1dnf", "answer gate_yjkdaa", &ids).is_none());
        assert_eq!(
            with_ids("lanyard show yj1dnf", &line_fits("yj1dnf", "yjkdaa", &ids).unwrap()),
            "lanyard show yjkdaa"
        );
    }

    #[test]
    fn what_differs_from_run_to_run_is_masked() {
        assert_eq!(
            masked(
                "at 2026-11-18T12:23:51Z (1s ago) 12:43:22 http://127.0.0.1:7717 after 390ms, eafecb158dda"
            ),
            "at ‹time› (‹ago›) ‹clock› http://‹address› after ‹span›, ‹commit›"
        );
        assert_eq!(masked("a    b  2 files"), "a b 2 files");
    }
}
