//! Checkpoints of a workspace as git commits in a repository of Lanyard's own (`own_store`).
//!
//! A snapshot is a commit under `refs/lanyard/<session>/<name>` there. Its tree is the worktree: tracked changes,
//! deletions and untracked files, without what is ignored. Its parents are a commit with the index's tree and, when
//! there is something a tree cannot say, a commit with that (`extras`). Taking one writes nothing into the user's
//! repository; restoring one writes the worktree, the index, and the objects that the index names.
//!
//! Kept as git keeps it: empty folders are not part of it; a submodule, or any repository inside the worktree, is
//! recorded by its commit and not descended into; files marked assume-unchanged or skip-worktree count as unchanged.
//! A workspace that is a folder within a repository stands for the repository's whole worktree.
//!
//! Line ends are converted as the user set it up, because the blobs of unchanged files went through that already:
//! switching `core.autocrlf` off would write those back with other bytes than they had. A changed file that would not
//! come back byte for byte is kept verbatim beside it (`verbatim`). Filters, merge drivers and hooks never run: a
//! repository could name any program there (`disarm`, decision 0026).
//!
//! Every function blocks on the `git` program for as long as the bounds in `git` say: call from a blocking thread.

pub(crate) mod changes;
pub mod content;
pub mod diff;
mod disarm;
mod extras;
pub(crate) mod git;
pub mod live;
pub(crate) mod message;
pub mod old_refs;
mod own_store;
mod plan;
pub(crate) mod repo;
mod restore;
mod take;
#[cfg(test)]
mod tests;
mod transfer;
mod verbatim;

use std::path::PathBuf;

use lanyard_core::refusals;

pub use content::{BranchBase, top_of};
pub use diff::{Diff, DiffStatus, DiffTo, FileDiff};
pub use own_store::CheckpointStore;
pub use restore::RestoredFiles;

/// A checkpoint that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub commit: String,
    /// `refs/lanyard/<session>/<name>`.
    pub reference: String,
    pub name: String,
    /// What the caller said it is for.
    pub message: String,
    /// The commit HEAD named then; nothing in a repository without commits.
    pub head: Option<String>,
    pub tree: String,
    /// Files that differ from `head`.
    pub files_changed: u32,
    /// What could not be kept, a sentence each.
    pub notes: Vec<String>,
}

refusals! {
    /// Why there is no answer.
    #[derive(Debug, thiserror::Error)]
    pub enum SnapshotError {
        NotGit { folder: PathBuf } => "not_git", Conflict
            ("{} is not in the worktree of a git repository", folder.display())
            ("Run `git init` in the workspace to have checkpoints.");
        NoGit => "no_git", Conflict
            ("the git program was not found") ("Install git and make sure that the daemon's PATH has it.");
        Gone { folder: PathBuf } => "workspace_gone", Conflict
            ("the folder {} does not exist", folder.display())
            ("Bring the folder back or start a session elsewhere.");
        NotOwner { stderr: String } => "git_not_owner", Conflict
            ("git does not trust the repository, which belongs to another user: {stderr}")
            ("Trust it with `git config --global --add safe.directory` if you know whose it is.");
        TooLong { what: String, seconds: u64 } => "git_too_long", Conflict
            ("`{what}` took longer than {seconds} s and was ended")
            ("Ignore large generated files with .gitignore, or look for a .gitignore that is a FIFO.");
        TooLarge { what: String } => "git_too_large", Conflict
            ("`{what}` answered with more than can be handled")
            ("Ignore large generated folders with .gitignore.");
        Locked { lock: PathBuf } => "git_locked", Conflict
            ("another git process holds the index's lock, {}", lock.display())
            ("Wait for the other git command; if there is none, remove the lock file.");
        StoreBusy { store: PathBuf } => "checkpoints_busy", Conflict
            ("the store of checkpoints {} is in use", store.display()) ("Try again in a minute.");
        Special { path: PathBuf } => "git_special_file", Conflict
            ("{} is a FIFO, a socket or a device, which git would wait for", path.display())
            ("Remove it, or put a regular file in its place.");
        BadName { name: String } => "bad_checkpoint_name", Invalid
            ("`{name}` cannot be part of a ref's name")
            ("Use letters, digits, `-`, `_` and `.`, beginning with a letter or a digit.");
        Exists { reference: String } => "checkpoint_exists", Conflict
            ("a checkpoint {reference} exists already") ("Choose another name.");
        NoCommit { commit: String } => "no_such_commit", NotFound
            ("`{commit}` is not a commit of this repository")
            ("Give the full name of a commit, as the list of checkpoints shows it.");
        NoBaseBranch { folder: PathBuf } => "no_base_branch", Conflict
            ("no base branch is known for what is checked out in {}", folder.display())
            ("Compare with a checkpoint, or fetch the remote so that `origin/HEAD` is known.");
        NotSnapshot { commit: String } => "not_a_checkpoint", NotFound
            ("the commit {commit} is not a checkpoint") ("Give a commit from the list of checkpoints.");
        Git { what: String, stderr: String } => "git_failed", Conflict
            ("`{what}` failed: {stderr}") ("Run the same git command in the workspace to see what is wrong.");
        Io { what: String, source: std::io::Error } => "checkpoint_io", Conflict
            ("cannot {what}") ("Check the permissions and the free space of the workspace's disk.");
    }
}
