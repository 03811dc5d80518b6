//! A plan as a person writes it: a title, and phases with checklists. Read only; Lanyard never writes into it.

/// Bytes of a plan.
pub const BYTES_MAX: usize = 1024 * 1024;
/// Phases of one plan.
pub const PHASES_MAX: usize = 200;

/// What a plan says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanText {
    pub title: String,
    pub phases: Vec<PhaseText>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhaseText {
    pub title: String,
    /// All that stands below its heading.
    pub text: String,
    /// Its heading is ticked, or all items of its checklist are.
    pub done: bool,
}

/// Why a text is no plan, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlanError {
    /// Counted from 1.
    pub line: usize,
    pub what: PlanFault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    #[error("the plan is longer than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("the plan is empty")]
    Empty,
    #[error("there are more than {PHASES_MAX} phases")]
    TooManyPhases,
}

/// Reads a plan.
pub fn read(_text: &str) -> Result<PlanText, PlanError> {
    Err(PlanError { line: 1, what: PlanFault::Empty })
}

impl PlanFault {
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "plan_too_large",
            Self::Empty => "plan_empty",
            Self::TooManyPhases => "plan_too_many_phases",
        }
    }

    #[must_use]
    pub fn advice(&self) -> String {
        "write a heading for each phase".to_owned()
    }
}
