//! Giving a workspace back as a snapshot has it: the worktree's files, then the index.
//!
//! The index's lock is held throughout, as git does, so that no other git command works on a half-restored worktree.
//! Git checks everything it is about to overwrite before it writes the first file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::SnapshotError;
use super::changes::{Look, on_disk};
use super::diff::check_exists;
use super::extras::Extras;
use super::git::WORK_MAX;
use super::message::{self, Facts};
use super::own_store::{CheckpointStore, Hold, OpenedStore};
use super::plan::{self, Plan};
use super::repo::{Repo, Temp, io_error};
use super::{transfer, verbatim};
use crate::workspace_files::beneath;

const LINE_MAX: usize = 64 * 1024;

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoredFiles {
    pub changed: u32,
    /// Files that were missing.
    pub added: u32,
    /// Files that were not there at the snapshot.
    pub removed: u32,
    /// What is not as it was, a sentence each.
    pub notes: Vec<String>,
}

impl CheckpointStore {
    /// Makes worktree and index as they were. Ignored files, HEAD, branches and stash are left alone. What the worktree
    /// holds now is lost unless a snapshot was taken first.
    pub fn restore(&self, workspace: &Path, commit: &str) -> Result<RestoredFiles, SnapshotError> {
        restore_in(&self.place(workspace, None, Hold::Alone)?, commit)
    }
}

fn restore_in(place: &OpenedStore, commit: &str) -> Result<RestoredFiles, SnapshotError> {
    let repo = &place.repo;
    let facts = read_facts(repo, commit)?;
    let tree = format!("{commit}^{{tree}}");
    let index_tree = format!("{}^{{tree}}", facts.index);
    let held = IndexLock::take(&repo.index)?;

    let look = Look::at(repo)?;
    let extras = match &facts.extras {
        Some(extras) => Extras::read(repo, extras)?,
        None => Extras::default(),
    };
    let mut notes = look.notes.clone();
    if look.head != facts.head {
        let now = look.head.as_deref().unwrap_or("no commit");
        let then = facts.head.as_deref().unwrap_or("no commit");
        notes.push(format!("HEAD is at {now} and was at {then}; it was not moved"));
    }
    give_back(place, &facts, look.head.as_deref())?;
    let converted = verbatim::find(repo, &look.worktree, &look.touched)?;
    let plan = plan::make(repo, &look, &tree, &index_tree, &mut notes)?;
    check_out(repo, &look.worktree, &plan.tree)?;
    let rewritten = put_bytes(repo, &look.worktree, &plan, &extras, converted)?;

    let index = repo.copy_index(&look.worktree.path)?;
    let git = repo.git.with_index(&index.path).with_time(WORK_MAX);
    git.read(&["read-tree", "--reset", &index_tree], b"")?;
    extras.apply(repo, &index, &mut notes)?;
    // Says "needs update" with its exit code; what it is for is that the next `git status` need not read files.
    git.run(&["update-index", "-q", "--refresh"], b"", LINE_MAX)?;
    held.replace(&repo.index, &index)?;
    Ok(RestoredFiles {
        changed: plan.changed.saturating_add(rewritten),
        added: plan.added,
        removed: plan.removed,
        notes,
    })
}

/// Copies what the index will name into the repository's own objects, where git looks for it.
fn give_back(place: &OpenedStore, facts: &Facts, head: Option<&str>) -> Result<(), SnapshotError> {
    let git = &place.repo.git;
    let line = |named: &str| git.read_line(&["rev-parse", "--verify", &format!("{named}^{{tree}}")], b"");
    let empty = place.repo.empty_tree()?;
    let base = head.map_or_else(|| Ok(empty.clone()), line)?;
    let mut names = transfer::new_objects(git, &base, &line(&facts.index)?)?;
    if let Some(extras) = &facts.extras {
        names.extend(transfer::new_objects(git, &empty, &line(extras)?)?);
    }
    transfer::copy(git, &git.own_objects(), &place.objects, &names)
}

