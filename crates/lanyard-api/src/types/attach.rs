//! What goes over an attached stream, in both directions. Events of the log go as they are stored; everything here has
//! a `type` and no `seq`.

use std::collections::BTreeMap;

use lanyard_core::journal::Row;
use lanyard_core::session::{ActiveTurn, Lifecycle, StateName, Status};
use lanyard_core::{Actor, ConnectionId, SessionId, Timestamp, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::{Glance, WriterEntry};

/// Frames that are no events of the log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamFrame {
    /// The first frame.
    Connected(Box<Connected>),
    /// Text that is being written. It may be lost; the event that holds the text replaces it.
    Preview {
        kind: PreviewKind,
        text: String,
        /// As in the message that will hold the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        turn: Option<TurnId>,
    },
    /// Who is attached, after it changed.
    Presence(PresenceList),
    /// The reader fell behind. It gets everything after `after` all the same; the log's end is `head`.
    Resync {
        after: u64,
        head: u64,
    },
    /// The answer to a request of this connection.
    Reply {
        #[serde(rename = "ref")]
        reference: Option<String>,
        /// As HTTP would have answered.
        status: u16,
        body: serde_json::Value,
        /// The key had been used before; this is what it was answered then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    /// A frame of the client was not understood; nothing was done.
    Error {
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        code: String,
        what: String,
        advice: String,
    },
    Heartbeat,
    /// The last frame: `closing` (the daemon ends), `token_revoked` or `storage_unavailable`.
    Goodbye {
        why: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreviewKind {
    Message,
    Thought,
}

/// Where a stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachMode {
    /// From the end of the log on.
    Tail,
    /// After a position.
    After,
    /// With the last few events first.
    Last,
    /// From the beginning.
    Full,
}

impl AttachMode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::After => "after",
            Self::Last => "last",
            Self::Full => "full",
        }
    }
}

/// What a client knows once it is attached. The session's id and the rest are there twice, nested and not, since
/// clients look for either.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Connected {
    pub session_id: SessionId,
    pub session: ConnectedSession,
    /// Give it back as `connection` to come back as the same connection.
    pub connection: ConnectionId,
    pub mode: AttachMode,
    /// The end of the log as everything here is.
    pub head_seq: u64,
    /// The first event that follows is the one after this.
    pub after: u64,
    pub state: StateName,
    pub active_turn: Option<ActiveTurn>,
    pub writer: Option<WriterEntry>,
    /// One the client may use for its next turn.
    pub client_turn_id: String,
    /// How often a quiet stream carries a heartbeat.
    pub heartbeat_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConnectedSession {
    pub id: SessionId,
    pub state: StateName,
    pub lifecycle: Lifecycle,
    pub status: Status,
    pub head_seq: u64,
    pub active_turn: Option<ActiveTurn>,
    pub writer: Option<WriterEntry>,
}

/// Who is attached to a session now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PresenceList {
    /// Those that write, then those that came first; at most 64.
    pub connections: Vec<PresentConnection>,
    /// How many there are.
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PresentConnection {
    pub connection: ConnectionId,
    pub actor: Actor,
    /// What it is: `cli`, `top`, `acp`, `web` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    pub mode: PresenceMode,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PresenceMode {
    /// It means to write, and its role lets it.
    Writing,
    Reading,
}

/// What a client sends over a WebSocket: a row of the route table to carry out on this session, or `{"type":"ping"}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StreamAsk {
    /// `ping`; not with `do`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Given back with the answer.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The operation's name, as in the OpenAPI document.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The other parts of its path, and its query.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// The `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The `Lanyard-Writer` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
}

/// Runtime fields of a session, which change while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    pub lifecycle_state: Lifecycle,
    pub last_event_seq: u64,
    /// Clients attached now.
    pub active_connections: u64,
    /// 1 while a turn runs.
    pub active_runs: u64,
}

impl Runtime {
    #[must_use]
    pub fn new(state: StateName, last_event_seq: u64, active_connections: u64) -> Self {
        let active_runs = u64::from(state == StateName::Executing);
        Self { lifecycle_state: state.lifecycle(), last_event_seq, active_connections, active_runs }
    }
}

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRow {
    #[serde(flatten)]
    pub row: Row,
    #[serde(flatten)]
    pub runtime: Runtime,
    /// The branch of its own worktree; only in answers to `GET /sessions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its activity; only in the directory's stream, for the newest sessions and those that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glance: Option<Box<Glance>>,
}

/// Frames of the directory's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DirectoryFrame {
    /// The first frame. Up to `limit` rows follow, the newest first.
    Connected {
        limit: usize,
        heartbeat_ms: u64,
    },
    /// A session that matches, as it is now.
    Row {
        row: Box<SessionRow>,
    },
    /// A session that was shown does not match any more, or was deleted.
    Gone {
        session: SessionId,
    },
    /// What matched at the beginning has been sent; from here on changes follow.
    Ready {
        rows: usize,
    },
    /// A frame of the client was not understood; nothing was done.
    Error {
        code: String,
        what: String,
        advice: String,
    },
    Heartbeat,
    /// The last frame: `closing`, `token_revoked`, `storage_unavailable`, or `behind` (more changed than is remembered).
    Goodbye {
        why: String,
    },
}
