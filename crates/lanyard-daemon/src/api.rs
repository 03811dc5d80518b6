//! The HTTP API: `/api/v1`, nouns of the design, one row of a table per route.

mod agents;
mod attach;
mod attachments;
mod audit;
mod branches;
mod bulk;
mod calls;
mod choices;
mod comparisons;
mod context;
mod diff;
mod directory;
mod flows;
mod front;
mod gates;
mod guard;
mod health;
mod histories;
mod ids;
mod insight;
mod journal;
mod lacks;
mod mailbox;
mod mcp;
mod memory;
mod metrics;
mod mutations;
mod name_lookup;
mod notifications;
mod observed;
mod openapi;
mod pages;
mod parameters;
mod plans;
mod pull_requests;
mod records;
mod review;
mod right;
mod routes;
mod search;
mod sessions;
mod shares;
mod sign_in;
mod snapshots;
mod stops;
mod streams;
mod subagents;
mod system;
mod tasks;
mod terminal;
mod turns;
mod worktrees;
mod writer;

use lanyard_store::Store;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_core::Timestamp;
use lanyard_git::snapshot::CheckpointStore;
use tokio::sync::Notify;

use crate::auth::TokenBook;
use crate::budgets::BudgetTeller;
use crate::dashboard::Dashboard;
use crate::families::Families;
use crate::flow::FlowHandle;
use crate::glances::Glances;
use crate::memory::MemoryContext;
use crate::notifications::NotificationHandle;
use crate::own_tools::ToolContext;
use crate::reload::Reloader;
use crate::storage::StorageContext;
use crate::telemetry::Telemetry;
use crate::trees::OwnTrees;
use lanyard_agents::agents::Wishes;
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::continuity::ContinuityCounter;
use lanyard_engine::engine::Engine;
use lanyard_engine::hub::Hub;
use lanyard_engine::presence::{Presence, Seen};
use lanyard_gateway::mcp::RelayContext;

pub use attach::OwnRouter;
#[cfg(test)]
pub(crate) use attachments::AttachmentRefusal;
#[cfg(test)]
pub(crate) use branches::BranchRefusal;
pub use front::Front;
pub use mutations::{Recorded, Underway};
pub use openapi::document;
pub use routes::{ApiRoute, router, table};

/// What handlers work with.
pub struct App {
    pub engine: Engine,
    /// Tasks and mail.
    pub families: Families,
    /// Plans that are worked through.
    pub flows: FlowHandle,
    pub agents: Roster,
    /// Where agents that run are asked for something.
    pub wishes: Wishes,
    /// Where the workspaces of sessions are kept as they were.
    pub checkpoints: CheckpointStore,
    pub store: Arc<dyn Store>,
    /// Worktrees of sessions, and what may be run in new ones.
    pub(crate) trees: OwnTrees,
    /// Keyed requests that are being carried out.
    pub underway: Underway,
    pub hub: Arc<Hub>,
    /// Who is attached to which session.
    pub presence: Arc<Presence>,
    /// The activity of sessions for listings.
    pub(crate) glances: Arc<Glances>,
    /// The API itself, for requests that come over a WebSocket.
    pub router: OwnRouter,
    /// When a connection was last seen.
    pub seen: Seen,
    /// What is remembered.
    pub(crate) memories: Arc<MemoryContext>,
    /// Where MCP clients come in, and where tool calls pass.
    pub(crate) mcp: Arc<RelayContext>,
    /// What Lanyard's own tools work with.
    pub(crate) tools: Arc<ToolContext>,
    /// What garbage collection and retention take.
    pub(crate) storage: Arc<StorageContext>,
    pub clock: Arc<Clock>,
    /// The settings in use.
    pub config: LiveConfig,
    /// Takes up changes of the config file.
    pub reloader: Arc<Reloader>,
    /// What is counted of continuity.
    pub continuity: Arc<ContinuityCounter>,
    pub notifications: NotificationHandle,
    /// What people are told of budgets.
    pub(crate) budgets: Arc<BudgetTeller>,
    /// Where spans go, if anybody collects them.
    pub telemetry: Option<Arc<Telemetry>>,
    pub tokens: Arc<TokenBook>,
    /// The pages people see in a browser.
    pub dashboard: Dashboard,
    pub address: SocketAddr,
    pub data_dir: PathBuf,
    pub started_at: Timestamp,
    /// The Host values this daemon answers to.
    pub hosts: HashSet<String>,
    /// Notified when a client asks the daemon to end.
    pub shutdown: Arc<Notify>,
}

#[cfg(test)]
pub(crate) use terminal::TerminalRefusal;

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("address", &self.address).finish_non_exhaustive()
    }
}
