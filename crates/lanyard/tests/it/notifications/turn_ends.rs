//! The ends of turns as operators meet them: one word per session, unread until seen, told of once (FND-D2).

use serde_json::{Value, json};

use super::kit::{Stage, hold, rounds, until};
use crate::support::Caller;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;

fn view(stage: &Stage, session: &str) -> Value {
    stage.get(&format!("/sessions/{session}"))
}

fn word(stage: &Stage, session: &str) -> (String, bool) {
    let view = view(stage, session);
    (view["operator_state"].as_str().unwrap().to_owned(), view["unread"].as_bool().unwrap())
}

fn post(stage: &Stage, session: &str, what: &str, body: &Value) -> Value {
    let answer = stage.call("POST", &format!("/sessions/{session}/{what}"), body);
    assert!(answer.status < 300, "{what}: {}", answer.text());
    answer.json()
}

/// A session whose first turn has ended like this.
fn ended(stage: &Stage, end: &Value) -> String {
    let session = stage.new_session();
    post(stage, &session, "turns", &json!({"prompt": "work"}));
    assert_eq!(word(stage, &session), ("working".to_owned(), false));
    post(stage, &session, "signals", end);
    session
}

fn finished(outcome: &str) -> Value {
    json!({"type": "turn_finished", "outcome": outcome})
}

fn marks(stage: &Stage, session: &str) -> usize {
    stage.daemon.log_after(session, 0).iter().filter(|event| event["type"] == "session.seen").count()
}

#[test]
fn fnd_d2_a_finished_turn_waits_to_be_reviewed_until_an_operator_has_seen_it() {
    let mut stage = Stage::new("");
    let session = ended(&stage, &finished("completed"));
    assert_eq!(word(&stage, &session), ("ready_for_review".to_owned(), true));
    let row = stage.get("/sessions?operator_state=ready_for_review");
    assert_eq!(row["sessions"][0]["id"], json!(session));
    assert_eq!(row["sessions"][0]["unread"], json!(true));
    assert_eq!(row["sessions"][0]["attention"], json!(["turn_finished"]));
    let counts = stage.get("/status")["operator_states"].clone();
    assert!(
        counts.as_array().unwrap().contains(&json!({"operator_state": "ready_for_review", "sessions": 1}))
    );
    // A client that showed the end has a moment to say so.
    rounds();
    assert_eq!(stage.notifications("turn_finished").len(), 0);
    stage.later(3 * SECOND);
    let raised = stage.await_notifications("turn_finished", 1);
    assert_eq!(raised[0]["severity"], json!("info"));
    // A restart raises nothing again.
    stage.again("");
    rounds();
    assert_eq!(stage.notifications("turn_finished").len(), 1);
    let before = view(&stage, &session);
    let seq = before["last_turn"]["seq"].as_u64().unwrap();
    stage.later(MINUTE);
    post(&stage, &session, "seen", &json!({"seq": seq}));
    assert_eq!(word(&stage, &session), ("idle".to_owned(), false));
    let after = view(&stage, &session);
    assert_eq!(after["last_activity_at"], before["last_activity_at"], "reading is no activity");
    assert_eq!(after["seen"][0]["seq"], json!(seq));
    until("its end", || stage.notifications("turn_finished")[0]["over_at"].is_string().then_some(()));
    // Nothing new: nothing is written.
    let head = after["last_seq"].as_u64().unwrap();
    post(&stage, &session, "seen", &json!({"seq": head}));
    assert_eq!((marks(&stage, &session), view(&stage, &session)["last_seq"].as_u64()), (1, Some(head)));
    let ahead = stage.call("POST", &format!("/sessions/{session}/seen"), &json!({"seq": head + 1}));
    assert_eq!((ahead.status, ahead.code()), (422, "position_ahead_of_log".to_owned()));
}

