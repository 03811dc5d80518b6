//! Removing the logs of deleted sessions from the file.
//!
//! The first step replaces the session's rows by a tombstone, in one transaction: from then on nothing of it can be read.
//! Further steps follow the chain of its events from the newest back and remove them, a bounded number at a time; the
//! tombstone says where to go on, so a crash repeats nothing and forgets nothing. `secure_delete` overwrites what is
//! removed. The last steps give free pages back and empty the write-ahead log, which still holds older pages.

use std::sync::atomic::Ordering;

use lanyard_core::journal::{JournalSize, PurgeStage, Tombstone};
use lanyard_core::{SessionId, Timestamp};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::error::StoreError;
use crate::journal::Durability;
use crate::purges::{LAST_WORDS, PurgeStep, Purges, WipeStep, tombstone};
use crate::sqlite::SqliteJournal;
use crate::sqlite::catalog::Facts;
use crate::sqlite::insight;
use crate::sqlite::open::{PAGE_BYTES, beside};
use crate::sqlite::read::{FETCH, Fetched, Log, fetch, record};
use crate::sqlite::rows::{Judged, Pos, Sid, signed, unsigned};
use crate::sqlite::tombstones::{self, Stone};
use crate::sqlite::writer::{BUSY_PATIENCE, RESET_PATIENCE, Writer};

/// Positions searched per event that a step may remove, where the chain is broken.
const SCAN_FACTOR: i64 = 16;
/// A file up to this size is rewritten whole after a purge, which takes well below a second: 64 MB. Beyond it free pages
/// are given back a few at a time, and only `compact` removes copies of moved rows from the unused parts of pages.
const REWRITE_MAX: u64 = 64 << 20;
/// Free pages given back in one step.
const VACUUM_PAGES: u32 = 512;
/// Tombstones that one step marks as wiped.
const WIPED_MAX: usize = 1_000;

impl Purges for SqliteJournal {
    fn unpurged(&self, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let begun = self.pool.read(|conn| tombstones::at_stage(conn, PurgeStage::Purging, limit))?;
        let mut sessions: Vec<SessionId> = begun.into_iter().map(|stone| stone.about.session).collect();
        self.survey(|_, facts| {
            if facts.is_deleted() && !facts.is_purged() && sessions.len() < limit {
                sessions.push(facts.id);
            }
        });
        Ok(sessions)
    }

    fn purge(&self, session: SessionId, limit: usize) -> Result<PurgeStep, StoreError> {
        let known = self.catalog().of(session).map(|(sid, facts)| (sid, facts.clone()));
        match known {
            None => Ok(PurgeStep::Unknown),
            Some((sid, facts)) if facts.is_purged() => self.remove_some(sid, limit),
            Some((sid, facts)) if facts.is_deleted() => self.bury(sid, &facts),
            Some(_) => Ok(PurgeStep::NotDeleted),
        }
    }

    fn wipe(&self) -> Result<WipeStep, StoreError> {
        let due = self.pool.read(|conn| tombstones::at_stage(conn, PurgeStage::Purged, 1))?;
        // The log's writer does not wait for the index.
        if !due.is_empty() && !self.texts_index.wipe(&self.pool, REWRITE_MAX)? {
            return Ok(WipeStep::Busy);
        }
        let mut writer = self.writer();
        let purged = tombstones::at_stage(writer.usable()?, PurgeStage::Purged, WIPED_MAX)?;
        if purged.is_empty() {
            return Ok(WipeStep::Done);
        }
        self.watch.look()?;
        self.watch.may_shrink();
        let done = if size(writer.usable()?)?.0 <= REWRITE_MAX {
            rewrite(&mut writer)?;
            true
        } else {
            give_back(&mut writer)?
        };
        if !done {
            self.tend_wal(&mut writer);
            return Ok(WipeStep::Going);
        }
        if !self.empty_wal(&mut writer)? {
            return Ok(WipeStep::Busy);
        }
        writer.commit(
            Durability::Synced,
            |point| self.pass(point),
            |conn, _| {
                for mut stone in purged {
                    stone.about.stage = PurgeStage::Wiped;
                    tombstones::put(conn, &stone)?;
                }
                Ok(())
            },
        )?;
        let rest = tombstones::at_stage(writer.usable()?, PurgeStage::Purged, 1)?;
        Ok(if rest.is_empty() { WipeStep::Done } else { WipeStep::Going })
    }

    fn tombstone(&self, session: SessionId) -> Result<Option<Tombstone>, StoreError> {
        let sid = self.catalog().of(session).filter(|(_, facts)| facts.is_purged()).map(|(sid, _)| sid);
        let Some(sid) = sid else { return Ok(None) };
        Ok(self.pool.read(|conn| tombstones::get(conn, sid))?.map(|stone| stone.about))
    }

    fn tombstones(&self) -> Result<(u64, u64), StoreError> {
        self.pool.read(tombstones::counts)
    }

