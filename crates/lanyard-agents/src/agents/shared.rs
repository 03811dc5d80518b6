//! What all runners work with, and how they speak to the engine.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::agents::accounts::AccountChoice;
use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::session::{
    AgentOffer, Command, Event, InterruptCause, PromptPart, Receipt, RunEnd, RunEvent, Signal, TurnEvent,
};
use lanyard_core::{Actor, Cause, Outcome, RunId, Session, SessionId, Timestamp};
use lanyard_git::snapshot::CheckpointStore;
use lanyard_store::{Attachments, Filter, Store, StoreError};

use crate::agents::addresses::Addresses;
use crate::agents::engine::{AgentAsk, AgentEngine, AgentRequest, AskFailure};
use crate::agents::exhausted::ExhaustedAccounts;
use crate::agents::offers::KnownOffers;
use crate::agents::runner::process_of;
use crate::runs::Runs;
use crate::terminal::LiveTerminals;
use lanyard_base::clock::Clock;
use lanyard_base::error_chain;
use lanyard_base::live_config::LiveConfig;

/// How long to wait before a journal that could not be written is asked again.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Grace for the processes of a run that no runner looks after.
const UNATTENDED_GRACE: Duration = Duration::from_secs(2);

/// Children of a session that are read at a time.
const FAMILY_PAGE: usize = 500;

pub(super) struct Shared {
    pub(super) engine: Arc<dyn AgentEngine>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<Clock>,
    pub(super) runs: Runs,
    pub(super) settings: LiveConfig,
    /// The programs on terminals that run now.
    pub(super) terminals: LiveTerminals,
    /// Sessions that show a subagent, and the session whose run it is part of.
    pub(super) mirrors: Mutex<HashMap<SessionId, SessionId>>,
    /// Where agents reach MCP servers.
    pub(super) addresses: Addresses,
    /// Where workspaces are kept as they were.
    pub(super) checkpoints: CheckpointStore,
    /// What was attached to messages, beside the journal.
    pub(super) attachments: Arc<Attachments>,
    /// Accounts that have reached their limit.
    pub(super) exhausted: ExhaustedAccounts,
    /// What agents last offered to choose.
    pub(super) offers: KnownOffers,
}

/// What a turn's first event says of its prompt.
pub(super) struct Opened {
    pub(super) prompt: String,
    pub(super) parts: Vec<PromptPart>,
    pub(super) anchors: Vec<String>,
    /// The agent's instructions go before it.
    pub(super) governance: bool,
}

impl Shared {
    /// Tells the engine what was seen. A journal that cannot be written is waited for: nothing an agent did is lost.
    pub(super) async fn tell(
        &self,
        session: SessionId,
        cause: Option<Cause>,
        signals: Vec<Signal>,
    ) -> Result<Outcome, AskFailure> {
        let cause = cause.or_else(|| signals.first().map(|signal| Cause::Signal(signal.name().to_owned())));
        let request = AgentRequest {
            ask: AgentAsk::Tell { session, signals },
            actor: Actor::system("agents"),
            cause,
            once: None,
        };
        self.insist(request).await
    }

    /// Tells one thing that did not come out of the agent's output.
    pub(super) async fn note(&self, session: SessionId, signal: Signal) {
        self.note_all(session, vec![signal]).await;
    }

    /// Signals that become true together.
    pub(super) async fn note_all(&self, session: SessionId, signals: Vec<Signal>) {
        let name = signals.first().map(Signal::name);
        if let Err(error) = self.tell(session, None, signals).await {
            tracing::warn!(%session, %error, signal = name, "a signal was not taken");
        }
    }

    pub(super) async fn command(
        &self,
        session: SessionId,
        command: Command,
        actor: Actor,
        once: Option<String>,
    ) -> Result<Outcome, AskFailure> {
        let cause = Some(Cause::Signal(command.name().to_owned()));
        self.insist(AgentRequest { ask: AgentAsk::Do { session, command }, actor, cause, once }).await
    }

    /// Has the engine look at a session it may not know yet: a subagent at work shares its parent's connection.
    pub(super) async fn look_at(&self, session: SessionId) {
        let (ask, actor) = (AgentAsk::Look { session }, Actor::system("agents"));
        let request = AgentRequest { ask, actor, cause: None, once: None };
        if let Err(error) = self.insist(request).await {
            tracing::warn!(%session, %error, "a subagent could not be looked at after the start");
        }
    }

