//! Replacing a worktree's index by one that was made beside it, the way git itself does: under the index's lock.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::call::read;
use crate::snapshot::git::{WORK_MAX, records};
use crate::snapshot::repo::{Repo, Temp, io_error};
use crate::workspace_files::beneath;

/// Makes an index the worktree's own. What was in conflict stays so.
pub(super) fn install(repo: &Repo, index: &Temp, unmerged: &[u8]) -> Result<(), WorktreeError> {
    let lock = lock_of(&repo.index);
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(WorktreeError::Locked { stderr: lock.display().to_string() });
        }
        Err(source) => return Err(io_error("lock the index", source).into()),
    };
    let replaced = restage(repo, index, unmerged).and_then(|()| {
        let copied = beneath::open_regular(&index.path)
            .map_err(io::Error::other)
            .and_then(|mut from| {
                io::copy(&mut from, &mut file)?;
                file.set_modified(from.metadata()?.modified()?)
            })
            .and_then(|()| fs::rename(&lock, &repo.index));
        copied.map_err(|source| io_error("replace the index", source).into())
    });
    if replaced.is_err() {
        fs::remove_file(&lock).ok();
    }
    replaced
}

/// Puts the entries of a conflict back in place of what was added for them.
fn restage(repo: &Repo, index: &Temp, unmerged: &[u8]) -> Result<(), WorktreeError> {
    if unmerged.is_empty() {
        return Ok(());
    }
    let mut info = Vec::new();
    for entry in records(unmerged) {
        let hash_chars = entry.split(|byte| *byte == b' ').nth(1).map_or(40, <[u8]>::len);
        info.extend_from_slice(format!("0 {}\t", "0".repeat(hash_chars)).as_bytes());
        info.extend_from_slice(path_in(entry));
        info.push(0);
    }
    info.extend_from_slice(unmerged);
    let git = repo.git.with_index(&index.path).with_time(WORK_MAX);
    read(&git, &["update-index", "-z", "--index-info"], &info)?;
    Ok(())
}

/// The path of a line of `ls-files --stage`.
pub(super) fn path_in(entry: &[u8]) -> &[u8] {
    let tab = entry.iter().position(|byte| *byte == b'\t').map_or(0, |at| at + 1);
    &entry[tab..]
}

fn lock_of(index: &Path) -> PathBuf {
    let mut lock = index.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}
