//! The contract for deleting sessions for good: the data that is removed, the steps, and the tombstone that remains.

use lanyard_core::journal::{JournalSize, PurgeStage, Tombstone};
use lanyard_core::session::{ChangeEvent, Envelope, Event};
use lanyard_core::{Actor, SessionId, Timestamp};

use crate::error::StoreError;
use crate::journal::StoredEvent;

/// Events at the end of a log among which the deletion is looked for. Little is written after it.
pub(crate) const LAST_WORDS: u64 = 64;

/// Removing the logs of deleted sessions. All calls block; each is short, so that the engine's commits go on between two.
pub trait Purges: Send + Sync {
    /// Deleted sessions whose log, or part of it, is still there. At most `limit`.
    fn unpurged(&self, limit: usize) -> Result<Vec<SessionId>, StoreError>;

    /// Removes up to about `limit` events of a deleted session, the newest first, and everything made from them. The
    /// first call leaves the tombstone; from then on the session cannot be read. Safe to repeat after a crash.
    fn purge(&self, session: SessionId, limit: usize) -> Result<PurgeStep, StoreError>;

    /// Overwrites what purged logs left in free space and in the write-ahead log, and gives the space back. One bounded
    /// step; repeat it until it answers [`WipeStep::Done`].
    fn wipe(&self) -> Result<WipeStep, StoreError>;

    /// The tombstone of a session whose purge has begun.
    fn tombstone(&self, session: SessionId) -> Result<Option<Tombstone>, StoreError>;

    /// Number of tombstones, and of those that are not [`PurgeStage::Wiped`] yet.
    fn tombstones(&self) -> Result<(u64, u64), StoreError>;

    /// Size of the journal on disk.
    fn size(&self) -> Result<JournalSize, StoreError>;

    /// Rewrites the whole file without free space. Writers wait for it.
    fn compact(&self) -> Result<JournalSize, StoreError>;
}

/// The result of one step of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeStep {
    /// There is no such session.
    Unknown,
    /// The session is not deleted; nothing was removed.
    NotDeleted,
    /// Events that are still there.
    Going { left: u64 },
    /// No row of the session is left but its tombstone.
    Done,
}

/// The result of one step of wiping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeStep {
    /// More steps are needed.
    Going,
    /// A reader holds on to older pages; try again later.
    Busy,
    /// The journal's files hold nothing of a purged log any more.
    Done,
}

/// The tombstone of a session, from the end of its log. One whose deletion cannot be read any more is the system's.
pub(crate) fn tombstone(
    session: SessionId,
    parent: Option<SessionId>,
    head: (u64, Timestamp),
    last: &[StoredEvent],
) -> Tombstone {
    let mut stone = Tombstone {
        session,
        parent,
        deleted_at: head.1,
        deleted_by: Actor::system("journal"),
        reason: None,
        events: head.0,
        stage: PurgeStage::Purging,
    };
    let bodies = last.iter().rev().filter_map(|event| event.body.as_ref().ok());
    for envelope in bodies.filter_map(|body| serde_json::from_slice::<Envelope>(body).ok()) {
        if let Event::Change(ChangeEvent::Deleted { reason }) = envelope.event {
            stone.deleted_at = envelope.at;
            stone.deleted_by = envelope.actor;
            stone.reason = reason;
            break;
        }
    }
    stone
}
