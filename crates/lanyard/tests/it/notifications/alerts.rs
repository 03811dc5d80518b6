//! Degraded and recovered, each told once, through flapping, restarts and kills (S3-37, S3-38, S3-B11, S3-T8).

use serde_json::json;

use super::kit::{Stage, rounds};

const MINUTE: i64 = 60_000;

/// S3-T8: ok, degraded with an alert that has actual and threshold, one notification, recovered once.
#[test]
fn continuity_is_ok_then_degraded_then_recovered_each_told_once() {
    let mut stage = Stage::new("");
    let session = stage.new_session();
    stage.attach(&session, 12);
    let report = stage.continuity();
    assert_eq!((&report["continuity_status"], &report["alerts"]), (&json!("ok"), &json!([])));
    assert_eq!(report["attach_success_rate"], json!(1.0));

    stage.fail_to_attach(&session, 4);
    let report = stage.continuity();
    assert_eq!(report["continuity_status"], json!("degraded"));
    let alert = &report["alerts"][0];
    assert_eq!(alert["code"], json!("attach_success_rate"));
    assert_eq!((&alert["actual"], &alert["threshold"]), (&json!(0.75), &json!(0.95)));
    assert_eq!(stage.get("/ops/metrics/session-continuity")["alerts"], report["alerts"]);
    let told = stage.await_notifications("continuity_alert", 1);
    assert_eq!((&told[0]["severity"], &told[0]["status"]), (&json!("critical"), &json!("new")));

    // It flaps: good and bad minutes in turn, around the limit.
    for _ in 0..5 {
        stage.later(MINUTE);
        stage.attach(&session, 20);
        stage.later(MINUTE);
        stage.fail_to_attach(&session, 2);
        rounds();
    }
    assert_eq!(stage.notifications("continuity_alert").len(), 1, "an active alert is not repeated");
    assert_eq!(stage.notifications("continuity_recovered").len(), 0);

    // Nobody comes for an hour: what failed has left the window.
    stage.later(61 * MINUTE);
    let recovered = stage.await_notifications("continuity_recovered", 1);
    assert_eq!(recovered[0]["severity"], json!("info"));
    rounds();
    assert_eq!(stage.continuity()["continuity_status"], json!("ok"));
    assert_eq!(stage.notifications("continuity_recovered").len(), 1);
    let told = stage.notifications("continuity_alert");
    assert!(told.len() == 1 && told[0]["over_at"].is_string());

    // A second time is a second alert.
    stage.fail_to_attach(&session, 10);
    assert_eq!(stage.await_notifications("continuity_alert", 2).len(), 2);
}

/// A daemon that is killed while an alert holds neither tells it again nor forgets to take it back.
#[test]
fn an_alert_outlives_kills_and_is_taken_back_once() {
    let mut stage = Stage::new("");
    let session = stage.new_session();
    stage.fail_to_attach(&session, 10);
    stage.await_notifications("continuity_alert", 1);
    for _ in 0..3 {
        stage.again("");
        rounds();
        assert_eq!(stage.continuity()["continuity_status"], json!("degraded"));
        assert_eq!(stage.notifications("continuity_alert").len(), 1);
    }
    stage.later(61 * MINUTE);
    stage.again("");
    stage.await_notifications("continuity_recovered", 1);
    stage.again("");
    rounds();
    assert_eq!(stage.notifications("continuity_recovered").len(), 1);
    assert_eq!(stage.notifications("continuity_alert").len(), 1);
}

/// S3-B11: what names no session is no failure, and too few attempts say nothing.
#[test]
fn not_found_and_a_few_failures_are_no_alert() {
    let stage = Stage::new("");
    let session = stage.new_session();
    for _ in 0..30 {
        let missing = "/api/v1/sessions/sess_00000000000000000000000001/attach";
        assert_eq!(stage.daemon.request("GET", missing, &[], None).status, 404);
        assert_eq!(stage.daemon.request("GET", "/api/v1/sessions/nobody/attach", &[], None).status, 404);
        let bad = format!("/api/v1/sessions/{session}/attach?mode=sideways");
        assert_eq!(stage.daemon.request("GET", &bad, &[], None).status, 400);
    }
    stage.fail_to_attach(&session, 9);
    let report = stage.continuity();
    assert_eq!(report["continuity_status"], json!("ok"));
    assert_eq!(
        (&report["window"]["attach_attempts"], &report["window"]["attach_failed"]),
        (&json!(9), &json!(9))
    );
}

/// S3-36: who could not get back and makes a new session has lost the old one by accident.
#[test]
fn a_new_session_after_a_failure_counts_as_an_accident() {
    let mut stage = Stage::new("");
    stage.new_session();
    let missing = "/api/v1/sessions/nobody/attach";
    assert_eq!(stage.daemon.request("GET", missing, &[], None).status, 404);
    stage.new_session();
    stage.new_session();
    assert_eq!(stage.daemon.request("GET", missing, &[], None).status, 404);
    stage.later(2 * MINUTE);
    stage.new_session();
    let report = stage.continuity();
    assert_eq!(report["totals"]["sessions_created"], json!(4));
    assert_eq!(report["totals"]["accidental_new_sessions"], json!(1));
    assert_eq!(report["accidental_new_session_rate"], json!(0.25));
}
