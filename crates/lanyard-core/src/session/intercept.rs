//! Interception of a tool call: whether it is executed, and the text that its answer carries. Pure; the daemon calls it
//! before the tool call and again before the answer goes out.

use crate::id::NoteId;
use crate::policy::{Rules, StopRules};
use crate::session::calls::{Call, Channel, Directive, Lead, Passage, Returned, Told};
use crate::session::decide_inbox::{steered, steered_by};
use crate::session::event::{ControlEvent, Event, Settled, TranscriptEvent};
use crate::session::guidance::{Note, NoteStatus};
use crate::session::limit;
use crate::session::record::{REFUSED_IN_ROW_MAX, Session};
use crate::session::stop::{Stop, StopLevel, StopScope, StoppedRun};
use crate::session::writer;
use crate::text::{NAME_CHARS_MAX, cut};
use crate::time::Timestamp;

/// Characters of what was said that the log shows with its delivery.
const PREVIEW_CHARS: usize = 100;
/// Why a stop rose that nobody pressed.
const BY_CALL: &str = "a tool call that does not comply";
/// The reason of a raise by the stop's own deadline, whichever signal showed that it had passed.
pub const DEADLINE_PASSED: &str = "its deadline passed";
/// The code in the log for a call of a run that was stopped before the session was resumed.
const RUN_STOPPED: &str = "run_stopped";

/// Decides before the call is executed. `daemon` is this incarnation of the daemon: notes that another one sent may
/// have been lost with it.
#[must_use]
pub fn call_begins(session: &Session, call: &Call, daemon: &str, rules: &Rules) -> (Vec<Event>, Passage) {
    if session.deleted {
        return (Vec::new(), Passage::Go);
    }
    if let Some(stopped) = session.fence(call.run) {
        return fenced(session, call, stopped);
    }
    if session.state.is_ended() {
        return after_the_end(session, call);
    }
    if call.is_uncertain() {
        return (Vec::new(), anyones(session));
    }
    let mut events = seen_before(session, daemon);
    let Some(stop) = &session.stop else { return (events, Passage::Go) };
    if let Some(how) = call.compliance {
        if stop.complying != Some(how) {
            events.push(ControlEvent::StopComplied { how }.into());
        }
        return (events, Passage::Go);
    }
    let level = if stop.told >= rules.stop.calls.max(1) { stop.level.raised() } else { stop.level };
    if level > stop.level {
        events.push(raised(stop, level, BY_CALL));
    }
    // At level 1 the tool runs and its answer tells; above it does not run.
    if level == StopLevel::Graceful {
        return (events, Passage::Go);
    }
    events.push(applied(call, level, true));
    (events, Passage::Refused(directive(stop, level)))
}

/// Before its answer goes out.
#[must_use]
pub fn call_ends(
    session: &Session,
    call: &Call,
    returned: &Returned,
    daemon: &str,
    now: Timestamp,
    rules: &Rules,
) -> (Vec<Event>, Lead) {
    if session.deleted {
        return (Vec::new(), Lead::default());
    }
    if let Some(stopped) = session.fence(call.run) {
        return (Vec::new(), Lead { stop: Some(terminated(stopped)), notes: Vec::new() });
    }
    if session.state.is_ended() {
        let stop = session.stop.as_ref().filter(|_| call.compliance.is_none());
        let stop = stop.map(|stop| directive(stop, StopLevel::Terminated));
        return (Vec::new(), Lead { stop, notes: Vec::new() });
    }
    let mut events = vec![relayed(call, returned)];
    // Words for the session would be read by its subagent, and a stop obeyed by it.
    if call.is_uncertain() {
        return (events, Lead::default());
    }
    match &session.stop {
        Some(_) if call.compliance.is_some() => (events, Lead::default()),
        // Told once per level; pressed or due while the tool ran, it is told now.
        Some(stop) if stop.told == 0 => {
            events.push(applied(call, stop.level, false));
            (events, Lead { stop: Some(directive(stop, stop.level)), notes: Vec::new() })
        }
        Some(_) => (events, Lead::default()),
        None => {
            events.extend(expired(session, now, rules));
            let notes: Vec<Told> = deliverable(session, now, rules).map(told).collect();
            if !notes.is_empty() {
                let ids: Vec<NoteId> = notes.iter().map(|told| told.note).collect();
                events.push(delivered(&notes, call, daemon));
                events.extend(steered(session, &ids, call.channel.as_str()));
            }
            (events, Lead { stop: None, notes })
        }
    }
}

/// Records a call whose answer already went out, since nothing was pending then. The call carries nothing: later notes
/// wait for an answer that is still to go.
#[must_use]
pub fn call_passed(session: &Session, call: &Call, returned: &Returned) -> Vec<Event> {
    let over = session.deleted || session.state.is_ended() || session.fence(call.run).is_some();
    if over { Vec::new() } else { vec![relayed(call, returned)] }
}

