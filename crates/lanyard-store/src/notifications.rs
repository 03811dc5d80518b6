//! Counts, notifications and their deliveries: kept beside the log, because nothing else tells of them.

use lanyard_core::continuity::{Counter, Slot, Tally};
use lanyard_core::notification::{
    DeliveryState, Notification, NotificationDelivery, NotificationKind, NotificationStatus, Severity,
};
use lanyard_core::{NotificationId, SessionId, Timestamp};

use crate::error::{AppendError, StoreError};
use crate::journal::Durability;
use crate::records::{
    KeyRange, KeyValue, RecordBatch, RecordKey, RecordKind, RecordOrder, RecordQuery, RecordRef, Records,
    Stored, get, list,
};

/// Counts by the minute. Counts of a log's events are written with them, in `Batch::tally`; all others are written
/// here.
pub trait Tallies: Send + Sync {
    /// Adds to the minute of `at` and to the totals, in one transaction.
    fn add_tally(&self, at: Timestamp, tally: &Tally, durability: Durability) -> Result<(), AppendError>;

    /// All that is kept; slot 0 has the totals. A damaged row is left out and reported by `check`.
    fn tallies(&self) -> Result<Vec<(Slot, Counter, u64)>, StoreError>;

    /// Forgets minutes before `slot`; the totals stay. Answers how many rows that were.
    fn forget_tallies(&self, before: Slot) -> Result<usize, StoreError>;
}

/// Notifications and their deliveries, as [`Records`] keeps them.
pub trait Notifications: Records {
    /// The writes of a batch; a removed notification takes its stored deliveries with it. A second notification of the same
    /// key, while the first is not over, contradicts.
    fn notification_records(&self, batch: &NotificationBatch) -> Result<RecordBatch, StoreError> {
        let mut records = batch.records()?;
        for id in &batch.removed {
            let of = DeliveryFilter { notification: Some(*id), ..DeliveryFilter::default() };
            let theirs = self.deliveries(&of, usize::MAX)?;
            records.removed.extend(theirs.iter().map(Stored::of));
            records.removed.push(RecordRef { kind: RecordKind::Notification, id: id.as_u128() });
        }
        Ok(records)
    }

    /// A damaged one is an error.
    fn notification(&self, id: NotificationId) -> Result<Option<Notification>, StoreError> {
        get(self, id.as_u128())
    }

    /// The notification of this key that is not over. A damaged one is left out and reported by `check`.
    fn lasting(&self, key: &str) -> Result<Option<Notification>, StoreError> {
        let filter = NotificationFilter {
            key: Some(key.to_owned()),
            lasting: Some(true),
            ..NotificationFilter::default()
        };
        Ok(self.notifications(&filter, NotificationOrder::Newest { before: None }, 1)?.pop())
    }

    /// Notifications that match the whole filter, in the given order. At most `limit`; fewer only when there are no
    /// more. A damaged one is left out and reported by `check`.
    fn notifications(
        &self,
        filter: &NotificationFilter,
        order: NotificationOrder,
        limit: usize,
    ) -> Result<Vec<Notification>, StoreError> {
        let order = match order {
            NotificationOrder::Newest { before } => {
                RecordOrder::Newest { before: before.map(NotificationId::as_u128) }
            }
            NotificationOrder::Changed { after } => RecordOrder::Key(changes(after)),
        };
        let query = RecordQuery { kind: RecordKind::Notification, keys: filter.keys(), order };
        list(self, &query, |held| filter.matches(held), limit)
    }

    /// Number of notifications of each status.
    fn notification_counts(&self) -> Result<Vec<(NotificationStatus, u64)>, StoreError> {
        let count = |status: NotificationStatus| {
            Ok((status, self.count_records(RecordKind::Notification, &text(STATUS, status.as_str()))?))
        };
        NotificationStatus::ALL.into_iter().map(count).collect()
    }

    /// The number of the last change; 0 when there was none.
    fn last_notification_change(&self) -> Result<u64, StoreError> {
        match self.last_key(RecordKind::Notification, &changes(0))? {
            Some(KeyValue::Number(last)) => Ok(u64::try_from(last).unwrap_or(0)),
            Some(KeyValue::Text(_) | KeyValue::Bytes(_)) | None => Ok(0),
        }
    }

    /// Deliveries that match all of the filter, oldest first. At most `limit`.
    fn deliveries(
        &self,
        filter: &DeliveryFilter,
        limit: usize,
    ) -> Result<Vec<NotificationDelivery>, StoreError> {
        let order = RecordOrder::Oldest { after: None };
        let query = RecordQuery { kind: RecordKind::Delivery, keys: filter.keys(), order };
        list(self, &query, |held| filter.matches(held), limit)
    }

    /// Number of pending and of dead deliveries.
    fn delivery_counts(&self) -> Result<(u64, u64), StoreError> {
        let count = |state| self.count_records(RecordKind::Delivery, &text(STATE, state));
        Ok((count(PENDING)?, count("dead")?))
    }
}

impl<T: Records> Notifications for T {}

const STATUS: &str = "status";
const STATE: &str = "state";
const PENDING: &str = "pending";

fn text(key: &'static str, value: &str) -> RecordKey {
    (key, KeyValue::Text(value.to_owned()))
}

/// Changes after this one.
fn changes(after: u64) -> KeyRange {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    KeyRange { key: "change", after: KeyValue::Number(after), before: KeyValue::Number(i64::MAX) }
}

