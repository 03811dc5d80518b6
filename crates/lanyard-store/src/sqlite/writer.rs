//! The one connection that writes. Append before act: an acknowledged batch is on disk, or in the write-ahead log of a
//! running system where the caller asked for no more.
//!
//! After any failure the connection writes nothing until it has been recovered: the effect of a failed write or fsync
//! is unknown, and a retry would only hide that.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lanyard_core::Session;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::card::{Card, search_text};
use crate::error::StoreError;
use crate::journal::{Batch, Durability, KeptOutcome};
use crate::sqlite::boot::store_settled;
use crate::sqlite::cards;
use crate::sqlite::catalog::Catalog;
use crate::sqlite::heads::Elevator;
use crate::sqlite::plan::{Change, EntryPlace, Plan};
use crate::sqlite::read::MARK_EVERY;
use crate::sqlite::rows::{
    Head, Pos, Sid, Sum, encode_record, event_sum, head_sum, is_damage, record_sum, signed,
};
use crate::sqlite::watch::Watch;
use crate::sqlite::{insight, tallies, turns};

/// Time that a write waits for another process, such as a person's database tool.
pub(super) const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// Time that the writer waits for readers when it has to reset the write-ahead log itself.
pub(super) const RESET_PATIENCE: Duration = Duration::from_millis(250);

pub(super) struct Writer {
    /// None between a failed attempt to recover and the next one.
    pub(super) conn: Option<Connection>,
    /// The failures that the connection's commits survive at present.
    pub(super) durability: Durability,
    pub(super) elevator: Elevator,
    /// The last position taken.
    pub(super) end: Pos,
    /// Pages in the write-ahead log after the last commit.
    pub(super) wal_pages: Arc<AtomicI32>,
    /// Pages in the write-ahead log when a checkpoint was last asked for.
    pub(super) asked_at: i32,
    /// Why nothing may be written.
    pub(super) failed: Option<String>,
    /// Whether the files are still the ones that were opened.
    pub(super) watch: Arc<Watch>,
}

impl Writer {
    /// The connection, when writing is allowed.
    pub(super) fn usable(&self) -> Result<&Connection, StoreError> {
        match (&self.failed, &self.conn) {
            (None, Some(conn)) => Ok(conn),
            (Some(why), _) => Err(StoreError::Stopped(why.clone())),
            (None, None) => Err(StoreError::Stopped("the journal is closed".to_owned())),
        }
    }

