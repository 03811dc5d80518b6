//! Updates made from events, written as the log writes them.

use serde_json::json;

use super::*;

fn event(seq: u64, kind: &str, data: &Value) -> Envelope {
    let session = lanyard_core::SessionId::from_u128(7);
    serde_json::from_value(json!({
        "seq": seq, "session": session, "at": "2026-11-15T10:00:00.000Z",
        "actor": {"kind": "agent", "name": "a"}, "type": kind, "data": data,
    }))
    .unwrap()
}

fn said(seq: u64, text: &str) -> Envelope {
    event(seq, "message", &json!({"role": "agent", "text": text}))
}

fn started(seq: u64, client: &str) -> Envelope {
    let turn = lanyard_core::TurnId::from_u128(9);
    event(
        seq,
        "turn.started",
        &json!({"turn": turn, "client_turn_id": client, "prompt": "go", "prompt_hash": "x", "opening": {"kind": "new"}}),
    )
}

/// The text and the id of a chunk.
fn text(update: Option<SessionUpdate>) -> (String, String) {
    let value = serde_json::to_value(update).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (word(&value["content"]["text"]), word(&value["messageId"]))
}

fn words(told: &[&str], id: &str) -> Vec<(String, String)> {
    told.iter().map(|told| ((*told).to_owned(), id.to_owned())).collect()
}

#[test]
fn text_grows_and_its_event_brings_only_what_is_missing() {
    let mut teller = Teller::new("acp-1");
    teller.tell(&started(3, "acp-1-x"), Telling::Live);
    let told = [
        teller.preview(&TextPart::new(Kind::Message, None), "Hel"),
        teller.preview(&TextPart::new(Kind::Message, None), "Hello wo"),
        teller.tell(&said(4, "Hello world"), Telling::Live),
        teller.preview(&TextPart::new(Kind::Message, None), ", again"),
        teller.tell(&said(5, ", again"), Telling::Live),
    ];
    let told: Vec<_> = told.into_iter().map(text).collect();
    let mut expected = words(&["Hel", "lo wo", "rld", ", again"], "message_3");
    expected.push(Default::default());
    assert_eq!(told, expected);
}

/// FND-N8: in an editor, live and played back.
#[test]
fn fnd_n8_a_second_message_has_an_id_of_its_own_and_stands_apart() {
    let part = |id| TextPart::new(Kind::Message, Some(id));
    let said = |seq, id: &str, text: &str| {
        event(seq, "message", &json!({"role": "agent", "text": text, "message_id": id}))
    };
    let mut live = Teller::new("acp-1");
    live.tell(&started(3, "acp-1-x"), Telling::Live);
    let told = [
        live.preview(&part("m1"), "One"),
        live.tell(&said(4, "m1", "One."), Telling::Live),
        live.preview(&part("m2"), "Two"),
        live.tell(&said(5, "m2", "Two."), Telling::Live),
    ];
    let told: Vec<_> = told.into_iter().map(text).collect();
    let mut expected = words(&["One", "."], "message_3");
    expected.extend(words(&["\n\nTwo", "."], "message_4"));
    assert_eq!(told, expected);
    let mut back = Teller::new("acp-1");
    back.tell(&started(3, "acp-1-x"), Telling::PlayedBack);
    let told = [said(4, "m1", "One."), said(5, "m2", "Two.")]
        .map(|event| text(back.tell(&event, Telling::PlayedBack)));
    assert_eq!(
        told,
        [("One.".to_owned(), "message_3".to_owned()), ("\n\nTwo.".to_owned(), "message_4".to_owned())]
    );
}

#[test]
fn played_back_it_is_the_same_text_under_the_same_id() {
    let mut teller = Teller::new("acp-1");
    let prompt = teller.tell(&started(3, "acp-1-x"), Telling::PlayedBack);
    assert_eq!(text(prompt).0, "go");
    assert_eq!(text(teller.tell(&said(4, "Hello"), Telling::PlayedBack)).1, "message_3");
    assert_eq!(text(teller.tell(&said(5, " world"), Telling::PlayedBack)).1, "message_3");
    let thought = event(6, "thought", &json!({"text": "hm"}));
    assert_eq!(text(teller.tell(&thought, Telling::PlayedBack)).1, "thought_5");
    assert_eq!(text(teller.tell(&said(7, "so"), Telling::PlayedBack)).1, "message_6");
}

#[test]
fn a_text_cut_differently_after_a_restart_is_neither_lost_nor_doubled() {
    let mut teller = Teller::new("acp-1");
    let told = [
        teller.preview(&TextPart::new(Kind::Message, None), "abcd"),
        teller.tell(&said(4, "ab"), Telling::Live),
        teller.preview(&TextPart::new(Kind::Message, None), "cde"),
        teller.tell(&said(5, "cdef"), Telling::Live),
    ];
    let told: String = told.into_iter().map(|update| text(update).0).collect();
    assert_eq!(told, "abcdef");
}

#[test]
fn a_preview_that_is_ahead_of_its_turn_waits() {
    let mut teller = Teller::new("acp-1");
    assert_eq!(text(teller.preview(&TextPart::new(Kind::Message, None), "one ")).0, "one ");
    assert_eq!(
        teller.preview(&TextPart::new(Kind::Message, None), "thr"),
        None,
        "of the event after the next"
    );
    assert_eq!(text(teller.tell(&said(2, "one two "), Telling::Live)).0, "two ");
    assert_eq!(text(teller.preview(&TextPart::new(Kind::Message, None), "three")).0, "three");
    assert_eq!(teller.tell(&said(3, "three"), Telling::Live), None);
}

#[test]
fn prompts_of_others_are_told_and_own_ones_are_not() {
    let mut teller = Teller::new("acp-1-");
    assert_eq!(teller.tell(&started(2, "acp-1-7"), Telling::Live), None);
    assert_eq!(text(teller.tell(&started(3, "acp-2-7"), Telling::Live)).0, "go");
}

#[test]
fn a_tool_call_has_a_title_a_kind_and_its_file() {
    let called =
        event(2, "tool.called", &json!({"call": "c1", "tool": "fs_read", "arguments": {"path": "/w/a.rs"}}));
    let update = serde_json::to_value(Teller::default().tell(&called, Telling::Live)).unwrap();
    assert_eq!(
        update,
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "fs_read: /w/a.rs", "name": "fs_read",
            "kind": "read", "status": "in_progress", "locations": [{"path": "/w/a.rs"}], "rawInput": {"path": "/w/a.rs"},
        })
    );
    let back = event(3, "tool.returned", &json!({"call": "c1", "is_error": true, "content": "no such file"}));
    let update = serde_json::to_value(Teller::default().tell(&back, Telling::Live)).unwrap();
    assert_eq!(
        update,
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}],
        })
    );
    let change = json!({"type": "diff", "path": "/w/a.rs", "line": 3, "oldText": "a\n", "newText": "b\n"});
    let content = json!([{"type": "text", "text": "written"}, change]);
    let back = event(4, "tool.returned", &json!({"call": "c2", "is_error": false, "content": content}));
    let update = serde_json::to_value(Teller::default().tell(&back, Telling::Live)).unwrap();
    assert_eq!(
        update["content"],
        json!([
            {"type": "content", "content": {"type": "text", "text": "written"}},
            {"type": "diff", "path": "/w/a.rs", "oldText": "a\n", "newText": "b\n"},
        ])
    );
    assert_eq!(kind_of("mcp__shell__exec"), ToolKind::Execute);
    assert_eq!(kind_of("thread"), ToolKind::Other);
}
