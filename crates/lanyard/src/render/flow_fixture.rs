//! Flows and gates for tests, as they come over the wire.

use lanyard_core::flow::{Flow, FlowEnvelope, FlowGate};
use lanyard_core::{FlowId, GateId, SessionId, Timestamp};
use lanyard_daemon::api::types::{FlowGateEntry, FlowView};
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

pub(crate) fn entry(gate: FlowGate) -> FlowGateEntry {
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
        "kind": "phases", "title": "Release 1.0", "plan": "/work/web/PLAN.md", "plan_hash": "x", "workspace": "/work/web",
        "settings": settings, "phases": [phase("Write it down", "skipped"), phase("Add the API", "open"), phase("Tell people", "open")],
    });
    ("flow.created", data)
}

pub(crate) fn invoked(role: &str, more: &Value) -> (&'static str, Value) {
    let mut data = json!({
        "step": 1, "role": role, "session": session(), "turn": lanyard_core::TurnId::from_u128(9).to_string(),
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
    FlowView { flow: flow(log), elapsed_ms: 192_000 }
}
