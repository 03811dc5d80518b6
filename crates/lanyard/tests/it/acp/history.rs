//! Loading, resuming and forking: the conversation as it was, and then live.

use agent_client_protocol::v1::schema::{
    ForkSessionRequest, LoadSessionRequest, ResumeSessionRequest, SessionId, StopReason,
};
use serde_json::json;

use super::kit::{Stage, plain, story};

const FIRST: &str =
    "/think so\n/plan a | b\n/say one two three\n/tool read {\"path\": \"/w/a\"}\n/say after it";
const SECOND: &str = "/say second answer\n/tool-fail build broken";

#[test]
fn what_is_loaded_is_what_was_streamed() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, FIRST).unwrap();
    let first = story(&editor.updates(&session));
    editor.prompt(&session, SECOND).unwrap();
    let both = story(&editor.updates(&session));
    let second = both.strip_prefix(&first).unwrap();
    let other = stage.editor();
    other.load(&stage, &session).unwrap();
    let loaded = story(&other.updates(&session));
    // The same updates under the same ids, with the prompts the first editor knew without being told.
    let turns: Vec<String> = stage
        .log(&session)
        .iter()
        .filter(|event| event["type"] == "turn.started")
        .map(|event| event["data"]["turn"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        format!("user_message {}: {FIRST}\n{first}user_message {}: {SECOND}\n{second}", turns[0], turns[1]);
    assert_eq!(loaded, expected);
    // Again by the one who has it open, and nothing is missing or twice afterwards.
    editor.forget();
    editor.load(&stage, &session).unwrap();
    assert_eq!(story(&editor.updates(&session)), expected);
    editor.prompt(&session, "/say third").unwrap();
    assert!(plain(&editor.updates(&session)).ends_with("agent_message: third\n"));
    other.until(&session, "the third answer", |told| told.contains(": third\n"));
}

#[test]
fn a_turn_that_runs_is_loaded_as_far_as_it_is_and_goes_on_live() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending =
        editor.send(&session, "/say! before\n/tool look {}\n/touch began\n/wait-file go\n/say! behind");
    stage.await_file("began");
    editor.until(&session, "the tool call", |told| told.contains("tool_call_update"));
    let other = stage.editor();
    other.load(&stage, &session).unwrap();
    let so_far = plain(&other.updates(&session));
    assert!(so_far.contains("agent_message: before\n") && so_far.starts_with("user_message: /say! before"));
    stage.touch("go");
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::EndTurn);
    other.until(&session, "the rest", |told| told.contains(": behind\n"));
    assert_eq!(plain(&other.updates(&session)).matches("agent_message: before\n").count(), 1);
}

#[test]
fn resuming_is_attaching_without_history() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, "/say old").unwrap();
    assert!(editor.close().success());
    let editor = stage.editor();
    editor.request(ResumeSessionRequest::new(session.clone(), stage.work())).unwrap();
    assert_eq!(editor.prompt(&session, "/recall").unwrap().stop_reason, StopReason::EndTurn);
    let told = plain(&editor.updates(&session));
    assert_eq!(told, "agent_message: I know 1 earlier prompt: /say old\n");
}

#[test]
fn an_unknown_session_is_an_error_and_never_a_new_one() {
    let stage = Stage::new();
    let editor = stage.editor();
    let unknown = SessionId::new("sess_01h455vb4pex5vsknk084sn02q");
    let code = |error: agent_client_protocol::Error| i32::from(error.code);
    for name in [unknown, SessionId::new("no such thing"), SessionId::new("")] {
        let load = editor.request(LoadSessionRequest::new(name.clone(), stage.work()));
        assert_eq!(code(load.unwrap_err()), -32002, "{name}");
        let resume = editor.request(ResumeSessionRequest::new(name.clone(), stage.work()));
        assert_eq!(code(resume.unwrap_err()), -32002, "{name}");
        assert_eq!(code(editor.prompt(&name, "/say hi").unwrap_err()), -32002, "{name}");
        let fork = editor.request(ForkSessionRequest::new(name.clone(), stage.work()));
        assert_eq!(code(fork.unwrap_err()), -32002, "{name}");
    }
    assert_eq!(stage.get("/sessions")["sessions"], json!([]));
}

#[test]
fn a_fork_goes_on_from_the_same_history() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, "/say shared past").unwrap();
    let fork = editor.request(ForkSessionRequest::new(session.clone(), stage.work())).unwrap().session_id;
    assert_ne!(fork, session);
    editor.prompt(&session, "/say only there").unwrap();
    assert_eq!(editor.prompt(&fork, "/say only here").unwrap().stop_reason, StopReason::EndTurn);
    let second = editor.request(ForkSessionRequest::new(fork.clone(), stage.work())).unwrap().session_id;
    let other = stage.editor();
    other.load(&stage, &second).unwrap();
    let told = plain(&other.updates(&second));
    assert_eq!(
        told,
        "user_message: /say shared past\nagent_message: shared past\nuser_message: /say only here\nagent_message: only here\n"
    );
}

#[test]
fn a_long_history_comes_whole_and_in_order() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, "/repeat 400 /tool step {}").unwrap();
    let streamed = story(&editor.updates(&session));
    assert_eq!(streamed.matches("tool_call: ").count(), 400);
    let other = stage.editor();
    other.load(&stage, &session).unwrap();
    let loaded = story(&other.updates(&session));
    assert_eq!(loaded.lines().skip(1).collect::<Vec<_>>(), streamed.lines().collect::<Vec<_>>());
}
