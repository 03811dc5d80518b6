//! Turns signals about runs, gates and snapshots into events. After a crash each signal may arrive twice; the second
//! one produces no event.

use crate::id::{GateId, RunId};
use crate::session::bounds::BoundedResource;
use crate::session::decide::void_gates;
use crate::session::driven::DrivenBy;
use crate::session::event::{ContextEvent, Event, PlanEntry, SnapshotReason, TranscriptEvent};
use crate::session::gate::{Gate, GateEvent, GateKind, OPEN_MAX, Question};
use crate::session::limit::put_back;
use crate::session::observe::{in_flight, interrupted, stop_done, unexpected, work_ended};
use crate::session::record::{ActiveTurn, Session};
use crate::session::run::{AgentInfo, Receipt, Run, RunEnd, RunEvent, RunPhase, RunReady, TerminalActivity};
use crate::session::sandbox::Containment;
use crate::session::signal::Signal;
use crate::session::state::InterruptCause;
use crate::session::stop::StopScope;
use crate::text::{NAME_CHARS_MAX, cut, shallow};

/// Lines of a plan that are kept.
const PLAN_MAX: usize = 256;
/// MCP servers that a run is told to miss at most.
const MISSING_MAX: usize = 32;
/// Options a question may have.
const OPTIONS_MAX: usize = 32;
/// Longest name of an option, and longest id of one that can be chosen.
const OPTION_CHARS_MAX: usize = 200;
/// Bytes of a question's detail that are kept: the record holds every open question.
const DETAIL_BYTES_MAX: usize = 16 * 1024;

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
    (mirrored, steers): (bool, bool),
    (sandbox, account): (Option<Box<Containment>>, Option<&str>),
) -> Vec<Event> {
    match &session.run {
        Some(held) if held.id == run => Vec::new(),
        Some(held) if held.is_live() => {
            let (agent, driver) = (agent.to_owned(), driver.to_owned());
            let account = account.map(short);
            let again = Signal::RunStarted { run, agent, driver, mirrored, steers, sandbox, account };
            unexpected(session, &again)
        }
        held => {
            let number = held.as_ref().map_or(0, |held| held.number) + 1;
            let (agent, driver) = (short(agent), short(driver));
            let account = account.map(short);
            let started =
                RunEvent::Started { run, number, agent, driver, mirrored, account, steers, sandbox };
            vec![started.into()]
        }
    }
}

fn current(session: &Session, run: RunId) -> Option<&Run> {
    session.run.as_ref().filter(|held| held.id == run && held.is_live())
}

pub(super) fn run_ready(session: &Session, ready: &RunReady) -> Vec<Event> {
    match current(session, ready.run) {
        Some(run) if run.phase == RunPhase::Ready => Vec::new(),
        Some(_) => vec![RunEvent::Ready(Box::new(bounded(ready))).into()],
        None => unexpected(session, &Signal::RunReady(Box::new(ready.clone()))),
    }
}

/// The record keeps the agent's words about itself, and a signal cannot be refused.
fn bounded(ready: &RunReady) -> RunReady {
    let info = AgentInfo {
        name: short(&ready.info.name),
        version: ready.info.version.as_deref().map(short),
        protocol: short(&ready.info.protocol),
    };
    RunReady { native: short(&ready.native), info, ..ready.clone() }
}

pub(super) fn run_adopted(session: &Session, run: RunId) -> Vec<Event> {
    match current(session, run) {
        Some(_) => vec![RunEvent::Adopted { run }.into()],
        None => unexpected(session, &Signal::RunAdopted { run }),
    }
}

/// Told once for each change of the list.
pub(super) fn tools_missing(session: &Session, run: RunId, servers: &[String]) -> Vec<Event> {
    let servers: Vec<String> = servers.iter().take(MISSING_MAX).map(|server| short(server)).collect();
    match current(session, run) {
        Some(held) if held.missing_tools == servers => Vec::new(),
        Some(_) => vec![RunEvent::ToolsMissing { run, servers }.into()],
        None => unexpected(session, &Signal::ToolsMissing { run, servers }),
    }
}

/// A program on a terminal does something else than before.
pub(super) fn terminal_activity(
    session: &Session,
    run: RunId,
    activity: TerminalActivity,
    watched: bool,
) -> Vec<Event> {
    match current(session, run) {
        Some(held) if held.activity.is_some_and(|mark| mark.activity == activity) => Vec::new(),
        Some(_) => vec![RunEvent::Activity { run, activity, watched }.into()],
        None => unexpected(session, &Signal::TerminalActivity { run, activity, watched }),
    }
}

