//! Permission requests: asked in the editor and everywhere else, and the first answer stands.

use agent_client_protocol::v1::schema::{PermissionOptionKind, ResumeSessionRequest, StopReason};
use serde_json::json;

use super::kit::{Stage, plain};

#[test]
fn the_editors_answer_is_the_answer() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/ask-tool deploy Deploy it all");
    let asked = editor.asked();
    assert_eq!(asked.request.session_id, session);
    assert_eq!(asked.request.tool_call.fields.title.as_deref(), Some("Deploy it all"));
    let kinds: Vec<PermissionOptionKind> = asked.request.options.iter().map(|option| option.kind).collect();
    assert_eq!(
        kinds,
        [
            PermissionOptionKind::AllowOnce,
            PermissionOptionKind::AllowAlways,
            PermissionOptionKind::RejectOnce
        ]
    );
    asked.choose("reject_once");
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    let told = plain(&editor.updates(&session));
    assert!(told.contains("agent_message: permission: reject_once\n"), "{told}");
    let answers = stage.log(&session).iter().filter(|event| event["type"] == "gate.answered").count();
    assert_eq!(answers, 1);
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_back() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/ask May I?");
    let asked = editor.asked();
    let gate = stage.question(&session);
    assert_eq!(stage.answer(&session, &gate, "allow_once").status, 200);
    asked.until_taken_back();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    // What the editor says afterwards changes nothing.
    asked.choose("reject_once");
    assert_eq!(editor.prompt(&session, "/say next").unwrap().stop_reason, StopReason::EndTurn);
    let told = plain(&editor.updates(&session));
    assert!(told.contains("permission: allow_once"), "{told}");
}

#[test]
fn two_editors_are_asked_and_the_first_to_answer_wins() {
    let stage = Stage::new();
    let (first, second) = (stage.editor(), stage.editor());
    let session = first.new_session(&stage);
    second.load(&stage, &session).unwrap();
    let pending = first.send(&session, "/ask May I?");
    let (here, there) = (first.asked(), second.asked());
    there.choose("allow_always");
    here.until_taken_back();
    here.choose("reject_once");
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    assert!(plain(&first.updates(&session)).contains("permission: allow_always"));
}

#[test]
fn an_open_question_is_asked_of_who_comes_later() {
    let stage = Stage::new();
    let mut editor = stage.editor();
    let session = editor.new_session(&stage);
    let _pending = editor.send(&session, "/ask May I?");
    drop(editor.asked());
    editor.kill_9();
    let later = stage.editor();
    later.load(&stage, &session).unwrap();
    let asked = later.asked();
    assert_eq!(asked.request.tool_call.fields.title.as_deref(), Some("May I?"));
    asked.choose("allow_once");
    stage.at_rest(&session);
    later.until(&session, "the agent's word", |told| told.contains("permission: allow_once"));
    // Settled questions are not asked again.
    let resumed = stage.editor();
    resumed.request(ResumeSessionRequest::new(session.clone(), stage.work())).unwrap();
    assert_eq!(resumed.prompt(&session, "/say on").unwrap().stop_reason, StopReason::EndTurn);
    assert!(resumed.is_asked_nothing());
}

#[test]
fn a_cancel_settles_an_open_question() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/ask May I?");
    let asked = editor.asked();
    editor.cancel(&session);
    asked.give_up();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
    let withdrawn = stage.log(&session).iter().any(|event| event["type"] == "gate.withdrawn");
    assert!(withdrawn, "{:#?}", stage.log(&session).last());
}

#[test]
fn a_subagents_question_reaches_the_editor() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/spawn scout /ask May the scout?\n/join");
    let asked = editor.asked();
    assert_eq!(asked.request.session_id, session);
    assert_eq!(asked.request.tool_call.fields.title.as_deref(), Some("scout: May the scout?"));
    // Also of an editor that comes when it waits already, and then it is taken back there.
    let other = stage.editor();
    other.load(&stage, &session).unwrap();
    let there = other.asked();
    asked.choose("allow_once");
    there.until_taken_back();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    assert!(plain(&editor.updates(&session)).contains("child scout: permission: allow_once"));
    let tree = stage.get(&format!("/sessions/{session}/tree"));
    assert_eq!(tree["children"].as_array().map(Vec::len), Some(1), "{}", json!(tree));
}
