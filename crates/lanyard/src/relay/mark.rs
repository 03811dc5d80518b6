//! A mark in the data folder: the calls of this server are relayed by `lanyard mcp wrap`, so that the agent's hook does
//! not count them a second time. The mark is a lock, so it goes with the process that holds it, however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Held while a server is wrapped.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    /// Dropping it gives the lock back.
    _file: File,
}

impl Mark {
    /// Nothing when it cannot be made: then calls may be counted twice, and nothing else is wrong.
    pub(crate) fn set(data: &Path, session: &str, server: &str) -> Option<Self> {
        let path = path(data, session, server);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent()?).ok()?;
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).ok()?;
        // Shared: one server may be wrapped twice in one session.
        file.try_lock_shared().ok()?;
        Some(Self { path, _file: file })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        // Only when it is empty.
        let _ = self.path.parent().map(std::fs::remove_dir);
    }
}

/// Whether the calls of this server in this session are relayed by a wrapper that lives.
pub(crate) fn is_marked(data: &Path, session: &str, server: &str) -> bool {
    let Ok(file) = File::open(path(data, session, server)) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

fn path(data: &Path, session: &str, server: &str) -> PathBuf {
    // Hashed, since a server may be called anything.
    let name = blake3::hash(server.as_bytes()).to_hex();
    data.join("wraps").join(session).join(&name[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_while_it_is_held() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_marked(data.path(), "sess_1", "files"));
        let mark = Mark::set(data.path(), "sess_1", "files").unwrap();
        assert!(is_marked(data.path(), "sess_1", "files"));
        assert!(!is_marked(data.path(), "sess_2", "files"));
        assert!(!is_marked(data.path(), "sess_1", "../files"));
        drop(mark);
        assert!(!is_marked(data.path(), "sess_1", "files"));
        assert_eq!(std::fs::read_dir(data.path().join("wraps")).unwrap().count(), 0);
    }
}
