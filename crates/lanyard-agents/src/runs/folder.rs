//! The folder of a run and the small files in it.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lanyard_core::session::WindowSize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::process::Identity;
use super::record::Exit;

/// What is shown of a run's stderr.
const STDERR_TAIL_MAX: u64 = 16 * 1024;
/// Kept free for `exit.json` from the start, so that a full disk does not hide how a run ended. A longer one is
/// written too where there is room.
const EXIT_RESERVED: usize = 16 * 1024;
/// Small files larger than this are not ours.
const JSON_MAX: u64 = 4 * 1024 * 1024;

/// A run found on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRun {
    pub run: String,
    /// What was said about it when it was started; none if that cannot be read.
    pub about: Option<serde_json::Value>,
}

/// `run.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunFile {
    pub(crate) about: serde_json::Value,
    /// The boot it was started in: after another one nothing of it can live.
    pub(crate) boot: String,
    /// The control group of its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<PathBuf>,
}

/// `shim.json`. Who creates it owns the run: a shim that comes after a sweep finds the place taken and goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ShimFile {
    /// None when a sweep came first.
    pub(crate) shim: Option<Identity>,
    pub(crate) agent: Option<Identity>,
}

/// `turn.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnFile {
    pub(crate) turn: String,
    /// Clock ticks between boot and its beginning: what started before is none of its processes.
    pub(crate) since: u64,
}

/// `screen.json`. From here a later daemon makes the screen again, with the output after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenFile {
    /// The place in the output.
    pub at: u64,
    pub size: WindowSize,
    pub title: String,
    /// What makes an empty terminal show this screen.
    pub state: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    /// The folder of `run`, which must be a plain name.
    pub(crate) fn of(root: &Path, run: &str) -> io::Result<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if run.is_empty() || run.len() > 64 || !run.bytes().all(plain) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{run}` is not the id of a run"),
            ));
        }
        Ok(Self { path: root.join(run) })
    }

    /// Makes it, for its owner only, and keeps what is said about the run before anything is started.
    pub(crate) fn create(&self, about: &RunFile) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(&self.path)?;
        write_aside(&self.path, "run.json", about)?.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        match self.path.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn about(&self) -> io::Result<Option<RunFile>> {
        read(&self.file("run.json"))
    }

    /// The control group of the run's processes.
    pub(crate) fn group(&self) -> Option<PathBuf> {
        self.about().ok().flatten().and_then(|file| file.group)
    }

    /// The turn the agent was given last.
    pub(crate) fn turn(&self) -> io::Result<Option<TurnFile>> {
        read(&self.file("turn.json"))
    }

    pub(crate) fn write_turn(&self, turn: &TurnFile) -> io::Result<()> {
        // Not synced: it is about processes, and none outlives the machine.
        write_aside(&self.path, "turn.json", turn).map(drop)
    }

    pub(crate) fn exit(&self) -> io::Result<Option<Exit>> {
        read(&self.file("exit.json"))
    }

    pub(crate) fn shim(&self) -> io::Result<Option<ShimFile>> {
        read(&self.file("shim.json"))
    }

    /// Takes the run for `shim`, or for a sweep. False: somebody has it.
    pub(crate) fn claim(&self, owner: &ShimFile) -> io::Result<bool> {
        let aside = self.file(&format!("shim.json.{}", std::process::id()));
        let mut file = private().write(true).create(true).truncate(true).open(&aside)?;
        file.write_all(&serde_json::to_vec(owner).map_err(io::Error::other)?)?;
        // A link fails where a rename would replace.
        let linked = std::fs::hard_link(&aside, self.file("shim.json"));
        std::fs::remove_file(&aside)?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn update_shim(&self, owner: &ShimFile) -> io::Result<()> {
        // Not synced: after a crash of the machine nobody asks who ran before it.
        write_aside(&self.path, "shim.json", owner).map(drop)
    }

    pub(crate) fn reserve_exit(&self) -> io::Result<()> {
        let mut file = private().write(true).create(true).truncate(true).open(self.file("exit.json.new"))?;
        file.write_all(&vec![b' '; EXIT_RESERVED])
    }

    pub(crate) fn write_exit(&self, exit: &Exit) -> io::Result<()> {
        let bytes = serde_json::to_vec(exit).map_err(io::Error::other)?;
        let aside = self.file("exit.json.new");
        // Written over the reserved bytes, then cut.
        let mut file = private().write(true).create(true).truncate(false).open(&aside)?;
        file.write_all(&bytes)?;
        file.set_len(bytes.len() as u64)?;
        file.sync_all()?;
        std::fs::rename(&aside, self.file("exit.json"))?;
        File::open(&self.path)?.sync_all()
    }

    /// From which place in the output on a terminal's window had which size.
    pub(crate) fn sizes(&self) -> io::Result<Vec<(u64, WindowSize)>> {
        Ok(read(&self.file("sizes.json"))?.unwrap_or_default())
    }

    pub(crate) fn write_sizes(&self, sizes: &VecDeque<(u64, WindowSize)>) -> io::Result<()> {
        // Not synced: no screen outlives the machine.
        write_aside(&self.path, "sizes.json", sizes).map(drop)
    }

    /// The screen at a place in the output.
    pub(crate) fn screen(&self) -> io::Result<Option<ScreenFile>> {
        read(&self.file("screen.json"))
    }

    pub(crate) fn write_screen(&self, screen: &ScreenFile) -> io::Result<()> {
        write_aside(&self.path, "screen.json", screen).map(drop)
    }

    /// How long the spool is.
    pub(crate) fn spooled(&self) -> u64 {
        std::fs::metadata(self.file("out")).map_or(0, |meta| meta.len())
    }

    /// The end of what the agent said on stderr.
    pub(crate) fn stderr_tail(&self) -> String {
        let newest = tail(&self.file("err"), STDERR_TAIL_MAX).unwrap_or_default();
        let room = STDERR_TAIL_MAX.saturating_sub(newest.len() as u64);
        let mut bytes = tail(&self.file("err.old"), room).unwrap_or_default();
        bytes.extend_from_slice(&newest);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn tail(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// None if there is no such file.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(JSON_MAX).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} is not readable: {error}", path.display()))
    })
}

/// Written aside and renamed: there is the old one or the new one, never half of one.
fn write_aside(dir: &Path, name: &str, value: &impl Serialize) -> io::Result<File> {
    let aside = dir.join(format!("{name}.new"));
    let mut file = private().write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(&serde_json::to_vec(value).map_err(io::Error::other)?)?;
    std::fs::rename(&aside, dir.join(name))?;
    Ok(file)
}

pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(crate) fn is_disk_full(error: &io::Error) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::ReadOnlyFilesystem];
    full.contains(&error.kind())
}
