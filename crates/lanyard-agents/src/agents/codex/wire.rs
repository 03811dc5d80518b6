//! The lines that are written to Codex.

use lanyard_core::TurnId;
use serde_json::{Map, Value, json};

use super::QUOTE_BYTES_MAX;
use crate::agents::driver::Action;
use crate::agents::given::{GivenPart, GivenPrompt};

pub(super) fn request(key: String, id: &str, method: &str, params: &Value) -> Action {
    Action::Send { key, line: json!({ "id": id, "method": method, "params": params }).to_string() }
}

pub(super) fn notice(method: &str) -> Action {
    Action::Send { key: method.to_owned(), line: json!({ "method": method }).to_string() }
}

/// Answers a request of the agent, whose id is kept as the JSON it came in: a number stays a number.
pub(super) fn reply(request: &str, body: &Value) -> Action {
    let mut line = body.clone();
    line["id"] = serde_json::from_str(request).unwrap_or_else(|_| Value::from(request));
    Action::Send { key: format!("answer:{request}"), line: line.to_string() }
}

/// `choice` holds the model, effort and policies that the turn names.
pub(super) fn prompt(
    key: String,
    turn: TurnId,
    (thread, input): (&str, &Value),
    choice: &Map<String, Value>,
) -> Action {
    let mut params = json!({ "threadId": thread, "input": input });
    for (name, value) in choice {
        params[name] = value.clone();
    }
    request(key, &turn.to_string(), "turn/start", &params)
}

pub(super) fn steer(id: &str, thread: &str, turn: &str, input: &Value) -> Action {
    let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": input });
    request(id.to_owned(), id, "turn/steer", &params)
}

pub(super) fn interrupt(turn: TurnId, thread: &str, running: &str) -> Action {
    let id = format!("cancel:{turn}");
    request(id.clone(), &id, "turn/interrupt", &json!({ "threadId": thread, "turnId": running }))
}

/// Asks which turn a thread is in.
pub(super) fn look(turn: TurnId, thread: &str) -> Action {
    let params = json!({ "threadId": thread, "limit": 1, "sortDirection": "desc", "itemsView": "notLoaded" });
    let id = format!("look:{turn}");
    request(id.clone(), &id, "thread/turns/list", &params)
}

/// What is said, in Codex' terms. Images go as the paths of their copies.
pub(in crate::agents) fn input(prompt: GivenPrompt<'_>) -> Value {
    let images = prompt.parts.iter().filter_map(GivenPart::path);
    let mut input: Vec<Value> = images.map(|path| json!({ "type": "localImage", "path": path })).collect();
    if input.is_empty() || !prompt.text.is_empty() {
        input.push(json!({ "type": "text", "text": prompt.text }));
    }
    Value::Array(input)
}

/// The beginning of a line, for the log.
pub(super) fn quote(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(..QUOTE_BYTES_MAX).unwrap_or(line)).into_owned()
}
