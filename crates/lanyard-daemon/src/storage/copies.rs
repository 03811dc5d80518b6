//! Backups: written aside, checked, then put in their place, so that a file of the wanted name is always a whole one.

use std::path::{Path, PathBuf};

use lanyard_store::{Backups, Report, StoreError};

use crate::api::types::BackupReceipt;
use crate::engine::error_chain;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("the path {} is not absolute", .0.display())]
    Relative(PathBuf),
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the copy could not be made")]
    Copy(#[source] StoreError),
}

/// Blocks for as long as the copying takes. Commits go on meanwhile.
pub(crate) fn back_up<S: Backups + ?Sized>(
    store: &S,
    to: &Path,
    force: bool,
) -> Result<BackupReceipt, BackupError> {
    if !to.is_absolute() {
        return Err(BackupError::Relative(to.to_owned()));
    }
    if !force && to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let aside = partial(to);
    let write = |source| BackupError::Write { path: to.to_owned(), source };
    match std::fs::remove_file(&aside) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(write(source)),
    }
    let report = store.back_up(&aside).map_err(BackupError::Copy)?;
    let placed = if force { std::fs::rename(&aside, to) } else { link(&aside, to) };
    if let Err(source) = placed {
        let _ = std::fs::remove_file(&aside);
        let taken = source.kind() == std::io::ErrorKind::AlreadyExists;
        return Err(if taken { BackupError::Exists(to.to_owned()) } else { write(source) });
    }
    if let Some(folder) = to.parent() {
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(write)?;
    }
    Ok(receipt(to, &report))
}

/// Where a backup is written before it is whole.
pub(crate) fn partial(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// A link fails where a rename would replace.
fn link(aside: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::hard_link(aside, to)?;
    std::fs::remove_file(aside)
}

fn receipt(to: &Path, report: &Report) -> BackupReceipt {
    BackupReceipt {
        path: to.display().to_string(),
        bytes: to.metadata().map_or(0, |meta| meta.len()),
        sessions: report.sessions,
        events: report.events,
        schema: report.schema,
        damage: report.damage.clone(),
        structure: report.structure.clone(),
    }
}

/// Why there is no backup: for whoever makes one without a daemon.
#[derive(Debug, Clone)]
pub struct BackupRefusal {
    pub code: &'static str,
    pub title: String,
    pub advice: &'static str,
}

impl BackupError {
    pub(crate) fn refusal(&self) -> BackupRefusal {
        let (code, advice) = match self {
            Self::Relative(_) => ("backup_path_relative", "name the file by its absolute path"),
            Self::Exists(_) => ("backup_exists", "name another file, or replace it with --force"),
            Self::Write { .. } => {
                ("backup_not_written", "check that the folder exists, is writable and has room")
            }
            Self::Copy(_) => {
                ("backup_failed", "check the room on the disk, and the journal with `lanyard doctor`")
            }
        };
        BackupRefusal { code, title: error_chain(self), advice }
    }
}

/// A backup of a journal that no daemon has open.
pub fn back_up_alone(store: &dyn Backups, to: &Path, force: bool) -> Result<BackupReceipt, BackupRefusal> {
    back_up(store, to, force).map_err(|error| error.refusal())
}
