//! The contract of a journal. SQLite implements it; the contract suite in `tests/it` runs on every backend.
//!
//! All calls block. Appends come one at a time, from the thread that runs the engine's round: events of sessions, and the
//! records of tasks, mail, flows, notifications and deliveries. Papers, memory, tokens, counts and purges are written by
//! other threads on the same connection, one transaction at a time. Any number of threads read.

use bytes::Bytes;
use lanyard_core::continuity::Tally;
use lanyard_core::insight::InsightStep;
use lanyard_core::journal::{Damage, Report, Row};
use lanyard_core::naming::IdPart;
use lanyard_core::session::{Lineage, OperatorState, StateName, TurnRow, TurnStep};
use lanyard_core::{Actor, Address, Outcome, Session, SessionId, Timestamp, TokenId, TurnId};

use crate::error::{AppendError, StoreError};
use crate::query::{Cursor, Filter, Listing};
use crate::records::RecordBatch;

/// The durable log.
pub trait Journal: Send + Sync {
    /// Writes the whole batch in one transaction: entries, session rows, outcomes, turn rows, records. When it answers `Ok`,
    /// all of it is as safe as its [`Durability`] says and visible to readers; when it answers `Err`, nothing of it is
    /// visible and none of its sequence numbers are taken. After `Unavailable` a crash may still bring the batch back
    /// whole: callers report it as not acknowledged, never as not done.
    fn append(&self, batch: &Batch) -> Result<(), AppendError>;

    /// Makes the journal usable again after `Unavailable`: closes and reopens what has to be, reads back what is
    /// really on disk, and proves it with a durable write. Callers forget what they held of sessions first.
    fn recover(&self) -> Result<(), StoreError>;

    /// The failure that stops all writes until `recover`, whichever write met it first.
    fn failure(&self) -> Option<String>;

    /// A session as the sum of its log, with its ancestors. `None` when the id is unknown. A damaged record is rebuilt
    /// from the log; unreadable parts are in `damage`.
    fn load(&self, session: SessionId) -> Result<Option<Loaded>, StoreError>;

    /// Up to `limit` events with `seq > after`, in order, without gaps: a damaged one is there as a damage report.
    /// The cost depends on `limit`, not on the log's length. An unknown session has an empty page.
    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<EventPage, StoreError>;

    /// The outcome kept under a key, until `sweep` forgets it.
    fn outcome(&self, key: &KeyHash) -> Result<Option<KeptOutcome>, StoreError>;
}

/// The turns of a session, each as its log adds up to. Reads what has been committed.
pub trait Turns: Send + Sync {
    fn turn(&self, session: SessionId, turn: TurnId) -> Result<Option<TurnRow>, StoreError>;

    /// Up to `limit` turns, newest first, those older than `before` only. A damaged row is left out and reported by
    /// `check`. An unknown session has an empty page.
    fn turns(&self, session: SessionId, before: Option<TurnId>, limit: usize)
    -> Result<TurnPage, StoreError>;
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnPage {
    pub turns: Vec<TurnRow>,
    /// There are older ones.
    pub more: bool,
}

/// Finding sessions. Reads what has been committed.
pub trait Directory: Send + Sync {
    /// The sessions an address names; deleted ones too, so that they can be told from unknown ones. At most `FIND_MAX`.
    fn find(&self, address: &Address) -> Result<Vec<Found>, StoreError>;

    /// Sessions whose id begins or ends with a part, newest first; deleted ones are left out. At most `limit`. A pass over
    /// the catalog in memory, as a listing is.
    fn ids_like(&self, part: &IdPart, limit: usize) -> Result<Vec<SessionId>, StoreError>;

