//! The keeper: forgets what its tags say is over, makes summaries of sessions that ended, and vectors of what has none. It
//! remembers nothing itself: each time it looks at what there is and does what is due, so a kill loses nothing.

use std::sync::Arc;
use std::time::Duration;

use lanyard_api::config::{MemorySwitch, SummaryMode};
use lanyard_core::memory::summary::{self, Summary};
use lanyard_core::memory::{MemoryScope, Retention, Source};
use lanyard_core::session::StateName;
use lanyard_core::{Actor, MemoryId, SessionId};
use lanyard_store::{Filter, MemoryFilter, Store, StoreError};

use crate::memory::policy::on_disk;
use crate::memory::{MemoryContext, MemoryError, Wish, ledger, write};
use lanyard_engine::hub::{Changes, Of};

const TICK: Duration = Duration::from_secs(10);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_TICK: Duration = Duration::from_millis(20);
/// Entries forgotten at a time, and sessions looked at.
const SWEEP_MAX: usize = 256;
/// Sessions that ended, looked at after a start, of each way to end: one is missed only by a daemon that was killed.
const ENDED_MAX: usize = 64;
/// Events of a log that are read at a time, and in all.
const PAGE: usize = 1_000;
const EVENTS_MAX: u64 = 200_000;
/// Texts sent to the embeddings endpoint at a time.
const TEXTS_MAX: usize = 32;

pub(crate) struct Keeper {
    pub(crate) context: Arc<MemoryContext>,
    ends: Changes,
}

impl Keeper {
    /// From here on no end of a session is missed.
    pub(crate) fn new(context: Arc<MemoryContext>) -> Self {
        let ends = context.hub.changes(Of::Ends);
        Self { context, ends }
    }

    /// Runs until the daemon ends.
    pub(crate) async fn run(self) {
        if self.context.memory.switch == MemorySwitch::Off {
            return;
        }
        self.catch_up().await;
        let period = if self.context.clock.is_scripted() { SCRIPTED_TICK } else { TICK };
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    note("sweep", sweep(&self.context).await);
                    note("make vectors", vectors(&self.context).await);
                }
                () = self.context.memory.fresh.notified() => note("make vectors", vectors(&self.context).await),
                over = self.ends.wait() => match over {
                    Ok(()) => {
                        for session in self.ends.take(SWEEP_MAX) {
                            self.summarise(session).await;
                        }
                    }
                    Err(lanyard_engine::hub::Over::Behind) => self.catch_up().await,
                    Err(lanyard_engine::hub::Over::Closing) => return,
                },
            }
        }
    }

    /// Ends the last daemon did not get to.
    async fn catch_up(&self) {
        if self.context.memory.summary == SummaryMode::Off {
            return;
        }
        for state in [StateName::Completed, StateName::Failed, StateName::Stopped] {
            let ended = Filter { state: Some(state), ..Filter::default() };
            let page = on_disk(&self.context, move |store| Ok(store.list(&ended, None, ENDED_MAX)?)).await;
            match page {
                Ok(page) => {
                    for row in page.rows {
                        self.summarise(row.id).await;
                    }
                }
                Err(error) => note("look for sessions that ended", Err(error)),
            }
        }
    }

    async fn summarise(&self, session: SessionId) {
        let scope = match self.context.memory.summary {
            SummaryMode::Off => return,
            SummaryMode::Session => MemoryScope::Session,
            SummaryMode::LongTerm => MemoryScope::Workspace,
        };
        let context = self.context.clone();
        let done = on_disk(&self.context, move |store| Self::summary(&context, store, session, scope)).await;
        note("make a summary", done);
    }

    /// Makes a session's summary, once. One the policy forbids is refused and counted like any other write.
    pub(crate) fn summary(
        context: &MemoryContext,
        store: &dyn Store,
        id: SessionId,
        scope: MemoryScope,
    ) -> Result<(), MemoryError> {
        let Some(loaded) = store.load(id)? else { return Ok(()) };
        let session = loaded.session;
        let done = ledger::ledger(store, id)?.is_summarised(&session);
        if !session.state.is_ended() || session.deleted || done {
            return Ok(());
        }
        let mut seen = Summary::new(scope.store());
        let mut after = 0;
        while after < EVENTS_MAX {
            let page = store.events(id, after, PAGE)?;
            let Some(last) = page.events.last() else { break };
            after = last.seq;
            for event in page.events {
                if let Some(envelope) = event.body.ok().and_then(|body| serde_json::from_slice(&body).ok()) {
                    seen.see(&envelope);
                }
            }
        }
        if let Some(text) = seen.told(&session) {
            let wish = Wish {
                session: Some(id),
                scope,
                plan: None,
                name: Some(format!("summary of {id}")),
                text,
                tags: vec![summary::TAG.to_owned()],
                workspace: String::new(),
                owner: String::new(),
                by: Actor::system("memory"),
                source: Source::Summary,
                request: None,
                version: None,
            };
            match write(&context.memory, store, &context.clock, wish) {
                Ok(_) => {}
                Err(MemoryError::Refused(refusal)) => {
                    tracing::debug!(session = %id, %refusal, "a summary was not kept");
                }
                Err(error) => return Err(error),
            }
        }
        let end = session.since;
        Ok(ledger::amend(store, id, context.clock.now(), |ledger| {
            ledger.summarised = true;
            ledger.summarised_end = Some(end);
        })?)
    }
}

