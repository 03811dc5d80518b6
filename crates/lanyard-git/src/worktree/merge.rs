//! Bringing a tree's commits into a workspace, or a child's into its parent's worktree.
//!
//! The merge is made beside the workspace first. Only when it is whole does the workspace follow, as a step forward:
//! a conflict has touched nothing.

use std::path::Path;

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::call::{ask, is_ancestor, maybe, read, text};
use super::capture::commit;
use super::error::failed;
use super::shared::{Shared, common_of, head_ref};
use crate::snapshot::git::{WORK_MAX, describe, records};
use crate::snapshot::repo::Repo;

/// Files of git's folder that say what is in progress.
const SIGNS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
];

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Where the workspace's branch is now.
    pub commit: String,
    /// The branch that is checked out there.
    pub into: String,
    /// It had no commits of its own, so none was made.
    pub fast_forward: bool,
    /// It had all of it before.
    pub nothing: bool,
}

/// Merges a tree's branch into what is checked out in a workspace of the same repository. What is not committed in the
/// tree's worktree is not part of it.
pub fn merge(tree: &Tree, into: &Path, message: &str) -> Result<Merged, WorktreeError> {
    let shared = Shared::of(tree)?;
    let repo = Repo::find(into)?;
    let folder = || repo.top.clone();
    if common_of(&repo.git)? != shared.common {
        return Err(WorktreeError::OtherRepository { folder: folder() });
    }
    if let Some((_, what)) = SIGNS.iter().find(|(sign, _)| repo.git_dir.join(sign).exists()) {
        return Err(WorktreeError::InProgress { folder: folder(), what });
    }
    let name = maybe(&repo.git, &["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    let name = name.ok_or_else(|| WorktreeError::DetachedHead { folder: folder() })?;
    let head = repo.head()?.ok_or_else(|| WorktreeError::NoCommit { folder: folder() })?;
    let tip = shared.tip(&head_ref(&tree.branch))?;
    let tip = tip.ok_or_else(|| WorktreeError::BranchGone { branch: tree.branch.clone() })?;
    if is_ancestor(&repo.git, &tip, &head)? {
        return Ok(Merged { commit: head, into: name, fast_forward: false, nothing: true });
    }
    check_clean(&repo)?;
    let fast_forward = is_ancestor(&repo.git, &head, &tip)?;
    let commit = if fast_forward {
        tip
    } else {
        let files = join(&repo, &head, &tip).map_err(|error| match error {
            Unjoined::Conflict(files) => {
                let branch = tree.branch.clone();
                WorktreeError::MergeConflict { branch, into: name.clone(), files }
            }
            Unjoined::Error(error) => error,
        })?;
        commit(&repo, &files, [&head, &tip], message)?
    };
    follow(&repo, &commit)?;
    Ok(Merged { commit, into: name, fast_forward, nothing: false })
}

/// Where a tree's branch stands towards what is checked out in a folder of its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeStanding {
    /// The branch that is checked out there; absent where none is.
    pub into: Option<String>,
    /// That branch has all commits of the tree's, and the tree's has commits of its own.
    pub merged: bool,
}

/// Looks at it and changes nothing.
pub fn standing(tree: &Tree, into: &Path) -> Result<MergeStanding, WorktreeError> {
    let shared = Shared::of(tree)?;
    let repo = Repo::find(into)?;
    let name = maybe(&repo.git, &["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    let merged = match (shared.tip(&head_ref(&tree.branch))?, repo.head()?) {
        (Some(tip), Some(head)) => tip != tree.base && is_ancestor(&repo.git, &tip, &head)?,
        (None, _) | (_, None) => false,
    };
    Ok(MergeStanding { into: name, merged })
}

/// Merges a child's branch into its parent's worktree or workspace.
pub fn pull(from: &Tree, to: &Path) -> Result<Merged, WorktreeError> {
    merge(from, to, &format!("Merge branch '{}'", from.branch))
}

pub(super) enum Unjoined {
    Conflict(Vec<String>),
    Error(WorktreeError),
}

impl From<WorktreeError> for Unjoined {
    fn from(error: WorktreeError) -> Self {
        Self::Error(error)
    }
}

/// The files of both sides together, as a tree.
pub(super) fn join(repo: &Repo, ours: &str, theirs: &str) -> Result<String, Unjoined> {
    let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
    let output = ask(&repo.git.with_time(WORK_MAX), &args, b"")?;
    let mut parts = records(&output.stdout).map(text);
    match output.status.code() {
        Some(0) => Ok(parts.next().unwrap_or_default()),
        Some(1) => Err(Unjoined::Conflict(parts.skip(1).collect())),
        _ => Err(failed(describe(&args), output.stderr).into()),
    }
}

/// Tracked files only: those git does not know are in the way only where the merge brings the same name.
fn check_clean(repo: &Repo) -> Result<(), WorktreeError> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=no",
        "--ignore-submodules=dirty",
    ];
    let list = read(&repo.git.with_time(WORK_MAX), &args, b"")?;
    let files: Vec<String> = records(&list).filter_map(|entry| entry.get(3..)).map(text).collect();
    if files.is_empty() {
        return Ok(());
    }
    Err(WorktreeError::DirtyWorkspace { folder: repo.top.clone(), files })
}

/// Brings the workspace to a commit that follows what is checked out.
fn follow(repo: &Repo, commit: &str) -> Result<(), WorktreeError> {
    let args = [
        "merge",
        "--ff-only",
        "--no-overwrite-ignore",
        "--no-autostash",
        "--no-verify-signatures",
        "--no-stat",
        "--quiet",
        commit,
    ];
    let output = ask(&repo.git.with_log().with_time(WORK_MAX), &args, b"")?;
    if output.status.success() {
        return Ok(());
    }
    let folder = repo.top.clone();
    if output.stderr.contains("would be overwritten") {
        let named = output.stderr.lines().filter_map(|line| line.strip_prefix('\t')).map(str::to_owned);
        return Err(WorktreeError::DirtyWorkspace { folder, files: named.collect() });
    }
    if output.stderr.contains("Not possible to fast-forward") {
        return Err(WorktreeError::Moved { folder });
    }
    Err(failed(describe(&args), output.stderr))
}
