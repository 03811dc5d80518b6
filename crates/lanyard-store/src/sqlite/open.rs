//! Opening the file: is it ours, do we understand it, is it free. Nothing is changed before all three are certain.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::error::{OpenError, StoreError};
use crate::sqlite::rows::is_damage;
use crate::sqlite::{SqliteOptions, schema};

/// Only the owner may read what agents were told.
pub(super) const MODE: u32 = 0o600;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
pub(super) const PAGE_BYTES: i32 = 4_096;
/// Page cache of the writer: hot leaves of the projections.
const WRITER_CACHE_KIB: i32 = 16_384;
const READER_CACHE_KIB: i32 = 4_096;

/// Takes the journal for this process. The lock is on a file of its own: closing any handle of the database would
/// drop the locks SQLite holds on it.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let lock = beside(path, "-lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(MODE).open(&lock);
    let file = file.map_err(|source| io(&lock, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io(&lock, source)),
    }
}

/// The connection that writes, to a journal this program understands, at the schema it knows. Makes a new journal
/// where there is none.
pub(super) fn prepare(options: &SqliteOptions, wal_pages: &Arc<AtomicI32>) -> Result<Connection, OpenError> {
    let path = &options.path;
    match File::open(path) {
        Ok(file) => recognise(path, file)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => create(options)?,
        Err(source) => return Err(io(path, source)),
    }
    // The header in the file may be older than the one in the write-ahead log, so the database is asked as well. A
    // connection that only reads leaves both as they are.
    let conn = reader(path).map_err(|error| explain(path, error))?;
    known(schema::version(&conn).map_err(|error| explain(path, error))?)?;
    drop(conn);
    let conn = writer(path, Some(wal_pages)).map_err(|error| explain(path, error))?;
    schema::migrate(&conn, options.failpoint.as_ref()).map_err(|error| explain_all(path, error))?;
    Ok(conn)
}

/// Reads the header of a file that may be anything.
pub(super) fn recognise(path: &Path, file: File) -> Result<(), OpenError> {
    let mut header = Vec::with_capacity(100);
    file.take(100).read_to_end(&mut header).map_err(|source| io(path, source))?;
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_be_bytes)
    };
    if header.is_empty() {
        return Err(damaged(path, "the file is empty"));
    }
    let (Some(version), Some(application)) = (number(60), number(68)) else {
        let ours = header.starts_with(MAGIC);
        let foreign = OpenError::Foreign { path: path.to_owned() };
        return Err(if ours { damaged(path, "the file is cut short") } else { foreign });
    };
    if !header.starts_with(MAGIC) || application != schema::APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    known(version)
}

fn known(found: u32) -> Result<(), OpenError> {
    match found {
        1..=schema::KNOWN => Ok(()),
        // Version 0 is never on disk: a journal is moved to its place when it is complete.
        0 => Err(StoreError::Damaged("the journal does not say its schema".to_owned()).into()),
        found => Err(OpenError::Newer { found, known: schema::KNOWN }),
    }
}

/// Makes an empty journal aside and moves it to its place when it is complete, so that a file that is there but empty
/// can only be a damaged one.
fn create(options: &SqliteOptions) -> Result<(), OpenError> {
    let path = &options.path;
    if beside(path, "-wal").exists() {
        return Err(damaged(path, "its write-ahead log is there, the journal itself is missing"));
    }
    let new = beside(path, "-new");
    for leftover in [new.clone(), beside(&new, "-wal"), beside(&new, "-shm"), beside(&new, "-journal")] {
        match std::fs::remove_file(&leftover) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(io(&leftover, source)),
        }
    }
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(MODE)
        .open(&new)
        .map_err(|source| io(&new, source))?;
    let fill = || -> Result<(), StoreError> {
        let conn = Connection::open_with_flags(
            &new,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        conn.pragma_update(None, "page_size", PAGE_BYTES)?;
        // Before the first table, or it has no effect: a purge gives pages back without rewriting the file.
        conn.pragma_update(None, "auto_vacuum", "incremental")?;
        conn.pragma_update(None, "application_id", schema::APPLICATION_ID)?;
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        conn.pragma_update(None, "synchronous", "full")?;
        schema::migrate(&conn, options.failpoint.as_ref())?;
        conn.close().map_err(|(_, error)| error.into())
    };
    fill().map_err(|error| explain_all(&new, error))?;
    let settle = || -> std::io::Result<()> {
        File::open(&new)?.sync_all()?;
        std::fs::rename(&new, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    settle().map_err(|source| io(path, source))
}

/// The connection that writes. `wal_pages` is told how long the write-ahead log is after every commit.
pub(super) fn writer(path: &Path, wal_pages: Option<&Arc<AtomicI32>>) -> rusqlite::Result<Connection> {
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, WRITER_CACHE_KIB)?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "full")?;
    // What is deleted or replaced is overwritten, so that a purged session leaves nothing in free space.
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    // Setting this installs SQLite's own hook, so it comes before ours.
    conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    if let Some(wal_pages) = wal_pages {
        let wal_pages = Arc::clone(wal_pages);
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            wal_pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
    }
    Ok(conn)
}

pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, READER_CACHE_KIB)
}

pub(super) fn connect(path: &Path, access: OpenFlags, cache_kib: i32) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    // Finds damaged pages when they are loaded instead of when they are used.
    conn.pragma_update(None, "cell_size_check", true)?;
    Ok(conn)
}

/// The file of that name with a suffix, as SQLite names its own companions.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn damaged(path: &Path, what: &str) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

pub(super) fn io(path: &Path, source: std::io::Error) -> OpenError {
    StoreError::Io { path: path.to_owned(), source }.into()
}

pub(super) fn explain_all(path: &Path, error: StoreError) -> OpenError {
    match error {
        StoreError::Sqlite(error) => explain(path, error),
        other @ (StoreError::Io { .. }
        | StoreError::Damaged(_)
        | StoreError::Stopped(_)
        | StoreError::Lost { .. }) => other.into(),
    }
}

pub(super) fn explain(path: &Path, error: rusqlite::Error) -> OpenError {
    if is_damage(&error) {
        return OpenError::Damaged { path: path.to_owned(), what: error.to_string() };
    }
    StoreError::from(error).into()
}
