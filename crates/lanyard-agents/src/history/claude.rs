//! Claude Code: `projects/FOLDER/SESSION.jsonl`, one JSON object per line. Seen with 2.1.328.

use lanyard_core::session::Role;
use serde_json::Value;

use super::past::{PastEvents, time, words};
use super::{HistoryHeader, sound_folder, title_of};

/// What Claude Code itself puts among the words of the user: commands of its terminal and what they printed.
const NOT_SAID: [&str; 5] =
    ["<command-name>", "<command-message>", "<local-command-", "<system-reminder>", "[Request interrupted"];

/// Takes from a line near the beginning or the end what a listing shows.
pub(super) fn head(header: &mut HistoryHeader, line: &Value) {
    if header.folder.is_none() {
        header.folder = line["cwd"].as_str().and_then(sound_folder);
    }
    if header.title.is_none() && is_main(line) && line["type"] == "user" {
        header.title = said(&line["message"]["content"]).as_deref().and_then(title_of);
    }
}

/// A title in a line near the end: the user's own, or one that Claude Code made.
pub(super) fn title(line: &Value) -> Option<String> {
    let named = |kind: &str, field: &str| {
        let text = line[field].as_str().filter(|_| line["type"] == kind);
        text.and_then(title_of)
    };
    named("custom-title", "customTitle")
        .or_else(|| named("ai-title", "aiTitle"))
        .or_else(|| named("summary", "summary"))
}

pub(super) fn line(line: &Value, out: &mut PastEvents) {
    if !is_main(line) {
        return;
    }
    let (at, message) = (time(&line["timestamp"]), &line["message"]);
    match line["type"].as_str() {
        Some("user") => {
            if let Some(text) = said(&message["content"]) {
                out.message(at, Role::User, &text, None);
            }
            for block in blocks(&message["content"], "tool_result") {
                let Some(call) = block["tool_use_id"].as_str() else { continue };
                let failed = block["is_error"].as_bool() == Some(true);
                out.returned(at, call, failed, &words(&block["content"]));
            }
        }
        Some("assistant") => {
            let id = message["id"].as_str();
            if let Some(text) = message["content"].as_str() {
                out.message(at, Role::Agent, text, id);
            }
            for block in message["content"].as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("text") => out.message(at, Role::Agent, &words(&block["text"]), id),
                    Some("thinking") => out.thought(at, &words(&block["thinking"])),
                    Some("tool_use") => {
                        let (call, tool) = (block["id"].as_str(), block["name"].as_str());
                        out.called(at, call.unwrap_or_default(), tool.unwrap_or("tool"), &block["input"]);
                    }
                    Some(_) | None => {}
                }
            }
        }
        // What the user said while the agent worked.
        Some("attachment") if line["attachment"]["type"] == "queued_command" => {
            out.message(at, Role::User, &words(&line["attachment"]["prompt"]), None);
        }
        Some(_) | None => {}
    }
}

/// Lines of subagents and what Claude Code told its model are no part of the conversation.
fn is_main(line: &Value) -> bool {
    let marked = |field: &str| line[field].as_bool() == Some(true);
    !marked("isSidechain") && !marked("isMeta") && !marked("isCompactSummary")
}

/// What the user said, without what Claude Code added.
fn said(content: &Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let said = list.iter().filter(|block| matches!(block["type"].as_str(), Some("text" | "image")));
            let said = said.filter(|block| block["text"].as_str().is_none_or(is_said));
            words(&Value::Array(said.cloned().collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    };
    Some(text).filter(|text| !text.trim().is_empty() && is_said(text))
}

fn is_said(text: &str) -> bool {
    !NOT_SAID.iter().any(|begin| text.trim_start().starts_with(begin))
}

fn blocks<'a>(content: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    content.as_array().into_iter().flatten().filter(move |block| block["type"] == kind)
}
