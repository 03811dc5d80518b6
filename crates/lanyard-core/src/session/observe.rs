//! Signals become events. A signal is never refused; one that does not fit is recorded as unexpected.

use crate::budget::REPORT_MICROS_MAX;
use crate::id::{NoteId, SessionId, TurnId};
use crate::policy::{Rules, Staleness};
use crate::session::decide::{checkpoint, undelivered, void_escalations, void_gates};
use crate::session::decide_inbox::{Over, SESSION_ENDED, after_turn, steered, withdraw_all};
use crate::session::event::{
    ChangeEvent, CheckpointReason, ContextEvent, ControlEvent, Ending, Event, InboxEvent, Role, Settled,
    TranscriptEvent, TurnEvent, TurnOutcome,
};
use crate::session::guidance::{Note, NoteKind, NoteStatus};
use crate::session::intercept::{answer_lost, due, in_answer};
use crate::session::limit::turn_limited;
use crate::session::observe_run::{
    bound_met, branch, choices, daemon_restarted, gate_asked, gate_withdrawn, planned, run_adopted,
    run_ended, run_ready, run_started, snapshot, terminal_activity, tools_missing,
};
use crate::session::operator::calls_for_review;
use crate::session::part::PromptPart;
use crate::session::record::{ActiveTurn, REFUSED_IN_ROW_MAX, Session};
use crate::session::run::Receipt;
use crate::session::signal::Signal;
use crate::session::stall::StallKind;
use crate::session::state::{InterruptCause, State};
use crate::session::stop::StopScope;
use crate::text::{NAME_CHARS_MAX, cut, shallow};
use crate::time::Timestamp;

