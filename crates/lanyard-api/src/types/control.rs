//! Stops, guidance and tool calls, as the API speaks of them.

use lanyard_core::session::{Call, Compliance, Note, Returned, StateName, StopLevel, StopScope};
use lanyard_core::{Actor, NoteId, Outcome, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stop that is asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewStop {
    pub reason: Option<String>,
    pub scope: StopScope,
    /// Begin at level 2: nothing more is carried out.
    pub now: bool,
}

/// What a stop was answered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Sessions below that were reached too, with the scope `subtree`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Outcome>,
    /// Live sessions below that the stop leaves alone.
    #[serde(default)]
    pub untouched: u64,
}

/// What a stop has reached so far, and by which channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopReceipt {
    pub session: SessionId,
    pub state: StateName,
    pub level: StopLevel,
    pub scope: StopScope,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complying: Option<Compliance>,
    /// What was tried and what came of it, in order.
    pub steps: Vec<StopStep>,
    /// Nothing of what was to be stopped lives any more.
    pub confirmed: bool,
    /// What may still live of a session that has ended, where its end is not confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<String>,
    pub withdrawn: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopStep {
    pub at: Timestamp,
    /// `request`, `mcp`, `hook`, `agent`, `term`, `kill`, `process`, `deadline`, `guidance`, `end`.
    pub channel: String,
    pub what: String,
}

/// A session's guidance: what waits, and the newest that is settled.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GuidanceList {
    pub waiting: Vec<Note>,
    pub settled: Vec<Note>,
}

/// A tool call that is about to be carried out, or has been.
pub type NewCall = Call;

/// Whether a call is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallAnswer {
    pub go: bool,
    /// What the agent gets instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<StopLevel>,
    /// A subagent may have made the call. Give it back as the call's `proof`: `uncertain`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
}

/// A tool call that came back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallEnded {
    pub call: Call,
    #[serde(default)]
    pub returned: Returned,
}

/// What goes in front of a call's answer, or in its place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CallLead {
    /// Whole content blocks, in order. None: the answer passes untouched.
    pub blocks: Vec<String>,
    /// The original answer is held back.
    pub withhold: bool,
    /// The answer is an error.
    pub is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<StopLevel>,
    /// Guidance that is in the blocks. Report them with `calls/unsent` if the answer does not get out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteId>,
}

/// Guidance whose answer did not get out.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallUnsent {
    pub notes: Vec<NoteId>,
}
