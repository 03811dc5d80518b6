//! The daemon's side: starting runs, finding those of an earlier daemon, and clearing away what cannot be kept.

mod connection;
mod output;
mod start;
mod talk;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cgroup;
use super::folder::{Folder, KnownRun, ShimFile, TurnFile};
use super::process::{EndedWork, ProcessEnd, Work, boot_id, end_and_wait, end_work, now_ticks};
use super::record::{Exit, How};
use super::relay::read_contacts;
use crate::sandbox::DOOR;
use lanyard_core::session::BoundedResource;

pub use connection::{Link, LinkError, Sent};
pub use output::Output;
pub use start::StartError;

/// All runs of a data folder.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
    /// The program that is started with `shim DIR`.
    program: PathBuf,
}

/// What became of a run an earlier daemon started.
#[derive(Debug)]
pub enum Adopted {
    /// It runs and can be spoken to.
    Live(Link),
    /// It ended, and nothing of it lives.
    Ended(Exit),
    /// Its shim is gone and left no word: it must be swept. With `host_lost` the machine was restarted since.
    Gone { host_lost: bool },
}

impl Runs {
    #[must_use]
    pub fn new(root: PathBuf, program: PathBuf) -> Self {
        Self { root, program: shim_beside(&program).unwrap_or(program) }
    }

    /// The folder of a run that its sandbox sees.
    #[must_use]
    pub fn door(&self, run: &str) -> PathBuf {
        let path = self.root.join(run).join(DOOR);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Every run that has a folder.
    /// A file beside the folders of the runs.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    pub fn list(&self) -> io::Result<Vec<KnownRun>> {
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut known = Vec::new();
        for entry in entries {
            let Some(run) = entry?.file_name().to_str().map(str::to_owned) else { continue };
            let Ok(folder) = Folder::of(&self.root, &run) else { continue };
            if folder.path.is_dir() {
                let about = folder.about().ok().flatten().map(|file| file.about);
                known.push(KnownRun { run, about });
            }
        }
        known.sort_by(|a, b| a.run.cmp(&b.run));
        Ok(known)
    }

    /// Takes a run over from an earlier daemon. An error leaves everything as it is: it may be tried again, or swept.
    pub async fn adopt(&self, run: &str) -> io::Result<Adopted> {
        let folder = self.existing(run)?;
        // A file that cannot be read says as little as one that is not there.
        if let Ok(Some(exit)) = folder.exit() {
            return Ok(Adopted::Ended(exit));
        }
        if was_another_boot(&folder)? {
            return Ok(Adopted::Gone { host_lost: true });
        }
        let Ok(Some(ShimFile { shim: Some(shim), .. })) = folder.shim() else {
            return Ok(Adopted::Gone { host_lost: false });
        };
        match connection::connect(run, &folder, &shim).await {
            Ok(link) => Ok(Adopted::Live(link)),
            Err(_) if !shim.is_alive() => match folder.exit() {
                Ok(Some(exit)) => Ok(Adopted::Ended(exit)),
                Ok(None) | Err(_) => Ok(Adopted::Gone { host_lost: false }),
            },
            Err(error) => Err(error),
        }
    }

    /// Ends whatever is left of a run whose shim is gone or does not answer, and returns when nothing lives. What was
    /// ended is kept in the folder: a later `adopt` says `Ended` with `How::Lost`.
    pub async fn sweep(&self, run: &str, grace: Duration) -> io::Result<Vec<ProcessEnd>> {
        let folder = self.existing(run)?;
        if was_another_boot(&folder)? {
            return Ok(Vec::new());
        }
        // Taken before anything is looked for: a shim that is only just starting finds the place taken and goes.
        let swept = ShimFile { shim: None, agent: None };
        let _: bool = folder.claim(&swept)?;
        let ShimFile { shim, agent } = folder.shim().ok().flatten().unwrap_or(swept);
        let (name, group) = (run.to_owned(), folder.group());
        tokio::task::spawn_blocking(move || {
            let (ended, ended_more) = end_and_wait(&name, shim.as_ref(), agent.as_ref(), group, grace)?;
            // The shim may have had the last word after all, while it was being swept.
            if !matches!(folder.exit(), Ok(Some(_))) {
                let exit = Exit { ended: ended.clone(), ended_more, ..Exit::lost(folder.spooled()) };
                folder.write_exit(&exit)?;
            }
            Ok(ended)
        })
        .await
        .map_err(io::Error::other)?
    }

    /// Remembers for a later daemon which turn the agent is given now. Answers when it began.
    pub fn begin_turn(&self, run: &str, turn: &str) -> io::Result<u64> {
        let since = now_ticks();
        self.existing(run)?.write_turn(&TurnFile { turn: turn.to_owned(), since })?;
        Ok(since)
    }

