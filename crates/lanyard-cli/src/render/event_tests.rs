//! One line per event, for a whole life and for what cannot be understood.

use expect_test::expect;
use serde_json::{Value, json};

use super::line;

fn event(seq: u64, kind: &str, data: &Value) -> Value {
    json!({
        "seq": seq,
        "session": "sess_01m7n5djg0fayvh8t5cxyjkdnf",
        "at": "2026-11-15T08:00:00.007Z",
        "actor": { "kind": if kind.starts_with("session.i") { "system" } else { "operator" }, "name": "operator" },
        "type": kind,
        "data": data,
    })
}

#[test]
fn a_life_in_one_line_per_event() {
    let turn = "turn_01m7n5djg0fayvh8t5cxyjkdnf";
    let note = "note_01m7n5djg0fayvh8t5cxyjkdnf";
    let policy = json!({ "depth_limit": 3, "leaf": false, "memory_mode": "session_only" });
    let life = [
        (
            "session.created",
            json!({ "state": "beginning", "title": "fix it", "agent": "opencode", "owner": "me", "source": "cli", "policy": policy }),
        ),
        (
            "turn.started",
            json!({ "turn": turn, "prompt": "run\nthe tests", "prompt_hash": "x", "opening": { "kind": "returned", "after_ms": 180_000_000 }, "anchors": ["a"] }),
        ),
        ("tool.called", json!({ "call": "1", "tool": "bash", "arguments": { "command": "cargo test" } })),
        ("tool.returned", json!({ "call": "1", "is_error": true, "content": "\u{1b}[31mfailed" })),
        ("message", json!({ "role": "agent", "text": "It fails." })),
        ("usage.reported", json!({ "input_tokens": 10, "output_tokens": 2, "context_tokens": 900 })),
        ("guidance.queued", json!({ "note": note, "text": "use the staging key" })),
        ("guidance.delivered", json!({ "notes": [note], "channel": "mcp" })),
        (
            "context.compacted",
            json!({ "size_before": 900, "size_after": 90, "anchors_survived": [], "anchors_lost": ["a", "b"], "nth": 1, "checkpoint": 4 }),
        ),
        ("context.checkpoint", json!({ "position": 9, "reason": "risky_tool" })),
        ("stop.requested", json!({ "level": 1, "reason": "enough" })),
        ("stop.raised", json!({ "from": 1, "to": 2 })),
        ("turn.interrupted", json!({ "turn": turn, "cause": "user", "reason": "cancelled" })),
        ("session.idle", json!({ "quiet_ms": 3_600_000 })),
        (
            "session.migrated",
            json!({ "from": { "agent": "a", "owner": "me" }, "to": { "agent": "b", "owner": "me" }, "reason": "rest" }),
        ),
        ("command.refused", json!({ "command": "start_turn", "code": "session_stopping", "state": "idle" })),
        ("session.ended", json!({ "how": "stopped", "reason": "enough" })),
        ("session.archived", json!({})),
    ];
    // A first line without indentation keeps the others': what all lines share is not compared.
    let text = (1..).zip(&life).fold("life\n".to_owned(), |text, (seq, (kind, data))| {
        text + &line(&event(seq, kind, data), None) + "\n"
    });
    expect![[r#"
        life
            1  2026-11-15T08:00:00Z  session.created        beginning, opencode, "fix it", by operator
            2  2026-11-15T08:00:00Z  turn.started           "run the tests", back after 2d, with 1 anchor, by operator
            3  2026-11-15T08:00:00Z  tool.called            bash {"command":"cargo test"}
            4  2026-11-15T08:00:00Z  tool.returned          error: �[31mfailed
            5  2026-11-15T08:00:00Z  message                agent: It fails.
            6  2026-11-15T08:00:00Z  usage.reported         10 in, 2 out, 900 in context
            7  2026-11-15T08:00:00Z  guidance.queued        "use the staging key", by operator
            8  2026-11-15T08:00:00Z  guidance.delivered     1 note through mcp, by operator
            9  2026-11-15T08:00:00Z  context.compacted      900 → 90, 2 anchors lost, by operator
           10  2026-11-15T08:00:00Z  context.checkpoint     at 9, before a risky tool, by operator
           11  2026-11-15T08:00:00Z  stop.requested         level 1 (graceful), "enough", by operator
           12  2026-11-15T08:00:00Z  stop.raised            level 2 (immediate), by operator
           13  2026-11-15T08:00:00Z  turn.interrupted       user, "cancelled", by operator
           14  2026-11-15T08:00:00Z  session.idle           quiet for 1h
           15  2026-11-15T08:00:00Z  session.migrated       agent a → b, "rest", by operator
           16  2026-11-15T08:00:00Z  command.refused        start_turn while idle: session_stopping, by operator
           17  2026-11-15T08:00:00Z  session.ended          stopped, "enough", by operator
           18  2026-11-15T08:00:00Z  session.archived       by operator
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_line_fits_the_terminal() {
    let said = event(1, "message", &json!({ "role": "agent", "text": "word ".repeat(100) }));
    expect![[r"    1  2026-11-15T08:00:00Z  message                agent: word word word word…"]]
        .assert_eq(&line(&said, Some(80)));
}

#[test]
fn an_event_of_a_newer_lanyard_is_shown_as_it_is() {
    let mut unknown = event(3, "session.teleported", &json!({ "to": "mars" }));
    unknown["actor"] = json!({ "kind": "wizard", "name": "x" });
    expect![[r#"    3  2026-11-15T08:00:00.007Z  session.teleported     {"to":"mars"}"#]]
        .assert_eq(&line(&unknown, None));
}
