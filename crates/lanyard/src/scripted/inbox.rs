//! What reaches a running turn from outside: a cancel, and the answers to its questions. Everything a turn waits for is
//! waited for here, so that a cancel wakes it at once.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use serde_json::Value;

/// What somebody else said to a question.
pub(super) type Answer = Result<Value, Error>;

/// The turn was cancelled while it waited, or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cancelled;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    heard: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    cancelled: bool,
    answers: HashMap<i64, Answer>,
}

impl Inbox {
    pub(super) fn cancel(&self) {
        lock(&self.heard).cancelled = true;
        self.changed.notify_all();
    }

    /// An error once the turn is cancelled.
    pub(super) fn check(&self) -> Result<(), Cancelled> {
        if lock(&self.heard).cancelled { Err(Cancelled) } else { Ok(()) }
    }

    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        lock(&self.heard).answers.insert(id, answer);
        self.changed.notify_all();
    }

    /// Waits as long as it takes. A cancel counts for more than an answer that came with it.
    pub(super) fn answer(&self, id: i64) -> Result<Answer, Cancelled> {
        let waits = |heard: &mut Heard| !heard.cancelled && !heard.answers.contains_key(&id);
        let heard = self.changed.wait_while(lock(&self.heard), waits);
        let mut heard = heard.unwrap_or_else(PoisonError::into_inner);
        if heard.cancelled { Err(Cancelled) } else { heard.answers.remove(&id).ok_or(Cancelled) }
    }

    /// Waits whether or not the turn is cancelled.
    pub(super) fn answer_despite_cancel(&self, id: i64, within: Duration) -> Option<Answer> {
        let waits = |heard: &mut Heard| !heard.answers.contains_key(&id);
        let waited = self.changed.wait_timeout_while(lock(&self.heard), within, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.answers.remove(&id)
    }

    /// Lets time pass.
    pub(super) fn pause(&self, duration: Duration) -> Result<(), Cancelled> {
        let waits = |heard: &mut Heard| !heard.cancelled;
        let waited = self.changed.wait_timeout_while(lock(&self.heard), duration, waits);
        if waited.unwrap_or_else(PoisonError::into_inner).0.cancelled { Err(Cancelled) } else { Ok(()) }
    }
}

/// A thread that panicked leaves nothing half done here that others could not live with.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
