//! Folding a log that may be damaged: as far as it can be read, and never in silence. It knows no database.

use std::collections::BTreeSet;

use lanyard_core::Session;
use lanyard_core::SessionId;
use lanyard_core::session::Envelope;
use lanyard_core::task::{Task, TaskEnvelope, TaskEvent};

use crate::journal::{Damage, StoredEvent};

/// A session while its log is fed to it.
pub(crate) struct Fold {
    id: SessionId,
    pub(crate) session: Option<Session>,
    pub(crate) damage: Vec<Damage>,
}

impl Fold {
    /// From the first event on, or from a record that is as of some event.
    pub(crate) fn new(id: SessionId, record: Option<Session>) -> Self {
        Self { id, session: record, damage: Vec::new() }
    }

    /// The next event of the log. One that cannot be read or does not fit is left out, and the fold goes on after it.
    pub(crate) fn feed(&mut self, event: &StoredEvent) {
        let body = match &event.body {
            Ok(body) => body,
            Err(damage) => return self.leave_out(event.seq, damage.what.clone()),
        };
        match serde_json::from_slice::<Envelope>(body) {
            Ok(envelope) => self.apply(&envelope, event.seq),
            Err(error) => self.leave_out(event.seq, format!("the event cannot be understood: {error}")),
        }
    }

    fn apply(&mut self, envelope: &Envelope, seq: u64) {
        let Some(session) = &mut self.session else {
            match Session::born(envelope) {
                Ok(session) if session.id == self.id => self.session = Some(session),
                Ok(_) => self.leave_out(seq, "the event belongs to another session".to_owned()),
                Err(error) => self.leave_out(seq, format!("the event does not fit: {error}")),
            }
            return;
        };
        // A failed apply leaves the session part-changed. Of a transcript event that is a counter at most; the others
        // are worth a clone.
        let before = envelope.event.is_structural().then(|| session.clone());
        if let Err(error) = session.apply(envelope) {
            if let Some(before) = before {
                *session = before;
            }
            self.leave_out(seq, format!("the event does not fit: {error}"));
        }
    }

    fn leave_out(&mut self, seq: u64, what: String) {
        if let Some(session) = &mut self.session {
            session.seq = seq;
        }
        note(&mut self.damage, Damage { session: Some(self.id), first_seq: seq, last_seq: seq, what });
    }
}

/// Adds to a list of damage; neighbours of the same kind become one entry, so that a lost page is one line.
pub(crate) fn note(list: &mut Vec<Damage>, damage: Damage) {
    match list.last_mut() {
        Some(before)
            if before.session == damage.session
                && before.what == damage.what
                && before.last_seq.checked_add(1) == Some(damage.first_seq) =>
        {
            before.last_seq = damage.last_seq;
        }
        Some(_) | None => list.push(damage),
    }
}

/// A task while its log is fed to it.
#[derive(Default)]
pub(crate) struct TaskFold {
    pub(crate) task: Option<Task>,
    /// The number of the last event it was fed.
    last: u64,
    /// Every name its events gave it.
    pub(crate) names: BTreeSet<String>,
    /// It has ended once; from then on its keys may have been forgotten.
    pub(crate) has_ended: bool,
    /// Events that were left out, with why.
    pub(crate) left_out: Vec<(u64, String)>,
}

impl TaskFold {
    /// The next event of the log, or why it cannot be read. One that is not there, cannot be read or does not fit is left
    /// out, and the fold goes on after it.
    pub(crate) fn feed(&mut self, seq: u64, envelope: Result<&TaskEnvelope, String>) {
        let due = self.last + 1;
        if due < seq {
            self.leave_out(seq - 1, format!("there is nothing from {due} to {}", seq - 1));
        }
        self.last = seq;
        match envelope {
            Ok(envelope) => self.apply(envelope, seq),
            Err(why) => self.leave_out(seq, why),
        }
    }

    fn apply(&mut self, envelope: &TaskEnvelope, seq: u64) {
        let applied = match &mut self.task {
            None if seq > 1 => return self.leave_out(seq, "what it begins with is lost".to_owned()),
            None => Task::born(envelope).map(|task| self.task = Some(task)),
            Some(task) => {
                // A failed apply may leave the task part-changed.
                let mut next = task.clone();
                next.apply(envelope).map(|()| *task = next)
            }
        };
        match applied {
            Ok(()) => {
                self.names.extend(envelope.names());
                self.has_ended |= matches!(envelope.event, TaskEvent::Ended { .. });
            }
            Err(error) => self.leave_out(seq, error.to_string()),
        }
    }

    fn leave_out(&mut self, seq: u64, why: String) {
        if let Some(task) = &mut self.task {
            task.seq = seq;
        }
        self.left_out.push((seq, why));
    }
}
