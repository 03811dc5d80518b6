//! The words of the writer's lease.

use lanyard_core::session::{Pen, Writer};
use lanyard_core::{ConnectionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who writes.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WriterView {
    pub writer: Option<WriterEntry>,
    /// How often the writer changed; words under an older one are refused.
    pub epoch: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WriterEntry {
    #[serde(flatten)]
    pub writer: Writer,
    /// Whether its connection was seen within `writer.lapse_ms`.
    pub present: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWriter {
    pub connection: ConnectionId,
    /// What the connection is: `cli`, `web`, `acp`.
    #[serde(default)]
    pub client: Option<String>,
    /// Ask whoever has it to hand over.
    #[serde(default)]
    pub take: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WriterAnswer {
    pub result: WriterResult,
    /// To be sent with every word, when granted.
    pub epoch: u64,
    /// When it passes, unless the holder denies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Pen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriterResult {
    Granted,
    Asked,
    Denied,
    Released,
}

/// What a holder says of its lease.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldWriter {
    pub connection: ConnectionId,
    pub epoch: u64,
}
