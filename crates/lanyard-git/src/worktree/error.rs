//! Why a worktree is not as it was asked to be. Each has a stable code, a sentence of what happened and one of what to do.

use std::path::PathBuf;

use lanyard_core::refusals;

use crate::snapshot::SnapshotError;

/// Files a refusal names; it says how many more there are.
const NAMED_MAX: usize = 10;

refusals! {
    #[derive(Debug, thiserror::Error)]
    pub enum WorktreeError {
        NotARepository { folder: PathBuf } => "not_a_repository", Conflict
            ("{} is not in the worktree of a git repository", folder.display())
            ("Run `git init` in the workspace, or let the task work in the workspace itself.");
        NoCommit { folder: PathBuf } => "no_commit", Conflict
            ("the repository of {} has no commit yet", folder.display())
            ("Commit something first: a branch begins at a commit.");
        UnknownBase { base: String } => "unknown_base", Conflict
            ("`{base}` is no branch, tag or commit of the repository")
            ("Name a branch, tag or commit that `git rev-parse` knows.");
        BadName { name: String } => "bad_branch_name", Conflict
            ("`{name}` cannot be the name of a branch or a worktree")
            ("Choose a name that `git check-ref-format --branch` accepts.");
        BranchExists { branch: String } => "branch_exists", Conflict
            ("the branch `{branch}` exists already and was not made for this task")
            ("Choose another branch name, or rename the branch that is there.");
        BranchInUse { branch: String } => "branch_in_use", Conflict
            ("the branch `{branch}` is checked out in another worktree")
            ("Check out another branch in that worktree.");
        BranchGone { branch: String } => "branch_gone", Conflict
            ("the branch `{branch}` does not exist")
            ("Look for its commits with `git for-each-ref refs/lanyard`.");
        FolderInUse { folder: PathBuf } => "folder_in_use", Conflict
            ("the folder {} exists and is not the task's worktree", folder.display())
            ("Move the folder elsewhere.");
        Broken { folder: PathBuf } => "worktree_broken", Conflict
            ("{} is no longer a worktree of the task's repository", folder.display())
            ("Save what you need of the folder and move it elsewhere.");
        DirtyWorktree { folder: PathBuf, files: Vec<String> } => "dirty_worktree", Conflict
            ("{} has work that is in no commit: {}", folder.display(), list(files))
            ("Commit it or throw it away, then try again.");
        DirtyWorkspace { folder: PathBuf, files: Vec<String> } => "dirty_workspace", Conflict
            ("{} has changes that are not committed: {}", folder.display(), list(files))
            ("Commit or stash the changes, then try again.");
        Nested { folder: PathBuf, files: Vec<String> } => "nested_repository", Conflict
            ("{} holds repositories of its own: {}", folder.display(), list(files))
            ("Push or move those repositories elsewhere, then try again.");
        InProgress { folder: PathBuf, what: &'static str } => "operation_in_progress", Conflict
            ("a {what} is in progress in {}", folder.display()) ("Finish or abort it, then try again.");
        DetachedHead { folder: PathBuf } => "detached_head", Conflict
            ("no branch is checked out in {}", folder.display()) ("Check out the branch the work should go to.");
        OtherRepository { folder: PathBuf } => "other_repository", Conflict
            ("{} belongs to another repository than the branch", folder.display())
            ("Name a workspace of the repository the task was made from.");
        MergeConflict { branch: String, into: String, files: Vec<String> } => "merge_conflict", Conflict
            ("`{branch}` and `{into}` change the same places of: {}", list(files))
            ("Merge the branch by hand, or ask the task's agent to merge yours first.");
        BaseConflict { branch: String, with: Vec<String>, files: Vec<String> } => "base_conflict", Conflict
            ( "the work of its prerequisites conflicts: `{branch}` and {} change the same places of: {}", list(with), list(files) )
            ("Merge one of the branches into the other, or both into the workspace, then retry the task.");
        Moved { folder: PathBuf } => "workspace_moved", Conflict
            ("the branch checked out in {} moved during the merge", folder.display()) ("Try again.");
        GitMissing => "git_missing", Conflict
            ("the git program was not found") ("Install git and make sure that the daemon's PATH has it.");
        Gone { folder: PathBuf } => "folder_gone", Conflict
            ("the folder {} does not exist", folder.display()) ("Bring the folder back.");
        NotOwner { stderr: String } => "git_not_owner", Conflict
            ("git does not trust the repository, which belongs to another user: {stderr}")
            ("Trust it with `git config --global --add safe.directory` if you know whose it is.");
        TooLong { what: String, seconds: u64 } => "git_too_long", Conflict
            ("`{what}` took longer than {seconds} s and was ended")
            ("Look for a .gitignore that is a FIFO, or a very large folder, then try again.");
        TooLarge { what: String } => "git_too_large", Conflict
            ("`{what}` answered with more than can be handled")
            ("Ignore large generated folders with .gitignore.");
        Locked { stderr: String } => "git_locked", Conflict
            ("another git process holds a lock of the repository: {stderr}")
            ("Wait for the other git command; if there is none, remove the lock file.");
        Special { path: PathBuf } => "git_special_file", Conflict
            ("{} is a FIFO, a socket or a device, which git would wait for", path.display())
            ("Remove it, or put a regular file in its place.");
        Interrupted => "interrupted", Conflict
            ("the work on the worktree was interrupted") ("Try again; what was begun is finished then.");
        SetupBad { file: PathBuf, why: String } => "worktree_setup_bad", Conflict
            ("{} cannot be applied: {why}", file.display())
            ("Correct the file; its keys are `setup`, `copy` and `link`.");
        SetupUntrusted { repository: PathBuf, asks: String } => "worktree_setup_untrusted", Conflict
            ("the setup file of {} is not allowed. In each new worktree it would {asks}", repository.display())
            ("Read {}/.lanyard/worktree.toml, then allow this content with `lanyard worktree trust`.", repository.display())
            agents ("Tell your operator: only an operator can allow the setup file.");
        SetupFailed { command: String, how: String, output: String } => "worktree_setup_failed", Conflict
            ("the setup command `{command}` {how}{}", ending(output))
            ("Correct the command or the setup file, then try again.");
        Git { what: String, stderr: String } => "git_failed", Conflict
            ("`{what}` failed: {stderr}") ("Run the same git command in the repository to see what is wrong.");
        Io { what: String, source: std::io::Error } => "worktree_io", Conflict
            ("cannot {what}") ("Check the permissions and the free space of the disk.");
    }
}

impl WorktreeError {
    /// Whether the same call would fail the same way until somebody does something.
    #[must_use]
    pub const fn is_for_good(&self) -> bool {
        !matches!(self, Self::Moved { .. } | Self::TooLong { .. } | Self::Locked { .. } | Self::Interrupted)
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
            SnapshotError::NoBaseBranch { folder } => {
                Self::UnknownBase { base: folder.display().to_string() }
            }
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

/// The end of a command's output, on lines of its own.
fn ending(output: &str) -> String {
    let output = output.trim_end();
    if output.is_empty() { String::new() } else { format!("; its output ends with\n{output}") }
}

fn list(files: &[String]) -> String {
    let named = files.iter().take(NAMED_MAX).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
