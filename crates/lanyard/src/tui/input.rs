//! The line one types in: text and a cursor, nothing else.

/// More than this is no prompt typed by hand; the rest is left out, and said so by whoever asks.
const BYTES_MAX: usize = 128 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
    /// Always between two letters.
    cursor: usize,
}

impl Input {
    pub(crate) fn holding(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text up to the cursor.
    pub(crate) fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts text at the cursor. Nothing goes in that a terminal would obey, and nothing that does not fit.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = crate::render::text::harmless(&text);
        if self.text.len() + text.len() <= BYTES_MAX {
            self.text.insert_str(self.cursor, &text);
            self.cursor += text.len();
        }
    }

    pub(crate) fn backspace(&mut self) {
        let from = self.left_of(self.cursor);
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    pub(crate) fn delete(&mut self) {
        let to = self.right_of(self.cursor);
        self.text.replace_range(self.cursor..to, "");
    }

    pub(crate) fn delete_word(&mut self) {
        let from = self.word_left_of();
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    pub(crate) fn delete_to_start(&mut self) {
        self.text.replace_range(..self.cursor, "");
        self.cursor = 0;
    }

    pub(crate) fn delete_to_end(&mut self) {
        self.text.truncate(self.cursor);
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.left_of(self.cursor);
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.right_of(self.cursor);
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_left_of();
    }

    pub(crate) fn word_right(&mut self) {
        let rest = &self.text[self.cursor..];
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest[blanks..].find(char::is_whitespace).unwrap_or(rest.len() - blanks);
        self.cursor += blanks + word;
    }

    pub(crate) fn home(&mut self) {
        self.cursor = 0;
    }

    pub(crate) fn end(&mut self) {
        self.cursor = self.text.len();
    }

    fn left_of(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(start, _)| start)
    }

    fn right_of(&self, at: usize) -> usize {
        self.text[at..].chars().next().map_or(at, |letter| at + letter.len_utf8())
    }

    fn word_left_of(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before
            .char_indices()
            .rev()
            .find(|(_, letter)| letter.is_whitespace())
            .map_or(0, |(at, letter)| at + letter.len_utf8())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_size_are_edited_whole() {
        let mut input = Input::default();
        input.insert("größe 漢字");
        input.backspace();
        input.left();
        input.left();
        input.delete();
        assert_eq!(input.text(), "größe漢");
        input.home();
        input.right();
        input.insert("!");
        assert_eq!((input.text(), input.before()), ("g!röße漢", "g!"));
    }

    #[test]
    fn words_are_jumped_over_and_deleted() {
        let mut input = Input::holding("fix the  test");
        input.delete_word();
        assert_eq!(input.text(), "fix the  ");
        input.delete_word();
        assert_eq!(input.text(), "fix ");
        input.word_left();
        assert_eq!(input.before(), "");
        input.word_right();
        assert_eq!(input.before(), "fix");
        input.delete_to_end();
        input.delete_to_start();
        assert!(input.is_empty());
    }

    #[test]
    fn nothing_a_terminal_would_obey_gets_in_and_nothing_endless() {
        let mut input = Input::default();
        input.insert("a\u{1b}[31m\r\nb");
        assert_eq!(input.text(), "a\u{FFFD}[31m\nb");
        input.insert(&"x".repeat(BYTES_MAX));
        assert_eq!(input.text(), "a\u{FFFD}[31m\nb");
    }
}
