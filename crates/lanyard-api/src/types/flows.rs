//! The words of flows and of their gates.

use lanyard_core::FlowId;
use lanyard_core::flow::report::FlowStory;
use lanyard_core::flow::{Asking, Choice, Flow, FlowEnvelope, FlowGate, FlowKind, FlowState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GateEntry;

/// A flow to be. What is left out is as the config has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFlowBody {
    pub kind: FlowKind,
    /// The plan's file, by its whole path.
    pub plan: String,
    /// The folder its agents work in; the plan's repository, else its folder, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// An agent of the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The phase to begin with, by its number or title; those before it are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_gate: Option<Asking>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_gate: Option<Asking>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<bool>,
    /// No for a flow without quality commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<bool>,
}

/// A flow, and how long it has been at it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FlowView {
    #[serde(flatten)]
    pub flow: Flow,
    /// From its beginning to now, or to its end.
    pub elapsed_ms: u64,
    /// What its agents wait to be allowed, as `GET /gates` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<GateEntry>,
}

/// The merge of a flow's branch.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MergedFlow {
    pub flow: FlowId,
    pub commit: String,
    /// The branch it was merged into.
    pub into: String,
    /// There was nothing to merge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FlowList {
    /// Newest first.
    pub flows: Vec<FlowView>,
    /// There are older ones.
    pub more: bool,
}

/// A piece of a flow's log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FlowEventPage {
    pub events: Vec<FlowEnvelope>,
    /// The number of its last event.
    pub head: u64,
    pub flow: FlowView,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowReason {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An answer to a flow's gate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowAnswer {
    pub choice: Choice,
    /// Words for the agent, with `continue_session` and `continue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
}

/// A flow's gate that waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FlowGateEntry {
    pub flow: FlowId,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    pub state: FlowState,
    pub gate: FlowGate,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    pub report: FlowStory,
    pub markdown: String,
}