/// The events of a signal. No events means that it says nothing new.
#[must_use]
pub fn observe(session: &Session, signal: &Signal, rules: &Rules) -> Vec<Event> {
    match signal {
        Signal::DaemonRestarted => daemon_restarted(session),
        Signal::Quiet { for_ms } => quiet(session, *for_ms, &rules.staleness),
        Signal::WorkEnded { channel } => work_ended(session, channel),
        Signal::Due { now } => due(session, *now, rules),
        Signal::CallsInFlight { calls } => in_flight(session, *calls),
        Signal::AnswerLost { notes } => answer_lost(session, notes),
        Signal::NoticeSent { to, note, since } => notice_sent(session, (*to, *note), *since),
        Signal::RunEnded { run, how, cause, reason, receipt } => {
            run_ended(session, *run, how, *cause, reason.as_deref(), receipt)
        }
        Signal::SnapshotTaken { .. } | Signal::SnapshotSkipped { .. } => snapshot(session, signal),
        Signal::RolledBack { .. } => snapshot(session, signal),
        Signal::BranchMerged { .. } | Signal::BranchDiscarded { .. } => branch(session, signal),
        _ if session.state.is_ended() || session.deleted => unexpected(session, signal),
        Signal::Said { role, text, message_id: id, parts } => vec![said(*role, text, id.as_deref(), parts)],
        Signal::Thought { text } => vec![TranscriptEvent::Thought { text: text.clone() }.into()],
        Signal::ToolCalled { call, tool, arguments } => tool_called(session, call, tool, arguments),
        Signal::ToolReturned { call, is_error, content } => tool_returned(call, *is_error, content),
        Signal::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros } => {
            used(*input_tokens, *output_tokens, *context_tokens, *cost_micros)
        }
        Signal::TurnFinished { turn, outcome, reason } => match &session.turn {
            Some(held) if turn.is_none_or(|turn| held.answers_to(turn)) => {
                turn_finished(session, held, *outcome, reason.as_deref())
            }
            Some(_) | None => unexpected(session, signal),
        },
        Signal::TurnDelivered { turn } => turn_delivered(session, *turn),
        Signal::TurnLost { cause, reason, receipt } if session.turn.is_some() => {
            interrupted_with(session, *cause, reason.as_deref(), receipt)
        }
        Signal::TurnLost { .. } => unexpected(session, signal),
        Signal::TurnLimited(seen) => turn_limited(session, seen),
        Signal::ContextCompacted { size_before, size_after, anchors_survived } => {
            vec![compacted(session, *size_before, *size_after, anchors_survived)]
        }
        Signal::IssueSeen { hash, score } => {
            let (hash, _) = cut(hash, NAME_CHARS_MAX);
            let seen = ContextEvent::IssueSeen { hash: hash.to_owned(), score: *score };
            stalling(session, seen, StallKind::Issue, hash, rules)
        }
        Signal::ErrorSeen { hash, text } => {
            let (hash, _) = cut(hash, NAME_CHARS_MAX);
            let text = text.as_deref().map(|text| cut(text, NAME_CHARS_MAX).0.to_owned());
            let seen = ContextEvent::ErrorSeen { hash: hash.to_owned(), text };
            stalling(session, seen, StallKind::Error, hash, rules)
        }
        Signal::GuidanceDelivered { notes, channel } => delivered(session, notes, channel),
        Signal::HandedOff { from, to, reason } => handed_off(from, to, reason),
        Signal::Introduced { agent, extension_session_id } => {
            introduced(agent, extension_session_id.as_deref())
        }
        Signal::PlanJoined { plan } => plan_joined(session, plan),
        Signal::Planned { entries } => planned(entries),
        Signal::FileChanged { path, added, removed } => file_changed(path, *added, *removed),
        Signal::RunStarted { run, agent, driver, mirrored, steers, sandbox, account } => {
            let within = (sandbox.clone(), account.as_deref());
            run_started(session, *run, agent, driver, (*mirrored, *steers), within)
        }
        Signal::EndBlocked { why } => end_blocked(why),
        Signal::RunReady(ready) => run_ready(session, ready),
        Signal::RunAdopted { run } => run_adopted(session, *run),
        Signal::ToolsMissing { run, servers } => tools_missing(session, *run, servers),
        Signal::TerminalActivity { .. } => terminal_activity(session, signal),
        Signal::BoundMet { run, what, times } => bound_met(session, *run, *what, *times),
        Signal::Offered(_) | Signal::InForce(_) => choices(session, signal),
        Signal::GateAsked { gate, run, question } => gate_asked(session, *gate, *run, question),
        Signal::GateWithdrawn { request, why } => gate_withdrawn(session, request, why),
    }
}

fn tool_returned(call: &str, is_error: bool, content: &serde_json::Value) -> Vec<Event> {
    let call = cut(call, NAME_CHARS_MAX).0.to_owned();
    vec![TranscriptEvent::ToolReturned { call, is_error, content: shallow(content) }.into()]
}

fn file_changed(path: &str, added: Option<u64>, removed: Option<u64>) -> Vec<Event> {
    let path = cut(path, NAME_CHARS_MAX).0.to_owned();
    vec![TranscriptEvent::FileChanged { path, added, removed }.into()]
}

/// Said when it changes, and of nothing that is over.
pub(super) fn in_flight(session: &Session, calls: u32) -> Vec<Event> {
    let news = session.calls_in_flight != calls && !session.state.is_ended() && !session.deleted;
    if news { vec![TranscriptEvent::InFlight { calls }.into()] } else { Vec::new() }
}

fn end_blocked(why: &str) -> Vec<Event> {
    vec![ControlEvent::EndBlocked { why: cut(why, NAME_CHARS_MAX).0.to_owned() }.into()]
}

fn used(input_tokens: u64, output_tokens: u64, context_tokens: Option<u64>, cost_micros: u64) -> Vec<Event> {
    // A sum that no report can have is a mistake of the agent.
    let cost_micros = if cost_micros > REPORT_MICROS_MAX { 0 } else { cost_micros };
    vec![TranscriptEvent::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros }.into()]
}

