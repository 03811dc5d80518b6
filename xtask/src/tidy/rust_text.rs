//! Rust source taken apart into code and comments, so that a check for a word in one of them is
//! not fooled by a string literal that happens to contain it.
//!
//! This is no parser: it knows strings, character literals and comments, and nothing else.

/// Both texts have the lines and columns of the source, with blanks where the other one is.
/// What is inside string and character literals is in neither.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RustText {
    pub(super) code: String,
    pub(super) comments: String,
}

impl RustText {
    pub(super) fn split(source: &str) -> RustText {
        let mut splitter = Splitter {
            chars: source.chars().collect(),
            at: 0,
            text: RustText { code: String::new(), comments: String::new() },
        };
        while splitter.at < splitter.chars.len() {
            let (sink, length) = splitter.next_piece();
            splitter.take(length, sink);
        }
        splitter.text
    }
}

/// Which of the two texts a piece of source goes into.
#[derive(Debug, Clone, Copy)]
enum Sink {
    Code,
    Comments,
    Neither,
}

struct Splitter {
    chars: Vec<char>,
    at: usize,
    text: RustText,
}

impl Splitter {
    /// What starts at the current place, and its length: never 0.
    fn next_piece(&self) -> (Sink, usize) {
        if self.looking_at("//") {
            return (Sink::Comments, self.length_until(|c| c == '\n'));
        }
        if self.looking_at("/*") {
            return (Sink::Comments, self.block_comment());
        }
        if let Some(length) = self.raw_string() {
            return (Sink::Neither, length);
        }
        match self.peek(0) {
            Some('"') => (Sink::Neither, self.quoted('"')),
            // 'x' and '\n' are characters; anything else after a quote is a lifetime or a label.
            Some('\'') if self.peek(1) == Some('\\') || self.peek(2) == Some('\'') => {
                (Sink::Neither, self.quoted('\''))
            }
            _ => (Sink::Code, 1),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn looking_at(&self, wanted: &str) -> bool {
        wanted.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn length_until(&self, stop: impl Fn(char) -> bool) -> usize {
        self.chars[self.at..].iter().take_while(|&&c| !stop(c)).count()
    }

    /// Block comments nest.
    fn block_comment(&self) -> usize {
        let mut depth = 0_usize;
        let mut length = 0;
        loop {
            match (self.peek(length), self.peek(length + 1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    length += 2;
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    length += 2;
                }
                (Some(_), _) => length += 1,
                (None, _) => return length,
            }
            if depth == 0 {
                return length;
            }
        }
    }

    /// A literal from its opening to its closing quote; a backslash protects the next character.
    fn quoted(&self, quote: char) -> usize {
        let mut length = 1;
        while let Some(c) = self.peek(length) {
            length += if c == '\\' { 2 } else { 1 };
            if c == quote {
                break;
            }
        }
        length
    }

    /// `r"…"`, `r#"…"#` and so on, if one starts here. The `b` or `c` before it is plain code.
    fn raw_string(&self) -> Option<usize> {
        if self.peek(0) != Some('r') || self.inside_a_word() {
            return None;
        }
        let hashes = self.chars[self.at + 1..].iter().take_while(|&&c| c == '#').count();
        if self.peek(1 + hashes) != Some('"') {
            return None;
        }
        let mut length = hashes + 2;
        while let Some(c) = self.peek(length) {
            length += 1;
            if c == '"' && (0..hashes).all(|n| self.peek(length + n) == Some('#')) {
                return Some(length + hashes);
            }
        }
        Some(length)
    }

    /// Whether the current character continues an identifier, as the `r` of `for"` would.
    fn inside_a_word(&self) -> bool {
        let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
        let before = self.chars[..self.at].iter().rev().take_while(|&c| is_word(c)).count();
        match before {
            0 => false,
            1 => !matches!(self.chars[self.at - 1], 'b' | 'c'),
            _ => true,
        }
    }

    fn take(&mut self, length: usize, sink: Sink) {
        let end = (self.at + length).min(self.chars.len());
        for &c in &self.chars[self.at..end] {
            let (code, comment) = match sink {
                _ if c == '\n' => (c, c),
                Sink::Code => (c, ' '),
                Sink::Comments => (' ', c),
                Sink::Neither => (' ', ' '),
            };
            self.text.code.push(code);
            self.text.comments.push(comment);
        }
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks both texts, leaving out the blanks that only keep the columns.
    fn check(source: &str, code: &str, comments: &str) {
        let text = RustText::split(source);
        assert_eq!(text.code.lines().count(), source.lines().count());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((words(&text.code).as_str(), words(&text.comments).as_str()), (code, comments));
    }

    #[test]
    fn a_line_comment_ends_with_its_line() {
        check("let a = 1; // one\nlet b;\n", "let a = 1; let b;", "// one");
    }

    #[test]
    fn block_comments_nest() {
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check("a /* never closed", "a", "/* never closed");
    }

    #[test]
    fn strings_are_in_neither() {
        check(r#"f("// \" no", x) // yes"#, "f( , x)", "// yes");
        check("f(\"two\nlines // no\")", "f( )", "");
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        check("f(r#\"a \" // b\"#, br\"\\\", r#type) // c", "f( , b , r#type)", "// c");
        check("attr\"x\"", "attr", "");
    }

    #[test]
    fn a_lifetime_is_no_character() {
        check("fn f<'a>(c: &'a str) -> char { '\"' } // x", "fn f<'a>(c: &'a str) -> char { }", "// x");
        check(r"['\'', 'a', '\\'] // y", "[ , , ]", "// y");
    }
}
