//! The record: a session as its log adds up. Bounded, whatever the log's length: histories keep their newest entries.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{ComparisonId, RunId, SessionId, TaskId, TurnId};
use crate::memory::MemoryPolicy;
use crate::session::carrier::SeenCalls;
use crate::session::choice::{AgentChoice, OfferMark};
use crate::session::driven::DrivenBy;
use crate::session::event::{CheckpointReason, Fork, Hands};
use crate::session::gate::{Gate, GateStatus};
use crate::session::governance::{FirstTool, Governance};
use crate::session::guidance::Note;
use crate::session::inbox::{PauseReason, QueuedTurn};
use crate::session::limit::{LimitWait, TurnLeg};
use crate::session::operator::{EndedTurn, SeenMark};
use crate::session::review::ReviewBook;
use crate::session::run::{Continuity, ResumeWay, Run};
use crate::session::sandbox::SandboxRule;
use crate::session::stall::Stall;
use crate::session::state::{State, StateName, Status};
use crate::session::stop::{Stop, StoppedRun};
use crate::session::terminal_program::TerminalProgram;
use crate::session::writer::Writer;
use crate::time::Timestamp;
use crate::tree::Tree;

/// Entries each history keeps in the record; the log keeps all.
pub(super) const HISTORY_MAX: usize = 16;
/// The source of a session that was started outside Lanyard and whose calls come by.
pub const EXTERNAL: &str = "external";
/// The source of a session whose conversation was imported from its agent's own history.
pub const IMPORTED: &str = "imported";
/// Refusals and unexpected signals in a row that are written to the log; after that they are only answered, so that a
/// client in a loop cannot fill the disk.
pub(super) const REFUSED_IN_ROW_MAX: u32 = 32;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Session {
    pub id: SessionId,
    /// The last event that was applied.
    pub seq: u64,
    pub state: State,
    /// Time at which the session entered its state.
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub history: VecDeque<StateChange>,
    pub created_at: Timestamp,
    pub last_activity_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub hands: Hands,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub handoffs: VecDeque<Handoff>,
    pub source: String,
    /// The party that runs the agent, as [`Session::driver`] returns it; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_by: Option<DrivenBy>,
    /// The program that runs in it on a terminal of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalProgram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The worktree of its own that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The session joined its plan after it was made, and may join another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan_joined: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The task it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Fork>,
    /// The comparison it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    pub policy: Policy,
    #[serde(default)]
    pub governance: Governance,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<ActiveTurn>,
    #[serde(default)]
    pub turns: u64,
    /// The turn that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<EndedTurn>,
    /// The position up to which each reader has seen the log, the latest mark last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenMark>,
    /// Messages that wait for their turn, the next one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inbox: Vec<QueuedTurn>,
    /// The reason why the inbox starts no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_paused: Option<PauseReason>,
    /// Comments on the session's changes, and the files that were viewed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub review: ReviewBook,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<Note>,
    /// The newest guidance that is settled.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub guidance_settled: VecDeque<Note>,
    /// Tool calls of this run come by, so words and a stop can reach the agent in their answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hears: bool,
    /// The calls of this run that passed through Lanyard.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seen_calls: SeenCalls,
    /// Runs that a stop ended before the session was resumed. Their calls stay refused at level 3.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub stopped_runs: VecDeque<StoppedRun>,
    /// The session ended under a stop, and its parent has not yet been notified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notice_due: bool,
    /// The session ended under a stop and has no live ancestor: the operators are notified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub notice_unheard: bool,
    /// The writer among the attached clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// Number of changes of the writer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub writer_epoch: u64,
    /// Its own model, mode and effort.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: AgentChoice,
    /// The model, mode and effort in force, as the agent's newest run reported them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_force: AgentChoice,
    /// What the agent last reported to offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<OfferMark>,
    /// The newest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// A run was asked for and is not ready yet: the ways in which it may take up the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_wanted: Option<Vec<ResumeWay>>,
    /// The agent's own id of the conversation, by which a later run can take it up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The way in which the next run gets the conversation of the previous agent; set at a hand-over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries: Option<Continuity>,
    /// Gates that are open, and the newest that are settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Snapshots of the workspace.
    #[serde(default)]
    pub snapshots: u32,
    /// Why the last snapshot was not taken, so that it is said once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_skipped: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_tool: Option<FirstTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool_call: Option<LastToolCall>,
    /// Calls of the running turn that have not returned; the agent may be quiet while it waits for them.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub open_calls: VecDeque<String>,
    /// Calls that came by and are under way, as far as Lanyard sees them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls_in_flight: u32,
    /// The open calls that started a subagent.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub open_spawns: VecDeque<String>,
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    /// Anchors the last compaction lost and no turn has told the agent again yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors_due: Vec<String>,
    #[serde(default)]
    pub compactions: u32,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub compaction_history: VecDeque<Compaction>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub checkpoints: VecDeque<Checkpoint>,
    #[serde(default, skip_serializing_if = "Stall::is_default")]
    pub stall: Stall,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// Refusals and unexpected signals since anything else happened.
    #[serde(default)]
    pub refused_in_row: u32,
    /// Bytes of text in its log, for the limit on them. Events of before this was counted are not in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub log_bytes: u64,
}

