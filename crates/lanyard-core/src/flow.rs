//! Flows: an author works through a plan, a reviewer judges the work, and a person decides only at a gate.
//!
//! A flow is a log, like a session or a task. Start with `record` (the state of a flow), then `advance` (the next
//! action, and the consequences of the last one) and `decide` (commands). The daemon derives its next action from the
//! record (`want`) and never remembers it: each turn, command and gate has its number and its id in the log before it
//! starts, so that a restart finds the same one and repeats none.

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

pub use advance::{Due, FlowWant, Fresh, Looked, conclude, cut_off, due, quality_ended, want};
pub use decide::{FlowCommand, GUIDANCE_CHARS_MAX, NewFlow, create, decide};
pub use event::{Conclusion, FailKind, FlowCreated, FlowEnvelope, FlowEvent, Spent};
pub use gate::{Choice, Continuation, FlowGate, FlowGateKind, GateAnswered, Probe};
pub use record::{
    Check, CheckResult, Flow, FlowKind, FlowPending, FlowRole, FlowState, Invocation, Lease, Phase,
    PhaseState, Preserved, Stage, Worked,
};
pub use refusal::FlowRefusal;
pub use settings::{Asking, FlowRules, FlowSettings, GateDefault, Hook, QualityCommand, RoleSettings};
pub use verdict::{Action, AuthorStatus, Item, ItemPriority, Progress, Readiness, Verdict};
