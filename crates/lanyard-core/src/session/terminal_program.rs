//! A program on a terminal of its own, in the place of an agent that is spoken to by a protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::refusal::Refusal;

/// Words of a command.
const WORDS_MAX: usize = 256;
/// Bytes of a command, all words together. The kernel takes more; a log should not.
const COMMAND_BYTES_MAX: usize = 64 << 10;

/// The command of a session that is a terminal run. Each run of the session starts it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalProgram {
    /// The program and its arguments. A bare name is looked for on PATH.
    pub command: Vec<String>,
    /// The size its window begins with.
    #[serde(default)]
    pub size: WindowSize,
}

/// The size of a terminal's window in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowSize {
    pub cols: u16,
    pub rows: u16,
}

impl Default for WindowSize {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

impl WindowSize {
    /// The largest window. Its screen takes some ten MiB of memory.
    pub const MAX: Self = Self { cols: 1_000, rows: 400 };

    /// Refuses a window that has no place for a character, and one that no screen has.
    pub const fn check(self) -> Result<(), Refusal> {
        let fits =
            self.cols >= 2 && self.rows >= 1 && self.cols <= Self::MAX.cols && self.rows <= Self::MAX.rows;
        if fits { Ok(()) } else { Err(Refusal::WindowSize { cols: self.cols, rows: self.rows }) }
    }
}

impl TerminalProgram {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.size.check()?;
        let bytes: usize = self.command.iter().map(String::len).sum();
        let unusable = self.command.first().is_none_or(|program| program.trim().is_empty())
            || self.command.iter().any(|word| word.contains('\0'));
        if unusable || self.command.len() > WORDS_MAX || bytes > COMMAND_BYTES_MAX {
            return Err(Refusal::TerminalCommand);
        }
        Ok(())
    }

    /// The command in one line, as a shell would take it.
    #[must_use]
    pub fn in_words(&self) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
        let quoted = |word: &String| {
            if !word.is_empty() && word.bytes().all(plain) {
                return word.clone();
            }
            format!("'{}'", word.replace('\'', "'\\''"))
        };
        self.command.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &[&str]) -> TerminalProgram {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        TerminalProgram { command, size: WindowSize::default() }
    }

    #[test]
    fn a_window_has_a_place_for_characters_and_an_end() {
        for (cols, rows, fits) in [
            (80, 24, true),
            (2, 1, true),
            (1_000, 400, true),
            (0, 24, false),
            (80, 0, false),
            (10_000, 24, false),
        ] {
            assert_eq!(WindowSize { cols, rows }.check().is_ok(), fits, "{cols}x{rows}");
        }
    }

    #[test]
    fn a_command_names_a_program() {
        assert!(program(&["vi", "a b"]).check().is_ok());
        for bad in [&[][..], &[""], &[" "], &["vi", "a\0b"]] {
            assert!(program(bad).check().is_err(), "{bad:?}");
        }
        assert!(program(&["x"; WORDS_MAX + 1]).check().is_err());
        assert_eq!(program(&["vi", "a b", "it's", ""]).in_words(), "vi 'a b' 'it'\\''s' ''");
    }
}
