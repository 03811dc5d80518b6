//! Looking at sessions for what people should know: questions that wait, words that were never delivered, turns that
//! fell silent or used all they may use.
//!
//! A session is looked at when it changed, and everything that needs attention once after the start; so a kill between an
//! event and its notification costs nothing but time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_core::notification::{wanted, watched_key};
use lanyard_store::{Filter, NotificationFilter, NotificationOrder};

use crate::engine::Store;
use crate::hub::{Hub, Of};
use crate::notifications::{BULK_MAX, NotificationError, Notifications};

/// Sessions looked at together.
const PAGE: usize = 64;
/// Sessions that need attention and are looked at in one round.
const ATTENTION_MAX: usize = 1_000;
/// How often those are looked for that fell silent.
const ROUND: Duration = Duration::from_secs(5);
const SCRIPTED_ROUND: Duration = Duration::from_millis(50);

impl Notifications {
    /// Runs until the daemon ends.
    pub(crate) async fn watch_sessions(self, hub: Arc<Hub>, suspect_after_ms: u64) {
        let round = if self.inner.clock.is_scripted() { SCRIPTED_ROUND } else { ROUND };
        loop {
            let changes = hub.changes(Of::Structure);
            let mut due = tokio::time::interval(round);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                let looked = tokio::select! {
                    changed = changes.wait() => match changed {
                        Ok(()) => {
                            let sessions = changes.take(PAGE);
                            self.aside(move |all| all.look_at(&sessions, suspect_after_ms)).await
                        }
                        Err(crate::hub::Over::Closing) => return,
                        // Too far behind: everything that needs attention is looked at, and it begins again.
                        Err(crate::hub::Over::Behind) => break,
                    },
                    _ = due.tick() => self.aside(move |all| all.look_around(suspect_after_ms)).await,
                };
                if let Err(error) = looked {
                    tracing::debug!(%error, "sessions could not be looked at for notifications");
                }
            }
        }
    }

    /// Every session that needs attention, and every one that a notification still says so of.
    fn look_around(&self, suspect_after_ms: u64) -> Result<(), NotificationError> {
        let store = &self.inner.store;
        let since = self.inner.clock.now().minus_millis(suspect_after_ms);
        let filter = Filter { attention: true, silent_since: Some(since), ..Filter::default() };
        let mut sessions: BTreeSet<SessionId> =
            store.list(&filter, None, ATTENTION_MAX)?.rows.iter().map(|row| row.id).collect();
        let lasting = NotificationFilter { lasting: Some(true), ..NotificationFilter::default() };
        let held =
            store.notifications(&lasting, NotificationOrder::Newest { before: None }, ATTENTION_MAX)?;
        sessions.extend(held.iter().filter(|held| watched_key(&held.key)).filter_map(|held| held.session));
        self.look_at(&sessions.into_iter().collect::<Vec<_>>(), suspect_after_ms)
    }

    fn look_at(&self, sessions: &[SessionId], suspect_after_ms: u64) -> Result<(), NotificationError> {
        sessions.iter().try_for_each(|session| self.look_at_one(*session, suspect_after_ms))
    }

    /// Raises what is wanted and not there, and ends what is there and not wanted any more.
    fn look_at_one(&self, id: SessionId, suspect_after_ms: u64) -> Result<(), NotificationError> {
        let store: &dyn Store = &*self.inner.store;
        let wanted = match store.load(id)? {
            Some(loaded) => {
                let session = loaded.session;
                let quiet_ms = self.inner.clock.elapsed_ms(session.last_activity_at);
                let silent = quiet_ms > suspect_after_ms && session.open_calls.is_empty();
                wanted(&session, silent)
            }
            None => Vec::new(),
        };
        let filter =
            NotificationFilter { session: Some(id), lasting: Some(true), ..NotificationFilter::default() };
        let held = store.notifications(&filter, NotificationOrder::Newest { before: None }, BULK_MAX)?;
        for gone in held.iter().filter(|held| watched_key(&held.key)) {
            if wanted.iter().all(|new| new.dedupe_key() != gone.key) {
                self.end(&gone.key, Some("it is over"), None)?;
            }
        }
        for new in wanted {
            if held.iter().all(|held| held.key != new.dedupe_key()) {
                self.raise(new)?;
            }
        }
        Ok(())
    }
}
