//! Events of a session. The stored event is the wire event: `{seq, session, at, actor, cause, type, data}`.
//!
//! Events are grouped by noun, so that no enum and no match grows too long to read. The groups do not show on the wire:
//! each event has its own `type`.

mod control;
mod inbox;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Cause};
use crate::id::{ComparisonId, SessionId, TaskId, TurnId, WorkerId};
use crate::memory::MemoryPolicy;
use crate::session::calls::Channel;
use crate::session::choice::AgentChoice;
use crate::session::driven::DrivenBy;
use crate::session::gate::GateEvent;
use crate::session::governance::Language;
use crate::session::inbox::Delivery;
use crate::session::limit::{AskReason, Limit};
use crate::session::part::PromptPart;
use crate::session::record::{Policy, is_default};
use crate::session::review::ReviewEvent;
use crate::session::run::{Continuity, Receipt, RunEvent};
use crate::session::stall::StallKind;
use crate::session::state::{InterruptCause, StateName};
use crate::session::terminal_program::TerminalProgram;
use crate::session::writer::WriterEvent;
use crate::time::Timestamp;
use crate::tree::{SetupStep, Tree};

pub use control::{ControlEvent, Settled};
pub use inbox::InboxEvent;

/// An event in its place in a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Position in the session's log: 1, 2, 3 … without gaps, never reused.
    pub seq: u64,
    pub session: SessionId,
    pub at: Timestamp,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(flatten)]
    pub event: Event,
}

impl Envelope {
    /// When it happened: for an imported event the time that the agent's history gives, if it gives one.
    #[must_use]
    pub fn occurred_at(&self) -> Timestamp {
        match &self.cause {
            Some(Cause::Imported { at: Some(at) }) => *at,
            Some(
                Cause::Imported { at: None } | Cause::Request(_) | Cause::Signal(_) | Cause::Output { .. },
            )
            | None => self.at,
        }
    }

    /// Whether it took place before its import into the log.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        matches!(self.cause, Some(Cause::Imported { .. }))
    }
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Event {
    Change(ChangeEvent),
    Turn(TurnEvent),
    Inbox(InboxEvent),
    Context(ContextEvent),
    Control(ControlEvent),
    Transcript(TranscriptEvent),
    Run(RunEvent),
    Gate(GateEvent),
    Writer(WriterEvent),
    Review(ReviewEvent),
}