impl Stored for Notification {
    const KIND: RecordKind = RecordKind::Notification;

    fn bits(&self) -> u128 {
        self.id.as_u128()
    }

    fn as_of(&self) -> u64 {
        0
    }

    fn keys(&self) -> Vec<RecordKey> {
        let change = i64::try_from(self.change).unwrap_or(i64::MAX);
        let mut keys = vec![
            text("key", &self.key),
            text(STATUS, self.status.as_str()),
            ("change", KeyValue::Number(change)),
        ];
        keys.extend(self.session.map(|session| ("session", KeyValue::id(session.as_u128()))));
        keys.extend(self.snoozed_until.map(|_| ("snoozed", true.into())));
        keys.extend(self.over_at.is_none().then(|| text("lasting", &self.key)));
        keys
    }
}

impl Stored for NotificationDelivery {
    const KIND: RecordKind = RecordKind::Delivery;

    fn bits(&self) -> u128 {
        self.id.as_u128()
    }

    fn as_of(&self) -> u64 {
        0
    }

    fn keys(&self) -> Vec<RecordKey> {
        vec![("notification", KeyValue::id(self.notification.as_u128())), text(STATE, self.state.as_str())]
    }
}

/// One commit of notifications.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NotificationBatch {
    /// Each as it now is.
    pub notifications: Vec<Notification>,
    pub deliveries: Vec<NotificationDelivery>,
    /// Notifications to remove, with their deliveries.
    pub removed: Vec<NotificationId>,
}

impl NotificationBatch {
    /// The records to write; those to remove are not included.
    fn records(&self) -> Result<RecordBatch, StoreError> {
        let (all, deliveries) =
            (self.notifications.iter().map(Stored::row), self.deliveries.iter().map(Stored::row));
        let rows = all.chain(deliveries).collect::<Result<_, _>>()?;
        Ok(RecordBatch { rows, ..RecordBatch::default() })
    }
}

/// In which order notifications are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationOrder {
    /// Newest first; those older than this one only.
    Newest { before: Option<NotificationId> },
    /// By their last change, those changed after this one only.
    Changed { after: u64 },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotificationFilter {
    pub status: Option<NotificationStatus>,
    pub kind: Option<NotificationKind>,
    /// At least as pressing as this.
    pub severity: Option<Severity>,
    pub session: Option<SessionId>,
    pub key: Option<String>,
    /// Restrict to these ids; empty means any.
    pub ids: Vec<NotificationId>,
    /// Only notifications that were dismissed (`false`), or that were not (`true`).
    pub open: Option<bool>,
    /// Only notifications whose condition lasts (`true`), or is over (`false`).
    pub lasting: Option<bool>,
    /// Snoozed until then or earlier.
    pub snoozed_until: Option<Timestamp>,
    /// Last changed before then.
    pub changed_before: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub notification: Option<NotificationId>,
    pub to: Option<String>,
    /// Pending and due by then.
    pub due_by: Option<Timestamp>,
    pub pending: Option<bool>,
}

impl NotificationFilter {
    /// Keys that all that match have, the rarest first.
    fn keys(&self) -> Vec<RecordKey> {
        let key = if self.lasting == Some(true) { "lasting" } else { "key" };
        let keys = [
            self.key.as_ref().map(|wanted| text(key, wanted)),
            self.snoozed_until.map(|_| ("snoozed", true.into())),
            self.session.map(|session| ("session", KeyValue::id(session.as_u128()))),
            self.status.map(|status| text(STATUS, status.as_str())),
        ];
        keys.into_iter().flatten().collect()
    }

    fn matches(&self, held: &Notification) -> bool {
        self.status.is_none_or(|wanted| wanted == held.status)
            && self.kind.is_none_or(|wanted| wanted == held.kind)
            && self.severity.is_none_or(|wanted| held.severity >= wanted)
            && self.session.is_none_or(|wanted| held.session == Some(wanted))
            && self.key.as_ref().is_none_or(|wanted| *wanted == held.key)
            && (self.ids.is_empty() || self.ids.contains(&held.id))
            && self.open.is_none_or(|wanted| wanted == (held.status != NotificationStatus::Dismissed))
            && self.lasting.is_none_or(|wanted| wanted == held.over_at.is_none())
            && self.snoozed_until.is_none_or(|by| held.snoozed_until.is_some_and(|until| until <= by))
            && self.changed_before.is_none_or(|before| held.changed_at < before)
    }
}

impl DeliveryFilter {
    /// Keys that all that match have, the rarest first.
    fn keys(&self) -> Vec<RecordKey> {
        let pending = self.due_by.is_some() || self.pending == Some(true);
        let of = self.notification.map(|of| ("notification", KeyValue::id(of.as_u128())));
        of.into_iter().chain(pending.then(|| text(STATE, PENDING))).collect()
    }

    fn matches(&self, held: &NotificationDelivery) -> bool {
        let pending = matches!(held.state, DeliveryState::Pending { .. });
        self.notification.is_none_or(|wanted| wanted == held.notification)
            && self.to.as_ref().is_none_or(|wanted| *wanted == held.to)
            && self.due_by.is_none_or(|by| held.state.due_at().is_some_and(|due| due <= by))
            && self.pending.is_none_or(|wanted| wanted == pending)
    }
}
