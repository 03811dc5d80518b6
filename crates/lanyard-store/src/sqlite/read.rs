//! Reading a log: from a mark or the head back along the chain, and around what is damaged.
//!
//! Each event names the position of its session's event before it and of the rung before it, every 8th event is such
//! a rung, and every 64th is marked. So a page costs at most 16 look-ups more than it has events, however long the log. Where the chain is broken, the log itself is read.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;
use lanyard_core::journal::Damage;
use lanyard_core::{Session, SessionId};
use rusqlite::{CachedStatement, Connection, OptionalExtension};

use crate::card::Card;
use crate::error::StoreError;
use crate::fold::Fold;
use crate::journal::StoredEvent;
use crate::sqlite::cards;
use crate::sqlite::rows::{
    EventRow, Head, Judged, Pos, RUNG, Sid, is_damage, read_event, read_record, signed, unsigned,
};

/// Events between two marks of a session.
pub(super) const MARK_EVERY: u64 = 64;
/// Events that are folded at a time.
const FOLD_PAGE: u64 = 1_024;

/// A session's log in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    pub(super) id: SessionId,
    pub(super) sid: Sid,
    pub(super) head: Head,
}

impl Log {
    /// The events with `first <= seq <= last`, in order, each one there or reported damaged.
    pub(super) fn events(
        &self,
        conn: &Connection,
        first: u64,
        last: u64,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let last = last.min(self.head.seq);
        if first == 0 || first > last {
            return Ok(Vec::new());
        }
        let mut found = Vec::with_capacity(usize::try_from(last - first + 1).unwrap_or(0).min(4_096));
        let mut get = conn.prepare_cached(FETCH)?;
        let (mut seq, mut pos) = self.start(conn, last)?;
        // Every event of the session that is still to come lies at or before this position.
        let mut bound = self.head.pos;
        while seq >= first {
            let (next, body) = match fetch(&mut get, pos)? {
                Fetched::Row(Judged::Intact(row)) if row.sid == self.sid && row.seq == seq => {
                    let next = back(&row, seq, last);
                    bound = next.1;
                    (next, Ok(row.body))
                }
                Fetched::Row(Judged::Suspect(row)) if self.is_at(&mut get, back(&row, seq, last))? => {
                    (back(&row, seq, last), Err("the event is not as it was written"))
                }
                broken @ (Fetched::Row(_) | Fetched::Missing) => {
                    // The chain ends here: from now on the log itself has to say what there is.
                    self.salvage(conn, first..=seq.min(last), bound, broken.what(), &mut found)?;
                    break;
                }
            };
            if seq <= last {
                let body = body.map_err(|what| self.damage(seq, what));
                found.push(StoredEvent { seq, body });
            }
            (seq, pos) = next;
        }
        found.reverse();
        Ok(found)
    }

    /// The position from which to reach `last`: the nearest mark at or after it, or the head.
    fn start(&self, conn: &Connection, last: u64) -> Result<(u64, Pos), StoreError> {
        let head = (self.head.seq, self.head.pos);
        if self.head.seq - last < MARK_EVERY {
            return Ok(head);
        }
        let mut find = conn
            .prepare_cached("SELECT seq, pos FROM marks WHERE sid = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1")?;
        let mark = find.query_row((self.sid, signed(last)), |row| Ok((row.get(0)?, row.get(1)?))).optional();
        Ok(match undamaged(mark)?.flatten() {
            Some((seq, pos)) if unsigned(seq) < self.head.seq => (unsigned(seq), pos),
            Some(_) | None => head,
        })
    }

    /// Whether the event at `pos` is beyond doubt this session's number `seq`. Number 0 is the log's beginning.
    fn is_at(&self, get: &mut CachedStatement<'_>, (seq, pos): (u64, Pos)) -> Result<bool, StoreError> {
        if seq == 0 {
            return Ok(true);
        }
        Ok(match fetch(get, pos)? {
            Fetched::Row(Judged::Intact(row)) => row.sid == self.sid && row.seq == seq,
            Fetched::Row(Judged::Suspect(_) | Judged::Unreadable(_)) | Fetched::Missing => false,
        })
    }

