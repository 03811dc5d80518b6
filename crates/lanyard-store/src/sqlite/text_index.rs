//! The index of texts: a file of its own beside the journal, so that writing it holds up no commit and a backup is without
//! it. Its position in the log is committed with what was indexed, so a kill loses and repeats nothing. A file that is
//! damaged, of another version or of another log is dropped and made again.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use lanyard_core::search::WORDS_VERSION;
use parking_lot::{Mutex, RwLock};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::StoreError;
use crate::sqlite::open::{MODE, PAGE_BYTES, beside, connect};
use crate::sqlite::pool::Pool;
use crate::sqlite::rows::{Pos, is_damage, unsigned};
use crate::text_search::IndexState;

/// Grows with the shape of the tables.
const LAYOUT: i64 = 1;
/// Searches at a time; more wait for each other.
const READERS: usize = 2;
const WRITER_CACHE_KIB: i32 = 16_384;
const READER_CACHE_KIB: i32 = 16_384;
/// Bytes of words that are collected before they are written as one segment: more than a step has.
const SEGMENT_BYTES: i64 = 16 << 20;

/// A document is the text of an event, or of neighbouring events that are pieces of one message; its number is the position
/// of the first. The words are an index without a copy of the text: `docs` has it.
const TABLES: &str = "
    CREATE TABLE docs (
        doc INTEGER PRIMARY KEY,
        sid INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        joins TEXT,
        text TEXT NOT NULL
    );
    CREATE INDEX docs_sid ON docs (sid);
    CREATE TABLE place (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        pos INTEGER NOT NULL, -- position up to which the log is indexed
        seen INTEGER NOT NULL, -- position of an event that was indexed, and its checksum
        crc INTEGER NOT NULL
    );
    CREATE VIRTUAL TABLE words USING fts5 (
        whole, parts, facets, content = '', columnsize = 0, tokenize = 'ascii'
    );
    INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
";

/// The place in the log up to which it is indexed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogPlace {
    pub(super) pos: Pos,
    /// Position and checksum of the last indexed event: it tells one log from another.
    pub(super) seen: (Pos, u32),
}

/// Opened when it is first used.
pub(super) struct TextIndex {
    path: PathBuf,
    writer: Mutex<Option<Connection>>,
    readers: RwLock<Option<Arc<Pool>>>,
    /// The position up to which the log is indexed, as of the last step.
    indexed: AtomicI64,
    /// The last position of the log.
    end: AtomicI64,
}

impl TextIndex {
    pub(super) fn beside(journal: &Path, end: Pos) -> Self {
        Self {
            path: beside(journal, "-search"),
            writer: Mutex::new(None),
            readers: RwLock::new(None),
            indexed: AtomicI64::new(0),
            end: AtomicI64::new(end),
        }
    }

    pub(super) fn note_end(&self, end: Pos) {
        self.end.store(end, Ordering::Release);
    }

    pub(super) fn end(&self) -> Pos {
        self.end.load(Ordering::Acquire)
    }

    pub(super) fn state(&self) -> IndexState {
        let end = unsigned(self.end());
        IndexState { indexed: unsigned(self.indexed.load(Ordering::Acquire)).min(end), end }
    }

    /// Writes to the index, which is opened first. `journal` reads the log for the comparison. A damaged index is dropped:
    /// the next call begins a new one.
    pub(super) fn write<T>(
        &self,
        journal: &Pool,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock();
        if writer.is_none() {
            let (conn, place) = self.open(journal)?;
            self.indexed.store(place.pos, Ordering::Release);
            *writer = Some(conn);
        }
        let Some(conn) = &*writer else { return Err(closed()) };
        let done = work(conn);
        if let Err(StoreError::Sqlite(error)) = &done
            && is_damage(error)
        {
            tracing::warn!(%error, "the search index is damaged; it is made again");
            *writer = None;
            self.drop_file()?;
        }
        done
    }

    /// Runs `work` in one transaction that also moves the place.
    pub(super) fn commit<T>(
        &self,
        conn: &Connection,
        place: Option<LogPlace>,
        pass: impl FnOnce(),
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = conn.unchecked_transaction()?;
        let answer = work(&transaction)?;
        if let Some(place) = place {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO place (one, pos, seen, crc) VALUES (1, ?1, ?2, ?3)")?
                .execute((place.pos, place.seen.0, place.seen.1))?;
        }
        pass();
        transaction.commit()?;
        if let Some(place) = place {
            self.indexed.store(place.pos, Ordering::Release);
        }
        Ok(answer)
    }

