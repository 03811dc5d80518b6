//! The inbox: messages that wait for their turn, how each wants to arrive, and what holds them back. A message that
//! waits is a turn to be; its id is the one it will run as.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{NoteId, TurnId};
use crate::memory::MemoryAsk;
use crate::session::choice::AgentChoice;
use crate::session::part::PromptPart;
use crate::session::record::{Session, is_default};
use crate::session::review::PlacedComment;
use crate::session::stop::StopScope;
use crate::time::Timestamp;

/// The delivery of a message during a running turn. Without a running turn, each of them starts one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Refuse the message.
    #[default]
    Reject,
    /// After the turn, and after what waits already.
    Queue,
    /// Into the running turn; if the agent cannot be told in time, as the next turn.
    Steer,
    /// In place of the running turn, which is cancelled.
    Interrupt,
}

impl Delivery {
    pub const ALL: [Self; 4] = [Self::Reject, Self::Queue, Self::Steer, Self::Interrupt];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }

    /// Order of delivery: interrupting messages, then those meant for the turn that has just ended, then the queue.
    const fn rank(self) -> u8 {
        match self {
            Self::Interrupt => 0,
            Self::Steer => 1,
            Self::Queue | Self::Reject => 2,
        }
    }
}

/// The way in which a waiting message is moved forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Promotion {
    /// Before all that wait.
    #[default]
    Front,
    /// Into the running turn.
    Steer,
    /// In place of the running turn.
    Interrupt,
}

impl Promotion {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }
}

/// The reason why the inbox starts no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// The turn before was interrupted.
    Interrupted,
    /// The turn before failed, or its agent was lost.
    Failed,
    /// The pause was requested.
    Asked,
    /// All work is halted. The inbox goes on when the halt is lifted.
    Halted,
    /// A budget is spent. The inbox goes on when there is something left again.
    BudgetSpent,
}

impl PauseReason {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Asked => "asked",
            Self::Halted => "halted",
            Self::BudgetSpent => "budget_spent",
        }
    }
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedTurn {
    /// The turn it will run as.
    pub turn: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    pub prompt: String,
    /// What is attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PromptPart>,
    pub delivery: Delivery,
    /// The sender.
    pub actor: Actor,
    pub at: Timestamp,
    /// The note by which it is on its way into the running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteId>,
    /// The memory policy of its turn, where it allows less than the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryAsk>,
    /// The model, mode and effort for its turn alone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub choice: AgentChoice,
    /// An operator lets its turn begin although a budget is spent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

/// A message as it comes in. Both ids were minted before; the note is used only when it is steered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub turn: TurnId,
    pub note: NoteId,
    pub client_turn_id: Option<String>,
    pub prompt: String,
    pub parts: Vec<PromptPart>,
    pub delivery: Delivery,
    /// The memory policy of its turn; the session's when absent.
    pub memory: Option<MemoryAsk>,
    /// The model, mode and effort for its turn alone.
    pub choice: AgentChoice,
    /// Lanyard takes the conversation over from the agent's own host, where it has one.
    pub take_over: bool,
    /// Comments of the review that are sent with it. The prompt is then the operator's own words before them, which
    /// may be empty.
    pub review: Option<Vec<PlacedComment>>,
    /// Its turn begins although a budget is spent.
    pub forced: bool,
}

/// A change of the inbox by the holder of the writer's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxCommand {
    /// The epoch of the lease the sender writes under.
    pub writer_epoch: Option<u64>,
    pub change: InboxChange,
}

impl From<InboxChange> for InboxCommand {
    fn from(change: InboxChange) -> Self {
        Self { writer_epoch: None, change }
    }
}

/// The changes of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxChange {
    /// A message comes in; with nothing running it starts a turn.
    Send(Box<Message>),
    Edit {
        turn: TurnId,
        prompt: Option<String>,
        delivery: Option<Delivery>,
        note: NoteId,
    },
    Withdraw {
        turn: TurnId,
        reason: Option<String>,
    },
    /// The new order: all that wait, each once.
    Order {
        turns: Vec<TurnId>,
    },
    Promote {
        turn: TurnId,
        to: Promotion,
        note: NoteId,
    },
    Pause,
    /// Lets the inbox go on, and starts its first message when nothing is running.
    Go,
}

impl InboxChange {
    /// The message it is about; nothing where it is about all of them.
    #[must_use]
    pub const fn turn(&self) -> Option<TurnId> {
        match self {
            Self::Send(message) => Some(message.turn),
            Self::Edit { turn, .. } | Self::Withdraw { turn, .. } | Self::Promote { turn, .. } => Some(*turn),
            Self::Order { .. } | Self::Pause | Self::Go => None,
        }
    }

    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Send(_) => "start_turn",
            Self::Edit { .. } => "edit_turn",
            Self::Withdraw { .. } => "withdraw_turn",
            Self::Order { .. } => "order_inbox",
            Self::Promote { .. } => "promote_turn",
            Self::Pause => "pause_inbox",
            Self::Go => "resume_inbox",
        }
    }
}

impl Session {
    /// Bytes of the words that wait.
    #[must_use]
    pub fn inbox_bytes(&self) -> usize {
        self.inbox.iter().map(|waiting| waiting.prompt.len()).sum()
    }

    /// A message that waits.
    #[must_use]
    pub fn waiting(&self, turn: TurnId) -> Option<&QueuedTurn> {
        self.inbox.iter().find(|waiting| waiting.turn == turn)
    }

    /// Whether a stop is pending that ends the session, and with it what waits.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.scope != StopScope::Turn)
    }
}

/// The position of a message with this delivery: behind those of the same kind.
pub(super) fn place(inbox: &[QueuedTurn], delivery: Delivery) -> usize {
    let behind = inbox.iter().take_while(|waiting| waiting.delivery.rank() <= delivery.rank());
    if delivery.rank() == Delivery::Queue.rank() { inbox.len() } else { behind.count() }
}
