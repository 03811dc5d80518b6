//! Programs outside that work at tasks: a token per run, reports that reach the parent, and what is late or forged is
//! recognised (S4-B01, S4-15).

use serde_json::{Value, json};

use super::kit::{Stage, id};
use crate::support::{Answer, Caller};

/// A task for a program outside, and the token it works with.
fn outside(stage: &Stage, more: &Value) -> (String, Value) {
    let mut new = json!({ "kind": "external" });
    for (name, value) in more.as_object().unwrap() {
        new[name] = value.clone();
    }
    let task = stage.task("do it yourself", &new);
    stage.is(&task, "running");
    let token = stage.ok(&format!("/tasks/{task}/token"), &json!({}));
    (task, token)
}

/// Says something of a run, with the bearer token of the session that is named.
fn report(stage: &Stage, token: &Value, session: &str, run_token: &str, kind: &str, text: &str) -> Answer {
    let caller = Caller { token: id(token, "session_token"), ..stage.daemon.caller() };
    let body = json!({ "run_token": run_token, "kind": kind, "text": text, "evidence": "seen" });
    let path = format!("/api/v1/sessions/{session}/report");
    caller.try_request("POST", &path, &[], Some(&body.to_string())).unwrap()
}

fn own(stage: &Stage, token: &Value, kind: &str, text: &str) -> Answer {
    report(stage, token, &id(token, "session"), &id(token, "run_token"), kind, text)
}

fn refusal(answer: &Answer) -> (u16, String) {
    assert!(answer.json()["advice"].as_str().is_some_and(|text| !text.is_empty()), "{}", answer.text());
    (answer.status, answer.code())
}

/// A program outside reports progress to whoever its task is a part of, and then that it is done.
#[test]
fn a_program_outside_reports_to_its_parents_mailbox() {
    let stage = Stage::new();
    let (parent, _) = outside(&stage, &json!({ "title": "the whole" }));
    let (task, token) = outside(&stage, &json!({ "title": "the part", "parent": parent }));
    let shown = stage.show(&task);
    assert_eq!((&shown["reports_to"], &shown["parent"]), (&json!(parent), &json!(parent)));
    assert_eq!((&token["worker"], &token["run"]), (&shown["worker"], &shown["run"]));
    for (kind, text) in [("progress", "half way"), ("question", "blue or red?"), ("error", "no net")] {
        let answer = own(&stage, &token, kind, text);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["state"], "running");
    }
    assert_eq!(own(&stage, &token, "completed", "all of it").status, 200);
    let done = stage.is(&task, "completed");
    assert_eq!(done["result"], json!({ "summary": "all of it", "evidence": "seen" }));
    let boxed = stage.get(&format!("/mail?box={parent}"));
    let mail = boxed["mail"].as_array().unwrap();
    let kinds: Vec<&Value> = mail.iter().map(|mail| &mail["kind"]).collect();
    assert_eq!(kinds, ["progress", "question", "error", "ended"]);
    assert!(mail.iter().all(|mail| mail["from"]["task"] == task.as_str() && mail["from"]["run"] == 1));
    assert!(mail.iter().all(|mail| mail["from"]["worker"] == done["worker"]));
    // Whoever works outside reads the box itself, and says so.
    let first = id(&mail[0], "id");
    assert_eq!(stage.ok(&format!("/mail/{first}/ack"), &json!({}))["state"], "acknowledged");
    assert_eq!(stage.get(&format!("/mail?box={parent}"))["mail"].as_array().unwrap().len(), 3);
    assert_eq!(refusal(&own(&stage, &token, "progress", "more")), (409, "task_ended".to_owned()));
    let (_, failing) = outside(&stage, &json!({}));
    assert_eq!(own(&stage, &failing, "failed", "it cannot be done").status, 200);
    assert_eq!(stage.is(&id(&failing, "task"), "failed")["reason"], "it cannot be done");
}

