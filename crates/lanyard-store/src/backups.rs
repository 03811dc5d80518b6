//! The contract for copies of a journal.

use std::path::Path;

use lanyard_core::journal::Report;

use crate::error::StoreError;

pub trait Backups: Send + Sync {
    /// Writes all of one moment into a new file that only its owner can read, and checks it by reading it. Writers go on
    /// meanwhile. The file must not exist. On an error there is no file.
    fn back_up(&self, to: &Path) -> Result<Report, StoreError>;

    /// Problems that were found when the journal was opened and did not prevent opening it.
    fn notices(&self) -> Vec<String>;
}
