//! What the gateway works with.

use std::sync::Arc;

use lanyard_store::Store;

use crate::intercept::Interceptor;
use crate::mcp::{Gateway, OwnServer};
use lanyard_base::clock::Clock;

/// What relaying a message of an MCP client takes.
pub struct RelayContext {
    pub gateway: Arc<Gateway>,
    pub interceptor: Interceptor,
    pub store: Arc<dyn Store>,
    pub clock: Arc<Clock>,
    /// The server that is built in.
    pub own: Arc<dyn OwnServer>,
}

impl std::fmt::Debug for RelayContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayContext").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}
