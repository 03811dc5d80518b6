//! Tombstones in the file: a sealed row per purged session, and how far its purge has come. Not a projection: after a
//! purge nothing else tells of the session.
//!
//! A purged event leaves a gap among the positions of the log. `places` sums up which ones, so that `check` can tell the
//! gaps of purges from lost rows without a list of them.

use lanyard_core::SessionId;
use lanyard_core::journal::{PurgeStage, Tombstone};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::sqlite::read::undamaged;
use crate::sqlite::rows::{Pos, Sid, Sum, column, signed, unsigned};
use crate::sqlite::sealed::{NOT_WHOLE, decode, encode, is_whole, seal};

pub(super) const TABLE: &str = "
    CREATE TABLE tombstones (
        sid INTEGER PRIMARY KEY,
        stage INTEGER NOT NULL, -- 0 purging, 1 purged, 2 wiped
        next INTEGER NOT NULL, -- pos of the newest event that is still there; 0 when none follows the chain
        scanned INTEGER NOT NULL, -- pos up to which the log was searched for events off the chain; -1 while not needed
        removed INTEGER NOT NULL, -- events removed so far
        places INTEGER NOT NULL, -- sum of marks of their positions
        body BLOB NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE INDEX tombstones_open ON tombstones (stage) WHERE stage < 2;
";

const COLUMNS: &str = "sid, stage, next, scanned, removed, places, body, crc";
const LOG_END: &str = "log_end";

/// A tombstone as its row holds it.
#[derive(Debug, Clone)]
pub(super) struct Stone {
    pub(super) sid: Sid,
    pub(super) next: Pos,
    pub(super) scanned: Pos,
    pub(super) removed: u64,
    pub(super) places: i64,
    pub(super) about: Tombstone,
}

impl Stone {
    /// Notes that the event at this position is gone.
    pub(super) fn without(&mut self, pos: Pos) {
        self.removed += 1;
        self.places = self.places.wrapping_add(mark(pos));
    }

    pub(super) fn left(&self) -> u64 {
        self.about.events.saturating_sub(self.removed)
    }
}

/// A number that stands for a position in a sum: no other few positions add up to the same.
pub(super) fn mark(pos: Pos) -> i64 {
    let mut bits = pos.cast_unsigned().wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ (bits >> 31)).cast_signed()
}

fn number(stage: PurgeStage) -> i64 {
    match stage {
        PurgeStage::Purging => 0,
        PurgeStage::Purged => 1,
        PurgeStage::Wiped => 2,
    }
}

fn read(row: &Row<'_>) -> Result<Stone, String> {
    if !is_whole(row, 7) {
        return Err(NOT_WHOLE.to_owned());
    }
    let odd = || "it holds something else".to_owned();
    let number = |at: usize| column::<i64>(row, at).ok_or_else(odd);
    let mut about: Tombstone = decode(row, 6)?;
    about.stage = match number(1)? {
        0 => PurgeStage::Purging,
        1 => PurgeStage::Purged,
        _ => PurgeStage::Wiped,
    };
    Ok(Stone {
        sid: number(0)?,
        next: number(2)?,
        scanned: number(3)?,
        removed: unsigned(number(4)?),
        places: number(5)?,
        about,
    })
}

pub(super) fn put(conn: &Connection, stone: &Stone) -> Result<(), StoreError> {
    let values = vec![
        Value::Integer(stone.sid),
        Value::Integer(number(stone.about.stage)),
        Value::Integer(stone.next),
        Value::Integer(stone.scanned),
        Value::Integer(signed(stone.removed)),
        Value::Integer(stone.places),
        encode("the tombstone", &stone.about)?,
    ];
    let mut put = conn.prepare_cached(&format!(
        "INSERT OR REPLACE INTO tombstones ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    ))?;
    put.execute(rusqlite::params_from_iter(seal(values)))?;
    Ok(())
}

/// A damaged one is an error.
pub(super) fn get(conn: &Connection, sid: Sid) -> Result<Option<Stone>, StoreError> {
    let mut get = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tombstones WHERE sid = ?1"))?;
    let found = get.query_row([sid], |row| Ok(read(row))).optional()?;
    found.transpose().map_err(|why| StoreError::Damaged(format!("a tombstone is damaged: {why}")))
}

/// Sessions that are at this stage of their purge, by number.
pub(super) fn at_stage(conn: &Connection, stage: PurgeStage, limit: usize) -> Result<Vec<Stone>, StoreError> {
    let mut list = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM tombstones WHERE stage < 2 AND stage = ?1 LIMIT ?2"
    ))?;
    let mut rows = list.query((number(stage), i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut stones = Vec::new();
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(stone) => stones.push(stone),
            Err(why) => tracing::error!(why, "a tombstone is damaged; its purge does not go on"),
        }
    }
    Ok(stones)
}

pub(super) fn counts(conn: &Connection) -> Result<(u64, u64), StoreError> {
    let all: i64 = conn.query_row("SELECT count(*) FROM tombstones", [], |row| row.get(0))?;
    let open: i64 =
        conn.query_row("SELECT count(*) FROM tombstones WHERE stage < 2", [], |row| row.get(0))?;
    Ok((unsigned(all), unsigned(open)))
}

/// Feeds every tombstone to `each`. Answers whether all of them were good.
pub(super) fn each(conn: &Connection, mut each: impl FnMut(Stone)) -> Result<bool, StoreError> {
    crate::sqlite::boot::each_row(conn, &format!("SELECT {COLUMNS} FROM tombstones ORDER BY sid"), |row| {
        read(row).map(&mut each).is_ok()
    })
}

/// The sessions that have one, with their ids.
pub(super) fn sids(conn: &Connection) -> Result<std::collections::BTreeMap<Sid, SessionId>, StoreError> {
    let mut sids = std::collections::BTreeMap::new();
    each(conn, |stone| {
        sids.insert(stone.sid, stone.about.session);
    })?;
    Ok(sids)
}

/// The last position that was ever taken, as far as purges have noted it. A purge may remove the event that had it, and
/// no position is given twice.
pub(super) fn log_end(conn: &Connection) -> Result<Pos, StoreError> {
    let mut get = conn.prepare_cached("SELECT value, crc FROM meta WHERE key = ?1")?;
    let stored =
        get.query_row([LOG_END], |row| Ok((row.get::<_, Pos>(0)?, row.get::<_, u32>(1)?))).optional();
    let stored = undamaged(stored)?.flatten();
    Ok(stored.filter(|(value, crc)| end_sum(*value) == *crc).map_or(0, |(value, _)| value))
}

pub(super) fn store_log_end(conn: &Connection, value: Pos) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached("INSERT OR REPLACE INTO meta (key, value, crc) VALUES (?1, ?2, ?3)")?;
    put.execute((LOG_END, value, end_sum(value)))?;
    Ok(())
}

fn end_sum(value: Pos) -> u32 {
    Sum::default().bytes(LOG_END.as_bytes()).int(value).done()
}
