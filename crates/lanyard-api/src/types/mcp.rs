//! MCP servers, and where they are reached.

use std::collections::BTreeMap;

use lanyard_core::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpList {
    pub servers: Vec<McpEntry>,
}

/// One MCP server of the config, or the built-in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpEntry {
    pub name: String,
    /// The agent it is offered to alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub kind: McpKind,
    /// Whether sessions share it; otherwise each has a process of its own.
    pub share: bool,
    pub state: McpState,
    /// Processes that run now.
    pub processes: u64,
    /// How often one was started again since the daemon began.
    pub restarts: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Tool calls since the daemon began.
    pub calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpKind {
    Stdio,
    Http,
    BuiltIn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpState {
    Up,
    Down,
    /// Nobody has used it yet.
    NotStarted,
}

/// Who wants the address of a server. Without a session a new one is registered, for an agent that Lanyard did not
/// start.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewMcpAddress {
    /// The session's id or alias.
    pub session: Option<String>,
    /// The agent's own name, for a new session.
    pub agent: Option<String>,
    /// Where it works, for a new session.
    pub workspace: Option<String>,
    /// The agent's own id of its conversation, for a new session.
    pub alias: Option<String>,
}

/// A server's address for one session (streamable HTTP).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpAddress {
    pub session: SessionId,
    pub url: String,
    /// Headers every request must carry.
    pub headers: BTreeMap<String, String>,
}

/// What came of trying a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpCheck {
    pub name: String,
    pub ok: bool,
    /// The protocol's revision it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