fn quiet(session: &Session, for_ms: u64, staleness: &Staleness) -> Vec<Event> {
    if session.deleted {
        return Vec::new();
    }
    let idle = for_ms >= staleness.idle_after_ms;
    let stale = for_ms >= staleness.stale_after_ms;
    match session.state {
        // A call of another host's agent that nobody has told the end of.
        State::Executing if session.turn.is_none() && stale => {
            vec![ChangeEvent::WentStale { quiet_ms: for_ms }.into()]
        }
        State::Compacted | State::Interrupted { .. } | State::Idle if stale => {
            vec![ChangeEvent::WentStale { quiet_ms: for_ms }.into()]
        }
        State::BetweenTurn | State::Compacted | State::Interrupted { .. } if idle => {
            vec![ChangeEvent::WentIdle { quiet_ms: for_ms }.into()]
        }
        State::Beginning
        | State::Custom
        | State::Executing
        | State::BetweenTurn
        | State::Compacted
        | State::Interrupted { .. }
        | State::Idle
        | State::Stale
        | State::Completed
        | State::Failed
        | State::Stopped => Vec::new(),
    }
}

/// Confirms a cancel, and a stop where no process is left. Without either, a turn whose work ended was lost.
pub(super) fn work_ended(session: &Session, channel: &str) -> Vec<Event> {
    if session.state.is_ended() || session.deleted {
        return Vec::new();
    }
    match &session.turn {
        Some(turn) if turn.cancel_requested || session.stop.is_some() => {
            interrupted(session, InterruptCause::User, Some(channel))
        }
        Some(_) => interrupted(session, InterruptCause::Crash, Some(channel)),
        None if session.stop.is_some() && session.live_run().is_none() => stop_done(session),
        None => Vec::new(),
    }
}

/// Said once, and only of the turn that runs: its end may have been faster.
fn turn_delivered(session: &Session, turn: TurnId) -> Vec<Event> {
    let is_new = |running: &&ActiveTurn| match &running.leg {
        Some(leg) => leg.id == turn && !leg.delivered,
        None => running.id == turn && !running.delivered,
    };
    let new = session.turn.as_ref().filter(is_new).map(|running| running.id);
    new.map(|turn| InboxEvent::Delivered { turn }.into()).into_iter().collect()
}

pub(super) fn turn_finished(
    session: &Session,
    running: &ActiveTurn,
    outcome: TurnOutcome,
    reason: Option<&str>,
) -> Vec<Event> {
    if running.cancel_requested {
        return interrupted(session, InterruptCause::User, Some("cancelled"));
    }
    let reason = reason.map(|reason| cut(reason, NAME_CHARS_MAX).0.to_owned());
    let review = calls_for_review(session, running, None);
    let finished = TurnEvent::Finished { turn: running.id, outcome, reason, review };
    let over = match outcome {
        TurnOutcome::Completed => Over::Completed,
        TurnOutcome::Failed | TurnOutcome::Refused => Over::Failed,
    };
    let mut events = heard(session, outcome);
    events.extend(turn_over(session, finished.into(), CheckpointReason::TurnEnd, over));
    events
}

/// Acknowledges notices about children: an agent that finished its turn has read those it got before.
fn heard(session: &Session, outcome: TurnOutcome) -> Vec<Event> {
    let of_children = |note: &Note| match note.kind {
        NoteKind::Report | NoteKind::Notice => true,
        NoteKind::Guidance | NoteKind::Steer => false,
    };
    let out = |note: &&Note| of_children(note) && note.status == NoteStatus::Delivered;
    let notes: Vec<NoteId> = session.guidance.iter().filter(out).map(|note| note.id).collect();
    if notes.is_empty() || outcome != TurnOutcome::Completed {
        return Vec::new();
    }
    vec![ControlEvent::GuidanceSettled { notes, how: Settled::Acknowledged }.into()]
}

