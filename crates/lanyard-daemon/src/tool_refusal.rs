//! What a tool says when it does not do what it was asked to: a stable code, what happened, what to do. A result and not
//! a protocol error, so that the model gets to read it.

use lanyard_core::{SessionId, paper};
use lanyard_store::StoreError;
use serde_json::{Value, json};

use crate::refusal::{Refuses, refuses};
use lanyard_base::error_chain;

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
        paper::PaperRefusal::Missing { field }.into()
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

refuses!(paper::PaperRefusal);

impl<E: Refuses> From<E> for Refused {
    fn from(refusal: E) -> Self {
        Self::new(refusal.code(), refusal.sentence(), refusal.tool_advice())
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let what = format!("the journal cannot be read or written: {}", error_chain(&error));
        Self::new("storage_unavailable", what, "nothing was changed; try again in a moment")
    }
}
