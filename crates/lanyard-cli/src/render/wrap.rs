//! Text in rows of a known width, as wide as the terminal will draw it.

use ratatui::text::Span;

/// A tab is drawn as blanks: the terminal would jump, and the screen would not know where to.
const TAB: &str = "    ";

/// Columns a text takes on the screen.
pub(crate) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Breaks text into rows of at most `width` columns, between words where it can. `first` stands before the first row
/// and `rest` before the others.
pub(crate) fn wrap(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = line.replace('\t', TAB);
        let lead = if rows.is_empty() { first } else { rest };
        wrap_line(line.trim_end(), width, lead, rest, &mut rows);
    }
    rows
}

fn wrap_line(line: &str, width: usize, first: &str, rest: &str, rows: &mut Vec<String>) {
    let mut row = first.to_owned();
    let mut used = columns(first);
    let mut empty = true;
    for piece in pieces(line) {
        let blank = piece.starts_with(' ');
        let mut piece = piece;
        while !piece.is_empty() && used + columns(piece) > width {
            if blank {
                // A break stands for the blanks.
                piece = "";
                break;
            }
            if empty {
                // Longer than a row: as much of it as there is room for, one letter at least.
                let (head, tail) = split_at(piece, width.saturating_sub(used));
                row.push_str(head);
                piece = tail;
            }
            rows.push(std::mem::replace(&mut row, rest.to_owned()).trim_end().to_owned());
            used = columns(rest);
            empty = true;
        }
        if piece.is_empty() || (empty && blank && row == rest && !rows.is_empty() && row != first) {
            continue;
        }
        row.push_str(piece);
        used += columns(piece);
        empty = false;
    }
    rows.push(row.trim_end().to_owned());
}

/// Words and the blanks between them, by turns.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let blank = rest.chars().next()? == ' ';
        let end = rest.find(|letter: char| (letter == ' ') != blank).unwrap_or(rest.len());
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

fn split_at(word: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let mut end = 0;
    for (at, letter) in word.char_indices() {
        let next = at + letter.len_utf8();
        used += columns(&word[at..next]);
        if used > width && end > 0 {
            break;
        }
        end = next;
        if used > width {
            break;
        }
    }
    word.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, width: usize, rows: &[&str]) {
        assert_eq!(wrap(text, width, "> ", "  "), rows, "{text:?} in {width}");
    }

    #[test]
    fn text_is_broken_between_words() {
        check("", 10, &[">"]);
        check("one two", 10, &["> one two"]);
        check("one two three", 10, &["> one two", "  three"]);
        check("one\n\n  two", 10, &["> one", "", "    two"]);
        check("a\tb", 20, &["> a    b"]);
    }

    #[test]
    fn long_words_are_broken_anywhere_and_wide_letters_count_twice() {
        check("abcdefghijkl", 8, &["> abcdef", "  ghijkl"]);
        check("漢字漢字", 8, &["> 漢字漢", "  字"]);
        check("x abcdefghij", 8, &["> x", "  abcdef", "  ghij"]);
    }

    #[test]
    fn a_row_is_made_however_narrow_the_screen() {
        for width in 0..6 {
            for row in wrap("some words 漢字", width, "> ", "  ") {
                assert!(columns(&row) <= width.max(4), "{row:?} in {width}");
            }
        }
    }
}
