//! The report of a flow, for people and for programs. The log alone determines it: the log is replayed, and each step
//! is recorded where it happened. There is no clock; an unfinished step lasts until the last event.

mod markdown;

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flow::event::{Conclusion, FlowEnvelope, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGate, FlowGateKind};
use crate::flow::record::{Flow, FlowKind, FlowRole, FlowState, PhaseState};
use crate::flow::verdict::{Item, Readiness};
use crate::id::{FlowId, GateId, SessionId};
use crate::log::Record as _;
use crate::time::Timestamp;

pub use markdown::markdown;

/// A flow told as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowStory {
    pub flow: FlowId,
    pub kind: FlowKind,
    pub title: String,
    pub state: FlowState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub plan: String,
    pub workspace: String,
    /// The branch with the work, when the flow had a worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that branch began at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The commit of what was left uncommitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<String>,
    pub begun_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// From its beginning to its end, or to the last that happened.
    pub elapsed_ms: u64,
    pub spent: Spent,
    pub steps: u32,
    /// The review of a plan counts as one phase.
    pub phases: Vec<PhaseReport>,
    pub sessions: Vec<SessionReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PhaseReport {
    pub title: String,
    pub state: PhaseState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub steps: u32,
    /// Interrupted turns that were retried.
    pub auto_retries: u32,
    /// Times the author was sent back by checks.
    pub quality_retries: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewReport {
    pub step: u32,
    pub readiness: Readiness,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Checks of one round have one step.
    pub step: u32,
    pub name: String,
    pub passed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateReport {
    pub gate: GateId,
    pub kind: FlowGateKind,
    pub step: u32,
    pub code: String,
    pub reason: String,
    pub opened_at: Timestamp,
    /// Absent while the gate is open, and when the flow ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The actor who answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Until the answer, or until the last that happened.
    pub waited_ms: u64,
}

/// One invocation of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    pub session: SessionId,
    pub step: u32,
    pub role: FlowRole,
    pub state: FlowState,
    /// The invocation continued an existing session.
    pub continued: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<SessionId>,
    /// The result or the failure in one word. Absent while the agent works, and when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    pub spent: Spent,
}

/// Adds a flow's log up to a report.
#[must_use]
pub fn report(flow: &Flow, log: &[FlowEnvelope]) -> FlowStory {
    let mut report = plain(flow);
    let mut now: Option<Flow> = None;
    let mut last = flow.created_at;
    for entry in log {
        last = entry.at;
        match &mut now {
            None => now = Flow::born(entry).ok(),
            Some(now) => {
                let before = (now.phase, now.step);
                note(&mut report, now, entry);
                // The store has checked it; what does not follow is left out.
                let _ = now.apply(entry);
                if let Some(phase) = report.phases.get_mut(before.0) {
                    phase.steps += now.step.saturating_sub(before.1);
                }
            }
        }
    }
    for gate in report.phases.iter_mut().flat_map(|phase| &mut phase.gates) {
        if gate.choice.is_none() {
            gate.waited_ms = last.millis_since(gate.opened_at);
        }
    }
    report.elapsed_ms = report.ended_at.unwrap_or(last).millis_since(report.begun_at);
    report
}

/// The report from the record alone.
fn plain(flow: &Flow) -> FlowStory {
    let blank = |title: &str, state, commit: Option<&String>| PhaseReport {
        title: title.to_owned(),
        state,
        commit: commit.cloned(),
        ..PhaseReport::default()
    };
    let phases = match flow.kind {
        FlowKind::Phases => {
            flow.phases.iter().map(|phase| blank(&phase.title, phase.state, phase.commit.as_ref())).collect()
        }
        FlowKind::PlanReview => vec![blank(&flow.title, PhaseState::Active, None)],
    };
    FlowStory {
        flow: flow.id,
        kind: flow.kind,
        title: flow.title.clone(),
        state: flow.state,
        reason: flow.reason.clone(),
        plan: flow.plan.clone(),
        workspace: flow.workspace.clone(),
        branch: flow.tree.as_ref().map(|tree| tree.branch.clone()),
        base: flow.tree.as_ref().map(|tree| tree.base.clone()),
        captured: flow.captured.as_ref().map(|captured| captured.commit.clone()),
        begun_at: flow.created_at,
        ended_at: None,
        elapsed_ms: 0,
        spent: flow.spent,
        steps: flow.step,
        phases,
        sessions: Vec::new(),
    }
}

/// One event, with the flow as it was before it.
fn note(report: &mut FlowStory, now: &Flow, entry: &FlowEnvelope) {
    let FlowStory { phases, sessions, ended_at, kind, .. } = report;
    let mut nowhere = PhaseReport::default();
    let phase = phases.get_mut(now.phase).unwrap_or(&mut nowhere);
    match &entry.event {
        FlowEvent::Invoked { .. } => sessions.extend(begun(now, &entry.event)),
        FlowEvent::Concluded { conclusion, spent } => {
            if let Some(session) = sessions.last_mut() {
                session.result = Some(result(conclusion).to_owned());
                session.spent = *spent;
            }
            if let Conclusion::Verdict(verdict) = conclusion {
                phase.reviews.push(ReviewReport {
                    step: now.step,
                    readiness: verdict.readiness,
                    score: verdict.score,
                    summary: verdict.summary.clone(),
                    items: verdict.items.clone(),
                });
            }
        }
        FlowEvent::CheckEnded { result } => phase.checks.push(CheckReport {
            step: now.step,
            name: result.name.clone(),
            passed: result.passed,
            timed_out: result.timed_out,
            error: result.error.clone(),
            ms: result.ms,
        }),
        FlowEvent::Retried { .. } => phase.auto_retries += 1,
        FlowEvent::Moved { to: FlowState::QualityRetry, .. } if now.state == FlowState::QualityCheck => {
            phase.quality_retries += 1;
        }
        FlowEvent::GateOpened { gate } => phase.gates.push(asked(gate, entry.at)),
        FlowEvent::GateAnswered { gate, answer } => {
            for asked in phase.gates.iter_mut().filter(|asked| asked.gate == *gate) {
                asked.choice = Some(answer.choice);
                asked.by = Some(answer.by.name.clone());
                asked.guidance.clone_from(&answer.guidance);
                asked.waited_ms = entry.at.millis_since(asked.opened_at);
            }
        }
        FlowEvent::Ended { state, .. } => {
            *ended_at = Some(entry.at);
            if *kind == FlowKind::PlanReview {
                phase.state = plan_state(*state, phase.gates.last());
            }
        }
        FlowEvent::Resumed {} => *ended_at = None,
        FlowEvent::Created(_)
        | FlowEvent::Leased { .. }
        | FlowEvent::TreeMade { .. }
        | FlowEvent::Asked { .. }
        | FlowEvent::CheckBegun { .. }
        | FlowEvent::Moved { .. }
        | FlowEvent::PhaseEnded { .. }
        | FlowEvent::ContinuationWithdrawn { .. }
        | FlowEvent::SessionPreserved { .. }
        | FlowEvent::SessionReleased { .. }
        | FlowEvent::Settled { .. }
        | FlowEvent::Hooked { .. } => {}
    }
}

/// The end of a plan's review; an override by a person is reported as such.
fn plan_state(state: FlowState, gate: Option<&GateReport>) -> PhaseState {
    let overridden = gate.is_some_and(|gate| gate.choice == Some(Choice::Approve));
    match state == FlowState::Approved {
        true if overridden => PhaseState::Overridden,
        true => PhaseState::Complete,
        false => PhaseState::Active,
    }
}

fn begun(now: &Flow, event: &FlowEvent) -> Option<SessionReport> {
    let FlowEvent::Invoked { step, role, session, continues, fork_of, .. } = event else { return None };
    Some(SessionReport {
        session: *session,
        step: *step,
        role: *role,
        state: now.state,
        continued: *continues,
        fork_of: *fork_of,
        result: None,
        spent: Spent::default(),
    })
}

const fn result(conclusion: &Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Author(status) => status.status.as_str(),
        Conclusion::Verdict(verdict) => verdict.readiness.as_str(),
        Conclusion::Failed { kind, .. } => kind.as_str(),
        Conclusion::Cancelled { .. } => "cancelled",
    }
}

fn asked(gate: &FlowGate, at: Timestamp) -> GateReport {
    GateReport {
        gate: gate.id,
        kind: gate.kind,
        step: gate.step,
        code: gate.code.clone(),
        reason: gate.reason.clone(),
        opened_at: at,
        choice: None,
        by: None,
        guidance: None,
        waited_ms: 0,
    }
}
