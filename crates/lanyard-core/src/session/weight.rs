//! The size of an event's text, which the limit on the size of a log counts.

use serde_json::Value;

use crate::session::event::{Event, TranscriptEvent, TurnEvent};
use crate::session::review::ReviewEvent;

/// Bytes of the texts that can be long: prompts, messages, thoughts, arguments and results of tools.
pub(super) fn text_bytes(event: &Event) -> u64 {
    let bytes = match event {
        Event::Transcript(TranscriptEvent::Message { text, .. } | TranscriptEvent::Thought { text }) => {
            text.len()
        }
        Event::Transcript(
            TranscriptEvent::ToolCalled { arguments: value, .. }
            | TranscriptEvent::ToolReturned { content: value, .. },
        ) => value_bytes(value),
        Event::Turn(TurnEvent::Started { prompt, .. }) => prompt.len(),
        Event::Review(ReviewEvent::Drafted(draft)) => draft.text.len() + draft.quote.len(),
        Event::Transcript(_)
        | Event::Turn(_)
        | Event::Change(_)
        | Event::Inbox(_)
        | Event::Context(_)
        | Event::Control(_)
        | Event::Run(_)
        | Event::Gate(_)
        | Event::Writer(_)
        | Event::Review(_) => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Names and texts; a number counts as one byte. Depth is bounded by the parser that read the value.
fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(value_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + value_bytes(value)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_texts_of_a_value_count() {
        assert_eq!(
            value_bytes(&json!({ "ab": ["cde", 7, null], "f": { "g": "hé" } })),
            2 + 3 + 2 + 1 + 1 + 3
        );
    }
}
