//! Looking at sessions for what people should know: questions that wait, words that were never delivered, turns that
//! fell silent or used all they may use.
//!
//! A session is looked at when it changed, and everything that needs attention once after the start; so a kill between an
//! event and its notification costs nothing but time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::journal::Row;
use lanyard_core::notification::{
    NewNotification, Notification, NotificationKind, TURN_KEY, wanted, watched_key,
};
use lanyard_core::paper::{Facts, Liveness, judge, looks_after};
use lanyard_core::session::{Attention, DrivenBy, StateName};
use lanyard_core::{Session, SessionId, Staleness, Timestamp};
use lanyard_store::{Filter, NotificationFilter, NotificationOrder, Sort, Store};

use crate::notifications::{BULK_MAX, NotificationError, NotificationHandle};
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::hub::{Hub, Of, Over};
use lanyard_engine::presence::Presence;

/// Sessions looked at together.
const PAGE: usize = 64;
/// Sessions that need attention and are looked at in one round.
const ATTENTION_MAX: usize = 1_000;
/// Sessions that are looked at again in each round: ended turns on an operator's screen that are not marked yet, and
/// quiet children with a living parent. Beyond this, ends are raised at once, and children when they change.
const AGAIN_MAX: usize = 1_000;
/// How long a client that showed the end of a turn has to mark it before a notification is raised.
const GRACE_MS: u64 = 2_000;
/// How often those are looked for that fell silent.
const ROUND: Duration = Duration::from_secs(5);
const SCRIPTED_ROUND: Duration = Duration::from_millis(50);

/// What looking at a session takes.
#[derive(Clone)]
struct Look {
    presence: Arc<Presence>,
    settings: LiveConfig,
}

impl Look {
    fn staleness(&self) -> Staleness {
        self.settings.rules().staleness
    }
}

impl NotificationHandle {
    /// Runs until the daemon ends.
    pub(crate) async fn watch_sessions(self, hub: Arc<Hub>, presence: Arc<Presence>, settings: LiveConfig) {
        let look = Look { presence, settings };
        let round = if self.inner.clock.is_scripted() { SCRIPTED_ROUND } else { ROUND };
        loop {
            let changes = hub.changes(Of::Structure);
            // What happened while nobody watched, here or in an earlier daemon.
            let given = look.clone();
            looked(self.aside(move |all| all.look_around(&given)).await);
            let mut due = tokio::time::interval(round);
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    news = changes.wait() => match news {
                        Ok(()) => {
                            let sessions = changes.take(PAGE);
                            let given = look.clone();
                            looked(self.aside(move |all| all.look_at(&sessions, &given)).await);
                        }
                        Err(Over::Closing) => return,
                        // Too far behind to look at each: it begins again.
                        Err(Over::Behind) => break,
                    },
                    _ = due.tick() => {
                        let given = look.clone();
                        looked(self.aside(move |all| all.look_again(&given)).await);
                    }
                }
            }
        }
    }

    /// Every session that needs attention, every one that a notification still says so of, and every child at rest.
    fn look_around(&self, look: &Look) -> Result<(), NotificationError> {
        let pressing = self.pressing(look.staleness().suspect_after_ms)?;
        let mut sessions: BTreeSet<SessionId> = pressing.iter().map(|row| row.id).collect();
        let held = self.lasting(None)?;
        sessions.extend(held.iter().filter(|held| watched_key(&held.key)).filter_map(|held| held.session));
        for state in [StateName::Idle, StateName::Stale] {
            let (state, archived) = (Some(state), Some(false));
            let resting = Filter { state, archived, sort: Sort::Activity, ..Filter::default() };
            let resting = self.inner.store.list(&resting, None, ATTENTION_MAX)?.rows;
            sessions.extend(resting.iter().filter(|row| row.parent.is_some()).map(|row| row.id));
        }
        self.look_at(&Vec::from_iter(sessions), look)
    }

    /// Silence is no change, and neither are words: those that fell silent, those that spoke again, those whose reader
    /// may have left without a mark, and those whose parent may have gone.
    fn look_again(&self, look: &Look) -> Result<(), NotificationError> {
        let pressing = self.pressing(look.staleness().suspect_after_ms)?;
        let silent = pressing.iter().filter(|row| row.attention.contains(&Attention::SuspectedOrphan));
        let mut sessions: BTreeSet<SessionId> = silent.map(|row| row.id).collect();
        let held = self.lasting(Some(NotificationKind::SuspectedOrphan))?;
        sessions.extend(held.iter().filter_map(|held| held.session));
        sessions.append(&mut self.inner.again.lock());
        self.look_at(&Vec::from_iter(sessions), look)
    }

    /// An operator who has the session on the screen is not told of what the screen shows, and a client that shows the
    /// end has a moment to mark it. The session is looked at again until the mark arrives or the screen is closed.
    fn is_put_off(&self, new: &NewNotification, ended: Option<Timestamp>, look: &Look) -> bool {
        let Some(session) = new.session.filter(|_| new.key.starts_with(TURN_KEY)) else { return false };
        let fresh = ended.is_some_and(|at| self.inner.clock.elapsed_ms(at) < GRACE_MS);
        let mut again = self.inner.again.lock();
        let put_off = (fresh || look.presence.watched(session)) && again.len() < AGAIN_MAX;
        if put_off {
            again.insert(session);
        }
        put_off
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

    fn look_at(&self, sessions: &[SessionId], look: &Look) -> Result<(), NotificationError> {
        let mut failed = Ok(());
        for session in sessions {
            // One that is damaged must not hide the others.
            failed = self.look_at_one(*session, look).and(failed);
        }
        failed
    }

    /// Whether a session has a reason to be as quiet as it is.
    fn life(&self, session: &Session, quiet_ms: u64, look: &Look) -> Result<Liveness, NotificationError> {
        let store: &dyn Store = &*self.inner.store;
        let staleness = &look.staleness();
        let suspect_after_ms = staleness.suspect_after_ms;
        if quiet_ms <= suspect_after_ms || session.is_waiting() || store.waits_below(session.id)? {
            return Ok(Liveness::Live);
        }
        let Some(parent) = session.parent.filter(|_| session.driver() == DrivenBy::Host) else {
            return Ok(Liveness::Suspected);
        };
        let looked_after = store.load(parent)?.is_some_and(|parent| {
            let quiet_ms = self.inner.clock.elapsed_ms(parent.session.last_activity_at);
            looks_after(&parent.session, quiet_ms, staleness)
        });
        let mut again = self.inner.again.lock();
        // Its parent may fall silent later, which is no change of the child.
        if looked_after && !session.state.is_ended() && again.len() < AGAIN_MAX {
            again.insert(session.id);
        }
        Ok(judge(&Facts::of(session, quiet_ms, looked_after, false), staleness))
    }

    /// Raises what is wanted and not there, and ends what is there and not wanted any more.
    fn look_at_one(&self, id: SessionId, look: &Look) -> Result<(), NotificationError> {
        let store: &dyn Store = &*self.inner.store;
        let (wanted, ended) = match store.load(id)? {
            Some(loaded) => {
                let session = loaded.session;
                let quiet_ms = self.inner.clock.elapsed_ms(session.last_activity_at);
                let life = self.life(&session, quiet_ms, look)?;
                (wanted(&session, life), session.last_turn.map(|turn| turn.at))
            }
            None => (Vec::new(), None),
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
            if held.iter().all(|held| held.key != new.dedupe_key()) && !self.is_put_off(&new, ended, look) {
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
