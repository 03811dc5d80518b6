//! Processes of a run: their identity, their scope, and how they are ended.
//!
//! A pid alone is never trusted: numbers are used again. A process is its pid and its start time, and across restarts
//! of the machine also the boot it was started in. The process table is the system's: `/proc` on Linux, `ps` elsewhere.

mod ending;
#[cfg(target_os = "linux")]
mod proc_table;
// Tested on Linux too, where `ps` prints the same columns.
#[cfg(any(test, not(target_os = "linux")))]
mod ps_table;
mod role;
mod scope;
mod work;

use std::io;

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub(crate) use ending::RunEnding;
pub use ending::end_and_wait;
#[cfg(target_os = "linux")]
use proc_table as table;
#[cfg(not(target_os = "linux"))]
use ps_table as table;
pub(crate) use scope::RunScope;
pub(crate) use table::{adopt_orphans, look, now_ticks, send};
pub(crate) use work::end_work;
pub use work::{EndedWork, Whose, Work};

/// Ticks per second of a process's start time, on every system.
const TICKS_PER_S: u64 = 100;

/// One process, and never another that got its number later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// Clock ticks between boot and its start.
    pub start: u64,
    pub boot: String,
}

impl Identity {
    /// The process that has this number now; none if nobody has it.
    pub fn of(pid: u32) -> io::Result<Option<Self>> {
        let boot = boot_id()?;
        Ok(look(pid).map(|process| Self { pid, start: process.start, boot }))
    }

    /// Whether it still runs. A zombie does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
            && look(self.pid).is_some_and(|process| process.start == self.start && process.living)
    }
}

/// A process that was told to end and is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    pub pid: u32,
    /// The name of its command, as the kernel keeps it: at most 15 bytes.
    pub name: String,
    /// The last signal it was sent.
    pub by: EndedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The hangup of its terminal.
    Hangup,
    Term,
    Kill,
}

impl EndedBy {
    fn signal(self) -> Signal {
        match self {
            Self::Hangup => Signal::HUP,
            Self::Term => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// Id of the current boot of the machine.
pub fn boot_id() -> io::Result<String> {
    table::boot_id()
}

/// One line of the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) name: String,
    pub(crate) living: bool,
}

/// Milliseconds of a clock nobody sets.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * 1_000 + part(now.tv_nsec) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_starts_at_the_ticks_of_its_moment() {
        let before = now_ticks();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let start = look(child.id()).unwrap().start;
        let after = now_ticks();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((before..=after).contains(&start), "{before} {start} {after}");
    }

    #[test]
    fn this_process_is_alive_and_its_number_with_another_start_is_not() {
        let mut me = Identity::of(std::process::id()).unwrap().unwrap();
        assert!(me.is_alive());
        me.start += 1;
        assert!(!me.is_alive());
        me.start -= 1;
        me.boot = "another".into();
        assert!(!me.is_alive());
    }
}
