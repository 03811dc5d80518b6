//! Subagents that share their parent's process, as their parent's hook and wrapped servers see them.

use lanyard_core::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A subagent that works in the process of the session's own agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubagent {
    /// The agent's own name for it.
    pub alias: String,
    /// What it is called where it gets a new session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// The session of a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subagent {
    pub session: SessionId,
}

/// Whose a name is, seen from one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FamilyMember {
    /// The session it names, where that is the session itself or one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub relation: Relation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The session's own name.
    Same,
    /// A session below it.
    Below,
    /// A session of another family, or above it.
    Other,
    Unknown,
}

/// MCP servers by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpNames {
    pub servers: Vec<String>,
}
