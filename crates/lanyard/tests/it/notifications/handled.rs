//! What people do about notifications, and what comes and goes with sessions (S3-42, S3-43, S3-B12, S3-T8).

use serde_json::{Value, json};

use super::kit::{Stage, get, ids, rounds, until};
use crate::support::{Answer, Daemon, Setup, binary};

const MINUTE: i64 = 60_000;

/// Two sessions that fell silent in the middle of a turn: two notifications.
fn two_orphans() -> (Stage, Vec<Value>) {
    let mut stage = Stage::new("");
    for _ in 0..2 {
        let session = stage.new_session();
        let started = stage.call("POST", &format!("/sessions/{session}/turns"), &json!({"prompt": "work"}));
        assert_eq!(started.status, 201);
    }
    stage.later(11 * MINUTE);
    let found = stage.await_notifications("suspected_orphan", 2);
    (stage, found)
}

fn path(held: &Value) -> String {
    format!("/notifications/{}", held["id"].as_str().unwrap())
}

fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

/// S3-42, S3-B12, S3-T8: a note, an end by the timer and not by a look.
#[test]
fn a_snooze_has_a_note_and_is_new_again_when_its_time_comes() {
    let mut stage = Stage::new("");
    let session = stage.new_session();
    stage.fail_to_attach(&session, 10);
    let found = stage.await_notifications("continuity_alert", 1);
    let before = stage.get("/notifications")["after"].as_u64().unwrap();
    let body = json!({"status": "snoozed", "snooze_ms": 30 * MINUTE, "note": "deploying"});
    // Under the path dashboards know.
    let snoozed = stage.call("PATCH", &format!("/dashboard{}", path(&found[0])), &body);
    assert_eq!(snoozed.status, 200, "{}", snoozed.text());
    let snoozed = snoozed.json();
    assert_eq!((&snoozed["status"], &snoozed["note"]), (&json!("snoozed"), &json!("deploying")));
    stage.again("");
    stage.later(29 * MINUTE);
    rounds();
    assert_eq!(stage.get(&path(&found[0]))["status"], json!("snoozed"));
    stage.later(2 * MINUTE);
    // Nobody looks at it: the change alone is waited for.
    let after = snoozed["change"].as_u64().unwrap();
    assert!(after > before);
    let changed = stage.get(&format!("/notifications?after={after}&wait_ms=20000"));
    let woken = &changed["notifications"][0];
    assert_eq!(
        (&woken["id"], &woken["status"], &woken["note"]),
        (&found[0]["id"], &json!("new"), &json!("deploying"))
    );
    assert!(woken["snoozed_until"].is_null());
}

/// S3-43, S3-T8: bulk of two; and what is bad input says so.
#[test]
fn many_are_changed_at_once_and_bad_input_is_refused_in_words() {
    let (stage, found) = two_orphans();
    let bulk = |body: Value| stage.call("POST", "/notifications/bulk", &body);
    let answer = bulk(json!({"filter": {"all": true}, "status": "acknowledged"})).json();
    let mut changed = answer["changed"].as_array().unwrap().clone();
    changed.sort_by_key(ToString::to_string);
    let mut wanted = ids(&found);
    wanted.sort_by_key(ToString::to_string);
    assert_eq!((changed, &answer["more"]), (wanted, &json!(false)));
    let one = bulk(
        json!({"filter": {"kind": "suspected_orphan"}, "status": "snoozed", "snooze_ms": 1_800_000, "limit": 1}),
    );
    assert_eq!((one.json()["changed"].as_array().unwrap().len(), &one.json()["more"]), (1, &json!(true)));
    let dismissed = bulk(json!({"filter": {"ids": [found[0]["id"]]}, "status": "dismissed"})).json();
    assert_eq!(dismissed["changed"], json!([found[0]["id"]]));
    let again = bulk(json!({"filter": {"ids": ids(&found)}, "status": "read"})).json();
    assert_eq!(again["refused"][0]["code"], json!("notification_dismissed"));

    let code = |body: Value| refused(&bulk(body));
    assert_eq!(code(json!({"filter": {}, "status": "read"})), (422, "bulk_without_filter".into()));
    assert_eq!(code(json!({"status": "read"})), (422, "body_invalid".into()));
    assert_eq!(
        code(json!({"filter": {"all": true}, "status": "read", "limit": 0})),
        (422, "bulk_limit_bad".into())
    );
    assert_eq!(code(json!({"filter": {"all": true}, "status": "seen"})), (422, "body_invalid".into()));
    let edit = |body: Value| refused(&stage.call("PATCH", &path(&found[1]), &body));
    assert_eq!(edit(json!({"status": "snoozed"})), (422, "snooze_invalid".into()));
    assert_eq!(edit(json!({"status": "snoozed", "snooze_ms": 0})), (422, "snooze_in_past".into()));
    assert_eq!(
        edit(json!({"status": "snoozed", "until": "2020-01-01T00:00:00Z"})),
        (422, "snooze_in_past".into())
    );
    assert_eq!(
        edit(json!({"status": "snoozed", "until": "2099-01-01T00:00:00Z"})),
        (422, "snooze_too_long".into())
    );
    assert_eq!(edit(json!({"status": "snoozed", "until": "soon"})), (422, "body_invalid".into()));
    assert_eq!(edit(json!({"status": "read", "snooze_ms": 5})), (422, "snooze_invalid".into()));
    assert_eq!(edit(json!({"status": "read", "note": "x".repeat(501)})), (422, "note_too_long".into()));
    let gone =
        stage.call("PATCH", "/notifications/ntf_00000000000000000000000001", &json!({"status": "read"}));
    assert_eq!(refused(&gone), (404, "notification_not_found".into()));
    assert_eq!(
        refused(&stage.call("PATCH", "/notifications/x", &json!({"status": "read"}))),
        (400, "notification_id_bad".into())
    );
    for query in ["status=seen", "limit=0", "limit=501", "cursor=x", "after=1&cursor=ntf_0", "unknown=1"] {
        let answer = stage.daemon.request("GET", &format!("/api/v1/notifications?{query}"), &[], None);
        assert_eq!(answer.status, 400, "{query}");
    }
}

