//! MCP: Lanyard's own server, and the way to all others.

#[allow(dead_code, reason = "the gateway hands calls to it")]
pub(crate) mod own;
