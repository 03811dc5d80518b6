//! Making all projections again from the log. Sessions keep their numbers, because the log names them by number.

use std::collections::BTreeMap;

use lanyard_core::journal::Damage;
use lanyard_core::session::Envelope;
use lanyard_core::{Session, SessionId};
use rusqlite::Connection;

use crate::card::Card;
use crate::error::StoreError;
use crate::fold::Fold;
use crate::journal::StoredEvent;
use crate::sqlite::boot::store_settled;
use crate::sqlite::plan::Change;
use crate::sqlite::read::{FETCH, Fetched, MARK_EVERY, fetch, last_pos, record, scan};
use crate::sqlite::rows::{Head, Judged, Pos, RUNG, Sid};
use crate::sqlite::schema::{reset_memory, reset_sessions};
use crate::sqlite::writer::{write_heads, write_mark, write_session};
use crate::sqlite::{changes, insight, memory_upkeep, record_upkeep, tombstones, turns};

/// Makes all projections. To be run in a transaction.
pub(super) fn rebuild(conn: &Connection) -> Result<(), StoreError> {
    sessions(conn)?;
    record_upkeep::remake(conn)?;
    changes::complete(conn)?;
    reset_memory(conn)?;
    memory_upkeep::fill(conn)
}

/// Makes those of sessions. To be run in a transaction.
pub(super) fn sessions(conn: &Connection) -> Result<(), StoreError> {
    let mut logs: BTreeMap<Sid, Positions> = BTreeMap::new();
    let purged = tombstones::sids(conn)?;
    scan(conn, 0, Pos::MAX, |_, row| match row {
        // Events that a purge has still to remove belong to no session.
        Judged::Intact(row) | Judged::Suspect(row) if purged.contains_key(&row.sid) => {}
        Judged::Intact(row) => logs.entry(row.sid).or_default().put(row.seq, row.pos),
        Judged::Suspect(row) => {
            // Most of a row is its body: its number is believed when it is just the one that is due.
            if let Some(log) = logs.get_mut(&row.sid)
                && log.next() == row.seq
            {
                log.put(row.seq, row.pos);
            }
        }
        Judged::Unreadable(_) => {}
    })?;
    // What the log can no longer tell, the record may; so it is looked at before it is thrown away.
    let mut records = BTreeMap::new();
    for (&sid, log) in &logs {
        if log.fold(conn, None)?.is_none_or(|fold| !fold.damage.is_empty())
            && let Ok(record) = record(conn, sid)?
        {
            records.insert(sid, record);
        }
    }
    reset_sessions(conn)?;
    for (&sid, log) in &logs {
        log.project(conn, sid, records.remove(&sid))?;
    }
    turns::fill(conn, |sid| purged.contains_key(&sid))?;
    store_settled(conn, last_pos(conn)?)?;
    Ok(())
}

/// Positions of a session's events: number `seq` at `seq - 1`, 0 for a missing one.
#[derive(Default)]
struct Positions(Vec<Pos>);

impl Positions {
    fn next(&self) -> u64 {
        self.0.len() as u64 + 1
    }

    fn put(&mut self, seq: u64, pos: Pos) {
        let Some(at) = seq.checked_sub(1).and_then(|at| usize::try_from(at).ok()) else { return };
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] = pos;
    }

    /// The session its log adds up to, from a record on or from the beginning. `None` when not one event says whose
    /// log it is.
    fn fold(&self, conn: &Connection, record: Option<Session>) -> Result<Option<Fold>, StoreError> {
        let Some(id) =
            record.as_ref().map(|record| record.id).map_or_else(|| self.id(conn), |id| Ok(Some(id)))?
        else {
            return Ok(None);
        };
        let after = record.as_ref().map_or(0, |record| record.seq);
        let mut fold = Fold::new(id, record);
        let mut get = conn.prepare_cached(FETCH)?;
        for (seq, &pos) in (1..).zip(&self.0).filter(|(seq, _)| *seq > after) {
            let body = match fetch(&mut get, pos)? {
                Fetched::Row(Judged::Intact(row)) => Ok(row.body),
                broken @ (Fetched::Row(_) | Fetched::Missing) => {
                    let what = broken.what().to_owned();
                    Err(Damage { session: Some(id), first_seq: seq, last_seq: seq, what })
                }
            };
            fold.feed(&StoredEvent { seq, body });
        }
        Ok(Some(fold))
    }

    fn id(&self, conn: &Connection) -> Result<Option<SessionId>, StoreError> {
        let mut get = conn.prepare_cached(FETCH)?;
        for &pos in &self.0 {
            if let Fetched::Row(Judged::Intact(row)) = fetch(&mut get, pos)?
                && let Ok(envelope) = serde_json::from_slice::<Envelope>(&row.body)
            {
                return Ok(Some(envelope.session));
            }
        }
        Ok(None)
    }

    fn project(&self, conn: &Connection, sid: Sid, record: Option<Session>) -> Result<(), StoreError> {
        for (seq, &pos) in (1..).zip(&self.0).filter(|(seq, pos)| seq % MARK_EVERY == 0 && **pos > 0) {
            write_mark(conn, sid, seq, pos)?;
        }
        let mut at = 0;
        if let Some(&pos) = self.0.last()
            && let Fetched::Row(Judged::Intact(row) | Judged::Suspect(row)) =
                fetch(&mut conn.prepare_cached(FETCH)?, pos)?
        {
            at = row.at;
            let rung = self.0.len() as u64 / RUNG * RUNG;
            let rung = usize::try_from(rung).ok().and_then(|rung| self.0.get(rung.checked_sub(1)?));
            let head = Head { seq: self.0.len() as u64, pos, rung: rung.copied().unwrap_or(0), at };
            write_heads(conn, &[sid], |_| head)?;
        }
        // A damaged log that a record helps out is read from its beginning for what it counts for.
        let sums = if record.is_some() { self.fold(conn, None)?.map(|fold| fold.sums) } else { None };
        let fold = self.fold(conn, record)?;
        let sums = sums.or_else(|| fold.as_ref().map(|fold| fold.sums.clone())).unwrap_or_default();
        insight::fill(conn, sid, &sums)?;
        let Some(session) = fold.and_then(|fold| fold.session) else {
            tracing::error!(sid, at, "a session cannot be made from its log");
            return Ok(());
        };
        write_session(conn, sid, &Card::of(&session), &session, Change::New)
    }
}
