//! Events of waiting messages, and of their delivery to the agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{NoteId, TurnId};
use crate::memory::MemoryAsk;
use crate::session::choice::AgentChoice;
use crate::session::inbox::{Delivery, PauseReason, Promotion};
use crate::session::part::PromptPart;
use crate::session::record::is_default;

/// Events of waiting messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum InboxEvent {
    /// Admitted, and not seen by the agent yet.
    #[serde(rename = "turn.queued")]
    Queued {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_turn_id: Option<String>,
        prompt: String,
        /// What is attached to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
        prompt_hash: String,
        delivery: Delivery,
        /// The note by which it goes into the running turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteId>,
        /// The memory policy of its turn, where it allows less than the session's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<MemoryAsk>,
        /// The model, mode and effort for its turn alone.
        #[serde(default, skip_serializing_if = "is_default")]
        choice: AgentChoice,
        /// An operator lets its turn begin although a budget is spent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        forced: bool,
    },
    #[serde(rename = "turn.edited")]
    Edited {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_hash: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delivery: Option<Delivery>,
        /// The note by which it goes into the running turn from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteId>,
    },
    /// The message was withdrawn and will not run.
    #[serde(rename = "turn.withdrawn")]
    Withdrawn {
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    #[serde(rename = "turn.promoted")]
    Promoted {
        turn: TurnId,
        to: Promotion,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NoteId>,
    },
    /// The agent has the running turn's prompt. A turn that is lost after this may have done anything.
    #[serde(rename = "turn.delivered")]
    Delivered { turn: TurnId },
    /// The message went into the running turn and is no turn of its own any more.
    #[serde(rename = "turn.steered")]
    Steered { turn: TurnId, into: TurnId, channel: String },
    #[serde(rename = "inbox.reordered")]
    Reordered { turns: Vec<TurnId> },
    #[serde(rename = "inbox.paused")]
    Paused { reason: PauseReason },
    #[serde(rename = "inbox.resumed")]
    Resumed {},
}
