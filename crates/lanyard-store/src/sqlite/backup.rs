//! Copies of the journal that can be relied on: one moment of it, in one file, checked by reading it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lanyard_core::journal::Report;

use crate::backups::Backups;
use crate::error::{OpenError, StoreError};
use crate::sqlite::{SqliteJournal, check, open};

impl Backups for SqliteJournal {
    fn back_up(&self, to: &Path) -> Result<Report, StoreError> {
        let io = |source| StoreError::Io { path: to.to_owned(), source };
        // Made first and empty, so that no other user can ever read it; SQLite fills an empty file.
        OpenOptions::new().write(true).create_new(true).mode(open::MODE).open(to).map_err(io)?;
        let filled = self.pool.lend(|conn| {
            let path = to.to_str().ok_or_else(|| {
                StoreError::Damaged(format!("{} is not a name SQLite can use", to.display()))
            })?;
            // One read transaction: writers go on, and nothing they write is half in it. Free pages are left out.
            Ok(conn.execute("VACUUM INTO ?1", [path]).map(drop)?)
        });
        let checked = filled.and_then(|()| {
            File::open(to).and_then(|file| file.sync_all()).map_err(io)?;
            check::check(&open::reader(to)?)
        });
        if checked.is_err() {
            // Half a copy is worse than none.
            let _ = std::fs::remove_file(to);
        }
        checked
    }

    fn notices(&self) -> Vec<String> {
        self.wal_tail.notice().into_iter().collect()
    }
}

impl SqliteJournal {
    /// Reads a file that may be a journal and reports what is damaged in it. Changes nothing.
    pub fn verify(path: &Path) -> Result<Report, OpenError> {
        let file = File::open(path).map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
        open::recognise(path, file)?;
        let conn = open::reader(path).map_err(|error| open::explain(path, error))?;
        check::check(&conn).map_err(|error| open::explain_all(path, error))
    }
}
