//! Processes as `/proc` shows them: who they are, which belong to a run, and telling them to end.
//!
//! A pid alone is never trusted: numbers are used again. A process is its pid and its start time, and across restarts
//! of the machine also the boot it was started in.

mod ending;
mod role;
mod scope;
mod work;

use std::fs::File;
use std::io::{self, Read};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub(crate) use ending::{Ending, end_and_wait};
pub(crate) use scope::Scope;
pub(crate) use work::end_work;
pub use work::{EndedWork, Whose, Work};

/// `/proc/PID/stat` is one line of numbers and a name of at most 64 bytes.
const STAT_MAX: u64 = 4 * 1024;
/// The kernel shows the start of a process in hundredths of a second, whatever its own tick is.
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
    Term,
    Kill,
}

impl EndedBy {
    fn signal(self) -> Signal {
        match self {
            Self::Term => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// Which boot of the machine this is.
pub fn boot_id() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
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

/// None if there is no such process.
pub(crate) fn look(pid: u32) -> Option<Process> {
    let mut line = Vec::with_capacity(512);
    File::open(format!("/proc/{pid}/stat")).ok()?.take(STAT_MAX).read_to_end(&mut line).ok()?;
    parse_stat(pid, &line)
}

fn parse_stat(pid: u32, line: &[u8]) -> Option<Process> {
    // The name may hold spaces and parentheses; the last one closes it.
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field n of proc(5) stands at n - 3, since the state is the third.
    let state = *fields.first()?;
    let threads: u64 = fields.get(17)?.parse().ok()?;
    Some(Process {
        pid,
        start: fields.get(19)?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        // Negative or zero where it lies outside our pid namespace.
        group: fields.get(2)?.parse().unwrap_or(0),
        session: fields.get(3)?.parse().unwrap_or(0),
        name,
        // A process whose first thread has ended looks like a zombie while its other threads go on.
        living: !matches!(state, "Z" | "X" | "x") || threads > 1,
    })
}

/// Sends a signal to exactly this process. False if it is gone.
pub(crate) fn send(process: &Process, signal: Signal) -> io::Result<bool> {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    // The handle holds whoever has the number now. Only if that is still the one we mean is it told.
    if look(process.pid).is_none_or(|now| now.start != process.start) {
        return Ok(false);
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Now, as the start of a process is counted: in clock ticks since boot.
pub(crate) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * TICKS_PER_S + part(now.tv_nsec) / (1_000_000_000 / TICKS_PER_S)
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
    fn a_name_with_parentheses_and_spaces_is_read_whole() {
        let line = b"7 (a) S (b) R 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n";
        let process = parse_stat(7, line).unwrap();
        assert_eq!(process.name, "a) S (b");
        assert_eq!((process.parent, process.group, process.session), (3, 4, 5));
        assert_eq!((process.start, process.living), (4242, true));
    }

    #[test]
    fn a_zombie_with_threads_still_lives() {
        let zombie = |threads: u32| {
            let line = format!("7 (a) Z 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 42 0\n");
            parse_stat(7, line.as_bytes()).unwrap().living
        };
        assert!(!zombie(1));
        assert!(zombie(2));
    }

    #[test]
    fn nonsense_is_no_process() {
        for line in ["", "7", "7 (a", "7 )a(", "7 (a) S", "7 (a) S x y z"] {
            assert_eq!(parse_stat(7, line.as_bytes()), None, "{line}");
        }
    }

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
