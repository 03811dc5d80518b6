//! Asking a person, and whether going on with the session is among the answers. That is decided here and nowhere else: a
//! client offers what the gate carries.

use crate::flow::advance::{Fresh, gate};
use crate::flow::event::FlowEvent;
use crate::flow::gate::{Continuation, EVIDENCE_CHARS_MAX, FlowGateKind, Probe};
use crate::flow::record::{Flow, FlowState, Worked};
use crate::flow::verdict::Item;

/// Why a person is asked.
pub(super) struct Why {
    pub(super) code: &'static str,
    pub(super) reason: String,
    pub(super) items: Vec<Item>,
    pub(super) evidence: Option<String>,
}

impl Why {
    pub(super) const fn plain(code: &'static str, reason: String) -> Self {
        Self { code, reason, items: Vec::new(), evidence: None }
    }
}

/// `next` is the state at which a new session continues the work; `never` is the reason why the old session must not
/// continue.
pub(super) fn escalate(
    flow: &Flow,
    next: FlowState,
    mut why: Why,
    never: Option<&str>,
    probe: Probe,
    fresh: Fresh,
) -> Vec<FlowEvent> {
    why.evidence = why.evidence.as_deref().map(last_of);
    let mut gate = gate(flow, FlowGateKind::Escalation, next, why, fresh);
    match eligible(flow, next, never, probe) {
        Ok(continuation) => (gate.continue_session, gate.not_offered) = (Some(continuation), None),
        Err(why) => gate.not_offered = Some(why),
    }
    // Another role goes on, and its last session knows what this one does not.
    let other = next.role().filter(|role| flow.sessions.last().is_some_and(|worked| worked.role != *role));
    gate.fork_of = other.and_then(|role| flow.last_session(role));
    let reason = Some(gate.reason.clone());
    vec![FlowEvent::Moved { to: FlowState::Escalate, reason }, FlowEvent::GateOpened { gate: Box::new(gate) }]
}

/// The same role in the same state, a session that can be resumed, and no continuation that has just failed. The error
/// says why not.
fn eligible(flow: &Flow, next: FlowState, never: Option<&str>, probe: Probe) -> Result<Continuation, String> {
    let Worked { session, role, .. } = fitting(flow, next)?;
    match never.or_else(|| probe.hindrance()) {
        Some(why) => Err(why.to_owned()),
        None => Ok(Continuation { session: *session, resume_state: next, role: *role, probe }),
    }
}

/// The newest session, when its role and state are those of the work that comes next. The error says why it is
/// not.
pub(super) fn fitting(flow: &Flow, next: FlowState) -> Result<&Worked, String> {
    let Some(worked) = flow.sessions.last() else { return Err("there is no session yet".to_owned()) };
    let (role, state) = (worked.role.as_str(), worked.state);
    match next.role() {
        Some(other) if other != worked.role => {
            Err(format!("the last session is the {role}'s, and the next step is the {}'s", other.as_str()))
        }
        Some(_) if state == next => Ok(worked),
        Some(_) => Err(format!("the last session worked on {state}, and the next step is {next}")),
        None => Err(format!("the next step is {next}, which no agent does")),
    }
}

/// The end of a text, where errors usually are.
fn last_of(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(EVIDENCE_CHARS_MAX);
    text.chars().skip(skip).collect()
}
