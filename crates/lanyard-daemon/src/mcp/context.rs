//! What the gateway works with.

use std::sync::Arc;

use lanyard_store::Store;

use crate::intercept::Interceptor;
use crate::mcp::{Gateway, OwnServer};
use lanyard_base::clock::Clock;

/// What relaying a message of an MCP client takes.
pub(crate) struct RelayContext {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) interceptor: Interceptor,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<Clock>,
    /// The server that is built in.
    pub(crate) own: Arc<dyn OwnServer>,
}

impl std::fmt::Debug for RelayContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayContext").field("gateway", &self.gateway).finish_non_exhaustive()
    }
}