    fn size(&self) -> Result<JournalSize, StoreError> {
        let (bytes, free_bytes) = self.pool.read(size)?;
        let wal = beside(&self.options.path, "-wal");
        let wal_bytes = std::fs::metadata(wal).map_or(0, |meta| meta.len());
        Ok(JournalSize { bytes, wal_bytes, free_bytes })
    }

    fn compact(&self) -> Result<JournalSize, StoreError> {
        self.texts_index.wipe(&self.pool, u64::MAX)?;
        {
            let mut writer = self.writer();
            self.watch.look()?;
            self.watch.may_shrink();
            rewrite(&mut writer)?;
            self.empty_wal(&mut writer)?;
        }
        self.size()
    }
}

impl SqliteJournal {
    /// Puts the tombstone in the place of everything that is kept of the session beside its log.
    fn bury(&self, sid: Sid, facts: &Facts) -> Result<PurgeStep, StoreError> {
        let mut writer = self.writer();
        // Read again: only the writer appends, and no longer can.
        let head = self.catalog().facts(sid).map_or(facts.head, |facts| facts.head);
        let log = Log { id: facts.id, sid, head };
        let (last, aliases) = self.pool.read(|conn| {
            let last = log.events(conn, head.seq.saturating_sub(LAST_WORDS) + 1, head.seq)?;
            Ok((last, record(conn, sid)?.ok().map(|session| session.aliases)))
        })?;
        let at = (head.seq, Timestamp::from_millis(head.at));
        let stone = Stone {
            sid,
            next: head.pos,
            scanned: -1,
            removed: 0,
            places: 0,
            about: tombstone(facts.id, facts.parent, at, &last),
        };
        let end = writer.end;
        writer.maintain(
            |point| self.pass(point),
            |conn, elevator| {
                tombstones::put(conn, &stone)?;
                tombstones::store_log_end(conn, end)?;
                for table in ["sessions", "records", "heads", "search"] {
                    conn.prepare_cached(&format!("DELETE FROM {table} WHERE sid = ?1"))?.execute([sid])?;
                }
                remove_aliases(conn, sid, aliases.as_deref())?;
                insight::forget(conn, sid)?;
                elevator.forget(sid);
                Ok(())
            },
        )?;
        let mut catalog = self.catalog.write();
        catalog.put_purged(sid, facts.id, facts.parent);
        drop(catalog);
        self.texts.put(sid, || None);
        self.tend_wal(&mut writer);
        self.pass("purge");
        Ok(PurgeStep::Going { left: stone.left() })
    }

    /// Removes events, then turns, then says that nothing is left.
    fn remove_some(&self, sid: Sid, limit: usize) -> Result<PurgeStep, StoreError> {
        // Before the log: a kill between the two leaves a purge that goes on.
        let texts_gone = self.forget_texts(sid, limit)?;
        let mut writer = self.writer();
        let Some(mut stone) = tombstones::get(writer.usable()?, sid)? else {
            return Err(StoreError::Damaged("a tombstone is missing".to_owned()));
        };
        if stone.about.stage != PurgeStage::Purging {
            return Ok(PurgeStep::Done);
        }
        if !texts_gone {
            return Ok(PurgeStep::Going { left: stone.left() });
        }
        let end = writer.end;
        let places = if stone.next > 0 {
            follow(writer.usable()?, &mut stone, limit)?
        } else if stone.left() > 0 && stone.scanned < end {
            search(writer.usable()?, &mut stone, limit, end)?
        } else {
            Vec::new()
        };
        let stone = writer.maintain(
            |point| self.pass(point),
            move |conn, _| {
                let mut remove = conn.prepare_cached("DELETE FROM events WHERE pos = ?1 AND sid = ?2")?;
                for pos in places {
                    if remove.execute((pos, sid))? > 0 {
                        stone.without(pos);
                    }
                }
                let rows_gone = stone.next == 0 && (stone.left() == 0 || stone.scanned >= end);
                if rows_gone {
                    if remove_turns(conn, sid, limit)? {
                        stone.about.stage = PurgeStage::Purged;
                    }
                } else {
                    conn.prepare_cached("DELETE FROM marks WHERE sid = ?1 AND seq > ?2")?
                        .execute((sid, signed(stone.left())))?;
                }
                tombstones::put(conn, &stone)?;
                Ok(stone)
            },
        )?;
        self.tend_wal(&mut writer);
        self.pass("purge");
        Ok(match stone.about.stage {
            PurgeStage::Purging => PurgeStep::Going { left: stone.left() },
            PurgeStage::Purged | PurgeStage::Wiped => PurgeStep::Done,
        })
    }

