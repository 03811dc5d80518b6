//! Which run of each session is alive. A token that is bound to a run is good for as long as that run; one look at this
//! table says so, without a disk. Every right that ends rings the bell, so that open streams look at their own.

use parking_lot::RwLock;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lanyard_core::{RunId, SessionId};
use tokio::sync::watch;

/// Sessions that are kept in mind. Beyond that all are forgotten, and found again in the journal when a token comes.
const SESSIONS_MAX: usize = 65_536;

/// The run whose token a call came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunProof {
    /// Nothing for an operator and for a token that can be revoked.
    pub run: Option<RunId>,
    /// The run is over: the call gets the refusal of its stop.
    pub spent: bool,
}

/// Live runs by session; clones share the table. Written by the engine after each commit, read by every request.
#[derive(Debug, Clone)]
pub struct LiveRuns {
    held: Arc<RwLock<HashMap<SessionId, LiveEntry>>>,
    /// Sessions deleted under this daemon.
    gone: Arc<RwLock<HashSet<SessionId>>>,
    ended: Arc<watch::Sender<u64>>,
}

/// What is known of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiveEntry {
    /// Being read from the journal. The engine may know it sooner, and is right then.
    Reading,
    Known(Option<RunId>),
}

impl Default for LiveRuns {
    fn default() -> Self {
        Self { held: Arc::default(), gone: Arc::default(), ended: Arc::new(watch::Sender::new(0)) }
    }
}

impl LiveRuns {
    /// Whether a run is its session's live one; nothing where that has to be read.
    #[must_use]
    pub fn is_live(&self, session: SessionId, run: RunId) -> Option<bool> {
        match self.held.read().get(&session) {
            Some(LiveEntry::Known(live)) => Some(*live == Some(run)),
            Some(LiveEntry::Reading) | None => None,
        }
    }

    /// Somebody is about to read the session from the journal: what the engine commits from here on goes first.
    pub fn reading(&self, session: SessionId) {
        let mut held = self.held.write();
        if held.len() >= SESSIONS_MAX {
            held.clear();
        }
        held.entry(session).or_insert(LiveEntry::Reading);
    }

    /// What the journal says.
    #[must_use]
    pub fn read(&self, session: SessionId, run: Option<RunId>) -> Option<RunId> {
        let mut held = self.held.write();
        match held.get_mut(&session) {
            Some(LiveEntry::Known(known)) => *known,
            Some(entry @ LiveEntry::Reading) => {
                *entry = LiveEntry::Known(run);
                run
            }
            None => run,
        }
    }

    /// What is so after a commit. Sessions whose tokens never came by are not kept, and need not be.
    pub fn set(&self, session: SessionId, run: Option<RunId>) {
        let now = LiveEntry::Known(run);
        let held = self.held.read().get(&session).copied();
        if held.is_none_or(|held| held == now) {
            return;
        }
        self.held.write().insert(session, now);
        self.ring();
    }

    /// The session was deleted: it has no readers any more.
    pub fn deleted(&self, session: SessionId) {
        let mut gone = self.gone.write();
        if gone.len() >= SESSIONS_MAX {
            gone.clear();
        }
        let is_new = gone.insert(session);
        drop(gone);
        if is_new {
            self.ring();
        }
    }

    #[must_use]
    pub fn is_gone(&self, session: SessionId) -> bool {
        self.gone.read().contains(&session)
    }

    /// A right has ended.
    pub fn ring(&self) {
        self.ended.send_modify(|count| *count = count.wrapping_add(1));
    }

    #[must_use]
    pub fn endings(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_engine_commits_goes_before_what_was_being_read() {
        let (live, session) = (LiveRuns::default(), SessionId::from_u128(1));
        let (old, new) = (RunId::from_u128(2), RunId::from_u128(3));
        live.set(session, Some(old));
        assert_eq!(live.is_live(session, old), None, "nobody asked for it yet");
        live.reading(session);
        assert_eq!(live.is_live(session, old), None);
        live.set(session, Some(new));
        assert_eq!(live.read(session, Some(old)), Some(new));
        assert_eq!(live.is_live(session, new), Some(true));
        assert_eq!(live.is_live(session, old), Some(false));
    }

    #[test]
    fn the_end_of_a_run_rings_the_bell_and_nothing_else_does() {
        let (live, session, run) = (LiveRuns::default(), SessionId::from_u128(1), RunId::from_u128(2));
        live.reading(session);
        assert_eq!(live.read(session, Some(run)), Some(run));
        let mut endings = live.endings();
        live.set(session, Some(run));
        assert!(!endings.has_changed().unwrap());
        live.set(session, None);
        assert!(endings.has_changed().unwrap());
        endings.mark_unchanged();
        live.set(SessionId::from_u128(9), None);
        assert!(!endings.has_changed().unwrap());
    }
}
