//! The next action of a flow, and the consequences of a finished one.

use crate::actor::Actor;
use crate::flow::escalate::{Why, escalate, fitting};
use crate::flow::event::{Conclusion, FailKind, FlowEnvelope, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGate, FlowGateKind, Probe};
use crate::flow::record::{
    CheckResult, Flow, FlowKind, FlowRole, FlowState, Invocation, PhaseState, Preserved, Stage,
};
use crate::flow::settings::{Asking, GateDefault};
use crate::flow::verdict::{Action, AuthorStatus, Progress, Readiness, Verdict};
use crate::id::{GateId, SessionId};
use crate::log::Record as _;
use crate::time::Timestamp;

/// Inputs of a decision that are not in the record.
#[derive(Debug, Clone, Copy)]
pub struct Fresh {
    pub now: Timestamp,
    /// The id of a gate, should one be opened.
    pub gate: GateId,
}

/// The state of an invocation's session at its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looked {
    pub probe: Probe,
    /// Tokens it has used so far.
    pub tokens: u64,
    /// The prompt that is waited for certainly did not reach it; otherwise it may have.
    pub unheard: bool,
}

/// The daemon's next action for the flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowWant {
    /// Make its worktree, where it is to have one and can.
    MakeTree,
    /// Choose ids, write [`FlowEvent::Invoked`] down, and then see to it.
    Invoke {
        role: FlowRole,
        session: Option<SessionId>,
        fork_of: Option<SessionId>,
        guidance: Option<String>,
    },
    /// See to the turn of the invocation that is written down.
    Attend,
    /// Write [`FlowEvent::CheckBegun`] down, and then run it.
    Check {
        place: usize,
    },
    /// See to the check that is written down.
    AttendCheck,
    /// Too many steps passed without a person's decision: see [`cut_off`].
    CutOff,
    /// Wait for a person.
    Answer,
    /// The flow has ended: clean up its folder.
    Settle,
    Nothing,
}

/// Changes that come from the passing of time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The turn of the invocation took too long.
    Timeout,
    /// The gate's deadline came.
    Answer { gate: GateId, choice: Choice },
    /// A session nobody waits for has had its time.
    Reap { session: SessionId },
}

/// `tree` says whether it is to have a worktree that is not made yet.
#[must_use]
pub fn want(flow: &Flow, tree: bool) -> FlowWant {
    if flow.state.is_ended() {
        return if flow.settled { FlowWant::Nothing } else { FlowWant::Settle };
    }
    if flow.state.asks() {
        return FlowWant::Answer;
    }
    if tree {
        return FlowWant::MakeTree;
    }
    if flow.invocation.is_some() {
        return FlowWant::Attend;
    }
    if flow.check.is_some() {
        return FlowWant::AttendCheck;
    }
    if flow.step.saturating_sub(flow.decided_at_step) >= flow.settings.rules.steps {
        return FlowWant::CutOff;
    }
    if flow.state == FlowState::QualityCheck {
        return FlowWant::Check { place: flow.checks.len() };
    }
    match flow.state.role() {
        Some(role) => {
            let pending = flow.pending.clone().unwrap_or_default();
            let (session, fork_of, guidance) = (pending.session, pending.fork_of, pending.guidance);
            FlowWant::Invoke { role, session, fork_of, guidance }
        }
        None => FlowWant::Nothing,
    }
}

#[must_use]
pub fn due(flow: &Flow, now: Timestamp) -> Vec<Due> {
    let mut found = Vec::new();
    for kept in &flow.preserved {
        if kept.until.is_some_and(|until| until <= now) {
            found.push(Due::Reap { session: kept.session });
        }
    }
    if flow.state.is_ended() {
        return found;
    }
    if let Some(invocation) = &flow.invocation {
        let limit = flow.settings.role(invocation.role).timeout_ms;
        if limit > 0 && now.millis_since(invocation.asked_at) >= limit {
            found.push(Due::Timeout);
        }
    }
    if let Some(gate) = flow.gate.as_ref().filter(|gate| gate.is_open())
        && gate.deadline.is_some_and(|deadline| deadline <= now)
    {
        let choice = match gate.default {
            GateDefault::Wait => None,
            // Once: a session that asks again needs a person, and a deadline has nothing new to tell it.
            GateDefault::ContinueSession if was_continued(flow) => None,
            GateDefault::ContinueSession => Some(Choice::ContinueSession),
            GateDefault::Abort => Some(Choice::Abort),
        };
        // What is not offered is not chosen either: it goes on to wait.
        let choice = choice.filter(|choice| gate.offers(*choice));
        found.extend(choice.map(|choice| Due::Answer { gate: gate.id, choice }));
    }
    found
}

