//! What the journal and the data folder take on disk, and keeping it in bounds: purging deleted sessions, retention,
//! removing what belongs to nothing, the alarm for a large journal, backups.
//!
//! `session.deleted` in the log is the intent. Everything here looks at what there is and does what is left to do, so a
//! kill at any point loses nothing and repeats nothing.

mod alarm;
mod copies;
mod garbage;
mod purger;
pub(crate) mod retention;
mod traces;

#[cfg(test)]
pub(crate) use copies::BackupError;
pub(crate) use copies::back_up;
pub use copies::{BackupRefusal, back_up_alone};
pub(crate) use garbage::{collect, move_old_checkpoints};
pub(crate) use purger::Purger;