    /// The events of a range, newest first, found by reading the log of all sessions from the last mark before the
    /// range up to `bound`. Slow, and only for damaged logs.
    fn salvage(
        &self,
        conn: &Connection,
        range: RangeInclusive<u64>,
        bound: Pos,
        what: &str,
        found: &mut Vec<StoredEvent>,
    ) -> Result<(), StoreError> {
        let mut there: BTreeMap<u64, Option<Bytes>> = BTreeMap::new();
        let from = self.mark_before(conn, *range.start())?;
        scan(conn, from, bound, |_, row| match row {
            Judged::Intact(row) if row.sid == self.sid && range.contains(&row.seq) => {
                there.insert(row.seq, Some(row.body));
            }
            Judged::Suspect(row) if row.sid == self.sid && range.contains(&row.seq) => {
                there.entry(row.seq).or_insert(None);
            }
            Judged::Intact(_) | Judged::Suspect(_) | Judged::Unreadable(_) => {}
        })?;
        let last = *range.end();
        for seq in range.rev() {
            let body = match there.remove(&seq) {
                Some(Some(body)) => Ok(body),
                Some(None) => Err(self.damage(seq, "the event is not as it was written")),
                None if seq == last => Err(self.damage(seq, what)),
                None => Err(self.damage(seq, "the event is missing")),
            };
            found.push(StoredEvent { seq, body });
        }
        Ok(())
    }

    /// A position before which no event from `seq` on can be: that of the last good mark before it.
    fn mark_before(&self, conn: &Connection, seq: u64) -> Result<Pos, StoreError> {
        let mut find = conn.prepare_cached(
            "SELECT seq, pos FROM marks WHERE sid = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1",
        )?;
        let mark = find.query_row((self.sid, signed(seq)), |row| Ok((row.get(0)?, row.get(1)?))).optional();
        let Some((seq, pos)) = undamaged(mark)?.flatten() else { return Ok(0) };
        let good = self.is_at(&mut conn.prepare_cached(FETCH)?, (unsigned(seq), pos))?;
        Ok(if good { pos } else { 0 })
    }

    fn damage(&self, seq: u64, what: &str) -> Damage {
        Damage { session: Some(self.id), first_seq: seq, last_seq: seq, what: what.to_owned() }
    }

    /// Folds the log from the record, or from the beginning where there is no good one, up to `last`.
    pub(super) fn fold(
        &self,
        conn: &Connection,
        record: Result<Session, String>,
        last: u64,
    ) -> Result<Fold, StoreError> {
        let (record, complaint) = match record {
            Ok(record) if record.id == self.id => (Some(record), None),
            Ok(_) => (None, Some("the session's record belongs to another".to_owned())),
            Err(complaint) => (None, Some(complaint)),
        };
        let next = record.as_ref().map_or(1, |record| record.seq + 1);
        let mut fold = Fold::new(self.id, record);
        if let Some(what) = complaint {
            fold.damage.push(Damage { session: Some(self.id), first_seq: 0, last_seq: 0, what });
        }
        self.feed(conn, &mut fold, next, last)?;
        Ok(fold)
    }

    /// Feeds the events from `first` to `last` to a fold.
    pub(super) fn feed(
        &self,
        conn: &Connection,
        fold: &mut Fold,
        first: u64,
        last: u64,
    ) -> Result<(), StoreError> {
        let mut next = first;
        while next <= last {
            let until = last.min(next + FOLD_PAGE - 1);
            for event in &self.events(conn, next, until)? {
                fold.feed(event);
            }
            next = until + 1;
        }
        Ok(())
    }
}

/// The step back from an event towards `last`: to the rung before it as long as that is not too far, else to its
/// neighbour. The number and the position it leads to.
fn back(row: &EventRow, seq: u64, last: u64) -> (u64, Pos) {
    let rung = (seq - 1) / RUNG * RUNG;
    if rung >= last { (rung, row.rung) } else { (seq - 1, row.prev) }
}

/// The row at a position.
pub(super) enum Fetched {
    Row(Judged<EventRow>),
    Missing,
}

impl Fetched {
    /// The fault, when the row is not the expected one.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Row(Judged::Intact(_)) => "the event is not where the log says",
            Self::Row(Judged::Suspect(_)) => "the event is not as it was written",
            Self::Row(Judged::Unreadable(_)) => "the event cannot be read",
            Self::Missing => "the event is missing",
        }
    }
}

