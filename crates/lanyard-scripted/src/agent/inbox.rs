//! What reaches a running turn from outside: a cancel, and the answers to its questions. Everything a turn waits for is
//! waited for here, so that a cancel wakes it at once.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use serde_json::Value;

/// The client's answer to a question.
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
        self.heard.lock().cancelled = true;
        self.changed.notify_all();
    }

    /// An error once the turn is cancelled.
    pub(super) fn check(&self) -> Result<(), Cancelled> {
        if self.heard.lock().cancelled { Err(Cancelled) } else { Ok(()) }
    }

    pub(super) fn deliver(&self, id: i64, answer: Answer) {
        self.heard.lock().answers.insert(id, answer);
        self.changed.notify_all();
    }

    /// Waits as long as it takes. A cancel counts for more than an answer that came with it.
    pub(super) fn answer(&self, id: i64) -> Result<Answer, Cancelled> {
        let waits = |heard: &mut Heard| !heard.cancelled && !heard.answers.contains_key(&id);
        let mut heard = self.heard.lock();
        self.changed.wait_while(&mut heard, waits);
        if heard.cancelled { Err(Cancelled) } else { heard.answers.remove(&id).ok_or(Cancelled) }
    }

    /// Waits whether or not the turn is cancelled.
    pub(super) fn answer_despite_cancel(&self, id: i64, within: Duration) -> Option<Answer> {
        let waits = |heard: &mut Heard| !heard.answers.contains_key(&id);
        let mut heard = self.heard.lock();
        let _in_time = self.changed.wait_while_for(&mut heard, waits, within);
        heard.answers.remove(&id)
    }

    /// Lets time pass.
    pub(super) fn pause(&self, duration: Duration) -> Result<(), Cancelled> {
        let waits = |heard: &mut Heard| !heard.cancelled;
        let mut heard = self.heard.lock();
        let _in_time = self.changed.wait_while_for(&mut heard, waits, duration);
        if heard.cancelled { Err(Cancelled) } else { Ok(()) }
    }
}