fn read_facts(repo: &Repo, commit: &str) -> Result<Facts, SnapshotError> {
    check_exists(repo, commit)?;
    let text = repo.git.read(&["cat-file", "commit", commit], b"")?;
    let text = String::from_utf8_lossy(&text);
    let message = text.split_once("\n\n").map_or("", |(_, message)| message);
    let Some((_, facts)) = message::read(message) else {
        return Err(SnapshotError::NotSnapshot { commit: commit.to_owned() });
    };
    Ok(facts)
}

/// Files outside a sparse checkout that are there anyway stay so: `--no-sparse-checkout`.
fn check_out(repo: &Repo, worktree: &Temp, tree: &str) -> Result<(), SnapshotError> {
    let git = repo.git.with_index(&worktree.path).with_time(WORK_MAX);
    git.read(&["read-tree", "-m", "-u", "--no-sparse-checkout", "--no-recurse-submodules", tree], b"")?;
    Ok(())
}

/// Files whose bytes git's conversions do not tell apart: as kept, or else as a checkout writes them. Says how many
/// were rewritten that git itself had no reason to touch. Git takes a file of another size than it knows as changed
/// without reading it, so it is told of them.
fn put_bytes(
    repo: &Repo,
    worktree: &Temp,
    plan: &Plan,
    extras: &Extras,
    converted: Vec<Vec<u8>>,
) -> Result<u32, SnapshotError> {
    let mut rewritten = 0;
    let mut written = Vec::new();
    let mut write = |path: &[u8], bytes: &[u8]| -> Result<(), SnapshotError> {
        let disk = on_disk(&repo.top, path);
        let there = fs::symlink_metadata(&disk).is_ok_and(|data| data.is_file());
        if there && verbatim::read(&repo.top, path).is_ok_and(|now| now != bytes) {
            verbatim::overwrite(&disk, bytes)?;
            written.push(path.to_owned());
            rewritten += u32::from(!plan.differing.contains(path));
        }
        Ok(())
    };
    for (path, _, blob) in &extras.verbatim {
        write(path, &repo.git.read(&["cat-file", "blob", blob], b"")?)?;
    }
    let kept: BTreeSet<&[u8]> = extras.verbatim.iter().map(|(path, _, _)| path.as_slice()).collect();
    let others: Vec<Vec<u8>> = converted
        .into_iter()
        .filter(|path| !kept.contains(path.as_slice()) && !plan.differing.contains(path))
        .collect();
    if !others.is_empty() {
        let folder = repo.temp_folder()?;
        verbatim::write_out(repo, worktree, &others, &folder)?;
        for path in &others {
            if let Ok(bytes) = verbatim::read(&folder.path, path) {
                write(path, &bytes)?;
            }
        }
    }
    if !written.is_empty() {
        let git = repo.git.with_index(&worktree.path).with_time(WORK_MAX);
        git.read(&["update-index", "-z", "--stdin"], &verbatim::joined(&written))?;
    }
    Ok(rewritten)
}

/// Git's own lock on the index: a file that only one can make. Dropping it gives the lock back.
#[derive(Debug)]
struct IndexLock {
    path: PathBuf,
    file: File,
}

impl IndexLock {
    fn take(index: &Path) -> Result<Self, SnapshotError> {
        let mut path = OsString::from(index);
        path.push(".lock");
        let path = PathBuf::from(path);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(SnapshotError::Locked { lock: path })
            }
            Err(source) => Err(io_error("lock the index", source)),
        }
    }

    /// The new index takes the old one's place in one step, with its own time (see [`super::repo`]).
    fn replace(mut self, index: &Path, new: &Temp) -> Result<(), SnapshotError> {
        let mut replace = || -> io::Result<()> {
            let mut from = beneath::open_regular(&new.path).map_err(io::Error::other)?;
            io::copy(&mut from, &mut self.file)?;
            if let Ok(old) = fs::metadata(index) {
                self.file.set_permissions(old.permissions())?;
            }
            self.file.set_modified(from.metadata()?.modified()?)?;
            fs::rename(&self.path, index)
        };
        replace().map_err(|source| io_error("replace the index", source))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // After the replacement there is nothing at this path.
        fs::remove_file(&self.path).ok();
    }
}
