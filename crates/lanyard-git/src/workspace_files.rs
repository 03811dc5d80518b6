//! The only way to read or write a file under a workspace, or at any other path that an agent controls.
//!
//! A repository can hold FIFOs, links to devices and files of any size, and a file system can hang. Every operation
//! here therefore opens regular files only, stays below its root, is bounded in size, runs on a blocking thread, and
//! answers within [`FILE_DEADLINE`] even when that thread never comes back. `cargo xtask tidy` refuses other reads.
//!
//! Knows nothing of sessions and agents. The functions of [`beneath`] block: call them from a blocking thread only.

pub mod beneath;
pub mod listing;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Semaphore;

/// How long one operation may take. Local disks answer in milliseconds; a disk that spins up takes seconds.
pub const FILE_DEADLINE: Duration = Duration::from_secs(5);
/// Operations at once. A thread that hangs keeps its place, so that hung file systems cannot use up all threads.
const AT_ONCE_MAX: usize = 32;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE_MAX);

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    // As the system says it: agents look for these words.
    #[error("No such file or directory")]
    Missing,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it is outside {}", root.display())]
    Outside { root: PathBuf },
    #[error("it belongs to git")]
    OfGit,
    #[error("it has more than {max} bytes")]
    TooLarge { max: u64 },
    #[error("the file system did not answer within {} s", FILE_DEADLINE.as_secs())]
    Slow,
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        // Links in a circle, or a name that has become a link since it was checked.
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return Self::NotRegular;
        }
        let missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        if missing { Self::Missing } else { Self::Io(error) }
    }
}

impl From<rustix::io::Errno> for FileError {
    fn from(error: rustix::io::Errno) -> Self {
        io::Error::from(error).into()
    }
}

/// Reads a regular file of at most `max` bytes. Links are followed as long as they stay below `root`.
pub async fn read(root: &Path, path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let (root, path) = (root.to_owned(), path.to_owned());
    off_runtime(move || beneath::read(&root, &path, max)).await
}

/// Writes a regular file below `root`, and the folders above it.
pub async fn write(root: &Path, path: &Path, bytes: Vec<u8>) -> Result<(), FileError> {
    let (root, path) = (root.to_owned(), path.to_owned());
    off_runtime(move || beneath::write(&root, &path, &bytes)).await
}

/// A folder below `root`, without links.
pub async fn folder(root: &Path, path: &Path) -> Result<PathBuf, FileError> {
    let (root, path) = (root.to_owned(), path.to_owned());
    off_runtime(move || beneath::folder(&root, &path)).await
}

/// Whether there is a folder. A file system that does not answer has none.
pub async fn is_folder(path: &Path) -> bool {
    let path = path.to_owned();
    off_runtime(move || Ok(path.is_dir())).await.unwrap_or(false)
}

/// Runs blocking work with the bounds of this module. Work that takes too long goes on without an audience.
pub async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    off_runtime_within(FILE_DEADLINE, &PLACES, work).await
}

async fn off_runtime_within<T: Send + 'static>(
    deadline: Duration,
    places: &'static Semaphore,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let working = async {
        let place = places.acquire().await.map_err(|_| FileError::Slow)?;
        let done = tokio::task::spawn_blocking(move || {
            // Given back when the thread comes back, not when nobody waits for it any more.
            let _place = place;
            work()
        });
        done.await.map_err(|error| FileError::Io(io::Error::other(error)))?
    };
    tokio::time::timeout(deadline, working).await.unwrap_or(Err(FileError::Slow))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn places() -> &'static Semaphore {
        Box::leak(Box::new(Semaphore::new(1)))
    }

    /// FND-K1.
    #[tokio::test]
    async fn fnd_k1_work_that_never_ends_is_answered_and_keeps_its_place() {
        let (free, held) = mpsc::channel::<()>();
        let (places, soon) = (places(), Duration::from_millis(20));
        let stuck = off_runtime_within(soon, places, move || {
            let _ = held.recv();
            Ok(())
        });
        assert!(matches!(stuck.await, Err(FileError::Slow)));
        let second = off_runtime_within(soon, places, || Ok(()));
        assert!(matches!(second.await, Err(FileError::Slow)), "the place is taken");
        drop(free);
        let third = off_runtime_within(FILE_DEADLINE, places, || Ok(7));
        assert_eq!(third.await.unwrap(), 7);
    }
}
