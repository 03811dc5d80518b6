//! Turns and the inbox, as the API speaks of them.

use lanyard_core::memory::MemoryAsk;
use lanyard_core::session::{
    AgentChoice, Delivery, PauseReason, Promotion, QueuedTurn, TurnResult, TurnRow, TurnStatus,
};
use lanyard_core::{Outcome, RunId, SessionId, TurnId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::attachments::NewPart;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTurn {
    /// Its text, which may be empty where something is attached.
    pub prompt: String,
    /// What is attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<NewPart>,
    /// The client's own name for this turn: the same id and prompt again is the same turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    /// How it wants to arrive when a turn is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Run once more what failed, was cancelled or was lost; only with a `client_turn_id`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The epoch of the lease it is written under; the header `Lanyard-Writer` does as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
    /// What may be remembered in this turn, where that is to be less than the session may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryAsk>,
    /// The model, mode and effort for this turn alone, by the agent's own ids.
    #[serde(default, skip_serializing_if = "AgentChoice::is_empty")]
    pub choice: AgentChoice,
    /// Let Lanyard take the conversation over from the agent's own host: the turn resumes it by the agent's own id, in
    /// a run of Lanyard's. Without it a turn for such a session is refused with `session_host_run`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Begin the turn although a budget is spent, as an operator may. The budgets of the session, its family and the day
    /// do not end it; that of a turn does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
}

/// What became of a message. A repeat gets the outcome of the first time, and the turn's status as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnReceipt {
    #[serde(flatten)]
    pub outcome: Outcome,
    pub result: TurnResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_turn_id: Option<String>,
    pub turn_status: TurnStatus,
    pub log: LogRange,
}

/// Where in the log the events of a turn are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogRange {
    /// They come after this position.
    pub after: u64,
    /// The turn's end; nothing while it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TurnList {
    pub turns: Vec<TurnRow>,
    /// Give it back as `cursor` for older ones; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InboxView {
    /// The next one first.
    pub turns: Vec<QueuedTurn>,
    /// The reason why the inbox starts no turn.
    pub paused: Option<PauseReason>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InboxEdit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboxOrder {
    /// All messages that wait, each once, the next one first.
    pub turns: Vec<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InboxPromotion {
    #[serde(rename = "as")]
    pub to: Promotion,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer_epoch: Option<u64>,
}

/// The answer to a cancel: asked for, not yet confirmed. `turn.interrupted` in the log confirms it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CancelReceipt {
    #[serde(flatten)]
    pub outcome: Outcome,
    pub cancel_requested: CancelRequested,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelRequested {
    pub session: SessionId,
    pub turn: Option<TurnId>,
    /// The run that is at work on it; nothing while none is.
    pub run: Option<RunId>,
    pub reason: Option<String>,
}
