//! Where a daemon keeps its things, and that only one does so at a time.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_core::Timestamp;
use serde::{Deserialize, Serialize};

/// A daemon that was killed while it started a program leaves that program with its lock until it has begun. So often, and
/// so long between two looks, is waited for that.
const RELEASE_LOOKS: u32 = 200;
const RELEASE_PAUSE: Duration = Duration::from_millis(10);

/// A data folder's files.
#[derive(Debug, Clone)]
pub struct Home {
    pub dir: PathBuf,
}

/// What a running daemon says of itself in its data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub pid: u32,
    pub address: SocketAddr,
    pub socket: PathBuf,
    pub version: String,
    pub started_at: Timestamp,
}

impl Running {
    fn lives(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
    }
}

/// Who a lock file says has it.
fn named(file: &mut File) -> Option<Running> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Held while the daemon lives. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct Claim {
    file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("{}", taken(.0.as_ref()))]
    Taken(Option<Running>),
    #[error("cannot use {path}")]
    Io { path: PathBuf, source: std::io::Error },
}

/// A folder that others can write to is not used: they could put their own token or journal there.
fn check_private(dir: &Path) -> std::io::Result<()> {
    let held = std::fs::metadata(dir)?;
    let what = if held.mode() & 0o022 != 0 {
        format!(
            "others can write to it (mode {:04o}); take that from them with `chmod 700`",
            held.mode() & 0o7777
        )
    } else if held.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user; name one of your own with --data-dir".to_owned()
    } else {
        return Ok(());
    };
    Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, what))
}

fn taken(running: Option<&Running>) -> String {
    match running {
        Some(first) => format!(
            "a daemon already uses this data folder (pid {}, http://{}, started {})",
            first.pid, first.address, first.started_at
        ),
        None => "a daemon already uses this data folder and is just starting".to_owned(),
    }
}

impl Home {
    /// Makes the folder, for its owner only.
    pub fn create(dir: &Path) -> Result<Self, HomeError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|source| HomeError::Io { path: dir.to_owned(), source })?;
        check_private(dir).map_err(|source| HomeError::Io { path: dir.to_owned(), source })?;
        Ok(Self { dir: dir.to_owned() })
    }

    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.db")
    }

    #[must_use]
    pub fn token(&self) -> PathBuf {
        self.dir.join("token")
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.join("lanyard.sock")
    }

    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.dir.join("daemon.log")
    }

    /// Where attachments are, beside the journal.
    #[must_use]
    pub fn attachments(&self) -> PathBuf {
        self.dir.join("attachments")
    }

    /// Where checks of agents have their folders.
    #[must_use]
    pub fn checks(&self) -> PathBuf {
        self.dir.join("checks")
    }

    /// Where the runs of agents have their folders.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.dir.join("runs")
    }

    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.dir.join("daemon.lock")
    }

    /// Takes the folder for this process, or says who has it.
    pub fn claim(&self) -> Result<Claim, HomeError> {
        let path = self.lock();
        let fail = |source| HomeError::Io { path: path.clone(), source };
        let mut file =
            private().read(true).write(true).create(true).truncate(false).open(&path).map_err(fail)?;
        for _ in 0..RELEASE_LOOKS {
            match file.try_lock() {
                Ok(()) => {
                    // What is in it is a dead daemon's; until `announce` nothing can be said about this one.
                    file.set_len(0).map_err(fail)?;
                    return Ok(Claim { file });
                }
                Err(std::fs::TryLockError::WouldBlock)
                    if named(&mut file).is_some_and(|one| !one.lives()) =>
                {
                    std::thread::sleep(RELEASE_PAUSE);
                }
                Err(std::fs::TryLockError::WouldBlock) => break,
                Err(std::fs::TryLockError::Error(source)) => return Err(fail(source)),
            }
        }
        Err(HomeError::Taken(named(&mut file)))
    }

    /// The daemon that holds the folder now, if one does.
    pub fn running(&self) -> Result<Option<Running>, HomeError> {
        if !self.lock().exists() {
            return Ok(None);
        }
        match self.claim() {
            Ok(_) => Ok(None),
            Err(HomeError::Taken(running)) => Ok(running),
            Err(error) => Err(error),
        }
    }

    /// The operator's token; made on first use, readable by its owner only.
    pub fn operator_token(&self, fresh: &str) -> Result<String, HomeError> {
        let path = self.token();
        let fail = |source| HomeError::Io { path: path.clone(), source };
        match std::fs::read_to_string(&path) {
            Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(fail(error)),
            Ok(_) | Err(_) => {
                // Written aside and renamed, so that a crash leaves no half token.
                let aside = self.dir.join("token.new");
                let mut file =
                    private().write(true).create(true).truncate(true).open(&aside).map_err(fail)?;
                writeln!(file, "{fresh}").and_then(|()| file.sync_all()).map_err(fail)?;
                std::fs::rename(&aside, &path).map_err(fail)?;
                Ok(fresh.to_owned())
            }
        }
    }
}

impl Claim {
    /// Tells others where this daemon can be reached.
    pub fn announce(&mut self, running: &Running) -> std::io::Result<()> {
        let text = serde_json::to_string(running).map_err(std::io::Error::other)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn running(home: &Home, pid: u32) -> Running {
        Running {
            pid,
            address: "127.0.0.1:1".parse().unwrap(),
            socket: home.socket(),
            version: "0".into(),
            started_at: Timestamp::from_millis(0),
        }
    }

    /// A program that a killed daemon had just started still has its lock, and lets go of it.
    #[test]
    fn the_lock_of_a_dead_daemon_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(&dir.path().join("data")).unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let mut claim = home.claim().unwrap();
        claim.announce(&running(&home, ended.id())).unwrap();
        let letting_go = std::thread::spawn(move || {
            // sleep: the next claim begins to wait meanwhile, or finds it free.
            std::thread::sleep(RELEASE_PAUSE * 3);
            drop(claim);
        });
        home.claim().unwrap();
        letting_go.join().unwrap();
    }

    /// FND-K13.
    #[test]
    fn fnd_k13_a_folder_that_others_can_write_to_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        for (mode, usable) in [(0o777, false), (0o770, false), (0o702, false), (0o755, true), (0o700, true)] {
            std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Home::create(&data).is_ok(), usable, "{mode:o}");
        }
    }

    #[test]
    fn a_second_claim_names_the_first_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(&dir.path().join("data")).unwrap();
        assert_eq!(home.running().unwrap(), None);
        let mut claim = home.claim().unwrap();
        let running = running(&home, std::process::id());
        claim.announce(&running).unwrap();
        let error = home.claim().unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}, http://127.0.0.1:1", running.pid)), "{error}");
        assert_eq!(home.running().unwrap(), Some(running));
        drop(claim);
        assert_eq!(home.running().unwrap(), None);
    }

    #[test]
    fn the_token_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(&dir.path().join("data")).unwrap();
        assert_eq!(home.operator_token("first").unwrap(), "first");
        assert_eq!(home.operator_token("second").unwrap(), "first");
        assert_eq!(home.token().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(home.dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
