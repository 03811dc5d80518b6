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

use std::sync::Arc;

use lanyard_git::snapshot::CheckpointStore;
use lanyard_store::{Attachments, Store};

use crate::auth::TokenBook;
use crate::notifications::NotificationHandle;
use crate::trees::OwnTrees;
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::Engine;
use lanyard_engine::hub::Hub;
use lanyard_gateway::mcp::Gateway;

/// What keeping the disk in bounds takes: everything that leaves files or rows of a session.
pub(crate) struct StorageContext {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) config: LiveConfig,
    pub(crate) agents: Roster,
    pub(crate) trees: OwnTrees,
    pub(crate) checkpoints: CheckpointStore,
    pub(crate) attachments: Arc<Attachments>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) notifications: NotificationHandle,
    pub(crate) tokens: Arc<TokenBook>,
}
