//! Events of a flow. They form its log, and the record is their sum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::flow::gate::{FlowGate, GateAnswered};
use crate::flow::record::{CheckResult, FlowKind, FlowRole, FlowState, Phase, PhaseState, Preserved, Stage};
use crate::flow::settings::FlowSettings;
use crate::flow::verdict::{AuthorStatus, Verdict};
use crate::id::{FlowId, GateId, SessionId, TurnId};
use crate::session::is_default;
use crate::time::Timestamp;
use crate::tree::{Captured, Tree};

/// An entry of a flow's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowEnvelope {
    pub flow: FlowId,
    pub seq: u64,
    pub at: Timestamp,
    pub actor: Actor,
    #[serde(flatten)]
    pub event: FlowEvent,
}

/// The data with which a flow is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCreated {
    pub kind: FlowKind,
    pub title: String,
    pub plan: String,
    pub plan_hash: String,
    pub workspace: String,
    pub settings: FlowSettings,
    pub phases: Vec<Phase>,
    /// The key and the content it was asked for with, so that a repeat is the same flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum FlowEvent {
    #[serde(rename = "flow.created")]
    Created(Box<FlowCreated>),
    /// A daemon drives it from now on. `from` is who did before, and did not let go.
    #[serde(rename = "flow.leased")]
    Leased {
        holder: String,
        epoch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    #[serde(rename = "flow.tree_made")]
    TreeMade { tree: Tree },
    /// An agent is invoked: all parameters are decided before it starts. Guidance goes with this invocation and no
    /// other.
    #[serde(rename = "flow.invoked")]
    Invoked {
        step: u32,
        role: FlowRole,
        session: SessionId,
        turn: TurnId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork_of: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
        /// Usage of the session before this invocation.
        #[serde(default)]
        before: Spent,
    },
    /// The same session is asked how it went.
    #[serde(rename = "flow.asked")]
    Asked {
        stage: Stage,
        turn: TurnId,
        /// The fault of the first answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
    #[serde(rename = "flow.concluded")]
    Concluded { conclusion: Conclusion, spent: Spent },
    /// A command is about to be run.
    #[serde(rename = "flow.check_begun")]
    CheckBegun { place: usize, run: String },
    #[serde(rename = "flow.check_ended")]
    CheckEnded { result: CheckResult },
    #[serde(rename = "flow.moved")]
    Moved {
        to: FlowState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An interrupted turn was retried automatically.
    #[serde(rename = "flow.retried")]
    Retried {
        session: Option<SessionId>,
        reason: String,
        /// Guidance that the retrying session has not received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
    },
    #[serde(rename = "flow.phase_ended")]
    PhaseEnded { phase: usize, state: PhaseState },
    #[serde(rename = "flow.gate_opened")]
    GateOpened { gate: Box<FlowGate> },
    #[serde(rename = "flow.gate_answered")]
    GateAnswered {
        gate: GateId,
        #[serde(flatten)]
        answer: GateAnswered,
    },
    /// The gate's session can no longer be continued; the other answers stay.
    #[serde(rename = "flow.continuation_withdrawn")]
    ContinuationWithdrawn { gate: GateId, why: String },
    /// A session that the flow no longer waits for was left running.
    #[serde(rename = "flow.session_preserved")]
    SessionPreserved { preserved: Preserved },
    /// A preserved session ended or was ended.
    #[serde(rename = "flow.session_released")]
    SessionReleased { session: SessionId, why: String },
    #[serde(rename = "flow.ended")]
    Ended {
        state: FlowState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The folder was cleaned up: uncommitted work is committed, and the worktree is removed.
    #[serde(rename = "flow.settled")]
    Settled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        captured: Option<Captured>,
        tree_removed: bool,
        /// Why what the worktree holds could not be kept elsewhere; it stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// The flow resumed after an abort, at the same state.
    #[serde(rename = "flow.resumed")]
    Resumed {},
    /// Hooks received the events up to this one.
    #[serde(rename = "flow.hooked")]
    Hooked {
        to: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<String>,
    },
}

/// The outcome of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Conclusion {
    Author(AuthorStatus),
    Verdict(Verdict),
    Failed {
        kind: FailKind,
        reason: String,
    },
    /// The turn was cancelled; this is no failure and opens no gate.
    Cancelled {
        reason: String,
    },
}

/// Why an invocation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    /// The turn exceeded its time limit.
    Timeout,
    /// The process or model was unreachable or lost: a retry may succeed.
    Transient,
    /// The session is busy with other work that did not end.
    Busy,
    /// The session is not there any more, or its agent cannot take it up again.
    Gone,
    /// The context or budget is used up.
    Exhausted,
    /// The answer is unreadable, also after a repair.
    Unreadable,
    /// The agent ended its turn as failed, or refused it.
    Failed,
    /// The agent could not start: no such agent, no such folder.
    NotStarted,
}

impl FailKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Transient => "transient",
            Self::Busy => "busy",
            Self::Gone => "gone",
            Self::Exhausted => "exhausted",
            Self::Unreadable => "unreadable",
            Self::Failed => "failed",
            Self::NotStarted => "not_started",
        }
    }
}

/// Usage of an invocation, as far as its agent reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spent {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Millionths of a US dollar.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_micros: u64,
    pub ms: u64,
}

impl FlowEvent {
    /// The name of its type, as hooks and clients know it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Created(_) => "flow.created",
            Self::Leased { .. } => "flow.leased",
            Self::TreeMade { .. } => "flow.tree_made",
            Self::Invoked { .. } => "flow.invoked",
            Self::Asked { .. } => "flow.asked",
            Self::Concluded { .. } => "flow.concluded",
            Self::CheckBegun { .. } => "flow.check_begun",
            Self::CheckEnded { .. } => "flow.check_ended",
            Self::Moved { .. } => "flow.moved",
            Self::Retried { .. } => "flow.retried",
            Self::PhaseEnded { .. } => "flow.phase_ended",
            Self::GateOpened { .. } => "flow.gate_opened",
            Self::GateAnswered { .. } => "flow.gate_answered",
            Self::ContinuationWithdrawn { .. } => "flow.continuation_withdrawn",
            Self::SessionPreserved { .. } => "flow.session_preserved",
            Self::SessionReleased { .. } => "flow.session_released",
            Self::Ended { .. } => "flow.ended",
            Self::Settled { .. } => "flow.settled",
            Self::Resumed {} => "flow.resumed",
            Self::Hooked { .. } => "flow.hooked",
        }
    }

    /// All names, for filters.
    pub const NAMES: [&'static str; 20] = [
        "flow.created",
        "flow.leased",
        "flow.tree_made",
        "flow.invoked",
        "flow.asked",
        "flow.concluded",
        "flow.check_begun",
        "flow.check_ended",
        "flow.moved",
        "flow.retried",
        "flow.phase_ended",
        "flow.gate_opened",
        "flow.gate_answered",
        "flow.continuation_withdrawn",
        "flow.session_preserved",
        "flow.session_released",
        "flow.ended",
        "flow.settled",
        "flow.resumed",
        "flow.hooked",
    ];

    /// Whether the event may follow the end: events about the end, the folder, hooks and preserved sessions may.
    pub(super) const fn may_follow_the_end(&self) -> bool {
        matches!(
            self,
            Self::Settled { .. }
                | Self::Resumed {}
                | Self::Hooked { .. }
                | Self::SessionReleased { .. }
                | Self::Leased { .. }
        )
    }
}