/// Told once for each number of times. A bound that does not hold cannot be met.
pub(super) fn bound_met(session: &Session, run: RunId, what: BoundedResource, times: u64) -> Vec<Event> {
    let Some(held) = current(session, run) else {
        return unexpected(session, &Signal::BoundMet { run, what, times });
    };
    let bounds = held.sandbox.iter().flat_map(|held| &held.bounds);
    let bound = bounds.into_iter().find(|bound| bound.what == what && bound.met < times);
    let event = bound.map(|bound| RunEvent::BoundMet { run, what, limit: bound.limit.clone(), times });
    event.map(Into::into).into_iter().collect()
}

/// What an agent offers to choose, and what is in force: told once for each change.
pub(super) fn choices(session: &Session, signal: &Signal) -> Vec<Event> {
    if session.live_run().is_none() {
        return unexpected(session, signal);
    }
    if let Signal::Offered(offer) = signal {
        let offer = offer.clone().bounded();
        let known = session.offered.as_ref().is_some_and(|mark| mark.hash == offer.hash());
        let says_nothing = session.offered.is_none() && offer.is_empty();
        if !known && !says_nothing {
            return vec![RunEvent::Offered(Box::new(offer)).into()];
        }
    }
    if let Signal::InForce(choice) = signal
        && session.in_force != choice.bounded()
    {
        return vec![RunEvent::InForce(choice.bounded()).into()];
    }
    Vec::new()
}

/// Records the end of the process tree: pending cancels and stops are settled, and a running turn was lost.
pub(super) fn run_ended(
    session: &Session,
    run: RunId,
    how: &RunEnd,
    cause: Option<InterruptCause>,
    reason: Option<&str>,
    receipt: &Receipt,
) -> Vec<Event> {
    let Some(held) = current(session, run).filter(|_| !session.deleted) else { return Vec::new() };
    let reason = reason.map(short);
    let mut events = vec![
        RunEvent::Ended { run, how: how.clone(), reason: reason.clone(), receipt: receipt.clone() }.into(),
    ];
    if session.state.is_ended() {
        return events;
    }
    let asked = session.stop.is_some() || session.turn.as_ref().is_some_and(|turn| turn.cancel_requested);
    // A turn that waits for a limit needs no process.
    let waits = session.turn.as_ref().is_some_and(ActiveTurn::is_waiting);
    let cause = if asked { Some(InterruptCause::User) } else { cause.filter(|_| !waits) };
    // Its prompt never arrived, and it was not the agent that ended.
    let taken_away = matches!(how, RunEnd::Lost | RunEnd::HostLost) && cause.is_some() && !asked;
    if let Some(kept) = put_back(session, false).filter(|_| taken_away) {
        events.extend(void_gates(session, "the agent's process ended"));
        events.push(kept);
        return events;
    }
    match cause.filter(|_| session.turn.is_some()) {
        Some(cause) => events.extend(interrupted(session, cause, reason.as_deref())),
        // No turn runs, or the one that does waits for a further run. That one knows nothing of these questions.
        None => events.extend(void_gates(session, "the agent's process ended")),
    }
    // `interrupted` held the stop back where it saw a process of the session's own alive; one of the turn it did not.
    let of_turn = session.stop.as_ref().is_some_and(|stop| stop.scope == StopScope::Turn);
    let settled = session.turn.is_some() && (held.mirrored || of_turn);
    if session.stop.is_some() && !settled {
        events.extend(stop_done(session));
    }
    events
}

/// Records a restart of the daemon: the turn that was running is lost, and with it the run that the record still holds
/// for alive.
pub(super) fn daemon_restarted(session: &Session) -> Vec<Event> {
    const WHY: &str = "the daemon restarted and the turn's work was gone";
    match session.run.as_ref().filter(|run| run.is_live()) {
        Some(run) if put_back(session, true).is_some() => {
            let ended = run_ended(session, run.id, &RunEnd::Lost, None, Some(WHY), &Receipt::default());
            ended.into_iter().chain(put_back(session, true)).collect()
        }
        None if put_back(session, true).is_some() => put_back(session, true).into_iter().collect(),
        Some(run) => {
            let cause = Some(InterruptCause::Crash);
            run_ended(session, run.id, &RunEnd::Lost, cause, Some(WHY), &Receipt::default())
        }
        // Whose calls come by is somebody else's process, which does not end with the daemon.
        // The calls that were under way here are not.
        None if (session.hears || session.driver() == DrivenBy::Host) && session.turn.is_none() => {
            in_flight(session, 0)
        }
        None if waits_for_limit(session) => Vec::new(),
        None => work_ended(session, WHY),
    }
}

