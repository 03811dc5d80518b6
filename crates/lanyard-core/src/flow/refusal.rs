//! Why something asked of a flow is not done.

use crate::flow::gate::Choice;
use crate::flow::record::FlowState;
use crate::id::{FlowId, GateId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowRefusal {
    #[error("the flow has ended: it is {state}")]
    Ended { state: FlowState },
    #[error("the flow is {state} and not aborted")]
    NotAborted { state: FlowState },
    #[error("no gate {gate} waits in this flow")]
    NoGate { gate: GateId },
    #[error("the gate was answered with {given} before")]
    Answered { given: &'static str },
    #[error("`{}` is not offered{}", .choice.as_str(), .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    NotOffered { choice: Choice, offered: Vec<Choice>, why: Option<String> },
    #[error("the session can no longer be gone on with: {why}")]
    ContinuationGone { why: String },
    #[error("`{}` takes no words", .choice.as_str())]
    NoGuidance { choice: Choice },
    #[error("the words are longer than {max} characters")]
    GuidanceTooLong { max: usize },
    #[error("the plan is being worked at by {flow}")]
    PlanTaken { flow: FlowId },
    #[error("the plan has no phases")]
    NoPhases,
    #[error("all phases of the plan are done already")]
    NothingToDo,
}

impl FlowRefusal {
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Ended { .. } => "flow_ended",
            Self::NotAborted { .. } => "flow_not_aborted",
            Self::NoGate { .. } => "gate_not_open",
            Self::Answered { .. } => "gate_answered",
            Self::NotOffered { .. } => "choice_not_offered",
            Self::ContinuationGone { .. } => "continuation_gone",
            Self::NoGuidance { .. } => "guidance_not_taken",
            Self::GuidanceTooLong { .. } => "guidance_too_long",
            Self::PlanTaken { .. } => "plan_taken",
            Self::NoPhases => "plan_without_phases",
            Self::NothingToDo => "plan_is_done",
        }
    }

    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Ended { state: FlowState::Aborted } => {
                "take it up again with `lanyard flow resume`".to_owned()
            }
            Self::Ended { .. } => "begin another with `lanyard flow run`".to_owned(),
            Self::NotAborted { .. } => "see how it stands with `lanyard flow show`".to_owned(),
            Self::NoGate { .. } => "list what waits with `lanyard gates`".to_owned(),
            Self::Answered { .. } => "see what became of it with `lanyard flow show`".to_owned(),
            Self::NotOffered { offered, .. } => {
                let named: Vec<&str> = offered.iter().map(|choice| choice.as_str()).collect();
                format!("choose one of {}", named.join(", "))
            }
            Self::ContinuationGone { .. } => "choose `continue` to fix it in a new session".to_owned(),
            Self::NoGuidance { .. } => "leave the words away, or choose `continue`".to_owned(),
            Self::GuidanceTooLong { .. } => "say it shorter, or put it into the plan".to_owned(),
            Self::PlanTaken { flow } => {
                format!(
                    "watch it with `lanyard flow watch {flow}`, or end it with `lanyard flow cancel {flow}`"
                )
            }
            Self::NoPhases => {
                "write a heading `## Phase 1: Title` with a checklist below it for each phase".to_owned()
            }
            Self::NothingToDo => {
                "take the mark off a phase that is to be worked at, or name it with `--from`".to_owned()
            }
        }
    }
}
