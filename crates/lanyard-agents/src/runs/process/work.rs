//! Which processes of a run belong to one turn, and ending exactly those.
//!
//! The agent's own process and everything older than the turn stays. Of the younger ones, a command and all below it
//! belongs to the turn, also after it lost its parent. A server that the agent started for itself (MCP, language
//! servers) belongs to the agent: it is a direct child of an older process, is no shell, stayed in its parent's process
//! group, talks over pipes of its own and is named as a server. A program that talks over pipes and has no such name may
//! be either: it is not ended, and the receipt says that it may still run. Codex gives its servers groups of their own
//! too, and its commands a variable, which decides there.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::ending::{KILL_PATIENCE_MS, Pace};
use super::role::{ProcessRole, role};
use super::table::variable;
use super::{EndedBy, Identity, Process, ProcessEnd, RunScope, now_ms, send};

/// The variable by which Codex tells a command the conversation it belongs to.
const CODEX_THREAD: &str = "CODEX_THREAD_ID";
/// The beginning of the names of Codex's own processes.
const CODEX: &str = "codex";
/// The name of the first process of a sandbox.
const SANDBOX_KEEPER: &str = "bwrap";
/// Programs that agents run commands with.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "setsid"];
/// Processes a receipt lists.
const LISTED_MAX: usize = 1_000;
/// How far parents are followed; longer chains are cut.
const DEPTH_MAX: usize = 4_096;

/// What was started for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The beginning of the turn, in clock ticks since boot.
    pub since: u64,
    pub whose: Whose,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The agent's own turn. Commands of these conversations, of subagents still at work, go on.
    Agent { others: Vec<String> },
    /// A subagent's turn, by the agent's own id of the conversation.
    Subagent { native: String },
}

/// What became of the processes of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedWork {
    pub ended: Vec<ProcessEnd>,
    /// Processes that did not end, or of which nobody can say whose they are: number and name.
    pub left: Vec<(u32, String)>,
    /// Servers of the agent itself, started during the turn.
    pub kept: Vec<(u32, String)>,
}

/// To whom a process belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It was there before, or belongs to somebody else's work.
    Other,
    Server,
    /// A command, and nothing says whose; or a program that may be a server.
    Unclear,
    OfTheTurn,
}

impl Work {
    /// The class of each process. `thread` looks up the conversation a process was started for, `role` what a program
    /// without a shell looks like.
    fn sort(
        &self,
        members: &[Process],
        agent: Option<u32>,
        thread: impl Fn(&Process) -> Option<String>,
        role: impl Fn(&Process) -> ProcessRole,
    ) -> Vec<Class> {
        let place: HashMap<u32, usize> =
            members.iter().enumerate().map(|(place, process)| (process.pid, place)).collect();
        let young = |process: &Process| Some(process.pid) != agent && process.start >= self.since;
        members
            .iter()
            .map(|process| {
                let mut top = process;
                let mut of = thread(process);
                for _ in 0..DEPTH_MAX {
                    let above = place.get(&top.parent).and_then(|place| members.get(*place));
                    let Some(above) = above.filter(|above| young(above) && young(top)) else { break };
                    top = above;
                    of = of.or_else(|| thread(top));
                }
                let parent = place.get(&top.parent).and_then(|place| members.get(*place));
                let role = match parent {
                    _ if !young(process) => ProcessRole::Server,
                    // The first process of a sandbox gets the children of those that ended.
                    Some(parent) if parent.name == SANDBOX_KEEPER => ProcessRole::Command,
                    Some(parent) if !is_command(top, parent, of.is_some()) => {
                        if parent.name.starts_with(CODEX) { ProcessRole::Server } else { role(top) }
                    }
                    Some(_) | None => ProcessRole::Command,
                };
                self.class(young(process), role, of.as_deref())
            })
            .collect()
    }

