//! Commands to a flow: begin, answer, end and continue.

use crate::actor::Actor;
use crate::flow::advance::{Fresh, deadline, phase_done};
use crate::flow::event::{FlowCreated, FlowEvent};
use crate::flow::gate::{Choice, FlowGate, FlowGateKind, GateAnswered, Probe};
use crate::flow::record::{Flow, FlowKind, FlowState, Phase, PhaseState};
use crate::flow::refusal::FlowRefusal;
use crate::flow::settings::FlowSettings;
use crate::id::GateId;

/// Characters of a person's words at a gate.
pub const GUIDANCE_CHARS_MAX: usize = 8_000;

/// The request for a new flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFlow {
    pub kind: FlowKind,
    pub title: String,
    pub plan: String,
    pub plan_hash: String,
    pub workspace: String,
    pub settings: FlowSettings,
    pub phases: Vec<Phase>,
    pub request: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowCommand {
    Answer {
        gate: GateId,
        choice: Choice,
        guidance: Option<String>,
        /// The current probe of the session, where the answer continues it.
        probe: Option<Probe>,
    },
    Cancel {
        reason: Option<String>,
    },
    Resume,
}

pub fn create(new: NewFlow) -> Result<FlowEvent, FlowRefusal> {
    if new.kind == FlowKind::Phases {
        if new.phases.is_empty() {
            return Err(FlowRefusal::NoPhases);
        }
        if new.phases.iter().all(|phase| phase.state != PhaseState::Open) {
            return Err(FlowRefusal::NothingToDo);
        }
    }
    let NewFlow { kind, title, plan, plan_hash, workspace, settings, phases, request } = new;
    let created = FlowCreated { kind, title, plan, plan_hash, workspace, settings, phases, request };
    Ok(FlowEvent::Created(Box::new(created)))
}

/// Returns the events of a command; none when it repeats an earlier one.
pub fn decide(
    flow: &Flow,
    command: &FlowCommand,
    by: &Actor,
    fresh: Fresh,
) -> Result<Vec<FlowEvent>, FlowRefusal> {
    match command {
        FlowCommand::Answer { gate, choice, guidance, probe } => {
            let guidance = guidance.as_deref().map(str::trim).filter(|words| !words.is_empty());
            answer(flow, *gate, *choice, guidance, *probe, by, fresh)
        }
        FlowCommand::Cancel { .. } if flow.state == FlowState::Aborted => Ok(Vec::new()),
        FlowCommand::Cancel { .. } if flow.state.is_ended() => Err(FlowRefusal::Ended { state: flow.state }),
        FlowCommand::Cancel { reason } => {
            let reason = reason.clone().unwrap_or_else(|| format!("cancelled by {}", by.name));
            Ok(vec![FlowEvent::Ended { state: FlowState::Aborted, reason: Some(reason) }])
        }
        FlowCommand::Resume if flow.state == FlowState::Aborted => Ok(resume(flow, fresh)),
        FlowCommand::Resume => Err(FlowRefusal::NotAborted { state: flow.state }),
    }
}

/// Resumes a flow. An open gate stays open. A gate that was answered with the abort opens again, since the work behind
/// it was not decided; it has another id, so that the old answer, sent once more, does not end the flow a second time.
/// A session that ended with the flow may be gone, so continuing it is no longer offered.
fn resume(flow: &Flow, fresh: Fresh) -> Vec<FlowEvent> {
    let mut events = vec![FlowEvent::Resumed {}];
    let Some(gate) = flow.gate.as_ref().filter(|_| flow.came_from.is_some_and(FlowState::asks)) else {
        return events;
    };
    let why = gate.continue_session.is_some().then(|| "the flow was aborted meanwhile".to_owned());
    if gate.is_open() {
        events.extend(why.map(|why| FlowEvent::ContinuationWithdrawn { gate: gate.id, why }));
        return events;
    }
    let again = FlowGate {
        id: fresh.gate,
        step: flow.step + 1,
        continue_session: None,
        not_offered: why.or_else(|| gate.not_offered.clone()),
        opened_at: fresh.now,
        deadline: deadline(flow, fresh.now),
        answered: None,
        ..gate.clone()
    };
    events.push(FlowEvent::GateOpened { gate: Box::new(again) });
    events
}

fn answer(
    flow: &Flow,
    id: GateId,
    choice: Choice,
    guidance: Option<&str>,
    probe: Option<Probe>,
    by: &Actor,
    fresh: Fresh,
) -> Result<Vec<FlowEvent>, FlowRefusal> {
    let gate = flow.gate.as_ref().filter(|gate| gate.id == id).ok_or(FlowRefusal::NoGate { gate: id })?;
    if let Some(given) = &gate.answered {
        // The first answer stands; the same one again changes nothing.
        let same = given.choice == choice && given.guidance.as_deref() == guidance;
        return if same {
            Ok(Vec::new())
        } else {
            Err(FlowRefusal::Answered { given: given.choice.as_str() })
        };
    }
    if flow.state.is_ended() {
        return Err(FlowRefusal::Ended { state: flow.state });
    }
    if !gate.offers(choice) {
        let (offered, why) = (gate.offered(), gate.not_offered.clone());
        return Err(FlowRefusal::NotOffered { choice, offered, why });
    }
    if guidance.is_some() && !choice.takes_guidance() {
        return Err(FlowRefusal::NoGuidance { choice });
    }
    if guidance.is_some_and(|words| words.chars().count() > GUIDANCE_CHARS_MAX) {
        return Err(FlowRefusal::GuidanceTooLong { max: GUIDANCE_CHARS_MAX });
    }
    if choice == Choice::ContinueSession
        && let Some(why) = probe.and_then(Probe::hindrance)
    {
        return Err(FlowRefusal::ContinuationGone { why: why.to_owned() });
    }
    let given = GateAnswered { choice, guidance: guidance.map(str::to_owned), by: by.clone(), at: fresh.now };
    let mut events = vec![FlowEvent::GateAnswered { gate: id, answer: given }];
    events.extend(match choice {
        Choice::ContinueSession => {
            // What the payload says, else where it was.
            let to = gate.continue_session.as_ref().map_or(gate.next, |payload| payload.resume_state);
            vec![FlowEvent::Moved { to, reason: None }]
        }
        Choice::Continue => vec![FlowEvent::Moved { to: gate.next, reason: None }],
        Choice::Approve if flow.kind == FlowKind::PlanReview => {
            let reason = Some(format!("approved by {}", by.name));
            vec![FlowEvent::Ended { state: FlowState::Approved, reason }]
        }
        Choice::Approve if gate.kind == FlowGateKind::Phase => phase_done(flow, PhaseState::Complete),
        Choice::Approve => phase_done(flow, PhaseState::Overridden),
        Choice::Abort => {
            let reason = Some(format!("aborted by {}", by.name));
            vec![FlowEvent::Ended { state: FlowState::Aborted, reason }]
        }
    });
    Ok(events)
}