/// The invocation came to its end.
#[must_use]
pub fn conclude(
    flow: &Flow,
    conclusion: Conclusion,
    spent: Spent,
    looked: Looked,
    fresh: Fresh,
) -> Vec<FlowEvent> {
    let Some(invocation) = flow.invocation.clone() else { return Vec::new() };
    let conclusion = by_role(invocation.role, conclusion);
    let first = FlowEvent::Concluded { conclusion: conclusion.clone(), spent };
    let after = peek(flow, &first, fresh);
    let mut events = vec![first];
    events.extend(match conclusion {
        Conclusion::Author(status) => author(&after, &invocation, &status, looked, fresh),
        Conclusion::Verdict(verdict) => reviewed(&after, &verdict, looked, fresh),
        Conclusion::Failed { kind, reason } => failed(&after, &invocation, kind, &reason, looked, fresh),
        Conclusion::Cancelled { reason } => {
            vec![FlowEvent::Ended { state: FlowState::Aborted, reason: Some(reason) }]
        }
    });
    events
}

/// Turns a conclusion of the other role into an unreadable failure.
fn by_role(role: FlowRole, conclusion: Conclusion) -> Conclusion {
    let other = match &conclusion {
        Conclusion::Author(_) => role != FlowRole::Author,
        Conclusion::Verdict(_) => role != FlowRole::Reviewer,
        Conclusion::Failed { .. } | Conclusion::Cancelled { .. } => false,
    };
    let reason = || {
        format!("it is not what a{} says", if role == FlowRole::Author { "n author" } else { " reviewer" })
    };
    if other { Conclusion::Failed { kind: FailKind::Unreadable, reason: reason() } } else { conclusion }
}

/// The flow as it will be after an event.
pub(super) fn peek(flow: &Flow, event: &FlowEvent, fresh: Fresh) -> Flow {
    let mut after = flow.clone();
    let actor = Actor::system("flow");
    let envelope =
        FlowEnvelope { flow: flow.id, seq: flow.seq + 1, at: fresh.now, actor, event: event.clone() };
    // What does not apply is found when it is written.
    let _ = after.apply(&envelope);
    after
}

fn author(
    flow: &Flow,
    invocation: &Invocation,
    status: &AuthorStatus,
    looked: Looked,
    fresh: Fresh,
) -> Vec<FlowEvent> {
    let reason = status.reason.clone().unwrap_or_default();
    let (code, reason, never) = match status.status {
        Progress::Complete => {
            let checked = flow.kind == FlowKind::Phases && !flow.settings.quality.is_empty();
            return go(if checked { FlowState::QualityCheck } else { FlowState::Review }, None);
        }
        // A question is no failure: the session that asks can be answered, however often it asks.
        Progress::NeedsHuman => ("needs_human", format!("The author needs a person: {reason}"), None),
        Progress::Failed => ("author_failed", format!("The author says it failed: {reason}"), tried(flow)),
    };
    let why = Why { code, reason, items: Vec::new(), evidence: status.notes.clone() };
    escalate(flow, invocation.state, why, never, looked.probe, fresh)
}

fn reviewed(flow: &Flow, verdict: &Verdict, looked: Looked, fresh: Fresh) -> Vec<FlowEvent> {
    let rules = &flow.settings.rules;
    let why = |code, reason: String| Why {
        code,
        reason,
        items: verdict.items.clone(),
        evidence: verdict.summary.clone(),
    };
    let ask = |why| escalate(flow, FlowState::AutoFix, why, None, looked.probe, fresh);
    match verdict.readiness {
        Readiness::Ready => return ready(flow, fresh),
        Readiness::ReadyWithCorrections if verdict.items.is_empty() => return ready(flow, fresh),
        Readiness::NotReady if verdict.items.is_empty() => {
            let reason = "The reviewer says it is not ready and does not say why.".to_owned();
            let why = why("review_without_items", reason);
            return escalate(flow, FlowState::Review, why, None, looked.probe, fresh);
        }
        Readiness::ReadyWithCorrections | Readiness::NotReady => {}
    }
    let human = verdict.items.iter().filter(|item| item.action == Action::HumanRequired).count();
    if human > 0 {
        let reason = format!("The review has {human} of {} items for a person.", verdict.items.len());
        return ask(why("review_items", reason));
    }
    if flow.stall.issue_repeats >= rules.stall_repeats {
        let times = flow.stall.issue_repeats;
        return ask(why("stalled_issues", format!("The same issues came back {times} times.")));
    }
    if flow.iteration >= rules.review_iterations {
        let reason = format!("It was reviewed {} times and is not ready.", flow.iteration);
        return ask(why("review_iterations", reason));
    }
    if rules.review_gate == Asking::Auto {
        return go(FlowState::AutoFix, None);
    }
    let reason = format!("The reviewer asks for {} corrections.", verdict.items.len());
    let gate = gate(flow, FlowGateKind::Review, FlowState::AutoFix, why("corrections", reason), fresh);
    vec![FlowEvent::Moved { to: FlowState::ReviewGate, reason: None }, opened(gate)]
}

