//! The order in which records changed, for readers that follow them by position.
//!
//! Every change of a task, plan, flow, notification or mail has a position: one number for all kinds, given in the
//! transaction of the change, never given twice. A record with a log has one change per event. Of a record without one only
//! the last change is kept.

use std::fmt;

use lanyard_core::{FlowId, FollowedKind, MailId, NotificationId, PlanId, TaskId};

use crate::error::StoreError;
use crate::records::{RecordKind, RecordRef};

/// Called with the last position after each commit that changed a record. It must not wait: writers call it.
pub type ChangeTeller = Box<dyn Fn(u64) + Send + Sync>;

/// Changes of records. All calls block.
pub trait RecordChanges: Send + Sync {
    /// The changes after a position that match, in order. At most `limit`, and no more than a page looks at: `through` says
    /// how far it came.
    fn record_changes(
        &self,
        filter: &ChangeFilter,
        after: u64,
        limit: usize,
    ) -> Result<ChangePage, StoreError>;

    /// The position of the last change; 0 for none.
    fn last_change(&self) -> Result<u64, StoreError>;

    /// Sets what is told of changes from now on. Only the first call counts.
    fn tell_changes(&self, tell: ChangeTeller);
}

/// Names a record that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FollowedRef {
    pub kind: FollowedKind,
    pub id: u128,
}

impl FollowedRef {
    /// Reads the id of a record of any kind.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let ids = [
            (FollowedKind::Task, text.parse().map(TaskId::as_u128)),
            (FollowedKind::Plan, text.parse().map(PlanId::as_u128)),
            (FollowedKind::Flow, text.parse().map(FlowId::as_u128)),
            (FollowedKind::Notification, text.parse().map(NotificationId::as_u128)),
            (FollowedKind::Mail, text.parse().map(MailId::as_u128)),
        ];
        ids.into_iter().find_map(|(kind, id)| Some(Self { kind, id: id.ok()? }))
    }

    /// The same record, if its kind can be followed.
    pub(crate) fn of(record: RecordRef) -> Option<Self> {
        let kind = FollowedKind::named(record.kind.as_str())?;
        Some(Self { kind, id: record.id })
    }

    /// The kind of stored record; none for plans, which are papers.
    pub(crate) fn record_kind(self) -> Option<RecordKind> {
        RecordKind::named(self.kind.as_str())
    }
}

impl fmt::Display for FollowedRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record_kind() {
            Some(kind) => fmt::Display::fmt(&RecordRef { kind, id: self.id }, f),
            None => fmt::Display::fmt(&PlanId::from_u128(self.id), f),
        }
    }
}

/// Which changes are read. All conditions must hold; an empty list is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    pub kinds: Vec<FollowedKind>,
    pub records: Vec<FollowedRef>,
    /// A plan and its tasks.
    pub plan: Option<PlanId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangePage {
    pub changes: Vec<RecordChange>,
    /// Everything that matches up to this position has been read.
    pub through: u64,
    /// There may be more after it.
    pub more: bool,
}

/// One change of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    pub position: u64,
    pub of: FollowedRef,
    /// The number of the event; 0 for a record without a log.
    pub seq: u64,
    pub body: ChangedBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedBody {
    /// The event, or the record as it is now.
    Whole(Vec<u8>),
    /// The record was removed.
    Removed,
    /// It is not as it was written.
    Damaged,
}
