//! What is typed in front of a program on a terminal: all of it is the program's, but what follows the prefix. Pure.

/// Ctrl-\: no program needs it, and no terminal keeps it to itself in raw mode.
const PREFIX: u8 = 0x1c;

/// What people see of the keys.
pub(super) const HELP: &str = "Ctrl-\\ d detach, Ctrl-\\ w write";

/// What a piece of typing means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Input(Vec<u8>),
    Detach,
    /// Ask to write.
    Take,
    /// Draw all of it again.
    Redraw,
}

#[derive(Debug, Default)]
pub(super) struct PrefixKeys {
    prefixed: bool,
}

impl PrefixKeys {
    /// For one who only watches nothing is typed, and the keys that leave other programs leave this one.
    pub(super) fn read(&mut self, bytes: &[u8], writes: bool) -> Vec<Typed> {
        let mut typed = Vec::new();
        let mut input = Vec::new();
        for byte in bytes {
            if std::mem::take(&mut self.prefixed) {
                match byte {
                    &PREFIX => input.push(PREFIX),
                    b'd' | b'D' => typed.push(Typed::Detach),
                    b'w' | b'W' => typed.push(Typed::Take),
                    b'r' | b'R' => typed.push(Typed::Redraw),
                    _ => {}
                }
                continue;
            }
            match byte {
                &PREFIX => {
                    self.prefixed = true;
                    if !input.is_empty() {
                        typed.push(Typed::Input(std::mem::take(&mut input)));
                    }
                }
                b'q' | 0x03 | 0x04 if !writes => typed.push(Typed::Detach),
                _ => input.push(*byte),
            }
        }
        if !input.is_empty() {
            typed.push(Typed::Input(input));
        }
        typed.retain(|one| writes || !matches!(one, Typed::Input(_)));
        typed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> Typed {
        Typed::Input(text.as_bytes().to_vec())
    }

    #[test]
    fn everything_is_the_programs_but_what_follows_the_prefix() {
        let mut keys = PrefixKeys::default();
        assert_eq!(keys.read(b"ls\r\x03\x04\x1b[A", true), [input("ls\r\x03\x04\x1b[A")]);
        assert_eq!(keys.read(b"a\x1cdb", true), [input("a"), Typed::Detach, input("b")]);
        assert_eq!(keys.read(b"\x1c", true), []);
        assert_eq!(keys.read(b"w", true), [Typed::Take]);
        assert_eq!(keys.read(b"\x1c\x1c\x1cr\x1cx", true), [input("\x1c"), Typed::Redraw]);
    }

    #[test]
    fn a_watcher_types_nothing_and_leaves_easily() {
        let mut keys = PrefixKeys::default();
        assert_eq!(keys.read(b"abc", false), []);
        for leave in [&b"q"[..], b"\x03", b"\x04", b"\x1cd"] {
            assert_eq!(keys.read(leave, false), [Typed::Detach]);
        }
        assert_eq!(keys.read(b"\x1cw", false), [Typed::Take]);
    }
}
