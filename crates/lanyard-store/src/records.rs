//! The contract for records: one table of events, one of records and one of the keys they are searched by, for every kind
//! but sessions, whose log is the journal's own.
//!
//! A backend stores bytes and compares keys. Everything typed is above it, once for all backends.

mod fold;

use std::fmt;
use std::ops::ControlFlow;

use lanyard_core::flow::Flow;
use lanyard_core::naming::IdPart;
use lanyard_core::notification::{Notification, NotificationDelivery};
use lanyard_core::task::{Mail, Task};
use lanyard_core::{DeliveryId, FlowId, MailId, NotificationId, Record, TaskId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use fold::LogFold;
pub(crate) use fold::{Findings, SummedLog};

/// Records and their logs. All calls block. Records are written with [`crate::Journal::append`]; any number of threads read
/// what has been committed.
pub trait Records: Send + Sync {
    /// The first contradiction between the batch and the stored records, because of which `append` would refuse it.
    fn contradiction(&self, batch: &RecordBatch) -> Result<Option<String>, StoreError>;

    /// Reads one record; `read` is not called when there is none. A damaged row is made again from its log; a record that
    /// cannot be made is an error.
    fn read_record(&self, of: RecordRef, read: BodyReader<'_>) -> Result<(), StoreError>;

    /// Reads the records that match, in the order asked, until `read` breaks off. A record that cannot be made from its
    /// row or its log is left out and reported by `check`.
    fn read_records(&self, query: &RecordQuery, read: BodyReader<'_>) -> Result<(), StoreError>;

    /// Reads the events of a log with `seq > after`, in order, until `read` breaks off. A damaged one among them is an
    /// error.
    fn read_log(&self, of: RecordRef, after: u64, read: BodyReader<'_>) -> Result<(), StoreError>;

    /// The records that a log gave this name, newest first. At most `FIND_MAX`.
    fn records_named(&self, kind: RecordKind, name: &str) -> Result<Vec<u128>, StoreError>;

    /// Records whose id begins or ends with a part, newest first. At most `limit`. A beginning is a range of an index; an
    /// end is looked for in all entries of that index, without reading a record.
    fn records_like(&self, kind: RecordKind, part: &IdPart, limit: usize) -> Result<Vec<u128>, StoreError>;

    /// Number of records with this value of a key.
    fn count_records(&self, kind: RecordKind, key: &RecordKey) -> Result<u64, StoreError>;

    /// The largest value of a key within the range; of a key that counts changes, the largest there ever was.
    fn last_key(&self, kind: RecordKind, range: &KeyRange) -> Result<Option<KeyValue>, StoreError>;
}

/// Takes a body and answers whether to go on, or why the body cannot be understood.
pub type BodyReader<'a> = &'a mut dyn FnMut(&[u8]) -> Result<ControlFlow<()>, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    Flow,
    Task,
    Mail,
    Notification,
    Delivery,
}

impl RecordKind {
    pub const ALL: [Self; 5] = [Self::Flow, Self::Task, Self::Mail, Self::Notification, Self::Delivery];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Task => "task",
            Self::Mail => "mail",
            Self::Notification => "notification",
            Self::Delivery => "delivery",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// An empty log of this kind; none for a kind whose records have no log, and are no projection of one.
    pub(crate) fn fold(self) -> Option<Box<dyn SummedLog>> {
        match self {
            Self::Flow => Some(Box::new(LogFold::<Flow>::default())),
            Self::Task => Some(Box::new(LogFold::<Task>::default())),
            Self::Mail | Self::Notification | Self::Delivery => None,
        }
    }

    pub(crate) fn has_log(self) -> bool {
        self.fold().is_some()
    }

    /// The key of which no two records of this kind have the same value.
    pub(crate) const fn unique(self) -> Option<&'static str> {
        match self {
            Self::Flow | Self::Task | Self::Delivery => None,
            Self::Mail => Some("place"),
            Self::Notification => Some("lasting"),
        }
    }

    /// The key that counts changes, whose largest value outlives its record.
    pub(crate) const fn counter(self) -> Option<&'static str> {
        match self {
            Self::Flow | Self::Task | Self::Mail | Self::Delivery => None,
            Self::Notification => Some("change"),
        }
    }

    /// The row of a stored body, or why the body cannot be understood.
    pub(crate) fn row(self, body: &[u8]) -> Result<RecordRow, String> {
        let row = match self {
            Self::Flow => decode::<Flow>(body)?.row(),
            Self::Task => decode::<Task>(body)?.row(),
            Self::Mail => decode::<Mail>(body)?.row(),
            Self::Notification => decode::<Notification>(body)?.row(),
            Self::Delivery => decode::<NotificationDelivery>(body)?.row(),
        };
        row.map_err(|error| error.to_string())
    }
}

/// Names a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordRef {
    pub kind: RecordKind,
    pub id: u128,
}

impl fmt::Display for RecordRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RecordKind::Flow => fmt::Display::fmt(&FlowId::from_u128(self.id), f),
            RecordKind::Task => fmt::Display::fmt(&TaskId::from_u128(self.id), f),
            RecordKind::Mail => fmt::Display::fmt(&MailId::from_u128(self.id), f),
            RecordKind::Notification => fmt::Display::fmt(&NotificationId::from_u128(self.id), f),
            RecordKind::Delivery => fmt::Display::fmt(&DeliveryId::from_u128(self.id), f),
        }
    }
}

