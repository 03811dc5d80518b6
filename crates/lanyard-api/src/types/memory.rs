//! Memory, as the API speaks of it.

use std::collections::BTreeMap;

use lanyard_core::memory::{MemoryAsk, MemoryEntry, MemoryPolicy, MemoryScope, Rule, Where};
use lanyard_core::{MemoryId, Outcome, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::MemorySwitch;

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// By its words, ranked by how much they tell.
    Words,
    /// By its vector, which is like that of the query.
    Vectors,
    /// By its letters: no words and no vectors fit.
    Letters,
}

/// Something to be remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    pub text: String,
    /// What it is called; written again under its name it takes the place of what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `session` is a session's own memory; `workspace` and `plan` are long-term memory. `session` when a session is
    /// named, else `workspace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<MemoryScope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The session in whose name it is written; its policy judges it. An id or alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The workspace it belongs to, where no session says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The person it belongs to, where no session says so; the caller when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The version that was read; refused when the entry has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The same, in the name of the session in the address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSessionMemory {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `session` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<MemoryScope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRow {
    #[serde(flatten)]
    pub entry: MemoryEntry,
    /// What was found, with what stands around it; in a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPage {
    /// Newest first, or best first in a search.
    pub entries: Vec<MemoryRow>,
    /// How they were found, in a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found_by: Vec<FoundBy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Give it back as `cursor` for older ones; absent on the last page, and in a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What to forget: these, or all that match every condition given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Forget {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<MemoryId>,
    /// Entries with all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<Where>,
    /// Only tell what would be forgotten.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forgotten {
    /// How many; in a dry run, how many it would be.
    pub forgotten: u64,
    /// There are more that match; ask again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Entries as an export has them, a line each.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryImport {
    pub entries: Vec<serde_json::Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub imported: u64,
    /// Those that were there already, as they are.
    pub known: u64,
    /// Those that were not taken, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<NotImported>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotImported {
    /// Its place in the list, from 0.
    pub index: u64,
    pub code: String,
    pub title: String,
    pub advice: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStatus {
    pub mode: MemorySwitch,
    pub session_entries: u64,
    pub long_term_entries: u64,
    /// Writes refused by policy since the daemon started, by rule.
    #[serde(default)]
    pub refused: BTreeMap<Rule, u64>,
    /// The embeddings endpoint's model, where one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
    /// What was wrong with the endpoint the last time; everything else goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings_trouble: Option<String>,
}

/// Limits of a session's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPolicyView {
    pub session: SessionId,
    /// As it is set.
    pub policy: MemoryPolicy,
    /// As it counts now: no more than the running turn began with, and no more than any session above may.
    pub effective: MemoryPolicy,
    /// What all sessions above it may together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<MemoryPolicy>,
    /// Writes in its name that were refused, by rule.
    #[serde(default)]
    pub refused: BTreeMap<Rule, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What is to be different; what is left out stays.
pub type MemoryPolicyEdit = MemoryAsk;

/// The policy after a change, and where in the log it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPolicySet {
    #[serde(flatten)]
    pub view: MemoryPolicyView,
    pub outcome: Outcome,
}
