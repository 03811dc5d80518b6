//! What a tool says when it does not do what it was asked to: a stable code, what happened, what to do. A result and not
//! a protocol error, so that the model gets to read it.

use lanyard_core::{SessionId, paper};
use lanyard_store::StoreError;
use serde_json::{Value, json};

use crate::engine::{AskError, error_chain};
use crate::families::FamilyError;
use crate::memory::MemoryError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: &'static str,
    what: String,
    advice: String,
}

impl Refused {
    pub(crate) fn new(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn missing(field: &'static str) -> Self {
        paper::Refusal::Missing { field }.into()
    }

    pub(crate) fn no_session() -> Self {
        Self::new(
            "session_required",
            "this is something a session does, and the call belongs to none",
            "use the address and token of a session: `lanyard mcp url lanyard`",
        )
    }

    pub(crate) fn no_such_session(what: impl std::fmt::Display) -> Self {
        let what = format!("there is no session {what}");
        Self::new("session_not_found", what, "list those you can see with memory_agent, action list")
    }

    pub(crate) fn not_yours(session: SessionId) -> Self {
        Self::new(
            "not_your_session",
            format!("session {session} is neither yours nor below you, nor in your workspace and plan"),
            "name your own session, one you spawned, or one of memory_agent, action list",
        )
    }

    /// Code, what happened, what to do.
    pub(crate) fn parts(self) -> (&'static str, String, String) {
        (self.code, self.what, self.advice)
    }

    pub(crate) fn shown(&self) -> Value {
        let text = format!("refused: {} [{}]\ntry: {}", self.what, self.code, self.advice);
        json!({ "content": [{ "type": "text", "text": text }], "isError": true })
    }
}

impl From<paper::Refusal> for Refused {
    fn from(refusal: paper::Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string(), refusal.advice())
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let what = format!("the journal cannot be read or written: {}", error_chain(&error));
        Self::new("storage_unavailable", what, "nothing was changed; try again in a moment")
    }
}

impl From<MemoryError> for Refused {
    fn from(error: MemoryError) -> Self {
        let (code, what, advice) = (error.code(), error.to_string(), error.advice());
        match error {
            MemoryError::Ask(error) => error.into(),
            MemoryError::NoEntry(_) => {
                Self::new(code, what, "list the names with action list, or name another scope")
            }
            MemoryError::Refused(_)
            | MemoryError::SwitchedOff
            | MemoryError::Full { .. }
            | MemoryError::Moved { .. }
            | MemoryError::Busy
            | MemoryError::NoSession(_)
            | MemoryError::Deleted(_)
            | MemoryError::Store(_) => Self::new(code, what, advice),
        }
    }
}

impl From<AskError> for Refused {
    fn from(error: AskError) -> Self {
        let what = error.to_string();
        match &error {
            AskError::Refused(refusal) => Self::new(refusal.code(), what, refusal.advice()),
            AskError::Unknown(session) => Self::no_such_session(session),
            AskError::Deleted(_) => Self::new("session_deleted", what, "name another session"),
            AskError::Damaged { .. } => Self::new("session_damaged", what, "name another session"),
            AskError::AliasTaken(_) => Self::new("alias_taken", what, "choose another alias"),
            AskError::AliasReserved(_) => Self::new("alias_reserved", what, "choose another alias"),
            AskError::KeyConflict => Self::new("idempotency_conflict", what, "use another key"),
            AskError::Unavailable(_) => Self::new("storage_unavailable", what, "try again in a moment"),
            AskError::Overloaded => Self::new("overloaded", what, "try again in a moment"),
            AskError::Closing => Self::new("daemon_closing", what, "try again once it runs again"),
            AskError::Defect(_) => Self::new("defect", what, "nothing was changed; tell the user"),
        }
    }
}

impl From<FamilyError> for Refused {
    fn from(error: FamilyError) -> Self {
        let what = error.to_string();
        match error {
            FamilyError::Task(refusal) => Self::new(refusal.code(), what, refusal.advice()),
            FamilyError::Refused { code, advice, .. } => Self::new(code, what, advice),
            FamilyError::Ask(error) => error.into(),
            FamilyError::NoTask(_) => Self::new("task_not_found", what, "list yours with tasks, action list"),
            FamilyError::NoPlan(_) => Self::new("plan_not_found", what, "list the plans with memory_plan"),
            FamilyError::NoMail(_) => {
                Self::new("mail_not_found", what, "list yours with tasks, action mailbox")
            }
            FamilyError::Forged => Self::new("run_token_bad", what, "use the token of your own run"),
            FamilyError::Unavailable(_) => Self::new("storage_unavailable", what, "try again in a moment"),
            FamilyError::Closing => Self::new("daemon_closing", what, "try again once it runs again"),
        }
    }
}