    /// When the agent was given this turn; nothing when nobody wrote that down.
    #[must_use]
    pub fn turn_began(&self, run: &str, turn: &str) -> Option<u64> {
        let held = self.existing(run).ok()?.turn().ok()??;
        (held.turn == turn).then_some(held.since)
    }

    /// Ends the processes of one turn and leaves the agent alone. Returns when none of them lives, or when they do not
    /// end.
    pub async fn end_work(&self, run: &str, work: Work, grace: Duration) -> io::Result<EndedWork> {
        let folder = self.existing(run)?;
        let ShimFile { shim, agent } = folder.shim()?.unwrap_or(ShimFile { shim: None, agent: None });
        let (name, group) = (run.to_owned(), folder.group());
        let ending = move || end_work(&name, shim.as_ref(), agent.as_ref(), (&work, group), grace);
        tokio::task::spawn_blocking(ending).await.map_err(io::Error::other)?
    }

    /// A run that is over, as if one were still connected to it: its last words can be read.
    pub fn ended(&self, run: &str, exit: &Exit) -> io::Result<Link> {
        let folder = self.existing(run)?;
        match folder.shim()? {
            Some(ShimFile { shim: Some(shim), agent }) => {
                let agent = agent.map_or(0, |agent| agent.pid);
                Ok(Link::to_ended(run, &folder, &shim, agent, exit.consumed))
            }
            Some(ShimFile { shim: None, .. }) | None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// What a run that is over said on stdout, from an offset on.
    pub fn output(&self, run: &str, from: u64) -> io::Result<Output> {
        let folder = self.existing(run)?;
        let consumed = folder.exit().ok().flatten().map_or(0, |exit| exit.consumed);
        Ok(Output::of_ended(folder, from, consumed))
    }

    /// The MCP servers that a run's agent has tried to reach, and whether it did.
    #[must_use]
    pub fn contacts(&self, run: &str) -> BTreeMap<String, bool> {
        self.existing(run).map(|folder| read_contacts(&folder.path)).unwrap_or_default()
    }

    /// The end of what a run said on stderr.
    pub fn stderr_tail(&self, run: &str) -> io::Result<String> {
        Ok(self.existing(run)?.stderr_tail())
    }

    /// Whether a run has ended for certain: it left word, or its shim is dead, or the machine was started anew since.
    #[must_use]
    pub fn is_over(&self, run: &str) -> bool {
        let Ok(folder) = self.existing(run) else { return true };
        if matches!(folder.exit(), Ok(Some(_))) {
            return true;
        }
        match folder.shim().ok().flatten().and_then(|file| file.shim) {
            Some(shim) => !shim.is_alive(),
            None => was_another_boot(&folder).unwrap_or(false),
        }
    }

    /// What the folder of a run takes on disk.
    #[must_use]
    pub fn bytes(&self, run: &str) -> u64 {
        let entries = self.existing(run).and_then(|folder| std::fs::read_dir(folder.path));
        let Ok(entries) = entries else { return 0 };
        let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
        // Blocks, not lengths: what was consumed of a spool is a hole.
        sizes.map(|meta| std::os::unix::fs::MetadataExt::blocks(&meta) * 512).sum()
    }

    /// Removes the folder of a run that is over. Without it nobody could find the run again, so one that lives keeps it.
    pub fn forget(&self, run: &str) -> io::Result<()> {
        let folder = self.existing(run)?;
        let shim = folder.shim().ok().flatten().and_then(|file| file.shim);
        if shim.is_some_and(|shim| shim.is_alive()) && !matches!(folder.exit(), Ok(Some(_))) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{run} is still running")));
        }
        if let Some(group) = folder.group() {
            cgroup::remove(&group);
        }
        std::fs::remove_dir_all(&folder.path)
    }

    /// How often a run has met its bounds, for those that it met.
    #[must_use]
    pub fn bounds_met(&self, run: &str) -> Vec<(BoundedResource, u64)> {
        let group = self.existing(run).ok().and_then(|folder| folder.group());
        group.map(|group| cgroup::bounds_met(&group)).unwrap_or_default()
    }

    fn existing(&self, run: &str) -> io::Result<Folder> {
        let folder = Folder::of(&self.root, run)?;
        if folder.path.is_dir() {
            return Ok(folder);
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder of {run}")))
    }
}

/// The shim as a program of its own, if it was installed beside the daemon's.
fn shim_beside(program: &Path) -> Option<PathBuf> {
    let shim = program.with_file_name("lanyard-shim");
    shim.is_file().then_some(shim)
}

/// A run without a readable `run.json` was never started.
fn was_another_boot(folder: &Folder) -> io::Result<bool> {
    let boot = boot_id()?;
    Ok(folder.about().ok().flatten().is_some_and(|file| file.boot != boot))
}

impl Exit {
    /// Whether somebody must still look for what is left.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.how == How::Lost
    }
}
