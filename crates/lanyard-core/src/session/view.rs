//! A session as the API shows it: the record with what is derived from it, from its place in the family, and from the
//! time it is looked at.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{ComparisonId, SessionId, TaskId, WorkerId};
use crate::memory::MemoryPolicy;
use crate::policy::{MemoryMode, Staleness};
use crate::session::choice::{AgentChoice, OfferMark, bypasses_approvals};
use crate::session::driven::DrivenBy;
use crate::session::event::Fork;
use crate::session::family::Lineage;
use crate::session::gate::{Gate, GateStatus};
use crate::session::governance::GovernanceView;
use crate::session::guidance::Note;
use crate::session::inbox::{PauseReason, QueuedTurn};
use crate::session::operator::{EndedTurn, OperatorState, SeenMark};
use crate::session::record::{
    ActiveTurn, Checkpoint, Compaction, Handoff, LastToolCall, Session, StateChange, Usage,
};
use crate::session::run::Run;
use crate::session::stall::Stall;
use crate::session::state::{InterruptCause, Lifecycle, StateName, Status};
use crate::session::stop::Stop;
use crate::session::terminal_program::TerminalProgram;
use crate::session::writer::Writer;
use crate::time::Timestamp;
use crate::tree::Tree;

/// A session as the API shows it: identity, state, limits and activity in one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each answers a question of its own, and they vary independently"
)]
pub struct SessionView {
    pub id: SessionId,
    pub title: Option<String>,
    pub agent: Option<String>,
    pub worker: Option<WorkerId>,
    pub owner: String,
    pub source: String,
    /// The party that runs the agent: `lanyard`, `parent` (a subagent in its parent's run), `host` or `nobody`.
    pub driven_by: DrivenBy,
    /// The program that runs in it on a terminal of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal: Option<TerminalProgram>,
    pub workspace: Option<String>,
    /// The worktree of its own that the session works in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tree: Option<Tree>,
    pub plan: Option<String>,
    pub phase: Option<String>,
    pub purpose: Option<String>,
    /// The task it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub state: StateName,
    /// Why, when the state is `interrupted`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<InterruptCause>,
    pub status: Status,
    pub lifecycle: Lifecycle,
    /// The operator's word for it.
    pub operator_state: OperatorState,
    /// The end of the last turn waits for an operator to see it.
    pub unread: bool,
    /// The position up to which each reader has seen the log, the latest mark last; at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenMark>,
    pub previous_state: Option<StateName>,
    pub since: Timestamp,
    /// Whether an operator's resume would be accepted now. True for a stopped session that can be brought back.
    pub resumable: bool,
    /// Executing, waiting for no tool, and nothing was heard of it for longer than `suspect_after`.
    pub suspected_orphan: bool,
    /// Stale for longer than `critical_after`.
    pub critical: bool,
    pub parent: Option<SessionId>,
    /// The session that started the family.
    pub root: SessionId,
    pub level: u32,
    pub depth: u32,
    pub depth_limit: u32,
    /// Whether it may have children of its own.
    pub can_delegate: bool,
    pub forked_from: Option<Fork>,
    /// The comparison it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonId>,
    pub aliases: Vec<String>,
    pub memory_mode: MemoryMode,
    /// The memory policy in full.
    pub memory: MemoryPolicy,
    #[serde(flatten)]
    pub governance: GovernanceView,
    pub created_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub last_seq: u64,
    pub turns: u64,
    pub active_turn: Option<ActiveTurn>,
    /// The turn that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<EndedTurn>,
    /// Messages that wait for their turn, the next one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbox: Vec<QueuedTurn>,
    /// The reason why the inbox starts no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_paused: Option<PauseReason>,
    pub stop: Option<Stop>,
    pub guidance: Vec<Note>,
    /// The writer among the attached clients.
    pub writer: Option<Writer>,
    pub writer_epoch: u64,
    /// Its own model, mode and effort.
    #[serde(default)]
    pub choice: AgentChoice,
    /// The model, mode and effort in force, as the agent's newest run reported them.
    #[serde(default)]
    pub in_force: AgentChoice,
    /// The agent's mode asks for no approvals.
    #[serde(default)]
    pub bypasses_approvals: bool,
    /// Where in the log the agent's newest offer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<OfferMark>,
    /// The newest run of the agent.
    pub run: Option<Run>,
    /// The agent's own id of the conversation.
    pub native: Option<String>,
    /// Questions that wait for an answer.
    pub gates: Vec<Gate>,
    pub snapshots: u32,
    pub last_tool_call: Option<LastToolCall>,
    pub usage: Usage,
    pub anchors: Vec<String>,
    pub compactions: u32,
    pub compaction_history: Vec<Compaction>,
    pub checkpoints: Vec<Checkpoint>,
    pub state_history: Vec<StateChange>,
    pub handoffs: Vec<Handoff>,
    pub stall: Stall,
    pub archived: bool,
    pub end_reason: Option<String>,
}

