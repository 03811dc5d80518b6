//! Signals: facts from agents, timers and the operating system. A signal is never refused; one that does not fit the
//! state is recorded as unexpected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{GateId, NoteId, RunId, SessionId, TurnId};
use crate::session::bounds::BoundedResource;
use crate::session::choice::{AgentChoice, AgentOffer};
use crate::session::event::{PlanEntry, Role, SnapshotReason, TurnOutcome};
use crate::session::gate::Question;
use crate::session::limit::LimitSeen;
use crate::session::part::PromptPart;
use crate::session::record::is_default;
use crate::session::run::{Receipt, RunEnd, RunReady, TerminalActivity};
use crate::session::sandbox::Containment;
use crate::session::state::InterruptCause;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Signal {
    Said {
        role: Role,
        text: String,
        /// The agent's own id of the message this text is part of.
        #[serde(default, skip_serializing_if = "is_default")]
        message_id: Option<String>,
        /// Images and files of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
    },
    Thought {
        text: String,
    },
    ToolCalled {
        call: String,
        tool: String,
        #[serde(default)]
        arguments: serde_json::Value,
    },
    ToolReturned {
        call: String,
        #[serde(default)]
        is_error: bool,
        #[serde(default)]
        content: serde_json::Value,
    },
    UsageReported {
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default)]
        context_tokens: Option<u64>,
        /// Millionths of a US dollar, where the agent says what it cost.
        #[serde(default, skip_serializing_if = "is_default")]
        cost_micros: u64,
    },
    /// The agent has the prompt of its turn.
    TurnDelivered {
        turn: TurnId,
    },
    /// The agent came to the end of its turn; without an id, of whichever turn is running.
    TurnFinished {
        #[serde(default)]
        turn: Option<TurnId>,
        outcome: TurnOutcome,
        #[serde(default)]
        reason: Option<String>,
    },
    /// The turn's work is gone: process lost, time or budget over.
    TurnLost {
        cause: InterruptCause,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "is_default")]
        receipt: Receipt,
    },
    /// The agent's turn ended at a limit of its provider.
    TurnLimited(Box<LimitSeen>),
    /// An end was ordered that the agent cannot carry out alone.
    EndBlocked {
        why: String,
    },
    ContextCompacted {
        size_before: u64,
        size_after: u64,
        #[serde(default)]
        anchors_survived: Vec<String>,
    },
    IssueSeen {
        hash: String,
        #[serde(default)]
        score: Option<f64>,
    },
    ErrorSeen {
        hash: String,
        #[serde(default)]
        text: Option<String>,
    },
    GuidanceDelivered {
        notes: Vec<NoteId>,
        channel: String,
    },
    /// An answer did not get out, and with it what it carried.
    AnswerLost {
        notes: Vec<NoteId>,
    },
    /// An agent told who it is, and the id it was given.
    Introduced {
        agent: String,
        #[serde(default)]
        extension_session_id: Option<String>,
    },
    /// The agent made the plan, or joined it.
    PlanJoined {
        plan: String,
    },
    /// The agent handed its work to another; the session stays in its hands until somebody migrates it.
    HandedOff {
        from: String,
        to: String,
        reason: String,
    },
    /// The end of this session under a stop, or its resume, was told to an ancestor, or there was none to tell.
    NoticeSent {
        to: Option<SessionId>,
        note: Option<NoteId>,
        /// Since when the session was in the state that was told. A later state is still to be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
    /// Number of calls in flight, as the gateway, a hook or a wrapped server reports it.
    CallsInFlight {
        calls: u32,
    },
    /// A deadline may have come.
    Due {
        now: Timestamp,
    },
    Planned {
        entries: Vec<PlanEntry>,
    },
    FileChanged {
        path: String,
        #[serde(default)]
        added: Option<u64>,
        #[serde(default)]
        removed: Option<u64>,
    },
    /// A run is about to be started.
    RunStarted {
        run: RunId,
        agent: String,
        driver: String,
        #[serde(default)]
        mirrored: bool,
        /// A subagent that takes words into its running turn.
        #[serde(default)]
        steers: bool,
        /// The sandbox and the bounds that will hold.
        #[serde(default)]
        sandbox: Option<Box<Containment>>,
        #[serde(default, skip_serializing_if = "is_default")]
        account: Option<String>,
    },
    RunReady(Box<RunReady>),
    RunAdopted {
        run: RunId,
    },
    /// A program on a terminal began to write, or came to rest.
    TerminalActivity {
        run: RunId,
        activity: TerminalActivity,
        #[serde(default)]
        watched: bool,
    },
    /// The agent has not reached these MCP servers, although they were offered to it.
    ToolsMissing {
        run: RunId,
        #[serde(default)]
        servers: Vec<String>,
    },
    /// The run reached a bound on its resources, so many times in all.
    BoundMet {
        run: RunId,
        what: BoundedResource,
        times: u64,
    },
    /// What the agent offers to choose.
    Offered(Box<AgentOffer>),
    /// The model, mode and effort in force.
    InForce(AgentChoice),
    /// All processes of the run have ended. `cause` is the reason why a running turn is interrupted, unless its end was
    /// requested; without a cause the turn waits for the next run.
    RunEnded {
        run: RunId,
        how: RunEnd,
        #[serde(default)]
        cause: Option<InterruptCause>,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default)]
        receipt: Receipt,
    },
    /// The agent asks, and waits.
    GateAsked {
        gate: GateId,
        run: RunId,
        question: Box<Question>,
    },
    /// The agent no longer waits for an answer to its question.
    GateWithdrawn {
        request: String,
        why: String,
    },
    SnapshotTaken {
        name: String,
        commit: String,
        reason: SnapshotReason,
        files_changed: u32,
    },
    SnapshotSkipped {
        code: String,
        why: String,
    },
    /// The workspace was taken back to the snapshot `to`; `from` has it as it was before.
    RolledBack {
        from: String,
        to: String,
        changed: u32,
        added: u32,
        removed: u32,
    },
    /// The session's branch was merged.
    BranchMerged {
        branch: String,
        commit: String,
        into: String,
    },
    /// The session's worktree and branch were removed; `reference` has what they held.
    BranchDiscarded {
        branch: String,
        reference: String,
    },
    /// The agent's work has ended: this confirms a cancel or a stop.
    WorkEnded {
        channel: String,
    },
    /// The daemon restarted and found no process that continues this session's turn.
    DaemonRestarted,
    /// No event happened in the session for this long.
    Quiet {
        for_ms: u64,
    },
}

