//! The words of names: what a name stands for.

use lanyard_core::Timestamp;
use lanyard_core::naming::{MatchedBy, NameKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The things a name means, or the nearest to it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NameMatches {
    /// How the name matched; absent when nothing has that name. Then `items` holds the nearest names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<MatchedBy>,
    /// One when the name is unambiguous; newest first.
    pub items: Vec<NamedItem>,
    /// There are further ones.
    pub more: bool,
    /// The daemon's clock.
    pub now: Timestamp,
}

/// Something with an id, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedItem {
    pub kind: NameKind,
    pub id: String,
    /// A name it can be called by: an alias, a plan's name, `plan/key` of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub created_at: Timestamp,
}
