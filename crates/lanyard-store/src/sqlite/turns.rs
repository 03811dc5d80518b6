//! The turns of all sessions in the file: one row each, made from the steps its log tells. A projection.

use std::collections::BTreeMap;

use lanyard_core::session::{Envelope, TurnRow, TurnStep};
use lanyard_core::{SessionId, TurnId};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::journal::{TurnPage, Turns};
use crate::sqlite::SqliteJournal;
use crate::sqlite::plan::Plan;
use crate::sqlite::read::scan;
use crate::sqlite::rows::{EventRow, Judged, Pos, Sid, Sum};

/// Text that the JSON of every event about a turn contains, so that others need not be parsed.
const MARK: &str = "\"type\":\"turn.";

type Key = [u8; 16];

impl Turns for SqliteJournal {
    fn turn(&self, session: SessionId, turn: TurnId) -> Result<Option<TurnRow>, StoreError> {
        let Some(log) = self.log_of(session) else { return Ok(None) };
        // The engine asks while it decides.
        self.prompt.read(|conn| get(conn, log.sid, turn))
    }

    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<TurnPage, StoreError> {
        let Some(log) = self.log_of(session) else { return Ok(TurnPage::default()) };
        self.pool.read(|conn| {
            let mut list = conn.prepare_cached(
                "SELECT turn, crc, body FROM turns WHERE sid = ?1 AND (?2 IS NULL OR turn < ?2) \
                 ORDER BY turn DESC LIMIT ?3",
            )?;
            let more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let mut rows = list.query((log.sid, before.map(key), more))?;
            let mut page = TurnPage::default();
            while let Some(row) = rows.next()? {
                if page.turns.len() == limit {
                    page.more = true;
                    break;
                }
                // A damaged one does not hide the others.
                if let Some(turn) = read(log.sid, row)? {
                    page.turns.push(turn);
                } else {
                    tracing::error!(%session, "the row of a turn is damaged");
                }
            }
            Ok(page)
        })
    }
}

fn key(turn: TurnId) -> Key {
    turn.as_u128().to_be_bytes()
}

fn sum(sid: Sid, key: &[u8], body: &[u8]) -> u32 {
    Sum::default().int(sid).bytes(key).bytes(body).done()
}

/// The row; `None` when it is not as it was written.
fn read(sid: Sid, row: &Row<'_>) -> rusqlite::Result<Option<TurnRow>> {
    let (key, crc, body): (Vec<u8>, u32, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let good = crc == sum(sid, &key, &body);
    Ok(good.then(|| serde_json::from_slice(&body).ok()).flatten())
}

fn get(conn: &Connection, sid: Sid, turn: TurnId) -> Result<Option<TurnRow>, StoreError> {
    let mut get = conn.prepare_cached("SELECT turn, crc, body FROM turns WHERE sid = ?1 AND turn = ?2")?;
    match get.query_row((sid, key(turn)), |row| read(sid, row)).optional()? {
        None => Ok(None),
        Some(Some(row)) => Ok(Some(row)),
        Some(None) => Err(StoreError::Damaged(format!("the row of turn {turn} is not as it was written"))),
    }
}

/// Writes what a batch says about turns.
pub(super) fn write(conn: &Connection, steps: &[TurnStep], plan: &Plan) -> Result<(), StoreError> {
    for step in steps {
        if let Some(touched) = plan.touched.get(&step.session) {
            put(conn, touched.sid, step)?;
        }
    }
    Ok(())
}

fn put(conn: &Connection, sid: Sid, step: &TurnStep) -> Result<(), StoreError> {
    // A damaged row is no reason not to write the log; `check` reports it and `rebuild` makes it again.
    let before = match get(conn, sid, step.turn) {
        Err(StoreError::Damaged(what)) => {
            tracing::error!(what);
            return Ok(());
        }
        found => found?,
    };
    let Some(row) = step.onto(before) else { return Ok(()) };
    let body = serde_json::to_vec(&row)
        .map_err(|error| StoreError::Damaged(format!("the row of a turn cannot be written: {error}")))?;
    let key = key(step.turn);
    let mut put =
        conn.prepare_cached("INSERT OR REPLACE INTO turns (sid, turn, crc, body) VALUES (?1, ?2, ?3, ?4)")?;
    put.execute((sid, key, sum(sid, &key, &body), body))?;
    Ok(())
}

/// The step an event of the log is, if it is one.
fn step(row: &EventRow) -> Option<TurnStep> {
    let text = std::str::from_utf8(&row.body).ok()?;
    if !text.contains(MARK) {
        return None;
    }
    TurnStep::of(&serde_json::from_str::<Envelope>(text).ok()?)
}

/// Makes all rows from the log, into an empty table; none of sessions that are purged.
pub(super) fn fill(conn: &Connection, is_purged: impl Fn(Sid) -> bool) -> Result<(), StoreError> {
    let mut failed = None;
    scan(conn, 0, Pos::MAX, |_, row| {
        if let (Judged::Intact(row), None) = (row, &failed)
            && !is_purged(row.sid)
            && let Some(step) = step(&row)
        {
            failed = put(conn, row.sid, &step).err();
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Compares the rows with what the log says, while it is read. Turns that are over are let go of at once.
#[derive(Default)]
pub(super) struct Audit {
    open: BTreeMap<(Sid, TurnId), TurnRow>,
    turns: u64,
    wrong: u64,
}

impl Audit {
    pub(super) fn event(&mut self, conn: &Connection, row: &EventRow) {
        let Some(step) = step(row) else { return };
        let before = self.open.remove(&(row.sid, step.turn));
        self.turns += u64::from(before.is_none());
        let Some(after) = step.onto(before) else { return };
        if after.status.is_open() {
            self.open.insert((row.sid, step.turn), after);
        } else {
            self.compare(conn, row.sid, &after);
        }
    }

    fn compare(&mut self, conn: &Connection, sid: Sid, row: &TurnRow) {
        let same = matches!(get(conn, sid, row.turn), Ok(Some(held)) if held == *row);
        self.wrong += u64::from(!same);
    }

    /// The number of expected rows, and of rows that differ from the log.
    pub(super) fn done(mut self, conn: &Connection) -> (u64, u64) {
        for ((sid, _), row) in std::mem::take(&mut self.open) {
            self.compare(conn, sid, &row);
        }
        (self.turns, self.wrong)
    }
}
