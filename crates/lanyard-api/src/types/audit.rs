//! What people and agents did to sessions, for whoever has to account for it.

use lanyard_core::{Actor, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    Stop,
    Guidance,
    /// An answer to a question.
    Gate,
    /// A change made to a plan, a task, a flow or the daemon itself.
    Change,
}

/// One stop, word of guidance, answer or change, as it was written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// Absent where it is about no session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Its place in the session's log. Of a change: a number that tells it from others of the same time.
    pub seq: u64,
    pub kind: AuditKind,
    /// The event's type in the log, as `stop.applied`; of a change the name of its route, as `start_plan`.
    pub event: String,
    /// The name other systems know it by: `session_interrupted`, `session_injected` or `session_stop_escalated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub actor: Actor,
    /// What brought it to the agent: `mcp`, `hook`, `steer`, `prompt` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The tool call in whose answer it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The level of a stop, and what it was raised from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_level: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first words of guidance, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_preview: Option<String>,
    /// The notes or the gate it is about; of a change the path it was made to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// How it was settled or answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A page of entries, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    pub entries: Vec<AuditEntry>,
    /// Give it back as `cursor` for older ones; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Not all logs could be looked at within one answer: name a session or a time to see all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Records that could not be read. What they held is missing here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub damaged: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
