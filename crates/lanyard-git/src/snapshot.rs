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

pub use diff::{Diff, DiffFile, DiffStatus, DiffTo};
pub use own_store::CheckpointStore;
pub use restore::Restored;

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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} is not in the worktree of a git repository", folder.display())]
    NotGit { folder: PathBuf },
    #[error("the git program was not found")]
    NoGit,
    #[error("the folder {} does not exist", folder.display())]
    Gone { folder: PathBuf },
    #[error("git does not trust the repository, which belongs to another user: {stderr}")]
    NotOwner { stderr: String },
    #[error("`{what}` took longer than {seconds} s and was ended")]
    TooLong { what: String, seconds: u64 },
    #[error("`{what}` answered with more than can be handled")]
    TooLarge { what: String },
    #[error("another git process holds the index's lock, {}", lock.display())]
    Locked { lock: PathBuf },
    #[error("the store of checkpoints {} is in use", store.display())]
    StoreBusy { store: PathBuf },
    #[error("{} is a FIFO, a socket or a device, which git would wait for", path.display())]
    Special { path: PathBuf },
    #[error("`{name}` cannot be part of a ref's name")]
    BadName { name: String },
    #[error("a checkpoint {reference} exists already")]
    Exists { reference: String },
    #[error("`{commit}` is not a commit of this repository")]
    NoCommit { commit: String },
    #[error("the commit {commit} is not a checkpoint")]
    NotSnapshot { commit: String },
    #[error("`{what}` failed: {stderr}")]
    Git { what: String, stderr: String },
    #[error("cannot {what}")]
    Io { what: String, source: std::io::Error },
}

impl SnapshotError {
    /// A name for programs that does not change.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotGit { .. } => "not_git",
            Self::NoGit => "no_git",
            Self::Gone { .. } => "workspace_gone",
            Self::NotOwner { .. } => "git_not_owner",
            Self::TooLong { .. } => "git_too_long",
            Self::TooLarge { .. } => "git_too_large",
            Self::Locked { .. } => "git_locked",
            Self::StoreBusy { .. } => "checkpoints_busy",
            Self::Special { .. } => "git_special_file",
            Self::BadName { .. } => "bad_checkpoint_name",
            Self::Exists { .. } => "checkpoint_exists",
            Self::NoCommit { .. } => "no_such_commit",
            Self::NotSnapshot { .. } => "not_a_checkpoint",
            Self::Git { .. } => "git_failed",
            Self::Io { .. } => "checkpoint_io",
        }
    }

    /// One sentence of what to do.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotGit { .. } => "Run `git init` in the workspace to have checkpoints.",
            Self::NoGit => "Install git and make sure that the daemon's PATH has it.",
            Self::Gone { .. } => "Bring the folder back or start a session elsewhere.",
            Self::NotOwner { .. } => {
                "Trust it with `git config --global --add safe.directory` if you know whose it is."
            }
            Self::TooLong { .. } => {
                "Ignore large generated files with .gitignore, or look for a .gitignore that is a FIFO."
            }
            Self::TooLarge { .. } => "Ignore large generated folders with .gitignore.",
            Self::Locked { .. } => "Wait for the other git command; if there is none, remove the lock file.",
            Self::StoreBusy { .. } => "Try again in a minute.",
            Self::Special { .. } => "Remove it, or put a regular file in its place.",
            Self::BadName { .. } => {
                "Use letters, digits, `-`, `_` and `.`, beginning with a letter or a digit."
            }
            Self::Exists { .. } => "Choose another name.",
            Self::NoCommit { .. } => "Give the full name of a commit, as the list of checkpoints shows it.",
            Self::NotSnapshot { .. } => "Give a commit from the list of checkpoints.",
            Self::Git { .. } => "Run the same git command in the workspace to see what is wrong.",
            Self::Io { .. } => "Check the permissions and the free space of the workspace's disk.",
        }
    }
}
