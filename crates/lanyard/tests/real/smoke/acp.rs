//! The four ACP agents, one scenario: a text turn and a turn with a tool call that asks first.

use serde_json::{Value, json};

use super::{COMMAND, Ground, OUTPUT};
use crate::agents::{self, Agent, Rights};
use crate::model::{Model, Outcome, Role, Step, marker};
use crate::peer::{Dialect, PATIENCE, Peer};

#[test]
fn opencode_acp_talks_and_runs_a_tool() {
    let call = json!({ "command": COMMAND, "description": "smoke" });
    talks_and_runs_a_tool(agents::opencode_acp, Step::tool("bash", call), None);
}

#[test]
fn claude_acp_talks_and_runs_a_tool() {
    let call = json!({ "command": COMMAND, "description": "smoke" });
    talks_and_runs_a_tool(agents::claude_acp, Step::tool("Bash", call), None);
}

#[test]
fn codex_acp_talks_and_runs_a_tool() {
    let call =
        json!({ "cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "smoke" });
    talks_and_runs_a_tool(agents::codex_acp, Step::tool("exec_command", call), Some("workspace-write"));
}

#[test]
fn gemini_acp_talks_and_runs_a_tool() {
    let call = json!({ "command": COMMAND });
    talks_and_runs_a_tool(agents::gemini_acp, Step::tool("run_shell_command", call), None);
}

fn talks_and_runs_a_tool(
    agent: fn(&std::path::Path, &Model, Rights) -> Agent,
    tool: Step,
    mode: Option<&str>,
) {
    let ground = Ground::new();
    ground.model.script("greet", [Step::text("Hello from the script.").usage(1200, 34)]);
    ground.model.script("work", [tool, Step::text("Work done.")]);
    let agent = agent(&ground.home, &ground.model, Rights::Ask);
    let mut peer = Peer::start(&agent, &ground.work, Dialect::JsonRpc2, allow_once);
    let file_system = json!({ "readTextFile": true, "writeTextFile": true });
    let capabilities = json!({ "fs": file_system, "terminal": false });
    let client = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    let hello = peer.request("init", "initialize", &client);
    assert_eq!(hello["protocolVersion"], 1);
    let new = json!({ "cwd": ground.work, "mcpServers": [] });
    let session = peer.request("sess_01new", "session/new", &new)["sessionId"].clone();
    if let Some(mode) = mode {
        let params = json!({ "sessionId": session, "modeId": mode });
        peer.request("mode", "session/set_mode", &params);
    }
    let prompt = |script: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": format!("go {}", marker(script)) }] });
    let greeted = peer.request("turn_01greet", "session/prompt", &prompt("greet"));
    assert_eq!(greeted["stopReason"], "end_turn");
    // An agent may say something of its own first, such as a warning about an unknown model.
    assert!(said(&peer.heard).ends_with("Hello from the script."), "{}", said(&peer.heard));
    let worked = peer.request("turn_02work", "session/prompt", &prompt("work"));
    assert_eq!(worked["stopReason"], "end_turn");
    assert!(said(&peer.heard).ends_with("Work done."), "{}", said(&peer.heard));
    assert!(peer.asked().contains(&"session/request_permission"), "{:?}", peer.asked());
    let last = ground.model.wait("the tool's result", PATIENCE, |asked| {
        asked.is("work", 1) && asked.outcome == Outcome::Answered
    });
    assert!(last.asked.says(Role::Tool, OUTPUT), "{:?}", last.asked.tool_results());
    assert!(last.asked.says(Role::User, &marker("greet")), "the first turn is part of the conversation");
}

/// The text of the agent's messages.
fn said(heard: &[Value]) -> String {
    let updates = heard.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
}

/// Says yes to a permission request, once.
fn allow_once(request: &Value) -> Value {
    let options = request["params"]["options"].as_array().cloned().unwrap_or_default();
    let yes = options.iter().find(|option| option["kind"] == "allow_once");
    json!({ "outcome": { "outcome": "selected", "optionId": yes.map(|option| &option["optionId"]) } })
}