#[test]
fn fnd_d2_failed_refused_and_crashed_turns_are_told_of_and_end_with_the_next_turn() {
    let mut stage = Stage::new("");
    let crash = json!({"type": "turn_lost", "cause": "crash"});
    for (end, kind) in
        [(finished("failed"), "turn_failed"), (finished("refused"), "turn_refused"), (crash, "agent_crashed")]
    {
        let session = ended(&stage, &end);
        assert_eq!(word(&stage, &session), ("failed".to_owned(), true), "{kind}");
        let row = stage.get("/sessions?limit=1")["sessions"][0].clone();
        assert!(row["attention"].as_array().unwrap().contains(&json!(kind)), "{row}");
        stage.later(3 * SECOND);
        stage.await_notifications(kind, 1);
        post(&stage, &session, "turns", &json!({"prompt": "again"}));
        assert_eq!(word(&stage, &session), ("working".to_owned(), false), "{kind}");
        until("its end", || stage.notifications(kind)[0]["over_at"].is_string().then_some(()));
    }
}

/// An observer looks and reviews for nobody.
#[test]
fn fnd_d2_an_observers_mark_is_kept_and_leaves_the_turn_unread() {
    let stage = Stage::new("");
    let session = ended(&stage, &finished("completed"));
    let made = stage.call("POST", "/tokens", &json!({"role": "observer", "name": "wall"}));
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let seq = view(&stage, &session)["last_turn"]["seq"].clone();
    let path = format!("/api/v1/sessions/{session}/seen");
    let body = json!({"seq": seq}).to_string();
    let wall = Caller { token, ..stage.daemon.caller() };
    let seen = wall.try_request("POST", &path, &[], Some(&body)).unwrap();
    assert_eq!(seen.status, 200, "{}", seen.text());
    let view = view(&stage, &session);
    assert_eq!((&view["unread"], &view["seen"][0]["by"]["name"]), (&json!(true), &json!("wall")));
}

/// FND-D2: an operator who has the session on the screen is not told of what the screen shows; one who left is.
#[test]
fn fnd_d2_a_turns_end_is_not_told_of_while_an_operator_watches() {
    let mut stage = Stage::new("");
    let session = stage.new_session();
    post(&stage, &session, "turns", &json!({"prompt": "work"}));
    let watching = hold(&stage.daemon, &session);
    post(&stage, &session, "signals", &finished("completed"));
    stage.later(5 * MINUTE);
    rounds();
    assert_eq!(word(&stage, &session), ("ready_for_review".to_owned(), true));
    assert_eq!(stage.notifications("turn_finished").len(), 0);
    // Gone without a mark: nobody has seen it.
    drop(watching);
    stage.await_notifications("turn_finished", 1);
    // A watcher who marks it is never told.
    post(&stage, &session, "turns", &json!({"prompt": "again"}));
    let watching = hold(&stage.daemon, &session);
    post(&stage, &session, "signals", &finished("completed"));
    let seq = view(&stage, &session)["last_turn"]["seq"].clone();
    post(&stage, &session, "seen", &json!({"seq": seq}));
    drop(watching);
    stage.later(5 * MINUTE);
    rounds();
    assert_eq!(stage.notifications("turn_finished").len(), 1);
}

/// FND-D17: a restart is no activity of a session at rest.
#[test]
fn fnd_d17_a_restart_does_not_touch_the_activity_of_sessions_at_rest() {
    let mut stage = Stage::new("");
    let workspace = tempfile::tempdir().unwrap();
    let new = json!({"agent": "demo", "workspace": workspace.path().display().to_string()});
    let session = stage.call("POST", "/sessions", &new).json()["session"].as_str().unwrap().to_owned();
    post(&stage, &session, "turns", &json!({"prompt": "/say hello"}));
    until("the turn's end", || (view(&stage, &session)["state"] == json!("between_turn")).then_some(()));
    let before = view(&stage, &session);
    stage.later(5 * MINUTE);
    stage.daemon.kill_9();
    stage.again("");
    let news = || view(&stage, &session)["last_seq"].as_u64() > before["last_seq"].as_u64();
    until("the run to be found", || news().then_some(()));
    let after = view(&stage, &session);
    assert_eq!(after["last_activity_at"], before["last_activity_at"]);
    let row = stage.get("/sessions?limit=1")["sessions"][0].clone();
    assert_eq!(row["last_activity_at"], before["last_activity_at"]);
}
