//! Starting a daemon that outlives this command.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lanyard_api::home::{Home, HomeError};
use lanyard_api::names::{DASHBOARD_DIR, MARKER};
use lanyard_client::{ANSWER_TIMEOUT, DaemonAddress};

use crate::context::Context;
use crate::failure::{Failure, chain};

const POLL: Duration = Duration::from_millis(20);
/// 30 s: reading back a large journal after a crash takes a while, a disk that hangs takes for ever.
const POLLS_MAX: u32 = 1_500;
/// 10 s, as long as `lanyard down` waits for the end.
const SETTLE_POLLS_MAX: u32 = 500;
/// A log longer than this is put aside when the next daemon starts.
const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A daemon that answers.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    pub(crate) pid: u32,
    pub(crate) address: String,
    pub(crate) version: String,
}

impl Daemon {
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The daemon of this data folder, if one answers. One that has just started listens first and answers when it has
/// settled what a crash left.
pub(crate) async fn answering(context: &Context) -> Result<Option<Daemon>, Failure> {
    let Some(mut connection) = DaemonAddress::of(&context.home).connect().await? else { return Ok(None) };
    let status = connection.status(ANSWER_TIMEOUT).await?;
    Ok(status.map(|status| Daemon { pid: status.pid, address: status.address, version: status.version }))
}

/// Who started the daemon there is in the end.
#[derive(Debug)]
pub(crate) enum Launched {
    Here(Daemon),
    /// By another command that was quicker.
    Elsewhere(Daemon),
}

/// Starts a daemon in the background and waits until it answers. `memory` is the tags and the allow-list sessions begin with.
pub(crate) async fn detached(
    context: &Context,
    listen: Option<SocketAddr>,
    memory: (&[String], &[String]),
) -> Result<Launched, Failure> {
    let home = Home::create(&context.home.dir).map_err(|error| {
        Failure::local("data_dir_unusable", chain(&error), "name another one with --data-dir")
    })?;
    let starting = take_turn(&home).await?;
    if let Some(daemon) = settled(context).await? {
        return Ok(Launched::Elsewhere(daemon));
    }
    let (log, seen) = open_log(&home.log())?;
    let mut child = spawn(context, listen, memory, &log)?;
    for _ in 0..POLLS_MAX {
        if let Some(daemon) = answering(context).await? {
            drop(starting);
            return Ok(Launched::Here(daemon));
        }
        if let Ok(Some(_)) = child.try_wait() {
            return Err(died(&home.log(), seen));
        }
        tokio::time::sleep(POLL).await;
    }
    let title = format!("the daemon (pid {}) has not answered for 30 s", child.id());
    Err(Failure::unreachable("daemon_silent", title, format!("look at {}", home.log().display())))
}

/// Waits until a daemon answers or the data folder is free. The command before may have started a daemon; one
/// that is starting by itself will answer; one that was killed this very moment holds the folder a little longer.
async fn settled(context: &Context) -> Result<Option<Daemon>, Failure> {
    for _ in 0..SETTLE_POLLS_MAX {
        if let Some(daemon) = answering(context).await? {
            return Ok(Some(daemon));
        }
        if is_free(&context.home)? {
            return Ok(None);
        }
        tokio::time::sleep(POLL).await;
    }
    let title = "a daemon holds the data folder and does not answer";
    Err(Failure::unreachable("daemon_silent", title, "run `lanyard doctor`"))
}

/// Whether no process holds the data folder.
pub(crate) fn is_free(home: &Home) -> Result<bool, Failure> {
    if !home.lock().exists() {
        return Ok(true);
    }
    match home.claim() {
        Ok(_) => Ok(true),
        Err(HomeError::Taken(_)) => Ok(false),
        Err(error @ HomeError::Io { .. }) => {
            Err(Failure::local("data_dir_unusable", chain(&error), "run `lanyard doctor`"))
        }
    }
}

/// Commands that find no daemon at the same time take turns, so that one is started and not several.
async fn take_turn(home: &Home) -> Result<File, Failure> {
    let path = home.dir.join("start.lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| unusable(&path, &error))?;
    for _ in 0..POLLS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
            Err(std::fs::TryLockError::Error(error)) => return Err(unusable(&path, &error)),
        }
    }
    let title = "another command has been starting a daemon for 30 s";
    Err(Failure::unreachable("daemon_silent", title, format!("look at {}", home.log().display())))
}

/// The log to append to, and how long it was.
fn open_log(path: &Path) -> Result<(File, u64), Failure> {
    if path.metadata().is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
        std::fs::rename(path, path.with_extension("log.old")).map_err(|error| unusable(path, &error))?;
    }
    let open = || {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    };
    open().map_err(|error| unusable(path, &error))
}

fn spawn(
    context: &Context,
    listen: Option<SocketAddr>,
    (tags, allow): (&[String], &[String]),
    log: &File,
) -> Result<Child, Failure> {
    let start = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--data-dir").arg(&context.home.dir).arg("--config").arg(&context.config_path);
        command.args(["--quiet", "up", "--in-background"]);
        if let Some(listen) = listen {
            command.arg("--listen").arg(listen.to_string());
        }
        for (flag, values) in [("--memory-tag", tags), ("--memory-allow", allow)] {
            for value in values {
                command.arg(flag).arg(value);
            }
        }
        // Started from inside an agent's run it is a child of no run: what ends that run must not end it.
        command.env(MARKER, "");
        // A relative one is meant from here.
        if let Some(folder) = std::env::var_os(DASHBOARD_DIR).filter(|folder| !folder.is_empty()) {
            command.env(DASHBOARD_DIR, std::path::absolute(folder)?);
        }
        // In its own folder it keeps no other one busy, such as a disk that is to be unmounted.
        command.current_dir(&context.home.dir);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).spawn()
    };
    start().map_err(|error: std::io::Error| {
        Failure::local(
            "daemon_start_failed",
            format!("cannot start a daemon: {error}"),
            "run `lanyard doctor`",
        )
    })
}

/// What the daemon wrote before it died says why.
fn died(log: &Path, seen: u64) -> Failure {
    const KEPT_BYTES: u64 = 4 * 1024;
    let mut said = Vec::new();
    // A log that cannot be read leaves the message without its reason, which is all that can be done.
    if let Ok(mut file) = File::open(log) {
        let end = file.metadata().map_or(seen, |meta| meta.len());
        let from = seen.max(end.saturating_sub(KEPT_BYTES));
        let _ = file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut said));
    }
    let said = String::from_utf8_lossy(&said);
    // The error is what matters; what was logged before it is in the file.
    let reason = said.find("error: ").map_or(said.as_ref(), |at| &said[at..]);
    let title = format!("the daemon did not start\n{}", reason.trim_end());
    Failure::local("daemon_start_failed", title, format!("see all of it in {}", log.display()))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    let title = format!("cannot use {}: {error}", path.display());
    Failure::local("data_dir_unusable", title, "run `lanyard doctor`")
}
