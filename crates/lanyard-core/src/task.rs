//! Families of work: tasks, the workers that do them, and the mail between parents and children.
//!
//! A task is a durable address; its workers come and go. Each worker keeps its id over every redeploy and restart, and
//! each of its runs has a number, so that a late message of an older run is recognised.
//!
//! Start with `record` (the state of a task), then `decide` (commands) and `observe` (the consequences of its session's
//! state). The daemon derives its next action for a task from the state (`want`) and never remembers it: after a crash
//! the same state yields the same action.

mod apply;
mod decide;
mod event;
pub mod files;
pub mod health;
pub mod mail;
pub mod markdown;
mod observe;
mod record;
mod refusal;
pub mod schedule;

#[cfg(test)]
mod decide_tests;
#[cfg(test)]
mod health_tests;
#[cfg(test)]
mod mail_tests;
#[cfg(test)]
mod observe_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod world_tests;

pub use crate::tree::{BaseConflict, Captured, Tree, branch_name};
pub use decide::{NewTask, TaskCommand, create, decide};
pub use event::{REQUEST_KEY, SPAWN_KEY, TaskCreated, TaskEnvelope, TaskEvent, is_key};
pub use mail::{Mail, MailFrom, MailKind, MailState, MailTo};
pub use observe::{Kin, SeenRun, SeenSession, TaskWant, observe, want};
pub use record::{
    Isolation, ParentEnd, Remedies, TASK_SOURCE, Task, TaskEnding, TaskResult, TaskRun, TaskSpec, TaskState,
    WorkerKind, WorkerSource,
};
pub use refusal::TaskRefusal;
