//! Codex: `sessions/YEAR/MONTH/DAY/rollout-TIME-SESSION.jsonl`, one JSON object per line. Seen with 0.169.0.

use lanyard_core::session::Role;
use serde_json::Value;

use super::past::{PastEvents, time, words};
use super::{HistoryHeader, sound_folder, title_of};

/// Takes from a line near the beginning what a listing shows. False for the file of a subagent.
pub(super) fn head(header: &mut HistoryHeader, line: &Value) -> bool {
    let payload = &line["payload"];
    if line["type"] == "session_meta" && header.folder.is_none() {
        header.folder = payload["cwd"].as_str().and_then(sound_folder);
        let of_agent = payload["thread_source"] == "subagent" || payload["source"].get("subagent").is_some();
        return !of_agent;
    }
    if header.title.is_none() {
        header.title = prompt(line).as_deref().and_then(title_of);
    }
    true
}

pub(super) fn line(line: &Value, out: &mut PastEvents) {
    let (at, payload) = (time(&line["timestamp"]), &line["payload"]);
    if let Some(text) = prompt(line) {
        return out.message(at, Role::User, &text, None);
    }
    if line["type"] != "response_item" {
        return;
    }
    let call = payload["call_id"].as_str().or(payload["id"].as_str()).unwrap_or_default();
    match payload["type"].as_str() {
        // Words of the user in here are mixed with what Codex adds; `prompt` has them plain.
        Some("message") if payload["role"] == "assistant" => {
            out.message(at, Role::Agent, &words(&payload["content"]), payload["id"].as_str());
        }
        Some("reasoning") => out.thought(at, &words(&payload["summary"])),
        Some("function_call") => {
            let text = payload["arguments"].as_str().unwrap_or_default();
            let arguments = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            out.called(at, call, payload["name"].as_str().unwrap_or("tool"), &arguments);
        }
        Some("custom_tool_call") => {
            out.called(at, call, payload["name"].as_str().unwrap_or("tool"), &payload["input"]);
        }
        Some("local_shell_call") => out.called(at, call, "shell", &payload["action"]),
        Some("function_call_output" | "custom_tool_call_output") => {
            let output = &payload["output"];
            let text = if output.is_object() { &output["content"] } else { output };
            out.returned(at, call, output["success"].as_bool() == Some(false), &words(text));
        }
        Some(_) | None => {}
    }
}

/// What the user said, in the form of newer and of older versions.
fn prompt(line: &Value) -> Option<String> {
    let payload = &line["payload"];
    if line["type"] != "event_msg" {
        return None;
    }
    match payload["type"].as_str() {
        Some("user_message") => payload["message"].as_str().map(str::to_owned),
        Some("item_completed") if payload["item"]["type"] == "UserMessage" => {
            Some(words(&payload["item"]["content"]))
        }
        Some(_) | None => None,
    }
}

/// The session's id at the end of a file's name: `rollout-2026-11-19T14-21-23-ID`.
pub(super) fn native(stem: &str) -> Option<&str> {
    const STAMP: usize = "2026-11-19T14-21-23-".len();
    stem.strip_prefix("rollout-")?.get(STAMP..)
}