/// Continues approved work, through a gate where the settings ask for one.
fn ready(flow: &Flow, fresh: Fresh) -> Vec<FlowEvent> {
    if flow.kind == FlowKind::PlanReview {
        return vec![FlowEvent::Ended { state: FlowState::Approved, reason: None }];
    }
    let mut events = go(FlowState::PhaseGate, None);
    if flow.settings.rules.phase_gate == Asking::Auto {
        events.extend(phase_done(flow, PhaseState::Complete));
        return events;
    }
    let title = flow.active().map(|phase| phase.title.clone()).unwrap_or_default();
    let why = Why::plain("phase_ready", format!("\"{title}\" was found ready."));
    events.push(opened(gate(flow, FlowGateKind::Phase, FlowState::AutoFix, why, fresh)));
    events
}

/// The phase is over; the next begins, or the flow is complete.
pub(super) fn phase_done(flow: &Flow, how: PhaseState) -> Vec<FlowEvent> {
    let mut events = go(FlowState::PhaseComplete, None);
    events.push(FlowEvent::PhaseEnded { phase: flow.phase, state: how });
    let left = flow.phases.iter().skip(flow.phase + 1).any(|phase| phase.state == PhaseState::Open);
    events.push(if left {
        FlowEvent::Moved { to: FlowState::Execute, reason: None }
    } else {
        FlowEvent::Ended { state: FlowState::Completed, reason: None }
    });
    events
}

fn failed(
    flow: &Flow,
    invocation: &Invocation,
    kind: FailKind,
    reason: &str,
    looked: Looked,
    fresh: Fresh,
) -> Vec<FlowEvent> {
    let rules = &flow.settings.rules;
    let stalled = flow.stall.error_repeats >= rules.stall_repeats;
    if kind == FailKind::Transient && !stalled && flow.auto_retries < rules.auto_retries {
        return vec![retry(invocation, reason, looked)];
    }
    let mut events = Vec::new();
    let role = invocation.role.as_str();
    let aborts = flow.settings.role(invocation.role).abort_on_timeout;
    let (code, never) = match kind {
        FailKind::Timeout if aborts => ("timeout", Some("its turn was ended when it took too long")),
        FailKind::Timeout => {
            if !looked.probe.idle && looked.probe.exists {
                events.push(preserve(flow, invocation, looked.tokens, fresh));
            }
            ("timeout", tried(flow))
        }
        // These pass: another try may do.
        FailKind::Transient => ("transient", None),
        FailKind::Busy => ("busy", None),
        FailKind::Gone => ("gone", Some("its session is gone")),
        FailKind::Exhausted => ("exhausted", Some("its context is used up")),
        FailKind::Unreadable => ("unreadable", tried(flow)),
        FailKind::Failed => ("agent_failed", tried(flow)),
        FailKind::NotStarted => ("not_started", Some("there is no session yet")),
    };
    let never = never.or_else(|| untold(invocation, looked).then_some("it was never told what to do"));
    let code = if stalled { "stalled_errors" } else { code };
    let words = match kind {
        FailKind::Timeout => format!("The {role} took too long: {reason}"),
        FailKind::Unreadable => format!("What the {role} answered cannot be read: {reason}"),
        FailKind::NotStarted => format!("The {role} could not be started: {reason}"),
        FailKind::Transient | FailKind::Busy | FailKind::Gone | FailKind::Exhausted | FailKind::Failed => {
            format!("The {role} has no result: {reason}")
        }
    };
    events.extend(escalate(flow, invocation.state, Why::plain(code, words), never, looked.probe, fresh));
    events
}

/// Retries an invocation in the same session where it can continue and knows its task, else in a new one. Guidance goes
/// to a session that has not received it, and to none twice.
fn retry(invocation: &Invocation, reason: &str, looked: Looked) -> FlowEvent {
    let able = looked.probe.hindrance().is_none() && !untold(invocation, looked);
    let session = able.then_some(invocation.session);
    let unheard = looked.unheard && invocation.stage == Stage::Work;
    let guidance = match session {
        None => invocation.words().cloned(),
        Some(_) => invocation.guidance.clone().filter(|_| unheard),
    };
    FlowEvent::Retried { session, reason: reason.to_owned(), guidance }
}

