//! The activity of a session in a few words, for one line of a listing.

use lanyard_core::Timestamp;
use lanyard_core::session::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The activity of a session and its results so far, small enough for a listing. It is read from the log: of a log with
/// more than 2,000 events, changes and hourly costs count from the last 2,000 on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Glance {
    /// The latest tool call of the running or the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<GlanceCall>,
    /// The last sentence of the agent in the running or the last turn, where it is newer than the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Steps of the agent's own plan; 0 without one.
    #[serde(default)]
    pub steps: u64,
    #[serde(default)]
    pub steps_done: u64,
    /// Files that the agent changed; at most 1,000 are counted.
    #[serde(default)]
    pub files: u64,
    /// Lines added and removed, where the agent showed the change.
    #[serde(default)]
    pub added: u64,
    #[serde(default)]
    pub removed: u64,
    #[serde(default)]
    pub usage: Usage,
    /// Reported costs by hour, the oldest first; the hours of the last 25 that have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hourly: Vec<HourlyCost>,
}

/// A tool call on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlanceCall {
    pub tool: String,
    /// The argument that says most, such as the command or the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    pub at: Timestamp,
    /// The call has not returned.
    pub running: bool,
    #[serde(default)]
    pub failed: bool,
}

/// The reported cost of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HourlyCost {
    /// The start of the hour.
    pub hour: Timestamp,
    /// Millionths of a US dollar.
    pub cost_micros: u64,
}
