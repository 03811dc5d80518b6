//! Reading the catalog back from the file: at the start, and when the journal recovers.
//!
//! Heads and cards are projections. Where one is damaged or missing it is made again from the record or the log, and
//! the rest is not disturbed.

use std::collections::{BTreeSet, HashMap};

use lanyard_core::SessionId;
use lanyard_core::session::Envelope;
use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::sqlite::cards;
use crate::sqlite::catalog::{Catalog, Facts};
use crate::sqlite::heads::Elevator;
use crate::sqlite::read::{Log, card, last_pos, record, scan, undamaged};
use crate::sqlite::rows::{EventRow, HEAD_COLUMNS, Head, Judged, Pos, Sid, Sum, read_head};
use crate::sqlite::tombstones::{self, Stone};

/// The state that the writer starts with.
pub(super) struct Boot {
    pub(super) catalog: Catalog,
    pub(super) elevator: Elevator,
    /// The last position taken.
    pub(super) end: Pos,
}

const SETTLED: &str = "heads_settled";

/// The position up to which the heads on disk are true. A damaged value counts as none: then all of the log is read.
pub(super) fn settled(conn: &Connection) -> Result<Pos, StoreError> {
    let mut get = conn.prepare_cached("SELECT value, crc FROM meta WHERE key = ?1")?;
    let stored = get.query_row([SETTLED], |row| Ok((row.get::<_, Pos>(0)?, row.get::<_, u32>(1)?)));
    match stored {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(0),
        stored => Ok(undamaged(stored)?
            .filter(|(value, crc)| settled_sum(*value) == *crc)
            .map_or(0, |(value, _)| value)),
    }
}

fn settled_sum(value: Pos) -> u32 {
    Sum::default().bytes(SETTLED.as_bytes()).int(value).done()
}

pub(super) fn store_settled(conn: &Connection, value: Pos) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?1, ?2, ?3)")?;
    put.execute((SETTLED, value, settled_sum(value)))?;
    Ok(())
}

pub(super) fn boot(conn: &Connection) -> Result<Boot, StoreError> {
    let mut reading =
        Reading { catalog: Catalog::default(), dirty: BTreeSet::new(), ids: HashMap::new(), sound: true };
    let sessions = conn.query_row("SELECT max(sid) FROM sessions", [], |row| row.get::<_, Option<Sid>>(0));
    reading.catalog.expect_sessions(undamaged(sessions)?.flatten().unwrap_or(0));
    let cards = each_row(conn, cards::GET_ALL, |row| {
        cards::read(row).map(|(sid, card)| reading.catalog.put_card(sid, &card)).is_some()
    })?;
    let heads = each_row(conn, &format!("SELECT {HEAD_COLUMNS} FROM heads ORDER BY sid"), |row| {
        read_head(row).map(|(sid, head)| reading.catalog.put_head(sid, head)).is_some()
    })?;
    reading.sound = cards && heads;
    tombstones::each(conn, |Stone { sid, about, .. }| {
        reading.catalog.put_purged(sid, about.session, about.parent);
    })?;
    let settled = settled(conn)?;
    scan(conn, settled, Pos::MAX, |_, row| reading.tail(row))?;
    if !reading.is_sound() {
        tracing::warn!("heads or cards are damaged; reading the whole log");
        scan(conn, 0, Pos::MAX, |_, row| reading.tail(row))?;
    }
    reading.complete(conn)?;
    let known = last_pos(conn)?.max(tombstones::log_end(conn)?);
    let end = reading.catalog.all().map(|(_, facts)| facts.head.pos).fold(known, Pos::max);
    let elevator = Elevator::new(settled, end, reading.dirty);
    Ok(Boot { catalog: reading.catalog, elevator, end })
}

/// Feeds every row to `each`, which answers whether it was good. Answers whether all of them were, and all could be
/// read.
pub(super) fn each_row(
    conn: &Connection,
    sql: &str,
    mut each: impl FnMut(&Row<'_>) -> bool,
) -> Result<bool, StoreError> {
    let mut all_good = true;
    let mut walk = || -> rusqlite::Result<()> {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all_good &= each(row);
        }
        Ok(())
    };
    let read = undamaged(walk())?.is_some();
    Ok(all_good && read)
}

struct Reading {
    catalog: Catalog,
    /// Sessions whose head on disk is behind the log.
    dirty: BTreeSet<Sid>,
    /// Ids as events tell them, of sessions that have no card.
    ids: HashMap<Sid, SessionId>,
    /// Whether every row so far was good.
    sound: bool,
}

impl Reading {
    /// An event after the point up to which heads are known to be true.
    fn tail(&mut self, row: Judged<EventRow>) {
        let known = |sid| self.catalog.facts(sid).map_or_else(Head::default, |facts| facts.head);
        let (head, row) = match row {
            Judged::Intact(row) => (Head::at(&row), row),
            // Most of a row is its body: its number is believed when it is just the one that is due.
            Judged::Suspect(row) if row.seq > 1 && row.seq == known(row.sid).seq + 1 => {
                (known(row.sid).advanced(row.seq, row.pos, row.at), row)
            }
            Judged::Suspect(_) | Judged::Unreadable(_) => return self.sound = false,
        };
        // The rest of a purge that has begun belongs to no session.
        if self.catalog.facts(row.sid).is_some_and(Facts::is_purged) {
            return;
        }
        let carded = self.catalog.facts(row.sid).is_some_and(Facts::is_carded);
        if head.seq > known(row.sid).seq {
            self.catalog.put_head(row.sid, head);
            self.dirty.insert(row.sid);
        }
        if !carded
            && !self.ids.contains_key(&row.sid)
            && let Ok(envelope) = serde_json::from_slice::<Envelope>(&row.body)
        {
            self.ids.insert(row.sid, envelope.session);
        }
    }

    /// Whether every session has both a head and a card.
    fn is_sound(&self) -> bool {
        let whole = |facts: &Facts| facts.is_purged() || (facts.is_carded() && facts.head.seq > 0);
        self.sound && self.catalog.all().all(|(_, facts)| whole(facts))
    }

    /// Makes the cards that are missing.
    fn complete(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let bare = self.catalog.all().filter(|(_, facts)| !facts.is_carded() && facts.head.seq > 0);
        let bare: Vec<(Sid, Head)> = bare.map(|(sid, facts)| (sid, facts.head)).collect();
        for (sid, head) in bare {
            let record = record(conn, sid)?.ok();
            let Some(id) = record.map(|session| session.id).or_else(|| self.ids.get(&sid).copied()) else {
                tracing::error!(sid, "a session cannot be told from the log");
                continue;
            };
            self.catalog.put_id(sid, id);
            let Some(card) = card(conn, &Log { id, sid, head })? else {
                tracing::error!(session = %id, "a session cannot be made from its log");
                continue;
            };
            self.catalog.put_card(sid, &card);
        }
        Ok(())
    }
}
