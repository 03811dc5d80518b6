//! The line one types in: text and a cursor, nothing else.

/// Longest input line. The rest is left out, and the caller says so.
const BYTES_MAX: usize = 128 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    text: String,
    /// Always between two letters.
    cursor: usize,
    /// The text that was deleted last, to be put back. Deletions in a row are one.
    killed: String,
    killing: bool,
}

impl Input {
    pub(crate) fn holding(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), ..Self::default() }
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
        (self.cursor, self.killing) = (0, false);
        std::mem::take(&mut self.text)
    }

    /// Puts text at the cursor. Nothing goes in that a terminal would obey, and nothing that does not fit.
    pub(crate) fn insert(&mut self, text: &str) {
        self.killing = false;
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
        self.go(from);
    }

    pub(crate) fn delete(&mut self) {
        let to = self.right_of(self.cursor);
        self.text.replace_range(self.cursor..to, "");
        self.killing = false;
    }

    pub(crate) fn delete_word(&mut self) {
        self.kill(self.word_left_of(), self.cursor);
    }

    pub(crate) fn delete_next_word(&mut self) {
        self.kill(self.cursor, self.word_right_of());
    }

    pub(crate) fn delete_to_start(&mut self) {
        self.kill(0, self.cursor);
    }

    pub(crate) fn delete_to_end(&mut self) {
        self.kill(self.cursor, self.text.len());
    }

    /// Puts back what was deleted last.
    pub(crate) fn yank(&mut self) {
        let text = self.killed.clone();
        self.insert(&text);
    }

    pub(crate) fn left(&mut self) {
        self.go(self.left_of(self.cursor));
    }

    pub(crate) fn right(&mut self) {
        self.go(self.right_of(self.cursor));
    }

    pub(crate) fn word_left(&mut self) {
        self.go(self.word_left_of());
    }

    pub(crate) fn word_right(&mut self) {
        self.go(self.word_right_of());
    }

    pub(crate) fn home(&mut self) {
        self.go(0);
    }

    pub(crate) fn end(&mut self) {
        self.go(self.text.len());
    }

    fn go(&mut self, to: usize) {
        (self.cursor, self.killing) = (to, false);
    }

    /// Takes out a range that begins or ends at the cursor.
    fn kill(&mut self, from: usize, to: usize) {
        let gone: String = self.text.drain(from..to).collect();
        if !std::mem::replace(&mut self.killing, true) {
            self.killed.clear();
        }
        if from < self.cursor {
            self.killed.insert_str(0, &gone);
        } else {
            self.killed.push_str(&gone);
        }
        self.cursor = from;
    }

    fn left_of(&self, at: usize) -> usize {
        self.text[..at].char_indices().next_back().map_or(0, |(start, _)| start)
    }

    fn right_of(&self, at: usize) -> usize {
        self.text[at..].chars().next().map_or(at, |letter| at + letter.len_utf8())
    }

    fn word_right_of(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let blanks = rest.len() - rest.trim_start().len();
        let word = rest[blanks..].find(char::is_whitespace).unwrap_or(rest.len() - blanks);
        self.cursor + blanks + word
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
    fn what_was_deleted_is_put_back_and_deletions_in_a_row_are_one() {
        let mut input = Input::holding("fix the login test");
        input.delete_word();
        input.delete_word();
        assert_eq!(input.text(), "fix the ");
        input.yank();
        assert_eq!(input.text(), "fix the login test");
        input.home();
        input.delete_next_word();
        input.delete_to_end();
        assert_eq!(input.text(), "");
        input.yank();
        assert_eq!((input.text(), input.before()), ("fix the login test", "fix the login test"));
        // A move in between begins anew.
        input.delete_word();
        input.left();
        input.delete_to_start();
        input.end();
        input.yank();
        assert_eq!(input.text(), " fix the login");
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
