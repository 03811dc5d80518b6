//! Backups: written aside, checked, then put in their place, so that a file of the wanted name is always a whole one.

use std::path::{Path, PathBuf};

use lanyard_api::types::BackupReceipt;
use lanyard_core::journal::Report;
use lanyard_core::refusals;
use lanyard_store::{Attachments, Backups, StoreError};

use crate::refusal::refuses;
use lanyard_base::error_chain;

refusals! {
    /// Why there is no backup.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum BackupError {
        Relative(path: PathBuf) => "backup_path_relative", Invalid
            ("the path {} is not absolute", .0.display()) ("name the file by its absolute path");
        Exists(path: PathBuf) => "backup_exists", Conflict
            ("{} exists already", .0.display()) ("name another file, or replace it with --force");
        Write { path: PathBuf, source: std::io::Error } => "backup_not_written", Conflict
            ("cannot write {}", path.display()) ("check that the folder exists, is writable and has room");
        Copy(#[source] cause: StoreError) => "backup_failed", Unavailable
            ("the copy could not be made")
            ("check the room on the disk, and the journal with `lanyard doctor`");
    }
}
refuses!(BackupError, error_chain);

/// Blocks for as long as the copying takes. Commits go on meanwhile; nothing that was attached is removed.
pub(crate) fn back_up<S: Backups + ?Sized>(
    (store, attachments): (&S, &Attachments),
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
    // Before the copy is begun: what its log refers to is there at its end.
    let _kept = attachments.hold();
    let mut report = store.back_up(&aside).map_err(BackupError::Copy)?;
    let (attached, left_out) = attachments.add_to_copy(&aside).map_err(|error| {
        let _ = std::fs::remove_file(&aside);
        BackupError::Copy(error)
    })?;
    report.structure.extend(left_out);
    let placed = if force { std::fs::rename(&aside, to) } else { link(&aside, to) };
    if let Err(source) = placed {
        let _ = std::fs::remove_file(&aside);
        let taken = source.kind() == std::io::ErrorKind::AlreadyExists;
        return Err(if taken { BackupError::Exists(to.to_owned()) } else { write(source) });
    }
    if let Some(folder) = to.parent() {
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(write)?;
    }
    Ok(receipt(to, &report, attached))
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

fn receipt(to: &Path, report: &Report, attachments: u64) -> BackupReceipt {
    BackupReceipt {
        path: to.display().to_string(),
        bytes: to.metadata().map_or(0, |meta| meta.len()),
        sessions: report.sessions,
        events: report.events,
        attachments,
        schema: report.schema,
        damage: report.damage.clone(),
        structure: report.structure.clone(),
    }
}

/// Why there is no backup: for a backup without a daemon.
#[derive(Debug, Clone)]
pub struct BackupRefusal {
    pub code: &'static str,
    pub title: String,
    pub advice: String,
}

/// A backup of a journal that no daemon has open.
pub fn back_up_alone(
    (store, attachments): (&dyn Backups, &Attachments),
    to: &Path,
    force: bool,
) -> Result<BackupReceipt, BackupRefusal> {
    back_up((store, attachments), to, force).map_err(|error| BackupRefusal {
        code: error.code(),
        title: error_chain(&error),
        advice: error.advice(),
    })
}