/// Writes of records. All of them are in one commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordBatch {
    /// Entries in the order of their events. Per record, `seq` continues without a gap.
    pub entries: Vec<RecordEntry>,
    /// Each as of its last entry; all records that have entries are here.
    pub rows: Vec<RecordRow>,
    /// Records to remove, with their keys. Only records without a log can be removed.
    pub removed: Vec<RecordRef>,
}

/// An event of a record's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEntry {
    pub of: RecordRef,
    pub seq: u64,
    pub body: Vec<u8>,
    /// Names by which the record can be found from now on.
    pub names: Vec<String>,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    pub of: RecordRef,
    /// Number of the last event it includes; 0 for a record without a log.
    pub as_of: u64,
    pub body: Vec<u8>,
    pub keys: Vec<RecordKey>,
}

/// A key that records are searched by, and its value.
pub type RecordKey = (&'static str, KeyValue);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue {
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl KeyValue {
    /// An id as a key.
    pub(crate) fn id(bits: u128) -> Self {
        Self::Bytes(bits.to_be_bytes().to_vec())
    }
}

impl From<bool> for KeyValue {
    fn from(value: bool) -> Self {
        Self::Number(value.into())
    }
}

/// A search for records of one kind. All keys must match; the first should be the one that fewest records have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordQuery {
    pub kind: RecordKind,
    pub keys: Vec<RecordKey>,
    pub order: RecordOrder,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOrder {
    /// By id; those after this one only.
    Oldest { after: Option<u128> },
    /// By id, the latest first; those before this one only.
    Newest { before: Option<u128> },
    /// By the value of a key; those within the range only.
    Key(KeyRange),
}

/// Values of a key between two others, without either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub key: &'static str,
    pub after: KeyValue,
    pub before: KeyValue,
}

/// A type whose values are records.
pub(crate) trait Stored: PartialEq + Serialize + DeserializeOwned {
    const KIND: RecordKind;

    fn bits(&self) -> u128;

    /// Number of the last event it includes; 0 for a record without a log.
    fn as_of(&self) -> u64;

    /// The keys this record is searched by.
    fn keys(&self) -> Vec<RecordKey>;

    fn of(&self) -> RecordRef {
        RecordRef { kind: Self::KIND, id: self.bits() }
    }

    fn row(&self) -> Result<RecordRow, StoreError> {
        let of = self.of();
        Ok(RecordRow { of, as_of: self.as_of(), body: encode(of, self)?, keys: self.keys() })
    }
}

impl RecordBatch {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.rows.is_empty() && self.removed.is_empty()
    }

    /// Adds the writes of another batch after its own.
    pub fn append(&mut self, mut other: Self) {
        self.entries.append(&mut other.entries);
        self.rows.append(&mut other.rows);
        self.removed.append(&mut other.removed);
    }

    /// The records that the batch writes or removes. All records that have entries have rows.
    pub fn records(&self) -> impl Iterator<Item = RecordRef> {
        self.rows.iter().map(|row| row.of).chain(self.removed.iter().copied())
    }

    pub(crate) fn add_entry<E: lanyard_core::LogEntry>(
        &mut self,
        of: RecordRef,
        entry: &E,
    ) -> Result<(), StoreError> {
        let (seq, body, names) = (entry.seq(), encode(of, entry)?, entry.names());
        self.entries.push(RecordEntry { of, seq, body, names });
        Ok(())
    }
}

pub(crate) fn get<R: Stored>(store: &(impl Records + ?Sized), id: u128) -> Result<Option<R>, StoreError> {
    let mut found = None;
    store.read_record(RecordRef { kind: R::KIND, id }, &mut |body| {
        found = Some(decode::<R>(body)?);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Records that match the query and `matches`, which tests the decoded record. At most `limit`; fewer only when there
/// are no more.
pub(crate) fn list<R: Stored>(
    store: &(impl Records + ?Sized),
    query: &RecordQuery,
    matches: impl Fn(&R) -> bool,
    limit: usize,
) -> Result<Vec<R>, StoreError> {
    let mut found = Vec::new();
    if limit > 0 {
        store.read_records(query, &mut |body| {
            found.extend(Some(decode::<R>(body)?).filter(&matches));
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
    }
    Ok(found)
}

/// Up to `limit` events of a log with `seq > after`, in order.
pub(crate) fn log<R: Stored + Record>(
    store: &(impl Records + ?Sized),
    id: u128,
    after: u64,
    limit: usize,
) -> Result<Vec<R::Entry>, StoreError> {
    let mut events = Vec::new();
    if limit > 0 {
        store.read_log(RecordRef { kind: <R as Stored>::KIND, id }, after, &mut |body| {
            events.push(decode::<R::Entry>(body)?);
            Ok(if events.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
    }
    Ok(events)
}

pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("it cannot be understood: {error}"))
}

fn encode(of: RecordRef, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::Damaged(format!("{of} cannot be written: {error}")))
}
