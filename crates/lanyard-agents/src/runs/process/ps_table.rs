//! The process table of systems without `/proc`: what `ps` prints.
//!
//! Weaker than Linux, and it says so: start times have whole seconds, signals go to a number that is checked just
//! before, environments and open files of other processes cannot be read, and there is no subreaper. A process that
//! leaves its group and session and loses its parent is not found again.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use super::{Process, TICKS_PER_S};

/// One line per process; the name comes last, since it may hold spaces.
const COLUMNS: &str = "pid=,ppid=,pgid=,sess=,stat=,lstart=,ucomm=";

pub(super) fn boot_id() -> io::Result<String> {
    let text = printed(Command::new("/usr/sbin/sysctl").args(["-n", "kern.bootsessionuuid"]))?;
    Ok(text.trim().to_owned())
}

/// None if there is no such process.
pub(crate) fn look(pid: u32) -> Option<Process> {
    let text = printed(ps().args(["-p", &pid.to_string()])).ok()?;
    text.lines().find_map(parse_line)
}

/// Every process that can be seen.
pub(super) fn all() -> io::Result<Vec<Process>> {
    Ok(printed(ps().arg("-A"))?.lines().filter_map(parse_line).collect())
}

/// Times are printed in the time zone and the language of the environment.
fn ps() -> Command {
    let mut ps = Command::new("/bin/ps");
    ps.args(["-o", COLUMNS]).env("TZ", "UTC").env("LC_ALL", "C");
    ps
}

fn printed(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "{} failed: {}",
            command.get_program().display(),
            output.status
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse_line(line: &str) -> Option<Process> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [pid, parent, group, session, state, _weekday, month, day, time, year, name @ ..] = fields.as_slice()
    else {
        return None;
    };
    let start = DateTime::strptime("%b %d %T %Y", format!("{month} {day} {time} {year}")).ok()?;
    let start = start.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    Some(Process {
        pid: pid.parse().ok()?,
        start: u64::try_from(start).ok()? * TICKS_PER_S,
        parent: parent.parse().ok()?,
        group: group.parse().unwrap_or(0),
        // Some systems print an address here. Zero is no session's number.
        session: session.parse().unwrap_or(0),
        name: name.join(" "),
        living: !state.starts_with('Z'),
    })
}

/// Sends a signal to this process. False if it is gone. A number that is given to another process between the check and
/// the signal cannot be told apart here.
pub(crate) fn send(process: &Process, signal: Signal) -> io::Result<bool> {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    if look(process.pid).is_none_or(|now| now.start != process.start) {
        return Ok(false);
    }
    match kill_process(pid, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The present moment, as the start of a process is counted: whole seconds, so that a process of this second is not
/// taken for an older one.
pub(crate) fn now_ticks() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0) * TICKS_PER_S
}

/// Orphans go to the first process of the system; group, session and known members are what is left to find them by.
#[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux has a subreaper"))]
#[expect(clippy::unnecessary_wraps, reason = "the other table can fail")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Open files of another process cannot be read here.
pub(super) fn ends(_pid: u32) -> [io::Result<PathBuf>; 2] {
    [0, 1].map(|_| Err(io::ErrorKind::PermissionDenied.into()))
}

pub(super) fn command_line(pid: u32) -> String {
    printed(Command::new("/bin/ps").args(["-o", "command=", "-p", &pid.to_string()])).unwrap_or_default()
}

/// The environment of another process cannot be read here.
pub(super) fn variable(_pid: u32, _name: &str) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_a_name_of_several_words() {
        let line = "   42     1    42      0 Ss   Wed Nov  8 15:29:22 2026     Google Chrome He";
        let process = parse_line(line).unwrap();
        assert_eq!((process.pid, process.parent, process.group, process.session), (42, 1, 42, 0));
        assert_eq!((process.name.as_str(), process.living), ("Google Chrome He", true));
        assert_eq!(process.start, 1_794_151_762 * TICKS_PER_S);
        assert!(!parse_line("7 1 7 0 Z+ Wed Nov 18 15:29:22 2026 gone").unwrap().living);
        for nonsense in ["", "PID", "7 1 7 0 S Wed Nov", "x 1 7 0 S Wed Nov 18 15:29:22 2026 a"] {
            assert_eq!(parse_line(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_child_is_seen_told_and_gone() {
        let before = now_ticks();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = look(child.id()).unwrap();
        assert_eq!((process.parent, process.name.as_str()), (std::process::id(), "sleep"));
        // `ps` of Linux derives the start from the boot time and may be a second off.
        assert!(process.start + TICKS_PER_S >= before, "{} {before}", process.start);
        assert!(all().unwrap().iter().any(|one| one.pid == child.id()));
        assert!(command_line(child.id()).contains("sleep 60"));
        let another = Process { start: process.start + 10 * TICKS_PER_S, ..process.clone() };
        assert!(!send(&another, Signal::KILL).unwrap());
        assert!(send(&process, Signal::KILL).unwrap());
        child.wait().unwrap();
        assert!(!send(&process, Signal::KILL).unwrap());
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        let me = std::process::id();
        assert_eq!(variable(me, "PATH"), None);
        assert!(ends(me).iter().all(|end| end.as_ref().is_err()));
        // Linux has no such setting.
        assert_eq!(boot_id().is_ok(), cfg!(target_os = "macos"));
    }
}
