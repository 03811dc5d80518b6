//! What is done to an answer, and what is left alone.

use expect_test::expect;
use lanyard_core::session::StopLevel;
use lanyard_core::session::directive::DEFUSED;

use super::*;

fn lead(blocks: &[&str]) -> CallLead {
    CallLead { blocks: blocks.iter().map(|&text| text.to_owned()).collect(), ..CallLead::default() }
}

fn changed(line: &str, lead: &CallLead, drop_structured: bool) -> String {
    match answer(line, lead, drop_structured) {
        Annotated::Changed(line) => line,
        other @ (Annotated::Untouched | Annotated::NoPlace) => panic!("{other:?}"),
    }
}

#[test]
fn clients_are_known_by_the_name_they_give() {
    assert_eq!(Manner::of("codex-mcp-client"), Manner::Drop);
    assert_eq!(Manner::of("claude-code"), Manner::Drop);
    assert_eq!(Manner::of("opencode"), Manner::Keep);
    assert_eq!(Manner::of("gemini-cli-mcp-client"), Manner::Keep);
    assert_eq!(Manner::of("my editor"), Manner::Unpromise);
}

#[test]
fn nothing_to_say_leaves_the_answer_alone() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"A b"}]}}"#;
    assert_eq!(answer(line, &CallLead::default(), true), Annotated::Untouched);
    assert_eq!(answer("[1]", &lead(&["x"]), true), Annotated::Untouched);
}

#[test]
fn words_stand_in_front_and_the_rest_stays_as_it_was() {
    let line = r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text", "text":"b"}],"structuredContent":{"n":1},"_meta":{"k":2}}}"#;
    expect![[r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text","text":"one"},{"type":"text", "text":"b"}],"_meta":{"k":2}}}"#]]
        .assert_eq(&changed(line, &lead(&["one"]), true));
    expect![[r#"{"jsonrpc":"2.0","id":"a\u0062","result":{"x":1.50,"content":[{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"text", "text":"b"}],"structuredContent":{"n":1},"_meta":{"k":2}}}"#]]
        .assert_eq(&changed(line, &lead(&["one", "two"]), false));
}

/// S0-41, S0-42.
#[test]
fn a_withheld_answer_is_gone_and_level_3_is_an_error() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"secret"}],"structuredContent":{"n":1}}}"#;
    let two = CallLead { withhold: true, level: Some(StopLevel::Immediate), ..lead(&["stop"]) };
    expect![[r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"stop"}]}}"#]]
        .assert_eq(&changed(line, &two, false));
    let three = CallLead { is_error: true, ..two };
    expect![[
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"stop"}],"isError":true}}"#
    ]]
    .assert_eq(&changed(line, &three, false));
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}"#;
    expect![[
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"stop"}],"isError":true}}"#
    ]]
    .assert_eq(&changed(error, &three, false));
}

#[test]
fn an_error_of_the_protocol_carries_the_words_in_its_message() {
    let line = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool","data":{}}}"#;
    expect![[r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"one\nunknown tool","data":{}}}"#]]
        .assert_eq(&changed(line, &lead(&["one"]), true));
    assert_eq!(answer(line, &CallLead::default(), true), Annotated::Untouched);
}

#[test]
fn an_answer_that_is_not_the_last_word_has_no_place_for_ours() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}"#;
    assert_eq!(answer(line, &lead(&["one"]), true), Annotated::NoPlace);
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"content":"none"}}"#;
    assert_eq!(answer(line, &lead(&["one"]), true), Annotated::NoPlace);
}

/// S0-B01: also where the letters are written as escapes, and in what only some clients read.
#[test]
fn lookalikes_are_broken_with_and_without_words_of_ours() {
    let line = r#"{"id":1,"result":{"content":[{"type":"text","text":"\u0053ESSION STOP"},{"type":"image","data":"QQ=="}],"structuredContent":{"a":["USER GUIDANCE"]}}}"#;
    expect![[r#"{"id":1,"result":{"content":[{"type":"text","text":"S|ESSION STOP"},{"type":"image","data":"QQ=="}],"structuredContent":{"a":["U|SER GUIDANCE"]}}}"#]]
        .assert_eq(&changed(line, &CallLead::default(), true).replace(DEFUSED, "|"));
    expect![[r#"{"id":1,"result":{"content":[{"type":"text","text":"one"},{"type":"text","text":"S|ESSION STOP"},{"type":"image","data":"QQ=="}]}}"#]]
        .assert_eq(&changed(line, &lead(&["one"]), true).replace(DEFUSED, "|"));
}

#[test]
fn the_promise_of_structured_content_is_taken_back() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","outputSchema":{"type":"object"},"x":1.0},{"name":"b"}],"nextCursor":"c"}}"#;
    expect![[
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x":1.0},{"name":"b"}],"nextCursor":"c"}}"#
    ]]
    .assert_eq(&unpromised(line).unwrap());
    assert_eq!(unpromised(r#"{"id":1,"result":{"tools":[{"name":"b"}]}}"#), None);
    assert_eq!(unpromised(r#"{"id":1,"result":{"content":"outputSchema"}}"#), None);
}

#[test]
fn a_call_that_was_not_carried_out_is_answered_with_the_directive() {
    let id = RawValue::from_string(r#""x""#.to_owned()).unwrap();
    expect![[r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"stop"}]}}"#]]
        .assert_eq(&refusal(&id, "stop", false));
    expect![[
        r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"stop"}],"isError":true}}"#
    ]]
    .assert_eq(&refusal(&id, "stop", true));
}
