//! Time passing: resting sessions become idle and stale, kept outcomes are forgotten, a failed journal is tried again.
//!
//! Due sessions are found by querying the journal's catalog; there are no per-session timers, so a hundred thousand
//! resting sessions cost no memory here. Only those that were looked at too early are remembered until their time comes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::session::StateName;
use lanyard_core::{Actor, Cause, SessionId, Timestamp};
use lanyard_store::{Store, StoreError};

use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::{Ask, Engine, Request};

const TICK: Duration = Duration::from_secs(1);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_TICK: Duration = Duration::from_millis(20);
/// Sessions looked at per state and tick.
const DUE_MAX: usize = 256;
/// Sessions remembered as not due yet. Beyond that all are forgotten and looked at again.
const DEFERRED_MAX: usize = 10_000;
/// Kept outcomes, or keys of tasks, forgotten at a time.
const SWEEP_MAX: usize = 1_000;
/// Milliseconds between two looks for keys of tasks that can be forgotten: due keys are not indexed, and no caller waits.
const KEYS_EVERY_MS: u64 = 60_000;

pub(crate) struct Timers {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) settings: LiveConfig,
}

impl Timers {
    /// Runs until the daemon ends.
    pub(crate) async fn run(self) {
        let mut deferred: HashMap<SessionId, Timestamp> = HashMap::new();
        let mut keys_at = self.clock.now();
        let period = if self.clock.is_scripted() { SCRIPTED_TICK } else { TICK };
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.engine.tick();
            if let Err(error) = self.pass(&mut deferred).await {
                tracing::warn!(error, "timers could not look at the journal");
            }
            let now = self.clock.now();
            if now >= keys_at {
                keys_at = now.plus_millis(KEYS_EVERY_MS);
                self.forget_keys(now).await;
            }
        }
    }

    async fn pass(&self, deferred: &mut HashMap<SessionId, Timestamp>) -> Result<(), String> {
        let now = self.clock.now();
        deferred.retain(|_, until| *until > now);
        if deferred.len() > DEFERRED_MAX {
            deferred.clear();
        }
        let limit = DUE_MAX + deferred.len();
        for session in self.due(now, limit).await? {
            if deferred.contains_key(&session) {
                continue;
            }
            let request = Request {
                ask: Ask::Nudge { session },
                actor: Actor::system("timer"),
                cause: Some(Cause::Signal("quiet".to_owned())),
                keys: Vec::new(),
            };
            // One that changed is no longer due; any other, refused ones too, is left alone for a while.
            let again_ms = match self.engine.ask(request).await {
                Ok(reply) if reply.outcome.events > 0 => continue,
                Ok(reply) => reply.outcome.seq,
                Err(error) => {
                    tracing::debug!(%session, %error, "could not look at a quiet session");
                    60_000
                }
            };
            deferred.insert(session, now.plus_millis(again_ms));
        }
        let before = now.minus_millis(self.settings.storage().keep_outcomes_ms);
        self.on_disk(move |store| store.sweep(before, SWEEP_MAX)).await?;
        Ok(())
    }

    async fn forget_keys(&self, now: Timestamp) {
        let before = now.minus_millis(self.settings.storage().keep_outcomes_ms);
        if let Err(error) = self.on_disk(move |store| store.forget_keys(before, SWEEP_MAX)).await {
            tracing::warn!(error, "the keys of tasks that ended long ago could not be forgotten");
        }
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<SessionId>, String> {
        let staleness = self.settings.rules().staleness;
        let resting = now.minus_millis(staleness.idle_after_ms);
        // A session turned idle `idle_after` into its quiet time; the rest of `stale_after` is what it has left.
        let idle = now.minus_millis(staleness.stale_after_ms.saturating_sub(staleness.idle_after_ms));
        let lost = now.minus_millis(staleness.stale_after_ms);
        self.on_disk(move |store| {
            let mut due = Vec::new();
            for (state, before) in [
                (StateName::BetweenTurn, resting),
                (StateName::Compacted, resting),
                (StateName::Interrupted, resting),
                (StateName::Idle, idle),
                // A call that came by and whose end nobody told.
                (StateName::Executing, lost),
            ] {
                due.extend(store.in_state_since(state, before, limit)?);
            }
            Ok(due)
        })
        .await
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || read(&*store))
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| lanyard_base::error_chain(&error))
    }
}
