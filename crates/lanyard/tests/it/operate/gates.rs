//! What agents ask, and answering it from the command line and the API.

use serde_json::json;

use super::stage::{Stage, text};

#[test]
fn a_question_waits_until_somebody_answers_and_the_first_answer_stands() {
    let stage = Stage::new();
    let session = stage.detached("/ask May I count?");
    let shown = stage.until(&session, |shown| shown["gates"] != json!([]));
    let gate = shown["gates"][0]["id"].as_str().unwrap().to_owned();
    let all = stage.get("/gates");
    assert_eq!((&all["gates"][0]["id"], &all["gates"][0]["session"]), (&json!(gate), &json!(session)));
    assert!(text(&stage.lanyard(&["approvals"]).stdout).contains("May I count?"));
    assert!(text(&stage.lanyard(&["show", &session]).stdout).contains("\napproval     gate_"));

    let path = format!("/sessions/{session}/gates/{gate}");
    let unknown = stage.post(&path, &json!({"option": "maybe"}));
    assert_eq!(
        (unknown.status, unknown.code()),
        (422, "gate_option_unknown".to_owned()),
        "{}",
        unknown.text()
    );
    let bad = stage.post(&format!("/sessions/{session}/gates/x"), &json!({"option": "allow"}));
    assert_eq!(bad.code(), "gate_id_bad");
    let other = stage.post(
        &format!("/sessions/{session}/gates/gate_00000000000000000000000001"),
        &json!({"option": "allow"}),
    );
    assert_eq!(other.code(), "gate_not_found");

    let answered = stage.lanyard(&["answer", &gate, "allow"]);
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    stage.until_at_rest(&session);
    let log = stage.daemon.log_after(&session, 0);
    let said = log.iter().filter(|event| event["type"] == "message").count();
    assert!(said > 0, "the agent went on: {log:#?}");

    assert_eq!(stage.get("/gates")["gates"], json!([]));
    let again = stage.lanyard(&["answer", &gate, "allow"]);
    assert!(text(&again.stderr).contains("[gate_not_open]"), "{}", text(&again.stderr));
    let again = stage.lanyard(&["answer", &gate, "allow", "--session", &session]);
    assert_eq!(text(&again.stderr), "nothing to change\n");
    let conflict = stage.lanyard(&["answer", &gate, "deny", "--session", &session]);
    assert_eq!(conflict.status.code(), Some(1));
    assert!(text(&conflict.stderr).contains("[gate_already_answered]"), "{}", text(&conflict.stderr));
    assert!(text(&stage.lanyard(&["approvals", &session]).stdout).contains("by "));
}

#[test]
fn a_session_can_be_answered_when_it_asks_one_thing() {
    let stage = Stage::new();
    let session = stage.detached("/ask May I?");
    stage.until(&session, |shown| shown["gates"] != json!([]));
    let answered = stage.lanyard(&["answer", &session, "deny"]);
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    stage.until_at_rest(&session);
    let nothing = stage.lanyard(&["answer", &session, "deny"]);
    assert!(
        text(&nothing.stderr).contains("has no open approval [gate_not_open]"),
        "{}",
        text(&nothing.stderr)
    );
    assert_eq!(text(&stage.lanyard(&["approvals"]).stderr), "no approval is open\n");
}
