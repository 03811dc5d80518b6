//! Processes that tests leave behind. Agents and their supervisors outlive a daemon that is killed, so a test that does
//! not end them leaves them running for good.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

/// In the environment of the tests and of everything they start; its value is this process.
const MARK: &str = "LY_TEST_RUN";
/// How often what is left is looked at before it counts as left behind, and the pause between.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn mark(command: &mut Command) {
    command.env(MARK, std::process::id().to_string());
}

/// An error when something lives that the marked command started.
pub(super) fn check() -> Result<()> {
    let mut left = living();
    for _ in 0..LOOKS {
        if left.is_empty() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
        left = living();
    }
    let lines: Vec<String> = left.iter().map(|(pid, line)| format!("{pid} {line}")).collect();
    bail!("the tests left {} processes behind:\n{}", lines.len(), lines.join("\n"))
}

/// The living processes that bear the mark, by number and command line.
fn living() -> Vec<(u32, String)> {
    let mark = format!("{MARK}={}", std::process::id());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Of a zombie, and of a process of another user, nothing can be read.
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|held| held == mark.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_marked_command_left_is_found() {
        let mut command = Command::new("sleep");
        mark(command.arg("600"));
        let mut child = command.spawn().unwrap();
        // The environment of a program shows a moment after its start.
        let mut found = living();
        while found.is_empty() && child.try_wait().unwrap().is_none() {
            found = living();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [(child.id(), "sleep 600".to_owned())]);
        assert!(check().is_ok());
    }
}
