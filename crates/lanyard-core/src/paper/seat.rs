//! The agent of a session: its own description at its first call, and its hand-off to another agent.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::paper::PaperRefusal;
use crate::paper::plan::{Handover, push};
use crate::time::Timestamp;

/// Hand-offs of one session; the oldest go first.
pub const HANDOVERS_MAX: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSeat {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The plan it joined, for a session that was made without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The session id its host gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension_session_id: Option<String>,
    /// Time of the agent's latest `init` call; `taken` counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Timestamp>,
    #[serde(default)]
    pub taken: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Handover>,
}

impl AgentSeat {
    #[must_use]
    pub fn of(session: SessionId) -> Self {
        Self {
            session,
            agent_type: None,
            plan: None,
            extension_session_id: None,
            taken_at: None,
            taken: 0,
            lineage: Vec::new(),
        }
    }

    pub fn hand_over(&mut self, handover: Handover) -> Result<(), PaperRefusal> {
        handover.check()?;
        push(&mut self.lineage, handover, HANDOVERS_MAX);
        Ok(())
    }
}
