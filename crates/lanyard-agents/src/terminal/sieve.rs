//! What of a program's output reaches a terminal that shows it, and what is answered here. Pure: bytes in, whole
//! sequences out.
//!
//! Passed is what draws, moves, colours, scrolls, and sets the modes that a watcher's terminal has to share. Taken out is
//! what reads something back from the terminal (a device, a position, a colour, the title), what reaches beyond its
//! screen (the clipboard, the window, files, notifications, printers), and what the screen kept here does not know.
//! Questions with one right answer are answered by the daemon, once; a watcher's terminal never sees them.

/// Bytes of one sequence. A longer one is taken out.
const SEQUENCE_BYTES_MAX: usize = 4 * 1024;
/// Characters of a title.
const TITLE_CHARS_MAX: usize = 200;
/// Modes of DEC that are passed: cursor keys, origin, wrapping, blinking and the visible cursor, mouse reports and their
/// form, focus reports, the other screen, bracketed paste, drawing at once.
const MODES: [u16; 17] = [1, 6, 7, 9, 12, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1049, 2004, 2026];
/// The characters of the line drawing set, from `_` on.
const LINES: [&str; 32] = [
    " ", "◆", "▒", "␉", "␌", "␍", "␊", "°", "±", "␤", "␋", "┘", "┐", "┌", "└", "┼", "⎺", "⎻", "─", "⎼", "⎽",
    "├", "┤", "┴", "┬", "│", "≤", "≥", "π", "≠", "£", "·",
];

/// What a program asked, and the daemon answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalQuery {
    /// What it is: primary and secondary device attributes.
    Attributes,
    SecondaryAttributes,
    /// Whether it works.
    Status,
    Cursor,
    /// Whether it knows a mode of DEC.
    Mode(u16),
}

/// One thing that came through.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sifted<'a> {
    /// Characters and whole sequences.
    Bytes(&'a [u8]),
    Title(String),
    Query(TerminalQuery),
    /// The program wants to be looked at: a notification. The bell is among the bytes.
    Notice,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    #[default]
    Text,
    Escape,
    Csi,
    /// A string that ends with BEL or ST: of OSC, or of a kind that is taken out.
    Osc,
    String,
}

/// Cuts output into whole characters and sequences.
#[derive(Debug, Default)]
pub(crate) struct Sieve {
    within: Within,
    /// The sequence or the character that is not whole yet.
    held: Vec<u8>,
    /// Bytes of it, also where it is too long to be held.
    long: usize,
    /// The byte before, in a string, was ESC.
    escaped: bool,
    /// Which of the two character sets draw lines, and whether the second is in use.
    lines: [bool; 2],
    shifted: bool,
}

impl Sieve {
    /// How many bytes of the output are held back because their rest has not come.
    pub(crate) fn pending(&self) -> usize {
        self.long
    }

