//! What a mutation answers. It is stored with the events it made, so a repeated key gets the first outcome again,
//! also after a restart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{NoteId, SessionId, TurnId};
use crate::session::{Continuity, PlannedDelivery, StateName};

/// The receipt of an accepted command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The session that was changed or made.
    pub session: SessionId,
    /// The session's last sequence number once the command was carried out.
    pub seq: u64,
    /// How many events the command wrote into this session; zero when there was nothing to change.
    pub events: u32,
    /// The state the session was in then.
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteId>,
    /// How the words of a note will reach the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<PlannedDelivery>,
    /// How another agent gets the conversation, where a session was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<Continuity>,
    /// The stop level in force: 1 graceful, 2 immediate, 3 terminated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_level: Option<u8>,
    /// What the sender should know although the command was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
