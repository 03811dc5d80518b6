//! Files that go with the next message: `Alt-A` asks for a path, and the daemon keeps the content at once, so that the
//! message only names it.

use lanyard_core::session::{AgentAbility, PARTS_MAX};
use serde_json::Value;

use super::{Aim, Asked, Do, Input, Model, Refused};

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoingFile {
    pub(super) number: u64,
    /// As it was typed.
    pub(super) named: String,
    /// The part of the message that names it, once the daemon keeps the content.
    pub(super) part: Option<Value>,
}

impl Model {
    /// Begins to ask for a path, or goes back to the message.
    pub(super) fn file_key(&mut self) {
        match std::mem::replace(&mut self.aim, Aim::Turn) {
            Aim::Turn if self.files.len() >= PARTS_MAX => {
                self.say(format!("a message takes at most {PARTS_MAX} attachments"));
            }
            Aim::Turn => self.aim = Aim::File(std::mem::take(&mut self.input)),
            Aim::File(words) => self.input = words,
            other @ (Aim::Guidance | Aim::Edit(_)) => {
                self.aim = other;
                self.say("files go with messages only");
            }
        }
    }

    /// The path was typed: the file is read and sent to the daemon. Nothing typed goes back to the message.
    pub(super) fn name_file(&mut self, words: Input) -> Vec<Do> {
        let named = path_in(&self.input.take());
        self.input = words;
        if named.is_empty() {
            return Vec::new();
        }
        self.files_count += 1;
        let number = self.files_count;
        self.files.push(GoingFile { number, named: named.clone(), part: None });
        vec![Do::Keep(Asked::File(number), named)]
    }

    /// Backspace before anything is typed takes the last file away.
    pub(super) fn drop_file(&mut self) {
        match self.files.pop() {
            Some(file) => self.say(format!("{} is not attached", file.named)),
            None => self.say("no file is attached"),
        }
    }

    pub(super) fn file_kept(&mut self, number: u64, result: Result<Value, Refused>) {
        let Some(at) = self.files.iter().position(|file| file.number == number) else { return };
        match result {
            Ok(mut kept) => {
                self.files[at].part = Some(kept["part"].take());
                let lack = self.lack(AgentAbility::Images).filter(|_| kept["image"] == true);
                if let Some(why) = lack {
                    self.say(why);
                }
            }
            Err(refused) => {
                self.files.remove(at);
                self.complain(&refused);
            }
        }
    }

    /// The line about them above the input.
    pub(super) fn file_words(&self) -> Option<String> {
        let named = self.files.iter().map(|file| {
            let state = if file.part.is_none() { " (being sent)" } else { "" };
            format!("{}{state}", file.named)
        });
        let all: Vec<String> = named.collect();
        (!all.is_empty()).then(|| format!("attached: {}", all.join(", ")))
    }

    /// Whether a file is still on its way to the daemon.
    pub(super) fn is_keeping(&self) -> bool {
        self.files.iter().any(|file| file.part.is_none())
    }
}

/// A path as it was typed, pasted or dropped on a terminal, which quotes it or puts backslashes before blanks.
fn path_in(typed: &str) -> String {
    let text = typed.trim();
    let quoted = ['\'', '"'].into_iter().find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark));
    let plain = quoted.map_or_else(|| text.replace("\\ ", " "), str::to_owned);
    match (plain.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_as_terminals_write_it() {
        for (typed, path) in [
            (" a.png\n", "a.png"),
            ("'/tmp/a b.png'", "/tmp/a b.png"),
            ("\"/tmp/a b.png\"", "/tmp/a b.png"),
            ("/tmp/a\\ b.png", "/tmp/a b.png"),
            ("https://example.org/a", "https://example.org/a"),
            ("  ", ""),
        ] {
            assert_eq!(path_in(typed), path, "{typed}");
        }
    }
}