/// S3-38: dismissed is not over: it is not raised again, and cannot be taken away, while it lasts.
#[test]
fn what_was_dismissed_is_not_told_again_while_it_lasts_and_goes_when_it_is_over() {
    let (stage, found) = two_orphans();
    assert_eq!(stage.call("PATCH", &path(&found[0]), &json!({"status": "dismissed"})).status, 200);
    rounds();
    assert_eq!(stage.notifications("suspected_orphan").len(), 2);
    assert_eq!(
        refused(&stage.call("DELETE", &path(&found[0]), &json!({}))),
        (409, "notification_lasts".into())
    );
    assert_eq!(stage.call("POST", "/notifications/purge", &json!({})).json()["removed"], json!(0));
    // The turns end: both are over, and dismissed by Lanyard itself.
    for held in &found {
        let session = held["session"].as_str().unwrap();
        let signal = json!({"type": "turn_finished", "outcome": "completed"});
        assert_eq!(stage.call("POST", &format!("/sessions/{session}/signals"), &signal).status, 201);
    }
    until("both over", || {
        stage.notifications("suspected_orphan").iter().all(|held| held["over_at"].is_string()).then_some(())
    });
    assert_eq!(stage.get(&path(&found[1]))["status"], json!("dismissed"));
    assert_eq!(stage.call("DELETE", &path(&found[0]), &json!({})).status, 204);
    assert_eq!(stage.call("POST", "/notifications/purge", &json!({})).json()["removed"], json!(1));
    assert_eq!(stage.notifications("suspected_orphan").len(), 0);
}

/// Guidance that nobody could be told in time is told of; a restart in between loses nothing.
#[test]
fn undelivered_guidance_is_told_of_once() {
    let mut stage = Stage::new("");
    let session = stage.new_session();
    let sent = stage.call("POST", &format!("/sessions/{session}/guidance"), &json!({"text": "mind the gap"}));
    assert_eq!(sent.status, 201);
    stage.later(25 * 60 * MINUTE);
    let found = stage.await_notifications("guidance_undelivered", 1);
    assert_eq!((&found[0]["text"], &found[0]["session"]), (&json!("mind the gap"), &json!(session)));
    stage.again("");
    rounds();
    assert_eq!(stage.notifications("guidance_undelivered").len(), 1);
}

