//! Greeting, new sessions, prompts and what comes of them, cancelling, lists.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ContentBlock, ImageContent, InitializeRequest, ListSessionsRequest, McpServer,
    McpServerStdio, NewSessionRequest, PromptRequest, SetSessionModeRequest, StopReason,
};
use serde_json::json;

use super::kit::{Stage, plain, story};

#[test]
fn it_says_what_it_is_and_can() {
    let stage = Stage::new();
    let editor = stage.editor();
    let told = serde_json::to_value(&editor.greeting).unwrap();
    assert_eq!(told["protocolVersion"], 1);
    assert_eq!(told["agentInfo"]["name"], "lanyard");
    assert_eq!(told["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
    let can = &told["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert_eq!(can["sessionCapabilities"], json!({"list": {}, "fork": {}, "resume": {}, "close": {}}));
    assert_eq!(can["promptCapabilities"], json!({"image": true, "audio": false, "embeddedContext": true}));
    assert_eq!(told["authMethods"], json!([]));
    // A version it does not speak is answered with the one it does.
    let other = editor.request(InitializeRequest::new(ProtocolVersion::V0)).unwrap();
    assert_eq!(other.protocol_version, ProtocolVersion::V1);
}

#[test]
fn a_prompt_is_a_turn_and_its_end_is_the_answer() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let script = "/think I should greet\n/plan look | greet\n/say hello world\n/tool read {\"path\": \"/w/a.rs\"}\n\
        /tool-fail build no compiler\n/plan-done 1\n/usage 120 8\n/say done";
    let end = editor.prompt(&session, script).unwrap();
    assert_eq!(end.stop_reason, StopReason::EndTurn);
    let usage = end.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (120, 8, 128));
    let told = plain(&editor.updates(&session));
    assert_eq!(
        told,
        "agent_thought: I should greet\n\
         plan: look (in_progress), greet (pending)\n\
         agent_message: hello world\n\
         tool_call: call_1_3 read: /w/a.rs in_progress\n\
         tool_call_update: call_1_3 completed read is done\n\
         tool_call: call_1_4 build in_progress\n\
         tool_call_update: call_1_4 failed no compiler\n\
         plan: look (completed), greet (in_progress)\n\
         agent_message: done\n"
    );
    let shown = stage.at_rest(&session);
    assert_eq!((&shown["source"], &shown["agent"]), (&json!("editor"), &json!("a")));
    assert_eq!(shown["workspace"], json!(stage.work()));
    assert_eq!(shown["turns"], 1);
}

/// A picture in an editor's prompt is an attachment of the turn, and one that is none is refused.
#[test]
fn a_picture_of_an_editor_is_attached() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let ask = |data: &str| {
        let picture = ContentBlock::Image(ImageContent::new(data, "image/gif"));
        editor.request(PromptRequest::new(session.clone(), vec![ContentBlock::from("/parts"), picture]))
    };
    // `GIF89a` and one point.
    assert_eq!(ask("R0lGODlhAQABAAAAADs=").unwrap().stop_reason, StopReason::EndTurn);
    let log = stage.log(&session);
    let started = log.iter().find(|event| event["type"] == "turn.started").unwrap();
    let parts = &started["data"]["parts"];
    assert_eq!(
        (&parts[0]["kind"], &parts[0]["media_type"]),
        (&json!("image"), &json!("image/gif")),
        "{started}"
    );
    let refused = ask("aGk=").unwrap_err();
    assert!(refused.message.contains("claims to be an image"), "{refused:?}");
    assert_eq!(stage.at_rest(&session)["turns"], 1);
}

