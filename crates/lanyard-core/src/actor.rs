//! Actors and causes: the author of a change, and the request or event behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::time::Timestamp;

/// The kind of hand behind a command or signal. Roles are bound to tokens on the server, never claimed by a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// A person, or a program acting with a person's token.
    Operator,
    /// Someone who may look and not touch.
    Observer,
    /// An agent, acting as its own session.
    Agent,
    /// Lanyard itself: timers, recovery, policy.
    System,
}

impl ActorKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Observer => "observer",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }
}

/// The author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    pub kind: ActorKind,
    /// The token's name, or the part of Lanyard that acted.
    pub name: String,
}

impl Actor {
    #[must_use]
    pub fn system(name: &str) -> Self {
        Self { kind: ActorKind::System, name: name.to_owned() }
    }

    #[must_use]
    pub fn operator(name: &str) -> Self {
        Self { kind: ActorKind::Operator, name: name.to_owned() }
    }
}

/// The request or event that led to this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A request; the text is its idempotency key, or an id the daemon gave it.
    Request(String),
    /// An observed signal, by its name.
    Signal(String),
    /// The agent's output, up to this byte of its run's output.
    Output { run: RunId, to: u64 },
    /// The agent's own history, from which a conversation was imported. `at` is the time the history gives.
    Imported {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
}
