//! `codex app-server` alone: a thread, a text turn, and a turn whose command must be approved.

use serde_json::{Value, json};

use super::{COMMAND, Ground, OUTPUT};
use crate::agents::{self, Rights};
use crate::model::{Role, Step, marker};
use crate::peer::{Dialect, PATIENCE, Peer};

#[test]
fn codex_app_server_talks_and_asks_for_approval() {
    let ground = Ground::new();
    ground.model.script("greet", [Step::text("Hello from the script.").usage(1200, 34)]);
    let call =
        json!({ "cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "smoke" });
    ground.model.script("work", [Step::tool("exec_command", call), Step::text("Work done.")]);
    let agent = agents::codex(&ground.home, &ground.model, Rights::Ask);
    let mut peer = Peer::start(&agent, &ground.work, Dialect::Codex, accept);
    let info = json!({ "name": "smoke", "title": "smoke", "version": "0" });
    let client = json!({ "clientInfo": info, "capabilities": { "experimentalApi": true } });
    peer.request("init", "initialize", &client);
    peer.notify("initialized", &json!({}));
    let started = peer.request("thread", "thread/start", &json!({ "cwd": ground.work }));
    let thread = started["thread"]["id"].clone();
    turn(&mut peer, "turn_01greet", &thread, "greet");
    turn(&mut peer, "turn_02work", &thread, "work");
    assert!(peer.asked().contains(&"item/commandExecution/requestApproval"), "{:?}", peer.asked());
    let last = ground.model.wait("the tool's result", PATIENCE, |asked| asked.is("work", 1));
    assert!(last.asked.says(Role::Tool, OUTPUT), "{:?}", last.asked.tool_results());
}

fn turn(peer: &mut Peer, id: &str, thread: &Value, script: &str) {
    let input = json!([{ "type": "text", "text": format!("go {}", marker(script)) }]);
    let started = peer.request(id, "turn/start", &json!({ "threadId": thread, "input": input }));
    let turn = started["turn"]["id"].clone();
    let ended = peer.until("the end of the turn", |message| {
        message["method"] == "turn/completed" && message["params"]["turn"]["id"] == turn
    });
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
}

fn accept(_: &Value) -> Value {
    json!({ "decision": "accept" })
}
