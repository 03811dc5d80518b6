//! The journal in one SQLite file: a log in order of arrival, projections beside it, all of a batch in one
//! transaction.
//!
//! One connection writes and a few read. Commits are written to the write-ahead log, and synced unless the batch can do
//! without; a thread moves them on into the file. Readers see a batch when it has been committed and published in the catalog.

mod backup;
mod boot;
mod cards;
mod catalog;
mod changes;
mod check;
mod checkpoint;
mod families;
mod heads;
mod insight;
mod list;
mod logs;
mod memories;
mod memory_rows;
mod memory_upkeep;
mod old_records;
mod open;
mod papers;
mod plan;
mod pool;
mod purge;
mod read;
mod rebuild;
mod record_search;
mod record_upkeep;
mod records;
mod request_keys;
mod rows;
mod schema;
mod sealed;
mod tallies;
mod text_fill;
mod text_index;
mod text_search;
mod texts;
mod tokens;
mod tombstones;
mod turns;
mod vectors;
mod wal_tail;
mod watch;
mod writer;

use lanyard_core::journal::Report;
use parking_lot::{RwLock, RwLockReadGuard};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use lanyard_core::{SessionId, Timestamp};
use rusqlite::OptionalExtension;
use rusqlite::wal::CheckpointMode;

use crate::backups::Backups;
use crate::card::search_text;
use crate::changes::ChangeTeller;
use crate::error::{AppendError, OpenError, StoreError};
use crate::journal::{Batch, Durability, EventPage, Journal, KeptOutcome, KeyHash, Loaded, Upkeep};
use crate::sqlite::boot::{Boot, boot};
use crate::sqlite::catalog::Catalog;
use crate::sqlite::checkpoint::Checkpointer;
use crate::sqlite::plan::Plan;
use crate::sqlite::pool::Pool;
use crate::sqlite::read::Log;
use crate::sqlite::rows::{Head, Sid};
use crate::sqlite::text_index::TextIndex;
use crate::sqlite::texts::Texts;
use crate::sqlite::wal_tail::WalTail;
use crate::sqlite::watch::Watch;
use crate::sqlite::writer::Writer;

/// Called at named points, so that tests can end the process there: `migration`, `before_commit`, `after_commit`,
/// `checkpoint`, `purge`, `index`.
pub type Failpoints = Arc<dyn Fn(&'static str) + Send + Sync>;

/// Pages at which the writer itself empties the write-ahead log, so that it stays bounded however busy it is: 64 MB.
const RESET_PAGES: i32 = 16_384;

/// Pages that the writer moves itself after the thread has moved the others.
const REST_PAGES_MAX: i32 = 128;

pub struct SqliteOptions {
    pub path: PathBuf,
    /// Connections that read; more callers than that wait for each other.
    pub readers: usize,
    /// Pages by which the write-ahead log grows before the thread moves them on.
    pub checkpoint_pages: i32,
    pub failpoint: Option<Failpoints>,
}

impl SqliteOptions {
    /// The settings of a daemon: four readers, and a checkpoint every 4 MB.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, readers: 4, checkpoint_pages: 1_024, failpoint: None }
    }
}

/// Dropping it writes what is still in memory only for speed, and closes the file.
pub struct SqliteJournal {
    options: SqliteOptions,
    catalog: RwLock<Catalog>,
    texts: Texts,
    /// The words of all logs, behind the log.
    texts_index: TextIndex,
    /// A lock that remembers a panic: a write that was cut short stops the journal.
    writer: Mutex<Writer>,
    pool: Pool,
    /// One connection for what the engine asks while it decides: it must not wait for anyone's long read.
    prompt: Pool,
    checkpointer: Checkpointer,
    /// Whether the files are still the ones that were opened.
    watch: Arc<Watch>,
    /// State of the end of the write-ahead log before it was read.
    wal_tail: WalTail,
    /// What is told of changes of records.
    told: OnceLock<ChangeTeller>,
    /// Held for as long as the journal is open: two processes would give the same numbers to different events.
    _lock: File,
}

