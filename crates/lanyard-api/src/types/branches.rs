//! The branch of a session that has a worktree of its own: looked at, merged, discarded; and the session's title.

use lanyard_core::SessionId;
use lanyard_core::tree::Captured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::families::{DiffCommit, DiffFile};

/// The branch of a session's worktree, and what would become of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BranchView {
    pub session: SessionId,
    pub branch: String,
    /// The commit the branch began at.
    pub base: String,
    /// The folder of the worktree.
    pub path: String,
    /// The repository it was made from.
    pub repository: String,
    /// The branch that is checked out in the repository: the target of a merge. Absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Newest first.
    pub commits: Vec<DiffCommit>,
    /// Changes since the base, uncommitted ones included.
    pub files: Vec<DiffFile>,
    /// Files whose changes are in no commit.
    pub uncommitted: Vec<String>,
    /// The target has all commits of the branch.
    pub merged: bool,
    /// The worktree and the branch were removed; the lists are empty then.
    pub discarded: bool,
    /// A list ends early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MergeSession {
    /// The folder to merge into; the repository of the worktree when absent.
    pub into: Option<String>,
    /// Commit uncommitted work to the branch first. Without it a worktree with such work is refused.
    pub commit: bool,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MergedSession {
    pub session: SessionId,
    pub branch: String,
    pub commit: String,
    /// The branch it was merged into.
    pub into: String,
    /// There was nothing to merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
    /// Uncommitted work that was committed to the branch first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscardSession {
    /// Discard uncommitted work too. Without it a worktree with such work is refused.
    pub force: bool,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscardedSession {
    pub session: SessionId,
    pub branch: String,
    /// The git ref that still has what was discarded.
    pub reference: String,
}

/// What people may change of a session itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSession {
    pub title: String,
}
