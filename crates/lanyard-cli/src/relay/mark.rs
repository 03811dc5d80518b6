//! A mark in a private folder of this user: the calls of this server are relayed by `lanyard mcp wrap`, so that the
//! agent's hook does not count them a second time. The mark is a lock, so it goes with the process that holds it, however
//! that ends. Not in the data folder: neither process may know where that is.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the folder is. Always here: a wrapper and a hook need not have the same environment.
const SHARED: &str = "/tmp";

/// Held while a server is wrapped.
#[derive(Debug)]
pub(crate) struct Mark {
    path: PathBuf,
    /// Dropping it gives the lock back.
    _file: File,
}

impl Mark {
    /// Nothing when it cannot be made: then calls may be counted twice, and nothing else is wrong.
    pub(crate) fn set(session: &str, server: &str) -> Option<Self> {
        Self::set_in(&folder()?, session, server)
    }

    fn set_in(folder: &Path, session: &str, server: &str) -> Option<Self> {
        let path = path(folder, session, server);
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
pub(crate) fn is_marked(session: &str, server: &str) -> bool {
    folder().is_some_and(|folder| is_marked_in(&folder, session, server))
}

fn is_marked_in(folder: &Path, session: &str, server: &str) -> bool {
    let Ok(file) = File::open(path(folder, session, server)) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// This user's own folder; `None` when another user made it, or could change its contents.
fn folder() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let folder = Path::new(SHARED).join(format!("lanyard-{user}"));
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    let held = std::fs::symlink_metadata(&folder).ok()?;
    (held.is_dir() && held.uid() == user && held.mode() & 0o777 == 0o700).then_some(folder)
}

fn path(folder: &Path, session: &str, server: &str) -> PathBuf {
    // Hashed, since a server and a session may be called anything.
    let name = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..16].to_owned();
    folder.join("wraps").join(name(session)).join(name(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_while_it_is_held() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_marked_in(data.path(), "sess_1", "files"));
        let mark = Mark::set_in(data.path(), "sess_1", "files").unwrap();
        assert!(is_marked_in(data.path(), "sess_1", "files"));
        assert!(!is_marked_in(data.path(), "sess_2", "files"));
        assert!(!is_marked_in(data.path(), "sess_1", "../files"));
        drop(mark);
        assert!(!is_marked_in(data.path(), "sess_1", "files"));
        assert_eq!(std::fs::read_dir(data.path().join("wraps")).unwrap().count(), 0);
    }
}
