//! Tables and pictures of the screen of a session.

mod pictures;
mod tables;

use serde_json::{Value, json};

use super::*;
use crate::tui::testing::{SESSION, event};

const GATE: &str = "gate_01m7n5djg0fayvh8t5cxyjkdng";
const OWN: &str = "conn_01m7n5djg0fayvh8t5cxyjkdna";
const OTHER: &str = "conn_01m7n5djg0fayvh8t5cxyjkdnb";

fn empty(mode: Mode) -> Model {
    Model::new(SESSION.parse().unwrap(), mode, Paint::default(), 7)
}

/// The session as the API shows it, with some of it replaced.
fn session(changes: &Value) -> Value {
    let mut session = json!({
        "id": SESSION, "title": "fix the failing login test", "agent": "scripted", "state": "executing",
        "status": "active", "since": "2026-11-15T08:00:00Z", "last_seq": 7,
        "active_turn": {"id": "turn_01m7n5djg0fayvh8t5cxyjkdnt", "started_at": "2026-11-15T08:00:01Z"},
        "guidance": [], "gates": [], "inbox": [], "inbox_paused": null, "stop": null, "writer": null,
        "last_tool_call": {"tool": "bash", "at": "2026-11-15T08:00:05Z", "count": 1},
    });
    for (name, value) in changes.as_object().unwrap() {
        session[name] = value.clone();
    }
    session
}

fn connected(after: u64) -> Value {
    json!({
        "type": "connected", "session_id": SESSION, "session": {"id": SESSION}, "connection": OWN, "mode": "last",
        "head_seq": 7, "after": after, "state": "executing", "active_turn": null, "writer": null,
        "client_turn_id": "x", "heartbeat_ms": 15000,
    })
}

fn story() -> Vec<Value> {
    [
        (
            "turn.started",
            json!({"turn": "turn_01m7n5djg0fayvh8t5cxyjkdnt", "prompt": "fix the failing login test", "prompt_hash": "x", "opening": {"kind": "new"}}),
        ),
        ("thought", json!({"text": "First the test, then the code it tests."})),
        (
            "message",
            json!({"role": "agent", "text": "I will run the test first, and then look at what it says about the login \
                                             form and its handler."}),
        ),
        ("tool.called", json!({"call": "1", "tool": "bash", "arguments": {"command": "cargo test login"}})),
        ("tool.returned", json!({"call": "1", "is_error": true, "content": "1 test failed"})),
        ("file.changed", json!({"path": "src/login.rs", "added": 3, "removed": 1})),
        ("tool.called", json!({"call": "2", "tool": "bash", "arguments": {"command": "cargo test login"}})),
    ]
    .into_iter()
    .zip(1..)
    .map(|((kind, data), seq)| event(seq, kind, &data))
    .collect()
}

/// A session in the middle of a turn, twelve seconds in.
fn running(changes: &Value) -> Model {
    attached(Mode::Write, changes)
}

fn attached(mode: Mode, changes: &Value) -> Model {
    let mut model = empty(mode);
    model.update(Message::Resized { columns: 80, rows: 24 });
    model.update(Message::Link(Link::Up));
    model.update(Message::Frame(connected(0)));
    for raw in story() {
        model.update(Message::Frame(raw));
    }
    model.update(Message::Reply(Asked::Session, Ok(session(changes))));
    model.fresh = Fresh::Yes;
    for _ in 0..4 {
        tick(&mut model);
    }
    model
}

fn tick(model: &mut Model) {
    model.update(Message::Tick("2026-11-15T08:00:12Z".parse().unwrap()));
}

fn gate() -> Value {
    json!({
        "id": GATE, "run": "run_01m7n5djg0fayvh8t5cxyjkdnr", "kind": "permission",
        "title": "Run `rm -rf build`?", "request": "9", "opened_at": "2026-11-15T08:00:10Z",
        "status": {"name": "open"},
        "options": [
            {"id": "yes", "name": "Allow once", "kind": "allow_once"},
            {"id": "always", "name": "Always allow", "kind": "allow_always"},
            {"id": "no", "name": "Reject", "kind": "reject_once"},
        ],
    })
}

fn queue() -> Value {
    json!([
        {"turn": "turn_a", "prompt": "then the docs", "delivery": "queue", "actor": {"kind": "operator", "name": "ann"}},
        {"turn": "turn_b", "prompt": "and a changelog line\nwith its number", "delivery": "queue",
         "actor": {"kind": "operator", "name": "web"}},
    ])
}

fn writer(connection: &str, asked: &Value) -> Value {
    json!({
        "connection": connection, "actor": {"kind": "operator", "name": "operator"}, "client": "web", "epoch": 4,
        "since": "2026-11-15T08:00:00Z", "asked": asked,
    })
}

fn refusal(code: &str, unheard: bool) -> Refused {
    Refused {
        code: code.to_owned(),
        title: "it was not taken".to_owned(),
        advice: "look".to_owned(),
        unheard,
    }
}
