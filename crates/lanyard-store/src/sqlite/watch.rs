//! Whether the journal's files are still the ones that were opened. A process that writes into a file which was removed or
//! replaced gets no error: everything goes well, and nothing of it is there after the next start.
//!
//! The files are looked at by their paths and never opened: closing any handle of the database would drop the locks
//! SQLite holds on it.

use parking_lot::{Mutex, MutexGuard};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Loss, StoreError};
use crate::sqlite::open::beside;

pub(super) struct Watch {
    main: PathBuf,
    wal: PathBuf,
    opened: Mutex<Opened>,
}

/// The files when they were last known to be right.
struct Opened {
    main: Option<Seen>,
    wal: Option<Seen>,
    /// Free pages are being given back: a checkpoint may make the file shorter at any time.
    shrinking: bool,
}

#[derive(Clone, Copy)]
struct Seen {
    device: u64,
    inode: u64,
    /// The file has never been shorter since.
    bytes: u64,
}

impl Watch {
    /// To be made when the journal is open and has been read.
    pub(super) fn new(path: &Path) -> Self {
        let (main, wal) = (path.to_owned(), beside(path, "-wal"));
        let opened = Opened { main: seen(&main), wal: seen(&wal), shrinking: false };
        Self { main, wal, opened: Mutex::new(opened) }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock()
    }

    /// An error when a file is gone, is another one, or was cut.
    pub(super) fn look(&self) -> Result<(), StoreError> {
        let mut opened = self.opened();
        let shrinking = opened.shrinking;
        compare(&self.main, &mut opened.main, shrinking)?;
        compare(&self.wal, &mut opened.wal, false)
    }

    /// Free pages are given back from now on.
    pub(super) fn may_shrink(&self) {
        self.opened().shrinking = true;
    }

    /// The write-ahead log was emptied: both files have the size they should have.
    pub(super) fn settle(&self) {
        let mut opened = self.opened();
        opened.shrinking = false;
        let Opened { main, wal, .. } = &mut *opened;
        for (path, held) in [(&self.main, main), (&self.wal, wal)] {
            if let (Some(held), Some(now)) = (held, seen(path)) {
                held.bytes = now.bytes;
            }
        }
    }
}

fn seen(path: &Path) -> Option<Seen> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Seen { device: meta.dev(), inode: meta.ino(), bytes: meta.len() })
}

fn compare(path: &Path, held: &mut Option<Seen>, shrinking: bool) -> Result<(), StoreError> {
    // A file system that could not be asked at the start says nothing later either.
    let Some(before) = held else { return Ok(()) };
    let lost = |loss| Err(StoreError::Lost { path: path.to_owned(), loss });
    let Some(now) = seen(path) else { return lost(Loss::Removed) };
    if (now.device, now.inode) != (before.device, before.inode) {
        return lost(Loss::Replaced);
    }
    if now.bytes < before.bytes && !shrinking {
        return lost(Loss::Cut);
    }
    before.bytes = now.bytes;
    Ok(())
}
