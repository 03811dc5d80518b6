//! What harnesses say about a tool call, in one form. Unknown fields are ignored; what is missing is empty.

use lanyard_core::session::{CallerProof, Returned};
use serde::Deserialize;
use serde_json::Value;

use crate::relay::call_id;

/// Whose hook it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Harness {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

impl Harness {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }
}

/// Something happened in an agent, and it waits for the hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) harness: Harness,
    /// The harness's own name for it.
    pub(super) event: String,
    pub(super) moment: Moment,
    /// The agent's own id of the conversation.
    pub(super) native: String,
    pub(super) sub: Option<Sub>,
    pub(super) workspace: Option<String>,
    pub(super) tool: String,
    pub(super) call: String,
    /// The MCP servers the tool can be one of; none for the agent's own tools.
    pub(super) servers: Vec<String>,
    pub(super) returned: Returned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    BeforeTool,
    AfterTool,
    /// No tool, but the agent can be told something: it starts, or was given a prompt.
    Aside,
    /// After all tools the model called at once: the agent can be kept from asking its model again.
    AfterAll,
}

/// A subagent inside the agent's own process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sub {
    /// The name its session goes by.
    pub(super) alias: String,
    /// The conversation it works for.
    pub(super) of: String,
    pub(super) role: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookFields {
    hook_event_name: String,
    session_id: String,
    cwd: Option<String>,
    tool_name: String,
    tool_use_id: Option<String>,
    tool_response: Value,
    turn_id: Option<String>,
    timestamp: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    /// OpenCode's plugin: the session this one works for.
    parent_id: Option<String>,
    mcp_context: Option<HookContext>,
    error: Option<Value>,
    duration_ms: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HookContext {
    server_name: Option<String>,
}

impl Happened {
    /// What says whose call it is. Gemini's subagents act under their parent's id.
    pub(super) fn proof(&self) -> CallerProof {
        match self.harness {
            Harness::Claude | Harness::Codex | Harness::Opencode => CallerProof::Named,
            Harness::Gemini => CallerProof::Address,
        }
    }

    /// Nothing for what is no input of this harness, or for an event at which nothing can be said.
    pub(super) fn read(harness: Harness, text: &str) -> Option<Self> {
        let fields: HookFields = serde_json::from_str(text).ok()?;
        let moment = match fields.hook_event_name.as_str() {
            "PreToolUse" | "BeforeTool" | "tool.execute.before" => Moment::BeforeTool,
            "PostToolUse" | "PostToolUseFailure" | "AfterTool" | "tool.execute.after" => Moment::AfterTool,
            "SessionStart" | "UserPromptSubmit" | "BeforeAgent" => Moment::Aside,
            "PostToolBatch" => Moment::AfterAll,
            _ => return None,
        };
        if fields.session_id.is_empty() {
            return None;
        }
        let (tool, servers) = match moment {
            Moment::BeforeTool | Moment::AfterTool => (&fields.tool_name, servers(harness, &fields)),
            Moment::Aside | Moment::AfterAll => (&fields.hook_event_name, Vec::new()),
        };
        let failed = fields.hook_event_name == "PostToolUseFailure"
            || fields.error.is_some()
            || fields.tool_response.get("error").is_some_and(|error| !error.is_null());
        let response = &fields.tool_response;
        let bytes = if response.is_null() { 0 } else { response.to_string().len() };
        Some(Self {
            harness,
            moment,
            sub: sub(&fields),
            workspace: fields.cwd.clone(),
            tool: tool.clone(),
            call: call(&fields),
            servers,
            returned: Returned {
                is_error: failed,
                took_ms: fields.duration_ms,
                bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            },
            event: fields.hook_event_name,
            native: fields.session_id,
        })
    }
}

/// The harness's own id of the call. Without one, an id that no other call has.
fn call(fields: &HookFields) -> String {
    if let Some(id) = fields.tool_use_id.as_ref().filter(|id| !id.is_empty()) {
        return call_id(id);
    }
    let event = &fields.hook_event_name;
    let when = fields.timestamp.as_ref().or(fields.turn_id.as_ref());
    let mut bits = [0_u8; 8];
    // Without randomness two calls look like one, and nothing else is wrong.
    let _ = getrandom::fill(&mut bits);
    call_id(&when.map_or_else(
        || format!("{event}-{:016x}", u64::from_ne_bytes(bits)),
        |when| format!("{event}@{when}"),
    ))
}

fn sub(fields: &HookFields) -> Option<Sub> {
    let named = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(agent) = named(&fields.agent_id) {
        let alias = format!("{}/{agent}", fields.session_id);
        return Some(Sub { alias, of: fields.session_id.clone(), role: named(&fields.agent_type) });
    }
    let of = named(&fields.parent_id)?;
    Some(Sub { alias: fields.session_id.clone(), of, role: None })
}

/// Each harness writes the server's name into the tool's in its own way, and not always so that one can tell where it
/// ends.
fn servers(harness: Harness, fields: &HookFields) -> Vec<String> {
    let tool = fields.tool_name.as_str();
    match harness {
        Harness::Claude | Harness::Codex => {
            let server = tool.strip_prefix("mcp__").and_then(|rest| rest.split("__").next());
            server.map(str::to_owned).into_iter().collect()
        }
        Harness::Gemini => {
            match fields.mcp_context.as_ref().and_then(|context| context.server_name.clone()) {
                Some(server) => vec![server],
                None => tool.strip_prefix("mcp_").map(beginnings).unwrap_or_default(),
            }
        }
        Harness::Opencode => beginnings(tool),
    }
}

/// `a`, `a_b` of `a_b_c`.
fn beginnings(name: &str) -> Vec<String> {
    name.match_indices('_').map(|(at, _)| name[..at].to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(harness: Harness, text: &str) -> Happened {
        Happened::read(harness, text).unwrap()
    }

    #[test]
    fn a_subagent_of_claude_goes_by_both_ids() {
        let text = r#"{"session_id":"s1","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash",
            "tool_use_id":"toolu_1","agent_id":"a8d5","agent_type":"general-purpose"}"#;
        let happened = read(Harness::Claude, text);
        let sub = happened.sub.unwrap();
        assert_eq!((sub.alias.as_str(), sub.of.as_str()), ("s1/a8d5", "s1"));
        assert_eq!((happened.call.as_str(), happened.servers.len()), ("toolu_1", 0));
    }

    #[test]
    fn the_server_is_found_in_each_harness_own_way_of_naming_tools() {
        let servers = |harness, name: &str| {
            let text = format!(r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"{name}"}}"#);
            read(harness, &text).servers
        };
        assert_eq!(servers(Harness::Claude, "mcp__my_files__read_it"), ["my_files"]);
        assert_eq!(servers(Harness::Codex, "Bash"), [""; 0]);
        assert_eq!(servers(Harness::Gemini, "mcp_a_b_c"), ["a", "a_b"]);
        assert_eq!(servers(Harness::Opencode, "a_b_c"), ["a", "a_b"]);
        assert_eq!(servers(Harness::Opencode, "bash"), [""; 0]);
    }

    #[test]
    fn what_is_no_event_of_ours_is_passed_over() {
        assert_eq!(Happened::read(Harness::Claude, "no json"), None);
        assert_eq!(Happened::read(Harness::Claude, r#"{"hook_event_name":"PreToolUse"}"#), None);
        assert_eq!(Happened::read(Harness::Claude, r#"{"hook_event_name":"Stop","session_id":"s"}"#), None);
        assert_eq!(Happened::read(Harness::Claude, "[]"), None);
    }

    #[test]
    fn a_failed_tool_is_known_as_one() {
        let text = r#"{"session_id":"s","hook_event_name":"AfterTool","tool_name":"x",
            "timestamp":"2026-01-01T00:00:00Z","tool_response":{"llmContent":"no","error":{"message":"no"}}}"#;
        let happened = read(Harness::Gemini, text);
        assert!(happened.returned.is_error);
        assert_eq!(happened.call, "AfterTool@2026-01-01T00:00:00Z");
    }
}
