//! Folds of short logs into glances.

use lanyard_api::types::{Glance, HourlyCost};
use lanyard_core::session::Envelope;
use serde_json::{Value, json};

use super::{GlanceFold, last_sentence};

/// The glance of a log, given as pairs of a type and its data.
fn read(events: &[(&str, Value)]) -> Glance {
    let mut fold = GlanceFold::default();
    for (at, (kind, data)) in events.iter().enumerate() {
        fold.take(&envelope(at as u64 + 1, "2026-11-16T10:00:00Z", kind, data));
    }
    fold.glance()
}

fn envelope(seq: u64, at: &str, kind: &str, data: &Value) -> Envelope {
    let session = "sess_01m7qnaxwnfcxtmgsfytg0ar7k";
    let actor = json!({"kind": "agent", "name": "demo"});
    let event = json!({"seq": seq, "session": session, "at": at, "actor": actor, "type": kind, "data": data});
    serde_json::from_value(event).unwrap()
}

fn started() -> (&'static str, Value) {
    let turn = "turn_01m7qnaxwnfcxtmgsfytg0ar7k";
    ("turn.started", json!({"turn": turn, "prompt": "p", "prompt_hash": "h", "opening": {"kind": "new"}}))
}

fn says(text: &str) -> (&'static str, Value) {
    ("message", json!({"role": "agent", "text": text}))
}

fn calls(call: &str, tool: &str, arguments: &Value) -> (&'static str, Value) {
    ("tool.called", json!({"call": call, "tool": tool, "arguments": arguments}))
}

#[test]
fn fnd_d4_a_running_call_is_shown_with_its_argument_until_it_returns() {
    let called = calls("1", "bash", &json!({"command": "npm test\n--watch"}));
    let call = read(std::slice::from_ref(&called)).call.unwrap();
    assert_eq!((call.tool.as_str(), call.about.as_deref()), ("bash", Some("npm test --watch")));
    assert!(call.running);
    let failed = ("tool.returned", json!({"call": "1", "is_error": true}));
    let call = read(&[called.clone(), failed]).call.unwrap();
    assert!(!call.running && call.failed);
    // The return of an older call does not end the latest.
    let other = ("tool.returned", json!({"call": "0", "is_error": true}));
    let call = read(&[called, other]).call.unwrap();
    assert!(call.running && !call.failed);
}

#[test]
fn fnd_d4_the_last_sentence_is_of_the_latest_message_of_the_turn() {
    let glance = read(&[says("The old one."), started(), says("Half a "), says("sentence.\n\nDone.")]);
    assert_eq!(glance.said.as_deref(), Some("Done."));
    let glance = read(&[says("Before."), calls("1", "read", &json!({})), says("After.")]);
    assert_eq!(glance.said.as_deref(), Some("After."));
    let glance = read(&[says("Before."), calls("1", "read", &json!({}))]);
    assert_eq!(glance.said, None);
    let glance = read(&[says("Before."), started()]);
    assert_eq!(glance.said, None);
}

#[test]
fn a_last_sentence_is_without_markup_and_short() {
    assert_eq!(last_sentence("# Title\n\n- **All tests pass**\n\n```\n"), "All tests pass");
    let long = format!("{} End of it.", "A sentence that goes on. ".repeat(20));
    let said = last_sentence(&long);
    assert!(said.ends_with("End of it.") && said.chars().count() <= 160, "{said}");
    let endless = last_sentence(&"word".repeat(200));
    assert_eq!(endless.chars().count(), 160);
    assert_eq!(last_sentence(""), "");
}

#[test]
fn fnd_d4_plan_changes_and_usage_add_up() {
    let step = |status: &str| json!({"text": "t", "status": status});
    let changed = |path: &str| ("file.changed", json!({"path": path, "added": 3, "removed": 1}));
    let used = (
        "usage.reported",
        json!({"input_tokens": 10, "output_tokens": 5, "context_tokens": 900, "cost_micros": 20}),
    );
    let glance = read(&[
        ("plan.updated", json!({"entries": [step("completed"), step("in_progress"), step("pending")]})),
        changed("a"),
        changed("b"),
        changed("a"),
        used.clone(),
        used,
    ]);
    assert_eq!((glance.steps_done, glance.steps), (1, 3));
    assert_eq!((glance.files, glance.added, glance.removed), (2, 9, 3));
    assert_eq!((glance.usage.input_tokens, glance.usage.context_tokens), (20, Some(900)));
    assert_eq!(glance.usage.cost_micros, 40);
}

#[test]
fn usage_that_the_record_holds_is_not_counted_again() {
    let mut fold = GlanceFold { usage_as_of: 1, ..GlanceFold::default() };
    fold.glance.usage.cost_micros = 20;
    let used = json!({"input_tokens": 1, "output_tokens": 1, "cost_micros": 20});
    for seq in [1, 2] {
        fold.take(&envelope(seq, "2026-11-16T10:00:00Z", "usage.reported", &used));
    }
    assert_eq!(fold.glance().usage.cost_micros, 40);
    // Their hours are of the events themselves.
    assert_eq!(fold.glance().hourly.iter().map(|one| one.cost_micros).sum::<u64>(), 40);
}

#[test]
fn costs_are_kept_by_the_hour_for_a_day() {
    let mut fold = GlanceFold::default();
    let used = json!({"input_tokens": 0, "output_tokens": 0, "cost_micros": 5});
    let times =
        ["2026-11-15T08:10:00Z", "2026-11-16T10:10:00Z", "2026-11-16T10:50:00Z", "2026-11-16T11:01:00Z"];
    for (seq, at) in times.iter().enumerate() {
        fold.take(&envelope(seq as u64 + 1, at, "usage.reported", &used));
    }
    let hour = |at: &str, cost_micros| HourlyCost { hour: at.parse().unwrap(), cost_micros };
    assert_eq!(fold.glance().hourly, [hour("2026-11-16T10:00:00Z", 10), hour("2026-11-16T11:00:00Z", 5)]);
}