/// Whether a turn waits for a limit and nothing is to end it.
fn waits_for_limit(session: &Session) -> bool {
    let kept = |turn: &ActiveTurn| turn.is_waiting() && !turn.cancel_requested;
    session.stop.is_none() && session.turn.as_ref().is_some_and(kept)
}

/// A question that was asked before is not asked again; one too many, or one of a run that is over, is not asked at all.
pub(super) fn gate_asked(session: &Session, gate: GateId, run: RunId, question: &Question) -> Vec<Event> {
    let known = |held: &Gate| held.run == run && held.question.request == question.request;
    if session.gates.iter().any(known) {
        return Vec::new();
    }
    let asks = match question.kind {
        GateKind::Permission => session.turn.is_some() && current(session, run).is_some(),
        GateKind::Escalation => !session.state.is_ended() && !session.deleted,
    };
    let minted = session.gates.iter().all(|held| held.id != gate);
    if !(asks && minted && answerable(question)) || session.open_gates().count() >= OPEN_MAX {
        let question = Box::new(question.clone());
        return unexpected(session, &Signal::GateAsked { gate, run, question });
    }
    let mut question = question.clone();
    question.title = short(&question.title);
    question.call = question.call.as_deref().map(short);
    question.detail = detail(&question.detail);
    question.options.truncate(OPTIONS_MAX);
    for option in &mut question.options {
        option.name = cut(&option.name, OPTION_CHARS_MAX).0.to_owned();
    }
    vec![GateEvent::Opened { gate, run, question: Box::new(question) }.into()]
}

/// Handles cannot be cut: an answer by half a handle reaches nobody.
fn answerable(question: &Question) -> bool {
    let fits = |text: &str, max| !cut(text, max).1;
    fits(&question.request, NAME_CHARS_MAX)
        && question.options.iter().all(|option| fits(&option.id, OPTION_CHARS_MAX))
}

/// The value itself or, when it is too large to stay in the record, the beginning of its JSON text.
fn detail(value: &serde_json::Value) -> serde_json::Value {
    let mut text = value.to_string();
    if text.len() <= DETAIL_BYTES_MAX {
        return shallow(value);
    }
    text.truncate(text.floor_char_boundary(DETAIL_BYTES_MAX));
    text.into()
}

pub(super) fn gate_withdrawn(session: &Session, request: &str, why: &str) -> Vec<Event> {
    let gate = session.open_gates().find(|gate| gate.question.request == request);
    gate.map(|gate| GateEvent::Withdrawn { gate: gate.id, why: short(why) }.into()).into_iter().collect()
}

/// What became of the session's branch, also after its end.
pub(super) fn branch(session: &Session, signal: &Signal) -> Vec<Event> {
    if session.deleted {
        return Vec::new();
    }
    if let Signal::BranchMerged { branch, commit, into } = signal {
        let (branch, commit, into) = (short(branch), short(commit), short(into));
        return vec![ContextEvent::BranchMerged { branch, commit, into }.into()];
    }
    // Discarded again after a crash, it is told once.
    let held = session.tree.as_ref().is_some_and(|tree| !tree.removed);
    if let Signal::BranchDiscarded { branch, reference } = signal
        && held
    {
        let (branch, reference) = (short(branch), short(reference));
        return vec![ContextEvent::BranchDiscarded { branch, reference }.into()];
    }
    Vec::new()
}

/// Taken also for a session that has just ended: a stop is worth a place to come back to.
pub(super) fn snapshot(session: &Session, signal: &Signal) -> Vec<Event> {
    if session.deleted {
        return Vec::new();
    }
    if let Signal::SnapshotTaken { name, commit, reason, files_changed } = signal {
        // The end of a turn and a wish leave a mark in the log first; a checkpoint has the position it names.
        let marked = matches!(reason, SnapshotReason::TurnEnd | SnapshotReason::Asked);
        let mark = session.checkpoints.back().filter(|_| marked).map(|mark| mark.position);
        let (name, commit, position) = (short(name), short(commit), Some(mark.unwrap_or(session.seq)));
        let (reason, files_changed) = (*reason, *files_changed);
        return vec![ContextEvent::Snapshot { name, commit, position, reason, files_changed }.into()];
    }
    if let Signal::RolledBack { from, to, changed, added, removed } = signal {
        let (changed, added, removed) = (*changed, *added, *removed);
        return vec![
            ContextEvent::RolledBack { from: short(from), to: short(to), changed, added, removed }.into(),
        ];
    }
    let said = |code: &str| session.snapshot_skipped.as_deref() == Some(short(code).as_str());
    if let Signal::SnapshotSkipped { code, why } = signal
        && !said(code)
    {
        return vec![ContextEvent::SnapshotSkipped { code: short(code), why: short(why) }.into()];
    }
    Vec::new()
}
