//! Processes that tests leave behind. Agents and their supervisors outlive a daemon that is killed, so a test that does
//! not end them leaves them running for good.
//!
//! Orphans of the tests become children of this process, whatever they did to their environment, group or session: what
//! is below it when the tests have ended was left by them.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// How often what is left is looked at before it counts as left behind, and the pause between.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// By which nextest tells a process the test it belongs to.
const TEST: &str = "NEXTEST_TEST_NAME=";

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Left {
    pid: i32,
    parent: i32,
    line: String,
    /// The test that started it, where it or one of its kin says so.
    test: Option<String>,
}

/// Reaps orphans while the tests run: a test that waits for a process to go would wait for a zombie for ever.
#[derive(Debug)]
pub(super) struct Reaper {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A reaper that panicked has reaped less; the check that follows says what is left.
            thread.join().ok();
        }
    }
}

/// From here on orphans below this process are its own.
pub(super) fn adopt() -> Result<Reaper> {
    set_child_subreaper(Some(getpid())).context("cannot take the orphans of tests over")?;
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let thread = thread::spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            reap();
            thread::sleep(PAUSE / 10);
        }
    });
    Ok(Reaper { over, thread: Some(thread) })
}

/// Takes orphans away that have ended. The runner of the tests, a `cargo`, is waited for by whoever started it.
fn reap() {
    let this = getpid().as_raw_nonzero().get();
    let ended =
        stats().filter(|stat| stat.parent == this && stat.state == 'Z' && !stat.name.starts_with("cargo"));
    for pid in ended.filter_map(|stat| Pid::from_raw(stat.pid)) {
        // It may have been taken away meanwhile.
        waitpid(Some(pid), WaitOptions::NOHANG).ok();
    }
}

/// An error when something lives that a command run since [`adopt`] started. No command may run meanwhile.
pub(super) fn check() -> Result<()> {
    let mut left = living();
    for _ in 0..LOOKS {
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
        left = living();
    }
    let lines: Vec<String> = left
        .iter()
        .map(|one| format!("{} {} (test: {})", one.pid, one.line, one.test.as_deref().unwrap_or("unknown")))
        .collect();
    bail!("the tests left {} processes behind:\n{}", lines.len(), lines.join("\n"))
}

/// Everything below this process that lives.
fn living() -> Vec<Left> {
    let all: HashMap<i32, Left> = processes().map(|one| (one.pid, one)).collect();
    let mut below = vec![getpid().as_raw_nonzero().get()];
    let mut found: Vec<Left> = Vec::new();
    while let Some(parent) = below.pop() {
        for one in all.values().filter(|one| one.parent == parent) {
            below.push(one.pid);
            found.push(one.clone());
        }
    }
    found.sort_by_key(|one| one.pid);
    named_by_kin(&mut found);
    found
}

/// A process whose environment was cleared is of the same test as its parent or its child.
fn named_by_kin(found: &mut [Left]) {
    for _ in 0..found.len() {
        let named: HashMap<i32, String> =
            found.iter().filter_map(|one| Some((one.pid, one.test.clone()?))).collect();
        let parents: HashMap<i32, String> =
            found.iter().filter_map(|one| Some((one.parent, one.test.clone()?))).collect();
        for one in found.iter_mut().filter(|one| one.test.is_none()) {
            one.test = named.get(&one.parent).or_else(|| parents.get(&one.pid)).cloned();
        }
    }
}

fn processes() -> impl Iterator<Item = Left> {
    stats().filter(|stat| !matches!(stat.state, 'Z' | 'X')).map(|stat| {
        let content = |name: &str| {
            let bytes = fs::read(format!("/proc/{}/{name}", stat.pid)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let test = content("environ").split('\0').find_map(|held| held.strip_prefix(TEST).map(str::to_owned));
        let line = content("cmdline").replace('\0', " ").trim_end().to_owned();
        Left { pid: stat.pid, parent: stat.parent, line, test }
    })
}

/// What the kernel says of a process in one line.
#[derive(Debug)]
struct Stat {
    pid: i32,
    name: String,
    state: char,
    parent: i32,
}

fn stats() -> impl Iterator<Item = Stat> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold spaces and parentheses; the last one closes it.
        let (before, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ');
        let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
        let name = before.split_once('(')?.1.to_owned();
        Some(Stat { pid, name, state, parent })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    /// What a cleared environment, a session of its own and a parent that has ended do not hide.
    #[test]
    fn an_orphan_without_an_environment_is_found_and_named_by_its_child() {
        let _reaper = adopt().unwrap();
        let script =
            "env -i setsid sh -c 'NEXTEST_TEST_NAME=the-one sleep 601; :' > /dev/null 2>&1 & echo $!";
        let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        shell.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let first: i32 = said.trim().parse().unwrap();
        // The reaper may have waited for the shell first: it is no `cargo`. What it started may still be on its way.
        shell.wait().ok();
        let mut found = Vec::new();
        while !found.iter().any(|one: &Left| one.line == "sleep 601" && one.test.is_some()) {
            found = living();
        }
        let of = |pid: i32| found.iter().find(|one| one.pid == pid);
        assert_eq!(of(first).and_then(|one| one.test.as_deref()), Some("the-one"), "{found:#?}");
        let is_its = |one: &Left| one.test.as_deref() == Some("the-one");
        for one in found.iter().filter(|one| is_its(one)) {
            let _ = kill_process(Pid::from_raw(one.pid).unwrap(), Signal::KILL);
        }
        while living().iter().any(is_its) {}
    }
}