/// A new session whose first prompt did not reach it: there is nothing it could go on with.
fn untold(invocation: &Invocation, looked: Looked) -> bool {
    looked.unheard && !invocation.continues && invocation.stage == Stage::Work
}

/// Withdraws the offer after a continuation that itself failed, which would otherwise repeat without end. A retry
/// of the flow's own is no continuation that a person chose, and withdraws nothing.
fn tried(flow: &Flow) -> Option<&'static str> {
    was_continued(flow).then_some("continuing it failed")
}

/// Whether the newest session was continued by an answer at a gate.
fn was_continued(flow: &Flow) -> bool {
    flow.sessions.last().is_some_and(|worked| worked.chosen)
}

fn preserve(flow: &Flow, invocation: &Invocation, tokens: u64, fresh: Fresh) -> FlowEvent {
    let limit = flow.settings.rules.preserve_ms;
    let until = (limit > 0).then(|| fresh.now.plus_millis(limit));
    let (session, turn) = (invocation.session, invocation.turn);
    FlowEvent::SessionPreserved { preserved: Preserved { session, turn, since: fresh.now, until, tokens } }
}

/// Records the end of a check. `looked` is the state of the flow's newest session: the author's, which can be
/// continued.
#[must_use]
pub fn quality_ended(flow: &Flow, result: CheckResult, looked: Looked, fresh: Fresh) -> Vec<FlowEvent> {
    if flow.check.is_none() {
        return Vec::new();
    }
    let not_started = result.error.clone();
    let event = FlowEvent::CheckEnded { result };
    let flow = peek(flow, &event, fresh);
    let mut events = vec![event];
    let rules = &flow.settings.rules;
    if let Some(error) = not_started {
        // No author can mend what is wrong with the config.
        let why = Why::plain("quality_not_started", format!("A check could not be run: {error}"));
        events.extend(escalate(&flow, FlowState::QualityCheck, why, None, Probe::default(), fresh));
        return events;
    }
    if flow.checks.len() < flow.settings.quality.len() {
        return events;
    }
    let failed: Vec<&CheckResult> = flow.checks.iter().filter(|check| !check.passed).collect();
    let Some(worst) = failed.first() else {
        events.extend(go(FlowState::Review, None));
        return events;
    };
    let stalled = flow.stall.error_repeats >= rules.stall_repeats;
    if !stalled && flow.quality_retries < rules.quality_retries {
        let names: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
        events.extend(go(FlowState::QualityRetry, Some(format!("failed: {}", names.join(", ")))));
        return events;
    }
    let (code, reason) = if stalled {
        let times = flow.stall.error_repeats;
        ("stalled_errors", format!("`{}` failed with the same error {times} times.", worst.name))
    } else {
        ("quality_failed", format!("`{}` still fails after {} tries.", worst.name, flow.quality_retries))
    };
    let why = Why { code, reason, items: Vec::new(), evidence: Some(worst.output.clone()) };
    events.extend(escalate(&flow, FlowState::QualityRetry, why, None, looked.probe, fresh));
    events
}

/// Too many steps without a person.
#[must_use]
pub fn cut_off(flow: &Flow, fresh: Fresh) -> Vec<FlowEvent> {
    let steps = flow.settings.rules.steps;
    let why = Why::plain("steps", format!("It took {steps} steps without an approval."));
    // The failure is not about a session, so no probe was made.
    escalate(flow, flow.state, why, Some("it is not about one session"), Probe::default(), fresh)
}

fn go(to: FlowState, reason: Option<String>) -> Vec<FlowEvent> {
    vec![FlowEvent::Moved { to, reason }]
}

fn opened(gate: FlowGate) -> FlowEvent {
    FlowEvent::GateOpened { gate: Box::new(gate) }
}

/// The deadline of a gate that opens now.
pub(super) fn deadline(flow: &Flow, now: Timestamp) -> Option<Timestamp> {
    let wait_ms = flow.settings.rules.gate_deadline_ms;
    (wait_ms > 0).then(|| now.plus_millis(wait_ms))
}

/// A gate that does not offer to continue a session.
pub(super) fn gate(flow: &Flow, kind: FlowGateKind, next: FlowState, why: Why, fresh: Fresh) -> FlowGate {
    FlowGate {
        id: fresh.gate,
        kind,
        step: flow.step + 1,
        from: flow.state,
        next,
        code: why.code.to_owned(),
        reason: why.reason,
        items: why.items,
        iteration: flow.iteration,
        evidence: why.evidence,
        continue_session: None,
        not_offered: fitting(flow, next).err(),
        fork_of: None,
        opened_at: fresh.now,
        deadline: deadline(flow, fresh.now),
        default: flow.settings.rules.gate_default,
        answered: None,
    }
}