fn said(role: Role, text: &str, message_id: Option<&str>, parts: &[PromptPart]) -> Event {
    let message_id = message_id.map(|id| cut(id, NAME_CHARS_MAX).0.to_owned());
    TranscriptEvent::Message { role, text: text.to_owned(), message_id, parts: parts.to_vec() }.into()
}

fn tool_called(session: &Session, call: &str, tool: &str, arguments: &serde_json::Value) -> Vec<Event> {
    // Told again after a crash, or by an agent that repeats itself: it is the same call.
    if session.open_calls.iter().any(|open| open == cut(call, NAME_CHARS_MAX).0) {
        return Vec::new();
    }
    let mut events = Vec::with_capacity(3);
    if wants_checkpoint(tool) {
        events.push(checkpoint(session, CheckpointReason::RiskyTool));
    }
    // The record keeps these names, and a signal cannot be refused.
    let (call, tool) = (cut(call, NAME_CHARS_MAX).0.to_owned(), cut(tool, NAME_CHARS_MAX).0.to_owned());
    events.push(TranscriptEvent::ToolCalled { call, tool, arguments: shallow(arguments) }.into());
    // A call after the delivery shows that the agent went on with the words before it. What went in an answer
    // waits for the next call that comes by: this may be the very call that was answered.
    let seen: Vec<NoteId> = session
        .guidance
        .iter()
        .filter(|note| note.status == NoteStatus::Delivered && !in_answer(note))
        .map(|note| note.id)
        .collect();
    if !seen.is_empty() {
        events.push(ControlEvent::GuidanceSettled { notes: seen, how: Settled::Acknowledged }.into());
    }
    events
}

/// Tools that can change a lot at once are preceded by a place to come back to. Names differ (`apply_patch`,
/// `MultiEdit`, `fs.writeFile`), and a checkpoint too many costs less than one too few.
fn wants_checkpoint(tool: &str) -> bool {
    const RISKY: [&str; 8] = ["bash", "shell", "exec", "write", "edit", "patch", "delete", "terminal"];
    let tool = tool.to_ascii_lowercase();
    RISKY.iter().any(|word| tool.contains(word))
}

fn compacted(session: &Session, size_before: u64, size_after: u64, survived: &[String]) -> Event {
    let (anchors_survived, anchors_lost) =
        session.anchors.iter().cloned().partition(|anchor| survived.contains(anchor));
    ContextEvent::Compacted {
        size_before,
        size_after,
        anchors_survived,
        anchors_lost,
        nth: session.compactions + 1,
        checkpoint: session.seq,
    }
    .into()
}

fn stalling(session: &Session, seen: ContextEvent, kind: StallKind, hash: &str, rules: &Rules) -> Vec<Event> {
    let repeats = session.stall.repeats_with(kind, hash);
    let mut events = vec![seen.into()];
    // Said once when the limit is reached, not again for each repeat after it.
    if repeats == rules.limits.stall_repeats {
        events.push(ContextEvent::Stalled { kind, hash: hash.to_owned(), repeats }.into());
    }
    events
}

fn delivered(session: &Session, notes: &[NoteId], channel: &str) -> Vec<Event> {
    let pending: Vec<NoteId> = session
        .guidance
        .iter()
        .filter(|note| note.status == NoteStatus::Pending && notes.contains(&note.id))
        .map(|note| note.id)
        .collect();
    if pending.is_empty() {
        return Vec::new();
    }
    let gone = steered(session, &pending, channel);
    let (call, by, preview) = (None, None, None);
    let channel = channel.to_owned();
    let told = ControlEvent::GuidanceDelivered { notes: pending, channel, call, by, preview };
    [told.into()].into_iter().chain(gone).collect()
}

fn introduced(agent: &str, id: Option<&str>) -> Vec<Event> {
    let short = |text: &str| cut(text, NAME_CHARS_MAX).0.to_owned();
    vec![ControlEvent::Introduced { agent: short(agent), extension_session_id: id.map(short) }.into()]
}

