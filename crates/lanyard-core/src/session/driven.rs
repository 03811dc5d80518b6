//! The party that runs a session's agent: a fact of the record, set when the session is made and changed by events
//! alone. An agent's name does not determine it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::record::{EXTERNAL, Session};
use crate::session::refusal::Refusal;
use crate::session::state::State;

/// The party that runs a session's agent and gives it turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DrivenBy {
    /// Lanyard starts the agent and hands it its turns.
    Lanyard,
    /// A subagent inside the run of its parent's agent.
    Parent,
    /// The agent runs under a host of its own: a terminal, an editor, another program. Lanyard sees its tool calls.
    Host,
    /// No agent runs in it: a client of the API carries out its turns and reports on them.
    Nobody,
}

impl DrivenBy {
    pub const ALL: [Self; 4] = [Self::Lanyard, Self::Parent, Self::Host, Self::Nobody];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lanyard => "lanyard",
            Self::Parent => "parent",
            Self::Host => "host",
            Self::Nobody => "nobody",
        }
    }

    /// Whether the agent's process is one of Lanyard's runs.
    #[must_use]
    pub const fn is_run_here(self) -> bool {
        match self {
            Self::Lanyard | Self::Parent => true,
            Self::Host | Self::Nobody => false,
        }
    }

    /// The fact at a session's birth, where nothing more is known than what it was made with.
    pub(super) fn at_birth(source: &str, agent: Option<&str>, observed: bool) -> Self {
        match agent {
            _ if observed => Self::Parent,
            _ if source == EXTERNAL => Self::Host,
            Some(_) => Self::Lanyard,
            None => Self::Nobody,
        }
    }
}

impl Session {
    /// The party that runs the session's agent. Records without this field are read by their other fields.
    #[must_use]
    pub fn driver(&self) -> DrivenBy {
        let run = self.run.as_ref();
        match self.driven_by {
            Some(by) => by,
            None if run.is_some_and(|run| run.mirrored) => DrivenBy::Parent,
            None if run.is_some() => DrivenBy::Lanyard,
            None => DrivenBy::at_birth(&self.source, self.hands.agent.as_deref(), false),
        }
    }

    /// Whether an operator's resume would be accepted: the session is at rest, or was stopped and its conversation can
    /// be continued.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        let open = match self.state {
            State::Stopped => takes_over(self, true).is_ok(),
            State::Completed | State::Failed => false,
            State::Beginning
            | State::Custom
            | State::Executing
            | State::BetweenTurn
            | State::Compacted
            | State::Interrupted { .. }
            | State::Idle
            | State::Stale => self.stop.is_none(),
        };
        open && !self.deleted && !self.archived && self.turn.is_none()
    }
}

/// Whether Lanyard takes the session over from its agent's own host: only where that was asked for, and where the
/// agent's own id of the conversation is known. `Ok(false)` for a session that has no such host.
pub(super) fn takes_over(session: &Session, asked: bool) -> Result<bool, Refusal> {
    let native = session.native.is_some();
    match session.driver() {
        DrivenBy::Host if asked && native => Ok(true),
        DrivenBy::Host => Err(Refusal::HostRun { native }),
        DrivenBy::Lanyard | DrivenBy::Parent | DrivenBy::Nobody => Ok(false),
    }
}
