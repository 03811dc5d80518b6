//! Events of a flow. They form its log, and the record is their sum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::flow::gate::{FlowGate, GateAnswered};
use crate::flow::record::{CheckResult, FlowKind, FlowState, Phase, PhaseState, Preserved, Role, Stage};
use crate::flow::settings::FlowSettings;
use crate::flow::verdict::{AuthorStatus, Verdict};
use crate::id::{FlowId, GateId, SessionId, TurnId};
use crate::session::is_default;
use crate::task::tree::{Captured, Tree};
use crate::time::Timestamp;

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
    /// An agent is to work: everything is decided before anything is begun. What a person said goes with it, and with no
    /// other.
    #[serde(rename = "flow.invoked")]
    Invoked {
        step: u32,
        role: Role,
        session: SessionId,
        turn: TurnId,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        continues: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork_of: Option<SessionId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
        /// What its session had used by then.
        #[serde(default)]
        before: Spent,
    },
    /// The same session is asked how it went.
    #[serde(rename = "flow.asked")]
    Asked {
        stage: Stage,
        turn: TurnId,
        /// What was wrong with its first answer.
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
    /// A turn that was lost is gone on with by itself.
    #[serde(rename = "flow.retried")]
    Retried {
        session: Option<SessionId>,
        reason: String,
        /// What a person said, where whoever goes on has not heard it.
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
    /// The session of the gate can no longer be gone on with; the other answers stay.
    #[serde(rename = "flow.continuation_withdrawn")]
    ContinuationWithdrawn { gate: GateId, why: String },
    /// Nobody waits for this session any more, and it goes on.
    #[serde(rename = "flow.session_preserved")]
    SessionPreserved { preserved: Preserved },
    /// It was ended, or came to its end.
    #[serde(rename = "flow.session_released")]
    SessionReleased { session: SessionId, why: String },
    #[serde(rename = "flow.ended")]
    Ended {
        state: FlowState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its folder is put in order: what was not committed is, and the worktree is gone.
    #[serde(rename = "flow.settled")]
    Settled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        captured: Option<Captured>,
        tree_removed: bool,
        /// Why what the worktree holds could not be kept elsewhere; it stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// It goes on after an abort, where it was.
    #[serde(rename = "flow.resumed")]
    Resumed {},
    /// A hook was told of the events up to this one.
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
    /// Somebody ended it; that is no failure and nobody is asked.
    Cancelled {
        reason: String,
    },
}

/// Why an invocation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailKind {
    /// It took too long.
    Timeout,
    /// Its process or its model could not be reached, or was lost: another try may do.
    Transient,
    /// It works at something else and does not let go.
    Busy,
    /// The session is not there any more, or its agent cannot take it up again.
    Gone,
    /// Its context or budget is used up.
    Exhausted,
    /// What it answered cannot be read, also after a second try.
    Unreadable,
    /// The agent ended its turn as failed, or refused it.
    Failed,
    /// It could not be begun at all: no such agent, no such folder.
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

    /// What is told of the end, of the folder, of hooks and of sessions left behind comes after the end too.
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
