//! Why a paper was not changed: a stable code, what happened, what to do.

use crate::id::SessionId;
use crate::paper::plan::PlanStatus;

/// Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{field} is missing")]
    Missing { field: &'static str },
    #[error("{field} is empty")]
    Empty { field: &'static str },
    #[error("{field} has more than {max} characters")]
    TooLong { field: &'static str, max: usize },
    #[error("{field} has more than {max} entries")]
    TooMany { field: &'static str, max: usize },
    #[error("{field} holds a control character or a line break")]
    BadText { field: &'static str },
    #[error("a plan that is {from} cannot become {to}")]
    Transition { from: PlanStatus, to: PlanStatus },
    #[error("{open} steps of the plan are not done")]
    StepsOpen { open: usize },
    #[error("the plan has no phase `{phase}`; it has {}", known(.phases))]
    NoSuchPhase { phase: String, phases: Vec<String> },
    #[error("the plan is archived")]
    Archived,
    #[error("the plan has no step {step}")]
    NoSuchStep { step: u32 },
    #[error("step {step} is being worked on by session {by}")]
    StepTaken { step: u32, by: SessionId },
    #[error("step {step} is done already")]
    StepDone { step: u32 },
}

fn known(phases: &[String]) -> String {
    if phases.is_empty() { "none".to_owned() } else { phases.join(", ") }
}

impl Refusal {
    /// The code callers branch on. It never changes once published.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "field_missing",
            Self::Empty { .. } => "field_empty",
            Self::TooLong { .. } => "field_too_long",
            Self::TooMany { .. } => "field_too_many",
            Self::BadText { .. } => "field_bad_text",
            Self::Transition { .. } => "plan_transition",
            Self::StepsOpen { .. } => "plan_steps_open",
            Self::NoSuchPhase { .. } => "phase_unknown",
            Self::Archived => "plan_archived",
            Self::NoSuchStep { .. } => "step_not_found",
            Self::StepTaken { .. } => "step_taken",
            Self::StepDone { .. } => "step_done",
        }
    }

    /// One sentence of what to do.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Missing { field } => format!("call it again with `{field}`"),
            Self::Empty { .. } => "give at least one visible character".into(),
            Self::TooLong { .. } => "shorten it; put long content into a file".into(),
            Self::TooMany { .. } => "send fewer, or split them over two plans".into(),
            Self::BadText { .. } => "write it on one line, without control characters".into(),
            Self::Transition { from, .. } => {
                let next: Vec<&str> = from.next().iter().map(|status| status.as_str()).collect();
                format!("from {from} it can become {}", next.join(" or "))
            }
            Self::StepsOpen { .. } => {
                "complete them, or mark them done with a note that says why they are not needed".into()
            }
            Self::NoSuchPhase { .. } => "name one of its phases, or set `phases` first".into(),
            Self::Archived => "make a new plan; an archived one is kept as it is".into(),
            Self::NoSuchStep { .. } => "list the steps with memory_steps, action list".into(),
            Self::StepTaken { .. } => {
                "leave it to that session, or take another with memory_steps, action next".into()
            }
            Self::StepDone { .. } => "there is nothing to do; take the next with action next".into(),
        }
    }
}