    /// Lends a connection that reads the index; `None` while there is no index.
    pub(super) fn read<T>(
        &self,
        journal: &Pool,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // Makes the file where there is none, and finds out whether it is of this log.
        self.write(journal, |_| Ok(()))?;
        let pool = self.readers.read().clone();
        let pool = match pool {
            Some(pool) => pool,
            None => self.open_readers()?,
        };
        let answer = pool.read(read);
        if let Err(StoreError::Sqlite(error)) = &answer
            && is_damage(error)
        {
            tracing::warn!(%error, "the search index is damaged; it is made again");
            self.reset()?;
        }
        answer
    }

    fn open_readers(&self) -> Result<Arc<Pool>, StoreError> {
        let mut readers = self.readers.write();
        if let Some(pool) = &*readers {
            return Ok(Arc::clone(pool));
        }
        let open = || connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_CACHE_KIB);
        let opened = (0..READERS).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
        let pool = Arc::new(Pool::new(opened));
        *readers = Some(Arc::clone(&pool));
        Ok(pool)
    }

    /// Drops the index; it is made again from the log.
    pub(super) fn reset(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        *writer = None;
        self.drop_file()
    }

    /// Gives the space of removed documents back, and empties the write-ahead log, which still holds older pages. False
    /// with a reader in the way.
    pub(super) fn wipe(&self, journal: &Pool, rewrite_max: u64) -> Result<bool, StoreError> {
        self.write(journal, |conn| {
            let pages: i64 = conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
            if unsigned(pages) * u64::from(PAGE_BYTES.unsigned_abs()) <= rewrite_max {
                conn.execute_batch("VACUUM")?;
            }
            let busy: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            Ok(busy == 0)
        })
    }

    pub(super) fn close(&self) {
        if let Some(pool) = self.readers.write().take() {
            pool.close();
        }
        *self.writer.lock() = None;
    }

    /// With the writer closed.
    fn drop_file(&self) -> Result<(), StoreError> {
        *self.readers.write() = None;
        self.indexed.store(0, Ordering::Release);
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let path = beside(&self.path, suffix);
            match std::fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::Io { path, source });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The index of this log, or a new one.
    fn open(&self, journal: &Pool) -> Result<(Connection, LogPlace), StoreError> {
        if self.path.exists() {
            match self.open_file().and_then(|conn| Ok((self.known(&conn, journal)?, conn))) {
                Ok((Some(place), conn)) => return Ok((conn, place)),
                Ok((None, _)) => {
                    tracing::info!("the search index is of another log or version; it is made again");
                }
                Err(StoreError::Sqlite(error)) if is_damage(&error) => {
                    tracing::warn!(%error, "the search index is damaged; it is made again");
                }
                Err(error) => return Err(error),
            }
            self.drop_file()?;
        }
        let created = OpenOptions::new().create_new(true).write(true).mode(MODE).open(&self.path);
        created.map_err(|source| StoreError::Io { path: self.path.clone(), source })?;
        let conn = self.open_file()?;
        let transaction = conn.unchecked_transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?1)", [SEGMENT_BYTES])?;
        transaction.pragma_update(None, "user_version", version())?;
        transaction.commit()?;
        Ok((conn, LogPlace::default()))
    }

    fn open_file(&self) -> Result<Connection, StoreError> {
        let conn = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_CACHE_KIB)?;
        // Before the first table, or it has no effect.
        conn.pragma_update(None, "page_size", PAGE_BYTES)?;
        conn.pragma_update(None, "auto_vacuum", "incremental")?;
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        // A power cut may take the last steps whole: they are made again.
        conn.pragma_update(None, "synchronous", "normal")?;
        conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
        Ok(conn)
    }

    /// The place of an index of this version and this log.
    fn known(&self, conn: &Connection, journal: &Pool) -> Result<Option<LogPlace>, StoreError> {
        let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found != version() {
            return Ok(None);
        }
        let place = conn.query_row("SELECT pos, seen, crc FROM place", [], |row| {
            Ok(LogPlace { pos: row.get(0)?, seen: (row.get(1)?, row.get(2)?) })
        });
        let place = place.optional()?.unwrap_or_default();
        if place.pos > self.end() {
            return Ok(None);
        }
        let same = journal.read(|conn| {
            let crc =
                conn.query_row("SELECT crc FROM events WHERE pos = ?1", [place.seen.0], |row| row.get(0));
            // A purge may have removed it.
            Ok(crc.optional()?.is_none_or(|crc: u32| crc == place.seen.1))
        })?;
        Ok(same.then_some(place))
    }
}

const fn version() -> i64 {
    LAYOUT * 1_000 + WORDS_VERSION
}

fn closed() -> StoreError {
    StoreError::Stopped("the search index is closed".to_owned())
}
