//! A conversation as it is gathered from a history: bounded, the newest part of it where it is too large.

use std::collections::{HashSet, VecDeque};

use lanyard_core::Timestamp;
use lanyard_core::session::{Import, PastEvent, Role, TranscriptEvent};
use serde_json::Value;

use super::{HistoryHeader, HistoryKind};

/// Events of one import: they are written in one commit.
const EVENTS_MAX: usize = 10_000;
/// Bytes of text of one import.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of one text: a message, a thought, the arguments or the result of a tool.
const ONE_TEXT_BYTES_MAX: usize = 128 * 1024;
/// What a tool call is given where the history ends before its result.
const NO_RESULT: &str = "the history has no result of this call";

/// A conversation from an agent's history.
#[derive(Debug, Clone, PartialEq)]
pub struct PastConversation {
    pub header: HistoryHeader,
    pub import: Import,
    pub events: Vec<PastEvent>,
}

/// The events of a conversation while its history is read, within the bounds above: the newest stay.
#[derive(Debug, Default)]
pub(super) struct PastEvents {
    events: VecDeque<(PastEvent, usize)>,
    bytes: usize,
    left_out: u64,
    pub(super) unreadable: u64,
    open: HashSet<String>,
}

impl PastEvents {
    pub(super) fn message(&mut self, at: Option<Timestamp>, role: Role, text: &str, id: Option<&str>) {
        if text.trim().is_empty() {
            return;
        }
        let (text, message_id) = (bounded(text), id.map(str::to_owned));
        self.push(at, text.len(), TranscriptEvent::Message { role, text, message_id, parts: Vec::new() });
    }

    pub(super) fn thought(&mut self, at: Option<Timestamp>, text: &str) {
        if !text.trim().is_empty() {
            let text = bounded(text);
            self.push(at, text.len(), TranscriptEvent::Thought { text });
        }
    }

    pub(super) fn called(&mut self, at: Option<Timestamp>, call: &str, tool: &str, arguments: &Value) {
        let text = arguments.to_string();
        let arguments =
            if text.len() > ONE_TEXT_BYTES_MAX { Value::String(bounded(&text)) } else { arguments.clone() };
        self.open.insert(call.to_owned());
        let (call, tool) = (call.to_owned(), tool.to_owned());
        self.push(
            at,
            text.len().min(ONE_TEXT_BYTES_MAX),
            TranscriptEvent::ToolCalled { call, tool, arguments },
        );
    }

    pub(super) fn returned(&mut self, at: Option<Timestamp>, call: &str, is_error: bool, text: &str) {
        // A result without its call has nothing to stand beside.
        if self.open.remove(call) {
            let (call, text) = (call.to_owned(), bounded(text));
            let content = Value::String(text);
            self.push(
                at,
                ONE_TEXT_BYTES_MAX.min(content.to_string().len()),
                TranscriptEvent::ToolReturned { call, is_error, content },
            );
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn messages(&self) -> u64 {
        let mut last = None;
        let mut count = 0;
        for (PastEvent { event, .. }, _) in &self.events {
            if let TranscriptEvent::Message { role, message_id, .. } = event {
                let same = message_id.is_some() && last == Some((*role, message_id));
                count += u64::from(!same);
                last = Some((*role, message_id));
            }
        }
        count
    }

    fn push(&mut self, at: Option<Timestamp>, bytes: usize, event: TranscriptEvent) {
        self.bytes += bytes;
        self.events.push_back((PastEvent { at, event }, bytes));
        while self.events.len() > EVENTS_MAX || self.bytes > TEXT_BYTES_MAX {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some((dropped, bytes)) = self.events.pop_front() {
            self.bytes -= bytes;
            self.left_out += 1;
            if let TranscriptEvent::ToolCalled { call, .. } = dropped.event {
                self.open.remove(&call);
            }
        }
    }

    /// The conversation as it is imported. Calls without a result get one that says so.
    pub(super) fn done(mut self, header: HistoryHeader) -> PastConversation {
        let is_result = |event: &TranscriptEvent| matches!(event, TranscriptEvent::ToolReturned { .. });
        while self.left_out > 0 && self.events.front().is_some_and(|(past, _)| is_result(&past.event)) {
            self.drop_first();
        }
        let mut open: Vec<String> = self.open.iter().cloned().collect();
        open.sort_unstable();
        let last = self.events.back().and_then(|(past, _)| past.at);
        for call in open {
            self.returned(last, &call, true, NO_RESULT);
        }
        let messages = self.messages();
        let events: Vec<PastEvent> = self.events.into_iter().map(|(event, _)| event).collect();
        let import = Import {
            from: header.kind.as_str().to_owned(),
            messages,
            events: events.len() as u64,
            left_out: self.left_out,
            unreadable: self.unreadable,
            began_at: events.iter().find_map(|past| past.at),
            ended_at: events.iter().rev().find_map(|past| past.at),
        };
        PastConversation { header: HistoryHeader { messages: Some(messages), ..header }, import, events }
    }
}

impl PastConversation {
    /// The program whose history it is.
    #[must_use]
    pub fn kind(&self) -> HistoryKind {
        self.header.kind
    }
}

/// A text as long as one may be, cut between two words: half a secret would not be recognised.
fn bounded(text: &str) -> String {
    if text.len() <= ONE_TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let mut end = ONE_TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    let head = head.rfind(char::is_whitespace).map_or(head, |space| &head[..space]);
    format!("{head}\n[{} more bytes are in the agent's own history]", text.len() - head.len())
}

/// The words of a text or of a list of text blocks.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let words = blocks.iter().filter_map(|block| {
                let is_image = matches!(block["type"].as_str(), Some("image" | "input_image"));
                if is_image { Some("[image]") } else { block.as_str().or(block["text"].as_str()) }
            });
            words.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

/// A time as the history writes it.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
