//! Errors of storage, sorted by the caller's reaction.

use std::path::PathBuf;

/// A failed append: nothing of the batch was acknowledged. Until `Journal::recover` succeeds, every further append
/// fails at once.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The disk is full, read-only, failing, or an fsync failed. Not retried: the caller stops acknowledging.
    #[error("the journal could not be written")]
    Unavailable(#[source] StoreError),
    /// The batch contradicts the journal: a sequence number that is not the next one, or an alias already taken.
    /// A defect in the caller, never a fault of the disk; the journal stays usable.
    #[error("the batch does not follow the journal: {0}")]
    Contradiction(String),
}

/// A read or a maintenance step failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database answered with an error")]
    Sqlite(#[from] rusqlite::Error),
    #[error("file operation on {path} failed")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0}")]
    Damaged(String),
    /// No write was attempted: an earlier failure has to be recovered from first.
    #[error("the journal does not write since an earlier failure: {0}")]
    Stopped(String),
    /// A file of the open journal is not where it was. Later writes may be lost, so none is acknowledged.
    #[error("{} {loss} while the journal was open ({code})", path.display(), code = loss.code())]
    Lost { path: PathBuf, loss: Loss },
}

/// A change of a file of the open journal from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    Removed,
    Replaced,
    Cut,
}

impl Loss {
    /// A name for programs that does not change. Each occurs in no other message.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Removed => "journal_removed",
            Self::Replaced => "journal_replaced",
            Self::Cut => "journal_cut",
        }
    }

    /// The loss a message of the journal tells of.
    #[must_use]
    pub fn in_message(message: &str) -> Option<Self> {
        [Self::Removed, Self::Replaced, Self::Cut].into_iter().find(|loss| message.contains(loss.code()))
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Removed => "was removed",
            Self::Replaced => "was replaced by another file",
            Self::Cut => "was cut short",
        })
    }
}

/// The journal could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the journal was written by a newer Lanyard (schema {found}; this one knows {known})")]
    Newer { found: u32, known: u32 },
    #[error("{path} is not a Lanyard journal")]
    Foreign { path: PathBuf },
    #[error("the journal at {path} is in use by another process")]
    InUse { path: PathBuf },
    #[error("the journal at {path} is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("the journal could not be opened")]
    Store(#[from] StoreError),
}
