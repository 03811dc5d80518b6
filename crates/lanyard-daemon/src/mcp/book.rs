//! What must survive a restart of the daemon: how clients introduced themselves. Small files in the data folder; a lost
//! one costs its client a new greeting.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_core::SessionId;

/// How long an introduction nobody came back to is kept.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// Largest introduction that is kept.
const BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone)]
pub(super) struct Book {
    folder: PathBuf,
}

impl Book {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, session: Option<SessionId>, server: &str, name: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        hasher.update(session.map_or_else(String::new, |session| session.to_string()).as_bytes());
        hasher.update(b"\0").update(server.as_bytes()).update(b"\0").update(name.as_bytes());
        self.folder.join(format!("{}.json", &hasher.finalize().to_hex()[..40]))
    }

    /// Keeps an introduction. What cannot be written is only said: the client would have to greet again.
    pub(super) async fn keep(&self, session: Option<SessionId>, server: &str, name: &str, text: String) {
        if text.len() > BYTES_MAX {
            return;
        }
        let path = self.path(session, server, name);
        let kept = tokio::task::spawn_blocking(move || write(&path, text.as_bytes())).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "an MCP client's introduction could not be kept");
        }
    }

    pub(super) async fn find(&self, session: Option<SessionId>, server: &str, name: &str) -> Option<String> {
        let path = self.path(session, server, name);
        tokio::task::spawn_blocking(move || std::fs::read_to_string(path).ok()).await.ok()?
    }

    pub(super) async fn forget(&self, session: Option<SessionId>, server: &str, name: &str) {
        let path = self.path(session, server, name);
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await;
    }

    /// Removes what nobody came back to.
    pub(super) fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > KEPT_FOR) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn private() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    let mut aside = path.to_owned();
    aside.set_extension(format!("{:08x}", fastrand::u32(..)));
    let mut file = private().write(true).create_new(true).open(&aside)?;
    file.write_all(bytes)?;
    std::fs::rename(&aside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_kept_is_found_by_its_session_server_and_name_alone() {
        let folder = tempfile::tempdir().unwrap();
        let book = Book::new(folder.path().join("mcp"));
        let session = SessionId::from_u128(7);
        book.keep(Some(session), "files", "c1", "{\"a\":1}".to_owned()).await;
        assert_eq!(book.find(Some(session), "files", "c1").await.as_deref(), Some("{\"a\":1}"));
        assert_eq!(book.find(None, "files", "c1").await, None);
        assert_eq!(book.find(Some(SessionId::from_u128(8)), "files", "c1").await, None);
        assert_eq!(book.find(Some(session), "other", "c1").await, None);
        book.keep(Some(session), "files", "c1", "{\"a\":2}".to_owned()).await;
        book.sweep();
        assert_eq!(book.find(Some(session), "files", "c1").await.as_deref(), Some("{\"a\":2}"));
        book.forget(Some(session), "files", "c1").await;
        assert_eq!(book.find(Some(session), "files", "c1").await, None);
    }
}
