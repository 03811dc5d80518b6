//! The channel that will carry a text to an agent, known before the text is accepted. Derived from the record: the
//! capabilities of the run, and the calls of it that were seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::driven::DrivenBy;
use crate::session::record::Session;

/// Agents that `lanyard hook install` knows.
const HOOKED_AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// The channel that will carry words to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The agent takes words into its running turn.
    Steer,
    /// The agent's hook, with its next tool call or prompt.
    Hook,
    /// The answer to the agent's next call of an MCP tool.
    Mcp,
    /// The next prompt.
    Prompt,
    /// No channel is known that reaches the agent.
    None,
}

impl Carrier {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Hook => "hook",
            Self::Mcp => "mcp",
            Self::Prompt => "prompt",
            Self::None => "none",
        }
    }
}

/// The planned delivery of a text to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedDelivery {
    pub channel: Carrier,
    /// A sentence about the time of delivery.
    pub when: String,
    /// The command that would give the agent a quicker channel, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The kinds of calls that came by since the run began, whose answers can carry words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SeenCalls {
    /// The agent's hook asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hook: bool,
    /// An MCP call of the session itself came by.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mcp: bool,
}

/// Plans the delivery of words to the session's agent. `shared` says that a subagent may be using the session's MCP
/// connection, whose answers then carry nothing.
#[must_use]
pub fn plan_delivery(session: &Session, shared: bool) -> PlannedDelivery {
    let live = session.run.as_ref().filter(|run| run.is_live());
    let steers = live.is_some_and(|run| run.capabilities.steer);
    let host = session.driver() == DrivenBy::Host;
    let working = host || session.turn.is_some();
    let SeenCalls { hook, mcp } = session.seen_calls;
    let (channel, when) = match working {
        false => (Carrier::Prompt, "it goes with the agent's next prompt"),
        true if session.turn.is_some() && steers => (Carrier::Steer, "it goes into the running turn now"),
        true if hook => (Carrier::Hook, "it goes with the agent's next tool call or prompt, by its hook"),
        true if mcp && shared => (
            Carrier::Mcp,
            "it waits: a subagent may be using the agent's MCP connection. It goes in front of the answer to the \
             agent's next MCP call after that",
        ),
        true if mcp => (
            Carrier::Mcp,
            "it goes in front of the answer to the agent's next call of an MCP tool; calls of its own tools do not \
             carry it",
        ),
        true if host => (
            Carrier::None,
            "no channel to the agent is known: none of its tool calls has come by. It waits for the first one",
        ),
        true => (
            Carrier::Prompt,
            "it goes with the agent's next prompt: no tool call of the running turn has come by that could carry it",
        ),
    };
    let quick = matches!(channel, Carrier::Steer | Carrier::Hook) || !working;
    let advice = (!quick).then(|| advice(session));
    PlannedDelivery { channel, when: when.to_owned(), advice }
}

fn advice(session: &Session) -> String {
    let info = session.run.as_ref().and_then(|run| run.info.as_ref()).map(|info| info.name.as_str());
    let names = [session.hands.agent.as_deref(), info];
    let names: Vec<String> = names.into_iter().flatten().map(str::to_ascii_lowercase).collect();
    let known = HOOKED_AGENTS.into_iter().find(|agent| names.iter().any(|name| name.contains(agent)));
    match known {
        Some(agent) => {
            format!("install its hook with `lanyard hook install {agent}`, and start the agent again")
        }
        None => format!(
            "`lanyard hook install AGENT` gives {} such a channel",
            HOOKED_AGENTS.join(", ").replace(", opencode", " and opencode")
        ),
    }
}
