//! What of an event is searched: the words of people and agents, calls of tools and their results. Thoughts, numbers and
//! the states of a session are not.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::Role;
use crate::text::without_escapes;

/// The longest text of one document, in bytes. Of a longer event the beginning and the end are searched.
pub const DOCUMENT_BYTES_MAX: usize = 32 * 1024;
/// The part of it that the end of a longer text gets: errors stand there.
const END_BYTES: usize = 8 * 1024;
/// A text without a space of this length is encoded data.
const DATA_BYTES_MIN: usize = 2_048;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// Words of a person or an agent.
    Message,
    /// A call of a tool: its name and its arguments.
    Tool,
    /// The result of a call.
    Result,
}

impl SearchKind {
    pub const ALL: [Self; 3] = [Self::Message, Self::Tool, Self::Result];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Tool => "tool",
            Self::Result => "result",
        }
    }
}

/// The searched part of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchDocument {
    pub kind: SearchKind,
    /// Neighbouring events with the same one are pieces of one message.
    pub joins: Option<String>,
    pub text: String,
}

/// As much of the wire event as decides whether it is searched.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SaidText {
    role: Role,
    text: String,
    #[serde(default)]
    message_id: Option<String>,
}

#[derive(Deserialize)]
struct Prompted {
    #[serde(default)]
    prompt: Option<String>,
    /// It was a message that waited, and was searched as such.
    #[serde(default)]
    queued: bool,
}

#[derive(Deserialize)]
struct CalledTool {
    tool: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct ReturnedTool {
    #[serde(default)]
    content: Value,
}

/// The searched part of an event, from its stored form. `None` where it has none.
#[must_use]
pub fn document(event: &[u8]) -> Option<SearchDocument> {
    let wire: Wire<'_> = serde_json::from_slice(event).ok()?;
    let data = wire.data?.get();
    let (kind, joins, text) = match &*wire.kind {
        "message" => {
            let said: SaidText = serde_json::from_str(data).ok()?;
            let joins = format!("{:?}:{}", said.role, said.message_id.unwrap_or_default());
            (SearchKind::Message, Some(joins), said.text)
        }
        "turn.started" | "turn.queued" | "turn.edited" => {
            let prompted: Prompted = serde_json::from_str(data).ok()?;
            (SearchKind::Message, None, prompted.prompt.filter(|_| !prompted.queued)?)
        }
        "tool.called" => {
            let called: CalledTool = serde_json::from_str(data).ok()?;
            let mut text = called.tool;
            gather(&called.arguments, &mut text);
            (SearchKind::Tool, None, text)
        }
        "tool.returned" => {
            let returned: ReturnedTool = serde_json::from_str(data).ok()?;
            let mut text = String::new();
            gather(&returned.content, &mut text);
            (SearchKind::Result, None, text)
        }
        _ => return None,
    };
    let text = bounded(plain(text));
    (!text.is_empty()).then_some(SearchDocument { kind, joins, text })
}

/// All texts and numbers of a value, each on a line.
fn gather(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => line(text, &number.to_string()),
        Value::String(words) if is_data(words) => {}
        Value::String(words) => line(text, words),
        Value::Array(items) => items.iter().for_each(|item| gather(item, text)),
        Value::Object(fields) => {
            // The kind of a block of content says nothing of what is in it.
            for (_, field) in fields.iter().filter(|(name, _)| *name != "type") {
                gather(field, text);
            }
        }
    }
}

fn line(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(words);
}

/// Pictures and the like.
fn is_data(text: &str) -> bool {
    text.len() >= DATA_BYTES_MIN && !text.bytes().take(DATA_BYTES_MIN).any(|byte| byte.is_ascii_whitespace())
}

fn plain(text: String) -> String {
    if text.contains('\u{1b}') { without_escapes(&text) } else { text }
}

/// The text, or its beginning and its end.
fn bounded(text: String) -> String {
    if text.len() <= DOCUMENT_BYTES_MAX {
        return text;
    }
    let head = text.floor_char_boundary(DOCUMENT_BYTES_MAX - END_BYTES - 8);
    let tail = text.ceil_char_boundary(text.len() - END_BYTES);
    format!("{}\n…\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, data: &Value) -> Option<(SearchKind, Option<String>, String)> {
        let event = json!({ "seq": 1, "session": "sess_1", "at": "2026-11-15T08:00:00Z", "actor": {}, "type": kind, "data": data });
        document(event.to_string().as_bytes()).map(|document| (document.kind, document.joins, document.text))
    }

    #[test]
    fn what_is_searched_of_each_event() {
        let said = json!({ "role": "agent", "text": "done", "message_id": "m1" });
        assert_eq!(of("message", &said), Some((SearchKind::Message, Some("Agent:m1".into()), "done".into())));
        let prompt = json!({ "turn": "t", "prompt": "fix it", "prompt_hash": "x", "opening": "new" });
        assert_eq!(of("turn.started", &prompt), Some((SearchKind::Message, None, "fix it".into())));
        let mut queued = prompt.clone();
        queued["queued"] = true.into();
        assert_eq!(of("turn.started", &queued), None);
        assert_eq!(of("turn.queued", &prompt).map(|found| found.2), Some("fix it".into()));
        assert_eq!(of("turn.edited", &json!({ "turn": "t", "delivery": "steer" })), None);
        let call = json!({ "call": "c", "tool": "bash", "arguments": { "command": "npm test", "timeout": 9, "env": ["A"] } });
        let (kind, _, text) = of("tool.called", &call).unwrap();
        assert_eq!((kind, text.lines().next()), (SearchKind::Tool, Some("bash")));
        assert!(["npm test", "9", "A"].iter().all(|part| text.lines().any(|line| line == *part)), "{text}");
        let result = json!({ "call": "c", "is_error": true, "content": [{ "type": "text", "text": "\u{1b}[31m3 failed\u{1b}[0m" }] });
        assert_eq!(of("tool.returned", &result), Some((SearchKind::Result, None, "3 failed".into())));
        let picture = json!({ "call": "c", "is_error": false, "content": [{ "type": "image", "data": "A".repeat(5_000) }] });
        assert_eq!(of("tool.returned", &picture), None);
    }

    #[test]
    fn the_rest_is_not() {
        assert_eq!(of("thought", &json!({ "text": "hm" })), None);
        assert_eq!(of("session.ended", &json!({ "how": "completed" })), None);
        assert_eq!(of("message", &json!({ "role": "agent", "text": "" })), None);
        assert_eq!(of("message", &json!(["damaged"])), None);
        assert_eq!(document(b"not json"), None);
    }

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_are_searched() {
        let text = format!("first {} last", "é and more ".repeat(20_000));
        let (_, _, kept) = of("message", &json!({ "role": "agent", "text": text })).unwrap();
        assert!(kept.len() <= DOCUMENT_BYTES_MAX, "{}", kept.len());
        assert!(kept.starts_with("first ") && kept.ends_with(" last"));
    }
}
