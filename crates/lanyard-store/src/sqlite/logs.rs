//! Short logs with a record beside each: the checks that hold for every kind. No kind is known here.

use std::collections::BTreeMap;
use std::fmt::Display;

use rusqlite::{Connection, Row};

use crate::error::StoreError;
use crate::sqlite::read::undamaged;
use crate::sqlite::rows::{column, unsigned};

/// Complaints about one kind of record that are passed on; a lost page can be in the way of thousands.
const COMPLAINTS_MAX: usize = 1_000;

/// A fault of a record: the numbers of its events concerned, or zeros, and a description.
pub(super) type Complaint = ((u64, u64), String);

#[derive(Default)]
pub(super) struct Complaints(pub(super) Vec<Complaint>);

impl Complaints {
    pub(super) fn add(&mut self, seq: (u64, u64), what: String) {
        if self.0.len() < COMPLAINTS_MAX {
            self.0.push((seq, what));
        }
    }

    /// Whether a table has as many rows as the logs say.
    pub(super) fn count(&mut self, conn: &Connection, table: &str, expected: u64) -> Result<(), StoreError> {
        let counted =
            conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0));
        let counted = undamaged(counted)?;
        if counted.and_then(|counted| u64::try_from(counted).ok()) != Some(expected) {
            let counted = counted.map_or_else(|| "unreadable".to_owned(), |counted| counted.to_string());
            self.add((0, 0), format!("table {table} has {counted} rows where the log says {expected}"));
        }
        Ok(())
    }
}

/// The first contradiction between a batch and the stored log: a gap, events without their row, a row that is not as of
/// its last event. `head` is the number of the last event on disk, 0 for none.
pub(super) fn contradiction<I: Copy + Ord + Display>(
    entries: impl Iterator<Item = (I, u64)>,
    rows: &[(I, u64)],
    head: impl Fn(I) -> Result<u64, StoreError>,
) -> Result<Option<String>, StoreError> {
    let mut heads: BTreeMap<I, u64> = BTreeMap::new();
    for (id, seq) in entries {
        let before = heads.get(&id).map_or_else(|| head(id), |head| Ok(*head))?;
        if seq != before + 1 {
            return Ok(Some(format!("event {seq} of {id} after event {before}")));
        }
        heads.insert(id, seq);
    }
    if let Some(id) = heads.keys().find(|id| rows.iter().all(|(row, _)| row != *id)) {
        return Ok(Some(format!("events of {id} without its row")));
    }
    for &(id, seq) in rows {
        let head = heads.get(&id).map_or_else(|| head(id), |head| Ok(*head))?;
        if seq != head || head == 0 {
            return Ok(Some(format!("a row of {id} as of {seq}, not {head}")));
        }
    }
    Ok(None)
}

/// The number of the event in a row whose third column it is; 0 when it cannot be told.
pub(super) fn seq_of(row: &Row<'_>) -> u64 {
    column(row, 2).map_or(0, unsigned)
}
