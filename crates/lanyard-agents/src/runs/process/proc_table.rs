//! The process table of Linux: `/proc`, pidfds and a child subreaper.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_child_subreaper};
use rustix::time::{ClockId, clock_gettime};

use super::{Process, TICKS_PER_S};

/// `/proc/PID/stat` is one line of numbers and a name of at most 64 bytes.
const STAT_MAX: u64 = 4 * 1024;
/// A command line is searched no further than this.
const LINE_MAX: u64 = 16 * 1024;
/// An environment longer than this is searched no further. The kernel's own limit for arguments and environment
/// together is 6 MiB where the stack limit was not raised.
const ENVIRON_MAX: u64 = 8 * 1024 * 1024;
/// Environments are read in pieces, since the shim should stay small.
const PIECE: usize = 4 * 1024;
/// The longest value of a variable that is looked for; a longer one is cut.
const VALUE_MAX: usize = 64;

pub(super) fn boot_id() -> io::Result<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

/// None if there is no such process.
pub(crate) fn look(pid: u32) -> Option<Process> {
    let mut line = Vec::with_capacity(512);
    File::open(format!("/proc/{pid}/stat")).ok()?.take(STAT_MAX).read_to_end(&mut line).ok()?;
    parse_stat(pid, &line)
}

/// Every process that can be seen.
pub(super) fn all() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse().ok());
        found.extend(pid.and_then(look));
    }
    Ok(found)
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
    // The handle holds the process that has the number now; the signal goes only to the one that was meant.
    if look(process.pid).is_none_or(|now| now.start != process.start) {
        return Ok(false);
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The present moment, as the start of a process is counted: in clock ticks since boot.
pub(crate) fn now_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(now.tv_sec) * TICKS_PER_S + part(now.tv_nsec) / (1_000_000_000 / TICKS_PER_S)
}

/// Makes this process the parent of every descendant that loses its own.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Pid::from_raw(1)).map_err(io::Error::from)
}

/// Standard input and output of a process, as the kernel names them.
pub(super) fn ends(pid: u32) -> [io::Result<PathBuf>; 2] {
    [0, 1].map(|number| std::fs::read_link(format!("/proc/{pid}/fd/{number}")))
}

pub(super) fn command_line(pid: u32) -> String {
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline"));
    let _ = file.and_then(|file| file.take(LINE_MAX).read_to_end(&mut line));
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The value of a variable in the environment of a process; none if the environment may not be read.
pub(super) fn variable(pid: u32, name: &str) -> Option<String> {
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    String::from_utf8(found(file.take(ENVIRON_MAX), name)?).ok()
}

/// The value of a variable in an environment, which is text parted by zeroes.
fn found(mut environ: impl Read, name: &str) -> Option<Vec<u8>> {
    let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    let mut piece = [0; PIECE];
    let mut entry = Vec::new();
    // Of an entry only as much is kept as could be the variable and its value.
    let most = name.len() + 1 + VALUE_MAX;
    loop {
        let read = environ.read(&mut piece).ok()?;
        for &byte in &piece[..read] {
            match byte {
                0 => match value(&entry) {
                    Some(value) => return Some(value),
                    None => entry.clear(),
                },
                _ if entry.len() <= most => entry.push(byte),
                _ => {}
            }
        }
        if read == 0 {
            return value(&entry);
        }
    }
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
    fn a_variable_is_found_wherever_it_stands() {
        let long = format!("PATH={}\0LANYARD_RUN=run_a\0", "x".repeat(2 * PIECE));
        for (environ, value) in [
            ("LANYARD_RUN=run_a\0A=1\0", Some("run_a")),
            ("A=1\0LANYARD_RUN=run_a", Some("run_a")),
            (long.as_str(), Some("run_a")),
            ("LANYARD_RUN=\0", Some("")),
            ("A=LANYARD_RUN=run_a\0", None),
            ("LANYARD_RUNS=run_a\0", None),
            ("", None),
        ] {
            let expected = value.map(|text| text.as_bytes().to_vec());
            assert_eq!(found(environ.as_bytes(), "LANYARD_RUN"), expected, "{environ:.40}");
        }
    }
}
