//! Text that others wrote, made fit for a terminal: on one line, of a known width, without control characters that
//! could move the cursor, change colours or reorder what is read.

/// Letters of a commit's hash that are shown.
const COMMIT_CHARS: usize = 12;

/// Collapses white space to single blanks and replaces what a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    for c in text.trim().chars() {
        if c.is_whitespace() {
            gap = true;
            continue;
        }
        if gap {
            line.push(' ');
            gap = false;
        }
        line.push(if is_obeyed(c) { char::REPLACEMENT_CHARACTER } else { c });
    }
    line
}

/// Keeps lines and tabs, and replaces what else a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    let kept = |c: char| matches!(c, '\n' | '\t') || !is_obeyed(c);
    text.chars().map(|c| if kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// The text in quotes, on one line.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text))
}

/// `1 event`, `2 events`.
pub(crate) fn count(n: impl TryInto<u64>, noun: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// A commit by the first letters of its hash, as people name it; anything else as it is.
pub(crate) fn commit(hash: &str) -> String {
    let is_hash = hash.len() > COMMIT_CHARS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { hash[..COMMIT_CHARS].to_owned() } else { one_line(hash) }
}

/// Columns the text takes in a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text in at most `max` columns; `…` stands for what was left out.
pub(crate) fn fit(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += columns(c);
        if used > max {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// The text followed by blanks up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(blanks))
}

/// Control characters, and the marks that turn the direction of reading.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The ranges that matter in practice: combining marks take no column, East Asian wide forms and emoji take two.
/// A character judged wrongly shifts a column by one; it breaks nothing.
const fn columns(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE00}'..='\u{FE0F}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{303E}'
        | '\u{3041}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1F64F}'
        | '\u{1F680}'..='\u{1F6FF}'
        | '\u{1F900}'..='\u{1F9FF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(one_line("a\n\tb  c "), "a b c");
        assert_eq!(one_line("red \u{1b}[31mtext\u{7}"), "red \u{FFFD}[31mtext\u{FFFD}");
        assert_eq!(one_line("user\u{202E}txt.exe"), "user\u{FFFD}txt.exe");
    }

    #[test]
    fn a_commit_is_named_by_its_first_letters_and_a_branch_by_all() {
        assert_eq!(commit("2b5c13df18e40627a2f84cca1d8a3d9268871507"), "2b5c13df18e4");
        assert_eq!(commit("release-candidate"), "release-candidate");
        assert_eq!(commit("abc"), "abc");
    }

    #[test]
    fn text_is_cut_to_columns_and_not_to_characters() {
        assert_eq!(fit("short", 5), "short");
        assert_eq!(fit("longer", 5), "long…");
        assert_eq!(fit("two words", 5), "two…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(width("漢字"), 4);
        assert_eq!(width("e\u{301}"), 1);
        assert_eq!(pad("é", 3), "é  ");
    }
}