/// Level 3 is durable: every later call gets the same error. So does a call after a session ended in answer to a stop,
/// but not after any other end.
fn after_the_end(session: &Session, call: &Call) -> (Vec<Event>, Passage) {
    match &session.stop {
        Some(stop) if call.compliance.is_none() => {
            let quiet = session.refused_in_row >= REFUSED_IN_ROW_MAX || call.is_uncertain();
            let events = if quiet { Vec::new() } else { vec![applied(call, StopLevel::Terminated, true)] };
            (events, Passage::Refused(directive(stop, StopLevel::Terminated)))
        }
        Some(_) | None => (Vec::new(), Passage::Go),
    }
}

/// A run that was stopped gets the error of level 3 for every call, also after the session was resumed: it acts for the
/// session no more, not even to comply.
fn fenced(session: &Session, call: &Call, stopped: &StoppedRun) -> (Vec<Event>, Passage) {
    let quiet = session.refused_in_row >= REFUSED_IN_ROW_MAX || call.is_uncertain();
    let refused = ControlEvent::CommandRefused {
        command: "tool_call".to_owned(),
        code: RUN_STOPPED.to_owned(),
        state: session.state.name(),
    };
    let events = if quiet { Vec::new() } else { vec![refused.into()] };
    (events, Passage::Refused(terminated(stopped)))
}

fn terminated(stopped: &StoppedRun) -> Directive {
    Directive { level: StopLevel::Terminated, scope: stopped.scope, reason: stopped.reason.clone() }
}

/// A call that may be the session's own or a subagent's: a stop of the whole family reaches both, one of the session
/// alone must not reach the subagent. Nothing is counted either way.
fn anyones(session: &Session) -> Passage {
    let stop = session.stop.as_ref().filter(|stop| stop.scope == StopScope::Subtree);
    match stop.filter(|stop| stop.level > StopLevel::Graceful) {
        Some(stop) => Passage::Refused(directive(stop, stop.level)),
        None => Passage::Go,
    }
}

/// Acknowledges the notes of earlier answers: this call shows that the agent continued after them. Notes of another
/// daemon may not have arrived, and are delivered again.
fn seen_before(session: &Session, daemon: &str) -> Vec<Event> {
    let out = |note: &&Note| note.status == NoteStatus::Delivered && in_answer(note);
    let (seen, lost): (Vec<&Note>, Vec<&Note>) =
        session.guidance.iter().filter(out).partition(|note| sent_by(note, daemon));
    let ids = |notes: Vec<&Note>| notes.into_iter().map(|note| note.id).collect::<Vec<NoteId>>();
    let (seen, lost) = (ids(seen), ids(lost));
    let mut events = Vec::new();
    if !seen.is_empty() {
        events.push(ControlEvent::GuidanceSettled { notes: seen, how: Settled::Acknowledged }.into());
    }
    if !lost.is_empty() {
        events.push(ControlEvent::GuidanceReturned { notes: lost }.into());
    }
    events
}

/// Whether it went in the answer of a call, and so is acknowledged by the next one.
pub(super) fn in_answer(note: &Note) -> bool {
    let by_call = [Channel::Mcp.as_str(), Channel::Hook.as_str()];
    note.delivery.as_ref().is_some_and(|delivery| by_call.contains(&delivery.channel.as_str()))
}

fn sent_by(note: &Note, daemon: &str) -> bool {
    note.delivery.as_ref().and_then(|delivery| delivery.by.as_deref()) == Some(daemon)
}

/// Handles an answer that broke off: its notes are delivered again, even when a concurrent call has acknowledged them
/// meanwhile.
pub(super) fn answer_lost(session: &Session, notes: &[NoteId]) -> Vec<Event> {
    let out = |note: &&Note| {
        notes.contains(&note.id)
            && matches!(note.status, NoteStatus::Delivered | NoteStatus::Acknowledged)
            && in_answer(note)
    };
    let lost = session.guidance.iter().chain(&session.guidance_settled).filter(out);
    let lost: Vec<NoteId> = lost.map(|note| note.id).collect();
    if lost.is_empty() || session.state.is_ended() || session.deleted {
        return Vec::new();
    }
    vec![ControlEvent::GuidanceReturned { notes: lost }.into()]
}

