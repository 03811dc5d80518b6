//! Counts by the minute in the file: a row per minute and counter, and one per counter for all time.

use lanyard_core::Timestamp;
use lanyard_core::continuity::{Counter, Slot, Tally, slot_of};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::error::{AppendError, StoreError};
use crate::journal::Durability;
use crate::notifications::Tallies;
use crate::sqlite::SqliteJournal;
use crate::sqlite::rows::{column, signed, unsigned};
use crate::sqlite::sealed::{is_whole, seal};

pub(super) const COLUMNS: &str = "slot, counter, times, crc";

impl Tallies for SqliteJournal {
    fn add_tally(&self, at: Timestamp, tally: &Tally, durability: Durability) -> Result<(), AppendError> {
        let mut writer = self.writer();
        let written = writer.commit(durability, |point| self.pass(point), |conn, _| add(conn, at, tally));
        written.map_err(AppendError::Unavailable)?;
        self.tend_wal(&mut writer);
        Ok(())
    }

    fn tallies(&self) -> Result<Vec<(Slot, Counter, u64)>, StoreError> {
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tallies ORDER BY slot"))?;
            let mut rows = list.query([])?;
            let mut tallies = Vec::new();
            while let Some(row) = rows.next()? {
                let Some(entry) = read(row) else {
                    tracing::error!("a kept count is damaged");
                    continue;
                };
                tallies.extend(named(entry));
            }
            Ok(tallies)
        })
    }

    fn forget_tallies(&self, before: Slot) -> Result<usize, StoreError> {
        self.writer().commit(
            Durability::Written,
            |_| {},
            |conn, _| {
                let mut sweep = conn.prepare_cached("DELETE FROM tallies WHERE slot > 0 AND slot < ?1")?;
                Ok(sweep.execute([signed(before)])?)
            },
        )
    }
}

/// Adds to a minute and to the totals. Part of a transaction.
pub(super) fn add(conn: &Connection, at: Timestamp, tally: &Tally) -> Result<(), StoreError> {
    let mut get =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM tallies WHERE slot = ?1 AND counter = ?2"))?;
    let mut put =
        conn.prepare_cached(&format!("INSERT OR REPLACE INTO tallies ({COLUMNS}) VALUES (?1, ?2, ?3, ?4)"))?;
    for (counter, times) in tally.entries() {
        for slot in [0, slot_of(at)] {
            let held = get.query_row((signed(slot), counter.as_str()), |row| Ok(read(row))).optional()?;
            // A damaged count starts over: it was reported, and a wrong number would only hide that.
            let held = held.flatten().map_or(0, |(_, _, held)| held);
            let values = seal(vec![
                Value::Integer(signed(slot)),
                Value::Text(counter.as_str().to_owned()),
                Value::Integer(signed(held.saturating_add(times))),
            ]);
            put.execute(params_from_iter(values))?;
        }
    }
    Ok(())
}

/// Reads [`COLUMNS`]; nothing when they are not as they were written.
pub(super) fn read(row: &Row<'_>) -> Option<(Slot, String, u64)> {
    if !is_whole(row, 3) {
        return None;
    }
    Some((unsigned(column(row, 0)?), column(row, 1)?, unsigned(column(row, 2)?)))
}

/// A counter of a newer program is kept and not shown.
fn named((slot, name, times): (Slot, String, u64)) -> Option<(Slot, Counter, u64)> {
    Counter::named(&name).map(|counter| (slot, counter, times))
}
