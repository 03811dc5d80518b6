//! Turns that take too long: they go on and can be continued, or they are ended.

use serde_json::{Value, json};

use super::kit::{DONE, READY, Stage, id, until};

/// S2-10, S2-22, S2-25, S2-B02: nobody waits any more, the session goes on, and continuing it ends what still ran and leads
/// through the review to a verdict.
/// S2-19: the turn is left running unless it is to be aborted.
#[test]
fn a_review_that_took_too_long_is_continued() {
    let stage = Stage::with("rules.phase_gate = \"auto\"\nreviewer.timeout_ms = 4000");
    stage.author("greet", DONE);
    stage.script("reviewer", "/run echo look >> SIGNS/turns\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "timeout");
    let payload = &gate["continue_session"];
    assert_eq!((&payload["resume_state"], &payload["role"]), (&json!("review"), &json!("reviewer")));
    assert_eq!(payload["probe"]["idle"], false, "{gate}");
    let session = id(payload, "session");
    let shown = stage.show(&flow);
    assert_eq!(shown["preserved"][0]["session"], payload["session"], "S2-B04: what it costs is visible");
    assert!(shown["preserved"][0]["until"].is_string(), "{shown}");
    assert_eq!(stage.get(&format!("/sessions/{session}"))["state"], "executing", "it goes on");

    stage.reviewer("look-on", READY);
    stage.answer(&flow, &gate, "continue_session", Some("Enough."));
    let shown = stage.settled(&flow, "completed");
    assert_eq!(shown["preserved"].as_array().map_or(0, Vec::len), 0);
    let invoked = stage.events(&flow, "flow.invoked");
    assert_eq!((&invoked[2]["session"], &invoked[2]["continues"]), (&json!(session), &json!(true)));
    assert_eq!(stage.lines("turns"), ["greet", "look", "look-on"]);
    let told = stage.told("reviewer").concat();
    assert_eq!(told.matches("Continue the current session and complete your review.").count(), 1, "{told}");
}

/// S2-22: a turn that comes to its end while the gate waits is no longer kept, and the session is continued all the same.
#[test]
fn a_session_that_came_to_rest_by_itself_is_continued() {
    let stage = Stage::with("rules.phase_gate = \"auto\"\nauthor.timeout_ms = 4000");
    stage.script("author", "/run echo half >> SIGNS/turns\n/wait-file SIGNS/go");
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "timeout");
    stage.touch("go");
    stage.until(&flow, "without a session that goes on", |seen| {
        seen["preserved"].as_array().is_none_or(Vec::is_empty)
    });
    let released = stage.events(&flow, "flow.session_released");
    assert_eq!(released.len(), 1);
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
}

/// S2-23, S2-24: with `abort_on_timeout` the turn is ended, and its session is not offered.
#[test]
fn a_turn_that_is_ended_for_its_time_is_not_offered() {
    let stage = Stage::with(
        "rules.phase_gate = \"auto\"\nreviewer.timeout_ms = 4000\nreviewer.abort_on_timeout = true",
    );
    stage.author("greet", DONE);
    stage.script("reviewer", "/run echo look >> SIGNS/turns\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "timeout");
    assert_eq!(gate["continue_session"], Value::Null);
    assert!(gate["not_offered"].is_string(), "{gate}");
    let session = id(&stage.events(&flow, "flow.invoked")[1], "session");
    until("the turn to be ended", || stage.get(&format!("/sessions/{session}"))["state"] != "executing");
    assert_eq!(stage.events(&flow, "flow.session_preserved"), Vec::<Value>::new());
    let path = format!("/flows/{flow}/gates/{}", id(&gate, "id"));
    let refused = stage.no(&path, &json!({ "choice": "continue_session" }));
    assert_eq!(refused, (409, "choice_not_offered".to_owned()));
    stage.reviewer("look-anew", READY);
    stage.answer(&flow, &gate, "continue", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look", "look-anew"]);
}

/// S2-B04: what goes on although nobody waits for it has its time, and is ended then.
#[test]
fn a_session_nobody_waits_for_is_reaped() {
    let stage = Stage::with("author.timeout_ms = 3000\nrules.preserve_ms = 1000");
    stage.script("author", "/run echo half >> SIGNS/turns\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "timeout");
    let session = id(&gate["continue_session"], "session");
    stage.until(&flow, "reaped", |seen| seen["preserved"].as_array().is_none_or(Vec::is_empty));
    assert_eq!(stage.events(&flow, "flow.session_released")[0]["session"], json!(session));
    until("the turn to be ended", || stage.get(&format!("/sessions/{session}"))["state"] != "executing");
    assert_eq!(stage.gate(&flow, "timeout")["id"], gate["id"], "the gate waits on");
}
