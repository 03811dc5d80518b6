//! The config file replaced as a whole: written aside, synced, and renamed, with the mode it had. Changes made from what
//! was read are made under a lock.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::failure::Failure;

/// A new config is for its owner: it may get secrets.
const NEW_FILE_MODE: u32 = 0o600;

/// How long a change waits for another one, and how often it looks.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// The right to read the config and replace it, until it is dropped. The folder is locked, because the file itself is
/// replaced by each change.
#[derive(Debug)]
pub(super) struct ConfigLock {
    _folder: Option<File>,
}

impl ConfigLock {
    pub(super) fn take(path: &Path) -> Result<Self, Failure> {
        Self::take_within(path, LOCK_WAIT)
    }

    fn take_within(path: &Path, wait: Duration) -> Result<Self, Failure> {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        // The write that follows names what is wrong with the folder.
        let Ok(opened) = std::fs::create_dir_all(folder).and_then(|()| File::open(folder)) else {
            return Ok(Self { _folder: None });
        };
        let mut waited = Duration::ZERO;
        loop {
            match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _folder: Some(opened) }),
                Err(Errno::WOULDBLOCK) if waited < wait => std::thread::sleep(LOCK_POLL),
                Err(Errno::WOULDBLOCK) => {
                    let title = format!("another program is changing {}", path.display());
                    return Err(Failure::local("config_busy", title, "nothing was changed; run it again"));
                }
                // Some network file systems lock no folders: the last change wins there.
                Err(_) => return Ok(Self { _folder: None }),
            }
            waited += LOCK_POLL;
        }
    }
}

/// What must not be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Keep {
    Nothing,
    /// A file that is there.
    Existing,
}

/// Writes a config file; answers where it really is, since a link is followed.
pub(in crate::cli) fn write_file(path: &Path, text: &str, keep: Keep) -> Result<PathBuf, Failure> {
    // A link stays one: what it leads to is replaced.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let aside = aside(&path, "new");
    let done = write_aside(&path, &aside, text).and_then(|()| match keep {
        Keep::Nothing => std::fs::rename(&aside, &path),
        // A link to it fails where there is a file, in one step.
        Keep::Existing => std::fs::hard_link(&aside, &path),
    });
    // Gone already after a rename.
    let _ = std::fs::remove_file(&aside);
    done.map(|()| path.clone()).map_err(|error| {
        let shown = path.display();
        if keep == Keep::Existing && error.kind() == ErrorKind::AlreadyExists {
            let advice = "change it with `lanyard config`, or overwrite it with `lanyard init --force`";
            return Failure::local("config_exists", format!("{shown} is there already"), advice);
        }
        let advice = "check its folder, or name another file with --config";
        Failure::local("config_unwritable", format!("cannot write {shown}: {error}"), advice)
    })
}

fn write_aside(path: &Path, aside: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mode = path.metadata().map_or(NEW_FILE_MODE, |found| found.permissions().mode() & 0o777);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(NEW_FILE_MODE).open(aside)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A name beside the file, of this process only.
pub(super) fn aside(path: &Path, kind: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.{kind}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_and_a_link_stay_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.toml"), folder.path().join("config.toml"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_file(&link, "new", Keep::Nothing).unwrap();
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn a_change_waits_for_the_one_before_it_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/config.toml");
        let first = ConfigLock::take(&path).unwrap();
        let Err(Failure::Told { problem, .. }) = ConfigLock::take_within(&path, Duration::ZERO) else {
            panic!("two hold the lock")
        };
        assert_eq!(problem.code, "config_busy");
        drop(first);
        assert!(ConfigLock::take_within(&path, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_file_that_is_there_is_kept_where_that_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/config.toml");
        write_file(&path, "first", Keep::Existing).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, NEW_FILE_MODE);
        assert!(write_file(&path, "second", Keep::Existing).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(folder.path().join("below").read_dir().unwrap().count(), 1);
    }
}
