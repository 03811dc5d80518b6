//! A task's own git worktree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    pub path: String,
    pub branch: String,
    /// The commit the branch began at.
    pub base: String,
    /// The top of the repository it was made from.
    pub repository: String,
    /// The folder was taken away; the branch stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// Work of prerequisites that does not fit together. The task cannot begin before somebody has resolved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaseConflict {
    /// The branch that could not be merged.
    pub branch: String,
    /// The branches that it was to be merged with.
    pub with: Vec<String>,
    pub files: Vec<String>,
}

/// Work that was uncommitted and that Lanyard committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    pub commit: String,
    pub files: Vec<String>,
    pub files_changed: u32,
}
