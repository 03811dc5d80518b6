//! Looking at sessions for what people should know: questions that wait, words that were never delivered, turns that
//! fell silent or used all they may use.
//!
//! A session is looked at when it changed, and everything that needs attention once after the start; so a kill between an
//! event and its notification costs nothing but time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_core::notification::{Notification, NotificationKind, wanted, watched_key};
use lanyard_core::session::Attention;
use lanyard_store::{Filter, NotificationFilter, NotificationOrder, Row, Sort};

use crate::engine::Store;
use crate::hub::{Hub, Of, Over};
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
            // What happened while nobody watched, here or in an earlier daemon.
            looked(self.aside(move |all| all.look_around(suspect_after_ms)).await);
            let mut due = tokio::time::interval(round);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    news = changes.wait() => match news {
                        Ok(()) => {
                            let sessions = changes.take(PAGE);
                            looked(self.aside(move |all| all.look_at(&sessions, suspect_after_ms)).await);
                        }
                        Err(Over::Closing) => return,
                        // Too far behind to look at each: it begins again.
                        Err(Over::Behind) => break,
                    },
                    _ = due.tick() => {
                        looked(self.aside(move |all| all.look_for_silence(suspect_after_ms)).await);
                    }
                }
            }
        }
    }

    /// Every session that needs attention, and every one that a notification still says so of.
    fn look_around(&self, suspect_after_ms: u64) -> Result<(), NotificationError> {
        let pressing = self.pressing(suspect_after_ms)?;
        let mut sessions: BTreeSet<SessionId> = pressing.iter().map(|row| row.id).collect();
        let held = self.lasting(None)?;
        sessions.extend(held.iter().filter(|held| watched_key(&held.key)).filter_map(|held| held.session));
        self.look_at(&Vec::from_iter(sessions), suspect_after_ms)
    }

    /// Silence is no change, and neither are words: those that fell silent, and those that spoke again.
    fn look_for_silence(&self, suspect_after_ms: u64) -> Result<(), NotificationError> {
        let pressing = self.pressing(suspect_after_ms)?;
        let silent = pressing.iter().filter(|row| row.attention.contains(&Attention::SuspectedOrphan));
        let mut sessions: BTreeSet<SessionId> = silent.map(|row| row.id).collect();
        let held = self.lasting(Some(NotificationKind::SuspectedOrphan))?;
        sessions.extend(held.iter().filter_map(|held| held.session));
        self.look_at(&Vec::from_iter(sessions), suspect_after_ms)
    }

    /// Sessions that need attention, the most pressing first.
    fn pressing(&self, suspect_after_ms: u64) -> Result<Vec<Row>, NotificationError> {
        let silent_since = Some(self.inner.clock.now().minus_millis(suspect_after_ms));
        let filter = Filter { attention: true, silent_since, sort: Sort::Attention, ..Filter::default() };
        Ok(self.inner.store.list(&filter, None, ATTENTION_MAX)?.rows)
    }

    fn lasting(&self, kind: Option<NotificationKind>) -> Result<Vec<Notification>, NotificationError> {
        let filter = NotificationFilter { kind, lasting: Some(true), ..NotificationFilter::default() };
        let order = NotificationOrder::Newest { before: None };
        Ok(self.inner.store.notifications(&filter, order, ATTENTION_MAX)?)
    }

    fn look_at(&self, sessions: &[SessionId], suspect_after_ms: u64) -> Result<(), NotificationError> {
        let mut failed = Ok(());
        for session in sessions {
            // One that is damaged must not hide the others.
            failed = self.look_at_one(*session, suspect_after_ms).and(failed);
        }
        failed
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

/// What could not be looked at is looked at again with its next change, or after the next start.
fn looked(looked: Result<(), NotificationError>) {
    if let Err(error) = looked {
        tracing::warn!(%error, "sessions could not be looked at for notifications");
    }
}
