//! Flows and gates for tests, as they come over the wire.

use lanyard_api::types::{FlowGateEntry, FlowView};
use lanyard_core::Record as _;
use lanyard_core::flow::{Flow, FlowEnvelope, FlowGate};
use lanyard_core::{FlowId, GateId, SessionId, Timestamp, TurnId};
use serde_json::{Value, json};

/// Seconds of a morning.
pub(crate) fn time(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_794_729_600_000).plus_millis(seconds * 1_000)
}

pub(crate) fn flow_id() -> FlowId {
    FlowId::from_u128(3)
}

fn session() -> String {
    SessionId::from_u128(5).to_string()
}

fn gate(changes: &Value) -> FlowGate {
    let mut gate = json!({
        "id": GateId::from_u128(7).to_string(), "kind": "escalation", "step": 3, "from": "execute", "next": "execute",
        "code": "needs_human", "reason": "The author needs a person: which key?", "iteration": 0,
        "opened_at": time(0), "default": "wait",
    });
    for (name, value) in changes.as_object().unwrap() {
        gate[name] = value.clone();
    }
    serde_json::from_value(gate).unwrap()
}

/// One that offers to go on with the session, or says why it does not.
pub(crate) fn escalation(continues: bool) -> FlowGate {
    let mut changes = json!({
        "iteration": 2, "evidence": "error: no key\n\tat api.rs:12\n".replace('\t', ""),
        "items": [
            {"id": "k1", "title": "Which key?", "action": "human_required", "priority": "P0", "reason": "staging or production"},
            {"id": "k2", "title": "Name the route", "action": "auto_fix", "priority": "P1"},
        ],
    });
    if continues {
        changes["continue_session"] = json!({
            "session": session(), "resume_state": "execute", "role": "author",
            "probe": {"exists": true, "alive": true, "loadable": true, "idle": true, "context_left": true},
        });
    } else {
        changes["not_offered"] = json!("its session is gone");
    }
    gate(&changes)
}

pub(crate) fn phase_gate() -> FlowGate {
    gate(&json!({
        "kind": "phase", "from": "review", "next": "auto_fix", "code": "phase_ready",
        "reason": "\"Add the API\" was found ready.",
    }))
}

pub(crate) fn entry(gate: &FlowGate) -> FlowGateEntry {
    let value = json!({
        "flow": flow_id().to_string(), "title": "Release 1.0", "phase": "Add the API", "state": "escalate", "gate": gate,
    });
    serde_json::from_value(value).unwrap()
}

/// A log: each event at second `seq`.
pub(crate) fn log(events: &[(&str, Value)]) -> Vec<FlowEnvelope> {
    let envelope = |(at, (kind, data)): (usize, &(&str, Value))| {
        let seq = u64::try_from(at).unwrap() + 1;
        let value = json!({
            "flow": flow_id().to_string(), "seq": seq, "at": time(seq),
            "actor": {"kind": "operator", "name": "ann"}, "type": kind, "data": data,
        });
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{kind}: {error}"))
    };
    events.iter().enumerate().map(envelope).collect()
}

pub(crate) fn created() -> (&'static str, Value) {
    let phase = |title: &str, state: &str| json!({"title": title, "text": "", "state": state});
    let settings = json!({
        "author": {"agent": "codex"}, "reviewer": {"agent": "claude"},
        "quality": [{"name": "tests", "command": ["make", "test"]}],
    });
    let data = json!({
        "kind": "phases", "title": "Release 1.0", "plan": "/code/web/PLAN.md", "plan_hash": "x", "workspace": "/code/web",
        "settings": settings, "phases": [phase("Write it down", "skipped"), phase("Add the API", "open"), phase("Tell people", "open")],
    });
    ("flow.created", data)
}

pub(crate) fn invoked(role: &str, more: &Value) -> (&'static str, Value) {
    let mut data = json!({
        "step": 1, "role": role, "session": session(), "turn": TurnId::from_u128(9).to_string(),
    });
    for (name, value) in more.as_object().unwrap() {
        data[name] = value.clone();
    }
    ("flow.invoked", data)
}

