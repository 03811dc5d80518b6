//! What was said and done in the conversation.

use super::*;
use crate::session::event::Role;

#[test]
fn what_is_said_is_kept() {
    check(
        in_state(StateName::Executing),
        said("hello there"),
        expect![[r#"
            message role=agent text="hello there"
            executing
        "#]],
    );
}

#[test]
fn what_the_user_said_elsewhere_is_kept_as_theirs() {
    let said = Signal::Said {
        role: Role::User,
        text: "typed in the terminal".into(),
        message_id: None,
        parts: Vec::new(),
    };
    check(
        in_state(StateName::Executing),
        said,
        expect![[r#"
            message role=user text="typed in the terminal"
            executing
        "#]],
    );
}

#[test]
fn thoughts_are_kept_apart_from_speech() {
    check(
        in_state(StateName::Executing),
        Signal::Thought { text: "hm".into() },
        expect![[r#"
            thought text=hm
            executing
        "#]],
    );
}

#[test]
fn a_call_and_its_return_are_two_events() {
    let call = Signal::ToolCalled {
        call: "c1".into(),
        tool: "read".into(),
        arguments: serde_json::json!({ "path": "a.rs", "lines": [1, 20] }),
    };
    let back = Signal::ToolReturned { call: "c1".into(), is_error: true, content: "no such file".into() };
    story(
        in_state(StateName::Executing),
        [call.into(), back.into()],
        expect![[r#"
            > tool_called
            tool.called arguments={lines=[1, 20] path=a.rs} call=c1 tool=read
            executing
            > tool_returned
            tool.returned call=c1 content="no such file" is_error=true
            executing
        "#]],
    );
}

#[test]
fn usage_is_kept() {
    check(
        in_state(StateName::Executing),
        usage(100, 20, Some(5_000)),
        expect![[r#"
            usage.reported context_tokens=5000 input_tokens=100 output_tokens=20
            executing
        "#]],
    );
}

/// Work between turns is recorded and starts no turn: only an admitted turn executes (S1-10 in DESIGN's words).
#[test]
fn a_tool_call_between_turns_starts_no_turn() {
    check(
        in_state(StateName::BetweenTurn),
        tool_called("c", "read"),
        expect![[r#"
            tool.called call=c tool=read
            between_turn
        "#]],
    );
}

/// A signal is never refused, so what the record keeps of it is cut instead.
#[test]
fn names_without_measure_are_cut() {
    let long = "é".repeat(NAME_CHARS_MAX + 1);
    story(
        in_state(StateName::Executing),
        [tool_called(&long, &long), tool_returned(&long), issue_seen(&long, None), error_seen(&long)],
        expect![[r#"
            > tool_called
            tool.called call=éééééééé…(1000 characters) tool=éééééééé…(1000 characters)
            executing
            > tool_returned
            tool.returned call=éééééééé…(1000 characters) is_error=false
            executing
            > issue_seen
            context.issue_seen hash=éééééééé…(1000 characters)
            executing
            > error_seen
            context.error_seen hash=éééééééé…(1000 characters)
            executing
        "#]],
    );
}

#[test]
fn arguments_nested_too_deep_to_be_read_back_are_kept_as_text() {
    let arguments = (0..100).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    let call = Signal::ToolCalled { call: "c".into(), tool: "read".into(), arguments };
    check(
        in_state(StateName::Executing),
        call,
        expect![[r#"
            tool.called arguments=[[[[[[[[…(204 characters) call=c tool=read
            executing
        "#]],
    );
}