fn note(what: &str, done: Result<(), MemoryError>) {
    if let Err(error) = done {
        tracing::warn!(%error, "the keeper of memory could not {what}");
    }
}

/// Forgets entries whose retention has passed.
async fn sweep(context: &Arc<MemoryContext>) -> Result<(), MemoryError> {
    let rules = context.memory.retention;
    let now = context.clock.now();
    on_disk(context, move |store| {
        for retention in Retention::ALL {
            let Some(keeps_ms) = rules.keeps_ms(retention) else { continue };
            let due = store.expired_memories(retention, now.minus_millis(keeps_ms), SWEEP_MAX)?;
            if !due.is_empty() {
                let gone = store.forget_memories(&due)?;
                tracing::info!(gone, retention = retention.as_str(), "memory was swept");
            }
        }
        Ok(of_deleted(store)?)
    })
    .await
}

/// What a session that was deleted had of its own goes with it.
fn of_deleted(store: &dyn Store) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let sessions = store.memory_sessions(after, SWEEP_MAX)?;
        let Some(last) = sessions.last() else { return Ok(()) };
        after = Some(*last);
        let there = store.rows(&sessions, &Filter::default())?;
        for session in sessions.iter().filter(|id| there.iter().all(|row| row.id != **id)) {
            // One that is damaged is not one that was deleted.
            let deleted =
                store.load(*session).is_ok_and(|loaded| loaded.is_some_and(|it| it.session.deleted));
            if !deleted {
                continue;
            }
            let own = MemoryFilter {
                store: Some(lanyard_core::memory::Where::Session),
                session: Some(*session),
                ..MemoryFilter::default()
            };
            let ids: Vec<MemoryId> =
                store.memories(&own, None, SWEEP_MAX)?.iter().map(|entry| entry.id).collect();
            store.forget_memories(&ids)?;
        }
    }
}

/// Makes vectors of what has none, until there is nothing left or the endpoint fails.
async fn vectors(context: &Arc<MemoryContext>) -> Result<(), MemoryError> {
    let Some(embedder) = context.memory.embedder() else { return Ok(()) };
    loop {
        let model = embedder.model().to_owned();
        let entries = on_disk(context, move |store| Ok(store.without_vector(&model, TEXTS_MAX)?)).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> = entries
            .iter()
            .map(|entry| match &entry.name {
                Some(name) => format!("{name}\n{}", entry.text),
                None => entry.text.clone(),
            })
            .collect();
        // What was wrong is told where it is looked for; it is tried again with the next tick.
        let Ok(vectors) = embedder.embed(&texts).await else { return Ok(()) };
        let made: Vec<(MemoryId, u64, Vec<f32>)> =
            entries.iter().zip(vectors).map(|(entry, vector)| (entry.id, entry.version, vector)).collect();
        let model = embedder.model().to_owned();
        on_disk(context, move |store| Ok(store.put_vectors(&model, &made)?)).await?;
    }
}
