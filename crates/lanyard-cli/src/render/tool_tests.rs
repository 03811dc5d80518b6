//! Tool calls of several agents, as they are read.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn used(arguments: &Value, is_error: bool, content: &Value) -> ToolUse {
    let called = ToolUse::called("1", Timestamp::from_millis(0), "bash", arguments);
    ToolUse { returned: Some(ToolReturn::read("1", is_error, content)), ..called }
}

fn check(tool: &ToolUse, expected: &Expect) {
    let rows = tool.details(OpenedPart::Everything).into_iter().map(|row| match row {
        DetailRow::Label(text) => format!("[{text}]\n"),
        DetailRow::Plain(text) | DetailRow::Added(text) | DetailRow::Removed(text) => format!("{text}\n"),
    });
    expected.assert_eq(&format!("{}\n{}", tool.line(), rows.collect::<String>()));
}

#[test]
fn a_call_and_its_result_are_one_line_and_the_rest_is_behind_it() {
    let command = json!({"command": "cargo test\n-q"});
    check(
        &used(&command, false, &json!([{"type": "text", "text": "one\ntwo\n"}])),
        &expect![[r"
            bash cargo test -q: ok, 2 lines
            [input]
            cargo test
            -q
            [output]
            one
            two
        "]],
    );
    check(
        &used(&json!({"command": "ls"}), true, &json!([{"content": {"text": "no\nfile \u{1b}[31m"}}])),
        &expect![[r"
            bash ls: failed, no file �[31m
            [output]
            no
            file �[31m
        "]],
    );
    check(
        &used(&json!({"for": 1}), false, &json!(null)),
        &expect![[r#"
            bash {"for":1}: ok
            [input]
            {
              "for": 1
            }
        "#]],
    );
    let open = ToolUse::called("1", Timestamp::from_millis(0), "wait", &json!({}));
    check(
        &open,
        &expect![[r"
        wait: no result
    "]],
    );
}

#[test]
fn a_change_of_a_file_is_a_diff_and_stands_for_the_input() {
    let edit = json!({"filePath": "src/a.rs", "oldString": "one\ntwo", "newString": "one\n2"});
    check(
        &used(&edit, false, &json!("done")),
        &expect![[r"
            bash src/a.rs: ok
            [src/a.rs]
              one
            - two
            + 2
            [output]
            done
        "]],
    );
    // What was refused changed nothing.
    let refused = used(&edit, true, &json!("no"));
    assert_eq!(refused.changes(), []);
    // What the agent did counts more than what it was asked for.
    let told = json!([{"type": "diff", "path": "b.rs", "newText": "x\n"}]);
    assert_eq!(used(&edit, false, &told).changes()[0].path, "b.rs");
}

#[test]
fn the_arguments_that_say_most_are_the_title() {
    for (arguments, title) in [
        (json!({"command": ["git", "status"]}), "bash git status"),
        (json!({"path": "/w", "pattern": "TODO"}), "bash TODO"),
        (json!({"file_path": "/w/a"}), "bash /w/a"),
        (json!({}), "bash"),
        (json!(null), "bash"),
        (json!({"n": 1}), r#"bash {"n":1}"#),
    ] {
        assert_eq!(used(&arguments, false, &json!(null)).title, title, "{arguments}");
    }
}

#[test]
fn a_request_is_its_input_or_its_diff_and_not_the_protocols_envelope() {
    let rows = |detail: &Value| request(detail).len();
    assert_eq!(rows(&json!(null)), 0);
    assert_eq!(rows(&json!({"toolCallId": "1", "title": "Run it?"})), 0);
    assert_eq!(
        request(&json!({"toolCallId": "1", "rawInput": {"command": "ls"}})),
        [DetailRow::Plain("ls".to_owned())]
    );
    let diff = json!({"toolCallId": "1", "content": [{"type": "diff", "path": "a", "newText": "x"}]});
    assert_eq!(request(&diff), [DetailRow::Label("a".to_owned()), DetailRow::Added("+ x".to_owned())]);
    assert_eq!(request(&json!({"command": "ls"})), [DetailRow::Plain("ls".to_owned())]);
}