/// The session itself changed: born, linked, handed over, put away, ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum ChangeEvent {
    #[serde(rename = "session.created")]
    Created(Box<Created>),
    #[serde(rename = "session.linked")]
    Linked {
        parent: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<SessionId>,
    },
    /// In the parent's log: a child was born under it or linked to it.
    #[serde(rename = "session.child_linked")]
    ChildLinked {
        child: SessionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// In the former parent's log: the child now belongs to another.
    #[serde(rename = "session.child_unlinked")]
    ChildUnlinked { child: SessionId },
    #[serde(rename = "session.migrated")]
    Migrated {
        from: Hands,
        to: Hands,
        reason: String,
        /// The way in which the next run of another agent gets the conversation. Absent without a conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continuity: Option<Continuity>,
    },
    /// Another party runs the agent from now on: Lanyard took the conversation over from the agent's own host.
    #[serde(rename = "session.driven")]
    Driven { by: DrivenBy },
    #[serde(rename = "session.alias_added")]
    AliasAdded { alias: String },
    /// The conversation was imported from the agent's own history. The events after it are the imported ones; the
    /// cause of each is `imported`.
    #[serde(rename = "session.imported")]
    Imported(Import),
    /// Its title from now on.
    #[serde(rename = "session.renamed")]
    Renamed { title: String },
    /// The session works on this plan from now on: its agent made the plan, or joined it.
    #[serde(rename = "session.plan_joined")]
    PlanJoined { plan: String },
    /// A new memory policy for the session.
    #[serde(rename = "session.memory_set")]
    MemorySet { policy: MemoryPolicy },
    /// The session's own model, mode and effort from now on. What is absent is the agent's default.
    #[serde(rename = "session.choice_set")]
    ChoiceSet { choice: AgentChoice },
    /// The actor has seen the log up to `seq`, and with it the end of a turn.
    #[serde(rename = "session.seen")]
    Seen { seq: u64 },
    #[serde(rename = "session.archived")]
    Archived {},
    #[serde(rename = "session.unarchived")]
    Unarchived {},
    /// The conversation starts over; the log goes on.
    #[serde(rename = "session.reset")]
    Reset {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename = "session.deleted")]
    Deleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An operator brought the session back after a stop. The run that was stopped stays refused.
    #[serde(rename = "session.resumed")]
    Resumed {
        /// The parent was notified of the stop, and is notified of this too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        notify: bool,
    },
    #[serde(rename = "session.idle")]
    WentIdle { quiet_ms: u64 },
    #[serde(rename = "session.stale")]
    WentStale { quiet_ms: u64 },
    #[serde(rename = "session.ended")]
    Ended {
        how: Ending,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A turn began, waited for a limit, was asked to end, or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
#[expect(clippy::large_enum_variant, reason = "as many turns start as end, and events are short-lived")]
pub enum TurnEvent {
    #[serde(rename = "turn.started")]
    Started {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_turn_id: Option<String>,
        prompt: String,
        /// What is attached to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
        prompt_hash: String,
        opening: Opening,
        /// Anchors the agent does not have, to be told with this prompt: all of them when a conversation opens, after
        /// that those a compaction lost.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        anchors: Vec<String>,
        /// The agent's instructions are to be told with this prompt: it does not have them, or a compaction lost
        /// them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        governance: bool,
        /// The requested delivery of its message.
        #[serde(default, skip_serializing_if = "is_default")]
        delivery: Delivery,
        /// The message waited in the inbox; `by` is its sender.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        queued: bool,
        /// The sender, where another actor started the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Actor>,
        /// The memory policy of the turn; absent in older logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryPolicy>,
        /// The model, mode and effort for this turn alone.
        #[serde(default, skip_serializing_if = "is_default")]
        choice: AgentChoice,
        /// An operator lets it begin although a budget is spent. The budgets of its session, its family and the day do not
        /// end it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forced: bool,
    },
    #[serde(rename = "turn.cancel_requested")]
    CancelRequested {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Asked before: do not wait for the agent to agree.
        forced: bool,
    },
    /// The turn met a limit of the provider. It is kept, and waits.
    #[serde(rename = "turn.waiting")]
    Waiting {
        turn: TurnId,
        limit: Limit,
        /// Id of the prompt with which the turn goes on.
        leg: TurnId,
        /// The time at which it goes on by itself; absent where a person says when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<AskReason>,
        /// The daemon ended before the prompt reached the agent: the same wait, not a further one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The turn goes on after a limit: at its time, or because somebody said so.
    #[serde(rename = "turn.continued")]
    Continued {
        turn: TurnId,
        leg: TurnId,
        /// A person said so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asked: bool,
    },
    #[serde(rename = "turn.finished")]
    Finished {
        turn: TurnId,
        outcome: TurnOutcome,
        /// The agent's own words, where it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// An operator should see it. Logs from before this was tracked do not say.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        review: bool,
    },
    #[serde(rename = "turn.interrupted")]
    Interrupted {
        turn: TurnId,
        cause: InterruptCause,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The agent had the prompt and was lost: its actions are unknown.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uncertain: bool,
        /// The processes of the turn: those that were ended, and those that may still live.
        #[serde(default, skip_serializing_if = "is_default")]
        receipt: Receipt,
        /// An operator should see it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        review: bool,
    },
}

/// The agent's context and the places one can come back to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum ContextEvent {
    #[serde(rename = "context.anchors_set")]
    AnchorsSet { anchors: Vec<String> },
    /// The engine's own event, with sizes, never guessed from phrases.
    #[serde(rename = "context.compacted")]
    Compacted {
        size_before: u64,
        size_after: u64,
        anchors_survived: Vec<String>,
        anchors_lost: Vec<String>,
        /// First, second, … compaction of this session.
        nth: u32,
        /// The last position whose content the agent still had in full.
        checkpoint: u64,
    },
    #[serde(rename = "context.checkpoint")]
    Checkpoint {
        /// The journal position the checkpoint names.
        position: u64,
        reason: CheckpointReason,
    },
    /// A checkpoint with the workspace, kept by git, that can be gone back to.
    #[serde(rename = "context.snapshot")]
    Snapshot {
        name: String,
        commit: String,
        /// The journal position whose workspace it holds. Older logs do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<u64>,
        reason: SnapshotReason,
        /// Files that differ from the last commit of the branch.
        files_changed: u32,
    },
    /// The workspace could not be kept, and why; said once per reason.
    #[serde(rename = "context.snapshot_skipped")]
    SnapshotSkipped { code: String, why: String },
    /// The workspace was taken back to a checkpoint. Its files as they were before are in the checkpoint `from`.
    #[serde(rename = "context.rolled_back")]
    RolledBack {
        from: String,
        to: String,
        /// Files that were changed, brought back and taken away.
        changed: u32,
        added: u32,
        removed: u32,
    },
    /// The session's branch was merged into what is checked out in its repository.
    #[serde(rename = "context.branch_merged")]
    BranchMerged { branch: String, commit: String, into: String },
    /// The session's worktree and branch were removed. What they held is under this ref.
    #[serde(rename = "context.branch_discarded")]
    BranchDiscarded { branch: String, reference: String },
    #[serde(rename = "context.issue_seen")]
    IssueSeen {
        hash: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        score: Option<f64>,
    },
    #[serde(rename = "context.error_seen")]
    ErrorSeen {
        hash: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    #[serde(rename = "context.stalled")]
    Stalled { kind: StallKind, hash: String, repeats: u32 },
}

/// Messages, thoughts, tool calls and plans of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum TranscriptEvent {
    #[serde(rename = "message")]
    Message {
        role: Role,
        text: String,
        /// The message this text is part of. Neighbouring events with the same id are one message; a different id
        /// begins a new paragraph. Absent where the agent's protocol has no such id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Images and files in the place of the text or behind it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
    },
    #[serde(rename = "thought")]
    Thought { text: String },
    #[serde(rename = "tool.called")]
    ToolCalled {
        call: String,
        tool: String,
        #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
        arguments: serde_json::Value,
    },
    #[serde(rename = "tool.returned")]
    ToolReturned {
        call: String,
        is_error: bool,
        #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
        content: serde_json::Value,
    },
    /// A call that came by on its way to a tool, and came back. Agents Lanyard runs tell of their calls themselves, so
    /// this one counts only where nobody else does.
    #[serde(rename = "tool.relayed")]
    ToolRelayed {
        call: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        tool: String,
        channel: Channel,
        is_error: bool,
        took_ms: u64,
        bytes: u64,
        /// A subagent that shares the session's address may have made the call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uncertain: bool,
    },
    /// Number of calls in flight. Written for calls that take a while, without waiting for the disk; the record of each
    /// call follows when it has returned.
    #[serde(rename = "tool.in_flight")]
    InFlight { calls: u32 },
    /// The agent's plan as it now is, whole.
    #[serde(rename = "plan.updated")]
    Planned { entries: Vec<PlanEntry> },
    #[serde(rename = "file.changed")]
    FileChanged {
        path: String,
        /// Lines added and removed, where the agent showed the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        added: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        removed: Option<u64>,
    },
    #[serde(rename = "usage.reported")]
    UsageReported {
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
        /// Millionths of a US dollar, where the agent says what it cost.
        #[serde(default, skip_serializing_if = "is_default")]
        cost_micros: u64,
    },
}

/// The data with which a session is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Created {
    /// `beginning`, or `custom` when made with a parent, phase or purpose.
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub owner: String,
    pub source: String,
    /// The party that runs the agent; absent in older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driven_by: Option<DrivenBy>,
    /// The agent's own id of the conversation that the session continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// The program that runs in it on a terminal of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalProgram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The worktree of its own that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// The commands that prepared that worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetupStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The task it was made for, and the worker whose session it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Fork>,
    /// The comparison it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governance_level: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub language: Language,
    /// The model, mode and effort that it begins with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: AgentChoice,
    pub policy: Policy,
}

