//! Families of work: tasks, the workers that do them, and the mail between those who work for each other.
//!
//! A task is a durable address; who works at it comes and goes. Each worker keeps its id over every redeploy and
//! restart, and each of its runs has a number, so that what a late one says is recognised.
//!
//! Start with `record` (what a task is), then `decide` (what may be asked of it) and `observe` (what follows from
//! looking at its session). What the daemon has to do next for a task is read off its state (`want`), never remembered:
//! after a crash the same question has the same answer.

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
pub mod tree;

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

pub use decide::{NewTask, TaskCommand, create, decide};
pub use event::{REQUEST_KEY, SPAWN_KEY, TaskCreated, TaskEnvelope, TaskEvent, is_key};
pub use mail::{Mail, MailFrom, MailKind, MailState, MailTo};
pub use observe::{Kin, SeenRun, SeenSession, Want, observe, want};
pub use record::{
    Ending, Isolation, ParentEnd, Remedies, Task, TaskResult, TaskRun, TaskSpec, TaskState, WorkerKind,
    WorkerSource,
};
pub use refusal::TaskRefusal;
pub use tree::{BaseConflict, Captured, Tree};