    /// Runs `write` in one transaction and commits it. Any error stops the writer.
    pub(super) fn commit<T>(
        &mut self,
        durability: Durability,
        pass: impl Fn(&'static str),
        write: impl FnOnce(&Connection, &mut Elevator) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.transact(durability, pass, write);
        if let Err(error) = &done
            && self.failed.is_none()
        {
            self.fail(error);
        }
        done
    }

    /// As [`Self::commit`], for work without a waiting caller: a damaged page in its way stops no other work.
    pub(super) fn maintain<T>(
        &mut self,
        pass: impl Fn(&'static str),
        write: impl FnOnce(&Connection, &mut Elevator) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let done = self.transact(Durability::Synced, pass, write);
        match &done {
            Ok(_) => {}
            Err(StoreError::Sqlite(error)) if is_damage(error) => {}
            Err(error) if self.failed.is_none() => self.fail(error),
            Err(_) => {}
        }
        done
    }

    /// One transaction, taken back when it fails.
    fn transact<T>(
        &mut self,
        durability: Durability,
        pass: impl Fn(&'static str),
        write: impl FnOnce(&Connection, &mut Elevator) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.usable()?;
        let Some(conn) = &self.conn else {
            return Err(StoreError::Stopped("the journal is closed".to_owned()));
        };
        let (elevator, current) = (&mut self.elevator, &mut self.durability);
        let attempt = || -> Result<T, StoreError> {
            if *current != durability {
                conn.pragma_update(None, "synchronous", synchronous(durability))?;
                *current = durability;
            }
            // Prepared once: parsing the statement again is expensive compared with a one-event commit.
            conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            let answer = write(conn, elevator)?;
            pass("before_commit");
            conn.prepare_cached("COMMIT")?.execute([])?;
            // Commits to a file that was removed are not kept.
            self.watch.look()?;
            Ok(answer)
        };
        let done = attempt();
        match &done {
            Ok(_) => pass("after_commit"),
            // Nothing is written before the journal is opened anew; its readers need not wait that long.
            Err(_) if !conn.is_autocommit() => {
                if let Err(error) = conn.execute_batch("ROLLBACK") {
                    tracing::warn!(%error, "a transaction that failed could not be taken back");
                }
            }
            Err(_) => {}
        }
        done
    }

    pub(super) fn fail(&mut self, error: &StoreError) {
        let mut why = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            why = format!("{why}: {source}");
        }
        tracing::error!(why, "the journal stops writing");
        self.failed = Some(why);
    }

    /// Pages in the write-ahead log, when it has grown by `step` since a checkpoint was last asked for.
    pub(super) fn grown(&mut self, step: i32) -> Option<i32> {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.asked_at {
            self.asked_at = 0;
        }
        if pages - self.asked_at < step {
            return None;
        }
        self.asked_at = pages;
        Some(pages)
    }

    /// Moves on what is in the write-ahead log, as far as readers let it.
    pub(super) fn checkpoint(&mut self) -> Result<(), StoreError> {
        match self.usable()?.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Resets the write-ahead log, so that it restarts in the space it has. Readers can prevent this; the next attempt
    /// comes when the log has grown some more.
    pub(super) fn reset_wal(&mut self) -> Result<(), StoreError> {
        let conn = self.usable()?;
        conn.busy_timeout(RESET_PATIENCE)?;
        let reset = conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::RESTART);
        conn.busy_timeout(BUSY_PATIENCE)?;
        match reset {
            Ok(_) => self.asked_at = 0,
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                tracing::warn!("readers keep the write-ahead log from being reset");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// SQLite's word for it. With `normal` a commit is written to the write-ahead log and not synced; the next sync of that
/// file, by a `full` commit or before a checkpoint, covers all that is in it.
fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::Written => "normal",
        Durability::Synced => "full",
    }
}

/// Writes everything of a batch.
pub(super) fn write_batch(
    conn: &Connection,
    elevator: &mut Elevator,
    batch: &Batch,
    plan: &Plan,
    head_of: impl Fn(Sid) -> Head,
) -> Result<(), StoreError> {
    write_events(conn, batch, plan)?;
    for ((sid, card, change), session) in plan.cards.iter().zip(&batch.sessions) {
        write_session(conn, *sid, card, session, *change)?;
    }
    write_outcomes(conn, &batch.outcomes)?;
    turns::write(conn, &batch.turns, plan)?;
    insight::write(conn, &batch.insight, plan)?;
    if let Some((at, tally)) = &batch.tally {
        tallies::add(conn, *at, tally)?;
    }
    for touched in plan.touched.values() {
        elevator.touch(touched.sid);
    }
    let round = elevator.next(plan.end);
    write_heads(conn, &round.sids, head_of)?;
    if let Some(settled) = round.settled {
        store_settled(conn, settled)?;
    }
    Ok(())
}

fn write_events(conn: &Connection, batch: &Batch, plan: &Plan) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached(
        "INSERT INTO events (pos, sid, seq, prev, rung, at, crc, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (entry, place) in batch.entries.iter().zip(&plan.places) {
        let EntryPlace { pos, sid, prev, rung } = *place;
        let (seq, at) = (signed(entry.seq), entry.at.as_millis());
        let crc = event_sum([pos, sid, seq, prev, rung, at], &entry.body);
        put.execute((pos, sid, seq, prev, rung, at, crc, &entry.body[..]))?;
        if entry.seq.is_multiple_of(MARK_EVERY) {
            write_mark(conn, sid, entry.seq, pos)?;
        }
    }
    Ok(())
}

pub(super) fn write_mark(conn: &Connection, sid: Sid, seq: u64, pos: Pos) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached("INSERT OR REPLACE INTO marks (sid, seq, pos) VALUES (?1, ?2, ?3)")?;
    put.execute((sid, signed(seq), pos))?;
    Ok(())
}

pub(super) fn write_session(
    conn: &Connection,
    sid: Sid,
    card: &Card,
    session: &Session,
    change: Change,
) -> Result<(), StoreError> {
    cards::put(&mut conn.prepare_cached(cards::PUT)?, sid, card)?;
    let body = encode_record(session)?;
    let mut put = conn
        .prepare_cached("INSERT OR REPLACE INTO records (sid, as_of, crc, body) VALUES (?1, ?2, ?3, ?4)")?;
    put.execute((sid, signed(session.seq), record_sum(sid, session.seq, &body), body))?;
    if change == Change::Texts {
        conn.prepare_cached("DELETE FROM search WHERE sid = ?1")?.execute([sid])?;
    }
    if change != Change::Rest {
        // Aliases are added and never taken away. Those of a deleted session stay, to tell it from an unknown one.
        let mut put = conn.prepare_cached("INSERT OR IGNORE INTO aliases (alias, sid) VALUES (?1, ?2)")?;
        for alias in &session.aliases {
            put.execute((alias, sid))?;
        }
        if !card.deleted {
            let mut put = conn.prepare_cached("INSERT INTO search (sid, text) VALUES (?1, ?2)")?;
            put.execute((sid, search_text(session)))?;
        }
    }
    Ok(())
}

fn write_outcomes(conn: &Connection, outcomes: &[KeptOutcome]) -> Result<(), StoreError> {
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO outcomes (key, request, at, crc, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for kept in outcomes {
        let body = serde_json::to_vec(&kept.outcome)
            .map_err(|error| StoreError::Damaged(format!("the outcome cannot be written: {error}")))?;
        let crc = outcome_sum(&kept.key, &kept.request, kept.at.as_millis(), &body);
        put.execute((kept.key, kept.request, kept.at.as_millis(), crc, body))?;
    }
    Ok(())
}

pub(super) fn outcome_sum(key: &[u8], request: &[u8], at: i64, body: &[u8]) -> u32 {
    Sum::default().bytes(key).bytes(request).int(at).bytes(body).done()
}

pub(super) fn write_heads(
    conn: &Connection,
    sids: &[Sid],
    head_of: impl Fn(Sid) -> Head,
) -> rusqlite::Result<()> {
    let mut put = conn.prepare_cached(
        "INSERT OR REPLACE INTO heads (sid, seq, pos, rung, at, crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for &sid in sids {
        let head = head_of(sid);
        put.execute((sid, signed(head.seq), head.pos, head.rung, head.at, head_sum(sid, &head)))?;
    }
    Ok(())
}

/// Makes a committed batch visible.
pub(super) fn publish(catalog: &mut Catalog, plan: &Plan) {
    for (sid, card, _) in &plan.cards {
        catalog.put_card(*sid, card);
    }
    for touched in plan.touched.values() {
        catalog.put_head(touched.sid, touched.head);
    }
}