/// What an import took from an agent's own history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// The program whose history it is: `claude`, `codex`, `opencode`, `gemini`.
    pub from: String,
    /// Messages of the user and of the agent.
    pub messages: u64,
    /// Imported events: messages, thoughts and tool calls.
    pub events: u64,
    /// Older events that were left out because the conversation is larger than an import may be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: u64,
    /// Lines of the history that could not be read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: u64,
    /// The times of the first and the last event, where the history gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// An event of a conversation that took place before its import.
#[derive(Debug, Clone, PartialEq)]
pub struct PastEvent {
    pub at: Option<Timestamp>,
    pub event: TranscriptEvent,
}

/// The place in another session's log a session was forked from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    pub session: SessionId,
    pub seq: u64,
}

/// In whose hands a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hands {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    pub owner: String,
}

/// The way in which a turn opens the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Opening {
    /// The first turn of a new conversation.
    New,
    /// The conversation goes on.
    Continued,
    /// A person returned after the session had gone stale.
    Returned { after_ms: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    Completed,
    Failed,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Completed,
    Failed,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointReason {
    TurnEnd,
    Interruption,
    Compaction,
    RiskyTool,
    Asked,
}

/// An entry of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    pub text: String,
    pub status: PlanEntryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PlanEntryStatus")]
pub enum PlanEntryState {
    Pending,
    InProgress,
    Completed,
}

/// Why the workspace was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReason {
    TurnStart,
    /// Also of one that was cancelled or lost.
    TurnEnd,
    Stop,
    Asked,
    /// Before the workspace was taken back to an older one.
    Rollback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Agent,
}

impl Event {
    /// Whether listings and indexes need to know: only transcript events leave the session's row as it is.
    #[must_use]
    pub fn is_structural(&self) -> bool {
        !matches!(self, Self::Transcript(_))
    }
}

macro_rules! into_event {
    ($($group:ident($inner:ident),)*) => {$(
        impl From<$inner> for Event {
            fn from(event: $inner) -> Self {
                Self::$group(event)
            }
        }
    )*};
}

into_event! {
    Change(ChangeEvent),
    Turn(TurnEvent),
    Inbox(InboxEvent),
    Context(ContextEvent),
    Control(ControlEvent),
    Transcript(TranscriptEvent),
    Run(RunEvent),
    Gate(GateEvent),
    Writer(WriterEvent),
    Review(ReviewEvent),
}
