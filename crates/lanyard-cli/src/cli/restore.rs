//! `lanyard restore`: put a backup in the place of the journal.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lanyard_api::home::{Home, HomeError};
use lanyard_core::journal::Report;

use super::ask::{agreed, can_ask};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::host::DaemonHost;
use crate::render::text::count;

const EXAMPLES: &str = "\
The daemon must not run: end it with `lanyard down`. The file is checked before anything is changed. The journal that is
there is kept beside the new one, under the name the command prints; remove it yourself when you no longer need it.
Sessions begun after the backup are not in it; agents that still run for them are ended at the next start.

Examples:
  lanyard down && lanyard restore ~/backups/lanyard-2026-11-17.db
  lanyard restore rescue.db --yes --json";

/// Kept journals that may lie beside each other.
const KEPT_MAX: u32 = 10_000;

/// Replace the journal by a backup
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, serde::Serialize)]
struct RestoredJournal {
    journal: PathBuf,
    /// Where the journal went that was there before.
    kept: Option<PathBuf>,
    sessions: u64,
    events: u64,
}

impl Restore {
    pub(super) fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        if !self.yes && !can_ask() {
            return Err(Failure::usage("there is no terminal to ask on", "say --yes if you are sure"));
        }
        let report = verified(host, &self.file)?;
        let home = Home::create(&context.home.dir).map_err(|error| unusable(&error))?;
        // Held until the end: no daemon starts meanwhile.
        let _claim = home.claim().map_err(|error| match error {
            HomeError::Taken(_) => Failure::local(
                "daemon_running",
                "a daemon uses this data folder",
                "end it with `lanyard down`, then restore",
            ),
            error @ HomeError::Io { .. } => unusable(&error),
        })?;
        let journal = home.journal();
        if !self.yes && !agreed(context, &question(&self.file, &report, &journal))? {
            context.out.note("nothing was changed");
            return Ok(());
        }
        let take =
            |fresh: &Path| (host.take_attachments)(fresh, &home.attachments()).map_err(io::Error::other);
        let kept = replace(&self.file, &journal, take).map_err(|(what, error)| {
            Failure::local(
                "restore_failed",
                format!("{what}: {error}"),
                "check the data folder's disk and rights",
            )
        })?;
        let Report { sessions, events, .. } = report;
        let restored = RestoredJournal { journal, kept, sessions, events };
        if context.out.is_json() {
            return context.out.json(&restored);
        }
        if let Some(kept) = &restored.kept {
            context.out.note(&format!("the journal that was there is kept as {}", kept.display()));
        }
        let (sessions, events) = (count(sessions, "session"), count(events, "event"));
        context.out.data(&format!("restored {sessions}, {events}; start with `lanyard up --detach`"))
    }
}

fn unusable(error: &HomeError) -> Failure {
    Failure::local("data_dir_unusable", chain(error), "name another one with --data-dir")
}

/// A backup that is not whole is not put in anything's place.
fn verified(host: &DaemonHost, file: &Path) -> Result<Report, Failure> {
    let refuse = |what: String| {
        Failure::local("backup_unusable", what, "name a file that `lanyard backup` has written")
    };
    let report = (host.verify_backup)(file).map_err(refuse)?;
    match report.structure.first().or(report.damage.first().map(|damage| &damage.what)) {
        Some(what) => Err(refuse(format!("{} is damaged: {what}", file.display()))),
        None => Ok(report),
    }
}

fn question(file: &Path, report: &Report, journal: &Path) -> String {
    let what = format!("{}, {}", count(report.sessions, "session"), count(report.events, "event"));
    let instead = if journal.exists() { "replace the journal by" } else { "restore" };
    format!("{instead} {} ({what})?", file.display())
}

/// Copies the backup beside the journal, takes the attachments out of the copy, moves the journal away, and the copy into
/// its place. Whatever is interrupted, one
/// of the two is whole and has a name.
fn replace(
    file: &Path,
    journal: &Path,
    take_attachments: impl FnOnce(&Path) -> io::Result<u64>,
) -> Result<Option<PathBuf>, (String, io::Error)> {
    let at = |what: &str, path: &Path| {
        let what = format!("cannot {what} {}", path.display());
        move |error: io::Error| (what, error)
    };
    let fresh = with_suffix(journal, ".restoring");
    let copy = || -> io::Result<()> {
        let _ = std::fs::remove_file(&fresh);
        let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        io::copy(&mut File::open(file)?, &mut to)?;
        to.sync_all()
    };
    copy().map_err(at("write", &fresh))?;
    // Before its log is in place: what that refers to is there by then.
    take_attachments(&fresh).map_err(at("take the attachments out of", &fresh))?;
    let kept = journal.exists().then(|| free_name(journal));
    if let Some(kept) = &kept {
        // The write-ahead log first: without it the journal would be taken for whole.
        for suffix in ["-wal", ""] {
            let (from, to) = (with_suffix(journal, suffix), with_suffix(kept, suffix));
            match std::fs::rename(&from, &to) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(at("move", &from)(error)),
            }
        }
    }
    for leftover in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(with_suffix(journal, leftover));
    }
    std::fs::rename(&fresh, journal).map_err(at("move", &fresh))?;
    let folder = journal.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(at("sync", folder))?;
    Ok(kept)
}

fn free_name(journal: &Path) -> PathBuf {
    let names = (1..KEPT_MAX).map(|number| with_suffix(journal, &format!(".before-restore-{number}")));
    let mut names = names.filter(|name| name.symlink_metadata().is_err());
    names.next().unwrap_or_else(|| with_suffix(journal, ".before-restore"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FND-K10.
    #[test]
    fn fnd_k10_what_was_there_is_kept_under_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, file) = (folder.path().join("journal.db"), folder.path().join("copy"));
        std::fs::write(&file, "new").unwrap();
        assert_eq!(replace(&file, &journal, |_| Ok(0)).unwrap(), None);
        assert_eq!(std::fs::read_to_string(&journal).unwrap(), "new");
        std::fs::write(&journal, "first").unwrap();
        std::fs::write(with_suffix(&journal, "-wal"), "its log").unwrap();
        let first = replace(&file, &journal, |_| Ok(0)).unwrap().unwrap();
        let second = replace(&file, &journal, |_| Ok(0)).unwrap().unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read_to_string(&first).unwrap(), "first");
        assert_eq!(std::fs::read_to_string(with_suffix(&first, "-wal")).unwrap(), "its log");
        assert!(!with_suffix(&journal, "-wal").exists());
    }
}