/// What a log adds up to.
pub(crate) fn flow(log: &[FlowEnvelope]) -> Flow {
    let mut flow = Flow::born(&log[0]).unwrap();
    for envelope in &log[1..] {
        flow.apply(envelope).unwrap();
    }
    flow
}

pub(crate) fn view(log: &[FlowEnvelope]) -> FlowView {
    FlowView { flow: flow(log), elapsed_ms: 192_000, approvals: Vec::new() }
}

/// The events of a flow that went through much of what a flow can.
pub(crate) fn whole() -> Vec<(&'static str, Value)> {
    let turn = TurnId::from_u128(10).to_string();
    let spent = json!({"input_tokens": 3_400, "output_tokens": 120, "ms": 12_000});
    let result = |passed: bool, code: i32| json!({"result": {"name": "tests", "passed": passed, "exit_code": code, "output": "1 test\n1 failed\n", "ms": 1_200}});
    let verdict =
        json!({"is": "verdict", "readiness": "not_ready", "score": 60, "items": escalation(true).items});
    let mut gate = serde_json::to_value(escalation(true)).unwrap();
    gate["step"] = json!(5);
    gate["from"] = json!("review");
    let answer = json!({
        "gate": gate["id"], "choice": "continue_session", "guidance": "the staging key", "at": "2026-11-15T08:00:16Z",
        "by": {"kind": "operator", "name": "ann"},
    });
    vec![
        created(),
        ("flow.leased", json!({"holder": "one", "epoch": 1})),
        (
            "flow.tree_made",
            json!({"tree": {"path": "/data/trees/f", "branch": "lanyard/flow", "base": "abc", "repository": "/code/web"}}),
        ),
        invoked("author", &json!({})),
        ("flow.asked", json!({"stage": "summary", "turn": turn})),
        (
            "flow.asked",
            json!({"stage": "repair", "turn": turn, "fault": "there is no JSON object in the answer"}),
        ),
        (
            "flow.concluded",
            json!({"conclusion": {"is": "author", "status": "complete", "commit": "2b5c13df18e40627"}, "spent": spent}),
        ),
        ("flow.moved", json!({"to": "quality_check"})),
        ("flow.check_begun", json!({"place": 0, "run": "2.0.1"})),
        ("flow.check_ended", result(false, 1)),
        ("flow.moved", json!({"to": "quality_retry", "reason": "failed: tests"})),
        invoked("author", &json!({"step": 3})),
        (
            "flow.concluded",
            json!({"conclusion": {"is": "author", "status": "complete"}, "spent": {"input_tokens": 0, "output_tokens": 0, "ms": 900}}),
        ),
        ("flow.moved", json!({"to": "review"})),
        invoked("reviewer", &json!({"step": 4})),
        (
            "flow.concluded",
            json!({"conclusion": verdict, "spent": {"input_tokens": 0, "output_tokens": 0, "ms": 0}}),
        ),
        ("flow.moved", json!({"to": "escalate", "reason": "The review has 1 of 2 items for a person."})),
        ("flow.gate_opened", json!({"gate": gate})),
        ("flow.gate_answered", answer),
        ("flow.moved", json!({"to": "execute"})),
        invoked("author", &json!({"step": 6, "continues": true, "guidance": "the staging key"})),
        (
            "flow.concluded",
            json!({"conclusion": {"is": "failed", "kind": "timeout", "reason": "60s"}, "spent": {"input_tokens": 0, "output_tokens": 0, "ms": 60_000}}),
        ),
        ("flow.ended", json!({"state": "aborted", "reason": "cancelled by ann"})),
        (
            "flow.settled",
            json!({"captured": {"commit": "2b5c13df18e40627", "files": ["a"], "files_changed": 1}, "tree_removed": true}),
        ),
        ("flow.resumed", json!({})),
        ("flow.hooked", json!({"to": 3, "failed": ["notify: exit 1"]})),
    ]
}
