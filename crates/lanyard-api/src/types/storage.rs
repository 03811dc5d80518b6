//! Purges, garbage collection and backups.

use lanyard_core::SessionId;
use lanyard_core::journal::{Damage, JournalSize, PurgeStage, Tombstone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the purge of a deleted session has come.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PurgeView {
    pub session: SessionId,
    /// Nothing of the session is left but its tombstone.
    pub complete: bool,
    /// Absent until the purge begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<PurgeStage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tombstone: Option<Tombstone>,
}

/// What to remove that belongs to nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewGc {
    /// Only count.
    pub dry_run: bool,
    /// Rewrite the journal without free space. Nothing is written meanwhile.
    pub compact: bool,
    /// Delete sessions that have been completed, failed or stopped for this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcCount {
    pub count: u64,
    pub bytes: u64,
}

impl GcCount {
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What was removed, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    pub dry_run: bool,
    /// Sessions that ended long enough ago; 0 when none were asked for.
    #[serde(default)]
    pub ended: u64,
    /// Folders of runs that no session knows.
    pub run_folders: GcCount,
    /// Checkpoints of sessions that do not exist.
    pub snapshot_refs: GcCount,
    /// Introductions of MCP clients to sessions that are over.
    pub mcp_files: GcCount,
    /// Attachments that no session refers to and that were uploaded long enough ago.
    #[serde(default)]
    pub attachments: GcCount,
    /// Kept outcomes of old requests; always 0 in a dry run.
    pub outcomes: u64,
    pub journal_before: JournalSize,
    pub journal_after: JournalSize,
    /// Deleted sessions of which a tombstone is left, and those whose purge is not complete.
    pub tombstones: u64,
    pub purging: u64,
    /// What could not be removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBackup {
    /// An absolute path on the daemon's machine.
    pub path: String,
    /// Replace a file that exists.
    #[serde(default)]
    pub force: bool,
}

/// A backup that was written and checked by reading it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BackupReceipt {
    pub path: String,
    pub bytes: u64,
    pub sessions: u64,
    pub events: u64,
    /// Attachments in the copy.
    #[serde(default)]
    pub attachments: u64,
    pub schema: u32,
    /// Damage in the journal that is in the copy as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub structure: Vec<String>,
}

/// What the journal takes on disk, and what was found when it was opened.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct JournalStatus {
    #[serde(flatten)]
    pub size: JournalSize,
    /// Bytes beyond which people are told; 0 for never.
    pub alarm_bytes: u64,
    /// Bytes of all attachments, and the most they may have.
    #[serde(default)]
    pub attachment_bytes: u64,
    #[serde(default)]
    pub attachment_bytes_max: u64,
    /// Deleted sessions of which a tombstone is left, and those whose purge is not complete.
    pub tombstones: u64,
    pub purging: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}
