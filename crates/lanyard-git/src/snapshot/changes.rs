//! What git's raw lists of differences say, and a look at the worktree made of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::SnapshotError;
use super::git::{WORK_MAX, records};
use super::repo::{Repo, Temp};

/// The mode of an entry that stands for a repository of its own.
pub(crate) const GITLINK: &str = "160000";

/// One path that differs between an old and a new side. Modes are `000000` on the side where it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(super) path: Vec<u8>,
    pub(super) old_mode: String,
    pub(super) new_mode: String,
    pub(super) old: String,
    pub(super) new: String,
    /// Git's letter; `A` is only on the new side, `D` only on the old one.
    pub(super) letter: u8,
}

impl Change {
    pub(crate) fn display(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Reads `--raw -z --no-renames`: `:oldmode newmode old new letter`, then the path.
pub(super) fn parse(list: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut rest = records(list);
    while let (Some(head), Some(path)) = (rest.next(), rest.next()) {
        let head = String::from_utf8_lossy(head);
        let mut words = head.trim_start_matches(':').split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let (old_mode, new_mode, old, new) = (word(), word(), word(), word());
        let letter = word().bytes().next().unwrap_or(b'X');
        changes.push(Change { path: path.to_owned(), old_mode, new_mode, old, new, letter });
    }
    changes
}

/// How an index differs from a tree: the tree is the old side.
pub(crate) fn against_tree(repo: &Repo, tree: &str, index: &Temp) -> Result<Vec<Change>, SnapshotError> {
    let args = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", tree];
    let list = repo.git.with_index(&index.path).with_time(WORK_MAX).read(&args, b"")?;
    Ok(parse(&list))
}

/// The worktree and the index as they are at this moment, in temporary files.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) head: Option<String>,
    /// The index as it is.
    pub(super) index: Temp,
    /// An index that holds the worktree.
    pub(super) worktree: Temp,
    /// How the worktree differs from HEAD.
    pub(super) changes: Vec<Change>,
    /// Paths whose bytes git has not seen before, or not the way they are.
    pub(super) touched: BTreeSet<Vec<u8>>,
    pub(super) notes: Vec<String>,
}

impl Look {
    pub(super) fn at(repo: &Repo) -> Result<Self, SnapshotError> {
        repo.sweep();
        let mut notes = Vec::new();
        let head = repo.head()?;
        let index = repo.copy_index(&repo.index)?;
        let worktree = repo.copy_index(&index.path)?;
        // Told by size and time alone: also files whose content is the same to git after its filters.
        let args = ["diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules"];
        let dirty = repo.git.with_index(&index.path).with_time(WORK_MAX).read(&args, b"")?;
        repo.add_worktree(&worktree, &mut notes)?;
        let base = match &head {
            Some(head) => head.clone(),
            None => repo.empty_tree()?,
        };
        let changes = against_tree(repo, &base, &worktree)?;
        let present = changes.iter().filter(|change| change.letter != b'D');
        let touched =
            records(&dirty).map(<[u8]>::to_owned).chain(present.map(|change| change.path.clone())).collect();
        Ok(Self { head, index, worktree, changes, touched, notes })
    }
}

/// A path of the worktree on disk.
pub(super) fn on_disk(top: &Path, path: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(path))
}

/// A line of `update-index -z --index-info` that sets an entry.
pub(super) fn set_entry(info: &mut Vec<u8>, mode: &str, object: &str, path: &[u8]) {
    info.extend_from_slice(format!("{mode} {object} 0\t").as_bytes());
    info.extend_from_slice(path);
    info.push(0);
}

/// The same that removes one; `object` is any name, for its length.
pub(super) fn remove_entry(info: &mut Vec<u8>, object: &str, path: &[u8]) {
    set_entry(info, "0", &"0".repeat(object.len()), path);
}
