//! Which processes belong to a run.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use lanyard_api::names::MARKER;

use super::{Identity, Process, look, table};
use crate::runs::cgroup;

/// Who is part of a run: whatever descends from the shim, is in its session or in the agent's group, is in the control
/// group of the run, or bears the run's marker in its environment. Another run's marker always wins: a run inside a run is supervised by its own shim.
#[derive(Debug)]
pub(crate) struct RunScope {
    run: String,
    shim: Option<Identity>,
    agent: Option<Identity>,
    /// The control group of the run. A process leaves it neither by a new parent or session nor by a new environment.
    group: Option<PathBuf>,
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

impl RunScope {
    pub(crate) fn new(run: &str, shim: Option<Identity>, agent: Option<Identity>) -> Self {
        Self { run: run.to_owned(), shim, agent, group: None, known: HashSet::new() }
    }

    /// With all that is in a control group.
    pub(crate) fn in_group(self, group: Option<PathBuf>) -> Self {
        Self { group, ..self }
    }

    /// Ends all of the control group at once. Where there is none, or none that can be, signals have to do.
    pub(super) fn kill_group(&self) {
        if let Some(group) = self.group.as_deref().filter(|group| cgroup::is_populated(group)) {
            let _ = cgroup::kill(group);
        }
    }

    /// Whether something lives in the control group, seen or not.
    pub(super) fn holds_on(&self) -> bool {
        self.group.as_deref().is_some_and(cgroup::is_populated)
    }

    /// Everything of the run that lives now, the shim and this process excepted.
    pub(crate) fn members(&mut self) -> io::Result<Vec<Process>> {
        let mut candidates = self.candidates()?;
        let shim = self.shim.as_ref().map(|shim| shim.pid);
        // A number is free for others once its process and everybody in its session or group are gone.
        let recycled = |one: &&Identity| look(one.pid).is_some_and(|now| now.start != one.start);
        let number = |one: &Option<Identity>| one.as_ref().filter(|one| !recycled(one)).map(|one| one.pid);
        let (session, group) = (number(&self.shim), number(&self.agent));
        let grouped: HashSet<u32> =
            self.group.as_deref().map(cgroup::processes).unwrap_or_default().into_iter().collect();
        let me = std::process::id();
        for candidate in &mut candidates {
            let process = &candidate.process;
            if process.pid == me || Some(process.pid) == shim || candidate.mark == Mark::Other {
                candidate.mark = Mark::Other;
                continue;
            }
            candidate.member = candidate.mark == Mark::Ours
                || grouped.contains(&process.pid)
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
        for process in table::all()? {
            if process.start < since {
                continue;
            }
            let mark = if process.living { self.mark(process.pid) } else { Mark::None };
            found.push(Candidate { process, mark, member: false });
        }
        Ok(found)
    }

    /// An environment that may not be read says nothing.
    fn mark(&self, pid: u32) -> Mark {
        match table::variable(pid, MARKER) {
            Some(run) if run == self.run => Mark::Ours,
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