/// S4-B01: what is forged is refused, what is late is recognised, and nobody speaks for another.
#[test]
fn forged_late_and_foreign_reports_are_refused() {
    let stage = Stage::new();
    let (task, token) = outside(&stage, &json!({}));
    let (_, other) = outside(&stage, &json!({}));
    let (session, run_token) = (id(&token, "session"), id(&token, "run_token"));
    for forged in ["", "lyr_nonsense", &id(&other, "run_token"), &id(&token, "session_token")] {
        let answer = report(&stage, &token, &session, forged, "completed", "mine");
        assert_eq!(refusal(&answer), (403, "run_token_bad".to_owned()), "{forged}");
    }
    let answer =
        report(&stage, &token, &id(&other, "session"), &id(&other, "run_token"), "completed", "mine");
    assert_eq!(refusal(&answer), (403, "not_your_session".to_owned()));
    let caller = Caller { token: id(&token, "session_token"), ..stage.daemon.caller() };
    let path = format!("/api/v1/tasks/{task}/complete");
    let answer = caller.try_request("POST", &path, &[], Some("{\"summary\":\"x\"}")).unwrap();
    assert_eq!(refusal(&answer), (403, "role_forbidden".to_owned()));
    assert_eq!(own(&stage, &token, "progress", "").status, 422);
    assert_eq!(stage.show(&task)["state"], "running");

    // Run again, the same worker has another run; what the first one says is late.
    stage.ok(&format!("/tasks/{task}/fail"), &json!({ "reason": "too slow" }));
    stage.is(&task, "failed");
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    let again = stage.is(&task, "running");
    assert_eq!((&again["worker"], &again["run"]), (&token["worker"], &json!(2)));
    assert_eq!(refusal(&own(&stage, &token, "completed", "late")), (409, "stale_run".to_owned()));
    let newer = stage.ok(&format!("/tasks/{task}/token"), &json!({}));
    let answer = report(&stage, &newer, &id(&newer, "session"), &run_token, "completed", "late");
    assert_eq!(refusal(&answer), (409, "stale_run".to_owned()));
    assert_eq!(stage.show(&task)["state"], "running");
    assert_eq!(own(&stage, &newer, "completed", "in time").status, 200);
    assert_eq!(stage.is(&task, "completed")["result"]["summary"], "in time");
}

/// Tokens stay good over a restart of the daemon, and so does what they are for.
#[test]
fn a_program_outside_outlives_the_daemon() {
    let mut stage = Stage::new();
    let (task, token) = outside(&stage, &json!({}));
    stage.up();
    assert_eq!(stage.show(&task)["state"], "running");
    assert_eq!(stage.ok(&format!("/tasks/{task}/token"), &json!({})), token);
    assert_eq!(own(&stage, &token, "completed", "done").status, 200);
    stage.is(&task, "completed");
    let ended = stage.post(&format!("/tasks/{task}/token"), &json!({}));
    assert_eq!(refusal(&ended), (409, "no_worker".to_owned()));
}

/// S4-B02: a report that was not answered is sent again under its key, and is one report; another needs another key. An
/// end that is said again is answered alike.
#[test]
fn a_report_sent_again_is_one_report() {
    let mut stage = Stage::new();
    let (parent, _) = outside(&stage, &json!({ "title": "the whole" }));
    let (task, token) = outside(&stage, &json!({ "title": "the part", "parent": parent }));
    let path = format!("/api/v1/sessions/{}/report", id(&token, "session"));
    let keyed = |stage: &Stage, key: &str, kind: &str, text: &str| {
        let caller = Caller { token: id(&token, "session_token"), ..stage.daemon.caller() };
        let body = json!({ "run_token": token["run_token"], "kind": kind, "text": text }).to_string();
        caller.try_request("POST", &path, &[("Idempotency-Key", key)], Some(&body)).unwrap()
    };
    for _ in 0..2 {
        let answer = keyed(&stage, "half-1", "progress", "half way");
        assert_eq!(answer.status, 200, "{}", answer.text());
        stage.up();
    }
    for (kind, text) in [("progress", "three quarters"), ("question", "half way")] {
        let answer = keyed(&stage, "half-1", kind, text);
        assert_eq!(refusal(&answer).1, "idempotency_conflict", "{kind} {text}");
    }
    assert_eq!(keyed(&stage, "half-2", "progress", "half way").status, 200);
    assert_eq!(keyed(&stage, "end-1", "completed", "all of it").status, 200);
    let done = stage.is(&task, "completed");
    let again = keyed(&stage, "end-1", "completed", "all of it");
    assert_eq!((again.status, again.json()["seq"].clone()), (200, done["seq"].clone()));
    assert_eq!(keyed(&stage, "half-1", "progress", "half way").status, 200, "it was said before the end");
    let other = keyed(&stage, "end-2", "completed", "more than all of it");
    assert_eq!(refusal(&other), (409, "task_ended".to_owned()));
    let boxed = stage.get(&format!("/mail?box={parent}"));
    let kinds: Vec<&Value> = boxed["mail"].as_array().unwrap().iter().map(|mail| &mail["kind"]).collect();
    assert_eq!(kinds, ["progress", "progress", "ended"]);
    let (failing, token) = outside(&stage, &json!({}));
    assert_eq!(own(&stage, &token, "failed", "no net").status, 200);
    stage.is(&failing, "failed");
    assert_eq!(own(&stage, &token, "failed", "no net").status, 200);
    assert_eq!(refusal(&own(&stage, &token, "failed", "no luck")), (409, "task_ended".to_owned()));
}
