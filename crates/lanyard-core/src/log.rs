//! A record with a log: the frame that every kind of record shares. The rules of a kind are its own.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Kinds of record that can be followed by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FollowedKind {
    Task,
    Plan,
    Flow,
    Notification,
    Mail,
}

impl FollowedKind {
    pub const ALL: [Self; 5] = [Self::Task, Self::Plan, Self::Flow, Self::Notification, Self::Mail];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Plan => "plan",
            Self::Flow => "flow",
            Self::Notification => "notification",
            Self::Mail => "mail",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether each event of a log is a change of its own.
    #[must_use]
    pub const fn has_log(self) -> bool {
        match self {
            Self::Task | Self::Flow => true,
            Self::Plan | Self::Notification | Self::Mail => false,
        }
    }
}

/// An event at its position in the log of a record.
pub trait LogEntry: Clone + Serialize + DeserializeOwned {
    type Id: Copy + PartialEq + Display;

    /// The record whose log the entry belongs to.
    fn record(&self) -> Self::Id;

    /// Position in the log: 1, 2, 3 … without gaps, never reused.
    fn seq(&self) -> u64;

    /// Names by which the record can be found from this entry on.
    #[must_use]
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A record that is the sum of its log. It changes in [`Record::apply`] only, the same when running and when replaying.
pub trait Record: Clone + PartialEq + Serialize + DeserializeOwned {
    /// The word for this kind of record in messages.
    const KIND: &'static str;

    type Entry: LogEntry;

    fn id(&self) -> <Self::Entry as LogEntry>::Id;

    /// Position of the last entry that was applied.
    fn seq(&self) -> u64;

    /// Makes the record as of `seq` without applying the entry.
    fn skip_to(&mut self, seq: u64);

    fn is_ended(&self) -> bool;

    /// The record that a creating entry makes; an error for any other entry.
    fn first(entry: &Self::Entry) -> Result<Self, &'static str>;

    /// The rules of the kind. May leave the record part-changed when it fails.
    fn change(&mut self, entry: &Self::Entry) -> Result<(), &'static str>;

    /// The record its first entry makes.
    fn born(entry: &Self::Entry) -> Result<Self, Impossible> {
        let record = Self::first(entry).map_err(|what| Impossible::new::<Self>(entry, what))?;
        match entry.seq() {
            1 => Ok(record),
            _ => Err(Impossible::new::<Self>(entry, "a log begins with number 1")),
        }
    }

    /// Makes the entry true. After an error the record may be part-changed and must be thrown away.
    fn apply(&mut self, entry: &Self::Entry) -> Result<(), Impossible> {
        let changed = if entry.record() != self.id() {
            Err("it belongs to another record")
        } else if entry.seq() != self.seq() + 1 {
            Err("its number is not the next")
        } else {
            self.change(entry)
        };
        changed.map_err(|what| Impossible::new::<Self>(entry, what))?;
        self.skip_to(entry.seq());
        Ok(())
    }
}

/// An entry that cannot have happened to its record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} of {kind} {record} does not follow: {what}")]
pub struct Impossible {
    pub kind: &'static str,
    pub record: String,
    pub seq: u64,
    pub what: &'static str,
}

impl Impossible {
    fn new<R: Record>(entry: &R::Entry, what: &'static str) -> Self {
        Self { kind: R::KIND, record: entry.record().to_string(), seq: entry.seq(), what }
    }
}
