//! The machine and the processes on it: what they are, what they use, what they may use.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{Advice, fadvise};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What `/proc` counts CPU time in. Fixed on Linux, whatever the kernel's own tick is.
const TICK: Duration = Duration::from_millis(10);

/// What figures of this run may be compared with.
pub(crate) fn facts() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or_else(|_| "unknown".to_owned(), |n| n.to_string());
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let memory = read("/proc/meminfo").split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    vec![
        ("cores", cores),
        ("processor", model.trim_start_matches(['\t', ' ', ':']).to_owned()),
        ("memory", memory.map_or_else(|| "unknown".to_owned(), |kib| format!("{} GiB", kib >> 20))),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("commit", commit()),
        ("load before", read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()),
    ]
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain"]) {
        Some(changes) if changes.is_empty() => commit,
        Some(_) | None => format!("{commit} with changes"),
    }
}

/// CPU time a process has used, its ended threads included.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let [user, system, _, _] = times(pid)?;
    Ok(TICK * (user + system))
}

/// User and system time of a process, and of the children it has seen end, in ticks.
fn times(pid: u32) -> Result<[u32; 4]> {
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).context("cannot read the CPU time of a process")?;
    // The name before the last bracket may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<u32> = fields.skip(11).map_while(|field| field.parse().ok()).take(4).collect();
    ticks.try_into().ok().context("/proc/PID/stat has no CPU time")
}

/// How much others used the machine meanwhile: what a figure is worth depends on it.
#[derive(Debug)]
pub(crate) struct Others {
    began: Instant,
    busy: u32,
    own: u32,
}

impl Others {
    pub(crate) fn watch() -> Result<Self> {
        let own = times(std::process::id())?.iter().sum();
        Ok(Self { began: Instant::now(), busy: busy()?, own })
    }

    /// Their share of all cores, in percent. The system's own work for us counts as theirs.
    pub(crate) fn percent(&self) -> Result<f64> {
        let own: u32 = times(std::process::id())?.iter().sum();
        let theirs = busy()?.saturating_sub(self.busy).saturating_sub(own.saturating_sub(self.own));
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let all = self.began.elapsed().as_secs_f64() / TICK.as_secs_f64() * cores;
        Ok(f64::from(theirs) / all * 100.0)
    }
}

/// Ticks all cores together were not idle.
fn busy() -> Result<u32> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u32> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    match ticks.as_slice() {
        [user, nice, system, _, _, rest @ ..] => Ok(user + nice + system + rest.iter().take(3).sum::<u32>()),
        _ => bail!("/proc/stat has no CPU times"),
    }
}

/// Memory of a process that is in RAM, in KiB.
pub(crate) fn rss_kib(pid: u32) -> Result<f64> {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).context("cannot read the memory of a process")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib = line.trim().trim_end_matches(" kB").parse::<u32>().context("VmRSS is no number")?;
    Ok(f64::from(kib))
}

/// Lets this process and those it starts open as many files as the system allows.
pub(crate) fn raise_open_files() -> Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("cannot raise the limit of open files")?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// Writes a file's pages out and drops them from memory, so that the next reader has to go to the disk.
pub(crate) fn drop_cached(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}