/// A deadline has come: a stop rises, guidance that could not be told in time is given up, the writer changes.
pub(super) fn due(session: &Session, now: Timestamp, rules: &Rules) -> Vec<Event> {
    if session.state.is_ended() || session.deleted {
        return Vec::new();
    }
    let mut events = expired(session, now, rules);
    events.extend(writer::due(session, now));
    events.extend(limit::limit_over(session, now));
    if let Some(stop) = &session.stop
        && deadline(stop, &rules.stop).is_some_and(|at| at <= now)
    {
        events.push(raised(stop, stop.level.raised(), DEADLINE_PASSED));
    }
    events
}

/// The time of the next deadline of the session: its stop, its guidance or a request to take over.
#[must_use]
pub fn next_due(session: &Session, rules: &Rules) -> Option<Timestamp> {
    if session.state.is_ended() || session.deleted {
        return None;
    }
    let pending = session.guidance.iter().filter(|note| note.status == NoteStatus::Pending);
    let pending = pending.filter(|note| note.kind.expires());
    let expires = rules.limits.guidance_expires_ms;
    let expiry = pending.filter(|_| expires > 0).map(|note| note.queued_at.plus_millis(expires)).min();
    let stop = session.stop.as_ref().and_then(|stop| deadline(stop, &rules.stop));
    [expiry, stop, writer::next_due(session), limit::next_due(session)].into_iter().flatten().min()
}

fn deadline(stop: &Stop, rules: &StopRules) -> Option<Timestamp> {
    let after = match stop.level {
        StopLevel::Graceful => rules.graceful_ms,
        StopLevel::Immediate => rules.immediate_ms,
        StopLevel::Terminated => return None,
    };
    Some(stop.level_at.plus_millis(after))
}

fn is_expired(note: &Note, now: Timestamp, rules: &Rules) -> bool {
    let expires = rules.limits.guidance_expires_ms;
    // What would be a turn of its own waits for as long as the turn it is meant for; a report waits for ever.
    expires > 0
        && note.status == NoteStatus::Pending
        && note.kind.expires()
        && now.millis_since(note.queued_at) >= expires
}

fn expired(session: &Session, now: Timestamp, rules: &Rules) -> Vec<Event> {
    let over = session.guidance.iter().filter(|note| is_expired(note, now, rules));
    let notes: Vec<NoteId> = over.map(|note| note.id).collect();
    if notes.is_empty() {
        return Vec::new();
    }
    vec![ControlEvent::GuidanceSettled { notes, how: Settled::Expired }.into()]
}

fn deliverable<'a>(session: &'a Session, now: Timestamp, rules: &'a Rules) -> impl Iterator<Item = &'a Note> {
    let pending = session.guidance.iter().filter(|note| note.status == NoteStatus::Pending);
    pending.filter(move |note| !is_expired(note, now, rules) && !has_parts(session, note))
}

/// Whether the note is a message with something attached, which no answer of a tool call can carry.
fn has_parts(session: &Session, note: &Note) -> bool {
    steered_by(session, note.id).is_some_and(|waiting| !waiting.parts.is_empty())
}

fn told(note: &Note) -> Told {
    Told {
        note: note.id,
        text: note.text.clone(),
        by: note.by.clone(),
        queued_at: note.queued_at,
        kind: note.kind,
        again: note.again,
    }
}

fn delivered(notes: &[Told], call: &Call, daemon: &str) -> Event {
    let words: Vec<&str> = notes.iter().map(|told| told.text.as_str()).collect();
    ControlEvent::GuidanceDelivered {
        notes: notes.iter().map(|told| told.note).collect(),
        channel: call.channel.as_str().to_owned(),
        call: Some(name(&call.id)),
        by: Some(daemon.to_owned()),
        preview: Some(cut(&words.join("\n"), PREVIEW_CHARS).0.to_owned()),
    }
    .into()
}

fn directive(stop: &Stop, level: StopLevel) -> Directive {
    Directive { level, scope: stop.scope, reason: stop.reason.clone() }
}

fn raised(stop: &Stop, to: StopLevel, why: &str) -> Event {
    ControlEvent::StopRaised { from: stop.level, to, scope: None, reason: Some(why.to_owned()) }.into()
}

fn applied(call: &Call, level: StopLevel, refused: bool) -> Event {
    let (id, tool) = (name(&call.id), name(&call.tool));
    ControlEvent::StopApplied { level, channel: call.channel, call: id, tool, refused }.into()
}

fn relayed(call: &Call, returned: &Returned) -> Event {
    TranscriptEvent::ToolRelayed {
        call: name(&call.id),
        server: call.server.as_deref().map(name),
        tool: name(&call.tool),
        channel: call.channel,
        is_error: returned.is_error,
        took_ms: returned.took_ms,
        bytes: returned.bytes,
        uncertain: call.is_uncertain(),
    }
    .into()
}

/// The record keeps names, and a call cannot be refused for a long one.
fn name(text: &str) -> String {
    cut(text, NAME_CHARS_MAX).0.to_owned()
}
