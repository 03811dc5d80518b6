//! Folding a log that may be damaged: as far as it can be read, and never in silence. It knows no database.

use std::collections::BTreeSet;

use lanyard_core::Session;
use lanyard_core::SessionId;
use lanyard_core::flow::{Flow, FlowEnvelope, FlowEvent};
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

/// A record that is the sum of a short log of its own, as tasks and flows are.
pub(crate) trait Summed: Clone {
    type Entry;

    fn born(entry: &Self::Entry) -> Result<Self, String>;

    /// May leave the record part-changed when it fails.
    fn follow(&mut self, entry: &Self::Entry) -> Result<(), String>;

    /// The record is as of this event, although it was not applied.
    fn skip_to(&mut self, seq: u64);

    /// The names an event gives the record.
    fn names(entry: &Self::Entry) -> Vec<String>;

    /// Whether it ends with this event.
    fn is_end(entry: &Self::Entry) -> bool;
}

impl Summed for Task {
    type Entry = TaskEnvelope;

    fn born(entry: &TaskEnvelope) -> Result<Self, String> {
        Self::born(entry).map_err(|error| error.to_string())
    }

    fn follow(&mut self, entry: &TaskEnvelope) -> Result<(), String> {
        self.apply(entry).map_err(|error| error.to_string())
    }

    fn skip_to(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn names(entry: &TaskEnvelope) -> Vec<String> {
        entry.names()
    }

    fn is_end(entry: &TaskEnvelope) -> bool {
        matches!(entry.event, TaskEvent::Ended { .. })
    }
}

impl Summed for Flow {
    type Entry = FlowEnvelope;

    fn born(entry: &FlowEnvelope) -> Result<Self, String> {
        Self::born(entry).map_err(|error| error.to_string())
    }

    fn follow(&mut self, entry: &FlowEnvelope) -> Result<(), String> {
        self.apply(entry).map_err(|error| error.to_string())
    }

    fn skip_to(&mut self, seq: u64) {
        self.seq = seq;
    }

    fn names(_: &FlowEnvelope) -> Vec<String> {
        Vec::new()
    }

    fn is_end(entry: &FlowEnvelope) -> bool {
        matches!(entry.event, FlowEvent::Ended { .. })
    }
}

pub(crate) type TaskFold = LogFold<Task>;
pub(crate) type FlowFold = LogFold<Flow>;

/// A record while its log is fed to it.
pub(crate) struct LogFold<R> {
    pub(crate) record: Option<R>,
    /// The number of the last event it was fed.
    last: u64,
    /// Every name its events gave it.
    pub(crate) names: BTreeSet<String>,
    /// It has ended once; from then on its keys may have been forgotten.
    pub(crate) has_ended: bool,
    /// Events that were left out, with why.
    pub(crate) left_out: Vec<(u64, String)>,
}

impl<R> Default for LogFold<R> {
    fn default() -> Self {
        Self { record: None, last: 0, names: BTreeSet::new(), has_ended: false, left_out: Vec::new() }
    }
}

impl<R: Summed> LogFold<R> {
    /// The next event of the log, or why it cannot be read. One that is not there, cannot be read or does not fit is left
    /// out, and the fold goes on after it.
    pub(crate) fn feed(&mut self, seq: u64, entry: Result<&R::Entry, String>) {
        let due = self.last + 1;
        if due < seq {
            self.leave_out(seq - 1, format!("there is nothing from {due} to {}", seq - 1));
        }
        self.last = seq;
        match entry {
            Ok(entry) => self.apply(entry, seq),
            Err(why) => self.leave_out(seq, why),
        }
    }

    fn apply(&mut self, entry: &R::Entry, seq: u64) {
        let applied = match &mut self.record {
            None if seq > 1 => return self.leave_out(seq, "what it begins with is lost".to_owned()),
            None => R::born(entry).map(|record| self.record = Some(record)),
            Some(record) => {
                let mut next = record.clone();
                next.follow(entry).map(|()| *record = next)
            }
        };
        match applied {
            Ok(()) => {
                self.names.extend(R::names(entry));
                self.has_ended |= R::is_end(entry);
            }
            Err(why) => self.leave_out(seq, why),
        }
    }

    fn leave_out(&mut self, seq: u64, why: String) {
        if let Some(record) = &mut self.record {
            record.skip_to(seq);
        }
        self.left_out.push((seq, why));
    }
}