    /// Shows what came through, in order, each with the number of these bytes that it ends with.
    pub(crate) fn feed(&mut self, bytes: &[u8], see: &mut impl FnMut(Sifted<'_>, usize)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.within == Within::Text && self.held.is_empty() && !self.draws_lines() {
                let plain = plain_text(&bytes[at..]);
                if plain > 0 {
                    see(Sifted::Bytes(&bytes[at..at + plain]), at + plain);
                    at += plain;
                    continue;
                }
            }
            at += 1;
            self.byte(bytes[at - 1], &mut |passed| see(passed, at));
        }
    }

    fn draws_lines(&self) -> bool {
        self.lines[usize::from(self.shifted)]
    }

    fn byte(&mut self, byte: u8, see: &mut impl FnMut(Sifted<'_>)) {
        match self.within {
            Within::Text => self.in_text(byte, see),
            Within::Escape => self.in_escape(byte, see),
            Within::Csi => self.in_csi(byte, see),
            Within::Osc | Within::String => self.in_string(byte, see),
        }
    }

    fn begin(&mut self, within: Within, byte: u8) {
        self.within = within;
        self.hold(byte);
    }

    fn hold(&mut self, byte: u8) {
        self.long += 1;
        if self.held.len() < SEQUENCE_BYTES_MAX {
            self.held.push(byte);
        }
    }

    /// The sequence is over.
    fn done(&mut self) -> Vec<u8> {
        let whole = std::mem::take(&mut self.held);
        let fits = self.long == whole.len();
        (self.within, self.long, self.escaped) = (Within::Text, 0, false);
        if fits { whole } else { Vec::new() }
    }

    /// Control characters, and characters of more than one byte.
    fn in_text(&mut self, byte: u8, see: &mut impl FnMut(Sifted<'_>)) {
        if self.held.is_empty() {
            match byte {
                0x1b => self.begin(Within::Escape, byte),
                0xC2..=0xF4 => self.hold(byte),
                0x0E | 0x0F => self.shifted = byte == 0x0E,
                0x5F..=0x7E if self.draws_lines() => {
                    let line = LINES.get(usize::from(byte - 0x5F)).copied().unwrap_or(" ");
                    see(Sifted::Bytes(line.as_bytes()));
                }
                0x07..=0x0D | 0x20..=0x7E => see(Sifted::Bytes(&[byte])),
                // What is no text is shown as such; other control characters ask or do nothing.
                0x80.. => see(Sifted::Bytes("\u{FFFD}".as_bytes())),
                _ => {}
            }
            return;
        }
        if !(0x80..=0xBF).contains(&byte) {
            self.done();
            see(Sifted::Bytes("\u{FFFD}".as_bytes()));
            return self.byte(byte, see);
        }
        self.hold(byte);
        let wants = match self.held.first() {
            Some(0xF0..) => 4,
            Some(0xE0..) => 3,
            _ => 2,
        };
        if self.held.len() < wants {
            return;
        }
        let whole = self.done();
        match std::str::from_utf8(&whole) {
            // Of these 32 some begin sequences.
            Ok(text) if text.chars().any(char::is_control) => {}
            Ok(text) => see(Sifted::Bytes(text.as_bytes())),
            Err(_) => see(Sifted::Bytes("\u{FFFD}".as_bytes())),
        }
    }

    fn in_escape(&mut self, byte: u8, see: &mut impl FnMut(Sifted<'_>)) {
        if self.cut_off(byte) {
            return;
        }
        self.hold(byte);
        match byte {
            b'[' if self.long == 2 => self.within = Within::Csi,
            b']' if self.long == 2 => self.within = Within::Osc,
            b'P' | b'X' | b'^' | b'_' | b'k' if self.long == 2 => self.within = Within::String,
            0x20..=0x2F => {}
            _ => {
                let whole = self.done();
                match whole.as_slice() {
                    [_, b'Z'] => see(Sifted::Query(TerminalQuery::Attributes)),
                    [_, b'7' | b'8' | b'=' | b'>' | b'M'] => see(Sifted::Bytes(&whole)),
                    [_, b'c'] => {
                        *self = Self::default();
                        see(Sifted::Bytes(&whole));
                    }
                    // In words that every terminal knows.
                    [_, b'D'] => see(Sifted::Bytes(b"\n")),
                    [_, b'E'] => see(Sifted::Bytes(b"\r\n")),
                    // Character sets. Lines are passed as the characters they are.
                    [_, set @ (b'(' | b')'), to] => self.lines[usize::from(*set == b')')] = *to == b'0',
                    _ => {}
                }
            }
        }
    }

    fn in_csi(&mut self, byte: u8, see: &mut impl FnMut(Sifted<'_>)) {
        if self.cut_off(byte) {
            return;
        }
        match byte {
            // Control characters within a sequence work as if they stood before it.
            0x07..=0x0D => see(Sifted::Bytes(&[byte])),
            0x20..=0x3F => self.hold(byte),
            0x40..=0x7E => {
                self.hold(byte);
                let whole = self.done();
                control_sequence(&whole, see);
            }
            _ => {}
        }
    }

    fn in_string(&mut self, byte: u8, see: &mut impl FnMut(Sifted<'_>)) {
        let ends = matches!(byte, 0x07 | 0x18 | 0x1A) || (self.escaped && byte == b'\\');
        if !ends && self.escaped {
            // Another sequence cuts it off.
            self.done();
            self.begin(Within::Escape, 0x1b);
            return self.byte(byte, see);
        }
        self.escaped = byte == 0x1b;
        if !ends {
            return self.hold(byte);
        }
        let of_osc = self.within == Within::Osc;
        let whole = self.done();
        if of_osc && !matches!(byte, 0x18 | 0x1A) {
            let text = whole.get(2..).unwrap_or_default();
            title(text.strip_suffix(b"\x1b").unwrap_or(text), see);
        }
    }

    /// Whether the byte ends a sequence before its time.
    fn cut_off(&mut self, byte: u8) -> bool {
        match byte {
            0x18 | 0x1A => {
                self.done();
                true
            }
            0x1b => {
                self.done();
                self.begin(Within::Escape, byte);
                true
            }
            _ => false,
        }
    }
}

/// Bytes at the beginning that are characters without a meaning for the terminal. The last character is left where it is
/// not whole.
fn plain_text(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|byte| *byte < 0x20 && !(0x08..=0x0D).contains(byte) || *byte == 0x7F);
    let piece = &bytes[..end.unwrap_or(bytes.len())];
    let text = match std::str::from_utf8(piece) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&piece[..error.valid_up_to()]).unwrap_or_default(),
    };
    // The second half of these begins with 0xC2 and is no ASCII: rare enough to look for.
    let controls = |at: char| ('\u{80}'..='\u{9f}').contains(&at);
    text.find(controls).unwrap_or(text.len())
}

/// The only strings that pass: the title, once it is plain text. Notifications are noted and taken out.
fn title(text: &[u8], see: &mut impl FnMut(Sifted<'_>)) {
    if is_notice(text) {
        return see(Sifted::Notice);
    }
    let Some(text) = [b"0;", b"2;"].iter().find_map(|kind| text.strip_prefix(kind.as_slice())) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let plain: String = text.chars().filter(|one| !one.is_control()).take(TITLE_CHARS_MAX).collect();
    see(Sifted::Title(plain));
}

/// Notifications as terminals know them: `9;` (but not `9;4`, which is progress), `777;notify` and `99;`.
fn is_notice(text: &[u8]) -> bool {
    let progress = text == b"9;4" || text.starts_with(b"9;4;");
    !progress && [&b"9;"[..], b"777;notify", b"99;"].iter().any(|kind| text.starts_with(kind))
}

fn control_sequence(whole: &[u8], see: &mut impl FnMut(Sifted<'_>)) {
    let Some((last, body)) = whole.get(2..).and_then(<[u8]>::split_last) else { return };
    let (mark, body) = match body.first() {
        Some(mark @ b'<'..=b'?') => (Some(*mark), &body[1..]),
        _ => (None, body),
    };
    let params = body.iter().take_while(|byte| (0x30..=0x3B).contains(*byte)).count();
    let (params, between) = body.split_at(params);
    let first: u16 = numbers(params).next().flatten().unwrap_or(0);
    match (mark, between, *last) {
        (
            None,
            b"",
            b'@'..=b'H' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'`' | b'b' | b'd' | b'f' | b'm' | b'r',
        ) => {
            see(Sifted::Bytes(whole));
        }
        // Saved and restored cursor, in the words that every terminal knows.
        (None, b"", b's') => see(Sifted::Bytes(b"\x1b7")),
        (None, b"", b'u') => see(Sifted::Bytes(b"\x1b8")),
        // The shape of the cursor.
        (None, b" ", b'q') => see(Sifted::Bytes(whole)),
        (None, b"", b'c') if first == 0 => see(Sifted::Query(TerminalQuery::Attributes)),
        (Some(b'>'), b"", b'c') if first == 0 => see(Sifted::Query(TerminalQuery::SecondaryAttributes)),
        (None, b"", b'n') if first == 5 => see(Sifted::Query(TerminalQuery::Status)),
        (None, b"", b'n') if first == 6 => see(Sifted::Query(TerminalQuery::Cursor)),
        (Some(b'?'), b"$", b'p') => see(Sifted::Query(TerminalQuery::Mode(first))),
        (Some(b'?'), b"", b'J' | b'K') => see(Sifted::Bytes(whole)),
        (Some(b'?'), b"", b'h' | b'l') => modes(params, *last, see),
        _ => {}
    }
}

/// The modes that are passed, of all that one sequence sets.
fn modes(params: &[u8], last: u8, see: &mut impl FnMut(Sifted<'_>)) {
    let known: Vec<String> =
        numbers(params).flatten().filter(|mode| MODES.contains(mode)).map(|mode| mode.to_string()).collect();
    if !known.is_empty() {
        see(Sifted::Bytes(format!("\x1b[?{}{}", known.join(";"), char::from(last)).as_bytes()));
    }
}

fn numbers(params: &[u8]) -> impl Iterator<Item = Option<u16>> {
    params.split(|byte| *byte == b';').map(|number| std::str::from_utf8(number).ok()?.parse().ok())
}

/// Whether a mode is one that is passed.
pub(crate) fn knows(mode: u16) -> bool {
    MODES.contains(&mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that passes, with titles and questions in brackets.
    fn sift(pieces: &[&[u8]]) -> String {
        let mut sieve = Sieve::default();
        let mut seen = Vec::new();
        for piece in pieces {
            sieve.feed(piece, &mut |passed, _| match passed {
                Sifted::Bytes(bytes) => seen.extend_from_slice(bytes),
                Sifted::Title(title) => seen.extend_from_slice(format!("[{title}]").as_bytes()),
                Sifted::Notice => seen.extend_from_slice(b"[notice]"),
                Sifted::Query(query) => seen.extend_from_slice(format!("[{query:?}]").as_bytes()),
            });
        }
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn what_draws_passes_unchanged() {
        for text in [
            "plain ö € 😀 text\r\n\ttab\x08",
            "\x1b[1;31mred\x1b[0m\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b[?25l\x1b[?1049h",
            "\x1b7\x1b8\x1b=\x1b>\x1bM\x1b[2 q\x1b[3;20r\x1b[?2004h",
            "\x1b[38;2;1;2;3m\x1b[4:3mcurly\x1b[5X\x1b[3@\x1b[2P\x1b[L\x1b[M\x1b[S\x1b[T",
        ] {
            assert_eq!(sift(&[text.as_bytes()]), text);
        }
    }

    #[test]
    fn what_reaches_beyond_the_screen_or_asks_the_watcher_is_taken_out() {
        for bad in [
            "\x1b]52;c;aGVsbG8=\x07",
            "\x1b]52;c;?\x1b\\",
            "\x1b]10;?\x07",
            "\x1b]11;rgb:00/00/00\x07",
            "\x1b]8;;http://x\x07",
            "\x1b]1337;File=inline=1:AAAA\x07",
            "\x1b]4;1;?\x07",
            "\x1b[21t",
            "\x1b[8;100;100t",
            "\x1b[14t",
            "\x1bP$q\"p\x1b\\",
            "\x1bPq#0;2;0;0;0\x1b\\",
            "\x1b_Gf=24;AAAA\x1b\\",
            "\x1b^private\x1b\\",
            "\x1b[5i",
            "\x1b[?1;2S",
            "\x1b[>1u",
            "\x1b[?u",
            "\x1b[>0q",
            "\x1b[?996n",
            "\x1b[?9001h",
            "\x1bn",
            "\x05",
            "\x7f",
            "\u{9b}6n",
            "\u{90}x\u{9c}",
        ] {
            let seen = sift(&[b"a", bad.as_bytes(), b"b"]);
            let visible: String = seen.chars().filter(|one| !"6nx".contains(*one)).collect();
            assert_eq!(visible, "ab", "{bad:?} gave {seen:?}");
            assert!(!seen.contains('\x1b'), "{bad:?}");
        }
    }

    #[test]
    fn questions_are_told_of_and_titles_are_plain() {
        assert_eq!(sift(&[b"\x1b[c\x1b[0c\x1bZ"]), "[Attributes][Attributes][Attributes]");
        assert_eq!(sift(&[b"\x1b[>c\x1b[5n\x1b[6n"]), "[SecondaryAttributes][Status][Cursor]");
        assert_eq!(sift(&[b"\x1b[?2026$p"]), "[Mode(2026)]");
        assert_eq!(sift(&["\x1b]0;a\tb\u{9b}c\x07\x1b]2;d\x1b\\".as_bytes()]), "[abc][d]");
        assert_eq!(sift(&[b"\x1b[?25;9001;1049h"]), "\x1b[?25;1049h");
    }

    #[test]
    fn notifications_are_noted_and_taken_out_and_progress_is_none() {
        for (sent, seen) in [
            (&b"a\x1b]9;notify\x07b"[..], "a[notice]b"),
            (b"\x1b]777;notify;title;body\x1b\\", "[notice]"),
            (b"\x1b]99;i=1;hello\x1b\\", "[notice]"),
            (b"a\x1b]9;4;1;50\x07b\x1b]9;4\x07", "ab"),
            (b"\x1b]9\x07\x1b]777;precmd\x07", ""),
        ] {
            assert_eq!(sift(&[sent]), seen);
        }
    }

    #[test]
    fn what_the_screen_does_not_know_comes_in_words_that_it_knows() {
        assert_eq!(sift(&[b"\x1b(0lqk\x0fx\x1b(Bx\x1bD\x1bE\x1b[s\x1b[u"]), "┌─┐│x\n\r\n\x1b7\x1b8");
        assert_eq!(sift(&[b"\x1b)0q\x0eq\x0fq"]), "q─q");
    }

    #[test]
    fn the_same_passes_however_it_is_cut() {
        let text =
            "ä\x1b[1mb\x1b]0;title\x1b\\c\x1b[6n😀\x1bPxx\x1b\\\x1b[?25;7h\r\n\x1b]52;c;x\x07e".as_bytes();
        let whole = sift(&[text]);
        for step in 1..text.len() {
            assert_eq!(sift(&text.chunks(step).collect::<Vec<_>>()), whole, "in pieces of {step}");
        }
    }

    #[test]
    fn a_sequence_without_end_is_not_kept() {
        let mut sieve = Sieve::default();
        sieve.feed(b"\x1b]0;", &mut |_, _| {});
        for _ in 0..100 {
            sieve.feed(&[b'x'; 1024], &mut |passed, _| panic!("{passed:?}"));
        }
        assert!(sieve.held.len() <= SEQUENCE_BYTES_MAX);
        assert_eq!(sieve.pending(), 4 + 100 * 1024);
        let mut after = Vec::new();
        sieve.feed(b"\x07after", &mut |passed, _| {
            if let Sifted::Bytes(bytes) = passed {
                after.extend_from_slice(bytes);
            }
        });
        assert_eq!(after, b"after");
    }

    #[test]
    fn noise_neither_panics_nor_lets_anything_through_that_asks() {
        let mut random = fastrand::Rng::with_seed(7);
        let alphabet = b"\x1b[]?;>0123456789mchnpqtuPX_\\\x07\x18\x9b\xc2\xe2\x82 a$!";
        for _ in 0..2_000 {
            let bytes: Vec<u8> =
                (0..random.usize(0..64)).map(|_| alphabet[random.usize(0..alphabet.len())]).collect();
            let mut sieve = Sieve::default();
            let mut seen = Vec::new();
            sieve.feed(&bytes, &mut |passed, _| {
                if let Sifted::Bytes(bytes) = passed {
                    seen.extend_from_slice(bytes);
                }
            });
            let text = std::str::from_utf8(&seen).unwrap_or_else(|_| panic!("{bytes:?}"));
            assert!(
                !text.contains('\u{9b}') && !text.contains("\x1b]") && !text.contains("\x1bP"),
                "{bytes:?}"
            );
        }
    }
}
