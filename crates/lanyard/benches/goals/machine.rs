//! The machine and the processes on it: what they are, what they use, what they may use.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
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
    let stat =
        fs::read_to_string(format!("/proc/{pid}/stat")).context("cannot read the CPU time of a process")?;
    // The name before the last bracket may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("/proc/PID/stat has no CPU time")?;
    Ok(TICK * (user + system))
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