impl SqliteJournal {
    pub fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let path = &options.path;
        let lock = open::lock(path)?;
        let wal_pages = Arc::new(AtomicI32::new(0));
        let wal_tail = wal_tail::look(path);
        let conn = open::prepare(&options, &wal_pages)?;
        let explain = |error| open::explain(path, error);
        let Boot { catalog, elevator, end } = boot(&conn).map_err(|error| open::explain_all(path, error))?;
        let watch = Arc::new(Watch::new(path));
        let writer = Writer {
            conn: Some(conn),
            durability: Durability::Synced,
            elevator,
            end,
            wal_pages,
            asked_at: 0,
            failed: None,
            watch: Arc::clone(&watch),
        };
        let readers = (0..options.readers.max(1)).map(|_| open::reader(path)).collect::<Result<_, _>>();
        let prompt = open::reader(path).map_err(explain)?;
        let checkpointing = open::writer(path, None).map_err(explain)?;
        let checkpointer = Checkpointer::start(checkpointing, options.failpoint.clone())
            .map_err(|source| StoreError::Io { path: path.clone(), source })?;
        Ok(Self {
            catalog: RwLock::new(catalog),
            texts: Texts::default(),
            texts_index: TextIndex::beside(path, end),
            writer: Mutex::new(writer),
            pool: Pool::new(readers.map_err(explain)?),
            prompt: Pool::new(vec![prompt]),
            checkpointer,
            watch,
            wal_tail,
            told: OnceLock::new(),
            options,
            _lock: lock,
        })
    }

    fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read()
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| {
            // A write that was cut short may have left anything in memory; the file has the truth.
            self.writer.clear_poison();
            let mut writer = poisoned.into_inner();
            writer.fail(&StoreError::Stopped("a write ended in a panic".to_owned()));
            writer
        })
    }

    /// The writes of a batch, checked against what is stored.
    fn plan(&self, batch: &Batch, conn: &rusqlite::Connection, end: rows::Pos) -> Result<Plan, AppendError> {
        let catalog = self.catalog();
        let plan = plan::plan(batch, &catalog, end).map_err(AppendError::Contradiction)?;
        plan.check_aliases(batch, &catalog, conn)?;
        match records::contradiction(conn, &batch.records).map_err(AppendError::Unavailable)? {
            Some(what) => Err(AppendError::Contradiction(what)),
            None => Ok(plan),
        }
    }

    fn pass(&self, point: &'static str) {
        if let Some(failpoint) = &self.options.failpoint {
            failpoint(point);
        }
    }

    fn log_of(&self, session: SessionId) -> Option<Log> {
        let catalog = self.catalog();
        let known = catalog.of(session).filter(|(_, facts)| !facts.is_purged());
        known.map(|(sid, facts)| Log { id: session, sid, head: facts.head })
    }

    /// Keeps the write-ahead log short. The batch that made it long is already safe: a failure here stops the next.
    fn tend_wal(&self, writer: &mut Writer) {
        if let Some(moved) = self.checkpointer.moved() {
            self.move_rest(writer, moved);
        }
        let Some(pages) = writer.grown(self.options.checkpoint_pages) else { return };
        if pages < RESET_PAGES {
            self.checkpointer.ask();
            return;
        }
        let _alone = self.checkpointer.hold();
        if let Err(error) = writer.reset_wal() {
            writer.fail(&error);
        }
    }

    /// Moves the pages that were written while the thread moved the others; nothing is added meanwhile, so the log
    /// restarts in the space it has. If it grew instead, every sync would also have to allocate disk space, which takes
    /// twice as long.
    fn move_rest(&self, writer: &mut Writer, moved: i32) {
        let rest = writer.wal_pages.load(Ordering::Relaxed) - moved;
        if rest > REST_PAGES_MAX {
            // Too much came in: the thread goes once more, and leaves less.
            self.checkpointer.ask();
            return;
        }
        if rest > 0
            && let Some(_alone) = self.checkpointer.try_hold()
            && let Err(error) = writer.checkpoint()
        {
            writer.fail(&error);
        }
    }

    /// For tests: from now on the file may not grow, as on a full disk, until the journal is recovered.
    #[doc(hidden)]
    pub fn fill_up(&self) -> Result<(), StoreError> {
        Ok(self.writer().usable()?.pragma_update_and_check(None, "max_page_count", 1, |_| Ok(()))?)
    }
}

