//! Copying objects between a repository and the store of its checkpoints.
//!
//! The objects to copy are found by comparing trees, and folders that are equal on both sides are not read. What a
//! checkpoint costs is therefore what changed since the last one, not the size of the repository.

use std::collections::BTreeSet;
use std::path::Path;

use super::SnapshotError;
use super::changes::{GITLINK, parse};
use super::git::{Git, WORK_MAX};

/// Bytes of objects that one copy may take, as git stores them.
const COPY_MAX: u64 = 8 * 1024 * 1024 * 1024;

const LINE_MAX: usize = 4 * 1024;

/// The objects below `tree`, itself included, that are not at the same place below `base`.
pub(super) fn new_objects(git: &Git, base: &str, tree: &str) -> Result<BTreeSet<String>, SnapshotError> {
    let args = ["diff-tree", "-r", "-t", "--raw", "-z", "--no-renames", "--no-abbrev", base, tree];
    let list = git.with_time(WORK_MAX).read(&args, b"")?;
    let changes = parse(&list).into_iter();
    let present = changes.filter(|change| change.letter != b'D' && change.new_mode != GITLINK);
    Ok(present.map(|change| change.new).chain([tree.to_owned()]).collect())
}

/// Copies objects into a folder of objects. `reads` sees source and target, `sees` the target alone.
pub(super) fn copy(
    reads: &Git,
    sees: &Git,
    objects: &Path,
    names: &BTreeSet<String>,
) -> Result<(), SnapshotError> {
    let missing = sizes(sees, names.iter())?.into_iter().filter(|(_, size)| size.is_none());
    let missing: Vec<String> = missing.map(|(name, _)| name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let found: Vec<(String, u64)> =
        sizes(reads, missing.iter())?.into_iter().filter_map(|(name, size)| Some((name, size?))).collect();
    if found.len() < missing.len() && !is_partial(reads)? {
        let (what, count) = ("git cat-file".to_owned(), missing.len() - found.len());
        return Err(SnapshotError::Git { what, stderr: format!("{count} objects are missing") });
    }
    if found.iter().map(|(_, size)| size).sum::<u64>() > COPY_MAX {
        return Err(SnapshotError::TooLarge { what: "git pack-objects".to_owned() });
    }
    if found.is_empty() {
        return Ok(());
    }
    let base = objects.join("pack").join("pack");
    // No search for deltas: those that the source has are taken over, the rest is compressed already.
    let args = ["pack-objects".as_ref(), "-q".as_ref(), "--window=0".as_ref(), base.as_os_str()];
    reads.with_time(WORK_MAX).read(&args, lines(found.iter().map(|(name, _)| name)).as_bytes())?;
    Ok(())
}

/// Whether the repository is a partial clone, which lacks objects that its worktree does not use.
fn is_partial(git: &Git) -> Result<bool, SnapshotError> {
    let args = ["config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$"];
    Ok(git.run(&args, b"", LINE_MAX)?.status.success())
}

/// What each object takes on disk; nothing for one that is not there.
fn sizes<'a>(
    git: &Git,
    names: impl Iterator<Item = &'a String>,
) -> Result<Vec<(String, Option<u64>)>, SnapshotError> {
    let args = ["cat-file", "--batch-check=%(objectname) %(objectsize:disk)"];
    let list = git.with_time(WORK_MAX).read(&args, lines(names).as_bytes())?;
    let list = String::from_utf8_lossy(&list).into_owned();
    let split = list.lines().filter_map(|line| line.split_once(' '));
    // `NAME missing`
    Ok(split.map(|(name, size)| (name.to_owned(), size.parse().ok())).collect())
}

fn lines<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.flat_map(|name| [name.as_str(), "\n"]).collect()
}
