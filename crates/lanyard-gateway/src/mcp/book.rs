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
/// The folder of clients that speak for no session.
const NOBODY: &str = "-";

#[derive(Debug, Clone)]
pub(super) struct Book {
    folder: PathBuf,
}

impl Book {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The files of a session have a folder of their own, so that they can go with it.
    fn folder(&self, session: Option<SessionId>) -> PathBuf {
        self.folder.join(session.map_or_else(|| NOBODY.to_owned(), |session| session.to_string()))
    }

    fn path(&self, session: Option<SessionId>, server: &str, name: &str) -> PathBuf {
        self.folder(session).join(file_name(session, server, name))
    }

    /// Where it was before sessions had folders.
    fn old_path(&self, session: Option<SessionId>, server: &str, name: &str) -> PathBuf {
        self.folder.join(file_name(session, server, name))
    }

    /// Removes what is kept of a session's clients.
    pub(super) async fn forget_session(&self, session: SessionId) {
        let folder = self.folder(Some(session));
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    }

    /// The sessions whose clients have introduced themselves.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Files in a session's folder, and their bytes.
    pub(super) fn size(&self, session: SessionId) -> (u64, u64) {
        let Ok(entries) = std::fs::read_dir(self.folder(Some(session))) else { return (0, 0) };
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len());
        sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size))
    }

    /// Removes a session's folder.
    pub(super) fn remove(&self, session: SessionId) -> bool {
        std::fs::remove_dir_all(self.folder(Some(session))).is_ok()
    }
}

fn file_name(session: Option<SessionId>, server: &str, name: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(session.map_or_else(String::new, |session| session.to_string()).as_bytes());
    hasher.update(b"\0").update(server.as_bytes()).update(b"\0").update(name.as_bytes());
    format!("{}.json", &hasher.finalize().to_hex()[..40])
}

impl Book {
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
        let (path, old) = (self.path(session, server, name), self.old_path(session, server, name));
        let read = move || std::fs::read_to_string(path).or_else(|_| std::fs::read_to_string(old)).ok();
        tokio::task::spawn_blocking(read).await.ok()?
    }

    pub(super) async fn forget(&self, session: Option<SessionId>, server: &str, name: &str) {
        let (path, old) = (self.path(session, server, name), self.old_path(session, server, name));
        let remove = move || [path, old].map(|path| std::fs::remove_file(path).is_ok());
        let _ = tokio::task::spawn_blocking(remove).await;
    }

    /// Removes what nobody came back to.
    pub(super) fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let inside = std::fs::read_dir(entry.path()).into_iter().flatten();
            inside.flatten().for_each(|entry| Self::sweep_one(&entry));
            Self::sweep_one(&entry);
        }
    }

    fn sweep_one(entry: &std::fs::DirEntry) {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
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
    let mut make = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut make, 0o700).recursive(true).create(folder)?;
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
