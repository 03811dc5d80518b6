//! What the gateway works with, and what Lanyard's own tools work with.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_store::Store;

use crate::auth::TokenBook;
use crate::families::Families;
use crate::intercept::Interceptor;
use crate::mcp::Gateway;
use crate::memory::{Memory, MemoryContext};
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::Engine;

/// What relaying a message of an MCP client takes.
pub(crate) struct RelayContext {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) interceptor: Interceptor,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) tools: Arc<ToolContext>,
}

impl std::fmt::Debug for RelayContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayContext").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}

/// What carrying out a call of one of Lanyard's own tools takes.
pub(crate) struct ToolContext {
    pub(crate) engine: Engine,
    pub(crate) families: Families,
    pub(crate) agents: Roster,
    /// Sessions whose workspace is being taken back: nothing is continued meanwhile.
    pub(crate) rollbacks: Arc<Mutex<HashSet<SessionId>>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) memories: Arc<MemoryContext>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) config: LiveConfig,
    pub(crate) tokens: Arc<TokenBook>,
}