impl std::fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteJournal").field("path", &self.options.path).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, readers, checkpoint_pages, failpoint } = self;
        let failpoint = failpoint.is_some();
        f.debug_struct("SqliteOptions")
            .field("path", path)
            .field("readers", readers)
            .field("checkpoint_pages", checkpoint_pages)
            .field("failpoint", &failpoint)
            .finish()
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        self.checkpointer.stop();
        self.pool.close();
        self.prompt.close();
        self.texts_index.close();
        let mut writer = self.writer();
        if writer.failed.is_some() {
            return;
        }
        let catalog = self.catalog();
        let head_of = |sid: Sid| catalog.facts(sid).map_or_else(Head::default, |facts| facts.head);
        let end = writer.end;
        let flushed = writer.commit(
            Durability::Synced,
            |_| {},
            |conn, elevator| {
                let rest = elevator.rest(end);
                writer::write_heads(conn, &rest.sids, head_of)?;
                Ok(rest.settled.map_or(Ok(()), |settled| boot::store_settled(conn, settled))?)
            },
        );
        // Nothing is lost when this fails: the next start reads the log instead.
        if let Err(error) = flushed {
            tracing::warn!(%error, "the heads could not be written at the end");
        }
        if let Some(conn) = writer.conn.take()
            && let Err(error) = conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE)
        {
            tracing::warn!(%error, "the last checkpoint failed");
        }
    }
}

impl Journal for SqliteJournal {
    fn append(&self, batch: &Batch) -> Result<(), AppendError> {
        let mut writer = self.writer();
        let conn = writer.usable().map_err(AppendError::Unavailable)?;
        let plan = match self.plan(batch, conn, writer.end) {
            Ok(plan) => plan,
            Err(AppendError::Unavailable(error)) => {
                writer.fail(&error);
                return Err(AppendError::Unavailable(error));
            }
            Err(contradiction @ AppendError::Contradiction(_)) => return Err(contradiction),
        };
        let fresh: std::collections::HashMap<Sid, Head> =
            plan.touched.values().map(|touched| (touched.sid, touched.head)).collect();
        let head_of = |sid: Sid| match fresh.get(&sid) {
            Some(&head) => head,
            None => self.catalog().facts(sid).map_or_else(Head::default, |facts| facts.head),
        };
        let write = |conn: &rusqlite::Connection, elevator: &mut heads::Elevator| {
            writer::write_batch(conn, elevator, batch, &plan, head_of)?;
            records::write(conn, &batch.records)
        };
        let changed = writer.commit(batch.durability, |point| self.pass(point), write);
        let changed = changed.map_err(AppendError::Unavailable)?;
        writer.end = plan.end;
        writer::publish(&mut self.catalog.write(), &plan);
        self.texts_index.note_end(plan.end);
        for ((sid, card, change), session) in plan.cards.iter().zip(&batch.sessions) {
            if *change != plan::Change::Rest {
                self.texts.put(*sid, || (!card.deleted).then(|| search_text(session)));
            }
        }
        self.changed(changed);
        self.tend_wal(&mut writer);
        Ok(())
    }

    fn recover(&self) -> Result<(), StoreError> {
        let mut writer = self.writer();
        if writer.failed.is_none() {
            writer.failed = Some("the journal is being recovered".to_owned());
        }
        // Another file of that name is not this journal: what was acknowledged is not in it.
        self.watch.look()?;
        // The old connection goes first: what it holds of the file is what can no longer be trusted.
        writer.conn = None;
        writer.wal_pages.store(0, Ordering::Relaxed);
        writer.asked_at = 0;
        let conn = open::writer(&self.options.path, Some(&writer.wal_pages))?;
        let Boot { catalog, elevator, end } = boot(&conn)?;
        // A durable write is the proof that writing works again.
        let probe = conn.unchecked_transaction()?;
        probe.execute(
            "INSERT INTO meta (key, value, crc) VALUES ('recovered', 1, 0) \
             ON CONFLICT (key) DO UPDATE SET value = value + 1",
            [],
        )?;
        probe.commit()?;
        writer.conn = Some(conn);
        writer.durability = Durability::Synced;
        writer.elevator = elevator;
        writer.end = end;
        *self.catalog.write() = catalog;
        self.texts.forget();
        self.texts_index.note_end(end);
        writer.failed = None;
        Ok(())
    }

