//! Frames of the stream of records.

use lanyard_core::{FollowedKind, GateId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames of the stream of records. An event of a task or a flow is a frame as well: the entry of its log with `position`,
/// `kind` and `record` before it, and the event's own `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RecordFrame {
    /// The first frame. Changes after position `after` follow; `last` is the last one there is.
    Connected {
        after: u64,
        last: u64,
        heartbeat_ms: u64,
    },
    /// Everything that matches up to this position has been sent; from here on changes follow as they happen.
    Ready {
        position: u64,
    },
    /// A record without a log, as it is now.
    State {
        position: u64,
        kind: FollowedKind,
        record: String,
        state: serde_json::Value,
    },
    /// The record was removed.
    Removed {
        position: u64,
        kind: FollowedKind,
        record: String,
    },
    /// The change is damaged on disk and cannot be shown; `lanyard doctor` reports it.
    Damaged {
        position: u64,
        kind: FollowedKind,
        record: String,
        seq: u64,
    },
    /// The gates at which the agents of the followed tasks and flows wait, after they changed. It has no position. A stream
    /// without `record` has none of these.
    Approvals {
        gates: Vec<GateId>,
    },
    /// A frame of the client was not understood; nothing was done.
    Error {
        code: String,
        what: String,
        advice: String,
    },
    Heartbeat,
    /// The last frame: `closing`, `token_revoked` or `storage_unavailable`.
    Goodbye {
        why: String,
    },
}
