//! What a tool was given and what it answered, as content an editor shows: texts and changes of files. Each agent has a
//! form of its own for both.

use agent_client_protocol_schema::v1::{Diff, ToolCallContent};
use serde_json::Value;

/// Bytes of a change that is shown as one; a larger change is shown by the agent's own words.
const CHANGE_BYTES_MAX: usize = 256 << 10;

/// Changes of files that a call's arguments describe: a list of patches (Codex), a piece of text in place of another, or
/// a whole file (OpenCode, Claude).
pub(super) fn changes(arguments: &Value) -> Vec<ToolCallContent> {
    let listed = arguments["changes"].as_array().map_or(&[][..], Vec::as_slice);
    let single = edited(arguments);
    listed.iter().filter_map(patched).chain(single).map(Into::into).collect()
}

/// `{filePath, oldString, newString}` or `{filePath, content}`.
fn edited(arguments: &Value) -> Option<Diff> {
    let text = |names: &[&str]| names.iter().find_map(|name| arguments[*name].as_str());
    let path = text(&["filePath", "file_path", "path"])?;
    let (old, new) = match (text(&["oldString", "old_string"]), text(&["newString", "new_string"])) {
        (Some(old), Some(new)) => (Some(old.to_owned()), new),
        _ => (None, text(&["content"])?),
    };
    change(path, old, new.to_owned())
}

/// `{path, kind: {type, move_path}, diff}`: the whole text where a file comes or goes, else hunks.
fn patched(listed: &Value) -> Option<Diff> {
    let kind = &listed["kind"];
    let path = kind["move_path"].as_str().or_else(|| listed["path"].as_str())?;
    let diff = listed["diff"].as_str()?;
    match kind["type"].as_str()? {
        "add" => change(path, None, diff.to_owned()),
        "delete" => change(path, Some(diff.to_owned()), String::new()),
        _ => {
            let (old, new) = sides(diff);
            change(path, Some(old), new)
        }
    }
}

/// An editor finds a file by its whole path alone.
fn change(path: &str, old: Option<String>, new: String) -> Option<Diff> {
    let small = old.as_deref().map_or(0, str::len) + new.len() <= CHANGE_BYTES_MAX;
    (path.starts_with('/') && small).then(|| Diff::new(path, new).old_text(old))
}

/// The lines of a patch's hunks before and after it.
fn sides(diff: &str) -> (String, String) {
    let (mut old, mut new) = (String::new(), String::new());
    let hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    for line in hunks.filter(|line| !line.starts_with("@@") && !line.starts_with('\\')) {
        let (mark, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        if mark != "+" {
            old.push_str(text);
            old.push('\n');
        }
        if mark != "-" {
            new.push_str(text);
            new.push('\n');
        }
    }
    (old, new)
}

/// A tool's answer as texts and changes; nothing where it answered nothing.
pub(super) fn answer(content: &Value) -> Vec<ToolCallContent> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone().into()],
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        // A command of Codex: what it wrote, and how it ended where that was badly.
        Value::Object(fields) if fields.contains_key("exit_code") => command(content),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![content.to_string().into()],
    }
}

fn command(content: &Value) -> Vec<ToolCallContent> {
    let output = content["output"].as_str().unwrap_or_default();
    let ended = match content["exit_code"].as_i64() {
        Some(0) => None,
        Some(code) => Some(format!("exit code {code}")),
        None => content["status"].as_str().filter(|status| *status != "completed").map(str::to_owned),
    };
    let output = Some(output.to_owned()).filter(|output| !output.is_empty());
    output.into_iter().chain(ended).map(Into::into).collect()
}

/// A block of MCP, of Codex or of the protocol itself.
fn block(block: &Value) -> ToolCallContent {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    if let (Some("diff"), Some(path), Some(new)) = (block["type"].as_str(), text("path"), text("newText")) {
        return Diff::new(path, new).old_text(text("oldText")).into();
    }
    let inner = || block["content"]["text"].as_str().map(str::to_owned);
    let plain = || block.as_str().map(str::to_owned);
    text("text").or_else(inner).or_else(plain).unwrap_or_else(|| block.to_string()).into()
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
