//! The processes of a run, found by the marker in their environment.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;

/// What Lanyard puts into the environment of everything it starts for a run.
const MARKER: &str = "LANYARD_RUN";

/// Everything of a run that lives, its supervisor too: its number and its command line.
pub(super) fn marked(run: &str) -> BTreeMap<i32, String> {
    let wanted = format!("{MARKER}={run}");
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = numbers.filter(|pid| {
        // A process that has ended has no environment.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    });
    living.map(|pid| (pid, command_of(pid))).collect()
}

/// The same without what is Lanyard's own: the supervisor and the bridge.
pub(super) fn agents(run: &str) -> BTreeMap<i32, String> {
    let mut all = marked(run);
    let own = [" shim ", "lanyard-shim ", " opencode-bridge "];
    all.retain(|_, command| !own.iter().any(|word| command.contains(word)));
    all
}

/// Living processes whose command line holds these words: their numbers and command lines.
pub(super) fn with(words: &str) -> BTreeMap<i32, String> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.map(|pid| (pid, command_of(pid))).filter(|(_, command)| command.contains(words)).collect()
}

/// SIGKILL to the first process of the agent. Answers what it was.
pub(super) fn kill_main(run: &str) -> String {
    let all = agents(run);
    let (pid, command) = all.iter().find(|(pid, _)| !all.contains_key(&parent_of(**pid))).expect("it runs");
    kill(*pid);
    command.clone()
}

/// Ends what is left of a run.
pub(super) fn end_all(run: &str) {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let left = marked(run);
        if left.is_empty() {
            return;
        }
        for pid in left.keys() {
            kill(*pid);
        }
        // sleep: between two looks at processes that end.
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn command_of(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split(' ').nth(1).and_then(|parent| parent.parse().ok()).unwrap_or(0)
}
