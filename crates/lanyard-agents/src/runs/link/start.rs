//! Starting a run: its folder first, then the shim, which starts the agent.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lanyard_api::names::MARKER;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::Runs;
use super::connection::{self, Link};
use crate::runs::folder::{Folder, RunFile, is_disk_full};
use crate::runs::process::boot_id;
use crate::runs::record::Spec;
use crate::runs::relay::{Inlet, Order, RELAY_WAIT};
use crate::runs::wire::{Birth, Failed, LINE_MAX};
use crate::runs::withhold;

/// How long a shim may take to start the agent. Programs on slow disks take a while.
const START_MAX: Duration = Duration::from_secs(30);

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the agent's program was not found: {0}")]
    ProgramMissing(String),
    #[error("the agent's program may not be executed: {0}")]
    NotExecutable(String),
    #[error("the agent's folder cannot be used: {0}")]
    CwdUnusable(String),
    #[error("there is no room for the run's files: {0}")]
    NoDisk(String),
    #[error("the agent could not be started: {0}")]
    NotStarted(String),
    #[error("the supervisor of the agent could not be started: {0}")]
    Shim(String),
    #[error("there is a run `{0}` already")]
    Taken(String),
}

impl StartError {
    /// The same in every version.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProgramMissing(_) => "agent_program_missing",
            Self::NotExecutable(_) => "agent_not_executable",
            Self::CwdUnusable(_) => "agent_cwd_unusable",
            Self::NoDisk(_) => "run_no_disk",
            Self::NotStarted(_) => "agent_not_started",
            Self::Shim(_) => "shim_failed",
            Self::Taken(_) => "run_taken",
        }
    }

    fn from_disk(error: &io::Error, path: &Path) -> Self {
        let text = format!("{}: {error}", path.display());
        if is_disk_full(error) { Self::NoDisk(text) } else { Self::Shim(text) }
    }
}

impl From<(Failed, String)> for StartError {
    fn from((what, text): (Failed, String)) -> Self {
        match what {
            Failed::Program => Self::ProgramMissing(text),
            Failed::Permission => Self::NotExecutable(text),
            Failed::Cwd => Self::CwdUnusable(text),
            Failed::Disk => Self::NoDisk(text),
            Failed::Other => Self::NotStarted(text),
            Failed::Shim => Self::Shim(text),
        }
    }
}

impl Runs {
    /// Starts a run. `about` is on disk before anything runs. After an error nothing is left of it, not even the folder.
    pub async fn start(&self, run: &str, about: &serde_json::Value, spec: &Spec) -> Result<Link, StartError> {
        self.start_with(run, about, spec, None).await
    }

    /// The same for an agent whose MCP requests come in through a relay.
    pub async fn start_with(
        &self,
        run: &str,
        about: &serde_json::Value,
        spec: &Spec,
        inlet: Option<Inlet>,
    ) -> Result<Link, StartError> {
        let folder = Folder::of(&self.root, run).map_err(|error| StartError::Shim(error.to_string()))?;
        let (runs, name, making, about) = (self.clone(), run.to_owned(), folder.clone(), about.clone());
        let group = spec.bounds.as_ref().and_then(|bounds| bounds.group.clone());
        tokio::task::spawn_blocking(move || runs.create(&name, &making, about, group))
            .await
            .map_err(|error| StartError::Shim(error.to_string()))??;
        let started = self.start_in(run, &folder, spec, inlet).await;
        if started.is_err() {
            // The shim may be half way: it must be gone before its folder is.
            if self.sweep(run, Duration::ZERO).await.is_ok() {
                let _ = self.forget(run);
            }
        }
        started
    }

    fn create(
        &self,
        run: &str,
        folder: &Folder,
        about: serde_json::Value,
        group: Option<PathBuf>,
    ) -> Result<(), StartError> {
        let fail = |error: &io::Error| StartError::from_disk(error, &folder.path);
        let boot = boot_id().map_err(|error| fail(&error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)
            .map_err(|error| fail(&error))?;
        match folder.create(&RunFile { about, boot, group }) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(StartError::Taken(run.to_owned()))
            }
            Err(error) => {
                let _ = std::fs::remove_dir_all(&folder.path);
                Err(fail(&error))
            }
        }
    }

    async fn start_in(
        &self,
        run: &str,
        folder: &Folder,
        spec: &Spec,
        inlet: Option<Inlet>,
    ) -> Result<Link, StartError> {
        let fail = |error: io::Error| StartError::Shim(format!("{}: {error}", self.program.display()));
        let (relay, listener) = inlet.map(|inlet| (inlet.socket, inlet.listener)).unzip();
        let order = serde_json::to_vec(&Order { spec, relay });
        let order = order.map_err(|error| StartError::Shim(error.to_string()))?;
        let mut child = self.spawn(run, folder, listener).map_err(fail)?;
        let heard = tokio::time::timeout(START_MAX, talk(&mut child, &order)).await;
        reap(child);
        let line = match heard {
            Ok(line) => line.map_err(fail)?,
            Err(_) => return Err(fail(io::ErrorKind::TimedOut.into())),
        };
        let agent = match serde_json::from_slice(&line) {
            Ok(Birth::Started { agent }) => agent,
            Ok(Birth::Failed { what, text }) => return Err((what, text).into()),
            Err(_) => return Err(StartError::Shim("it ended without a word".to_owned())),
        };
        let shim = folder.shim().map_err(fail)?.and_then(|file| file.shim);
        let shim = shim.ok_or_else(|| StartError::Shim("it does not say who it is".to_owned()))?;
        match connection::connect(run, folder, &shim).await {
            Err(_) if !shim.is_alive() => Ok(Link::to_ended(run, folder, &shim, agent, 0)),
            connected => connected.map_err(fail),
        }
    }

    /// The listener of a relay is handed over as the shim's stderr, which has no other use.
    fn spawn(&self, run: &str, folder: &Folder, listener: Option<TcpListener>) -> io::Result<Child> {
        let stderr = listener.map_or_else(Stdio::null, |listener| Stdio::from(OwnedFd::from(listener)));
        let mut command = Command::new(&self.program);
        withhold(command.as_std_mut());
        if let Some(wait) = std::env::var_os(RELAY_WAIT) {
            command.env(RELAY_WAIT, wait);
        }
        command
            .arg("shim")
            .arg(std::path::absolute(&folder.path)?)
            .env(MARKER, run)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
    }
}

/// Tells the shim what to start, and hears what became of it.
async fn talk(child: &mut Child, spec: &[u8]) -> io::Result<Vec<u8>> {
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(spec).await?;
        stdin.shutdown().await?;
    }
    let mut line = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LINE_MAX as u64).read_to_end(&mut line).await?;
    }
    Ok(line)
}

/// The shim is our child until we die: somebody must hear of its end, or it stays as a zombie.
fn reap(mut child: Child) {
    tokio::spawn(async move {
        let _ = child.wait().await;
    });
}
