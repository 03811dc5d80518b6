//! Documents of agents beside the session's log: plans with steps, and the lineage of hand-offs; and the texts that
//! explain them. Pure types and rules; storage is not known here.

pub mod instructions;
pub mod orphan;
pub mod plan;
mod progress;
pub mod prompt;
mod refusal;
pub mod seat;
pub mod steps;

pub use orphan::{Facts, Liveness, judge, looks_after};
pub use plan::{Handover, NewPlan, Plan, PlanChange, PlanNote, PlanStatus, Priority};
pub use progress::{PlanPhase, PlanProgress, StepState};
pub use prompt::{Bounds, Brief};
pub use refusal::PaperRefusal;
pub use seat::AgentSeat;
pub use steps::{NewStep, Step, StepChange, StepKind, Taken};

use crate::text::cut;

/// Characters of a title, a name, a phase, an agent.
pub const NAME_CHARS_MAX: usize = 200;
/// Characters of a goal, a task, a note, an acceptance criterion, a reason.
pub const TEXT_CHARS_MAX: usize = 4_000;

/// One line that is there and not too long.
pub(crate) fn name(field: &'static str, text: &str) -> Result<(), PaperRefusal> {
    if text.chars().any(char::is_control) {
        return Err(PaperRefusal::BadText { field });
    }
    words(field, text, NAME_CHARS_MAX)
}

/// Text that is there and not too long.
pub(crate) fn words(field: &'static str, text: &str, max: usize) -> Result<(), PaperRefusal> {
    if text.trim().is_empty() {
        return Err(PaperRefusal::Empty { field });
    }
    if cut(text, max).1 {
        return Err(PaperRefusal::TooLong { field, max });
    }
    Ok(())
}

/// Checks an optional field: one line within the length limit.
pub fn optional(field: &'static str, text: Option<&str>) -> Result<(), PaperRefusal> {
    text.map_or(Ok(()), |text| name(field, text))
}

pub(crate) fn few<T>(field: &'static str, items: &[T], max: usize) -> Result<(), PaperRefusal> {
    if items.len() > max { Err(PaperRefusal::TooMany { field, max }) } else { Ok(()) }
}
