//! A gate: a question that waits durably for an answer. The first answer wins; the same one again changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{GateId, RunId};
use crate::time::Timestamp;

/// Gates that may be open in one session; an agent that asks more often is answered no.
pub(super) const OPEN_MAX: usize = 64;
/// Settled gates of a kind the record keeps, to answer a repeat alike; the log keeps all.
pub(super) const SETTLED_MAX: usize = 32;

/// The subject of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// An agent asks before it does something.
    Permission,
    /// Lanyard asks a person what to do about the session. It outlives the turn and the agent's process.
    Escalation,
}

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateOption {
    pub id: String,
    pub name: String,
    pub kind: OptionKind,
}

/// The question at a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    pub kind: GateKind,
    pub title: String,
    /// The tool call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The action that the agent wants to take, in its own form.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
    pub options: Vec<GateOption>,
    /// The agent's own handle of the question, by which it is answered.
    pub request: String,
}

/// A question that waits durably for an answer, or the answer it got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    pub id: GateId,
    pub run: RunId,
    #[serde(flatten)]
    pub question: Question,
    pub opened_at: Timestamp,
    pub status: GateStatus,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum GateStatus {
    Open,
    Answered {
        option: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        by: Actor,
        at: Timestamp,
    },
    /// The gate was withdrawn: no answer is needed any more.
    Withdrawn {
        why: String,
        at: Timestamp,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum GateEvent {
    #[serde(rename = "gate.opened")]
    Opened {
        gate: GateId,
        run: RunId,
        #[serde(flatten)]
        question: Box<Question>,
    },
    #[serde(rename = "gate.answered")]
    Answered {
        gate: GateId,
        option: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    #[serde(rename = "gate.withdrawn")]
    Withdrawn { gate: GateId, why: String },
}

impl Question {
    /// The option somebody means: by its id, or by the words `allow`, `always`, `deny`, `never`.
    #[must_use]
    pub fn choose(&self, word: &str) -> Option<&GateOption> {
        let of = |kinds: &[OptionKind]| {
            kinds.iter().find_map(|kind| self.options.iter().find(|option| option.kind == *kind))
        };
        self.options.iter().find(|option| option.id == word).or_else(|| match word {
            "allow" => of(&[OptionKind::AllowOnce, OptionKind::AllowAlways]),
            "always" => of(&[OptionKind::AllowAlways]),
            "deny" => of(&[OptionKind::RejectOnce, OptionKind::RejectAlways]),
            "never" => of(&[OptionKind::RejectAlways]),
            _ => None,
        })
    }
}
