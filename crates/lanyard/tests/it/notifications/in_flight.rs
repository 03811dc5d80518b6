//! Calls under way, by each route they take: a hook, the gateway, a wrapped server. A call is a sign of life for as long
//! as it lasts, and all there is of an agent that its own host runs (FND-M3, FND-M5).

use std::path::PathBuf;

use serde_json::{Value, json};

use super::kit::{Stage, rounds, until};
use crate::gateway::kit::Client;
use crate::support::binary;
use crate::wrap::kit::{Wrapped, Wrapping, only_session};

const MINUTE: i64 = 60_000;

fn view(stage: &Stage, session: &str) -> Value {
    stage.get(&format!("/sessions/{session}"))
}

fn post(stage: &Stage, session: &str, what: &str, body: &Value) -> Value {
    let answer = stage.call("POST", &format!("/sessions/{session}/{what}"), body);
    assert!(answer.status < 300, "{what}: {}", answer.text());
    answer.json()
}

/// A child of another host's agent whose parent has fallen silent: only its calls say that it lives.
fn child(stage: &Stage) -> String {
    let made =
        |new: &Value| stage.call("POST", "/sessions", new).json()["session"].as_str().unwrap().to_owned();
    let parent = made(&json!({"source": "external", "agent": "claude"}));
    made(&json!({"source": "external", "agent": "explore", "parent": parent}))
}

/// The session works while its call is under way, for hours, and nobody calls it silent, idle, stale or orphaned.
fn works_for_hours(stage: &mut Stage, session: &str) {
    until("it to be at work", || (view(stage, session)["state"] == "executing").then_some(()));
    stage.later(47 * 60 * MINUTE);
    rounds();
    let view = view(stage, session);
    assert_eq!(
        (&view["state"], &view["lifecycle"], &view["operator_state"], &view["suspected_orphan"]),
        (&json!("executing"), &json!("running"), &json!("working"), &json!(false)),
        "{view:#}"
    );
    let rows = stage.get("/sessions");
    let row = rows["sessions"].as_array().unwrap().iter().find(|row| row["id"] == session).unwrap();
    assert_eq!((&row["attention"], &row["state"]), (&json!([]), &json!("executing")));
    assert_eq!(stage.notifications("suspected_orphan").len(), 0);
    let quiet = ["session.went_idle", "session.went_stale"];
    let log = stage.daemon.log_after(session, 0);
    assert!(log.iter().all(|event| !quiet.contains(&event["type"].as_str().unwrap())), "{log:#?}");
}

/// Its call returned: it rests, and becomes idle like any other.
fn rests(stage: &mut Stage, session: &str) {
    until("it to rest", || (view(stage, session)["state"] == "between_turn").then_some(()));
    stage.later(61 * MINUTE);
    until("it to be idle", || (view(stage, session)["state"] == "idle").then_some(()));
}

/// A server with a tool that waits for a file, and that file.
fn server() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = serde_json::to_string(&[binary().to_str().unwrap(), "scripted-mcp"]).unwrap();
    (folder, go, format!("[mcp.tools]\ncommand = {command}\n"))
}

#[test]
fn fnd_m5_fnd_m3_a_hooks_call_shows_its_session_at_work_until_it_returned() {
    let mut stage = Stage::new("");
    let session = child(&stage);
    let call = json!({"id": "c1", "tool": "Bash", "channel": "hook", "proof": "named"});
    assert_eq!(post(&stage, &session, "calls", &call)["go"], json!(true));
    works_for_hours(&mut stage, &session);
    let ended = json!({"call": call, "returned": {"is_error": false, "took_ms": 10_800_000, "bytes": 5}});
    post(&stage, &session, "calls/end", &ended);
    rests(&mut stage, &session);
    // A daemon that ends in the middle of a call leaves nothing at work.
    post(&stage, &session, "calls", &call);
    until("it to be at work", || (view(&stage, &session)["state"] == "executing").then_some(()));
    stage.daemon.kill_9();
    stage.again("");
    assert_eq!(view(&stage, &session)["state"], "between_turn");
}

#[test]
fn fnd_m5_fnd_m3_a_call_through_the_gateway_shows_its_session_at_work_until_it_returned() {
    let (_folder, go, config) = server();
    let mut stage = Stage::new(&config);
    let session = child(&stage);
    let mut client = Client::of(&stage.daemon, &session, "tools");
    client.greet("explore");
    let calling = std::thread::spawn({
        let (client, go) = (client.clone(), go.display().to_string());
        move || client.said("slow", &json!({"file": go, "text": "done"}))
    });
    works_for_hours(&mut stage, &session);
    std::fs::write(&go, "").unwrap();
    assert_eq!(calling.join().unwrap(), "done");
    rests(&mut stage, &session);
}

#[test]
fn fnd_m5_fnd_m3_a_call_of_a_wrapped_server_shows_its_session_at_work_until_it_returned() {
    let (_folder, go, _) = server();
    let mut stage = Stage::new("");
    let home = stage.daemon.home();
    let mut server = Wrapped::start(&Wrapping { home: &home, options: &["--name", "tools"], env: &[] });
    server.greet("claude-code");
    let session = only_session(&stage.daemon)["id"].as_str().unwrap().to_owned();
    let parent = stage.call("POST", "/sessions", &json!({"source": "external"})).json()["session"].clone();
    post(&stage, &session, "link", &json!({"parent": parent}));
    server.ask("tools/call", &json!({"name": "slow", "arguments": {"file": go, "text": "done"}}));
    works_for_hours(&mut stage, &session);
    std::fs::write(&go, "").unwrap();
    assert!(server.line().contains("done"));
    rests(&mut stage, &session);
}
