//! Counts held against a history that was recorded and counted again by other means (S3-34).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::kit::{attach, get, new_session, until};
use crate::support::{Daemon, Setup, binary};

/// What the logs of all sessions say, counted without Lanyard's own code.
fn recount(daemon: &Daemon) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |name| *counts.entry(name).or_default() += 1;
    let listed = get(daemon, "/sessions?limit=500");
    for row in listed["sessions"].as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let (mut starting, mut native) = (None, false);
        for event in daemon.log_after(id, 0) {
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "session.created" => add("sessions_created"),
                "command.refused" if data["code"] == "turn_rejected_busy" => add("busy_rejections"),
                "run.started" => starting = Some(data["run"].clone()),
                "run.ready" => {
                    if let Some(how) = data["continuity"].as_str() {
                        add("resume_succeeded");
                        add(label(how));
                    }
                    (starting, native) = (None, true);
                }
                "run.adopted" => {
                    add("resume_succeeded");
                    add("exact");
                }
                "run.ended" if starting.as_ref() == Some(&data["run"]) => {
                    let code = data["how"]["code"].as_str().unwrap_or_default();
                    if code.starts_with("resume_") {
                        add("lost");
                        add("resume_failed");
                    } else if native {
                        add("resume_failed");
                    }
                }
                _ => {}
            }
        }
    }
    counts
}

fn label(how: &str) -> &'static str {
    ["exact", "native", "replayed", "preamble", "lost"].into_iter().find(|name| *name == how).unwrap()
}

fn reported(daemon: &Daemon, name: &str) -> u64 {
    let totals = &get(daemon, "/metrics/continuity")["totals"];
    totals.get(name).or_else(|| totals["continuity"].get(name)).unwrap().as_u64().unwrap()
}

fn agent(name: &str, state: &Path, flags: &str) -> String {
    let (program, state) = (binary().display(), state.display());
    format!(
        "[agents.{name}]\ndriver = \"acp\"\ncommand = [\"{program}\", \"scripted-agent\", \"--state\", \"{state}\"{flags}]\n"
    )
}

fn say(daemon: &Daemon, session: &str, body: &Value) -> u16 {
    let path = format!("/api/v1/sessions/{session}/turns");
    daemon.request("POST", &path, &[], Some(&body.to_string())).status
}

fn await_state(daemon: &Daemon, session: &str, state: &str) {
    until(state, || (get(daemon, &format!("/sessions/{session}"))["state"] == state).then_some(()));
}

/// A history with agents, resumes, busy turns, duplicates and kills.
#[test]
fn counts_are_what_the_recorded_history_adds_up_to_also_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let config = agent("a", &folder.path().join("state"), "");
    let setup = || Setup::default().config(&config);
    let mut daemon = Daemon::start(setup());
    let make = |daemon: &Daemon| {
        let body = json!({"agent": "a", "workspace": folder.path()}).to_string();
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body)).json();
        made["session"].as_str().unwrap().to_owned()
    };
    let sessions: Vec<String> = (0..3).map(|_| make(&daemon)).collect();
    for session in &sessions {
        assert_eq!(say(&daemon, session, &json!({"prompt": "/say one", "client_turn_id": "t1"})), 201);
        await_state(&daemon, session, "between_turn");
        // Sent again, it is the same turn.
        assert_eq!(say(&daemon, session, &json!({"prompt": "/say one", "client_turn_id": "t1"})), 200);
        attach(&daemon, session, "");
    }
    // Busy: a second message while one runs.
    let wait = folder.path().join("go");
    assert_eq!(say(&daemon, &sessions[0], &json!({"prompt": format!("/wait-file {}", wait.display())})), 201);
    for _ in 0..40 {
        assert_eq!(say(&daemon, &sessions[0], &json!({"prompt": "me too"})), 409);
    }
    // The daemon is killed; the agents go on, and the next one takes them over.
    daemon.restart_with(setup());
    std::fs::write(&wait, "").unwrap();
    await_state(&daemon, &sessions[0], "between_turn");
    // Somebody asks for an agent that is there already.
    let path = format!("/api/v1/sessions/{}/resume", sessions[1]);
    assert_eq!(daemon.request("POST", &path, &[], Some("{}")).status, 202);
    new_session(&daemon);
    daemon.restart_with(setup());
    let recounted = recount(&daemon);
    for (name, count) in &recounted {
        if *name != "busy_rejections" {
            assert_eq!(reported(&daemon, name), *count, "{name}: {recounted:?}");
        }
    }
    assert!(recounted["exact"] >= 4 && recounted["sessions_created"] == 4, "{recounted:?}");
    // The log has the first of a row of refusals; the others are counted beside it, and a kill takes at most a second of
    // them. All were flushed here: the daemon lived on for longer.
    let busy = reported(&daemon, "busy_rejections");
    assert!(busy >= recounted["busy_rejections"] && busy <= 40, "{busy} {recounted:?}");
    assert!(recounted["busy_rejections"] >= 32, "the first of a row are in the log: {recounted:?}");
}

/// What no log tells of is on disk a moment later, and at an orderly end.
#[test]
fn counts_without_an_event_survive_an_orderly_end() {
    let mut daemon = Daemon::start(Setup::default());
    let session = new_session(&daemon);
    for _ in 0..5 {
        attach(&daemon, &session, "");
    }
    let key = [("idempotency-key", "k1")];
    for _ in 0..3 {
        daemon.request("POST", "/api/v1/sessions", &key, Some("{}"));
    }
    assert!(daemon.terminate().success());
    daemon.try_start().unwrap();
    assert_eq!(reported(&daemon, "attach_succeeded"), 5);
    assert_eq!(reported(&daemon, "duplicate_suppressions"), 2);
    assert_eq!(reported(&daemon, "sessions_created"), 2);
}

/// S3-41: decisions about attaches, leases and repeats can be found in the daemon's log, by names that stay.
#[test]
fn decisions_are_in_the_daemons_log() {
    let daemon = Daemon::start(Setup::default());
    let session = new_session(&daemon);
    attach(&daemon, &session, "?client=test");
    for _ in 0..2 {
        daemon.request("POST", "/api/v1/sessions", &[("idempotency-key", "k1")], Some("{}"));
    }
    daemon.request("POST", "/api/v1/sessions", &[("idempotency-key", "k1")], Some(r#"{"title":"other"}"#));
    let claim = |connection: &str| {
        let body = json!({"connection": connection, "client": "c", "take": false}).to_string();
        daemon.request("POST", &format!("/api/v1/sessions/{session}/writer"), &[], Some(&body)).status
    };
    assert_eq!(claim("conn_00000000000000000000000001"), 200);
    assert_eq!(claim("conn_00000000000000000000000002"), 409);
    for wanted in [
        "attached session=",
        "detached session=",
        "client=\"test\"",
        "idempotency decision=\"duplicate\" of=\"request\"",
        "idempotency decision=\"conflict\" of=\"request\"",
        "writer claimed",
        "lease decision=\"writer_held\"",
    ] {
        until(wanted, || daemon.stderr().contains(wanted).then_some(()));
    }
    assert!(!daemon.stderr().contains(&daemon.token()), "no secret in the log");
}
