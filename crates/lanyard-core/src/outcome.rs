//! The answer to a mutation. It is stored with the events of the mutation, so a repeated key gets the first outcome
//! again, also after a restart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CommentId, NoteId, SessionId, TurnId};
use crate::session::{Continuity, PlannedDelivery, StateName};

/// The receipt of an accepted command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The session that was changed or made.
    pub session: SessionId,
    /// The session's last sequence number once the command was carried out.
    pub seq: u64,
    /// Number of events that the command wrote into this session; zero when there was nothing to change.
    pub events: u32,
    /// The state the session was in then.
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentId>,
    /// The planned delivery of a note to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<PlannedDelivery>,
    /// The way in which another agent gets the conversation after a hand-over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<Continuity>,
    /// The stop level in force: 1 graceful, 2 immediate, 3 terminated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_level: Option<u8>,
    /// Warnings for the sender of an accepted command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
