//! Data that a journal reports about its sessions and itself: rows of a listing, damage, tombstones, sizes. The store
//! makes it and the API sends it; the types are here, so that a client needs no store.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::{
    Attention, DrivenBy, InterruptCause, Lifecycle, OperatorState, Pending, StateName, Status,
};
use crate::{Actor, AttachmentId, MemoryMode, SessionId, Timestamp};

/// A session in a listing. Activity is as fresh as the log; the rest as of its last structural event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    pub id: SessionId,
    pub title: Option<String>,
    pub agent: Option<String>,
    pub owner: String,
    pub source: String,
    /// The party that runs the agent; absent in older rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_by: Option<DrivenBy>,
    pub workspace: Option<String>,
    pub plan: Option<String>,
    pub parent: Option<SessionId>,
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<InterruptCause>,
    pub status: Status,
    pub lifecycle: Lifecycle,
    /// The operator's word for it.
    pub operator_state: OperatorState,
    /// The end of the last turn waits for an operator to see it.
    pub unread: bool,
    pub level: u32,
    pub memory_mode: MemoryMode,
    pub archived: bool,
    pub turns: u64,
    pub since: Timestamp,
    pub created_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub last_seq: u64,
    /// Counts of waiting items.
    pub pending: Pending,
    /// Why a person should look, the most pressing first.
    pub attention: Vec<Attention>,
}

/// Part of a log that could not be read as it was written. Reported, never skipped in silence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Damage {
    pub session: Option<SessionId>,
    /// The first and last sequence number concerned.
    pub first_seq: u64,
    pub last_seq: u64,
    pub what: String,
}

/// The findings of `check`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub schema: u32,
    pub sessions: u64,
    pub events: u64,
    pub bytes: u64,
    /// The findings of SQLite's own integrity check, when it is not "ok".
    pub structure: Vec<String>,
    pub damage: Vec<Damage>,
    /// Attachments that logs refer to, and the event that is the first to.
    #[serde(skip)]
    pub attached: BTreeMap<(SessionId, AttachmentId), u64>,
}

/// The record that remains of a deleted session: its id, and by whom, when and why it was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tombstone {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    pub deleted_at: Timestamp,
    pub deleted_by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of events in its log.
    pub events: u64,
    pub stage: PurgeStage,
}

/// Progress of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PurgeStage {
    /// Rows are being removed.
    Purging,
    /// No row is left; free space and the write-ahead log may still hold old bytes.
    Purged,
    /// Free space and the write-ahead log were overwritten as well.
    Wiped,
}

/// Size of the journal on disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JournalSize {
    /// The database file.
    pub bytes: u64,
    /// The write-ahead log beside it.
    pub wal_bytes: u64,
    /// Bytes of the database file that hold nothing.
    pub free_bytes: u64,
}

impl JournalSize {
    /// Both files together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.saturating_add(self.wal_bytes)
    }
}
