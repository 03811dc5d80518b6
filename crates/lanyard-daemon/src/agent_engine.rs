//! The engine for the agents' runners: their requests become the engine's, and what they show and raise goes to the hub and
//! to the notifications.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use lanyard_base::live_config::LiveConfig;
use lanyard_core::budget::BudgetLine;
use lanyard_core::notification::NewNotification;
use lanyard_core::redact::Redactor;
use lanyard_core::{Actor, Outcome, SessionId};

use crate::budgets::BudgetTeller;
use crate::notifications::NotificationHandle;
use lanyard_agents::agents::engine::{AgentAsk, AgentEngine, AgentRequest, AskFailure, LiveText};
use lanyard_engine::engine::{Ask, AskError, Engine, Key, Request};
use lanyard_engine::hub::{Hub, Preview};

/// What runners reach of the daemon.
pub(crate) struct EngineOfAgents {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<Hub>,
    pub(crate) notifications: NotificationHandle,
    pub(crate) live: LiveConfig,
    pub(crate) budgets: Arc<BudgetTeller>,
}

impl AgentEngine for EngineOfAgents {
    fn ask(&self, request: AgentRequest) -> BoxFuture<'_, Result<Outcome, AskFailure>> {
        Box::pin(async move {
            let asked = self.engine.ask(request_of(request)).await;
            asked.map(|reply| reply.outcome).map_err(|error| failure_of(&error))
        })
    }

    fn is_halted(&self) -> bool {
        self.engine.halting.is_on()
    }

    fn budget_spent(&self, session: SessionId) -> BoxFuture<'_, Option<BudgetLine>> {
        Box::pin(async move {
            let rules = self.live.rules().budgets;
            if !rules.limits_sessions() {
                return None;
            }
            let ask = Ask::Measure { session };
            let request = Request { ask, actor: Actor::system("agents"), cause: None, keys: Vec::new() };
            // Without an answer the next report asks again.
            let status = *self.engine.ask(request).await.ok()?.budget?;
            let spent = status.lines.iter().find(|line| line.is_spent()).copied();
            let forced = status.forced;
            let (teller, percent) = (self.budgets.clone(), rules.warn_percent);
            let told = tokio::task::spawn_blocking(move || teller.tell(&status, percent)).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::warn!(%session, "people could not be told of a budget");
            }
            spent.filter(|_| !forced)
        })
    }

    fn answer_is_due(&self, session: SessionId) -> bool {
        self.engine.flags.answer_is_due(session)
    }

    fn may_be_told(&self, session: SessionId) -> bool {
        self.engine.flags.may_be_told(session)
    }

    fn preview(&self, session: SessionId, text: LiveText<'_>) {
        let LiveText { kind, text, message_id, turn } = text;
        self.hub.preview(session, &Preview { kind, text, message_id, turn });
    }

    fn redactor(&self) -> Option<Arc<Redactor>> {
        self.hub.redaction.redactor()
    }

    fn notify(&self, new: NewNotification) {
        let notifications = self.notifications.clone();
        tokio::spawn(async move {
            let kind = new.kind;
            if let Err(error) = notifications.aside(move |all| all.raise(new)).await {
                tracing::warn!(kind = kind.as_str(), %error, "a notification could not be raised");
            }
        });
    }
}

fn request_of(request: AgentRequest) -> Request {
    let AgentRequest { ask, actor, cause, once } = request;
    let ask = match ask {
        AgentAsk::Tell { session, signals } => Ask::Tell { session, signals },
        AgentAsk::Do { session, command } => Ask::Do { session, command },
        AgentAsk::Create { id, new, parent } => Ask::Create { id, new, parent: Some(parent) },
        AgentAsk::Look { session } => Ask::Nudge { session },
    };
    Request { ask, actor, cause, keys: once.as_deref().map(Key::once).into_iter().collect() }
}

fn failure_of(error: &AskError) -> AskFailure {
    match error {
        AskError::Unavailable(_) | AskError::Overloaded => AskFailure::NotNow(error.to_string()),
        AskError::AliasTaken(_) | AskError::AliasReserved(_) => AskFailure::Alias(error.to_string()),
        AskError::Closing => AskFailure::Closing,
        AskError::Unknown(_)
        | AskError::Deleted(_)
        | AskError::Damaged { .. }
        | AskError::KeyConflict
        | AskError::Defect(_)
        | AskError::Refused(_) => AskFailure::Refused(error.to_string()),
    }
}
