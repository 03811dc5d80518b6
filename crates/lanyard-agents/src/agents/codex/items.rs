//! Items of a turn as tool calls, texts and changes of files.

use lanyard_core::session::Signal;
use serde_json::{Value, json};

use crate::agents::driver::TextKind;

/// The text of an item that is one.
pub(super) fn text(item: &Value) -> Option<(TextKind, String)> {
    match item["type"].as_str()? {
        "agentMessage" | "plan" => {
            Some((TextKind::Message, item["text"].as_str().unwrap_or_default().to_owned()))
        }
        "reasoning" => {
            let parts = |of: &str| -> Vec<String> {
                let parts = item[of].as_array().map_or(&[][..], Vec::as_slice);
                parts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let summary = parts("summary");
            let parts = if summary.is_empty() { parts("content") } else { summary };
            Some((TextKind::Thought, parts.join("\n\n")))
        }
        _ => None,
    }
}

/// The tool an item is a call of, and its arguments.
pub(super) fn called(item: &Value) -> Option<(String, Value)> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    Some(match item["type"].as_str()? {
        "commandExecution" => ("shell".to_owned(), json!({ "command": item["command"], "cwd": item["cwd"] })),
        "fileChange" => ("apply_patch".to_owned(), json!({ "changes": item["changes"] })),
        "mcpToolCall" => (format!("mcp__{}__{}", text("server"), text("tool")), item["arguments"].clone()),
        "dynamicToolCall" => (text("tool").to_owned(), item["arguments"].clone()),
        "webSearch" => ("web_search".to_owned(), json!({ "query": item["query"], "action": item["action"] })),
        "imageView" => ("view_image".to_owned(), json!({ "path": item["path"] })),
        "collabAgentToolCall" => {
            let arguments = json!({ "prompt": item["prompt"], "threads": item["receiverThreadIds"] });
            (text("tool").to_owned(), arguments)
        }
        _ => return None,
    })
}

/// Whether a call failed, and what it gave.
pub(super) fn returned(item: &Value) -> (bool, Value) {
    let content = match item["type"].as_str().unwrap_or_default() {
        "commandExecution" => json!({
            "output": item["aggregatedOutput"],
            "exit_code": item["exitCode"],
            "status": item["status"],
        }),
        "mcpToolCall" if item["result"].is_null() => item["error"]["message"].clone(),
        "mcpToolCall" => item["result"]["content"].clone(),
        "dynamicToolCall" => item["contentItems"].clone(),
        "webSearch" => item["results"].clone(),
        "collabAgentToolCall" => item["agentsStates"].clone(),
        _ => item["status"].clone(),
    };
    let failed = matches!(item["status"].as_str(), Some("failed" | "declined" | "interrupted"))
        || item["success"] == false;
    (failed, content)
}

/// The files an item changed.
pub(super) fn changes(item: &Value) -> Vec<Signal> {
    if item["type"] != "fileChange" || item["status"] != "completed" {
        return Vec::new();
    }
    let changes = item["changes"].as_array().map_or(&[][..], Vec::as_slice);
    changes
        .iter()
        .filter_map(|change| {
            let kind = &change["kind"];
            let path = kind["move_path"].as_str().or_else(|| change["path"].as_str())?.to_owned();
            let diff = change["diff"].as_str().unwrap_or_default();
            let (added, removed) = match kind["type"].as_str().unwrap_or_default() {
                "add" => (diff.lines().count() as u64, 0),
                "delete" => (0, diff.lines().count() as u64),
                _ => counted(diff),
            };
            Some(Signal::FileChanged { path, added: Some(added), removed: Some(removed) })
        })
        .collect()
}

/// Lines a diff adds and removes. What stands before the first hunk names files.
fn counted(diff: &str) -> (u64, u64) {
    let hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    hunks.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
        Some(b'+') => (added + 1, removed),
        Some(b'-') => (added, removed + 1),
        _ => (added, removed),
    })
}
