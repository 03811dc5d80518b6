//! The contract for counts and notifications: kept beside the log, because nothing else tells of them.

use lanyard_core::continuity::{Counter, Slot, Tally};
use lanyard_core::notification::{
    Delivery, DeliveryState, Notification, NotificationKind, NotificationStatus, Severity,
};
use lanyard_core::{NotificationId, SessionId, Timestamp};

use crate::error::{AppendError, StoreError};
use crate::journal::Durability;

/// Counts by the minute. What an event of a log counts for is written with it, in `Batch::tally`; the rest comes here.
pub trait Tallies: Send + Sync {
    /// Adds to the minute of `at` and to the totals, in one transaction.
    fn add_tally(&self, at: Timestamp, tally: &Tally, durability: Durability) -> Result<(), AppendError>;

    /// All that is kept; slot 0 has the totals. A damaged row is left out and reported by `check`.
    fn tallies(&self) -> Result<Vec<(Slot, Counter, u64)>, StoreError>;

    /// Forgets minutes before `slot`; the totals stay. Answers how many rows that were.
    fn forget_tallies(&self, before: Slot) -> Result<usize, StoreError>;
}

/// Notifications and their deliveries. All calls block; one writes, any number read what has been committed.
pub trait Notifications: Send + Sync {
    /// Writes the whole batch in one synced transaction. A second notification of the same key, while the first is not
    /// over, contradicts.
    fn write_notifications(&self, batch: &NotificationBatch) -> Result<(), AppendError>;

    /// A damaged one is an error.
    fn notification(&self, id: NotificationId) -> Result<Option<Notification>, StoreError>;

    /// The one of this key that is not over.
    fn lasting(&self, key: &str) -> Result<Option<Notification>, StoreError>;

    /// Those that match all of the filter, in the order asked. At most `limit`; fewer only when there are no more. A
    /// damaged one is left out and reported by `check`.
    fn notifications(
        &self,
        filter: &NotificationFilter,
        order: NotificationOrder,
        limit: usize,
    ) -> Result<Vec<Notification>, StoreError>;

    /// How many there are of each status.
    fn notification_counts(&self) -> Result<Vec<(NotificationStatus, u64)>, StoreError>;

    /// The number of the last change; 0 when there was none.
    fn last_notification_change(&self) -> Result<u64, StoreError>;

    /// Deliveries that match all of the filter, oldest first. At most `limit`.
    fn deliveries(&self, filter: &DeliveryFilter, limit: usize) -> Result<Vec<Delivery>, StoreError>;

    /// How many deliveries are pending, and how many are dead.
    fn delivery_counts(&self) -> Result<(u64, u64), StoreError>;
}

/// Everything one commit of notifications makes durable.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NotificationBatch {
    /// Each as it now is.
    pub notifications: Vec<Notification>,
    pub deliveries: Vec<Delivery>,
    /// These go, with their deliveries.
    pub removed: Vec<NotificationId>,
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
    /// One of these; any when there are none.
    pub ids: Vec<NotificationId>,
    /// Those that were not dismissed, or those that were.
    pub open: Option<bool>,
    /// Those whose condition lasts, or those whose condition is over.
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
    pub(crate) fn matches(&self, held: &Notification) -> bool {
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
    pub(crate) fn matches(&self, held: &Delivery) -> bool {
        let pending = matches!(held.state, DeliveryState::Pending { .. });
        self.notification.is_none_or(|wanted| wanted == held.notification)
            && self.to.as_ref().is_none_or(|wanted| *wanted == held.to)
            && self.due_by.is_none_or(|by| held.state.due_at().is_some_and(|due| due <= by))
            && self.pending.is_none_or(|wanted| wanted == pending)
    }
}
