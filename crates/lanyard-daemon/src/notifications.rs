//! Notifications: raised once per condition, kept, changed by people, put back by a timer, and sent outward.
//!
//! Whoever raises one is answered after it is on disk, with its deliveries in the same transaction. Nothing here decides
//! what may become of a notification; `lanyard_core::notification` does.

mod alerts;
mod desktop;
mod outbox;
mod secret;
mod upkeep;
mod watch;
mod webhook;

use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanyard_api::config::NotificationSettings;
use lanyard_core::notification::{
    NewNotification, Notification, NotificationChange, NotificationDelivery, NotificationRefusal,
    NotificationStatus, change, end, repeat,
};
use lanyard_core::{Actor, DeliveryId, NotificationId, SessionId, refusals};
use lanyard_store::{
    AppendError, DeliveryFilter, NotificationBatch, NotificationFilter, NotificationOrder, RecordBatch,
    Store, StoreError,
};
use tokio::sync::{Notify, watch as channel};

use crate::refusal::refuses;
use lanyard_base::clock::Clock;
use lanyard_base::error_chain;

pub(crate) use outbox::Targets;
pub(crate) use upkeep::Upkeep;

/// Notifications changed by one request.
pub(crate) const BULK_MAX: usize = 500;
/// Deliveries of one notification that are shown.
const DELIVERIES_MAX: usize = 100;

refusals! {
    /// Why a notification was not changed.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum NotificationError {
        Unknown(id: NotificationId) => "notification_not_found", NotFound
            ("there is no notification {0}") ("list them with `lanyard notifications --all`");
        Lasts => "notification_lasts", Conflict
            ("what it tells of goes on") ("dismiss it instead; it can go when what it tells of is over");
        Store(why: String) => "storage_unavailable", Unavailable
            ("the journal cannot be used: {0}")
            ("nothing was changed; try again when `lanyard status` says the journal is ok");
    }
    via { Refused(NotificationRefusal) }
}
refuses!(NotificationError);

impl From<StoreError> for NotificationError {
    fn from(error: StoreError) -> Self {
        Self::Store(error_chain(&error))
    }
}

impl From<AppendError> for NotificationError {
    fn from(error: AppendError) -> Self {
        Self::Store(error_chain(&error))
    }
}

/// What became of many at once.
#[derive(Debug, Default)]
pub(crate) struct Bulked {
    pub(crate) changed: Vec<NotificationId>,
    pub(crate) unchanged: Vec<NotificationId>,
    pub(crate) refused: Vec<(NotificationId, NotificationRefusal)>,
    /// There are more that match.
    pub(crate) more: bool,
}

/// The one place that decides about notifications; the engine commits them. Clones share it.
#[derive(Clone)]
pub struct NotificationHandle {
    inner: Arc<Inner>,
}

/// Commits records, and answers when they are on disk, or why they are not. It blocks.
type RecordSink = dyn Fn(RecordBatch) -> Result<(), String> + Send + Sync;

struct Inner {
    store: Arc<dyn Store>,
    sink: Box<RecordSink>,
    clock: Arc<Clock>,
    targets: RwLock<Arc<Targets>>,
    /// The number of the last change. Held while one is made, so that looking and writing are one.
    last: Mutex<u64>,
    changed: channel::Sender<u64>,
    /// Something is to be sent, or to be looked at again.
    wake: RwLock<BTreeMap<String, Arc<Notify>>>,
    /// The receivers changed.
    reloaded: Notify,
    tend: Notify,
    /// Sessions to look at in the next round, although nothing changes in them.
    again: Mutex<BTreeSet<SessionId>>,
}

impl std::fmt::Debug for NotificationHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifications").field("targets", &self.targets()).finish_non_exhaustive()
    }
}

impl NotificationHandle {
    pub(crate) fn open(
        store: Arc<dyn Store>,
        sink: impl Fn(RecordBatch) -> Result<(), String> + Send + Sync + 'static,
        clock: Arc<Clock>,
        settings: &NotificationSettings,
    ) -> Result<Self, StoreError> {
        let last = store.last_notification_change()?;
        let (changed, _) = channel::channel(last);
        let inner = Inner {
            store,
            sink: Box::new(sink),
            clock,
            targets: RwLock::default(),
            last: Mutex::new(last),
            changed,
            wake: RwLock::default(),
            reloaded: Notify::new(),
            tend: Notify::new(),
            again: Mutex::default(),
        };
        let all = Self { inner: Arc::new(inner) };
        all.reload(settings);
        Ok(all)
    }

