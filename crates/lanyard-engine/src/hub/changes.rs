//! Which sessions changed, for those who watch all of them. The engine only notes an id; what became of the session is
//! read when it is sent. A watcher is a set of ids, so a session that changes a thousand times is there once.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lanyard_core::SessionId;
use tokio::sync::Notify;

use crate::hub::Hub;

/// Sessions that may wait to be looked at by one watcher. One that is further behind starts over.
const WAITING_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Board {
    watchers: AtomicUsize,
    /// What the engine noted since it was last passed on.
    fresh: Mutex<HashSet<SessionId>>,
    lists: Mutex<Vec<Arc<List>>>,
}

#[derive(Debug, Default)]
struct List {
    ids: Mutex<HashSet<SessionId>>,
    overflown: AtomicBool,
    closed: AtomicBool,
    wake: Notify,
}

/// What one watcher has still to look at. Dropped, it watches no more.
#[derive(Debug)]
pub struct Changes {
    hub: Arc<Hub>,
    of: Of,
    list: Arc<List>,
}

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Anything, also what was only said.
    All,
    /// What a session is, not only what was said in it.
    Structure,
    /// Sessions that ended.
    Ends,
}

/// Why there is nothing more to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Closing,
    Behind,
}

impl Board {
    pub(super) fn pass_on(&self) {
        if self.watchers.load(Ordering::Acquire) == 0 {
            return;
        }
        let fresh = std::mem::take(&mut *self.fresh.lock());
        if fresh.is_empty() {
            return;
        }
        for list in &*self.lists.lock() {
            let mut ids = list.ids.lock();
            ids.extend(&fresh);
            if ids.len() > WAITING_MAX {
                *ids = HashSet::new();
                list.overflown.store(true, Ordering::Release);
            }
            drop(ids);
            list.wake.notify_one();
        }
    }

    pub(super) fn close(&self) {
        for list in &*self.lists.lock() {
            list.closed.store(true, Ordering::Release);
            list.wake.notify_one();
        }
    }
}

impl Hub {
    /// Notes that something about these sessions is different.
    pub fn touch(&self, of: Of, sessions: impl Iterator<Item = SessionId>) {
        let board = self.board(of);
        if board.watchers.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut fresh = board.fresh.lock();
        let before = fresh.len();
        fresh.extend(sessions);
        if fresh.len() > before {
            self.wake.notify_one();
        }
    }

    /// From here on, every change is noted.
    pub fn changes(self: &Arc<Self>, of: Of) -> Changes {
        let list = Arc::new(List::default());
        list.closed.store(self.closing.load(Ordering::Acquire), Ordering::Release);
        let board = self.board(of);
        board.lists.lock().push(list.clone());
        board.watchers.fetch_add(1, Ordering::AcqRel);
        Changes { hub: self.clone(), of, list }
    }

    fn board(&self, of: Of) -> &Board {
        match of {
            Of::All => &self.changes,
            Of::Structure => &self.structure,
            Of::Ends => &self.ends,
        }
    }
}

impl Changes {
    /// Waits until something changed.
    pub async fn wait(&self) -> Result<(), Over> {
        loop {
            if self.list.closed.load(Ordering::Acquire) {
                return Err(Over::Closing);
            }
            if self.list.overflown.load(Ordering::Acquire) {
                return Err(Over::Behind);
            }
            if !self.list.ids.lock().is_empty() {
                return Ok(());
            }
            self.list.wake.notified().await;
        }
    }

    /// Some of what changed; the rest waits.
    #[must_use]
    pub fn take(&self, max: usize) -> Vec<SessionId> {
        let mut ids = self.list.ids.lock();
        if ids.len() <= max {
            return std::mem::take(&mut *ids).into_iter().collect();
        }
        let taken: Vec<SessionId> = ids.iter().take(max).copied().collect();
        for id in &taken {
            ids.remove(id);
        }
        taken
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let board = self.hub.board(self.of);
        board.watchers.fetch_sub(1, Ordering::AcqRel);
        board.lists.lock().retain(|list| !Arc::ptr_eq(list, &self.list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: std::ops::Range<u128>) -> impl Iterator<Item = SessionId> {
        range.map(SessionId::from_u128)
    }

    #[tokio::test]
    async fn a_session_that_changes_often_waits_once_and_the_rest_is_kept() {
        let hub = Arc::new(Hub::default());
        hub.touch(Of::All, ids(0..5));
        let changes = hub.changes(Of::All);
        hub.touch(Of::All, ids(0..3));
        hub.touch(Of::All, ids(0..3));
        hub.touch(Of::Ends, ids(7..9));
        hub.changes.pass_on();
        changes.wait().await.unwrap();
        let mut seen = changes.take(2);
        assert_eq!(seen.len(), 2);
        seen.extend(changes.take(9));
        seen.sort();
        assert_eq!(seen, ids(0..3).collect::<Vec<_>>(), "what was before is not among them");
        assert!(changes.take(9).is_empty());
    }

    #[tokio::test]
    async fn one_that_is_too_far_behind_is_told() {
        let hub = Arc::new(Hub::default());
        let changes = hub.changes(Of::All);
        hub.touch(Of::All, ids(0..WAITING_MAX as u128 + 1));
        hub.changes.pass_on();
        assert_eq!(changes.wait().await, Err(Over::Behind));
        drop(changes);
        assert_eq!(hub.changes.watchers.load(Ordering::Acquire), 0);
    }
}
