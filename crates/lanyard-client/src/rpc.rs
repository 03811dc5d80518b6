//! JSON-RPC 2.0 messages in lines: read strictly by a program that answers them, or only as far as a relay needs.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a line turned out to be.
#[derive(Debug, PartialEq)]
pub enum RpcMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// To a request with this id.
    Answer {
        id: Value,
        answer: Result<Value, Value>,
    },
    /// To be answered with an error, under the id that could be read, else null.
    Malformed {
        id: Value,
        fault: RpcFault,
    },
}

/// Why a line is no message.
#[derive(Debug, PartialEq, Eq)]
pub enum RpcFault {
    /// No JSON, and why.
    NoJson(String),
    /// JSON, and what of it is wrong.
    NoMessage(&'static str),
}

/// A message as one line.
#[must_use]
pub fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// An answer with this result, assembled as text, so that the id stays as it was written.
#[must_use]
pub fn answer_text(id: &RawValue, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get())
}

/// Understands a line.
#[must_use]
pub fn understand(line: &[u8]) -> RpcMessage {
    let malformed =
        |id: Value, what: &'static str| RpcMessage::Malformed { id, fault: RpcFault::NoMessage(what) };
    let message = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return malformed(Value::Null, "a message is one JSON object; batches are not taken"),
        Err(error) => {
            return RpcMessage::Malformed { id: Value::Null, fault: RpcFault::NoJson(error.to_string()) };
        }
    };
    let id = message.get("id").cloned();
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return malformed(Value::Null, "an id is a string or a whole number");
    }
    let at_fault = id.clone().unwrap_or(Value::Null);
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return malformed(at_fault, "`jsonrpc` must be \"2.0\"");
    }
    let params = message.get("params").cloned().unwrap_or_default();
    match (message.get("method"), id) {
        (Some(Value::String(method)), None) => RpcMessage::Notification { method: method.clone(), params },
        (Some(Value::String(method)), Some(id)) => RpcMessage::Request { id, method: method.clone(), params },
        (Some(_), _) => malformed(at_fault, "`method` must be a string"),
        (None, Some(id)) => match answer(&message) {
            Some(answer) => RpcMessage::Answer { id, answer },
            None => malformed(at_fault, "there is neither a method nor a result"),
        },
        (None, None) => malformed(at_fault, "there is neither a method nor an id"),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_null() || id.is_string() || id.is_i64()
}

fn answer(message: &Map<String, Value>) -> Option<Result<Value, Value>> {
    if let Some(error) = message.get("error") {
        return Some(Err(error.clone()));
    }
    message.get("result").map(|result| Ok(result.clone()))
}

/// What a relay reads of a message: its id and its name. The rest is for the two ends.
#[derive(Debug, Deserialize)]
pub struct RpcEnvelope<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
}

impl<'a> RpcEnvelope<'a> {
    /// Nothing for what is not one message: a relay passes such a line as it is. A list would be taken as the fields in
    /// order.
    #[must_use]
    pub fn read(line: &'a [u8]) -> Option<Self> {
        if line.trim_ascii_start().first() == Some(&b'[') {
            return None;
        }
        serde_json::from_slice(line).ok()
    }

    /// The parameters, as far as `T` names them.
    #[must_use]
    pub fn params<T: Deserialize<'a> + Default>(&self) -> T {
        self.params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let (id, method) = (json!("a"), "m".to_owned());
        let request = understand(br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{}}"#);
        assert_eq!(request, RpcMessage::Request { id, method, params: json!({}) });
        let notification = understand(b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\r\n");
        assert_eq!(notification, RpcMessage::Notification { method: "n".to_owned(), params: Value::Null });
        let answer = understand(br#"{"jsonrpc":"2.0","id":3,"result":null}"#);
        assert_eq!(answer, RpcMessage::Answer { id: json!(3), answer: Ok(Value::Null) });
        let error = understand(br#"{"jsonrpc":"2.0","id":4,"error":{"code":-1}}"#);
        assert_eq!(error, RpcMessage::Answer { id: json!(4), answer: Err(json!({"code": -1})) });
    }

    #[test]
    fn nonsense_has_the_id_that_could_be_read() {
        let lines: [(&str, Value, bool); 9] = [
            ("{nonsense", Value::Null, true),
            ("[]", Value::Null, false),
            ("7", Value::Null, false),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, Value::Null, false),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, Value::Null, false),
            (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, json!(1), false),
            (r#"{"jsonrpc":"2.0","id":2,"method":7}"#, json!(2), false),
            (r#"{"jsonrpc":"2.0","id":3}"#, json!(3), false),
            (r#"{"jsonrpc":"2.0"}"#, Value::Null, false),
        ];
        for (line, expected, is_no_json) in lines {
            let RpcMessage::Malformed { id, fault } = understand(line.as_bytes()) else {
                panic!("{line} is no message")
            };
            assert_eq!((id, matches!(fault, RpcFault::NoJson(_))), (expected, is_no_json), "{line}");
        }
        let not_utf8 = understand(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}");
        assert!(matches!(not_utf8, RpcMessage::Malformed { fault: RpcFault::NoJson(_), .. }));
    }

    #[test]
    fn a_relay_reads_one_message_and_no_list() {
        let message = RpcEnvelope::read(br#"{"id":1,"method":"x"}"#).unwrap();
        assert_eq!((message.id.map(RawValue::get), message.method.as_deref()), (Some("1"), Some("x")));
        assert!(RpcEnvelope::read(b"[1]").is_none());
        assert!(RpcEnvelope::read(br#"[1,"tools/call"]"#).is_none());
    }
}
