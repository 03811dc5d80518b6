//! The engine as the desk and its runners need it: they report what was seen, have commands carried out, and ask what the
//! daemon knows of a session's tool calls. Whatever implements it must answer a request only when its outcome is on disk.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use lanyard_core::budget::BudgetLine;
use lanyard_core::notification::NewNotification;
use lanyard_core::redact::Redactor;
use lanyard_core::session::{Command, NewSession, Signal};
use lanyard_core::{Actor, Cause, Outcome, SessionId, TurnId};

/// A request for the engine.
#[derive(Debug, Clone)]
pub struct AgentRequest {
    pub ask: AgentAsk,
    pub actor: Actor,
    pub cause: Option<Cause>,
    /// What happens once under this name, also when it is asked for again after a crash.
    pub once: Option<String>,
}

#[derive(Debug, Clone)]
pub enum AgentAsk {
    /// Signals that become true together.
    Tell {
        session: SessionId,
        signals: Vec<Signal>,
    },
    Do {
        session: SessionId,
        command: Command,
    },
    /// A session that shows a subagent.
    Create {
        id: SessionId,
        new: Box<NewSession>,
        parent: SessionId,
    },
    /// Have the engine look at a session that it may not know yet.
    Look {
        session: SessionId,
    },
}

/// Why a request has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskFailure {
    /// Nothing can be written at the moment; the same request may succeed later.
    #[error("{0}")]
    NotNow(String),
    /// An alias of the new session cannot be used.
    #[error("{0}")]
    Alias(String),
    #[error("the daemon is shutting down")]
    Closing,
    #[error("{0}")]
    Refused(String),
}

pub trait AgentEngine: Send + Sync {
    fn ask(&self, request: AgentRequest) -> BoxFuture<'_, Result<Outcome, AskFailure>>;

    /// Whether all work is halted, so that no agent may be started.
    fn is_halted(&self) -> bool;

    /// The spent budget of the session, of its family or of the day by which its turn is to end, and nothing while there is
    /// something left. People are told of budgets that come near their limit.
    fn budget_spent(&self, session: SessionId) -> BoxFuture<'_, Option<BudgetLine>>;

    /// Whether a call of the session is being carried out whose answer can carry words to the agent.
    fn answer_is_due(&self, session: SessionId) -> bool;

    /// Whether the answer to a call of the session may still tell its agent of a stop.
    fn may_be_told(&self, session: SessionId) -> bool;

    /// Shows text that is still being written to attached readers.
    fn preview(&self, session: SessionId, text: LiveText<'_>);

    /// Finds secrets, so that no text is cut in the middle of one.
    fn redactor(&self) -> Option<Arc<Redactor>>;

    /// Raises a notification without waiting for it to be written.
    fn notify(&self, new: NewNotification);
}

/// Text that is still being written.
#[derive(Debug, Clone, Copy)]
pub struct LiveText<'a> {
    /// `message` or `thought`.
    pub kind: &'static str,
    pub text: &'a str,
    pub message_id: Option<&'a str>,
    pub turn: Option<TurnId>,
}
