//! JSON-RPC lines, as far as a driver needs them: what kind of message a line is, and lines to send.

use serde::Serialize;
use serde_json::{Value, json};

use crate::agents::limits::{self, LimitSign};

/// A line, sorted.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Result { id: Value, result: Value },
    Error { id: Value, message: String, limit: Option<LimitSign> },
}

/// What a line says, or what is wrong with it.
pub(super) fn parse(line: &[u8]) -> Result<Message, String> {
    let mut value: Value = serde_json::from_slice(line).map_err(|error| format!("no JSON: {error}"))?;
    let Some(object) = value.as_object_mut() else { return Err("JSON that is no object".to_owned()) };
    let id = object.remove("id").filter(|id| id.is_string() || id.is_number());
    let params = object.remove("params").unwrap_or(Value::Null);
    let method = match object.remove("method") {
        Some(Value::String(method)) => Some(method),
        Some(_) => return Err("a method that is no text".to_owned()),
        None => None,
    };
    match (id, method) {
        (Some(id), Some(method)) => Ok(Message::Request { id, method, params }),
        (None, Some(method)) => Ok(Message::Notification { method, params }),
        (Some(id), None) => match object.remove("error") {
            Some(error) => {
                let message = said(&error);
                Ok(Message::Error { id, limit: limits::in_error(&error, &message), message })
            }
            None => Ok(Message::Result { id, result: object.remove("result").unwrap_or(Value::Null) }),
        },
        (None, None) => Err("neither a call nor an answer".to_owned()),
    }
}

/// The error in its own words: the message, and what its data adds to it.
fn said(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without words");
    let more = ["details", "message", "error"].iter().find_map(|name| error["data"][name].as_str());
    match more.or_else(|| error["data"].as_str()) {
        Some(more) if more != message => format!("{message}: {more}"),
        _ => message.to_owned(),
    }
}

pub(super) fn request(id: &str, method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// Answers the request with this id, which is JSON text.
pub(super) fn result(id: &str, result: &impl Serialize) -> String {
    json!({ "jsonrpc": "2.0", "id": id_of(id), "result": result }).to_string()
}

pub(super) fn error(id: &str, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id_of(id), "error": { "code": code, "message": message } }).to_string()
}

fn id_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}
