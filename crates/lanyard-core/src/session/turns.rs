//! One row per turn, made from the log alone. A repeated message gets its answer from it, long after the turn left the
//! record. A step is the part of one event that concerns one turn; a row is the sum of its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
use crate::memory::MemoryPolicy;
use crate::session::event::{Envelope, Event, InboxEvent, TurnEvent, TurnOutcome};
use crate::session::inbox::Delivery;
use crate::session::part::{PromptPart, with_labels};
use crate::session::state::InterruptCause;
use crate::text::cut;
use crate::time::Timestamp;

/// Characters of a prompt that its row shows.
const PREVIEW_CHARS: usize = 120;

/// The status of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The message waits in the inbox.
    Queued,
    Running,
    Completed,
    Failed,
    /// The agent refused it.
    Refused,
    /// The turn was cancelled.
    Cancelled,
    /// The turn was cut off: time or budget was used up, or the agent was lost before it had the prompt.
    Interrupted,
    /// The agent had the prompt and was lost; its actions are unknown.
    Uncertain,
    /// The message was withdrawn from the inbox and never ran.
    Withdrawn,
    /// The message went into another turn.
    Steered,
}

impl TurnStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Uncertain => "uncertain",
            Self::Withdrawn => "withdrawn",
            Self::Steered => "steered",
        }
    }

    /// Whether the turn is still to come or under way.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }

    /// Whether it may be run once more when somebody asks for that: it did not do all of its work.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        match self {
            Self::Failed
            | Self::Refused
            | Self::Cancelled
            | Self::Interrupted
            | Self::Uncertain
            | Self::Withdrawn => true,
            Self::Queued | Self::Running | Self::Completed | Self::Steered => false,
        }
    }
}

/// The result of a sent message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnResult {
    /// The turn has begun.
    Accepted,
    /// The message waits in the inbox.
    Queued,
    /// The message is being delivered into the running turn.
    Steered,
    /// The running turn was asked to end; it runs as soon as that has really ended.
    Interrupting,
    /// A repeat of a message whose turn is not over.
    TurnInProgress,
    /// A repeat of a message whose turn is over: nothing runs again.
    DuplicateTurnIgnored,
}

impl TurnResult {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Queued => "queued",
            Self::Steered => "steered",
            Self::Interrupting => "interrupting",
            Self::TurnInProgress => "turn_in_progress",
            Self::DuplicateTurnIgnored => "duplicate_turn_ignored",
        }
    }

    /// The answer to a repeat.
    #[must_use]
    pub const fn again(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Queued => Self::Queued,
            TurnStatus::Running => Self::TurnInProgress,
            TurnStatus::Completed
            | TurnStatus::Failed
            | TurnStatus::Refused
            | TurnStatus::Cancelled
            | TurnStatus::Interrupted
            | TurnStatus::Uncertain
            | TurnStatus::Withdrawn
            | TurnStatus::Steered => Self::DuplicateTurnIgnored,
        }
    }
}

/// A turn as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRow {
    pub turn: TurnId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    pub status: TurnStatus,
    /// The beginning of its prompt.
    pub prompt_preview: String,
    pub prompt_hash: String,
    #[serde(default)]
    pub delivery: Delivery,
    /// Position of its first event in the log: queued or, if it never waited, started.
    pub first_seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Time at which the agent received the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The turn its words went into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steered_into: Option<TurnId>,
    /// The memory policy of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPolicy>,
}

/// The part of one event that concerns one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStep {
    pub session: SessionId,
    pub turn: TurnId,
    seq: u64,
    at: Timestamp,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Queued(Words),
    Started(Words, Option<MemoryPolicy>),
    Edited { words: Option<(String, String)>, delivery: Option<Delivery> },
    Delivered,
    Ended { status: TurnStatus, reason: Option<String>, into: Option<TurnId> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    client_turn_id: Option<String>,
    preview: String,
    hash: String,
    delivery: Delivery,
}