    pub(super) async fn insist(&self, request: AgentRequest) -> Result<Outcome, AskFailure> {
        loop {
            match self.engine.ask(request.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(AskFailure::NotNow(_)) => tokio::time::sleep(RETRY_AFTER).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// The session as it is on disk. Effects follow commits, so it is at least as new as what made them. A journal that
    /// cannot be read is waited for, as one that cannot be written is.
    pub(super) async fn session(&self, id: SessionId) -> Option<Session> {
        loop {
            match self.on_disk(move |store| store.load(id)).await {
                Ok(loaded) => return loaded.map(|loaded| loaded.session),
                Err(error) => {
                    tracing::error!(session = %id, error, "a session could not be read");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    /// The account for the next prompt of a conversation that is held by an account, or by none yet.
    pub(super) fn account(
        &self,
        agent: &str,
        settings: &AgentSettings,
        held: Option<&str>,
        now: Timestamp,
    ) -> AccountChoice {
        settings.choose_account(held, |account| self.exhausted.until(agent, account, now))
    }

    /// Ends a run that no runner looks after, and tells its session once nothing of it lives.
    pub(super) async fn end_unattended(&self, session: SessionId, run: RunId, cause: Option<InterruptCause>) {
        let name = run.to_string();
        let processes = match self.runs.sweep(&name, UNATTENDED_GRACE).await {
            Ok(ended) => ended.iter().map(process_of).collect(),
            // Without a folder nothing of it was ever started, or all of it is gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::error!(%session, %run, %error, "a run nobody looks after could not be ended");
                return;
            }
        };
        let (how, reason) = (RunEnd::Lost, Some("nobody looked after it".to_owned()));
        let receipt = Receipt { processes, ..Receipt::default() };
        self.note(session, Signal::RunEnded { run, how, cause, reason, receipt }).await;
        let _ = self.runs.forget(&name);
    }

    /// The words a turn began with.
    pub(super) async fn prompt(&self, session: SessionId, seq: u64) -> Option<Opened> {
        let page = self.on_disk(move |store| store.events(session, seq.saturating_sub(1), 1)).await.ok()?;
        let body = page.events.into_iter().next()?.body.ok()?;
        let envelope: lanyard_core::session::Envelope = serde_json::from_slice(&body).ok()?;
        match envelope.event {
            Event::Turn(TurnEvent::Started { prompt, parts, anchors, governance, .. }) => {
                Some(Opened { prompt, parts, anchors, governance })
            }
            Event::Turn(_)
            | Event::Inbox(_)
            | Event::Change(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Transcript(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => None,
        }
    }

    /// What the agent of a session last offered.
    pub(super) async fn offer(&self, session: &Session) -> AgentOffer {
        let (Some(mark), id) = (&session.offered, session.id) else { return AgentOffer::default() };
        let seq = mark.seq;
        let page = self.on_disk(move |store| store.events(id, seq.saturating_sub(1), 1)).await;
        let body = page.ok().and_then(|page| page.events.into_iter().next()?.body.ok());
        let envelope =
            body.and_then(|body| serde_json::from_slice::<lanyard_core::session::Envelope>(&body).ok());
        match envelope.map(|envelope| envelope.event) {
            Some(Event::Run(RunEvent::Offered(offer))) => *offer,
            Some(_) | None => AgentOffer::default(),
        }
    }

    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || read(&*store))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error_chain(&error))
    }

    /// The sessions that show the subagents of a run, theirs included; parents before children.
    pub(super) async fn mirrors_of(&self, session: SessionId, run: RunId) -> Vec<Session> {
        let mut found: Vec<Session> = Vec::new();
        let mut parents = vec![session];
        while let Some(parent) = parents.pop() {
            let filter = Filter { parent: Some(parent), ..Filter::default() };
            let mut cursor = None;
            loop {
                let (filter, from) = (filter.clone(), cursor.take());
                let page = self.on_disk(move |store| store.list(&filter, from.as_ref(), FAMILY_PAGE)).await;
                let Ok(page) = page else { break };
                for row in page.rows {
                    let child = self.session(row.id).await;
                    let child = child.filter(|child| {
                        child.run.as_ref().is_some_and(|held| held.mirrored && held.id == run)
                    });
                    parents.extend(child.as_ref().map(|child| child.id));
                    found.extend(child);
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        found
    }

    pub(super) fn mirror(&self, session: SessionId, of: SessionId) {
        self.mirrors.lock().insert(session, of);
    }

    pub(super) fn unmirror(&self, of: SessionId) {
        self.mirrors.lock().retain(|_, held| *held != of);
    }

    /// The session has an agent of its own from now on.
    pub(super) fn unmirror_one(&self, session: SessionId) {
        self.mirrors.lock().remove(&session);
    }

    pub(super) fn mirrored(&self) -> Vec<SessionId> {
        self.mirrors.lock().keys().copied().collect()
    }

    /// The session whose runner looks after this one.
    pub(super) fn owner_of(&self, session: SessionId) -> SessionId {
        let mirrors = self.mirrors.lock();
        mirrors.get(&session).copied().unwrap_or(session)
    }

    pub(super) fn mint_run(&self) -> RunId {
        RunId::mint(self.clock.now(), self.clock.random())
    }
}

/// The name of something that happens once in a run, also when it is asked for again after a crash.
pub(super) fn once(run: RunId, what: &str) -> String {
    format!("{run}\0{what}")
}
