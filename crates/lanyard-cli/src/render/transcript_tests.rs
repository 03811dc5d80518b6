//! Logs as conversations: events in, items out.

use expect_test::expect;
use serde_json::json;

use super::*;

const TURN: &str = "turn_01m7n5djg0fayvh8t5cxyjkdnt";
const GATE: &str = "gate_01m7n5djg0fayvh8t5cxyjkdng";
const RUN: &str = "run_01m7n5djg0fayvh8t5cxyjkdnr";

fn raw(seq: u64, kind: &str, data: &Value) -> Value {
    json!({
        "seq": seq, "session": lanyard_core::SessionId::from_u128(7), "at": format!("2026-11-15T08:00:{seq:02}Z"),
        "actor": {"kind": "operator", "name": "ann"}, "type": kind, "data": data,
    })
}

/// The items of a log, one line each; calls with their results.
fn told(events: &[(&str, Value)]) -> String {
    let (mut transcriber, mut pairs) = (Transcriber::default(), CallPairs::default());
    let mut items = Vec::new();
    for (seq, (kind, data)) in (1..).zip(events) {
        let read = transcriber.read(&raw(seq, kind, data));
        items.extend(read.into_iter().filter_map(|item| pairs.join(item)));
    }
    items.extend(pairs.unfinished());
    items.iter().fold(String::new(), |text, item| {
        let line = if let TranscriptItem::Tool(tool) = item {
            format!("Tool({:?})", tool.line())
        } else {
            format!("{item:?}")
        };
        text + &line + "\n"
    })
}

#[test]
fn a_turn_is_told_from_its_prompt_to_its_end() {
    let started = json!({"turn": TURN, "prompt": "fix it", "prompt_hash": "x", "opening": {"kind": "new"}});
    let plan = json!({"entries": [{"text": "look", "status": "completed"}, {"text": "do", "status": "in_progress"}]});
    let events = [
        ("turn.started", started),
        ("run.started", json!({"run": RUN, "number": 1, "agent": "codex", "driver": "codex"})),
        ("thought", json!({"text": "hm"})),
        ("message", json!({"role": "agent", "text": "Looking.\nThen "})),
        ("message", json!({"role": "user", "text": "the prompt once more"})),
        ("tool.called", json!({"call": "1", "tool": "bash", "arguments": {"command": "cargo test\n-q"}})),
        ("tool.returned", json!({"call": "1", "is_error": false, "content": [{"text": "fine"}]})),
        ("file.changed", json!({"path": "src/a.rs", "added": 3})),
        ("plan.updated", plan.clone()),
        ("plan.updated", plan),
        ("usage.reported", json!({"input_tokens": 1, "output_tokens": 2})),
        (
            "gate.opened",
            json!({"gate": GATE, "run": RUN, "kind": "permission", "title": "Run it?", "options": [], "request": "9"}),
        ),
        ("gate.answered", json!({"gate": GATE, "option": "allow", "message": "once"})),
        ("no.such.event", json!({"text": "of a later version"})),
        ("record.damaged", json!({"what": "checksum"})),
        ("tool.called", json!({"call": "3", "tool": "wait", "arguments": {"for": 1}})),
        (
            "turn.interrupted",
            json!({"turn": TURN, "cause": "crash", "uncertain": true, "reason": "signal 9"}),
        ),
        ("session.ended", json!({"how": "stopped", "reason": "enough"})),
    ];
    expect![[r#"
        Prompt { from: "ann", text: "fix it", steered: false }
        Note("starting codex")
        Thought("hm")
        Words { who: "codex", text: "Looking.\nThen ", message_id: None, begins: true }
        Tool("bash cargo test -q: ok")
        Note("file src/a.rs +3 -0")
        Note("plan: 1 of 2 steps done, now: do")
        Asks { gate: Some(gate_01m7n5djg0fayvh8t5cxyjkdng), title: "Run it?" }
        Note("answered by ann: allow, \"once\"")
        Loud("event 15 is damaged: checksum")
        End { text: "interrupted by crash after 16s: signal 9", completed: false }
        End { text: "the session was stopped: enough", completed: false }
        Tool("wait {\"for\":1}: no result")
    "#]]
    .assert_eq(&told(&events));
}

#[test]
fn a_message_that_goes_into_the_running_turn_is_told_whole() {
    let started = json!({"turn": TURN, "prompt": "one", "prompt_hash": "x", "opening": {"kind": "new"}});
    let other = "turn_01m7n5djg0fayvh8t5cxyjkdnv";
    let long = "word ".repeat(60);
    let queued = json!({"turn": other, "prompt": long, "prompt_hash": "y", "delivery": "steer"});
    let events = [
        ("turn.started", started),
        ("turn.queued", queued),
        ("turn.steered", json!({"turn": other, "into": TURN, "channel": "inbox"})),
        ("turn.finished", json!({"turn": TURN, "outcome": "completed"})),
    ];
    let text = told(&events);
    assert!(text.contains(&format!("text: {long:?}, steered: true")), "{text}");
    assert!(text.contains("queued by ann: \\\"word"), "{text}");
    assert!(text.ends_with("End { text: \"completed after 3s\", completed: true }\n"), "{text}");
}
