//! What a tool was given and what it returned, as content an editor shows: texts and changes of files.

use agent_client_protocol_schema::v1::{Diff, ToolCallContent};
use serde_json::Value;

use crate::render::tool::{FileEdit, ResultBlock, blocks, edits};

/// Bytes of a change that is shown as one; a larger change is shown by the agent's own words.
const CHANGE_BYTES_MAX: usize = 256 << 10;

/// Changes of files that a call's arguments describe. An editor finds a file by its whole path alone.
pub(super) fn changes(arguments: &Value) -> Vec<ToolCallContent> {
    let is_shown = |edit: &FileEdit| {
        let bytes = edit.old.as_deref().map_or(0, str::len) + edit.new.len();
        edit.path.starts_with('/') && bytes <= CHANGE_BYTES_MAX
    };
    edits(arguments).into_iter().filter(is_shown).map(change).collect()
}

/// A tool's result as texts and changes; nothing where it returned nothing.
pub(super) fn answer(content: &Value) -> Vec<ToolCallContent> {
    let content = blocks(content).into_iter().map(|block| match block {
        ResultBlock::Text(text) => text.into(),
        ResultBlock::Edit(edit) => change(edit),
    });
    content.collect()
}

fn change(edit: FileEdit) -> ToolCallContent {
    Diff::new(edit.path, edit.new).old_text(edit.old).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(content: Vec<ToolCallContent>) -> Value {
        serde_json::to_value(content).unwrap()
    }

    fn text(text: &str) -> Value {
        json!({"type": "content", "content": {"type": "text", "text": text}})
    }

    /// FND-R14. What Codex's commands write reaches the editor as it is, not as JSON.
    #[test]
    fn fnd_r14_a_command_shows_what_it_wrote() {
        for (content, expected) in [
            (json!({"output": "a\nb\n", "exit_code": 0, "status": "completed"}), json!([text("a\nb\n")])),
            (json!({"output": "no\n", "exit_code": 2}), json!([text("no\n"), text("exit code 2")])),
            (json!({"output": null, "exit_code": null, "status": "declined"}), json!([text("declined")])),
            (json!({"output": "", "exit_code": 0}), json!([])),
            (
                json!([{"type": "text", "text": "one"}, {"type": "inputText", "text": "two"}]),
                json!([text("one"), text("two")]),
            ),
            (
                json!([{"type": "content", "content": {"type": "text", "text": "three"}}]),
                json!([text("three")]),
            ),
            (json!("plain"), json!([text("plain")])),
            (json!({"found": 3}), json!([text(r#"{"found":3}"#)])),
            (json!(null), json!([])),
        ] {
            assert_eq!(shown(answer(&content)), expected, "{content}");
        }
    }

    /// FND-R14. Changes of files as OpenCode and Codex describe them.
    #[test]
    fn fnd_r14_changes_of_files_are_shown_as_changes() {
        let diff = |path: &str, old: Option<&str>, new: &str| match old {
            Some(old) => json!({"type": "diff", "path": path, "oldText": old, "newText": new}),
            None => json!({"type": "diff", "path": path, "newText": new}),
        };
        let patch = "--- a\n+++ b\n@@ -1,2 +1,3 @@\n kept\n-a\n+b\n+c\n\\ No newline at end of file\n";
        for (arguments, expected) in [
            (
                json!({"changes": [
                    {"path": "/w/new.txt", "kind": {"type": "add"}, "diff": "one\ntwo\n"},
                    {"path": "/w/old.txt", "kind": {"type": "update"}, "diff": patch},
                    {"path": "/w/gone.txt", "kind": {"type": "delete"}, "diff": "x\n"},
                ]}),
                json!([
                    diff("/w/new.txt", None, "one\ntwo\n"),
                    diff("/w/old.txt", Some("kept\na\n"), "kept\nb\nc\n"),
                    diff("/w/gone.txt", Some("x\n"), ""),
                ]),
            ),
            (
                json!({"filePath": "/w/a", "oldString": "two", "newString": "three"}),
                json!([diff("/w/a", Some("two"), "three")]),
            ),
            (json!({"filePath": "/w/a", "content": "whole\n"}), json!([diff("/w/a", None, "whole\n")])),
            (json!({"filePath": "relative", "content": "x"}), json!([])),
            (json!({"path": "/w/a"}), json!([])),
            (json!({"command": "ls"}), json!([])),
            (json!(null), json!([])),
        ] {
            assert_eq!(shown(changes(&arguments)), expected, "{arguments}");
        }
    }
}
