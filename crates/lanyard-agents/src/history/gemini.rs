//! Gemini CLI: `tmp/PROJECT/chats/session-TIME-ID.jsonl`, one record per line, and the single JSON document of older
//! versions. Seen with 0.61.0.
//!
//! A record with an `id` is a message and replaces an earlier one of that id; `$set` changes the document, messages
//! included; `$rewindTo` takes back everything from a message on.

use lanyard_core::session::Role;
use serde_json::Value;

use super::past::{PastEvents, time, words};
use super::{HistoryHeader, title_of};

/// What the CLI itself tells its model in the user's place.
const NOT_SAID: [&str; 3] = ["<session_context>", "<hook_context>", "This is the Gemini CLI."];

/// The messages as they stand after the records that were read.
#[derive(Debug, Default)]
pub(super) struct GeminiChat {
    messages: Vec<Value>,
}

impl GeminiChat {
    pub(super) fn record(&mut self, mut record: Value) {
        if let Some(id) = record["$rewindTo"].as_str() {
            let from = self.messages.iter().position(|message| message["id"] == *id);
            return self.messages.truncate(from.unwrap_or(0));
        }
        if let Some(Value::Array(messages)) = record.get_mut("$set").and_then(|set| set.get_mut("messages")) {
            self.messages = std::mem::take(messages);
            return;
        }
        // The document of older versions.
        if let Some(Value::Array(messages)) = record.get_mut("messages") {
            self.messages = std::mem::take(messages);
            return;
        }
        if record["id"].is_string() && record["type"].is_string() {
            let same = |message: &&mut Value| message["id"] == record["id"];
            match self.messages.iter_mut().rev().find(same) {
                Some(message) => *message = record,
                None => self.messages.push(record),
            }
        }
    }

    pub(super) fn tell(&self, out: &mut PastEvents) {
        for message in &self.messages {
            tell(message, out);
        }
    }
}

/// Takes from a record near the beginning what a listing shows. The id is in the first one only.
pub(super) fn head(header: &mut HistoryHeader, record: &Value) -> bool {
    if header.native.is_empty()
        && let Some(id) = record["sessionId"].as_str()
    {
        id.clone_into(&mut header.native);
        if record["kind"] == "subagent" {
            return false;
        }
    }
    let inner = record["$set"]["messages"].as_array().or(record["messages"].as_array());
    for message in inner.into_iter().flatten().chain([record]) {
        if header.title.is_none() && message["type"] == "user" {
            header.title = said(message).as_deref().and_then(title_of);
        }
    }
    true
}

fn tell(message: &Value, out: &mut PastEvents) {
    let (at, id) = (time(&message["timestamp"]), message["id"].as_str());
    match message["type"].as_str() {
        Some("user") => {
            if let Some(text) = said(message) {
                out.message(at, Role::User, &text, None);
            }
        }
        Some("gemini") => {
            for thought in message["thoughts"].as_array().into_iter().flatten() {
                let subject = thought["subject"].as_str().unwrap_or_default();
                let text = thought["description"].as_str().unwrap_or_default();
                out.thought(at, format!("{subject}\n{text}").trim());
            }
            out.message(at, Role::Agent, &words(&message["content"]), id);
            for call in message["toolCalls"].as_array().into_iter().flatten() {
                tool(call, out);
            }
        }
        Some(_) | None => {}
    }
}

fn tool(call: &Value, out: &mut PastEvents) {
    let (at, id) = (time(&call["timestamp"]), call["id"].as_str().unwrap_or_default());
    out.called(at, id, call["name"].as_str().unwrap_or("tool"), &call["args"]);
    let shown = words(&call["resultDisplay"]);
    let output = &call["result"][0]["functionResponse"]["response"]["output"];
    let text = if shown.is_empty() { words(output) } else { shown };
    let failed = matches!(call["status"].as_str(), Some("error" | "cancelled"));
    if call["status"].is_string() {
        out.returned(at, id, failed, &text);
    }
}

fn said(message: &Value) -> Option<String> {
    let text = words(&message["content"]);
    let added = NOT_SAID.iter().any(|begin| text.trim_start().starts_with(begin));
    Some(text).filter(|text| !added && !text.trim().is_empty())
}
