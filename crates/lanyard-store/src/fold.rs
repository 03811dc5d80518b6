//! Folding the log of a session that may be damaged: as far as it can be read, and never in silence. No database here.

use std::collections::BTreeMap;

use lanyard_core::insight::{InsightCounts, InsightKey, Quarter, step};
use lanyard_core::journal::Damage;
use lanyard_core::session::Envelope;
use lanyard_core::{Session, SessionId};

use crate::journal::StoredEvent;

/// A session while its log is fed to it.
pub(crate) struct Fold {
    id: SessionId,
    pub(crate) session: Option<Session>,
    pub(crate) damage: Vec<Damage>,
    /// What the log counts for.
    pub(crate) sums: InsightSums,
}

/// What a session's log counts for, by quarter and key.
pub(crate) type InsightSums = BTreeMap<(Quarter, InsightKey), InsightCounts>;

impl Fold {
    /// From the first event on, or from a record that is as of some event.
    pub(crate) fn new(id: SessionId, record: Option<Session>) -> Self {
        Self { id, session: record, damage: Vec::new(), sums: InsightSums::default() }
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
        let step = step(Some(session), envelope);
        // A failed apply leaves the session part-changed. Of a transcript event that is a counter at most; the others
        // are worth a clone.
        let before = envelope.event.is_structural().then(|| session.clone());
        if let Err(error) = session.apply(envelope) {
            if let Some(before) = before {
                *session = before;
            }
            self.leave_out(seq, format!("the event does not fit: {error}"));
        } else if let Some(step) = step {
            self.sums.entry((step.quarter, step.key)).or_default().add(&step.counts);
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