impl TurnStep {
    /// The step an event is, if it is one.
    #[must_use]
    pub fn of(envelope: &Envelope) -> Option<Self> {
        let (turn, what) = match &envelope.event {
            Event::Turn(event) => turn_step(event)?,
            Event::Inbox(event) => inbox_step(event)?,
            Event::Change(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => return None,
        };
        Some(Self { session: envelope.session, turn, seq: envelope.seq, at: envelope.at, what })
    }

    /// The row after this step; nothing where the log is damaged and the turn's beginning is not known.
    #[must_use]
    pub fn onto(&self, row: Option<TurnRow>) -> Option<TurnRow> {
        let mut row = match (row, &self.what) {
            (Some(row), _) => row,
            (None, What::Queued(words) | What::Started(words, _)) => self.fresh(words),
            (None, What::Edited { .. } | What::Delivered | What::Ended { .. }) => return None,
        };
        match &self.what {
            What::Queued(_) => {
                row.status = TurnStatus::Queued;
                row.queued_at = Some(self.at);
            }
            What::Started(words, memory) => {
                row.status = TurnStatus::Running;
                row.memory.clone_from(memory);
                row.delivery = words.delivery;
                row.started_seq = Some(self.seq);
                row.started_at = Some(self.at);
            }
            What::Edited { words, delivery } => {
                if let Some((preview, hash)) = words {
                    row.prompt_preview.clone_from(preview);
                    row.prompt_hash.clone_from(hash);
                }
                row.delivery = delivery.unwrap_or(row.delivery);
            }
            What::Delivered => row.delivered_at = Some(self.at),
            What::Ended { status, reason, into } => {
                row.status = *status;
                row.reason.clone_from(reason);
                row.steered_into = *into;
                row.ended_seq = Some(self.seq);
                row.ended_at = Some(self.at);
            }
        }
        Some(row)
    }

    fn fresh(&self, words: &Words) -> TurnRow {
        TurnRow {
            turn: self.turn,
            client_turn_id: words.client_turn_id.clone(),
            status: TurnStatus::Queued,
            prompt_preview: words.preview.clone(),
            prompt_hash: words.hash.clone(),
            delivery: words.delivery,
            first_seq: self.seq,
            started_seq: None,
            ended_seq: None,
            queued_at: None,
            started_at: None,
            delivered_at: None,
            ended_at: None,
            reason: None,
            steered_into: None,
            memory: None,
        }
    }
}

fn words(
    client: Option<&String>,
    (prompt, parts): (&str, &[PromptPart]),
    hash: &str,
    delivery: Delivery,
) -> Words {
    let (client_turn_id, hash) = (client.cloned(), hash.to_owned());
    Words { client_turn_id, preview: preview(&with_labels(prompt, parts)), hash, delivery }
}

fn preview(prompt: &str) -> String {
    cut(prompt, PREVIEW_CHARS).0.to_owned()
}

fn turn_step(event: &TurnEvent) -> Option<(TurnId, What)> {
    match event {
        TurnEvent::Started { turn, client_turn_id, prompt, parts, prompt_hash, delivery, memory, .. } => {
            let words = words(client_turn_id.as_ref(), (prompt, parts), prompt_hash, *delivery);
            Some((*turn, What::Started(words, memory.clone())))
        }
        TurnEvent::CancelRequested { .. } | TurnEvent::Waiting { .. } | TurnEvent::Continued { .. } => None,
        TurnEvent::Finished { turn, outcome, reason, .. } => {
            let status = match outcome {
                TurnOutcome::Completed => TurnStatus::Completed,
                TurnOutcome::Failed => TurnStatus::Failed,
                TurnOutcome::Refused => TurnStatus::Refused,
            };
            Some((*turn, What::Ended { status, reason: reason.clone(), into: None }))
        }
        TurnEvent::Interrupted { turn, cause, reason, uncertain, .. } => {
            let status = match cause {
                _ if *uncertain => TurnStatus::Uncertain,
                InterruptCause::User => TurnStatus::Cancelled,
                InterruptCause::Crash
                | InterruptCause::HostLost
                | InterruptCause::Timeout
                | InterruptCause::Limit => TurnStatus::Interrupted,
            };
            Some((*turn, What::Ended { status, reason: reason.clone(), into: None }))
        }
    }
}

fn inbox_step(event: &InboxEvent) -> Option<(TurnId, What)> {
    match event {
        InboxEvent::Queued { turn, client_turn_id, prompt, parts, prompt_hash, delivery, .. } => {
            let words = words(client_turn_id.as_ref(), (prompt, parts), prompt_hash, *delivery);
            Some((*turn, What::Queued(words)))
        }
        InboxEvent::Edited { turn, prompt, prompt_hash, delivery, .. } => {
            let words = prompt.as_deref().map(preview).zip(prompt_hash.clone());
            Some((*turn, What::Edited { words, delivery: *delivery }))
        }
        InboxEvent::Withdrawn { turn, reason } => {
            let status = TurnStatus::Withdrawn;
            Some((*turn, What::Ended { status, reason: reason.clone(), into: None }))
        }
        InboxEvent::Steered { turn, into, .. } => {
            let status = TurnStatus::Steered;
            Some((*turn, What::Ended { status, reason: None, into: Some(*into) }))
        }
        InboxEvent::Delivered { turn } => Some((*turn, What::Delivered)),
        InboxEvent::Promoted { .. }
        | InboxEvent::Reordered { .. }
        | InboxEvent::Paused { .. }
        | InboxEvent::Resumed {} => None,
    }
}
