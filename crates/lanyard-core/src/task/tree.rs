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

/// What was not committed and now is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Captured {
    pub commit: String,
    pub files: Vec<String>,
    pub files_changed: u32,
}
