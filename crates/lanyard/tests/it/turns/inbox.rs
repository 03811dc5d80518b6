//! The inbox over the API and the command line: how messages arrive, in which order they run, what holds them back.

use serde_json::{Value, json};

use super::{Desk, turn_of};
use crate::support::Setup;

#[test]
fn what_is_queued_runs_in_order_after_each_completed_turn() {
    let desk = Desk::new();
    desk.sent("one", "queue", "accepted");
    let two = desk.sent("two", "queue", "queued");
    desk.sent("three", "queue", "queued");
    assert_eq!(desk.waiting(), (vec!["two".to_owned(), "three".to_owned()], Value::Null));
    desk.finish("completed");
    assert_eq!(desk.status(&two), "running");
    let started = desk.events("turn.started");
    assert_eq!(started[1]["data"]["queued"], true);
    assert_eq!(started[1]["data"]["by"]["kind"], "operator");
    assert_eq!(started[1]["seq"], started[1]["seq"].as_u64().unwrap());
    desk.finish("completed");
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one", "two", "three"]);
    assert_eq!(desk.waiting(), (Vec::new(), Value::Null));
}

#[test]
fn after_a_cancel_the_inbox_waits_for_go_also_over_a_restart() {
    let mut desk = Desk::new();
    desk.sent("one", "reject", "accepted");
    desk.sent("two", "queue", "queued");
    assert_eq!(desk.post("cancel", &json!({})).status, 202);
    desk.signal(&json!({"type": "work_ended", "channel": "test"}));
    assert_eq!(desk.waiting(), (vec!["two".to_owned()], json!("interrupted")));
    let third = desk.send(&json!({"prompt": "three", "delivery": "queue"}));
    assert_eq!(third.json()["result"], "queued", "behind what waits already");
    assert!(third.json()["warnings"][0].as_str().unwrap().contains("paused"), "{}", third.text());
    desk.daemon.restart_with(Setup::default());
    assert_eq!(desk.waiting().0, ["two", "three"]);
    let shown = desk.daemon.lanyard(&["inbox", &desk.session, "go"]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    desk.finish("completed");
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one", "two", "three"]);
}

#[test]
fn an_interrupt_runs_first_and_never_discards_what_waits() {
    let desk = Desk::new();
    desk.sent("one", "reject", "accepted");
    desk.sent("later", "queue", "queued");
    let now = desk.sent("now", "interrupt", "interrupting");
    assert_eq!(desk.events("turn.cancel_requested").len(), 1);
    assert_eq!(desk.status(&now), "queued", "the turn has not really ended yet");
    desk.signal(&json!({"type": "work_ended", "channel": "test"}));
    assert_eq!(desk.status(&now), "running");
    desk.finish("completed");
    assert_eq!(desk.waiting(), (vec!["later".to_owned()], json!("interrupted")));
    assert_eq!(desk.post("inbox/go", &json!({})).status, 200);
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one", "now", "later"]);
}

/// A steer goes whole in the answer to the next call, and is then no turn of its own.
#[test]
fn a_steer_reaches_the_agent_in_the_answer_to_its_next_call() {
    let desk = Desk::new();
    let running = desk.sent("one", "reject", "accepted");
    let words = format!("look {}", "left ".repeat(200));
    let steer = desk.sent(&words, "steer", "steered");
    let call = json!({"id": "c1", "tool": "echo", "channel": "mcp"});
    let begun = desk.post("calls", &call);
    assert_eq!(begun.status, 200, "{}", begun.text());
    let ended = desk.post("calls/end", &json!({"call": call, "returned": {}}));
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert!(ended.text().contains(words.trim_end()), "whole, not cut at 500: {}", ended.text());
    let row = desk.get(&format!("turns/{steer}"));
    assert_eq!((&row["status"], &row["steered_into"]), (&json!("steered"), &json!(running)));
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one"]);
}

#[test]
fn a_steer_nobody_could_be_told_is_the_next_turn() {
    let desk = Desk::new();
    desk.sent("one", "reject", "accepted");
    desk.sent("queued", "queue", "queued");
    desk.sent("steered", "steer", "steered");
    desk.finish("completed");
    desk.finish("completed");
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one", "steered", "queued"]);
}

#[test]
fn what_waits_can_be_changed_until_it_runs() {
    let desk = Desk::new();
    desk.sent("one", "reject", "accepted");
    let a = desk.sent("a", "queue", "queued");
    let b = desk.sent("b", "queue", "queued");
    let c = desk.sent("c", "queue", "queued");
    let edited = desk.ask("PATCH", &format!("inbox/{b}"), Some(&json!({"prompt": "b, slowly"})));
    assert_eq!(edited.status, 200, "{}", edited.text());
    assert_eq!(desk.post("inbox/order", &json!({"turns": [c, b, a]})).status, 200);
    let wrong = desk.post("inbox/order", &json!({"turns": [c, b]}));
    assert_eq!((wrong.status, wrong.code().as_str()), (409, "inbox_order_wrong"));
    assert_eq!(desk.post(&format!("inbox/{a}/promote"), &json!({})).status, 200);
    assert_eq!(desk.waiting().0, ["a", "c", "b, slowly"]);
    assert_eq!(desk.ask("DELETE", &format!("inbox/{c}"), Some(&json!({"reason": "no"}))).status, 200);
    assert_eq!(desk.status(&c), "withdrawn");
    let gone = desk.ask("DELETE", &format!("inbox/{c}"), Some(&json!({})));
    assert_eq!((gone.status, gone.code().as_str()), (409, "inbox_turn_unknown"));
    assert_eq!(desk.post("inbox/pause", &json!({})).status, 200);
    desk.finish("completed");
    assert_eq!(desk.waiting(), (vec!["a".to_owned(), "b, slowly".to_owned()], json!("asked")));
    let now = desk.post(&format!("inbox/{b}/promote"), &json!({"as": "interrupt"}));
    assert_eq!(now.status, 200, "{}", now.text());
    desk.finish("completed");
    assert_eq!(desk.ran(), ["one", "b, slowly"], "the pause holds for the rest");
    assert_eq!(desk.post("complete", &json!({})).status, 200);
    assert_eq!(desk.status(&a), "withdrawn");
    let row = desk.get(&format!("turns/{a}"));
    assert_eq!(row["reason"], "the session ended");
}

#[test]
fn the_inbox_is_bounded() {
    let desk = Desk::with(Setup::default().config("[limits]\ninbox_turns = 2\ninbox_bytes = 100\n"));
    desk.sent("one", "reject", "accepted");
    desk.sent(&"x".repeat(90), "queue", "queued");
    let heavy = desk.send(&json!({"prompt": "y".repeat(20), "delivery": "steer"}));
    assert_eq!((heavy.status, heavy.code().as_str()), (409, "inbox_full"));
    desk.sent("z", "queue", "queued");
    let many = desk.send(&json!({"prompt": "w", "delivery": "interrupt"}));
    assert_eq!((many.status, many.code().as_str()), (409, "inbox_full"));
    assert_eq!(desk.events("turn.cancel_requested").len(), 0, "a refusal changes nothing");
}

#[test]
fn the_command_line_sends_lists_and_changes() {
    let desk = Desk::new();
    let run = |words: &[&str]| {
        let output = desk.daemon.lanyard(words);
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {err}");
        (String::from_utf8(output.stdout).unwrap(), err)
    };
    let id = desk.session.as_str();
    run(&["send", id, "--detach", "--id", "first", "build it"]);
    let (turn, told) = run(&["send", id, "--detach", "--when", "next", "test it"]);
    assert!(told.contains("waits for its turn"), "{told}");
    let (listed, _) = run(&["inbox", id]);
    assert!(listed.contains("test it") && listed.contains("  next  "), "{listed}");
    run(&["inbox", id, "edit", turn.trim(), "--prompt", "test it twice"]);
    // As the listing shows it.
    let short = listed.lines().last().unwrap().split(' ').next().unwrap();
    assert!(short.len() == 6 && turn.trim().ends_with(short), "{listed}");
    run(&["inbox", id, "promote", short]);
    run(&["inbox", id, "pause"]);
    let (json, told) = run(&["inbox", id, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["items"][0]["prompt"], &json["paused"]), (&json!("test it twice"), &json!("asked")));
    assert!(told.is_empty(), "{told}");
    let (json, _) = run(&["inbox", id, "rm", turn.trim(), "--reason", "no time", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["turn"], turn.trim());
    desk.finish("completed");
    let (_, told) = run(&["send", id, "--detach", "--id", "first", "build it"]);
    assert!(told.contains("nothing ran again"), "{told}");
    let (json, _) = run(&["turns", id, "--json"]);
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows["items"][1]["client_turn_id"], "first");
    assert_eq!(rows["items"][0]["status"], "withdrawn");
    let refused = desk.daemon.lanyard(&["send", id, "--again", "x"]);
    assert_eq!(refused.status.code(), Some(2), "--again needs --id");
    assert_eq!(turn_of(&desk.send(&json!({"prompt": "x"}))).len(), turn.trim().len());
}
