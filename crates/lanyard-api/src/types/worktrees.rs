//! What a repository asks for in new worktrees, and whether an operator allowed it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The setup file of a repository, `.lanyard/worktree.toml` of its main worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeSetup {
    /// The top of the repository.
    pub repository: String,
    /// The hash of the file's content; null when there is no file, or when it asks for nothing.
    pub hash: Option<String>,
    /// Shell commands that are run in each new worktree.
    pub setup: Vec<String>,
    /// Ignored files that are copied.
    pub copy: Vec<String>,
    /// Ignored files and folders that are linked.
    pub link: Vec<String>,
    /// An operator allowed this content.
    pub trusted: bool,
}

/// Allows the content of a setup file, or takes that back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustSetup {
    /// A folder in the repository.
    pub workspace: String,
    /// The hash of the content that was read. Refused when the file has changed since.
    pub hash: String,
    /// Takes back what was allowed.
    #[serde(default)]
    pub revoke: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
