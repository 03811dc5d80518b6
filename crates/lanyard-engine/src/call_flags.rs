//! What every tool call of a session looks at: whether it has to ask before it goes. The engine sets it after each commit;
//! the interceptor counts calls under way in it.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lanyard_core::SessionId;
use lanyard_core::session::Channel;
use tokio::time::Instant;

/// Unused flags that are kept; beyond that they are made again when a call comes.
const FLAGS_MAX: usize = 65_536;

/// Which sessions have something pending. Written by the engine after each commit, read by every call.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub held: Arc<RwLock<HashMap<SessionId, Arc<Flag>>>>,
    /// Calls of all sessions whose answers wait for the log, until they are in it.
    present: Arc<AtomicUsize>,
}

/// What every call of a session looks at.
#[derive(Debug)]
pub struct Flag {
    /// Calls have to ask.
    pub up: AtomicBool,
    /// Calls that are being carried out.
    pub open: AtomicUsize,
    /// Calls of all sessions whose answers wait for the log, until they are in it.
    pub present: Arc<AtomicUsize>,
    /// Calls that have come back, of those that are counted.
    pub returned: AtomicUsize,
    /// Calls of hooks and wrapped servers: their ends are told, or never.
    pub told: Mutex<VecDeque<ToldCall>>,
}

#[derive(Debug)]
pub struct ToldCall {
    pub id: String,
    pub channel: Channel,
    pub began: Instant,
}

impl Flag {
    /// Calls that are being carried out. What was told to begin so long ago that its end is lost does not count.
    pub fn in_flight(&self, lost_after: Duration) -> usize {
        let mut told = self.told.lock();
        told.retain(|call| call.began.elapsed() < lost_after);
        self.open.load(Ordering::Acquire) + told.len()
    }
}

impl Flags {
    /// The session's flag. A new one is up: the first call asks the engine, which knows.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Arc<Flag> {
        if let Some(flag) = self.held.read().get(&session) {
            return flag.clone();
        }
        let mut flags = self.held.write();
        if flags.len() >= FLAGS_MAX {
            flags.retain(|_, flag| Arc::strong_count(flag) > 1);
        }
        let present = self.present.clone();
        let flag = || {
            let (up, open) = (AtomicBool::new(true), AtomicUsize::new(0));
            Arc::new(Flag { up, open, present, returned: AtomicUsize::new(0), told: Mutex::default() })
        };
        flags.entry(session).or_insert_with(flag).clone()
    }

    /// Says whether calls of the session have to ask. Sessions whose calls never came by have no flag and need none.
    pub fn set(&self, session: SessionId, up: bool) {
        if let Some(flag) = self.held.read().get(&session) {
            flag.up.store(up, Ordering::Release);
        }
    }

    /// Whether anybody has come by for this session since the daemon started. Its calls may not be in the log yet.
    #[must_use]
    pub fn knows(&self, session: SessionId) -> bool {
        self.held.read().contains_key(&session)
    }

    /// Whether a call of the session is being carried out, whose answer can carry what is to be said.
    #[must_use]
    pub fn answer_is_due(&self, session: SessionId) -> bool {
        let flags = self.held.read();
        flags.get(&session).is_some_and(|flag| flag.open.load(Ordering::Acquire) > 0)
    }

    /// Whether the answer to a call may still tell the agent of a stop: also a call of a wrapped server, whose end may
    /// be lost with the server. The stop's deadline bounds the wait.
    #[must_use]
    pub fn may_be_told(&self, session: SessionId) -> bool {
        let flags = self.held.read();
        flags.get(&session).is_some_and(|flag| {
            let told = flag.told.lock();
            flag.open.load(Ordering::Acquire) > 0 || told.iter().any(|call| call.channel == Channel::Mcp)
        })
    }
}
