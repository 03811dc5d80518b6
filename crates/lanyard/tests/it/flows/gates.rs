//! Answers: the first stands, the same again changes nothing, others are refused. And what becomes of a gate that nobody
//! answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, id};

fn conflict(code: &str) -> (u16, String) {
    (409, code.to_owned())
}

/// S2-B01, S2-B08: exactly one answer.
#[test]
fn the_first_answer_stands() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    let path = format!("/flows/{flow}/gates/{}", id(&gate, "id"));
    stage.script("author", "/run echo rest >> SIGNS/turns\n/wait-file SIGNS/go");
    let answer = json!({ "choice": "continue_session", "guidance": "The short one." });
    stage.ok(&path, &answer);
    stage.ok(&path, &answer);
    for other in [
        json!({ "choice": "continue_session", "guidance": "The long one." }),
        json!({ "choice": "continue_session" }),
        json!({ "choice": "abort" }),
    ] {
        assert_eq!(stage.no(&path, &other), conflict("gate_answered"), "{other}");
    }
    stage.touch("go");
    stage.script("author", &format!("/say! {HELP}"));
    let second = stage.until(&flow, "asking again", |seen| seen["gate"]["id"] != gate["id"])["gate"].clone();
    // The gate that was answered is closed, whatever is said.
    assert_eq!(stage.no(&path, &json!({ "choice": "abort" })), conflict("gate_not_open"));
    assert_eq!(stage.events(&flow, "flow.gate_answered").len(), 1);
    let path = format!("/flows/{flow}/gates/{}", id(&second, "id"));
    let mut long = json!({ "choice": "continue" });
    long["guidance"] = json!("x".repeat(8_001));
    assert_eq!(stage.no(&path, &long), conflict("guidance_too_long"));
    let words = json!({ "choice": "approve", "guidance": "nice" });
    assert_eq!(stage.no(&path, &words), conflict("guidance_not_taken"));
    let odd = stage.no(&path, &json!({ "choice": "maybe" }));
    assert_eq!(odd.0, 422, "{odd:?}");
    assert_eq!(stage.gate(&flow, "needs_human")["id"], second["id"], "it waits on");
    assert_eq!(stage.lines("turns"), ["half", "rest"]);
}

/// Many who answer at once: one is heard.
#[test]
fn of_many_answers_at_once_one_is_heard() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    let path = format!("/api/v1/flows/{flow}/gates/{}", id(&gate, "id"));
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    let taken: usize = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let (path, caller) = (&path, stage.daemon.caller());
            let body =
                json!({ "choice": "continue_session", "guidance": format!("words {number}") }).to_string();
            scope.spawn(move || {
                usize::from(caller.try_request("POST", path, &[], Some(&body)).unwrap().status == 200)
            })
        };
        let asks: Vec<_> = (0..8).map(ask).collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).sum()
    });
    assert_eq!(taken, 1);
    stage.settled(&flow, "completed");
    assert_eq!(stage.told("author").concat().matches("Guidance from the person in charge").count(), 1);
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
}

/// S2-B07: after its deadline a gate is answered as the config says, in the system's name.
#[test]
fn a_deadline_answers_as_it_was_told() {
    let deadline = "rules.phase_gate = \"auto\"\nrules.gate_deadline_ms = 1500\n";
    let stage = Stage::with(&format!("{deadline}rules.gate_default = \"abort\""));
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let shown = stage.settled(&flow, "aborted");
    let answered = &shown["gate"]["answered"];
    assert_eq!((&answered["choice"], &answered["by"]["name"]), (&json!("abort"), &json!("gate deadline")));
    drop(stage);

    let stage = Stage::with(&format!("{deadline}rules.gate_default = \"continue_session\""));
    stage.author("half", HELP);
    stage.author("rest", HELP);
    let flow = stage.begin(&json!({}));
    // The session asks again: it can be continued, but by a person, deadline or not.
    let waits = |seen: &Value| seen["gate"]["answered"].is_null() && stage.lines("turns").len() == 2;
    let gate = stage.until(&flow, "asking for good", waits)["gate"].clone();
    assert!(gate["continue_session"].is_object(), "{gate}");
    assert_eq!(stage.lines("turns"), ["half", "rest"]);
    past_the_deadline(&gate);
    assert_eq!(stage.gate(&flow, "needs_human")["id"], gate["id"]);
    stage.answer(&flow, &gate, "abort", None);
    stage.settled(&flow, "aborted");
}

/// S2-B07: without such a word it waits, however long.
#[test]
fn a_gate_waits_by_itself() {
    let stage = Stage::with("rules.gate_deadline_ms = 500");
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    past_the_deadline(&gate);
    assert_eq!(stage.gate(&flow, "needs_human")["id"], gate["id"]);
}

/// Waits until a deadline is over and the daemon has looked at it.
fn past_the_deadline(gate: &Value) {
    let due: lanyard_core::Timestamp = id(gate, "deadline").parse().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let left = i128::from(due.as_millis()) + 2_500 - i128::try_from(now).unwrap();
    // sleep: what is shown is that nothing happens.
    std::thread::sleep(Duration::from_millis(u64::try_from(left.max(0)).unwrap()));
}