/// Limits that were fixed when the session was made; a child's are never wider than its parent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    pub depth_limit: u32,
    /// A leaf does its own work and cannot delegate.
    #[serde(default)]
    pub leaf: bool,
    /// The least sandbox of its runs.
    #[serde(default, skip_serializing_if = "SandboxRule::is_open")]
    pub sandbox: SandboxRule,
    /// The memory policy. Only the mode is written when nothing else was chosen.
    #[serde(flatten, with = "stored_memory")]
    #[schemars(flatten, with = "stored_memory::Written")]
    pub memory: MemoryPolicy,
}

/// The stored form of a memory policy: `memory_mode`, and `memory` where the mode does not say all.
mod stored_memory {
    use schemars::JsonSchema;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Value, json};

    use crate::memory::MemoryPolicy;
    use crate::policy::MemoryMode;

    #[derive(Serialize, JsonSchema)]
    pub(super) struct Written {
        memory_mode: MemoryMode,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryPolicy>,
    }

    /// Both fields as they are stored: an unreadable policy must not make the session unreadable.
    #[derive(Deserialize)]
    struct Found {
        #[serde(default)]
        memory_mode: Value,
        #[serde(default)]
        memory: Option<Value>,
    }

    pub(super) fn serialize<S: Serializer>(policy: &MemoryPolicy, serializer: S) -> Result<S::Ok, S::Error> {
        let says_more = *policy != MemoryPolicy::of(policy.mode);
        Written { memory_mode: policy.mode, memory: says_more.then(|| policy.clone()) }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MemoryPolicy, D::Error> {
        let Found { memory_mode, memory } = Found::deserialize(deserializer)?;
        let mode = MemoryPolicy::read(json!({ "mode": memory_mode }));
        Ok(match memory {
            Some(memory) if mode.unreadable.is_none() => MemoryPolicy::read(memory),
            Some(_) | None => mode,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct ActiveTurn {
    pub id: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    pub prompt_hash: String,
    /// Position in the log at which the turn began; the prompt is there.
    #[serde(default)]
    pub seq: u64,
    pub started_at: Timestamp,
    /// The sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// The agent has its prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    #[serde(default)]
    pub cancel_requested: bool,
    /// The turn waits for a provider's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Box<LimitWait>>,
    /// The prompt that followed the last limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg: Option<Box<TurnLeg>>,
    /// Waits for a reset so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waits: u32,
    /// Tries after an overload or an error of the provider so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retries: u32,
    /// The agent called a tool in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worked: bool,
    /// The memory policy at the start of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPolicy>,
    /// The model, mode and effort for this turn alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: AgentChoice,
    /// An operator let it begin although a budget is spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Tool calls, and those that failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls_failed: u64,
    /// Tokens in and out, as reported so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tokens: u64,
    /// Cost as reported so far, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cost_micros: u64,
}

impl ActiveTurn {
    /// Whether the agent has the prompt that it was given last.
    #[must_use]
    pub fn prompt_arrived(&self) -> bool {
        self.leg.as_ref().map_or(self.delivered, |leg| leg.delivered)
    }
}

/// An entry of the state history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateChange {
    pub state: StateName,
    pub at: Timestamp,
}

/// A hand-off of a session to another agent, worker or owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    pub at: Timestamp,
    pub from: Hands,
    pub to: Hands,
    pub reason: String,
}

/// The latest tool call, and the number of calls so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastToolCall {
    pub tool: String,
    pub at: Timestamp,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Millionths of a US dollar, as far as its agents say what they cost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cost_micros: u64,
}

impl Usage {
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// A compaction of the agent's context, with the anchors that survived it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compaction {
    pub at: Timestamp,
    pub size_before: u64,
    pub size_after: u64,
    pub anchors_survived: Vec<String>,
}

/// A place to come back to, named by its position in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    pub position: u64,
    pub at: Timestamp,
    pub reason: CheckpointReason,
}

