//! S3-T5: a message is carried out once, and a repeat is told what became of it.

use serde_json::json;

use super::{Desk, turn_of};
use crate::support::Setup;

/// S3-14.
#[test]
fn a_second_turn_is_refused_naming_the_one_that_runs() {
    let desk = Desk::new();
    let first = turn_of(&desk.send(&json!({"prompt": "one"})));
    let refused = desk.send(&json!({"prompt": "two"}));
    assert_eq!((refused.status, refused.code().as_str()), (409, "turn_rejected_busy"));
    assert!(refused.text().contains(&first), "{}", refused.text());
    assert!(refused.text().contains("--when next"), "{}", refused.text());
}

/// S3-15, S3-17: a repeat attaches to the turn that runs; once it is over it gets the outcome and the place in the log.
#[test]
fn a_repeat_gets_the_running_turn_and_later_its_outcome_and_runs_nothing() {
    let desk = Desk::new();
    let message = json!({"prompt": "deploy", "client_turn_id": "deploy-7"});
    let first = desk.send(&message);
    assert_eq!(first.status, 201);
    let receipt = first.json();
    assert_eq!((&receipt["result"], &receipt["client_turn_id"]), (&json!("accepted"), &json!("deploy-7")));
    assert_eq!((&receipt["turn_status"], &receipt["log"]), (&json!("running"), &json!({"after": 1})));
    let again = desk.send(&message);
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(again.json()["result"], "turn_in_progress");
    assert_eq!(turn_of(&again), turn_of(&first));
    desk.signal(&json!({"type": "said", "role": "agent", "text": "done"}));
    desk.finish("completed");
    let over = desk.send(&message).json();
    assert_eq!(
        (&over["result"], &over["turn_status"]),
        (&json!("duplicate_turn_ignored"), &json!("completed"))
    );
    assert_eq!(over["log"], json!({"after": 1, "last": 4}));
    let page = desk.get("events?after=1&limit=3");
    let kinds: Vec<&str> =
        page["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["turn.started", "message", "turn.finished"], "its events are where the receipt says");
    assert_eq!(desk.ran(), ["deploy"]);
    assert_eq!(desk.events("turn.started")[0]["data"]["client_turn_id"], "deploy-7");
}

/// S3-B02.
#[test]
fn a_repeat_of_what_failed_or_was_cancelled_says_so_and_again_runs_it_once_more() {
    let desk = Desk::new();
    let message = json!({"prompt": "migrate", "client_turn_id": "m"});
    let again = json!({"prompt": "migrate", "client_turn_id": "m", "again": true});
    let first = turn_of(&desk.send(&message));
    let refused = desk.send(&again);
    assert_eq!((refused.status, refused.code().as_str()), (409, "turn_not_repeatable"), "it runs");
    desk.finish("failed");
    let told = desk.send(&message).json();
    assert_eq!((&told["result"], &told["turn_status"]), (&json!("duplicate_turn_ignored"), &json!("failed")));
    let second = desk.send(&again);
    assert_eq!((second.status, &second.json()["result"]), (201, &json!("accepted")));
    let doubled = desk.send(&again);
    assert_eq!((doubled.status, &doubled.json()["result"]), (200, &json!("turn_in_progress")));
    assert_eq!(turn_of(&doubled), turn_of(&second));
    assert_ne!(turn_of(&second), first);
    assert_eq!(desk.post("cancel", &json!({})).status, 202);
    desk.signal(&json!({"type": "work_ended", "channel": "test"}));
    let told = desk.send(&message).json();
    assert_eq!(
        (&told["turn_status"], told["turn"].as_str()),
        (&json!("cancelled"), Some(turn_of(&second).as_str()))
    );
    let third = desk.send(&again);
    assert_eq!(third.status, 201, "{}", third.text());
    desk.finish("completed");
    let done = desk.send(&again).json();
    assert_eq!((&done["turn_status"], &done["turn"]), (&json!("completed"), &third.json()["turn"]));
    assert_eq!(desk.ran().len(), 3);
}

/// X-09.
#[test]
fn the_same_name_with_other_words_is_a_conflict() {
    let desk = Desk::new();
    assert_eq!(desk.send(&json!({"prompt": "a", "client_turn_id": "x"})).status, 201);
    desk.finish("completed");
    let other = desk.send(&json!({"prompt": "b", "client_turn_id": "x"}));
    assert_eq!((other.status, other.code().as_str()), (409, "client_turn_conflict"), "{}", other.text());
    assert_eq!(desk.ran(), ["a"]);
}

/// S3-16, S3-B03: the fingerprint attaches while the turn runs and never drops without a word; an honest second
/// "continue" runs.
#[test]
fn words_without_a_name_attach_while_the_turn_runs_and_run_after_it() {
    let desk = Desk::new();
    let message = json!({"prompt": "continue"});
    let first = desk.send(&message);
    let twin = desk.send(&message);
    assert_eq!((twin.status, &twin.json()["result"]), (200, &json!("turn_in_progress")));
    assert_eq!(turn_of(&twin), turn_of(&first));
    assert!(twin.json()["warnings"][0].as_str().unwrap().contains("client_turn_id"), "{}", twin.text());
    let other = desk.send(&json!({"prompt": "continue!"}));
    assert_eq!(other.code(), "turn_rejected_busy", "other words are another message");
    let named = desk.send(&json!({"prompt": "continue", "client_turn_id": "c", "delivery": "queue"}));
    assert_eq!(named.json()["result"], "queued", "with a name of its own it is one of its own");
    desk.finish("completed");
    desk.finish("completed");
    assert_eq!(desk.send(&message).status, 201);
    assert_eq!(desk.ran(), ["continue"; 3]);
}

/// S3-B01, the uncertain: the agent had the prompt, and then nobody knows.
#[test]
fn what_was_handed_over_and_lost_asks_before_it_is_repeated() {
    let mut desk = Desk::new();
    let message = json!({"prompt": "pay the bill", "client_turn_id": "bill"});
    let again = json!({"prompt": "pay the bill", "client_turn_id": "bill", "again": true});
    let turn = turn_of(&desk.send(&message));
    desk.signal(&json!({"type": "turn_delivered", "turn": turn}));
    let queued = desk.sent("then rest", "queue", "queued");
    desk.daemon.restart_with(Setup::default());
    assert_eq!(desk.status(&turn), "uncertain");
    assert_eq!(desk.waiting(), (vec!["then rest".to_owned()], json!("failed")), "kept, and held back");
    let refused = desk.send(&message);
    assert_eq!((refused.status, refused.code().as_str()), (409, "turn_uncertain"), "{}", refused.text());
    assert!(refused.json()["advice"].as_str().unwrap().contains("\"again\": true"), "{}", refused.text());
    let second = desk.send(&again);
    assert_eq!((second.status, &second.json()["result"]), (201, &json!("accepted")));
    assert_eq!(turn_of(&desk.send(&again)), turn_of(&second), "asked twice, it runs once");
    desk.daemon.restart_with(Setup::default());
    assert_eq!(desk.status(&turn_of(&second)), "interrupted", "it was lost before the agent had it");
    let told = desk.send(&message).json();
    assert_eq!(
        (&told["result"], &told["turn_status"]),
        (&json!("duplicate_turn_ignored"), &json!("interrupted"))
    );
    assert_eq!(desk.ran(), ["pay the bill"; 2]);
    assert_eq!(desk.status(&queued), "queued");
}

#[test]
fn what_cannot_be_meant_is_refused_with_words() {
    let desk = Desk::new();
    let refusals = [
        (json!({"prompt": "x", "delivery": "post"}), 422, "body_invalid"),
        (json!({"prompt": " ", "delivery": "queue"}), 422, "field_empty"),
        (json!({"delivery": "queue"}), 422, "body_invalid"),
        (json!({"prompt": "x", "again": true}), 422, "again_without_id"),
        (json!({"prompt": "x", "client_turn_id": "a\u{0}b"}), 422, "field_bad_text"),
        (json!({"prompt": "x".repeat((1 << 20) + 1), "delivery": "queue"}), 422, "field_too_long"),
    ];
    for (body, status, code) in refusals {
        let answer = desk.send(&body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{}", answer.text());
        assert!(!answer.json()["advice"].as_str().unwrap().is_empty());
    }
    let path = format!("/api/v1/sessions/{}/turns", desk.session);
    let bad = desk.daemon.request("POST", &path, &[("lanyard-writer", "soon")], Some(r#"{"prompt":"x"}"#));
    assert_eq!((bad.status, bad.code().as_str()), (400, "writer_epoch_bad"));
    assert_eq!(desk.ask("GET", "turns/turn_x", None).code(), "turn_id_bad");
    assert_eq!(desk.ask("GET", "turns?limit=0", None).code(), "query_invalid");
    assert_eq!(desk.ask("GET", "turns?cursor=x", None).code(), "cursor_unreadable");
    assert_eq!(desk.ran(), Vec::<String>::new());
}

/// S3-23.
#[test]
fn a_cancel_says_what_was_asked_of_whom() {
    let desk = Desk::new();
    let turn = turn_of(&desk.send(&json!({"prompt": "x"})));
    let answer = desk.post("cancel", &json!({"reason": "wrong branch"}));
    assert_eq!(answer.status, 202);
    let expected = json!({"session": desk.session, "turn": turn, "run": null, "reason": "wrong branch"});
    assert_eq!(answer.json()["cancel_requested"], expected, "{}", answer.text());
    assert_eq!(answer.json()["session"], desk.session);
}

/// The list of turns, newest first, page by page; what `rebuild` makes is the same.
#[test]
fn turns_are_listed_and_made_again_from_the_log() {
    let desk = Desk::new();
    for number in 0..5 {
        desk.sent(&format!("number {number}"), "reject", "accepted");
        desk.finish(if number == 3 { "failed" } else { "completed" });
    }
    let all = desk.get("turns");
    let previews: Vec<&str> =
        all["turns"].as_array().unwrap().iter().map(|row| row["prompt_preview"].as_str().unwrap()).collect();
    assert_eq!(previews, ["number 4", "number 3", "number 2", "number 1", "number 0"]);
    assert_eq!(all["turns"][1]["status"], "failed");
    let page = desk.get("turns?limit=2");
    let cursor = page["next"].as_str().unwrap();
    let next = desk.get(&format!("turns?limit=2&cursor={cursor}"));
    assert_eq!(next["turns"][0]["prompt_preview"], "number 2");
    assert_eq!(desk.daemon.request("POST", "/api/v1/rebuild", &[], Some("{}")).status, 200);
    assert_eq!(desk.get("turns"), all);
    let report = desk.daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!(report["damage"], json!([]));
    let shown = desk.daemon.lanyard(&["turns", &desk.session, "--limit", "2"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("completed") && shown.contains("number 4"), "{shown}");
}
