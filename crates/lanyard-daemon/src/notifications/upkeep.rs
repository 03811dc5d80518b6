//! What time brings: counts are written down, alerts looked at, snoozes end, old notifications go.

use std::sync::Arc;
use std::time::Duration;

use lanyard_core::Timestamp;
use lanyard_core::notification::{NotificationStatus, wake};
use lanyard_store::{NotificationBatch, NotificationFilter, NotificationOrder};

use crate::notifications::{BULK_MAX, NotificationError, NotificationHandle};
use lanyard_engine::continuity::ContinuityCounter;

/// How often: also the longest time for which a kill can take counts that no log tells of.
const TICK: Duration = Duration::from_secs(1);
/// When time comes from a file, a scenario should not wait for it.
const SCRIPTED_TICK: Duration = Duration::from_millis(20);
/// Notifications that are kept. Beyond that, the oldest that are over go first.
const KEPT_MAX: usize = 10_000;

/// The work of the timer.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) notifications: NotificationHandle,
    pub(crate) continuity: Arc<ContinuityCounter>,
}

impl Upkeep {
    /// Runs until the daemon ends.
    pub(crate) async fn run(self) {
        let period = if self.notifications.inner.clock.is_scripted() { SCRIPTED_TICK } else { TICK };
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failed = false;
        loop {
            ticks.tick().await;
            let continuity = self.continuity.clone();
            let done = self.notifications.aside(move |all| all.pass(&continuity)).await;
            // Said once: a journal that cannot be written has said so itself, every half second.
            if let Err(error) = &done
                && !failed
            {
                tracing::warn!(%error, "notifications could not be looked after");
            }
            failed = done.is_err();
        }
    }

    /// Writes down what was counted, at the end.
    pub(crate) async fn last_flush(notifications: &NotificationHandle, continuity: &Arc<ContinuityCounter>) {
        let continuity = continuity.clone();
        let flushed = notifications.aside(move |all| all.flush(&continuity)).await;
        if let Err(error) = flushed {
            tracing::warn!(%error, "the last counts could not be written");
        }
    }
}

impl NotificationHandle {
    fn flush(&self, continuity: &ContinuityCounter) -> Result<(), NotificationError> {
        let now = self.inner.clock.now();
        Ok(continuity.flush(&*self.inner.store, now)?)
    }

    fn pass(&self, continuity: &ContinuityCounter) -> Result<(), NotificationError> {
        let now = self.inner.clock.now();
        self.flush(continuity)?;
        self.look_at_continuity(continuity, now)?;
        self.wake_snoozed(now)?;
        self.forget_old(now)
    }

    /// A snooze ends at its time, whether or not anybody looks. It goes outward again: that is what it was put off for.
    fn wake_snoozed(&self, now: Timestamp) -> Result<(), NotificationError> {
        let mut last = self.lock();
        let filter = NotificationFilter { snoozed_until: Some(now), ..NotificationFilter::default() };
        let order = NotificationOrder::Newest { before: None };
        let due = self.inner.store.notifications(&filter, order, BULK_MAX)?;
        let woken: Vec<_> = due.iter().filter_map(|held| wake(held, now)).collect();
        let deliveries = woken.iter().flat_map(|held| self.deliveries_of(held)).collect();
        self.write(&mut last, woken, deliveries)
    }

    fn forget_old(&self, now: Timestamp) -> Result<(), NotificationError> {
        // Once a minute is often enough for what is kept for days.
        if now.as_millis() / 1_000 % 60 != 0 {
            return Ok(());
        }
        self.purge(Some(now.minus_millis(self.targets().keep_ms)))?;
        let counts = self.inner.store.notification_counts()?;
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let extra = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(KEPT_MAX);
        if extra == 0 {
            return Ok(());
        }
        let _held = self.lock();
        let over = NotificationFilter { lasting: Some(false), ..NotificationFilter::default() };
        let order = NotificationOrder::Newest { before: None };
        let mut found = self.inner.store.notifications(&over, order, KEPT_MAX * 2)?;
        // Those nobody has to handle any more go first, and of each the oldest.
        found.reverse();
        found.sort_by_key(|held| held.status != NotificationStatus::Dismissed);
        let removed: Vec<_> = found.iter().take(extra.min(BULK_MAX)).map(|held| held.id).collect();
        tracing::warn!(removed = removed.len(), "more notifications than are kept; the oldest go");
        self.commit(&NotificationBatch { removed, ..NotificationBatch::default() })
    }
}
