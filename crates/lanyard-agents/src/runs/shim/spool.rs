//! Where the agent's output goes: stdout whole and with offsets, of stderr the newest.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::runs::folder::{Folder, private};
use crate::runs::record::SpoolLimits;

/// A hole is punched when so much can be given back: it is a system call, and files have blocks.
const PUNCH_STEP: u64 = 1024 * 1024;
/// Between two tries to write a spool that fails.
const RETRY_MS: u64 = 200;
/// Stderr is kept in two files of this size; the older one is replaced when the newer one is full.
const TAIL_HALF: u64 = 128 * 1024;

/// The agent's stdout. What was read is written at its offset, or held until it can be.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    limits: SpoolLimits,
    /// Bytes on disk.
    len: u64,
    /// Bytes nobody needs any more, and those that were given back.
    consumed: u64,
    punched: u64,
    held: Vec<u8>,
    trouble: Option<Trouble>,
    given_up: Option<String>,
}

#[derive(Debug)]
struct Trouble {
    error: io::Error,
    since: u64,
    retry_at: u64,
}

impl Spool {
    pub(super) fn create(folder: &Folder, limits: SpoolLimits) -> io::Result<Self> {
        let file = private().write(true).create(true).truncate(true).open(folder.file("out"))?;
        Ok(Self {
            file,
            limits,
            len: 0,
            consumed: 0,
            punched: 0,
            held: Vec::new(),
            trouble: None,
            given_up: None,
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether more may be read while the agent can still write.
    pub(super) fn has_room(&self) -> bool {
        self.given_up.is_some() || self.trouble.is_none() && self.len - self.consumed < self.limits.spool_max
    }

    /// Whether what was read is written, or never will be.
    pub(super) fn is_settled(&self) -> bool {
        self.trouble.is_none()
    }

    pub(super) fn retry_at(&self) -> Option<u64> {
        self.trouble.as_ref().map(|trouble| trouble.retry_at)
    }

    /// After the spool was given up the agent is only listened to, so that it can end in peace.
    pub(super) fn write(&mut self, bytes: &[u8], now: u64) {
        if self.given_up.is_some() {
            return;
        }
        match self.try_write(bytes) {
            Ok(()) => {}
            Err((written, error)) => {
                self.held = bytes[written..].to_vec();
                self.trouble = Some(Trouble { error, since: now, retry_at: now + RETRY_MS });
            }
        }
    }

    /// Tries again what could not be written. True when it was given up just now.
    pub(super) fn retry(&mut self, now: u64) -> bool {
        let Some(trouble) = self.trouble.as_ref().filter(|trouble| now >= trouble.retry_at) else {
            return false;
        };
        let since = trouble.since;
        let held = std::mem::take(&mut self.held);
        match self.try_write(&held) {
            Ok(()) => {
                self.trouble = None;
                false
            }
            Err((written, error)) if now.saturating_sub(since) < self.limits.spool_patience_ms => {
                self.held = held[written..].to_vec();
                self.trouble = Some(Trouble { error, since, retry_at: now + RETRY_MS });
                false
            }
            Err((_, error)) => {
                self.trouble = None;
                self.given_up = Some(error.to_string());
                true
            }
        }
    }

    /// Bytes written and the error, if not all were.
    fn try_write(&mut self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write_at(&bytes[written..], self.len) {
                Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
                Ok(more) => {
                    written += more;
                    self.len += more as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }

    /// Gives back what lies before `to`.
    pub(super) fn consume(&mut self, to: u64) {
        self.consumed = self.consumed.max(to.min(self.len));
        if self.consumed - self.punched < PUNCH_STEP {
            return;
        }
        punch_hole(&self.file, self.punched, self.consumed - self.punched);
        self.punched = self.consumed;
    }

    /// Why the output is not whole.
    pub(super) fn error(&self) -> Option<String> {
        let failing = self.trouble.as_ref().map(|trouble| trouble.error.to_string());
        self.given_up.clone().or(failing)
    }
}

/// Gives the file system the room of a part of a file back. Where that is not possible the file keeps its size until the
/// run is removed.
fn punch_hole(file: &File, from: u64, len: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, from, len);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, from, len);
}

/// The newest of the agent's stderr. It is a help for people, so what cannot be written is dropped.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    old: PathBuf,
    file: File,
    len: u64,
}

impl Tail {
    pub(super) fn create(folder: &Folder) -> io::Result<Self> {
        let path = folder.file("err");
        let file = private().write(true).create(true).truncate(true).open(&path)?;
        Ok(Self { path, old: folder.file("err.old"), file, len: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.len >= TAIL_HALF {
            let turned = std::fs::rename(&self.path, &self.old)
                .and_then(|()| private().write(true).create(true).truncate(true).open(&self.path));
            match turned {
                Ok(file) => self.file = file,
                // Without a new file the old one must still not grow.
                Err(_) => return,
            }
            self.len = 0;
        }
        if self.file.write_all(bytes).is_ok() {
            self.len += bytes.len() as u64;
        }
    }
}