    /// Moves everything from the write-ahead log into the file and cuts it to nothing. False with a reader in the way.
    fn empty_wal(&self, writer: &mut Writer) -> Result<bool, StoreError> {
        let _alone = self.checkpointer.hold();
        let conn = writer.usable()?;
        conn.busy_timeout(RESET_PATIENCE)?;
        let emptied = conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE);
        conn.busy_timeout(BUSY_PATIENCE)?;
        match emptied {
            Ok(_) => {
                self.watch.settle();
                writer.wal_pages.store(0, Ordering::Relaxed);
                writer.asked_at = 0;
                Ok(true)
            }
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
            Err(error) => {
                let error = StoreError::from(error);
                writer.fail(&error);
                Err(error)
            }
        }
    }
}

/// Positions of the session's newest events along their chain. Where the chain is broken, the rest is searched for.
fn follow(conn: &Connection, stone: &mut Stone, limit: usize) -> Result<Vec<Pos>, StoreError> {
    let mut get = conn.prepare_cached(FETCH)?;
    let mut places = Vec::new();
    while stone.next > 0 && places.len() < limit.max(1) {
        match fetch(&mut get, stone.next)? {
            Fetched::Row(Judged::Intact(row)) if row.sid == stone.sid => {
                places.push(stone.next);
                stone.next = row.prev;
            }
            Fetched::Row(_) | Fetched::Missing => stone.next = 0,
        }
    }
    Ok(places)
}

/// Positions of the session's events in the next stretch of the log.
fn search(conn: &Connection, stone: &mut Stone, limit: usize, end: Pos) -> Result<Vec<Pos>, StoreError> {
    let after = stone.scanned.max(0);
    let stretch = i64::try_from(limit.max(1)).unwrap_or(i64::MAX).saturating_mul(SCAN_FACTOR);
    stone.scanned = after.saturating_add(stretch).min(end);
    let mut find = conn.prepare_cached("SELECT pos FROM events WHERE pos > ?1 AND pos <= ?2 AND sid = ?3")?;
    let places = find.query_map((after, stone.scanned, stone.sid), |row| row.get(0))?;
    Ok(places.collect::<Result<_, _>>()?)
}

fn remove_aliases(conn: &Connection, sid: Sid, known: Option<&[String]>) -> Result<(), StoreError> {
    let Some(known) = known else {
        // The record cannot be read: all aliases are looked through.
        conn.execute("DELETE FROM aliases WHERE sid = ?1", [sid])?;
        return Ok(());
    };
    let mut remove = conn.prepare_cached("DELETE FROM aliases WHERE alias = ?1 AND sid = ?2")?;
    for alias in known {
        remove.execute((alias, sid))?;
    }
    Ok(())
}

/// Removes the session's turns and marks. False when there are more.
fn remove_turns(conn: &Connection, sid: Sid, limit: usize) -> Result<bool, StoreError> {
    let limit = limit.max(1);
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut removed = 0;
    for (table, key) in [("turns", "turn"), ("marks", "seq")] {
        let mut remove = conn.prepare_cached(&format!(
            "DELETE FROM {table} WHERE sid = ?1 AND {key} IN (SELECT {key} FROM {table} WHERE sid = ?1 LIMIT ?2)"
        ))?;
        removed += remove.execute((sid, most))?;
    }
    Ok(removed < limit)
}

/// Bytes of the file, and of those the free ones.
fn size(conn: &Connection) -> Result<(u64, u64), StoreError> {
    let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let free: i64 = conn.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    let page = u64::from(PAGE_BYTES.unsigned_abs());
    Ok((unsigned(pages) * page, unsigned(free) * page))
}

/// Rewrites the whole file. Without enough space the file stays as it is.
fn rewrite(writer: &mut Writer) -> Result<(), StoreError> {
    let conn = writer.usable()?;
    // Takes effect with the rewriting, for journals made before free pages could be given back.
    conn.pragma_update(None, "auto_vacuum", "incremental")?;
    let rewritten = conn.execute_batch("VACUUM").map_err(StoreError::from);
    if let Err(error) = &rewritten
        && !is_harmless(error)
    {
        writer.fail(error);
    }
    rewritten
}

/// Gives some free pages back. True when there are none left, or this file cannot.
fn give_back(writer: &mut Writer) -> Result<bool, StoreError> {
    let conn = writer.usable()?;
    let mode: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode == 0 {
        return Ok(true);
    }
    let given = (|| -> rusqlite::Result<()> {
        let mut vacuum = conn.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    })();
    if let Err(error) = given {
        let error = StoreError::from(error);
        if !is_harmless(&error) {
            writer.fail(&error);
        }
        return Err(error);
    }
    Ok(size(writer.usable()?)?.1 == 0)
}

/// The file is as it was: there was no room, or a page of it is damaged.
fn is_harmless(error: &StoreError) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, DiskFull};
    match error {
        StoreError::Sqlite(error) => matches!(
            error.sqlite_error_code(),
            Some(DiskFull | DatabaseBusy | DatabaseLocked | DatabaseCorrupt)
        ),
        StoreError::Io { .. } | StoreError::Damaged(_) | StoreError::Stopped(_) | StoreError::Lost { .. } => {
            false
        }
    }
}