/// The statement of `fetch`.
pub(super) const FETCH: &str = "SELECT pos, sid, seq, prev, rung, at, crc, body FROM events WHERE pos = ?1";
const SCAN: &str =
    "SELECT pos, sid, seq, prev, rung, at, crc, body FROM events WHERE pos > ?1 AND pos <= ?2 ORDER BY pos";

pub(super) fn fetch(get: &mut CachedStatement<'_>, pos: Pos) -> Result<Fetched, StoreError> {
    match get.query_row([pos], |row| Ok(read_event(row))).optional() {
        Ok(Some(row)) => Ok(Fetched::Row(row)),
        Ok(None) => Ok(Fetched::Missing),
        Err(error) if is_damage(&error) => Ok(Fetched::Row(Judged::Unreadable(error.to_string()))),
        Err(error) => Err(error.into()),
    }
}

/// All events after one position and up to another, in order of arrival. A page that cannot be read is stepped over,
/// one position at a time, and shows as something unreadable at each.
pub(super) fn scan(
    conn: &Connection,
    after: Pos,
    until: Pos,
    mut each: impl FnMut(Pos, Judged<EventRow>),
) -> Result<(), StoreError> {
    let until = until.min(last_pos(conn)?);
    let mut after = after;
    while after < until {
        match scan_some(conn, &mut after, until, &mut each) {
            Ok(()) => break,
            Err(error) if is_damage(&error) => {
                after += 1;
                each(after, Judged::Unreadable(error.to_string()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn scan_some(
    conn: &Connection,
    after: &mut Pos,
    until: Pos,
    each: &mut impl FnMut(Pos, Judged<EventRow>),
) -> rusqlite::Result<()> {
    let mut all = conn.prepare_cached(SCAN)?;
    let mut rows = all.query((*after, until))?;
    while let Some(row) = rows.next()? {
        let pos: Pos = row.get(0)?;
        // Positions that do not rise are a sign of damage, and would keep this going for ever.
        if pos > *after {
            *after = pos;
            each(pos, read_event(row));
        }
    }
    Ok(())
}

/// The last position in the log, as far as the file can say.
pub(super) fn last_pos(conn: &Connection) -> Result<Pos, StoreError> {
    let last = conn.query_row("SELECT max(pos) FROM events", [], |row| row.get::<_, Option<Pos>>(0));
    if let Some(last) = undamaged(last)? {
        return Ok(last.unwrap_or(0));
    }
    // The last page is damaged; heads and marks still say how far the log went.
    let known = "SELECT max(pos) FROM (SELECT pos FROM heads UNION ALL SELECT pos FROM marks)";
    let known = conn.query_row(known, [], |row| row.get::<_, Option<Pos>>(0));
    Ok(undamaged(known)?.flatten().unwrap_or(0))
}

/// `None` when the database found its own pages damaged.
pub(super) fn undamaged<T>(answer: rusqlite::Result<T>) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The stored record, or why there is no good one.
pub(super) fn record(conn: &Connection, sid: Sid) -> Result<Result<Session, String>, StoreError> {
    let mut get = conn.prepare_cached("SELECT as_of, crc, body FROM records WHERE sid = ?1")?;
    match get.query_row([sid], |row| Ok(read_record(row, sid))).optional() {
        Ok(Some(record)) => Ok(record),
        Ok(None) => Ok(Err("the session's record is missing".to_owned())),
        Err(error) if is_damage(&error) => Ok(Err(format!("the session's record cannot be read: {error}"))),
        Err(error) => Err(error.into()),
    }
}

/// The card as its row says.
pub(super) fn stored_card(conn: &Connection, sid: Sid) -> Result<Option<Card>, StoreError> {
    let mut get = conn.prepare_cached(cards::GET)?;
    let card = get.query_row([sid], |row| Ok(cards::read(row).map(|(_, card)| card.into_owned()))).optional();
    Ok(undamaged(card)?.flatten().flatten())
}

/// The card from wherever it can still be had: its row, the record, the log.
pub(super) fn card(conn: &Connection, log: &Log) -> Result<Option<Card>, StoreError> {
    if let Some(card) = stored_card(conn, log.sid)?
        && card.id == log.id
    {
        return Ok(Some(card));
    }
    let fold = log.fold(conn, record(conn, log.sid)?, log.head.seq)?;
    Ok(fold.session.as_ref().map(Card::of))
}
