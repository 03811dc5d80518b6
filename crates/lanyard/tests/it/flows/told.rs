//! What people are told of flows: that one waits for them, over a kill of the daemon and until it is answered; and that one
//! came to an end nobody asked for. Hooks are posted as well as run.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, id, until};

fn told(stage: &Stage, kind: &str) -> Vec<Value> {
    stage.get(&format!("/notifications?kind={kind}"))["notifications"].as_array().unwrap().clone()
}

#[test]
fn a_flow_that_waits_is_told_of_until_it_is_answered() {
    let mut stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    until("people to be told", || told(&stage, "flow_waiting").len() == 1);
    stage.daemon.kill_9();
    stage.up();
    let again = stage.gate(&flow, "needs_human");
    assert_eq!(again["id"], gate["id"]);
    let held = told(&stage, "flow_waiting");
    assert_eq!(
        (held.len(), &held[0]["subject"], &held[0]["over_at"]),
        (1, &json!(flow), &Value::Null),
        "{held:?}"
    );
    assert!(held[0]["text"].as_str().unwrap().contains(&id(&gate, "id")), "{held:?}");
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue", None);
    stage.settled(&flow, "completed");
    until("it to be over", || told(&stage, "flow_waiting").iter().all(|held| held["over_at"].is_string()));
    assert_eq!(told(&stage, "flow_failed"), Vec::<Value>::new());
}

/// Who aborts a flow knows; that one ended with its author's turn is told.
#[test]
fn an_end_nobody_asked_for_is_told_of_until_the_flow_goes_on() {
    let stage = Stage::new();
    stage.script("author", "/touch SIGNS/begun\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    stage.await_sign("begun");
    let session = id(&stage.events(&flow, "flow.invoked")[0], "session");
    stage.ok(&format!("/sessions/{session}/cancel"), &json!({}));
    stage.settled(&flow, "aborted");
    until("people to be told", || told(&stage, "flow_failed").len() == 1);
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.ok(&format!("/flows/{flow}/resume"), &json!({}));
    until("it to be over", || told(&stage, "flow_failed").iter().all(|held| held["over_at"].is_string()));
    stage.settled(&flow, "completed");

    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.answer(&flow, &gate, "abort", None);
    stage.settled(&flow, "aborted");
    until("the gate to be over", || {
        let held = told(&stage, "flow_waiting");
        !held.is_empty() && held.iter().all(|held| held["over_at"].is_string())
    });
    assert_eq!(told(&stage, "flow_failed"), Vec::<Value>::new());
}

/// A hook with an address gets the event; what it answers changes nothing.
#[test]
fn a_hook_is_posted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let settings = format!("hooks = [{{ on = [\"flow.gate_opened\"], url = \"http://{address}/hook\" }}]\n");
    let stage = Stage::with(&settings);
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let (mut stream, _) = listener.accept().unwrap();
    let mut heard = Vec::new();
    let body = loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        heard.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        if let Ok(event) = serde_json::from_str::<Value>(&body) {
            break event;
        }
        assert!(read > 0, "it broke off: {text}");
    };
    stream.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n").unwrap();
    assert_eq!((&body["flow"], &body["type"]), (&json!(flow), &json!("flow.gate_opened")), "{body}");
    until("the failure to be written down", || {
        stage.events(&flow, "flow.hooked").iter().any(|hooked| hooked["failed"][0].is_string())
    });
    assert_eq!(stage.gate(&flow, "needs_human")["id"], body["data"]["gate"]["id"]);
}