impl Signal {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Said { .. } => "said",
            Self::Thought { .. } => "thought",
            Self::ToolCalled { .. } => "tool_called",
            Self::ToolReturned { .. } => "tool_returned",
            Self::UsageReported { .. } => "usage_reported",
            Self::TurnDelivered { .. } => "turn_delivered",
            Self::TurnFinished { .. } => "turn_finished",
            Self::TurnLost { .. } => "turn_lost",
            Self::TurnLimited(_) => "turn_limited",
            Self::EndBlocked { .. } => "end_blocked",
            Self::ContextCompacted { .. } => "context_compacted",
            Self::IssueSeen { .. } => "issue_seen",
            Self::ErrorSeen { .. } => "error_seen",
            Self::GuidanceDelivered { .. } => "guidance_delivered",
            Self::AnswerLost { .. } => "answer_lost",
            Self::Introduced { .. } => "introduced",
            Self::PlanJoined { .. } => "plan_joined",
            Self::HandedOff { .. } => "handed_off",
            Self::NoticeSent { .. } => "notice_sent",
            Self::CallsInFlight { .. } => "calls_in_flight",
            Self::Due { .. } => "due",
            Self::Planned { .. } => "planned",
            Self::FileChanged { .. } => "file_changed",
            Self::RunStarted { .. } => "run_started",
            Self::RunReady(_) => "run_ready",
            Self::RunAdopted { .. } => "run_adopted",
            Self::TerminalActivity { .. } => "terminal_activity",
            Self::ToolsMissing { .. } => "tools_missing",
            Self::BoundMet { .. } => "bound_met",
            Self::Offered(_) => "offered",
            Self::InForce(_) => "in_force",
            Self::RunEnded { .. } => "run_ended",
            Self::GateAsked { .. } => "gate_asked",
            Self::GateWithdrawn { .. } => "gate_withdrawn",
            Self::SnapshotTaken { .. } => "snapshot_taken",
            Self::SnapshotSkipped { .. } => "snapshot_skipped",
            Self::RolledBack { .. } => "rolled_back",
            Self::BranchMerged { .. } => "branch_merged",
            Self::BranchDiscarded { .. } => "branch_discarded",
            Self::WorkEnded { .. } => "work_ended",
            Self::DaemonRestarted => "daemon_restarted",
            Self::Quiet { .. } => "quiet",
        }
    }
}
