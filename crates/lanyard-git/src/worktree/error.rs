//! Why a worktree is not as it was asked to be. Each has a stable code, a sentence of what happened and one of what to do.

use std::path::PathBuf;

use crate::snapshot::SnapshotError;

/// Files a refusal names; it says how many more there are.
const NAMED_MAX: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{} is not in the worktree of a git repository", folder.display())]
    NotARepository { folder: PathBuf },
    #[error("the repository of {} has no commit yet", folder.display())]
    NoCommit { folder: PathBuf },
    #[error("`{base}` is no branch, tag or commit of the repository")]
    UnknownBase { base: String },
    #[error("`{name}` cannot be the name of a branch or a worktree")]
    BadName { name: String },
    #[error("the branch `{branch}` exists already and was not made for this task")]
    BranchExists { branch: String },
    #[error("the branch `{branch}` is checked out in another worktree")]
    BranchInUse { branch: String },
    #[error("the branch `{branch}` does not exist")]
    BranchGone { branch: String },
    #[error("the folder {} exists and is not the task's worktree", folder.display())]
    FolderInUse { folder: PathBuf },
    #[error("{} is no longer a worktree of the task's repository", folder.display())]
    Broken { folder: PathBuf },
    #[error("{} has work that is in no commit: {}", folder.display(), list(files))]
    DirtyWorktree { folder: PathBuf, files: Vec<String> },
    #[error("{} has changes that are not committed: {}", folder.display(), list(files))]
    DirtyWorkspace { folder: PathBuf, files: Vec<String> },
    #[error("{} holds repositories of its own: {}", folder.display(), list(files))]
    Nested { folder: PathBuf, files: Vec<String> },
    #[error("a {what} is in progress in {}", folder.display())]
    InProgress { folder: PathBuf, what: &'static str },
    #[error("no branch is checked out in {}", folder.display())]
    DetachedHead { folder: PathBuf },
    #[error("{} belongs to another repository than the branch", folder.display())]
    OtherRepository { folder: PathBuf },
    #[error("`{branch}` and `{into}` change the same places of: {}", list(files))]
    MergeConflict { branch: String, into: String, files: Vec<String> },
    #[error(
        "the work of its prerequisites conflicts: `{branch}` and {} change the same places of: {}",
        list(with),
        list(files)
    )]
    BaseConflict { branch: String, with: Vec<String>, files: Vec<String> },
    #[error("the branch checked out in {} moved during the merge", folder.display())]
    Moved { folder: PathBuf },
    #[error("the git program was not found")]
    GitMissing,
    #[error("the folder {} does not exist", folder.display())]
    Gone { folder: PathBuf },
    #[error("git does not trust the repository, which belongs to another user: {stderr}")]
    NotOwner { stderr: String },
    #[error("`{what}` took longer than {seconds} s and was ended")]
    TooLong { what: String, seconds: u64 },
    #[error("`{what}` answered with more than can be handled")]
    TooLarge { what: String },
    #[error("another git process holds a lock of the repository: {stderr}")]
    Locked { stderr: String },
    #[error("{} is a FIFO, a socket or a device, which git would wait for", path.display())]
    Special { path: PathBuf },
    #[error("the work on the worktree was interrupted")]
    Interrupted,
    #[error("`{what}` failed: {stderr}")]
    Git { what: String, stderr: String },
    #[error("cannot {what}")]
    Io { what: String, source: std::io::Error },
}

