//! A tool call on its way through Lanyard: whether it is carried out, and what is put in front of its answer.
//!
//! A stop is looked at twice: before the call, since from level 2 on the tool must not run, and before its
//! answer goes out, since words may have come while it ran. A stop outranks guidance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{NoteId, RunId};
use crate::session::guidance::NoteKind;
use crate::session::record::is_default;
use crate::session::stop::{StopLevel, StopScope};
use crate::time::Timestamp;

/// Time after which the log records a running call; shorter calls are recorded when they have returned.
pub const IN_FLIGHT_AFTER_MS: u64 = 200;

/// A tool call that came by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The caller's own id of it.
    pub id: String,
    /// The MCP server it is for; nothing for an agent's own tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub tool: String,
    pub channel: Channel,
    /// Set when the call does what a stop asks for: it is exempt, and carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliance: Option<Compliance>,
    /// Certainty that the session's own agent makes the call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub proof: CallerProof,
    /// The run whose token the call came with; set by the daemon, never by the caller.
    #[serde(skip)]
    pub run: Option<RunId>,
}

impl Call {
    /// Whether a subagent may be the caller: then the answer carries nothing and proves nothing.
    #[must_use]
    pub fn is_uncertain(&self) -> bool {
        self.proof == CallerProof::Uncertain
    }
}

/// The proof that attributes a call to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerProof {
    /// The session's own address: sure as long as no subagent shares it.
    #[default]
    Address,
    /// The call names its caller: the agent's own id of the conversation or of the subagent, or a `_session_id`.
    Named,
    /// A subagent may share the address, and the call does not say whose it is.
    Uncertain,
}

/// Tools by which agents set a subagent to work, which may then use the agent's own MCP connection.
const SPAWNING_TOOLS: [&str; 9] = [
    "task",
    "agent",
    "subagent",
    "spawn_agent",
    "dispatch_agent",
    "delegate",
    "delegate_to_agent",
    "invoke_agent",
    "collab_tool_call",
];

/// Arguments that say which subagent is to work, for agents that name the call after its purpose.
const SPAWNING_ARGUMENTS: [&str; 2] = ["subagent_type", "agent_name"];

/// Whether a tool of this name sets a subagent to work.
#[must_use]
pub fn spawns_subagents(tool: &str) -> bool {
    SPAWNING_TOOLS.iter().any(|name| name.eq_ignore_ascii_case(tool))
}

/// Whether a call of this tool with these arguments sets a subagent to work. Gemini CLI tells neither tool nor arguments
/// over ACP: the id of its call begins with the tool's name.
pub(super) fn is_spawn(call: &str, tool: &str, arguments: &serde_json::Value) -> bool {
    let named = |key: &str| arguments.get(key).is_some_and(serde_json::Value::is_string);
    let by_id = call.split_once("__").is_some_and(|(tool, _)| spawns_subagents(tool));
    by_id || spawns_subagents(tool) || SPAWNING_ARGUMENTS.into_iter().any(named)
}

/// The channel of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// An MCP call through the gateway.
    Mcp,
    /// A tool of the agent's own, seen by its hook.
    Hook,
}

impl Channel {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Hook => "hook",
        }
    }
}

/// The way in which a call complies with a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compliance {
    HandOff,
    Complete,
    Acknowledge,
}

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Returned {
    pub is_error: bool,
    pub took_ms: u64,
    /// Bytes of the answer.
    pub bytes: u64,
}

/// Whether a call is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    Go,
    /// The call is not executed; the agent gets this directive instead.
    Refused(Directive),
}

/// A stop as it is delivered to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    pub level: StopLevel,
    pub scope: StopScope,
    pub reason: Option<String>,
}

/// A piece of guidance as it is delivered to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub note: NoteId,
    pub text: String,
    pub by: Actor,
    pub queued_at: Timestamp,
    pub kind: NoteKind,
    /// The note went out before, and its arrival is unknown.
    pub again: bool,
}

/// Text that precedes an answer, or replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lead {
    pub stop: Option<Directive>,
    pub notes: Vec<Told>,
}

impl Lead {
    /// Whether there is no text: the answer passes untouched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stop.is_none() && self.notes.is_empty()
    }

    /// The original answer is held back.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.level > StopLevel::Graceful)
    }

    /// The answer is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.level == StopLevel::Terminated)
    }
}
