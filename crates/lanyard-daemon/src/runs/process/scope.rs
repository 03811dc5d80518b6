//! Which processes belong to a run.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};

use lanyard_api::names::MARKER;

use super::{Identity, Process, look};

/// An environment longer than this is searched no further. The kernel's own limit for arguments and environment
/// together is 6 MiB where nobody raised the stack.
const ENVIRON_MAX: u64 = 8 * 1024 * 1024;
/// Environments are read in pieces, since the shim should stay small.
const PIECE: usize = 4 * 1024;
/// The longest value of a variable that is looked for; a longer one is cut.
const VALUE_MAX: usize = 64;

/// Who is part of a run: whatever descends from the shim, is in its session or in the agent's group, or bears the
/// run's marker in its environment. Another run's marker always wins: a run inside a run is supervised by its own shim.
#[derive(Debug)]
pub(crate) struct Scope {
    run: String,
    shim: Option<Identity>,
    agent: Option<Identity>,
    /// Whoever was once found, also after it lost its parent.
    known: HashSet<(u32, u64)>,
}

/// What the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Ours,
    Other,
    None,
}

struct Candidate {
    process: Process,
    mark: Mark,
    member: bool,
}

impl Scope {
    pub(crate) fn new(run: &str, shim: Option<Identity>, agent: Option<Identity>) -> Self {
        Self { run: run.to_owned(), shim, agent, known: HashSet::new() }
    }

    /// Everything of the run that lives now, the shim and this process excepted.
    pub(crate) fn members(&mut self) -> io::Result<Vec<Process>> {
        let mut candidates = self.candidates()?;
        let shim = self.shim.as_ref().map(|shim| shim.pid);
        // A number is free for others once its process and everybody in its session or group are gone.
        let recycled = |one: &&Identity| look(one.pid).is_some_and(|now| now.start != one.start);
        let number = |one: &Option<Identity>| one.as_ref().filter(|one| !recycled(one)).map(|one| one.pid);
        let (session, group) = (number(&self.shim), number(&self.agent));
        let me = std::process::id();
        for candidate in &mut candidates {
            let process = &candidate.process;
            if process.pid == me || Some(process.pid) == shim || candidate.mark == Mark::Other {
                candidate.mark = Mark::Other;
                continue;
            }
            candidate.member = candidate.mark == Mark::Ours
                || session.is_some_and(|session| session == process.session || session == process.parent)
                || group.is_some_and(|group| group == process.group || group == process.pid)
                || self.known.contains(&(process.pid, process.start));
        }
        close_over_children(&mut candidates);
        let members: Vec<Process> = candidates
            .into_iter()
            .filter(|one| one.member && one.process.living)
            .map(|one| one.process)
            .collect();
        self.known.extend(members.iter().map(|process| (process.pid, process.start)));
        Ok(members)
    }

    /// Every process that is not older than the run: an older one cannot be part of it.
    fn candidates(&self) -> io::Result<Vec<Candidate>> {
        let since = self.shim.as_ref().map_or(0, |shim| shim.start);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Some(process) = look(pid) else { continue };
            if process.start < since {
                continue;
            }
            let mark = if process.living { self.mark(pid) } else { Mark::None };
            found.push(Candidate { process, mark, member: false });
        }
        Ok(found)
    }

    /// An environment that may not be read says nothing.
    fn mark(&self, pid: u32) -> Mark {
        let Ok(file) = File::open(format!("/proc/{pid}/environ")) else { return Mark::None };
        match marker(file.take(ENVIRON_MAX)) {
            Some(run) if run == self.run.as_bytes() => Mark::Ours,
            Some(_) => Mark::Other,
            None => Mark::None,
        }
    }
}

/// Children of members are members.
fn close_over_children(candidates: &mut [Candidate]) {
    let mut members: HashSet<u32> =
        candidates.iter().filter(|one| one.member).map(|one| one.process.pid).collect();
    loop {
        let before = members.len();
        for one in candidates.iter_mut() {
            if !one.member && one.mark != Mark::Other && members.contains(&one.process.parent) {
                one.member = true;
                members.insert(one.process.pid);
            }
        }
        if members.len() == before {
            return;
        }
    }
}

/// The value of a variable in the environment of a process. One that may not be read says nothing.
pub(super) fn variable(pid: u32, name: &str) -> Option<String> {
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    String::from_utf8(found(file.take(ENVIRON_MAX), name)?).ok()
}

fn marker(environ: impl Read) -> Option<Vec<u8>> {
    found(environ, MARKER)
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
    fn the_marker_is_found_wherever_it_stands() {
        let long = format!("PATH={}\0LANYARD_RUN=run_a\0", "x".repeat(2 * PIECE));
        for (environ, found) in [
            ("LANYARD_RUN=run_a\0A=1\0", Some("run_a")),
            ("A=1\0LANYARD_RUN=run_a", Some("run_a")),
            (long.as_str(), Some("run_a")),
            ("LANYARD_RUN=\0", Some("")),
            ("A=LANYARD_RUN=run_a\0", None),
            ("LANYARD_RUNS=run_a\0", None),
            ("", None),
        ] {
            assert_eq!(
                marker(environ.as_bytes()),
                found.map(|text| text.as_bytes().to_vec()),
                "{environ:.40}"
            );
        }
    }
}