/// FND-D2: a turn whose end an editor has got, live or with the conversation, does not wait to be reviewed.
#[test]
fn fnd_d2_a_turn_that_an_editor_shows_is_marked_as_seen() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    editor.prompt(&session, "/say hello").unwrap();
    let shown = stage.session(&session, |shown| shown["operator_state"] == "idle");
    assert_eq!(shown["unread"], false, "{shown:#}");
    assert!(editor.close().success());
    // Nobody is there: it is unread until somebody opens it.
    assert_eq!(
        stage.post(&format!("/sessions/{session}/turns"), &json!({"prompt": "/say more"})).status,
        201
    );
    let shown = stage.at_rest(&session);
    assert_eq!((&shown["operator_state"], &shown["unread"]), (&json!("ready_for_review"), &json!(true)));
    stage.editor().load(&stage, &session).unwrap();
    let shown = stage.session(&session, |shown| shown["operator_state"] == "idle");
    assert_eq!(shown["unread"], false, "{shown:#}");
}

/// Text is sent while it grows, not when it is done, and all of it is there once.
#[test]
fn text_grows_in_the_editor() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let words: Vec<String> = (0..40).map(|n| format!("word{n}")).collect();
    let script = format!("/pace 30\n/say {}\n/tool step {{}}\n/say {}", words.join(" "), words.join(" "));
    assert_eq!(editor.prompt(&session, &script).unwrap().stop_reason, StopReason::EndTurn);
    let updates = editor.updates(&session);
    let said = format!("agent_message: {}\n", words.join(" "));
    let expected = format!(
        "{said}tool_call: call_1_2 step in_progress\ntool_call_update: call_1_2 completed step is done\n{said}"
    );
    assert_eq!(plain(&updates), expected);
    let events = stage.log(&session).iter().filter(|event| event["type"] == "message").count();
    assert!(updates.len() - 2 > events, "{} chunks of {events} events", updates.len() - 2);
    // Who is there is seen by others.
    let present = stage.get(&format!("/sessions/{session}/presence"));
    assert_eq!(present["connections"][0]["client"], "acp", "{present}");
}

#[test]
fn every_end_has_its_reason() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let reasons = [
        ("/stop refusal", StopReason::Refusal),
        ("/stop max_tokens", StopReason::MaxTokens),
        ("/stop max_turn_requests", StopReason::MaxTurnRequests),
        ("/stop end_turn", StopReason::EndTurn),
    ];
    for (script, reason) in reasons {
        assert_eq!(editor.prompt(&session, script).unwrap().stop_reason, reason, "{script}");
    }
    let failed = editor.prompt(&session, "/error -32050 out of order").unwrap_err();
    assert!(failed.message.contains("out of order"), "{failed:?}");
    let died = editor.prompt(&session, "/die").unwrap_err();
    assert_eq!(died.data.as_ref().unwrap()["code"], "turn_interrupted", "{died:?}");
    assert_eq!(editor.prompt(&session, "/say and on").unwrap().stop_reason, StopReason::EndTurn);
}

#[test]
fn a_cancel_ends_the_turn_and_the_prompt_says_so_when_it_has_ended() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    // Right behind its prompt, and in the middle of the turn.
    let pending = editor.send(&session, "/wait-file never");
    editor.cancel(&session);
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
    assert!(stage.get(&format!("/sessions/{session}"))["active_turn"].is_null(), "it has ended by then");
    let pending = editor.send(&session, "/touch began\n/wait-file never");
    stage.await_file("began");
    editor.cancel(&session);
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
    // Nothing to cancel is nothing at all.
    editor.cancel(&session);
    assert_eq!(editor.prompt(&session, "/say next").unwrap().stop_reason, StopReason::EndTurn);
}

#[test]
fn a_request_that_is_taken_back_is_a_cancel() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/touch began\n/wait-file never");
    stage.await_file("began");
    pending.take_back();
    assert_eq!(pending.wait().unwrap().stop_reason, StopReason::Cancelled);
}

