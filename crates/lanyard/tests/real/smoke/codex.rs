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
    let (mut peer, thread) = start(&ground, Rights::Ask);
    turn(&mut peer, "turn_01greet", &thread, "greet");
    turn(&mut peer, "turn_02work", &thread, "work");
    assert!(peer.asked().contains(&"item/commandExecution/requestApproval"), "{:?}", peer.asked());
    let last = ground.model.wait("the tool's result", PATIENCE, |asked| asked.is("work", 1));
    assert!(last.asked.says(Role::Tool, OUTPUT), "{:?}", last.asked.tool_results());
}

#[test]
fn codex_app_server_runs_a_child_thread() {
    let ground = Ground::new();
    let spawn = json!({ "message": format!("do it {}", marker("child")) });
    let wait = json!({ "targets": ["{{field:agent_id}}"], "timeout_ms": 30_000 });
    let parent = [
        Step::tool("multi_agent_v1::spawn_agent", spawn),
        Step::tool("multi_agent_v1::wait_agent", wait),
        Step::text("Parent done."),
    ];
    ground.model.script("parent", parent);
    ground.model.script("child", [Step::text("CHILD-OK")]);
    let (mut peer, thread) = start(&ground, Rights::All);
    turn(&mut peer, "turn_01parent", &thread, "parent");
    let child = ground.model.wait("the child's turn", PATIENCE, |asked| asked.is("child", 0));
    assert_eq!(child.headers.get("x-codex-parent-thread-id").map(String::as_str), thread.as_str());
    let last = ground.model.wait("the parent's last step", PATIENCE, |asked| asked.is("parent", 2));
    assert!(last.asked.says(Role::Tool, "CHILD-OK"), "{:?}", last.asked.tool_results());
}

/// A server with one thread.
fn start(ground: &Ground, rights: Rights) -> (Peer, Value) {
    let agent = agents::codex(&ground.home, &ground.model, rights);
    let mut peer = Peer::start(&agent, &ground.work, Dialect::Codex, accept);
    let info = json!({ "name": "smoke", "title": "smoke", "version": "0" });
    let client = json!({ "clientInfo": info, "capabilities": { "experimentalApi": true } });
    peer.request("init", "initialize", &client);
    peer.notify("initialized", &json!({}));
    let started = peer.request("thread", "thread/start", &json!({ "cwd": ground.work }));
    let thread = started["thread"]["id"].clone();
    (peer, thread)
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