    /// Takes up other settings. A try that is under way goes to its end.
    pub(crate) fn reload(&self, settings: &NotificationSettings) {
        let targets = Targets::of(settings);
        let mut wake = self.inner.wake.write();
        for name in targets.names() {
            wake.entry(name.to_owned()).or_default();
        }
        *self.inner.targets.write() = Arc::new(targets);
        wake.values().for_each(|line| line.notify_one());
        self.inner.reloaded.notify_one();
    }

    fn targets(&self) -> Arc<Targets> {
        self.inner.targets.read().clone()
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.inner.last.lock()
    }

    /// Raises a notification. While what it tells of lasts, it is there once: raised again, it is only counted. When
    /// this answers, it is on disk. Blocks for the disk; who must not, raises it in [`aside`](Self::aside).
    pub(crate) fn raise(&self, new: NewNotification) -> Result<NotificationId, NotificationError> {
        let mut last = self.lock();
        if new.lasts
            && let Some(held) = self.inner.store.lasting(&new.dedupe_key())?
        {
            let id = held.id;
            self.write(&mut last, vec![repeat(&held)], Vec::new())?;
            return Ok(id);
        }
        let made = self.made(new);
        let id = made.id;
        let deliveries = self.deliveries_of(&made);
        tracing::info!(notification = %id, kind = made.kind.as_str(), severity = made.severity.as_str(), key = made.key, "raised");
        self.write(&mut last, vec![made], deliveries)?;
        Ok(id)
    }

    /// What a key tells of is over: its notification is marked so, and dismissed where it needs no handling any more.
    /// What is to be said about the end is written with it. Answers whether there was one.
    pub(crate) fn end(
        &self,
        key: &str,
        dismiss: Option<&str>,
        then: Option<NewNotification>,
    ) -> Result<bool, NotificationError> {
        let mut last = self.lock();
        let Some(held) = self.inner.store.lasting(key)? else { return Ok(false) };
        let mut batch = vec![end(&held, dismiss, self.inner.clock.now())];
        let mut deliveries = Vec::new();
        if let Some(made) = then.map(|then| self.made(then)) {
            deliveries = self.deliveries_of(&made);
            batch.push(made);
        }
        tracing::info!(notification = %held.id, kind = held.kind.as_str(), key = held.key, "over");
        self.write(&mut last, batch, deliveries)?;
        Ok(true)
    }

    pub(crate) fn change(
        &self,
        id: NotificationId,
        wish: &NotificationChange,
        note: Option<&str>,
        by: &Actor,
    ) -> Result<Notification, NotificationError> {
        let mut last = self.lock();
        let held = self.inner.store.notification(id)?.ok_or(NotificationError::Unknown(id))?;
        let changed =
            change(&held, wish, note, by, self.inner.clock.now()).map_err(NotificationError::Refused)?;
        let Some(changed) = changed else { return Ok(held) };
        self.write(&mut last, vec![changed], Vec::new())?;
        self.inner.store.notification(id)?.ok_or(NotificationError::Unknown(id))
    }

    /// Changes all that match, in one transaction.
    pub(crate) fn bulk(
        &self,
        filter: &NotificationFilter,
        (wish, note): (&NotificationChange, Option<&str>),
        by: &Actor,
        limit: usize,
    ) -> Result<Bulked, NotificationError> {
        let mut last = self.lock();
        let order = NotificationOrder::Newest { before: None };
        let mut found = self.inner.store.notifications(filter, order, limit + 1)?;
        let mut bulked = Bulked { more: found.len() > limit, ..Bulked::default() };
        found.truncate(limit);
        let now = self.inner.clock.now();
        let mut batch = Vec::new();
        for held in &found {
            match change(held, wish, note, by, now) {
                Ok(Some(changed)) => {
                    bulked.changed.push(held.id);
                    batch.push(changed);
                }
                Ok(None) => bulked.unchanged.push(held.id),
                Err(refusal) => bulked.refused.push((held.id, refusal)),
            }
        }
        self.write(&mut last, batch, Vec::new())?;
        Ok(bulked)
    }

    /// Takes one away for good. What tells of something that goes on stays: it would only be raised again.
    pub(crate) fn remove(&self, id: NotificationId) -> Result<(), NotificationError> {
        let _held = self.lock();
        let held = self.inner.store.notification(id)?.ok_or(NotificationError::Unknown(id))?;
        if held.over_at.is_none() {
            return Err(NotificationError::Lasts);
        }
        self.commit(&NotificationBatch { removed: vec![id], ..NotificationBatch::default() })
    }

