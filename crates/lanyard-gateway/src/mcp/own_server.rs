//! Lanyard's own server as the gateway reaches it. Its tools work with tasks, plans and memory, which the gateway does not
//! know.

use futures_util::future::BoxFuture;
use lanyard_core::SessionId;
use lanyard_core::session::Compliance;
use serde_json::Value;

/// A JSON-RPC error: the call itself makes no sense. What a tool refuses is a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

/// The server that is built in.
pub trait OwnServer: Send + Sync {
    /// Answers one request of a session's agent, or of an operator without one.
    fn handle<'a>(
        &'a self,
        session: Option<SessionId>,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, RpcError>>;

    /// The way in which a call complies with a stop.
    fn compliance(&self, tool: &str, arguments: &Value) -> Option<Compliance>;
}