impl Session {
    /// The state as one of the four status words.
    #[must_use]
    pub fn status(&self) -> Status {
        self.state.name().status(self.stop.is_some())
    }

    /// The run whose process is this session's own and may still be alive.
    #[must_use]
    pub fn live_run(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| run.is_live() && !run.mirrored)
    }

    /// Whether a tool call of this session must ask before it is executed: a stop or guidance is open, or a
    /// stop ended the session or one of its runs.
    #[must_use]
    pub fn wants_attention(&self) -> bool {
        let ended = self.state.is_ended() || self.deleted;
        self.stop.is_some() || ended || !self.guidance.is_empty() || !self.stopped_runs.is_empty()
    }

    /// The stop that ended this run before the session was resumed. No run means an agent of another host, whose calls may
    /// also come over the connection of the run that hosts it.
    #[must_use]
    pub fn fence(&self, run: Option<RunId>) -> Option<&StoppedRun> {
        // A host that runs the agent again is a new one; its calls carry no run that could tell the two apart.
        let hosted = self.driver() == DrivenBy::Host;
        let own = self.run.as_ref().map(|own| own.id);
        let is_of = |stopped: &&StoppedRun| match stopped.run {
            Some(of) => run == Some(of),
            None => !hosted && (run.is_none() || run != own),
        };
        // The oldest are forgotten: a run that is not the session's own may have been one of them, and is over anyway.
        let full = self.stopped_runs.len() >= HISTORY_MAX;
        let forgotten = full && !hosted && run.is_some() && run != own;
        let oldest = self.stopped_runs.front().filter(|_| forgotten);
        self.stopped_runs.iter().rev().find(is_of).or(oldest)
    }

    /// Whether its silence has a reason: a tool or a limit it waits for, or a question it asked.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let limited = self.turn.as_ref().is_some_and(ActiveTurn::is_waiting);
        limited || self.is_in_call() || self.open_gates().next().is_some()
    }

    /// Whether it waits for a tool.
    #[must_use]
    pub fn is_in_call(&self) -> bool {
        !self.open_calls.is_empty() || self.calls_in_flight > 0
    }

    pub fn open_gates(&self) -> impl Iterator<Item = &Gate> {
        self.gates.iter().filter(|gate| gate.status == GateStatus::Open)
    }

    /// The memory policy in force: the session's, limited to the policy with which the running turn began.
    #[must_use]
    pub fn memory(&self) -> MemoryPolicy {
        match self.turn.as_ref().and_then(|turn| turn.memory.as_ref()) {
            Some(turn) => turn.under(&self.policy.memory),
            None => self.policy.memory.clone(),
        }
    }

    /// The model, mode and effort that the running turn asks for; between turns the session's own.
    #[must_use]
    pub fn wanted_choice(&self) -> AgentChoice {
        match &self.turn {
            Some(turn) => turn.choice.over(&self.choice),
            None => self.choice.clone(),
        }
    }

    #[must_use]
    pub fn previous_state(&self) -> Option<StateName> {
        self.history.iter().rev().nth(1).map(|change| change.state)
    }
}

/// Whether a field has its default value and is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Adds to a history and forgets its oldest entry when it is full.
pub(super) fn remember<T>(history: &mut VecDeque<T>, item: T) {
    if history.len() >= HISTORY_MAX {
        history.pop_front();
    }
    history.push_back(item);
}
