//! The task that purges deleted sessions: first what is kept of them elsewhere, then their rows, then the free space.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_store::{PurgeStep, Store, StoreError, WipeStep};
use tokio::task::JoinHandle;

use crate::storage::StorageContext;
use crate::storage::traces::{self, Traces};
use crate::storage::{alarm, retention};
use lanyard_base::error_chain;
use lanyard_engine::hub::{Changes, Of, Over};

const TICK: Duration = Duration::from_secs(1);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_TICK: Duration = Duration::from_millis(20);
/// Events removed in one transaction: a few milliseconds, between which the engine commits.
const STEP_EVENTS: usize = 500;
/// Sessions purged before the rest waits for the next look.
const SESSIONS_MAX: usize = 64;
/// Looks at a session whose processes still end, before its log is purged all the same; `gc` removes their folder later.
const LOOKS_MAX: u32 = 120;
/// Ticks between two looks at retention and at the journal's size.
const SLOW_TICKS: u32 = 30;
/// Ticks between two looks at uploads that no message refers to. A multiple of those above.
const COLLECT_TICKS: u32 = 20 * SLOW_TICKS;
/// Ended sessions taken from the list at a time.
const ENDS_MAX: usize = 256;

pub(crate) struct Purger {
    context: Arc<StorageContext>,
    ends: Changes,
    /// Sessions whose processes still end, and how often they were looked at.
    waiting: HashMap<SessionId, u32>,
    /// Free space may hold what was removed.
    unwiped: bool,
}

impl Purger {
    /// From here on no deletion is missed.
    pub(crate) fn new(context: Arc<StorageContext>) -> Self {
        let ends = context.hub.changes(Of::Ends);
        Self { context, ends, waiting: HashMap::new(), unwiped: true }
    }

    /// Runs until the daemon ends.
    pub(crate) async fn run(mut self) {
        let period = if self.context.clock.is_scripted() { SCRIPTED_TICK } else { TICK };
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut count, mut behind) = (0_u32, true);
        let mut tidying = self.move_old_checkpoints();
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if count.is_multiple_of(SLOW_TICKS) {
                        retention::sweep(&self.context).await;
                        self.context.gateway.forget_ended(&self.context.store).await;
                        alarm::look(&self.context).await;
                        tidying = self.tidy(tidying);
                        if count.is_multiple_of(COLLECT_TICKS) {
                            self.collect_uploads().await;
                        }
                    }
                    count = count.wrapping_add(1);
                    // Deletions are told of; only what is waited for, and what a start finds, is looked for.
                    if !behind && self.waiting.is_empty() && !self.unwiped {
                        continue;
                    }
                }
                over = self.ends.wait() => match over {
                    Ok(()) => {
                        let ended = self.ends.take(ENDS_MAX);
                        for session in ended {
                            self.context.gateway.forget_session(session).await;
                        }
                    }
                    Err(Over::Behind) => {}
                    Err(Over::Closing) => return,
                },
            }
            behind = match self.pass().await {
                Ok(more) => more,
                // Said once a look: a journal that cannot be written has said so itself.
                Err(error) => {
                    tracing::debug!(error, "deleted sessions could not be purged");
                    true
                }
            };
        }
    }

    fn move_old_checkpoints(&self) -> JoinHandle<()> {
        let context = self.context.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = super::move_old_checkpoints(&context) {
                tracing::warn!(error = error_chain(&error), "old checkpoints were not looked for");
            }
        })
    }

    /// Removes uploads that no message refers to.
    async fn collect_uploads(&self) {
        let (attachments, keep) =
            (self.context.attachments.clone(), self.context.config.storage().storage.keep_uploads_ms);
        let before = self.context.clock.now().minus_millis(keep);
        let collected = tokio::task::spawn_blocking(move || attachments.collect(before, false)).await;
        if let Ok(Err(error)) = collected {
            tracing::warn!(%error, "uploads that no message refers to stay");
        }
    }

    /// Removes the objects of checkpoints that are gone, aside and one at a time: it may take long.
    fn tidy(&self, before: JoinHandle<()>) -> JoinHandle<()> {
        if !before.is_finished() {
            return before;
        }
        let checkpoints = self.context.checkpoints.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = checkpoints.tidy() {
                tracing::warn!(%error, "objects of removed checkpoints stay");
            }
        })
    }

    /// Purges what is deleted. Answers whether there is more than one look takes on.
    async fn pass(&mut self) -> Result<bool, String> {
        let sessions = self.on_disk(|store| store.unpurged(SESSIONS_MAX)).await?;
        let more = sessions.len() == SESSIONS_MAX;
        let mut purged = false;
        for session in sessions {
            if !self.clear_around(session).await {
                continue;
            }
            purged |= self.purge(session).await?;
        }
        if purged || self.unwiped {
            self.wipe().await?;
        }
        Ok(more)
    }

    /// Removes what is kept of a session outside its log. False while its processes still end.
    async fn clear_around(&mut self, session: SessionId) -> bool {
        match traces::remove(&self.context, session).await {
            Traces::Gone => {
                self.waiting.remove(&session);
                true
            }
            Traces::Running => {
                let looks = self.waiting.entry(session).or_default();
                *looks += 1;
                let goes_on = *looks >= LOOKS_MAX;
                if goes_on {
                    tracing::warn!(%session, "a deleted session's processes have not ended; its log is purged");
                    self.waiting.remove(&session);
                }
                goes_on
            }
        }
    }

    /// Answers whether anything was removed.
    async fn purge(&self, session: SessionId) -> Result<bool, String> {
        let mut removed = false;
        loop {
            match self.on_disk(move |store| store.purge(session, STEP_EVENTS)).await? {
                PurgeStep::Going { .. } => removed = true,
                PurgeStep::Done => {
                    tracing::info!(%session, "a deleted session was purged");
                    return Ok(true);
                }
                PurgeStep::Unknown | PurgeStep::NotDeleted => return Ok(removed),
            }
        }
    }

    async fn wipe(&mut self) -> Result<(), String> {
        self.unwiped = true;
        loop {
            match self.on_disk(|store| store.wipe()).await? {
                WipeStep::Going => {}
                // A reader is in the way; the next tick tries again.
                WipeStep::Busy => return Ok(()),
                WipeStep::Done => {
                    self.unwiped = false;
                    return Ok(());
                }
            }
        }
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = self.context.store.clone();
        tokio::task::spawn_blocking(move || work(&*store))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error_chain(&error))
    }
}