#[test]
fn sessions_are_listed_by_their_folder_page_by_page() {
    let stage = Stage::new();
    let editor = stage.editor();
    let first = editor.new_session(&stage);
    // Made elsewhere, with a title; and one of another folder.
    let made =
        stage.post("/sessions", &json!({"title": "from the shell", "agent": "a", "workspace": stage.work()}));
    let second = made.json()["session"].as_str().unwrap().to_owned();
    stage.post("/sessions", &json!({"agent": "a", "workspace": "/tmp"}));
    stage.post("/sessions", &json!({"agent": "a", "workspace": stage.work(), "parent": second}));
    let listed = editor.request(ListSessionsRequest::new().cwd(stage.work())).unwrap();
    let ids: Vec<String> = listed.sessions.iter().map(|info| info.session_id.to_string()).collect();
    assert_eq!(ids, [second, first.to_string()], "newest first, and no subagents");
    assert_eq!(listed.sessions[0].title.as_deref(), Some("from the shell"));
    assert!(listed.sessions.iter().all(|info| info.cwd == stage.work() && info.updated_at.is_some()));
    assert_eq!(listed.next_cursor, None);
    let all = editor.request(ListSessionsRequest::new()).unwrap();
    assert_eq!(all.sessions.len(), 3);
    for _ in 0..105 {
        stage.post("/sessions", &json!({"agent": "a", "workspace": stage.work()}));
    }
    let page = editor.request(ListSessionsRequest::new().cwd(stage.work())).unwrap();
    let next = page.next_cursor.clone().expect("a second page");
    let rest = editor.request(ListSessionsRequest::new().cwd(stage.work()).cursor(next)).unwrap();
    assert_eq!((page.sessions.len() + rest.sessions.len(), rest.next_cursor), (107, None));
    let bad = editor.request(ListSessionsRequest::new().cwd(stage.work()).cursor("nonsense".to_owned()));
    assert_eq!(i32::from(bad.unwrap_err().code), -32602);
}

/// FND-R14. A session without a title is listed by its first prompt.
#[test]
fn fnd_r14_a_listed_session_has_a_title() {
    let stage = Stage::new();
    let editor = stage.editor();
    let (spoken, silent) = (editor.new_session(&stage), editor.new_session(&stage));
    editor.prompt(&spoken, "/say first\n/say more").unwrap();
    editor.prompt(&spoken, "/say second").unwrap();
    let listed = editor.request(ListSessionsRequest::new().cwd(stage.work())).unwrap();
    let titles: Vec<_> =
        listed.sessions.iter().map(|info| (&info.session_id, info.title.as_deref())).collect();
    assert_eq!(titles, [(&silent, None), (&spoken, Some("/say first /say more"))]);
}

#[test]
fn closing_a_session_only_leaves_it() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let pending = editor.send(&session, "/touch began\n/wait-file go\n/say finished");
    stage.await_file("began");
    editor.request(CloseSessionRequest::new(session.clone())).unwrap();
    assert_eq!(i32::from(pending.wait().unwrap_err().code), -32800);
    stage.touch("go");
    stage.at_rest(&session);
    assert!(stage.log(&session).iter().any(|event| event["data"]["text"] == "finished"), "it went on");
    assert!(!story(&editor.updates(&session)).contains("finished"), "and nobody looked");
    // It can be used again.
    assert_eq!(editor.prompt(&session, "/say again").unwrap().stop_reason, StopReason::EndTurn);
    assert!(story(&editor.updates(&session)).contains("again"));
}

#[test]
fn what_is_not_offered_is_refused() {
    let stage = Stage::new();
    let editor = stage.editor();
    let session = editor.new_session(&stage);
    let refused = editor.request(SetSessionModeRequest::new(session.clone(), "plan"));
    assert_eq!(i32::from(refused.unwrap_err().code), -32602);
    let missing = editor.request(NewSessionRequest::new("/no/such/folder"));
    assert_eq!(i32::from(missing.unwrap_err().code), -32602);
    // Servers of the editor are not passed on; the session is made all the same.
    let server = McpServer::Stdio(McpServerStdio::new("mine", "/bin/true"));
    let made = editor.request(NewSessionRequest::new(stage.work()).mcp_servers(vec![server])).unwrap();
    assert_eq!(editor.prompt(&made.session_id, "/say ok").unwrap().stop_reason, StopReason::EndTurn);
}