/// Questions that wait and budgets that are spent, told of as long as they are so, over a kill of the daemon.
#[test]
fn gates_and_spent_budgets_are_told_of_while_they_last() {
    let folder = tempfile::tempdir().unwrap();
    let agent = |name: &str, more: &str| {
        let (program, state) = (binary().display(), folder.path().join("state"));
        let command = format!("[\"{program}\", \"scripted-agent\", \"--state\", \"{}\"]", state.display());
        format!("[agents.{name}]\ndriver = \"acp\"\ncommand = {command}\n{more}")
    };
    let config = agent("a", "")
        + &agent("b", "budget = { time_ms = 200 }\n")
        + &agent("c", "budget = { tool_calls = 5 }\n");
    let mut daemon = Daemon::start(Setup::default().config(&config));
    let begin = |daemon: &Daemon, agent: &str, prompt: &str| {
        let new = json!({"agent": agent, "workspace": folder.path()}).to_string();
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&new)).json();
        let session = made["session"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/sessions/{session}/turns");
        let body = json!({"prompt": prompt}).to_string();
        assert_eq!(daemon.request("POST", &path, &[], Some(&body)).status, 201);
        session
    };
    let of = |daemon: &Daemon, kind: &str| {
        let page = get(daemon, &format!("/notifications?kind={kind}"));
        page["notifications"].as_array().unwrap().clone()
    };
    let spent = begin(&daemon, "b", "/hang");
    let told = until("the budget", || of(&daemon, "budget_spent").pop());
    assert_eq!(told["session"], json!(spent));
    let warned = until("the warning before it", || of(&daemon, "budget_warning").pop());
    assert_eq!(warned["session"], json!(spent));
    assert!(warned["text"].as_str().unwrap().starts_with("160 of 200 ms."), "{warned}");
    // Four of five calls: told once, and the turn goes on.
    let calls = begin(&daemon, "c", "/repeat 5 /tool look {}");
    let warned = until("the warning of calls", || {
        of(&daemon, "budget_warning").into_iter().find(|held| held["session"] == json!(calls))
    });
    assert!(warned["text"].as_str().unwrap().starts_with("4 of 5 tool calls."), "{warned}");
    let asking = begin(&daemon, "a", "/ask May I go on?");
    let told = until("the gate", || of(&daemon, "gate_waiting").pop());
    assert_eq!((&told["session"], &told["title"]), (&json!(asking), &json!("Approval: May I go on?")));
    daemon.restart_with(Setup::default().config(&config));
    until("it is looked at again", || Some(of(&daemon, "gate_waiting")).filter(|found| found.len() == 1));
    let gate = told["subject"].as_str().unwrap();
    let path = format!("/api/v1/sessions/{asking}/gates/{gate}");
    assert_eq!(daemon.request("POST", &path, &[], Some(r#"{"option":"allow"}"#)).status, 200);
    let over =
        until("it is over", || of(&daemon, "gate_waiting").pop().filter(|held| held["over_at"].is_string()));
    assert_eq!((&over["id"], &over["status"]), (&told["id"], &json!("dismissed")));
    assert_eq!(of(&daemon, "gate_waiting").len(), 1);
}

/// The command line says the same.
#[test]
fn the_command_line_lists_changes_and_takes_away() {
    let (stage, found) = two_orphans();
    let run = |words: &[&str]| {
        let output = stage.daemon.lanyard(words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (ok, listed, _) = run(&["notifications"]);
    assert!(
        ok && listed.contains("suspected_orphan") && listed.contains("works and was not heard of"),
        "{listed}"
    );
    let id = found[0]["id"].as_str().unwrap();
    let (ok, _, said) = run(&["notifications", "snooze", id, "--for", "2h", "--note", "later"]);
    assert!(ok && said.contains("is snoozed"), "{said}");
    let (_, shown, _) = run(&["notifications", "show", id]);
    assert!(shown.contains("later") && shown.contains("snoozed"), "{shown}");
    let (ok, json, _) = run(&["notifications", "ls", "--json"]);
    assert!(ok && serde_json::from_str::<Value>(&json).unwrap()["items"].as_array().unwrap().len() == 2);
    let (ok, _, said) = run(&["notifications", "dismiss", "--all"]);
    assert!(ok && said.contains("2 dismissed"), "{said}");
    let (_, _, said) = run(&["notifications"]);
    assert!(said.contains("--all shows dismissed ones too"), "{said}");
    let (ok, _, said) = run(&["notifications", "snooze", id, "--for", "soon"]);
    assert!(!ok && said.contains("30m"), "{said}");
    let (ok, _, said) = run(&["notifications", "ack", id]);
    assert!(!ok && said.contains("stays dismissed"), "{said}");
    let (ok, text, _) = run(&["metrics"]);
    assert!(ok && text.contains("continuity       ok") && text.contains("sessions created"), "{text}");
}
