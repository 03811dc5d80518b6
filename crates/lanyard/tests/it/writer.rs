//! One writer, many observers, as clients meet it: claims, takeovers, late words, kills (S3-14, S3-19, S3-B13).

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup};

const FIRST: &str = "conn_00000000000000000000000001";
const SECOND: &str = "conn_00000000000000000000000002";
const THIRD: &str = "conn_00000000000000000000000003";
/// Far more than the windows of the tests' config.
const PATIENCE: Duration = Duration::from_secs(20);

fn daemon(config: &str) -> (Daemon, String) {
    let daemon = Daemon::start(Setup::default().config(config));
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}")).json();
    let session = made["session"].as_str().unwrap().to_owned();
    (daemon, session)
}

fn post(daemon: &Daemon, session: &str, what: &str, body: &Value) -> Answer {
    daemon.request("POST", &format!("/api/v1/sessions/{session}/{what}"), &[], Some(&body.to_string()))
}

fn claim(daemon: &Daemon, session: &str, connection: &str, take: bool) -> Answer {
    post(daemon, session, "writer", &json!({"connection": connection, "client": "cli", "take": take}))
}

fn turn(daemon: &Daemon, session: &str, epoch: Option<u64>) -> Answer {
    let epoch = epoch.map(|epoch| epoch.to_string());
    let headers: Vec<(&str, &str)> = epoch.iter().map(|epoch| ("Lanyard-Writer", epoch.as_str())).collect();
    let path = format!("/api/v1/sessions/{session}/turns");
    daemon.request("POST", &path, &headers, Some(r#"{"prompt":"go on"}"#))
}

fn finish(daemon: &Daemon, session: &str) {
    let done = post(daemon, session, "signals", &json!({"type": "turn_finished", "outcome": "completed"}));
    assert_eq!(done.status, 201, "{}", done.text());
}

fn holder(daemon: &Daemon, session: &str) -> Value {
    daemon.request("GET", &format!("/api/v1/sessions/{session}/writer"), &[], None).json()
}

/// S3-14, S3-B13: while somebody writes, the words of others are refused, and everything else is theirs as ever (X-01).
#[test]
fn only_the_writer_speaks_and_everyone_steers() {
    let (daemon, session) = daemon("");
    assert_eq!(turn(&daemon, &session, None).status, 201, "nobody writes, anyone may");
    finish(&daemon, &session);
    let granted = claim(&daemon, &session, FIRST, false).json();
    assert_eq!((&granted["result"], &granted["epoch"]), (&json!("granted"), &json!(1)));
    let refused = turn(&daemon, &session, None);
    assert_eq!((refused.status, refused.code().as_str()), (409, "writer_held"));
    assert_eq!(claim(&daemon, &session, SECOND, false).code(), "writer_held");
    assert_eq!(turn(&daemon, &session, Some(7)).code(), "writer_superseded");
    assert_eq!(turn(&daemon, &session, Some(1)).status, 201);
    assert_eq!(post(&daemon, &session, "guidance", &json!({"text": "look there"})).status, 201);
    assert_eq!(post(&daemon, &session, "cancel", &json!({})).status, 202);
    assert_eq!(claim(&daemon, &session, FIRST, false).json()["epoch"], json!(1), "it has it already");
    let path = format!("/api/v1/sessions/{session}/turns");
    let bad = daemon.request("POST", &path, &[("Lanyard-Writer", "x")], Some(r#"{"prompt":"x"}"#));
    assert_eq!((bad.status, bad.code().as_str()), (400, "writer_epoch_bad"));
    let shown = daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
    assert_eq!(shown["writer"]["connection"], json!(FIRST));
}

/// The holder may deny; without a word it passes when the window is over, and late words are refused. A daemon that was
/// killed in between keeps the wish and its deadline.
#[test]
fn a_takeover_is_denied_or_comes_true_also_over_a_kill() {
    let (mut daemon, session) = daemon("[writer]\ndeny_ms = 1500\n");
    claim(&daemon, &session, FIRST, false);
    let asked = claim(&daemon, &session, SECOND, true).json();
    assert_eq!((&asked["result"], &asked["holder"]["connection"]), (&json!("asked"), &json!(FIRST)));
    assert_eq!(claim(&daemon, &session, THIRD, true).code(), "takeover_pending");
    let wrong = post(&daemon, &session, "writer/deny", &json!({"connection": SECOND, "epoch": 1}));
    assert_eq!(wrong.code(), "writer_superseded");
    assert_eq!(post(&daemon, &session, "writer/deny", &json!({"connection": FIRST, "epoch": 1})).status, 200);
    assert_eq!(claim(&daemon, &session, SECOND, true).code(), "takeover_denied");
    let until = Instant::now() + PATIENCE;
    while claim(&daemon, &session, SECOND, true).code() == "takeover_denied" {
        assert!(Instant::now() < until, "nobody may ask again");
        // sleep: the window of the denial is open
        thread::sleep(Duration::from_millis(50));
    }
    daemon.kill_9();
    daemon.restart_with(Setup::default().config("[writer]\ndeny_ms = 1500\n"));
    // A daemon looks at the deadlines of a session it has in memory; a claim has it loaded.
    while holder(&daemon, &session)["writer"]["connection"] != json!(SECOND) {
        assert!(Instant::now() < until, "it does not pass: {}", holder(&daemon, &session));
        claim(&daemon, &session, SECOND, true);
        // sleep: the deadline has to come
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(turn(&daemon, &session, Some(1)).code(), "writer_superseded", "a late word");
    assert_eq!(turn(&daemon, &session, Some(2)).status, 201);
    let released = post(&daemon, &session, "writer/release", &json!({"connection": SECOND, "epoch": 2}));
    assert_eq!(released.json()["result"], json!("released"));
    assert_eq!(holder(&daemon, &session), json!({"writer": null, "epoch": 2}));
}

/// A holder that is gone gives way after its lease, to a claim and to plain words.
#[test]
fn a_lease_lapses_with_a_holder_that_is_gone() {
    let (daemon, session) = daemon("[writer]\nlapse_ms = 300\n");
    claim(&daemon, &session, FIRST, false);
    let until = Instant::now() + PATIENCE;
    let second = loop {
        let answer = claim(&daemon, &session, SECOND, false);
        if answer.status == 200 {
            break answer.json();
        }
        assert_eq!(answer.code(), "writer_held");
        assert!(Instant::now() < until, "the lease does not lapse");
        // sleep: the lease has its time
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!((&second["result"], &second["epoch"]), (&json!("granted"), &json!(2)));
    while turn(&daemon, &session, None).status != 201 {
        assert!(Instant::now() < until, "nobody may speak");
        // sleep: the lease has its time
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(holder(&daemon, &session)["writer"], Value::Null);
}

/// S3-19: two in the same millisecond: one has it, the other is told who.
#[test]
fn of_many_who_claim_at_once_one_has_it() {
    let (daemon, session) = daemon("");
    let answers: Vec<Answer> = thread::scope(|scope| {
        let claims: Vec<_> = (1..=16)
            .map(|number| {
                let (daemon, session) = (&daemon, &session);
                scope.spawn(move || claim(daemon, session, &format!("conn_{number:026}"), false))
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap()).collect()
    });
    let granted: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(granted.len(), 1);
    let refused = answers.iter().filter(|answer| answer.status != 200);
    assert!(refused.clone().all(|answer| answer.code() == "writer_held"));
    assert_eq!(refused.count(), 15);
    assert_eq!(holder(&daemon, &session)["epoch"], json!(1));
}

/// `lanyard writer` tells, and frees a session from a writer who does not answer.
#[test]
fn the_command_line_tells_who_writes_and_frees_a_session() {
    let (daemon, session) = daemon("[writer]\ndeny_ms = 500\n");
    let said = |words: &[&str]| String::from_utf8(daemon.lanyard(words).stdout).unwrap();
    assert_eq!(
        said(&["writer", &session]),
        "no client holds the writer lease; every client may send turns\n"
    );
    claim(&daemon, &session, FIRST, false);
    let line = said(&["writer", &session]);
    assert!(line.starts_with("local writes since ") && line.contains(FIRST), "{line}");
    assert_eq!(
        said(&["writer", &session, "--free"]),
        "no client holds the writer lease; every client may send turns\n"
    );
}