    fn failure(&self) -> Option<String> {
        let mut writer = self.writer();
        if writer.failed.is_none()
            && let Err(error) = self.watch.look()
        {
            writer.fail(&error);
        }
        writer.failed.clone()
    }

    fn load(&self, session: SessionId) -> Result<Option<Loaded>, StoreError> {
        let Some(log) = self.log_of(session) else { return Ok(None) };
        let fold = self.pool.read(|conn| log.fold(conn, read::record(conn, log.sid)?, log.head.seq))?;
        let Some(folded) = fold.session else {
            let what = fold.damage.first().map_or("nothing is left of it", |damage| &damage.what);
            return Err(StoreError::Damaged(format!("session {session} cannot be read: {what}")));
        };
        let lineage = self.catalog().lineage(session);
        Ok(Some(Loaded { session: folded, lineage, damage: fold.damage }))
    }

    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        let Some(log) = self.log_of(session) else {
            return Ok(EventPage { events: Vec::new(), head: 0 });
        };
        let last = after.saturating_add(limit as u64).min(log.head.seq);
        if last <= after {
            return Ok(EventPage { events: Vec::new(), head: log.head.seq });
        }
        let events = self.pool.read(|conn| log.events(conn, after + 1, last))?;
        Ok(EventPage { events, head: log.head.seq })
    }

    fn outcome(&self, key: &KeyHash) -> Result<Option<KeptOutcome>, StoreError> {
        self.prompt.read(|conn| {
            let mut get =
                conn.prepare_cached("SELECT request, at, crc, outcome FROM outcomes WHERE key = ?1")?;
            let kept = get.query_row([key], |row| {
                Ok((
                    row.get::<_, [u8; 16]>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, u32>(2)?,
                    row.get::<_, Vec<u8>>(3)?,
                ))
            });
            let Some((request, at, crc, body)) = kept.optional()? else { return Ok(None) };
            let damaged = |what: String| StoreError::Damaged(format!("a kept outcome is damaged: {what}"));
            if crc != writer::outcome_sum(key, &request, at, &body) {
                return Err(damaged("it is not as it was written".to_owned()));
            }
            let outcome = serde_json::from_slice(&body).map_err(|error| damaged(error.to_string()))?;
            Ok(Some(KeptOutcome { key: *key, request, at: Timestamp::from_millis(at), outcome }))
        })
    }
}

impl Upkeep for SqliteJournal {
    fn check(&self) -> Result<Report, StoreError> {
        let mut report = self.pool.read(check::check)?;
        report.structure.extend(self.notices());
        Ok(report)
    }

    fn rebuild(&self) -> Result<u64, StoreError> {
        let mut writer = self.writer();
        writer.commit(Durability::Synced, |_| {}, |conn, _| rebuild::rebuild(conn))?;
        let Boot { catalog, elevator, end } = match writer.usable().and_then(boot) {
            Ok(boot) => boot,
            Err(error) => {
                writer.fail(&error);
                return Err(error);
            }
        };
        let sessions = catalog.len() as u64;
        writer.elevator = elevator;
        writer.end = end;
        *self.catalog.write() = catalog;
        self.texts.forget();
        self.texts_index.note_end(end);
        drop(writer);
        self.texts_index.reset()?;
        Ok(sessions)
    }

    fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.writer().commit(
            Durability::Synced,
            |_| {},
            |conn, _| {
                let mut sweep = conn.prepare_cached(
                    "DELETE FROM outcomes WHERE key IN (SELECT key FROM outcomes WHERE at < ?1 ORDER BY at LIMIT ?2)",
                )?;
                Ok(sweep.execute((before.as_millis(), i64::try_from(limit).unwrap_or(i64::MAX)))?)
            },
        )
    }

    fn forget_keys(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // Due keys are found on a reading connection, so that the writer is not kept waiting.
        let old = self.pool.read(|conn| request_keys::old(conn, before, limit))?;
        if old.is_empty() {
            return Ok(0);
        }
        self.writer().commit(Durability::Synced, |_| {}, |conn, _| request_keys::forget(conn, &old))
    }
}
