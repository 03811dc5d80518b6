//! Conversations in the agents' own histories, and making sessions of them.

use lanyard_core::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A conversation that an agent keeps in its own history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// The program whose history it is: `claude`, `codex`, `opencode`, `gemini`.
    pub agent: String,
    /// The agent's own id of the conversation.
    pub native: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The folder the agent worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub updated_at: Timestamp,
    /// Messages of the user and the agent; absent where the conversation is too large to count them for a listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Size of its file, where it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The session of this conversation, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A history that could not be looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryProblem {
    pub agent: String,
    pub what: String,
}

/// A page of conversations, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryPage {
    pub items: Vec<HistoryEntry>,
    /// The `cursor` of the next page; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<HistoryProblem>,
}

/// The conversation to make a session of.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewImport {
    /// The program whose history it is, or the name of a configured agent with such a history.
    pub agent: String,
    /// The agent's own id of the conversation, or the beginning of it.
    pub native: String,
    /// The title of the session; the conversation's own when absent.
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The session of an imported conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportReceipt {
    pub session: SessionId,
    pub agent: String,
    pub native: String,
    /// The conversation had a session already; nothing was changed.
    pub existing: bool,
    /// Messages and events that were imported.
    pub messages: u64,
    pub events: u64,
    /// Older events that were left out, and lines that could not be read.
    #[serde(default)]
    pub left_out: u64,
    #[serde(default)]
    pub unreadable: u64,
    /// What stands in the way of going on with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
