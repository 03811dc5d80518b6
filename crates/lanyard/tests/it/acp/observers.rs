//! A second editor at the same session: it sees everything and does not get in the way.

use agent_client_protocol::v1::schema::{ResumeSessionRequest, StopReason};

use serde_json::json;

use super::kit::{Stage, plain, until};

#[test]
fn a_second_editor_sees_prompts_and_answers_and_is_told_when_it_is_busy() {
    let stage = Stage::new();
    let (first, second) = (stage.editor(), stage.editor());
    let session = first.new_session(&stage);
    second.request(ResumeSessionRequest::new(session.clone(), stage.work())).unwrap();
    let pending = first.send(&session, "/say working\n/touch began\n/wait-file go\n/say finished");
    stage.await_file("began");
    let running =
        stage.get(&format!("/sessions/{session}"))["active_turn"]["id"].as_str().unwrap().to_owned();
    let busy = second.prompt(&session, "/say me too").unwrap_err();
    assert_eq!(i32::from(busy.code), -32001);
    assert!(busy.message.contains(&running), "{busy:?}");
    assert_eq!(busy.data.as_ref().unwrap()["code"], "turn_rejected_busy");
    stage.touch("go");
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    second.until(&session, "the end", |told| told.ends_with("\n\nfinished\n"));
    let told = plain(&second.updates(&session));
    assert!(told.starts_with("user_message: /say working\n/touch began"), "{told}");
    assert!(!plain(&first.updates(&session)).contains("user_message"), "the first has shown it itself");
    // Then it is the other's turn, in both senses.
    assert_eq!(second.prompt(&session, "/say second").unwrap().stop_reason, StopReason::EndTurn);
    first.until(&session, "the other's turn", |told| {
        told.contains(": /say second\n") && told.contains(": second\n")
    });
    assert!(!plain(&second.updates(&session)).contains("user_message: /say second"));
}

#[test]
fn prompts_from_anywhere_are_seen() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let sent = stage.post(&format!("/sessions/{session}/turns"), &json!({"prompt": "/say from the shell"}));
    assert_eq!(sent.status, 201, "{}", sent.text());
    editor.until(&session, "the answer", |told| told.contains(": from the shell\n"));
    assert_eq!(
        plain(&editor.updates(&session)),
        "user_message: /say from the shell\nagent_message: from the shell\n"
    );
}

#[test]
fn a_turn_stopped_from_elsewhere_answers_cancelled() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/touch began\n/wait-file never");
    stage.await_file("began");
    let stopped = stage.daemon.lanyard(&["stop", "--now", &session.to_string()]);
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
    let over = editor.prompt(&session, "/say more").unwrap_err();
    assert_eq!(i32::from(over.code), -32001, "{over:?}");
}

#[test]
fn with_a_queue_a_prompt_waits_and_a_cancel_takes_back_only_that_one() {
    let stage = Stage::new();
    let first = stage.editor();
    let second = stage.editor_with(&["--agent", "a", "--delivery", "queue"]);
    let session = first.new_session(&stage);
    second.request(ResumeSessionRequest::new(session.clone(), stage.work())).unwrap();
    let running = first.send(&session, "/touch began\n/wait-file go");
    stage.await_file("began");
    let (kept, dropped) = (second.send(&session, "/say kept"), second.send(&session, "/say dropped"));
    let waits =
        |n: usize| stage.get(&format!("/sessions/{session}/inbox"))["turns"].as_array().unwrap().len() == n;
    until("both to wait", || waits(2));
    dropped.take_back();
    assert_eq!(dropped.wait().unwrap().stop_reason, StopReason::Cancelled);
    assert!(waits(1), "the other one still waits");
    stage.touch("go");
    assert_eq!(running.wait().unwrap().stop_reason, StopReason::EndTurn, "and nobody ended the turn");
    assert_eq!(kept.wait().unwrap().stop_reason, StopReason::EndTurn);
    assert!(plain(&second.updates(&session)).ends_with("agent_message: kept\n"));
}

/// words need the lease while somebody holds it; a cancel and an answer never do.
#[test]
fn while_somebody_else_holds_the_pen_prompts_are_refused_and_cancels_are_not() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/touch began\n/ask May I?\n/wait-file never");
    stage.await_file("began");
    let claim = json!({"connection": "conn_00000000000000000000000001", "client": "cli"});
    let claimed = stage.post(&format!("/sessions/{session}/writer"), &claim);
    assert_eq!(claimed.status, 200, "{}", claimed.text());
    editor.asked().choose("allow_once");
    editor.until(&session, "the answer to arrive", |told| told.contains("permission: allow_once"));
    editor.cancel(&session);
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
    let refused = editor.prompt(&session, "/say me").unwrap_err();
    assert_eq!(refused.data.as_ref().unwrap()["code"], "writer_held", "{refused:?}");
}
