//! Agents that Lanyard starts reach their servers through the gateway, without being told to.

use serde_json::json;

use super::kit::{Stage, until};
use super::server::Server;
use crate::support::binary;

#[test]
fn an_agent_gets_the_gateways_addresses_and_no_secret_of_a_server() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("state");
    let command = serde_json::to_string(&[
        &binary().display().to_string(),
        "scripted-agent",
        "--state",
        &memory.display().to_string(),
    ])
    .unwrap();
    let config = server.config("h", "") + &format!("[agents.a]\ndriver = \"acp\"\ncommand = {command}\n");
    let stage = Stage::new(&config);
    let session = stage.session(&json!({"agent": "a", "workspace": folder.path()}));
    stage.post(
        &format!("/sessions/{session}/turns"),
        &json!({"prompt": "/mcp h echo {}\n/mcp lanyard none {}"}),
    );
    let log = || stage.daemon.log_after(&session, 0);
    until("the turn's end", || log().iter().any(|event| event["type"] == "turn.finished"));
    assert_eq!(stage.entry("h")["calls"], 1);
    let returned: Vec<_> = log().into_iter().filter(|event| event["type"] == "tool.returned").collect();
    assert!(returned[0].to_string().contains("echo"), "{returned:?}");
    for _ in 0..2 {
        server.got();
    }
    let (head, _) = server.got();
    assert!(head.contains("x-key: secret") && !head.contains("lys_"), "{head}");
    // The agent itself never saw it.
    let kept: String = std::fs::read_dir(&memory)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(!kept.contains("secret"));
}