impl WorktreeError {
    /// A name for programs that does not change.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotARepository { .. } => "not_a_repository",
            Self::NoCommit { .. } => "no_commit",
            Self::UnknownBase { .. } => "unknown_base",
            Self::BadName { .. } => "bad_branch_name",
            Self::BranchExists { .. } => "branch_exists",
            Self::BranchInUse { .. } => "branch_in_use",
            Self::BranchGone { .. } => "branch_gone",
            Self::FolderInUse { .. } => "folder_in_use",
            Self::Broken { .. } => "worktree_broken",
            Self::DirtyWorktree { .. } => "dirty_worktree",
            Self::DirtyWorkspace { .. } => "dirty_workspace",
            Self::Nested { .. } => "nested_repository",
            Self::InProgress { .. } => "operation_in_progress",
            Self::DetachedHead { .. } => "detached_head",
            Self::OtherRepository { .. } => "other_repository",
            Self::MergeConflict { .. } => "merge_conflict",
            Self::BaseConflict { .. } => "base_conflict",
            Self::Moved { .. } => "workspace_moved",
            Self::GitMissing => "git_missing",
            Self::Gone { .. } => "folder_gone",
            Self::NotOwner { .. } => "git_not_owner",
            Self::TooLong { .. } => "git_too_long",
            Self::TooLarge { .. } => "git_too_large",
            Self::Locked { .. } => "git_locked",
            Self::Special { .. } => "git_special_file",
            Self::Interrupted => "interrupted",
            Self::Git { .. } => "git_failed",
            Self::Io { .. } => "worktree_io",
        }
    }

    /// One sentence of what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::NotARepository { .. } => {
                "Run `git init` in the workspace, or let the task work in the workspace itself."
            }
            Self::NoCommit { .. } => "Commit something first: a branch begins at a commit.",
            Self::UnknownBase { .. } => "Name a branch, tag or commit that `git rev-parse` knows.",
            Self::BadName { .. } => "Choose a name that `git check-ref-format --branch` accepts.",
            Self::BranchExists { .. } => "Choose another branch name, or rename the branch that is there.",
            Self::BranchInUse { .. } => "Check out another branch in that worktree.",
            Self::BranchGone { .. } => "Look for its commits with `git for-each-ref refs/lanyard`.",
            Self::FolderInUse { .. } => "Move the folder elsewhere.",
            Self::Broken { .. } => "Save what you need of the folder and move it elsewhere.",
            Self::DirtyWorktree { .. } => "Commit it or throw it away, then try again.",
            Self::DirtyWorkspace { .. } => "Commit or stash the changes, then try again.",
            Self::Nested { .. } => "Push or move those repositories elsewhere, then try again.",
            Self::InProgress { .. } => "Finish or abort it, then try again.",
            Self::DetachedHead { .. } => "Check out the branch the work should go to.",
            Self::OtherRepository { .. } => "Name a workspace of the repository the task was made from.",
            Self::MergeConflict { .. } => {
                "Merge the branch by hand, or ask the task's agent to merge yours first."
            }
            Self::BaseConflict { .. } => {
                "Merge one of the branches into the other, or both into the workspace, then retry the task."
            }
            Self::Moved { .. } => "Try again.",
            Self::GitMissing => "Install git and make sure that the daemon's PATH has it.",
            Self::Gone { .. } => "Bring the folder back.",
            Self::NotOwner { .. } => {
                "Trust it with `git config --global --add safe.directory` if you know whose it is."
            }
            Self::TooLong { .. } => {
                "Look for a .gitignore that is a FIFO, or a very large folder, then try again."
            }
            Self::TooLarge { .. } => "Ignore large generated folders with .gitignore.",
            Self::Locked { .. } => "Wait for the other git command; if there is none, remove the lock file.",
            Self::Special { .. } => "Remove it, or put a regular file in its place.",
            Self::Interrupted => "Try again; what was begun is finished then.",
            Self::Git { .. } => "Run the same git command in the repository to see what is wrong.",
            Self::Io { .. } => "Check the permissions and the free space of the disk.",
        }
    }

    /// Whether the same call would fail the same way until somebody does something.
    #[must_use]
    pub const fn is_for_good(&self) -> bool {
        match self {
            Self::Moved { .. } | Self::TooLong { .. } | Self::Locked { .. } | Self::Interrupted => false,
            Self::NotARepository { .. }
            | Self::NoCommit { .. }
            | Self::UnknownBase { .. }
            | Self::BadName { .. }
            | Self::BranchExists { .. }
            | Self::BranchInUse { .. }
            | Self::BranchGone { .. }
            | Self::FolderInUse { .. }
            | Self::Broken { .. }
            | Self::DirtyWorktree { .. }
            | Self::DirtyWorkspace { .. }
            | Self::Nested { .. }
            | Self::InProgress { .. }
            | Self::DetachedHead { .. }
            | Self::OtherRepository { .. }
            | Self::MergeConflict { .. }
            | Self::BaseConflict { .. }
            | Self::GitMissing
            | Self::Gone { .. }
            | Self::NotOwner { .. }
            | Self::TooLarge { .. }
            | Self::Special { .. }
            | Self::Git { .. }
            | Self::Io { .. } => true,
        }
    }
}

impl From<SnapshotError> for WorktreeError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::NotGit { folder } => Self::NotARepository { folder },
            SnapshotError::NoGit => Self::GitMissing,
            SnapshotError::Gone { folder } => Self::Gone { folder },
            SnapshotError::NotOwner { stderr } => Self::NotOwner { stderr },
            SnapshotError::TooLong { what, seconds } => Self::TooLong { what, seconds },
            SnapshotError::TooLarge { what } => Self::TooLarge { what },
            SnapshotError::Locked { lock } => Self::Locked { stderr: lock.display().to_string() },
            SnapshotError::Special { path } => Self::Special { path },
            SnapshotError::BadName { name } => Self::BadName { name },
            SnapshotError::NoCommit { commit } => Self::UnknownBase { base: commit },
            SnapshotError::Git { what, stderr } => failed(what, stderr),
            SnapshotError::Io { what, source } => Self::Io { what, source },
            // Only checkpoints have these.
            error @ (SnapshotError::Exists { .. }
            | SnapshotError::NotSnapshot { .. }
            | SnapshotError::StoreBusy { .. }) => {
                Self::Git { what: "git".to_owned(), stderr: error.to_string() }
            }
        }
    }
}

/// The error of a call that failed, told by git's words.
pub(super) fn failed(what: String, stderr: String) -> WorktreeError {
    if stderr.contains("dubious ownership") {
        return WorktreeError::NotOwner { stderr };
    }
    if passes(&stderr) {
        return WorktreeError::Locked { stderr };
    }
    WorktreeError::Git { what, stderr }
}

/// Whether git complains of what another git process does at the moment.
pub(super) fn passes(stderr: &str) -> bool {
    let held = stderr.contains(".lock") && stderr.contains("File exists");
    // Any listing of worktrees trips over one that is being made.
    let half_made = stderr.contains("failed to read") && stderr.contains("worktrees/");
    held || half_made || stderr.contains("could not lock config file")
}

fn list(files: &[String]) -> String {
    let named = files.iter().take(NAMED_MAX).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
