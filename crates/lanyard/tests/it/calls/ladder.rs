//! A stop on its way to an agent whose calls come by.

use super::*;

/// S0-T17, S0-40..S0-43, S0-B05, S0-B06, S0-56, S0-58: level 1 with the answer, level 2 and 3 instead of the call, and
/// level 3 for ever, over a restart too.
#[test]
fn three_calls_that_do_not_comply_end_the_session() {
    let mut daemon = daemon();
    let session = external(&daemon);
    assert_eq!(whole(&daemon, &session, "0"), "as it is");
    assert_eq!(stop(&daemon, &session, &json!({ "reason": "enough" }))["stop_level"], 1);
    assert_eq!(get(&daemon, &session, "")["status"], "stopping");
    assert_eq!(whole(&daemon, &session, "1"), "⚠️ SESSION STOP REQUESTED");
    assert_eq!(whole(&daemon, &session, "2"), "not carried out: 🛑 SESSION STOP — IMMEDIATE");
    assert_eq!(whole(&daemon, &session, "3"), "not carried out: ❌ SESSION TERMINATED");
    assert!(until(|| get(&daemon, &session, "")["state"] == "stopped"));
    daemon.kill_9();
    daemon.restart_with(patient());
    assert_eq!(whole(&daemon, &session, "4"), "not carried out: ❌ SESSION TERMINATED");
    let kinds = kinds(&daemon, &session);
    let of_stop: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("stop.")).collect();
    let applied = "stop.applied";
    assert_eq!(of_stop, ["stop.requested", applied, "stop.raised", applied, "stop.raised", applied, applied]);
    let receipt = get(&daemon, &session, "/stop");
    assert_eq!((&receipt["confirmed"], &receipt["level"]), (&json!(true), &json!(3)));
    let channels: Vec<&str> =
        receipt["steps"].as_array().unwrap().iter().map(|step| step["channel"].as_str().unwrap()).collect();
    assert_eq!(channels, ["request", "mcp", "request", "mcp", "request", "mcp", "end", "mcp"]);
}

/// S0-B02: hand off, complete, and the stop is resolved; whoever then goes on is still stopped.
#[test]
fn an_agent_that_complies_ends_in_peace() {
    let daemon = daemon();
    let session = external(&daemon);
    stop(&daemon, &session, &json!({}));
    assert_eq!(whole(&daemon, &session, "1"), "⚠️ SESSION STOP REQUESTED");
    for how in ["hand_off", "complete"] {
        assert_eq!(begins(&daemon, &session, &complying(how))["go"], true);
        assert_eq!(ends(&daemon, &session, &complying(how))["blocks"], json!([]));
    }
    assert_eq!(get(&daemon, &session, "/stop")["complying"], "complete");
    assert_eq!(post(&daemon, &session, "complete", &json!({})).status, 200);
    assert_eq!(get(&daemon, &session, "")["status"], "completed");
    assert_eq!(whole(&daemon, &session, "2"), "not carried out: ❌ SESSION TERMINATED");
}

/// S0-B03, S0-B04: an agent that makes no call is stopped by the deadlines, also when the daemon was killed meanwhile.
#[test]
fn an_agent_that_makes_no_call_is_stopped_by_its_deadlines() {
    let quick = || Setup::default().config("[stop]\ngraceful_ms = 300\nimmediate_ms = 300\n");
    let mut daemon = Daemon::start(quick());
    let (one, other) = (external(&daemon), external(&daemon));
    for session in [&one, &other] {
        stop(&daemon, session, &json!({}));
    }
    daemon.kill_9();
    daemon.restart_with(quick());
    for session in [one, other] {
        let waited = until(|| get(&daemon, &session, "")["state"] == "stopped");
        assert!(waited, "{}", get(&daemon, &session, ""));
        let receipt = get(&daemon, &session, "/stop");
        let deadlines = receipt["steps"].as_array().unwrap().iter();
        assert_eq!(deadlines.filter(|step| step["channel"] == "deadline").count(), 2, "{receipt}");
        assert_eq!(whole(&daemon, &session, "late"), "not carried out: ❌ SESSION TERMINATED");
    }
}

/// S0-B17: a second press raises and answers the level; a stop can be taken back before level 3.
#[test]
fn a_stop_is_raised_and_taken_back() {
    let daemon = daemon();
    let session = external(&daemon);
    stop(&daemon, &session, &json!({}));
    assert_eq!(stop(&daemon, &session, &json!({}))["stop_level"], 2);
    assert_eq!(post(&daemon, &session, "stop/withdraw", &json!({})).status, 200);
    assert_eq!(whole(&daemon, &session, "1"), "as it is");
    assert_eq!(get(&daemon, &session, "/stop")["withdrawn"], true);
    assert_eq!(stop(&daemon, &session, &json!({ "now": true }))["stop_level"], 2);
    assert_eq!(whole(&daemon, &session, "2"), "not carried out: 🛑 SESSION STOP — IMMEDIATE");
    assert_eq!(stop(&daemon, &session, &json!({}))["stop_level"], 3);
    let refused = post(&daemon, &session, "stop/withdraw", &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.text());
}

/// A stop that comes while the tool runs is told with its answer, from level 2 on instead of it.
#[test]
fn a_stop_in_mid_call_is_told_with_its_answer() {
    let daemon = daemon();
    let session = external(&daemon);
    assert_eq!(begins(&daemon, &session, &call("1"))["go"], true);
    stop(&daemon, &session, &json!({ "now": true }));
    let lead = ends(&daemon, &session, &call("1"));
    assert_eq!((&lead["withhold"], &lead["level"]), (&json!(true), &json!(2)), "{lead}");
}

/// A stop of the turn leaves the session to the next one.
#[test]
fn a_stop_of_the_turn_ends_the_turn_alone() {
    let daemon = daemon();
    let session = made(&daemon, &json!({ "agent": "someone", "driven_by": "nobody" }));
    let refused = post(&daemon, &session, "stop", &json!({ "scope": "turn" }));
    assert_eq!((refused.status, refused.code().as_str()), (409, "no_active_turn"), "{}", refused.text());
    assert_eq!(post(&daemon, &session, "turns", &json!({ "prompt": "go" })).status, 201);
    stop(&daemon, &session, &json!({ "scope": "turn" }));
    assert_eq!(whole(&daemon, &session, "1"), "⚠️ SESSION STOP REQUESTED");
    let finished = json!({ "type": "turn_finished", "outcome": "completed" });
    assert_eq!(post(&daemon, &session, "signals", &finished).status, 201);
    let view = get(&daemon, &session, "");
    assert_eq!((&view["state"], &view["stop"]), (&json!("between_turn"), &Value::Null));
    assert_eq!(get(&daemon, &session, "/stop")["confirmed"], true);
    assert_eq!(whole(&daemon, &session, "2"), "as it is");
}

/// S0-27, S0-36: who is not known, or not any more, is told so and nothing else happens.
#[test]
fn calls_of_unknown_sessions_are_said_to_be_unknown() {
    let daemon = daemon();
    let unknown = post(&daemon, "sess_01k00000000000000000000000", "calls", &call("1"));
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "session_not_found"), "{}", unknown.text());
    let session = external(&daemon);
    let bad = post(&daemon, &session, "calls", &json!({ "id": 1 }));
    assert_eq!(bad.status, 422, "{}", bad.text());
}
