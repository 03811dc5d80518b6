//! A page of a session's log for an assistant: short lines of what was said and done, bounded in size.

use lanyard_core::session::{PromptPart, with_labels};
use serde_json::{Value, json};

use crate::render::event;
use crate::render::text::one_line;

/// Bytes of one page. An assistant's context is small, and the next page is one call away.
const PAGE_BYTES_MAX: usize = 48 * 1024;
/// Bytes of one text in it.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The events as they fit into a page, and the position after which the next one begins.
pub(super) fn page(events: &[Value], head: u64) -> Value {
    let (mut items, mut bytes, mut last) = (Vec::new(), 0, None);
    for raw in events {
        let item = told(raw);
        bytes += item.to_string().len();
        if bytes > PAGE_BYTES_MAX && !items.is_empty() {
            break;
        }
        items.push(item);
        last = raw["seq"].as_u64();
    }
    let next = last.filter(|last| *last < head);
    json!({ "events": items, "next_after": next, "head": head })
}

fn told(raw: &Value) -> Value {
    let (kind, data) = (raw["type"].as_str().unwrap_or_default(), &raw["data"]);
    let text = match kind {
        "message" | "thought" => bounded(&with_parts(&data["text"], &data["parts"])),
        "turn.started" => bounded(&with_parts(&data["prompt"], &data["parts"])),
        "tool.called" => {
            bounded(&format!("{} {}", data["tool"].as_str().unwrap_or_default(), data["arguments"]))
        }
        "tool.returned" => bounded(&content(&data["content"])),
        _ => one_line(
            event::line(raw, Some(400)).split_whitespace().skip(3).collect::<Vec<_>>().join(" ").as_str(),
        ),
    };
    let mut item = json!({ "seq": raw["seq"], "at": raw["at"], "type": kind, "text": text });
    for (name, value) in [("role", &data["role"]), ("call", &data["call"]), ("is_error", &data["is_error"])] {
        if !value.is_null() {
            item[name] = value.clone();
        }
    }
    item
}

/// A text with what is attached to it.
fn with_parts(text: &Value, parts: &Value) -> String {
    let parts: Vec<PromptPart> = serde_json::from_value(parts.clone()).unwrap_or_default();
    with_labels(text.as_str().unwrap_or_default(), &parts)
}

/// The words of a tool's result.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let words = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => block.to_string(),
            });
            words.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

fn bounded(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} [{} more bytes; `lanyard log` has them]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u64, text: &str) -> Value {
        json!({ "seq": seq, "session": "s", "at": "2026-11-19T14:21:22.470Z", "type": "message",
            "actor": { "kind": "agent", "name": "a" }, "data": { "role": "agent", "text": text } })
    }

    #[test]
    fn a_page_ends_where_it_is_long_and_says_where_the_next_begins() {
        let long = "é".repeat(10_000);
        let events: Vec<Value> = (1..=20).map(|seq| message(seq, &long)).collect();
        let first = page(&events, 20);
        let shown = first["events"].as_array().unwrap();
        assert!(first.to_string().len() < PAGE_BYTES_MAX + 1_000, "{}", first.to_string().len());
        assert_eq!(first["next_after"], shown.last().unwrap()["seq"]);
        assert!(shown[0]["text"].as_str().unwrap().ends_with("more bytes; `lanyard log` has them]"));
        let last = page(&events[19..], 20);
        assert_eq!((last["events"].as_array().unwrap().len(), &last["next_after"]), (1, &Value::Null));
        assert_eq!(page(&[], 0)["events"], json!([]));
    }
}
