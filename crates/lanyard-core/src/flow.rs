//! Flows: a plan worked through by an author and judged by a reviewer, with a person asked only at a gate.
//!
//! A flow is a log, as a session and a task are. Start with `record` (what a flow is), then `advance` (what it wants done
//! next and what follows from what was done) and `decide` (what may be asked of it). What the daemon has to do next is
//! read off the record (`want`), never remembered: each turn, command and gate has its number and its id in the log before
//! it is begun, so that after a crash the same one is looked for and none is done twice.

mod advance;
mod apply;
mod decide;
mod escalate;
mod event;
pub mod gate;
pub mod plan;
pub mod prompt;
mod record;
mod refusal;
pub mod report;
mod settings;
mod stall;
pub mod verdict;

#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod world_tests;

pub use advance::{Due, Fresh, Looked, Want, conclude, cut_off, due, quality_ended, want};
pub use decide::{FlowCommand, GUIDANCE_CHARS_MAX, NewFlow, create, decide};
pub use event::{Conclusion, FailKind, FlowCreated, FlowEnvelope, FlowEvent, Spent};
pub use gate::{Choice, Continuation, FlowGate, FlowGateKind, GateAnswered, Probe};
pub use record::{
    Check, CheckResult, Flow, FlowKind, FlowState, Invocation, Lease, Pending, Phase, PhaseState, Preserved,
    Role, Stage, Worked,
};
pub use refusal::FlowRefusal;
pub use settings::{Asking, FlowRules, FlowSettings, GateDefault, Hook, QualityCommand, RoleSettings};
pub use verdict::{Action, AuthorStatus, Item, ItemPriority, Progress, Readiness, Verdict};
