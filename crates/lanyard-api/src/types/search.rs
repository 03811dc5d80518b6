//! Full text over the logs of all sessions.

use lanyard_core::search::{SearchKind, Snippet};
use lanyard_core::{SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text that has all words of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The folder the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The first event of the text in the session's log.
    pub seq: u64,
    /// The last event of the text: a message may have come in pieces.
    pub last_seq: u64,
    pub at: Timestamp,
    pub kind: SearchKind,
    pub snippet: Snippet,
}

/// A page of hits: the newest stretch first, and within a stretch the best first. A page may hold fewer than `limit`, or
/// none, although there is a next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchPage {
    pub items: Vec<SearchHit>,
    /// The `cursor` of the next page; absent after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    pub index: SearchIndex,
}

/// How far the index has come in the log of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchIndex {
    /// Nothing that was written before the search is missing.
    pub complete: bool,
    /// Events that are in the index, and events of the log.
    pub indexed: u64,
    pub events: u64,
}
