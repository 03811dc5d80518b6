//! Why a paper was not changed: a stable code, what happened, what to do.

use crate::id::SessionId;
use crate::paper::plan::PlanStatus;
use crate::refusals;

refusals! {
    /// A refused change; nothing was changed.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum PaperRefusal {
        Missing { field: &'static str } => "field_missing", Invalid
            ("{field} is missing") ("call it again with `{field}`");
        Empty { field: &'static str } => "field_empty", Invalid
            ("{field} is empty") ("give at least one visible character");
        TooLong { field: &'static str, max: usize } => "field_too_long", Invalid
            ("{field} has more than {max} characters") ("shorten it; put long content into a file");
        TooMany { field: &'static str, max: usize } => "field_too_many", Invalid
            ("{field} has more than {max} entries") ("send fewer, or split them over two plans");
        BadText { field: &'static str } => "field_bad_text", Invalid
            ("{field} holds a control character or a line break")
            ("write it on one line, without control characters");
        Transition { from: PlanStatus, to: PlanStatus } => "plan_transition", Invalid
            ("a plan that is {from} cannot become {to}")
            ("from {from} it can become {}", from.next().iter().map(|to| to.as_str()).collect::<Vec<_>>().join(" or "));
        StepsOpen { open: usize } => "plan_steps_open", Invalid
            ("{open} steps of the plan are not done")
            ("complete them, or mark them done with a note that says why they are not needed");
        NoSuchPhase { phase: String, phases: Vec<String> } => "phase_unknown", Invalid
            ("the plan has no phase `{phase}`; it has {}", known(.phases))
            ("name one of its phases, or set `phases` first");
        Archived => "plan_archived", Invalid
            ("the plan is archived") ("make a new plan; an archived one is kept as it is");
        NoSuchStep { step: u32 } => "step_not_found", Invalid
            ("the plan has no step {step}") ("list the steps with memory_steps, action list");
        StepTaken { step: u32, by: SessionId } => "step_taken", Invalid
            ("step {step} is being worked on by session {by}")
            ("leave it to that session, or take another with memory_steps, action next");
        StepDone { step: u32 } => "step_done", Invalid
            ("step {step} is done already") ("there is nothing to do; take the next with action next");
    }
}

fn known(phases: &[String]) -> String {
    if phases.is_empty() { "none".to_owned() } else { phases.join(", ") }
}
