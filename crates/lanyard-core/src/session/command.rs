//! Commands to a session. A command can be refused; the ids it needs were minted earlier.

use crate::actor::Actor;
use crate::id::{GateId, NoteId, SessionId, TurnId, WorkerId};
use crate::memory::{MemoryAsk, MemoryPolicy};
use crate::session::choice::AgentChoice;
use crate::session::guidance::NoteKind;
use crate::session::inbox::InboxCommand;
use crate::session::review::ReviewCommand;
use crate::session::run::{Continuity, ResumeWay};
use crate::session::stop::StopScope;
use crate::session::writer::WriterCommand;

/// A wish of somebody outside. Creating, linking and forking concern two sessions and live in `family`.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    StartTurn {
        turn: TurnId,
        client_turn_id: Option<String>,
        prompt: String,
    },
    CancelTurn {
        reason: Option<String>,
    },
    /// Messages that come in, and those that wait.
    Inbox(InboxCommand),
    Complete {
        reason: Option<String>,
    },
    Fail {
        reason: Option<String>,
    },
    /// Asks for a stop, or raises the one that is pending.
    Stop {
        reason: Option<String>,
        scope: StopScope,
        /// Begin at level 2.
        now: bool,
    },
    WithdrawStop {
        reason: Option<String>,
    },
    Guide {
        note: NoteId,
        text: String,
    },
    /// Lanyard tells of a child that was stopped, and what it left, or gives over what a child says.
    Notify {
        note: NoteId,
        kind: NoteKind,
        about: Option<SessionId>,
        text: String,
    },
    WithdrawGuidance {
        note: NoteId,
    },
    /// Answers a gate: the option's id, or one of `allow`, `always`, `deny`, `never`.
    AnswerGate {
        gate: GateId,
        option: String,
        message: Option<String>,
    },
    /// Wants the agent to be there, without a prompt yet. Brings a stopped session back.
    Resume {
        ways: Vec<ResumeWay>,
        /// The agent is started anew for each turn: no process is wanted before the next prompt.
        per_turn: bool,
    },
    Migrate {
        agent: Option<String>,
        worker: Option<WorkerId>,
        owner: Option<String>,
        reason: String,
        /// The way in which another agent gets the conversation; absent without a conversation, or for the same agent.
        continuity: Option<Continuity>,
    },
    AddAlias {
        alias: String,
    },
    /// Gives it another title.
    Rename {
        title: String,
    },
    SetAnchors {
        anchors: Vec<String>,
    },
    /// Changes what it may remember. `above` is what the sessions above it may, if there are any.
    SetMemory {
        ask: MemoryAsk,
        above: Option<Box<MemoryPolicy>>,
    },
    /// Sets the session's own model, mode and effort, all of them at once.
    Choose {
        choice: AgentChoice,
    },
    Checkpoint,
    /// A reader has seen the log up to `seq`.
    See {
        by: Actor,
        seq: u64,
    },
    Writer(WriterCommand),
    /// Comments on the session's changes, and files that were viewed.
    Review(ReviewCommand),
    Archive,
    Unarchive,
    Reset {
        reason: Option<String>,
    },
    /// `children` is how many live sessions still name this one as their parent.
    Delete {
        reason: Option<String>,
        children: u64,
    },
}

impl Command {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartTurn { .. } => "start_turn",
            Self::CancelTurn { .. } => "cancel_turn",
            Self::Inbox(command) => command.change.name(),
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::Stop { .. } => "stop",
            Self::WithdrawStop { .. } => "withdraw_stop",
            Self::Guide { .. } => "guide",
            Self::Notify { .. } => "notify",
            Self::WithdrawGuidance { .. } => "withdraw_guidance",
            Self::AnswerGate { .. } => "answer_gate",
            Self::Resume { .. } => "resume",
            Self::Migrate { .. } => "migrate",
            Self::AddAlias { .. } => "add_alias",
            Self::Rename { .. } => "rename",
            Self::SetAnchors { .. } => "set_anchors",
            Self::SetMemory { .. } => "set_memory",
            Self::Choose { .. } => "choose",
            Self::Checkpoint => "checkpoint",
            Self::See { .. } => "see",
            Self::Writer(command) => command.name(),
            Self::Review(command) => command.name(),
            Self::Archive => "archive",
            Self::Unarchive => "unarchive",
            Self::Reset { .. } => "reset",
            Self::Delete { .. } => "delete",
        }
    }
}