    fn class(&self, young: bool, role: ProcessRole, of: Option<&str>) -> Class {
        match (&self.whose, of, role) {
            (Whose::Subagent { native }, Some(of), _) if of == native => Class::OfTheTurn,
            (Whose::Agent { others }, Some(of), _) if others.iter().any(|other| other == of) => Class::Other,
            _ if !young => Class::Other,
            (Whose::Subagent { .. }, None, ProcessRole::Command | ProcessRole::Either) => Class::Unclear,
            (Whose::Subagent { .. }, _, _) => Class::Other,
            (Whose::Agent { .. }, _, ProcessRole::Command) => Class::OfTheTurn,
            (Whose::Agent { .. }, _, ProcessRole::Either) => Class::Unclear,
            (Whose::Agent { .. }, _, ProcessRole::Server) => Class::Server,
        }
    }
}

/// Whether the youngest process right below an older one is sure to run a command.
fn is_command(top: &Process, parent: &Process, named: bool) -> bool {
    let apart = top.group != parent.group || top.session != parent.session;
    named || SHELLS.contains(&top.name.as_str()) || (apart && !parent.name.starts_with(CODEX))
}

/// Ends the processes of one turn: TERM, a grace, then KILL, until none lives. Blocks.
pub(crate) fn end_work(
    run: &str,
    shim: Option<&Identity>,
    agent: Option<&Identity>,
    (work, group): (&Work, Option<PathBuf>),
    grace: Duration,
) -> io::Result<EndedWork> {
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    let begun = now_ms();
    let kill_at = begun.saturating_add(grace_ms);
    let give_up = kill_at.saturating_add(KILL_PATIENCE_MS);
    let mut scope = RunScope::new(run, shim.cloned(), agent.cloned()).in_group(group);
    let mut told: HashSet<(u32, u64)> = HashSet::new();
    let mut ended: HashMap<(u32, u64), ProcessEnd> = HashMap::new();
    let mut pace = Pace::default();
    loop {
        let now = now_ms();
        let members = scope.members()?;
        let thread = |process: &Process| variable(process.pid, CODEX_THREAD);
        let classes = work.sort(&members, agent.map(|agent| agent.pid), thread, role);
        let of = |class: Class| members.iter().zip(&classes).filter(move |(_, held)| **held == class);
        let is_told = |process: &Process| told.contains(&(process.pid, process.start));
        let again = members.iter().filter(|process| is_told(process));
        let mut living: Vec<&Process> =
            of(Class::OfTheTurn).map(|(process, _)| process).chain(again).collect();
        living.sort_by_key(|process| process.pid);
        living.dedup_by_key(|process| process.pid);
        if living.is_empty() || now > give_up {
            let names = |processes: Vec<&Process>| {
                processes.into_iter().take(LISTED_MAX).map(|one| (one.pid, one.name.clone())).collect()
            };
            let unclear = of(Class::Unclear).map(|(process, _)| process).filter(|process| !is_told(process));
            let left: Vec<&Process> = living.iter().copied().chain(unclear).collect();
            let kept = of(Class::Server).map(|(process, _)| process).filter(|process| !is_told(process));
            let (left, kept) = (names(left), names(kept.collect()));
            let mut ended: Vec<ProcessEnd> = ended.into_values().collect();
            ended.sort_by_key(|process| process.pid);
            return Ok(EndedWork { ended, left, kept });
        }
        let by = if now >= kill_at { EndedBy::Kill } else { EndedBy::Term };
        let mut sent = Vec::new();
        for process in living {
            let key = (process.pid, process.start);
            if (by == EndedBy::Kill || !told.contains(&key)) && matches!(send(process, by.signal()), Ok(true))
            {
                sent.push(key);
                if ended.len() < LISTED_MAX || ended.contains_key(&key) {
                    ended.insert(key, ProcessEnd { pid: process.pid, name: process.name.clone(), by });
                }
            }
        }
        told.extend(sent);
        std::thread::sleep(Duration::from_millis(pace.next(now, kill_at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: u32 = 10;

    fn process(pid: u32, parent: u32, start: u64, group: u32, name: &str) -> Process {
        Process { pid, start, parent, group, session: group, name: name.to_owned(), living: true }
    }

    fn sorted(work: &Work, members: &[Process], threads: &[(u32, &str)]) -> Vec<(u32, Class)> {
        let thread = |process: &Process| {
            threads.iter().find(|(pid, _)| *pid == process.pid).map(|(_, thread)| (*thread).to_owned())
        };
        let role = |process: &Process| match process.name.as_str() {
            "node" => ProcessRole::Server,
            "rg" => ProcessRole::Either,
            _ => ProcessRole::Command,
        };
        let classes = work.sort(members, Some(AGENT), thread, role);
        members.iter().map(|process| process.pid).zip(classes).collect()
    }

    fn own() -> Work {
        Work { since: 100, whose: Whose::Agent { others: Vec::new() } }
    }

    /// FND-R3: commands and all below them, with or without a parent, and nothing that was there before.
    #[test]
    fn fnd_r3_commands_belong_to_the_turn_and_servers_to_the_agent() {
        let members = [
            process(AGENT, 1, 100, AGENT, "agent"),
            process(11, AGENT, 50, 11, "sh"),
            // A command in the agent's own group, and one in a group of its own, with what they started.
            process(12, AGENT, 120, AGENT, "bash"),
            process(13, 12, 121, AGENT, "make"),
            process(14, AGENT, 130, 14, "cargo"),
            process(15, 14, 131, 15, "rustc"),
            // Its parent is gone, and the supervisor has it.
            process(16, 1, 140, 16, "sleep"),
            // A server, and its worker.
            process(17, AGENT, 150, AGENT, "node"),
            process(18, 17, 151, AGENT, "sh"),
            // A program without a shell in the agent's group, and one that may be a server.
            process(19, AGENT, 160, AGENT, "sleep"),
            process(20, AGENT, 170, AGENT, "rg"),
        ];
        let expected = [
            (AGENT, Class::Other),
            (11, Class::Other),
            (12, Class::OfTheTurn),
            (13, Class::OfTheTurn),
            (14, Class::OfTheTurn),
            (15, Class::OfTheTurn),
            (16, Class::OfTheTurn),
            (17, Class::Server),
            (18, Class::Server),
            (19, Class::OfTheTurn),
            (20, Class::Unclear),
        ];
        assert_eq!(sorted(&own(), &members, &[]), expected);
    }

    /// FND-R3: Codex's commands are told from its servers, and a subagent's from its parent's.
    #[test]
    fn fnd_r3_the_commands_of_codex_are_told_apart_by_their_conversation() {
        use Class::{OfTheTurn, Other, Server};
        let members = [
            process(AGENT, 1, 20, AGENT, "codex"),
            process(11, AGENT, 110, 11, "mcp-server"),
            process(12, AGENT, 120, 12, "codex-linux-san"),
            process(13, 12, 121, 12, "sleep"),
            process(14, AGENT, 130, 14, "python3"),
        ];
        let threads = [(12, "main"), (13, "main"), (14, "child")];
        let classes = |work: &Work| -> Vec<Class> {
            sorted(work, &members, &threads).into_iter().map(|(_, class)| class).collect()
        };
        let busy = Work { whose: Whose::Agent { others: vec!["child".to_owned()] }, ..own() };
        assert_eq!(classes(&own()), [Other, Server, OfTheTurn, OfTheTurn, OfTheTurn]);
        assert_eq!(classes(&busy), [Other, Server, OfTheTurn, OfTheTurn, Other]);
        let child = Work { whose: Whose::Subagent { native: "child".to_owned() }, ..own() };
        assert_eq!(classes(&child), [Other, Other, Other, Other, OfTheTurn]);
    }

    /// FND-R3: a command that names no conversation is not ended with a subagent, and told.
    #[test]
    fn fnd_r3_nobody_ends_a_command_that_may_be_the_parents() {
        let members = [process(AGENT, 1, 20, AGENT, "agent"), process(11, AGENT, 110, AGENT, "bash")];
        let child = Work { whose: Whose::Subagent { native: "child".to_owned() }, ..own() };
        assert_eq!(sorted(&child, &members, &[]), [(AGENT, Class::Other), (11, Class::Unclear)]);
    }
}
