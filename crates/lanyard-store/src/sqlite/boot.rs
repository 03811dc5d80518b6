//! Reading the catalog back from the file: at the start, and when the journal recovers.
//!
//! Heads and cards are projections. Where one is damaged or missing it is made again from the record or the log, and
//! the rest is not disturbed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lanyard_core::SessionId;
use lanyard_core::session::Envelope;
use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::sqlite::catalog::{Catalog, Facts};
use crate::sqlite::heads::Elevator;
use crate::sqlite::read::{Log, card, last_pos, scan, undamaged};
use crate::sqlite::rows::{
    CARD_COLUMNS, EventRow, HEAD_COLUMNS, Head, Judged, Pos, Sid, Sum, read_card, read_head,
};

/// What the writer needs to go on.
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
    let mut reading = Reading::default();
    reading.sound &= each_row(conn, &format!("SELECT {HEAD_COLUMNS} FROM heads ORDER BY sid"), |row| {
        let head = read_head(row);
        head.map(|(sid, head)| reading.heads.insert(sid, head)).is_some()
    })?;
    reading.sound &= each_row(conn, &format!("SELECT {CARD_COLUMNS} FROM sessions ORDER BY sid"), |row| {
        let card = read_card(row);
        card.map(|(sid, card)| reading.catalog.put_card(sid, &card)).is_some()
    })?;
    let settled = settled(conn)?;
    let mut end = last_pos(conn)?;
    scan(conn, settled, Pos::MAX, |_, row| reading.tail(row))?;
    if !reading.is_sound() {
        tracing::warn!("heads or cards are damaged; reading the whole log");
        scan(conn, 0, Pos::MAX, |_, row| reading.tail(row))?;
    }
    for (&sid, &head) in &reading.heads {
        end = end.max(head.pos);
        reading.catalog.put_head(sid, head);
    }
    reading.complete(conn)?;
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
    heads: BTreeMap<Sid, Head>,
    /// Sessions whose head on disk is behind the log.
    dirty: BTreeSet<Sid>,
    /// Ids as events tell them, of sessions that have no card.
    ids: HashMap<Sid, SessionId>,
    /// Whether every row so far was good.
    sound: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            catalog: Catalog::default(),
            heads: BTreeMap::new(),
            dirty: BTreeSet::new(),
            ids: HashMap::new(),
            sound: true,
        }
    }
}

impl Reading {
    /// An event after the point up to which heads are known to be true.
    fn tail(&mut self, row: Judged<EventRow>) {
        let row = match row {
            Judged::Intact(row) => row,
            // Most of a row is its body: its number is believed when it is just the one that is due.
            Judged::Suspect(row) if self.heads.get(&row.sid).is_some_and(|head| head.seq + 1 == row.seq) => {
                row
            }
            Judged::Suspect(_) | Judged::Unreadable(_) => return self.sound = false,
        };
        let head = self.heads.entry(row.sid).or_default();
        if row.seq > head.seq {
            *head = Head { seq: row.seq, pos: row.pos, at: row.at };
            self.dirty.insert(row.sid);
        }
        let carded = self.catalog.facts(row.sid).is_some_and(Facts::is_carded);
        if !carded
            && !self.ids.contains_key(&row.sid)
            && let Ok(envelope) = serde_json::from_slice::<Envelope>(&row.body)
        {
            self.ids.insert(row.sid, envelope.session);
        }
    }

    /// Whether heads and cards tell of the same sessions, without a hole.
    fn is_sound(&self) -> bool {
        let dense = self.heads.keys().copied().eq(1..=self.catalog.last_sid());
        let carded =
            (1..=self.catalog.last_sid()).all(|sid| self.catalog.facts(sid).is_some_and(Facts::is_carded));
        self.sound && dense && carded
    }

    /// Makes the cards that are missing.
    fn complete(&mut self, conn: &Connection) -> Result<(), StoreError> {
        for (&sid, &head) in &self.heads {
            if self.catalog.facts(sid).is_some_and(Facts::is_carded) {
                continue;
            }
            let record = crate::sqlite::read::record(conn, sid)?.ok();
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
