//! A snapshot's commit message: the caller's words, then a paragraph of facts that are read back.

use super::{Snapshot, SnapshotError};

/// Longer messages are cut.
const MESSAGE_MAX: usize = 4 * 1024;
const NAME_MAX: usize = 128;
const NONE: &str = "none";

/// What the last paragraph holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) head: Option<String>,
    /// The commit with the index's tree.
    pub(super) index: String,
    /// The commit with what trees cannot say.
    pub(super) extras: Option<String>,
    pub(super) files_changed: u32,
    pub(super) notes: Vec<String>,
}

/// Session and checkpoint names become parts of a ref's name; git's own rules are wider.
pub(crate) fn check_name(name: &str) -> Result<(), SnapshotError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let good = name.len() <= NAME_MAX
        && name.bytes().all(plain)
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.rsplit('.').next().is_some_and(|last| name.contains('.') && last == "lock");
    if good { Ok(()) } else { Err(SnapshotError::BadName { name: name.to_owned() }) }
}

/// A commit is named by its hash alone, so that no name can be read as an option or a range.
pub(super) fn check_commit(commit: &str) -> Result<(), SnapshotError> {
    let hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hex && (4..=64).contains(&commit.len()) {
        return Ok(());
    }
    Err(SnapshotError::NoCommit { commit: commit.to_owned() })
}

pub(super) fn write(message: &str, facts: &Facts) -> String {
    let mut words = message.replace('\0', "");
    words.truncate(words.floor_char_boundary(MESSAGE_MAX));
    let words = match words.trim() {
        "" => format!("Checkpoint {}", facts.name),
        words => words.to_owned(),
    };
    let mut lines = vec![
        format!("Lanyard-Checkpoint: {}", facts.name),
        format!("Lanyard-Head: {}", facts.head.as_deref().unwrap_or(NONE)),
        format!("Lanyard-Index: {}", facts.index),
        format!("Lanyard-Extras: {}", facts.extras.as_deref().unwrap_or(NONE)),
        format!("Lanyard-Files-Changed: {}", facts.files_changed),
    ];
    let one_line = |note: &String| note.replace(|c: char| c.is_control(), " ");
    lines.extend(facts.notes.iter().map(|note| format!("Lanyard-Note: {}", one_line(note))));
    format!("{words}\n\n{}\n", lines.join("\n"))
}

/// The caller's words and the facts; nothing when it is not a snapshot's message.
pub(super) fn read(text: &str) -> Option<(String, Facts)> {
    let (words, last) = text.trim_end().rsplit_once("\n\n")?;
    let object = |value: &str| {
        let good = value.len() >= 40 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then(|| value.to_owned())
    };
    let mut facts = Facts::default();
    for line in last.lines() {
        let (key, value) = line.split_once(": ")?;
        match key {
            "Lanyard-Checkpoint" => value.clone_into(&mut facts.name),
            "Lanyard-Head" => facts.head = object(value),
            "Lanyard-Index" => facts.index = object(value)?,
            "Lanyard-Extras" => facts.extras = object(value),
            "Lanyard-Files-Changed" => facts.files_changed = value.parse().ok()?,
            "Lanyard-Note" => facts.notes.push(value.to_owned()),
            _ => return None,
        }
    }
    (!facts.name.is_empty() && !facts.index.is_empty()).then(|| (words.to_owned(), facts))
}

impl Snapshot {
    pub(super) fn new(commit: String, reference: String, tree: String, words: String, facts: Facts) -> Self {
        // A checkpoint of an unchanged workspace shares the commit of the one before it; its ref names it.
        let name = reference.rsplit('/').next().unwrap_or(&facts.name).to_owned();
        Self {
            commit,
            reference,
            name,
            message: words,
            head: facts.head,
            tree,
            files_changed: facts.files_changed,
            notes: facts.notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            name: "turn-1".to_owned(),
            head: None,
            index: "a".repeat(40),
            extras: Some("b".repeat(40)),
            files_changed: 3,
            notes: vec!["one\nline".to_owned()],
        }
    }

    #[test]
    fn facts_are_read_back_and_a_message_cannot_pose_as_them() {
        let text = write("why\n\nLanyard-Index: no\n\0", &facts());
        let (words, read_back) = read(&text).unwrap();
        assert_eq!(words, "why\n\nLanyard-Index: no");
        assert_eq!(read_back, Facts { notes: vec!["one line".to_owned()], ..facts() });
        assert_eq!(read("just a commit"), None);
        assert_eq!(read("a commit\n\nSigned-off-by: somebody"), None);
    }

    #[test]
    fn names_that_git_would_refuse_are_refused() {
        for bad in ["", "a/b", "-x", ".x", "a..b", "a.", "a.lock", "a b", "ä", "a\n"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "s_01H", "turn-1.start", "lock"] {
            check_name(good).unwrap();
        }
        for bad in ["", "HEAD", "--all", "abc", "a..b"] {
            assert!(check_commit(bad).is_err(), "{bad:?}");
        }
    }
}
