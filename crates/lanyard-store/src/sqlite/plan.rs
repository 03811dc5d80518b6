//! The writes of a batch, prepared and checked against the catalog before any is made. A batch that does not follow the
//! journal is refused here as a whole.

use std::collections::HashMap;

use lanyard_core::SessionId;
use rusqlite::Connection;

use crate::card::Card;
use crate::error::AppendError;
use crate::journal::Batch;
use crate::sqlite::catalog::Catalog;
use crate::sqlite::rows::{Head, Pos, Sid};

/// The destination of everything in a batch.
pub(super) struct Plan {
    /// One per entry, in order.
    pub(super) places: Vec<EntryPlace>,
    /// The sessions the batch touches, as they will be.
    pub(super) touched: HashMap<SessionId, Touched>,
    /// One per session of the batch, in order.
    pub(super) cards: Vec<(Sid, Card, Change)>,
    /// The last position taken.
    pub(super) end: Pos,
}

#[derive(Clone, Copy)]
pub(super) struct EntryPlace {
    pub(super) pos: Pos,
    pub(super) sid: Sid,
    pub(super) prev: Pos,
    pub(super) rung: Pos,
}

#[derive(Clone, Copy)]
pub(super) struct Touched {
    pub(super) sid: Sid,
    pub(super) head: Head,
}

/// The effect of a card on the search index and the aliases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The session is new.
    New,
    /// The texts changed, or the session was deleted and is no longer searched.
    Texts,
    /// No searched field changed.
    Rest,
}

/// `end` is the last position taken so far.
pub(super) fn plan(batch: &Batch, catalog: &Catalog, end: Pos) -> Result<Plan, String> {
    let mut plan = Plan {
        places: Vec::with_capacity(batch.entries.len()),
        touched: HashMap::with_capacity(batch.entries.len().min(256)),
        cards: Vec::with_capacity(batch.sessions.len()),
        end,
    };
    let mut next_sid = catalog.last_sid() + 1;
    for entry in &batch.entries {
        if catalog.of(entry.session).is_some_and(|(_, facts)| facts.is_purged()) {
            return Err(format!("an event of {}, which is purged", entry.session));
        }
        let touched = plan.touched.entry(entry.session).or_insert_with(|| {
            if let Some((sid, facts)) = catalog.of(entry.session) {
                return Touched { sid, head: facts.head };
            }
            next_sid += 1;
            Touched { sid: next_sid - 1, head: Head::default() }
        });
        if entry.seq != touched.head.seq + 1 {
            let (id, head, found) = (entry.session, touched.head.seq, entry.seq);
            return Err(format!("event {found} of {id} after event {head}"));
        }
        plan.end += 1;
        let Touched { sid, head } = *touched;
        plan.places.push(EntryPlace { pos: plan.end, sid, prev: head.pos, rung: head.rung });
        touched.head = head.advanced(entry.seq, plan.end, entry.at.as_millis());
    }
    plan.file_cards(batch, catalog)?;
    Ok(plan)
}

impl Plan {
    fn file_cards(&mut self, batch: &Batch, catalog: &Catalog) -> Result<(), String> {
        for session in &batch.sessions {
            let known = catalog.of(session.id);
            let (sid, head) = match (self.touched.get(&session.id), known) {
                (Some(touched), _) => (touched.sid, touched.head),
                (None, Some((sid, facts))) => (sid, facts.head),
                (None, None) => return Err(format!("a record of {}, which has no events", session.id)),
            };
            if session.seq != head.seq {
                return Err(format!("a record of {} as of {}, not {}", session.id, session.seq, head.seq));
            }
            let card = Card::of(session);
            let change = match known {
                None => Change::New,
                Some((_, facts)) if card.deleted != facts.is_deleted() => Change::Texts,
                Some((_, facts)) if card.text_sum != facts.text_sum => Change::Texts,
                Some(_) => Change::Rest,
            };
            self.cards.push((sid, card, change));
        }
        let unborn = self.touched.iter().find(|(id, touched)| {
            catalog.facts(touched.sid).is_none() && !batch.sessions.iter().any(|session| session.id == **id)
        });
        match unborn {
            Some((id, _)) => Err(format!("a new session {id} without its record")),
            None => Ok(()),
        }
    }

    /// Within one workspace and plan an alias names one session that is not deleted.
    pub(super) fn check_aliases(
        &self,
        batch: &Batch,
        catalog: &Catalog,
        conn: &Connection,
    ) -> Result<(), AppendError> {
        let mut in_batch = HashMap::new();
        for ((sid, card, change), session) in self.cards.iter().zip(&batch.sessions) {
            if card.deleted || *change == Change::Rest {
                continue;
            }
            for alias in &session.aliases {
                let taken = || AppendError::Contradiction(format!("the alias `{alias}` is taken"));
                let place = (alias.as_str(), card.workspace.as_deref(), card.plan.as_deref());
                if in_batch.insert(place, *sid).is_some_and(|other| other != *sid) {
                    return Err(taken());
                }
                let holders = holders(conn, alias).map_err(|error| AppendError::Unavailable(error.into()))?;
                let beside = |&other: &Sid| {
                    let deleted_here = self.cards.iter().any(|(sid, card, _)| *sid == other && card.deleted);
                    let facts = catalog.facts(other).filter(|facts| facts.is_listed() && !deleted_here);
                    other != *sid && facts.is_some_and(|facts| catalog.is_beside(facts, place.1, place.2))
                };
                if holders.iter().any(beside) {
                    return Err(taken());
                }
            }
        }
        Ok(())
    }
}

/// The sessions that have or had an alias.
pub(super) fn holders(conn: &Connection, alias: &str) -> rusqlite::Result<Vec<Sid>> {
    let mut find = conn.prepare_cached("SELECT sid FROM aliases WHERE alias = ?1 ORDER BY sid DESC")?;
    find.query_map([alias], |row| row.get(0))?.collect()
}
