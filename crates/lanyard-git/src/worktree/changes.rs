//! What a tree's branch and worktree have that its base has not.

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::call::{line, read};
use super::capture::files_of;
use super::shared::{Shared, head_ref};
use crate::snapshot::FileDiff;
use crate::snapshot::diff;
use crate::snapshot::git::records;

/// Commits that are named, newest first.
const COMMITS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeDiff {
    /// Newest first.
    pub commits: Vec<TreeCommit>,
    /// Those of the commits and of what is not committed together.
    pub files: Vec<FileDiff>,
    /// The worktree has changes that are not committed.
    pub uncommitted: bool,
    /// A list ends early.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeCommit {
    pub hash: String,
    pub subject: String,
}

/// A unified diff. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub text: String,
    pub truncated: bool,
}

/// The commits and files of a tree since its base.
pub fn changes(tree: &Tree) -> Result<TreeDiff, WorktreeError> {
    let ends = Ends::of(tree)?;
    let (files, more) = diff::files(&ends.shared.git, &COMMAND, &[&ends.base, &ends.files])?;
    let mut commits = ends.commits()?;
    let truncated = more || commits.len() > COMMITS_MAX;
    commits.truncate(COMMITS_MAX);
    Ok(TreeDiff { commits, files, uncommitted: ends.uncommitted, truncated })
}

/// The same as text.
pub fn patch(tree: &Tree) -> Result<Patch, WorktreeError> {
    let ends = Ends::of(tree)?;
    let (text, truncated) = diff::patch(&ends.shared.git, &COMMAND, &[&ends.base, &ends.files])?;
    Ok(Patch { text, truncated })
}

const COMMAND: [&str; 2] = ["diff-tree", "-r"];

/// What is compared with what.
struct Ends {
    shared: Shared,
    base: String,
    tip: String,
    /// The files as they are: of the worktree where it is there, else of the branch.
    files: String,
    uncommitted: bool,
}

impl Ends {
    fn of(tree: &Tree) -> Result<Self, WorktreeError> {
        let shared = Shared::of(tree)?;
        let tip = shared.tip(&head_ref(&tree.branch))?;
        let tip = tip.ok_or_else(|| WorktreeError::BranchGone { branch: tree.branch.clone() })?;
        let hex = !tree.base.is_empty() && tree.base.bytes().all(|byte| byte.is_ascii_hexdigit());
        let base = if hex { shared.tip(&tree.base)? } else { None };
        let base = base.ok_or_else(|| WorktreeError::UnknownBase { base: tree.base.clone() })?;
        let (files, uncommitted) = match shared.worktree(tree)? {
            Some(repo) => {
                let (files, head) = (files_of(&repo)?, repo.head()?);
                let head = head.as_deref().unwrap_or(&tip);
                let committed = line(&repo.git, &["rev-parse", &format!("{head}^{{tree}}")], b"")?;
                let uncommitted = files != committed;
                (files, uncommitted)
            }
            None => (tip.clone(), false),
        };
        Ok(Self { shared, base, tip, files, uncommitted })
    }

    fn commits(&self) -> Result<Vec<TreeCommit>, WorktreeError> {
        let range = format!("{}..{}", self.base, self.tip);
        let count = format!("--max-count={}", COMMITS_MAX + 1);
        let args = ["log", "-z", "--no-show-signature", "--no-color", "--format=%H %s", &count, &range, "--"];
        let list = read(&self.shared.git, &args, b"")?;
        let commits = records(&list).filter_map(|record| {
            let line = String::from_utf8_lossy(record);
            let (hash, subject) = line.split_once(' ')?;
            Some(TreeCommit { hash: hash.to_owned(), subject: subject.to_owned() })
        });
        Ok(commits.collect())
    }
}
