//! Checkpoints of a workspace, what differs, and going back.

use lanyard_core::session::{ReviewBase, SnapshotReason};
use lanyard_core::{Outcome, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    /// Oldest first.
    pub snapshots: Vec<SnapshotEntry>,
}

/// A place the workspace can be taken back to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotEntry {
    pub name: String,
    pub commit: String,
    /// When and why it was taken, as far as the log tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The journal position whose workspace it holds, as far as the log tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SnapshotReason>,
    /// The commit HEAD named then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Files that differed from `head`.
    pub files_changed: u32,
    /// What could not be kept, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceDiff {
    /// The name of the older checkpoint, or of the base branch.
    pub from: String,
    /// The name of the newer one; null for the workspace as it is.
    pub to: Option<String>,
    pub base: ReviewBase,
    pub files: Vec<ChangedFile>,
    /// A unified diff. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The text or the list ends early.
    pub truncated: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    pub path: String,
    /// The name before, of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    pub change: FileChange,
    /// Lines; nothing in binary files.
    pub added: u32,
    pub removed: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Name of the content after the change; only zeros for a deleted file.
    pub hash: String,
    /// An operator marked this content as viewed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub viewed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    Added,
    Modified,
    Deleted,
    Renamed,
    TypeChanged,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRollback {
    /// The name or the commit of one of the session's checkpoints.
    pub to: String,
}

/// What a rollback did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RolledBack {
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Nothing when the request was a repeat: what it did then is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// The checkpoint the workspace is back at.
    pub to: String,
    /// The checkpoint of how it was before, to undo this.
    pub before: String,
    pub changed: u32,
    /// Files that were missing.
    pub added: u32,
    /// Files that were not there then.
    pub removed: u32,
    /// What is not as it was, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
