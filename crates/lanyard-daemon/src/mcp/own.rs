//! Lanyard's own tools for agents, on the built-in server `lanyard`.

use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_core::session::Compliance;
use serde_json::{Value, json};

use crate::api::App;

/// A JSON-RPC error.
#[derive(Debug, Clone)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Answers one request to the built-in server.
#[expect(clippy::unused_async, reason = "tools ask the engine")]
pub(crate) async fn handle(
    _app: &Arc<App>,
    _session: Option<SessionId>,
    method: &str,
    _params: Value,
) -> Result<Value, RpcError> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "lanyard", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [] })),
        "tools/call" => Err(RpcError { code: -32602, message: "there is no such tool".to_owned() }),
        other => Err(RpcError { code: -32601, message: format!("there is no method {other}") }),
    }
}

/// What a call of one of these tools does towards a stop.
pub(crate) fn compliance(_tool: &str, _arguments: &Value) -> Option<Compliance> {
    None
}
