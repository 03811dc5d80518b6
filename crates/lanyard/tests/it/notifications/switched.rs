//! Parts that are switched off, and on again: nothing is lost (S3-44).

use serde_json::{Value, json};

use super::kit::{attach, get, new_session};
use crate::support::{Answer, Daemon, Setup};

fn features(text: &str) -> Setup {
    Setup::default().config(&format!("[features]\n{text}\n"))
}

fn send(daemon: &Daemon, session: &str, body: &Value) -> Answer {
    let path = format!("/api/v1/sessions/{session}/turns");
    daemon.request("POST", &path, &[], Some(&body.to_string()))
}

fn finish(daemon: &Daemon, session: &str) {
    let signal = json!({"type": "turn_finished", "outcome": "completed"}).to_string();
    let path = format!("/api/v1/sessions/{session}/signals");
    assert_eq!(daemon.request("POST", &path, &[], Some(&signal)).status, 201);
}

fn turn_once(daemon: &Daemon, session: &str, prompt: &str) {
    assert_eq!(send(daemon, session, &json!({"prompt": prompt})).status, 201);
    finish(daemon, session);
}

/// Attaching is refused, chat goes on; switched on again, all of it can be attached to.
#[test]
fn attach_off_refuses_only_that() {
    let mut daemon = Daemon::start(Setup::default());
    let session = new_session(&daemon);
    turn_once(&daemon, &session, "one");
    daemon.restart_with(features("attach = \"off\""));
    let refused = daemon.request("GET", &format!("/api/v1/sessions/{session}/attach"), &[], None);
    assert_eq!((refused.status, refused.code().as_str()), (409, "attach_off"));
    turn_once(&daemon, &session, "two");
    assert!(daemon.lanyard(&["logs", &session]).status.success());
    assert_eq!(
        get(&daemon, "/metrics/continuity")["totals"]["attach_failed"],
        json!(0),
        "no failure of continuity"
    );
    daemon.restart_with(Setup::default().config(""));
    let hello = attach(&daemon, &session, "?mode=full");
    assert_eq!(
        (&hello["after"], &hello["head_seq"]),
        (&json!(0), &json!(daemon.log_after(&session, 0).len()))
    );
}

/// Without replay one begins at the end, and is told; who comes back gets what it missed.
#[test]
fn replay_off_begins_at_the_end_and_still_closes_gaps() {
    let mut daemon = Daemon::start(Setup::default());
    let session = new_session(&daemon);
    turn_once(&daemon, &session, "one");
    daemon.restart_with(features("replay = \"off\""));
    for query in ["", "?mode=full", "?last=5"] {
        let hello = attach(&daemon, &session, query);
        assert_eq!((&hello["mode"], &hello["after"]), (&json!("tail"), &hello["head_seq"]), "{query}");
    }
    let hello = attach(&daemon, &session, "?after=1");
    assert_eq!((&hello["mode"], &hello["after"]), (&json!("after"), &json!(1)));
    daemon.restart_with(Setup::default().config(""));
    assert_eq!(attach(&daemon, &session, "?mode=full")["after"], json!(0));
}

/// Without dedupe a message runs as often as it is sent; a key still counts. Switched on again, names are known as ever.
#[test]
fn dedupe_off_runs_each_and_forgets_no_name() {
    let mut daemon = Daemon::start(Setup::default());
    let session = new_session(&daemon);
    let named = json!({"prompt": "work", "client_turn_id": "t1"});
    let first = send(&daemon, &session, &named).json()["turn"].clone();
    finish(&daemon, &session);
    assert_eq!(send(&daemon, &session, &named).json()["turn"], first, "sent before");

    daemon.restart_with(features("dedupe = \"off\""));
    let second = send(&daemon, &session, &named);
    assert_eq!(second.status, 201, "{}", second.text());
    let second = second.json()["turn"].clone();
    assert_ne!(second, first);
    finish(&daemon, &session);
    let keyed = || {
        let path = format!("/api/v1/sessions/{session}/turns");
        daemon.request("POST", &path, &[("idempotency-key", "k")], Some(r#"{"prompt":"again"}"#)).json()
    };
    let once = keyed()["turn"].clone();
    assert_eq!(keyed()["turn"], once, "a key is honoured");
    finish(&daemon, &session);

    daemon.restart_with(Setup::default().config(""));
    let again = send(&daemon, &session, &named);
    assert_eq!((again.status, &again.json()["turn"]), (200, &second), "the newest under that name");
    let turns = get(&daemon, &format!("/sessions/{session}/turns"));
    assert_eq!(turns["turns"].as_array().unwrap().len(), 3, "all of them are in the log");
}