/// Looks at a session from `now`.
#[must_use]
#[allow(clippy::too_many_lines, reason = "a line for each field")]
pub fn view(session: &Session, lineage: &Lineage, now: Timestamp, staleness: &Staleness) -> SessionView {
    let name = session.state.name();
    let quiet_ms = now.millis_since(session.last_activity_at);
    let s = session.clone();
    SessionView {
        id: s.id,
        title: s.title,
        agent: s.hands.agent,
        worker: s.hands.worker,
        owner: s.hands.owner,
        source: s.source,
        driven_by: session.driver(),
        workspace: s.workspace,
        tree: s.tree,
        plan: s.plan,
        phase: s.phase,
        purpose: s.purpose,
        task: s.task,
        state: name,
        cause: session.state.cause(),
        status: session.status(),
        lifecycle: name.lifecycle(),
        operator_state: session.operator_state(),
        unread: session.unread(),
        seen: s.seen,
        previous_state: session.previous_state(),
        since: s.since,
        resumable: session.is_resumable(),
        suspected_orphan: name == StateName::Executing
            && !session.is_waiting()
            && quiet_ms >= staleness.suspect_after_ms,
        critical: name == StateName::Stale && quiet_ms >= staleness.critical_after_ms,
        parent: s.parent,
        root: lineage.root().unwrap_or(s.id),
        level: lineage.level(),
        depth: lineage.depth(),
        depth_limit: s.policy.depth_limit,
        can_delegate: can_delegate(session, lineage),
        forked_from: s.forked_from,
        comparison: s.comparison,
        aliases: s.aliases,
        memory_mode: s.policy.memory.mode,
        memory: s.policy.memory,
        governance: GovernanceView::of(session),
        created_at: s.created_at,
        last_activity_at: s.last_activity_at,
        last_seq: s.seq,
        turns: s.turns,
        active_turn: s.turn,
        last_turn: s.last_turn,
        inbox: s.inbox,
        inbox_paused: s.inbox_paused,
        stop: s.stop,
        guidance: s.guidance,
        writer: s.writer,
        writer_epoch: s.writer_epoch,
        bypasses_approvals: unguarded(session),
        choice: s.choice,
        in_force: s.in_force,
        offered: s.offered,
        run: s.run,
        native: s.native,
        terminal: s.terminal,
        gates: s.gates.into_iter().filter(|gate| gate.status == GateStatus::Open).collect(),
        snapshots: s.snapshots,
        last_tool_call: s.last_tool_call,
        usage: s.usage,
        anchors: s.anchors,
        compactions: s.compactions,
        compaction_history: s.compaction_history.into(),
        checkpoints: s.checkpoints.into(),
        state_history: s.history.into(),
        handoffs: s.handoffs.into(),
        stall: s.stall,
        archived: s.archived,
        end_reason: s.end_reason,
    }
}

/// Whether the mode in force, or the one that the next run begins with, asks for no approvals.
fn unguarded(session: &Session) -> bool {
    let wanted = session.wanted_choice();
    let modes = [session.in_force.mode.as_deref(), wanted.mode.as_deref()];
    modes.into_iter().flatten().any(bypasses_approvals)
}

fn can_delegate(session: &Session, lineage: &Lineage) -> bool {
    let alive = !session.state.is_ended() && !session.deleted;
    alive && !session.policy.leaf && lineage.depth() < session.policy.depth_limit
}