    /// Takes those away that were dismissed and whose condition is over, last changed before then. Answers how many.
    pub(crate) fn purge(&self, before: Option<lanyard_core::Timestamp>) -> Result<usize, NotificationError> {
        let _held = self.lock();
        let status = Some(NotificationStatus::Dismissed);
        let filter = NotificationFilter {
            status,
            lasting: Some(false),
            changed_before: before,
            ..NotificationFilter::default()
        };
        let order = NotificationOrder::Newest { before: None };
        let found = self.inner.store.notifications(&filter, order, BULK_MAX)?;
        let removed: Vec<NotificationId> = found.iter().map(|held| held.id).collect();
        if removed.is_empty() {
            return Ok(0);
        }
        let count = removed.len();
        self.commit(&NotificationBatch { removed, ..NotificationBatch::default() })?;
        Ok(count)
    }

    /// Removes all that were told about a session, and their deliveries.
    pub(crate) fn forget_session(
        &self,
        session: lanyard_core::SessionId,
    ) -> Result<usize, NotificationError> {
        let filter = NotificationFilter { session: Some(session), ..NotificationFilter::default() };
        let mut count = 0;
        loop {
            let _held = self.lock();
            let order = NotificationOrder::Newest { before: None };
            let found = self.inner.store.notifications(&filter, order, BULK_MAX)?;
            let removed: Vec<NotificationId> = found.iter().map(|held| held.id).collect();
            if removed.is_empty() {
                return Ok(count);
            }
            count += removed.len();
            self.commit(&NotificationBatch { removed, ..NotificationBatch::default() })?;
        }
    }

    /// How those to one notification went.
    pub(crate) fn deliveries(
        &self,
        id: NotificationId,
    ) -> Result<Vec<NotificationDelivery>, NotificationError> {
        let filter = DeliveryFilter { notification: Some(id), ..DeliveryFilter::default() };
        Ok(self.inner.store.deliveries(&filter, DELIVERIES_MAX)?)
    }

    /// The number of the last change, and its changes.
    pub(crate) fn changes(&self) -> channel::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// Everyone who waits for a change is answered at once, because the daemon ends.
    pub(crate) fn close(&self) {
        self.inner.changed.send_replace(u64::MAX);
    }

    /// Runs what blocks beside the runtime's threads.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, NotificationError> + Send + 'static,
    ) -> Result<T, NotificationError> {
        let all = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&all)).await;
        done.unwrap_or_else(|_| Err(NotificationError::Store("the work was cut off".to_owned())))
    }

    fn made(&self, new: NewNotification) -> Notification {
        let now = self.inner.clock.now();
        new.made(NotificationId::mint(now, self.inner.clock.random()), now, 0)
    }

    /// To everyone who takes it.
    fn deliveries_of(&self, made: &Notification) -> Vec<NotificationDelivery> {
        let now = self.inner.clock.now();
        let targets = self.targets();
        let takers = targets.takers(made);
        let id = || DeliveryId::mint(now, self.inner.clock.random());
        takers.map(|name| NotificationDelivery::new(id(), made.id, name.to_owned(), now)).collect()
    }

    /// Numbers the changes, writes them, and tells those who wait.
    fn write(
        &self,
        last: &mut MutexGuard<'_, u64>,
        mut notifications: Vec<Notification>,
        deliveries: Vec<NotificationDelivery>,
    ) -> Result<(), NotificationError> {
        if notifications.is_empty() && deliveries.is_empty() {
            return Ok(());
        }
        let mut next = **last;
        for held in &mut notifications {
            next += 1;
            held.change = next;
        }
        let to: Vec<String> = deliveries.iter().map(|delivery| delivery.to.clone()).collect();
        let batch = NotificationBatch { notifications, deliveries, removed: Vec::new() };
        // What is refused may be on disk after all: its numbers are not given again.
        **last = next;
        self.commit(&batch)?;
        // A daemon that ends has said its last word.
        self.inner.changed.send_modify(|last| *last = (*last).max(next));
        let wake = self.inner.wake.read();
        to.iter().filter_map(|name| wake.get(name)).for_each(|line| line.notify_one());
        self.inner.tend.notify_one();
        Ok(())
    }

    /// Hands writes to the engine, and waits until they are on disk.
    fn commit(&self, batch: &NotificationBatch) -> Result<(), NotificationError> {
        let records = self.inner.store.notification_records(batch)?;
        if !records.is_empty() {
            (self.inner.sink)(records).map_err(NotificationError::Store)?;
        }
        Ok(())
    }
}
