//! What can go wrong with storage, sorted by what the caller does about it.

use std::path::PathBuf;

/// Nothing of the batch was acknowledged. Until `Journal::recover` succeeds, every further append fails at once.
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
    /// Nothing was tried: an earlier failure has to be recovered from first.
    #[error("the journal does not write since an earlier failure: {0}")]
    Stopped(String),
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
