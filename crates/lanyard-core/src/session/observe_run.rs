//! What is seen of runs, gates and snapshots becomes events. Everything here may be told twice after a crash, and the
//! second time says nothing new.

use crate::id::{GateId, RunId};
use crate::session::decide::void_gates;
use crate::session::event::{ContextEvent, Event, PlanEntry, TranscriptEvent};
use crate::session::gate::{GateEvent, OPEN_MAX, Question};
use crate::session::observe::{interrupted, stopped, unexpected};
use crate::session::record::Session;
use crate::session::run::{Receipt, Run, RunEnd, RunEvent, RunPhase, RunReady};
use crate::session::signal::Signal;
use crate::session::state::InterruptCause;
use crate::text::{NAME_CHARS_MAX, cut, shallow};

/// Lines of a plan that are kept.
const PLAN_MAX: usize = 256;
/// Options a question may have.
const OPTIONS_MAX: usize = 32;

fn short(text: &str) -> String {
    cut(text, NAME_CHARS_MAX).0.to_owned()
}

pub(super) fn planned(entries: &[PlanEntry]) -> Vec<Event> {
    let entries = entries.iter().take(PLAN_MAX);
    let entries = entries.map(|entry| PlanEntry { text: short(&entry.text), status: entry.status }).collect();
    vec![TranscriptEvent::Planned { entries }.into()]
}

pub(super) fn run_started(
    session: &Session,
    run: RunId,
    agent: &str,
    driver: &str,
    mirrored: bool,
) -> Vec<Event> {
    match &session.run {
        Some(held) if held.id == run => Vec::new(),
        Some(held) if held.is_live() => {
            let signal =
                Signal::RunStarted { run, agent: agent.to_owned(), driver: driver.to_owned(), mirrored };
            unexpected(session, &signal)
        }
        held => {
            let number = held.as_ref().map_or(0, |held| held.number) + 1;
            let (agent, driver) = (short(agent), short(driver));
            vec![RunEvent::Started { run, number, agent, driver, mirrored }.into()]
        }
    }
}

fn current(session: &Session, run: RunId) -> Option<&Run> {
    session.run.as_ref().filter(|held| held.id == run && held.is_live())
}

pub(super) fn run_ready(session: &Session, ready: &RunReady) -> Vec<Event> {
    match current(session, ready.run) {
        Some(run) if run.phase == RunPhase::Ready => Vec::new(),
        Some(_) => vec![RunEvent::Ready(Box::new(ready.clone())).into()],
        None => unexpected(session, &Signal::RunReady(Box::new(ready.clone()))),
    }
}

pub(super) fn run_adopted(session: &Session, run: RunId) -> Vec<Event> {
    match current(session, run) {
        Some(_) => vec![RunEvent::Adopted { run }.into()],
        None => unexpected(session, &Signal::RunAdopted { run }),
    }
}

/// The process tree is gone: what waited for that is settled, and a turn that was running was lost.
pub(super) fn run_ended(
    session: &Session,
    run: RunId,
    how: &RunEnd,
    cause: Option<InterruptCause>,
    reason: Option<&str>,
    receipt: &Receipt,
) -> Vec<Event> {
    let Some(held) = current(session, run) else { return Vec::new() };
    let reason = reason.map(short);
    let mut events = vec![
        RunEvent::Ended { run, how: how.clone(), reason: reason.clone(), receipt: receipt.clone() }.into(),
    ];
    if session.state.is_ended() || session.deleted {
        return events;
    }
    match &session.turn {
        Some(turn) => {
            let asked = turn.cancel_requested || session.stop.is_some();
            match if asked { Some(InterruptCause::User) } else { cause } {
                Some(cause) => events.extend(interrupted(session, cause, reason.as_deref())),
                None => return events,
            }
        }
        None => events.extend(void_gates(session, "the agent's process ended")),
    }
    // `interrupted` held the stop back, since it saw the process alive.
    if session.stop.is_some() && !held.mirrored {
        events.push(stopped(session));
    }
    events
}

/// A question that was asked before is not asked again; one too many is not asked at all.
pub(super) fn gate_asked(session: &Session, gate: GateId, run: RunId, question: &Question) -> Vec<Event> {
    let known = |held: &crate::session::Gate| held.run == run && held.question.request == question.request;
    if session.gates.iter().any(known) {
        return Vec::new();
    }
    if session.turn.is_none() || session.open_gates().count() >= OPEN_MAX {
        let question = Box::new(question.clone());
        return unexpected(session, &Signal::GateAsked { gate, run, question });
    }
    let mut question = question.clone();
    question.title = short(&question.title);
    question.detail = shallow(&question.detail);
    question.options.truncate(OPTIONS_MAX);
    vec![GateEvent::Opened { gate, run, question: Box::new(question) }.into()]
}

pub(super) fn gate_withdrawn(session: &Session, request: &str, why: &str) -> Vec<Event> {
    let gate = session.open_gates().find(|gate| gate.question.request == request);
    gate.map(|gate| GateEvent::Withdrawn { gate: gate.id, why: short(why) }.into()).into_iter().collect()
}

/// Taken also for a session that has just ended: a stop is worth a place to come back to.
pub(super) fn snapshot(session: &Session, signal: &Signal) -> Vec<Event> {
    if session.deleted {
        return Vec::new();
    }
    if let Signal::SnapshotTaken { name, commit, reason, files_changed } = signal {
        let (name, commit, reason) = (short(name), short(commit), *reason);
        return vec![ContextEvent::Snapshot { name, commit, reason, files_changed: *files_changed }.into()];
    }
    match signal {
        Signal::SnapshotSkipped { code, why } if session.snapshot_skipped.as_ref() != Some(code) => {
            vec![ContextEvent::SnapshotSkipped { code: short(code), why: short(why) }.into()]
        }
        _ => Vec::new(),
    }
}
