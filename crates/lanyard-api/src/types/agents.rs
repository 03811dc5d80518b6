//! Agents, their questions, and going on with them.

use lanyard_core::session::{AgentInfo, AgentLack, AgentOffer, Capabilities, Gate, ResumeWay};
use lanyard_core::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FlowGateEntry;
use crate::agents::settings::DriverKind;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    pub agents: Vec<AgentEntry>,
    /// The agent used where none is named; null when one has to be named.
    pub default: Option<String>,
}

/// An agent that is configured, or installed and known.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    pub name: String,
    /// Sessions can be run with it. Otherwise it is only installed, and this is how Lanyard would run it.
    pub configured: bool,
    pub driver: DriverKind,
    pub command: Vec<String>,
    /// Where its program is; null when it is not there.
    pub found: Option<String>,
    /// What it says to `--version`, when that was asked for and it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What came of its last check since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<AgentCheck>,
}

/// One agent, with what it offers to choose.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentDetail {
    #[serde(flatten)]
    pub agent: AgentEntry,
    /// Its models, modes, effort levels and commands, as it last reported them; absent until it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<AgentOffer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_at: Option<Timestamp>,
    /// What it cannot do, as far as it was checked or has run, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<AgentLack>,
}

/// What came of starting an agent and greeting it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentCheck {
    pub name: String,
    /// Whether it can be worked with.
    pub works: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// What it cannot do, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<AgentLack>,
    /// Settings that work and have consequences: each sentence says what happens and what to set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<AgentProblem>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AgentProblem {
    /// Stable: clients branch on this.
    pub code: String,
    /// What happened.
    pub what: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GateList {
    pub gates: Vec<GateEntry>,
    /// What flows ask.
    #[serde(default)]
    pub flows: Vec<FlowGateEntry>,
    /// More sessions are at work than one answer can look at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A gate and whose it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GateEntry {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(flatten)]
    pub gate: Gate,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GateAnswer {
    /// The id of one of the gate's options, or `allow`, `always`, `deny`, `never`.
    pub option: String,
    /// Words for the agent, where it takes them.
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewResume {
    /// What may be tried, in this order, when the process is gone; what the agent's settings say when left out.
    pub ways: Vec<ResumeWay>,
    /// Although the agent's own program runs in the session's folder and may have the conversation open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}