/// A session that was made for a plan stays with it, and one that joined it before need not again.
fn plan_joined(session: &Session, plan: &str) -> Vec<Event> {
    let (plan, _) = cut(plan, NAME_CHARS_MAX);
    let free = session.plan.is_none() || session.plan_joined;
    if free && session.plan.as_deref() != Some(plan) {
        return vec![ChangeEvent::PlanJoined { plan: plan.to_owned() }.into()];
    }
    Vec::new()
}

fn handed_off(from: &str, to: &str, reason: &str) -> Vec<Event> {
    let short = |text: &str| cut(text, NAME_CHARS_MAX).0.to_owned();
    vec![ControlEvent::HandedOff { from: short(from), to: short(to), reason: short(reason) }.into()]
}

fn notice_sent(
    session: &Session,
    (to, note): (Option<SessionId>, Option<NoteId>),
    since: Option<Timestamp>,
) -> Vec<Event> {
    let told = session.notice_due && since.is_none_or(|since| since == session.since);
    if told { vec![ControlEvent::NoticeSent { to, note }.into()] } else { Vec::new() }
}

pub(super) fn interrupted(session: &Session, cause: InterruptCause, reason: Option<&str>) -> Vec<Event> {
    interrupted_with(session, cause, reason, &Receipt::default())
}

fn interrupted_with(
    session: &Session,
    cause: InterruptCause,
    reason: Option<&str>,
    receipt: &Receipt,
) -> Vec<Event> {
    let Some(turn) = &session.turn else { return Vec::new() };
    let lost = matches!(cause, InterruptCause::Crash | InterruptCause::HostLost);
    let (uncertain, reason) = (lost && turn.delivered, reason.map(str::to_owned));
    let receipt = receipt.clone();
    let review = calls_for_review(session, turn, Some(cause));
    let event = TurnEvent::Interrupted { turn: turn.id, cause, reason, uncertain, receipt, review };
    let over = if cause == InterruptCause::User { Over::Cut } else { Over::Failed };
    turn_over(session, event.into(), CheckpointReason::Interruption, over)
}

/// The end of a turn: the event itself, a checkpoint, and the end of the session if a stop was waiting for it.
fn turn_over(session: &Session, event: Event, reason: CheckpointReason, over: Over) -> Vec<Event> {
    let mut events = vec![event, checkpoint(session, reason)];
    events.extend(void_gates(session, "the turn ended"));
    // A stop is confirmed when nothing of the work lives: an agent's process that is still there keeps it waiting.
    // One of the turn alone has what it wanted.
    let of_turn = session.stop.as_ref().is_some_and(|stop| stop.scope == StopScope::Turn);
    let done = session.stop.is_some() && (of_turn || session.live_run().is_none());
    if done {
        events.extend(stop_done(session));
    }
    if !done || of_turn {
        events.extend(after_turn(session, over));
    }
    events
}

/// Confirms a stop: no process that it was to end is left.
pub(super) fn stop_done(session: &Session) -> Vec<Event> {
    match &session.stop {
        Some(stop) if stop.scope == StopScope::Turn => vec![ControlEvent::StopSettled {}.into()],
        stop => {
            let reason = stop.as_ref().and_then(|stop| stop.reason.clone());
            let mut events = withdraw_all(session, SESSION_ENDED);
            events.extend(undelivered(session));
            events.extend(void_escalations(session, "the session ended"));
            events.push(ChangeEvent::Ended { how: Ending::Stopped, reason }.into());
            events
        }
    }
}

pub(super) fn unexpected(session: &Session, signal: &Signal) -> Vec<Event> {
    if session.refused_in_row >= REFUSED_IN_ROW_MAX {
        return Vec::new();
    }
    vec![
        ControlEvent::SignalUnexpected { signal: signal.name().to_owned(), state: session.state.name() }
            .into(),
    ]
}