    /// Whether a session that is not deleted has this alias in exactly this workspace and plan.
    fn alias_taken(
        &self,
        alias: &str,
        workspace: Option<&str>,
        plan: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// A page of sessions, newest first, that match all of the filter. Deleted ones are never listed.
    fn list(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Result<Listing, StoreError>;

    /// The `sessions` that match the whole filter, in no order. Deleted ones are never included.
    fn rows(&self, sessions: &[SessionId], filter: &Filter) -> Result<Vec<Row>, StoreError>;

    /// Sessions in `state` since `before` or earlier, longest first: candidates for timers and for recovery at boot.
    fn in_state_since(
        &self,
        state: StateName,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// Number of sessions in each state; deleted ones do not count.
    fn states(&self) -> Result<Vec<(StateName, u64)>, StoreError>;

    /// Whether a session below this one has an open gate.
    fn waits_below(&self, session: SessionId) -> Result<bool, StoreError>;

    /// The same by the operator's word.
    fn operator_states(&self) -> Result<Vec<(OperatorState, u64)>, StoreError>;

    /// The time of the latest event in the journal, so that a clock set back does not go behind it.
    fn latest_at(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// Parents and children of sessions. Reads committed data only.
pub trait Lineages: Send + Sync {
    /// The ancestors of each session, nearest first, in the order asked.
    fn lineages(&self, sessions: &[SessionId]) -> Result<Vec<Lineage>, StoreError>;

    /// Number of generations below a session, itself included; counts no further than `max`.
    fn height(&self, session: SessionId, max: u32) -> Result<u32, StoreError>;

    /// Number of children that are neither ended nor deleted.
    fn live_children(&self, session: SessionId) -> Result<u64, StoreError>;
}

/// Keeping the journal in order.
pub trait Upkeep: Send + Sync {
    /// Reads everything and reports what is damaged. Changes nothing.
    fn check(&self) -> Result<Report, StoreError>;

    /// Throws all projections away and makes them again from the log, in one transaction. Answers how many sessions
    /// there are. Sessions whose log is damaged keep what could be read.
    fn rebuild(&self) -> Result<u64, StoreError>;

    /// Forgets outcomes kept before `before`; answers how many. Bounded: at most `limit` per call.
    fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Forgets the keys of requests ([`lanyard_core::task::is_key`]) that made tasks which ended before `before`; answers
    /// how many. Bounded: at most `limit` per call. A rebuild brings them back until the next call.
    fn forget_keys(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Bearer tokens and their permissions. Only a hash is stored.
pub trait Tokens: Send + Sync {
    fn put_token(&self, token: &StoredToken) -> Result<(), StoreError>;
    fn tokens(&self) -> Result<Vec<StoredToken>, StoreError>;
    /// Answers whether there was one.
    fn revoke_token(&self, id: TokenId) -> Result<bool, StoreError>;
}

/// Papers: documents agents keep beside the log, such as plans and pieces of context. Each write names the version it
/// was made from, so that no change is lost under another.
pub trait Papers: Send + Sync {
    fn paper(&self, place: &PaperKey) -> Result<Option<Paper>, StoreError>;

    /// Papers of one kind in a workspace, by key, those after `after` only. At most `limit`. A damaged one is left out
    /// and reported by `check`.
    fn papers(
        &self,
        kind: &str,
        workspace: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Paper>, StoreError>;

    /// Papers of one kind in all workspaces, by key; only those of that key where one is named. At most `limit`.
    fn papers_named(&self, kind: &str, key: Option<&str>, limit: usize) -> Result<Vec<Paper>, StoreError>;

    /// Writes the body when the paper's version still is `from`; 0 means that there is none yet. `Ok` and `Kept`: it is
    /// on disk.
    fn put_paper(&self, place: &PaperKey, from: u64, at: Timestamp, body: &str) -> Result<Put, StoreError>;

    /// Removes the paper, whatever its version. Answers whether there was one.
    fn remove_paper(&self, place: &PaperKey) -> Result<bool, StoreError>;
}

/// The address of a document. Its parts are never joined into one text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaperKey {
    /// The kind of document: `plan`, `context` …
    pub kind: String,
    /// The workspace it belongs to; empty for none.
    pub workspace: String,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paper {
    pub place: PaperKey,
    /// Counts its writes, from 1.
    pub version: u64,
    /// Time of the last write.
    pub at: Timestamp,
    /// JSON; the store does not look into it.
    pub body: String,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The document was written, with this version.
    Kept(u64),
    /// Nothing was written: the stored document has this version; 0 when there is none.
    Moved(u64),
}

/// Sessions one address may match before the answer is simply "ambiguous".
pub const FIND_MAX: usize = 10;

/// The failures that an appended batch survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process, however sudden. A power cut may take it, and then all that was appended after it as
    /// well; the next `Synced` batch makes it as safe as itself.
    Written,
    /// A power cut too: it is on disk, with all that was appended before it.
    #[default]
    Synced,
}

/// One commit.
#[derive(Debug, Default)]
pub struct Batch {
    pub durability: Durability,
    /// In the order they happened. Per session, `seq` goes on from its head without a gap.
    pub entries: Vec<EventEntry>,
    /// The records to write with this batch, each as of its last entry. A session with structural events is here;
    /// one with transcript events only may be left out, and is folded from its log when loaded.
    pub sessions: Vec<Session>,
    pub outcomes: Vec<KeptOutcome>,
    /// The steps of turns in the entries, in order.
    pub turns: Vec<TurnStep>,
    /// The counters that the entries increment, and the time: exact, because they are written with the entries.
    pub tally: Option<(Timestamp, Tally)>,
    /// What the entries add to the sums of cost, tokens, turns and approvals.
    pub insight: Vec<InsightStep>,
    /// The records that change with the entries.
    pub records: RecordBatch,
}

/// An event, encoded once as the wire event; readers get these bytes.
#[derive(Debug, Clone)]
pub struct EventEntry {
    pub session: SessionId,
    pub seq: u64,
    pub at: Timestamp,
    pub body: Bytes,
}

/// The hash of who used which idempotency key.
pub type KeyHash = [u8; 16];

/// The answer to a mutation, kept so that a repeat gets it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutcome {
    pub key: KeyHash,
    /// Hash of the request's content: same key, other content is a conflict.
    pub request: [u8; 16],
    pub at: Timestamp,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub session: Session,
    pub lineage: Lineage,
    pub damage: Vec<Damage>,
}

#[derive(Debug, Clone)]
pub struct StoredEvent {
    pub seq: u64,
    /// The wire event as it was appended, or what is known of the damage in its place.
    pub body: Result<Bytes, Damage>,
}

#[derive(Debug, Clone)]
pub struct EventPage {
    pub events: Vec<StoredEvent>,
    /// The session's last sequence number when the page was read; 0 for an unknown session.
    pub head: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub session: SessionId,
    pub deleted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    pub id: TokenId,
    pub hash: [u8; 32],
    pub actor: Actor,
    /// The one session an agent's token may act as.
    pub session: Option<SessionId>,
    pub created_at: Timestamp,
}
