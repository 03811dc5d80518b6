//! From a session's log to what an editor shows. The same events give the same updates, live or played back; text that
//! is still being written is sent as it grows, and at its event only what is missing of it.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, MessageId, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, TextContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use lanyard_core::session::{Envelope, Event, PlanEntryState, Role, TranscriptEvent, TurnEvent, with_labels};
use lanyard_core::text::telling;
use serde_json::Value;

use super::content;
use crate::render::text::{fit, one_line};

/// Columns of what a tool was called with, in the title of the call.
const TITLE_COLUMNS: usize = 100;
/// Calls whose changes are kept until they return. Further ones show their change until then.
const OPEN_CHANGES_MAX: usize = 64;

/// Whether prompts of this editor are told: it has shown them itself when it sent them, and not when it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    Live,
    PlayedBack,
}

/// Two kinds of text an agent writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Message,
    Thought,
}

/// What a piece of text is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPart {
    kind: Kind,
    /// The agent's own id of the message.
    message_id: Option<String>,
}

impl TextPart {
    pub(super) fn new(kind: Kind, message_id: Option<&str>) -> Self {
        // Thoughts are not told apart.
        let message_id = message_id.filter(|_| kind == Kind::Message).map(str::to_owned);
        Self { kind, message_id }
    }
}

#[derive(Debug, Default)]
pub(super) struct Teller {
    /// What the names of this process's turns begin with.
    mine: String,
    /// Where the last event was that an editor sees.
    visible: u64,
    /// The text that goes on, and where it began: its chunks have one id.
    text: Option<(TextPart, u64)>,
    /// Text that was sent before its event came.
    shown: Option<(TextPart, String)>,
    /// What calls that have not returned want to change: an update with the answer replaces what was shown.
    changes: BTreeMap<String, Vec<ToolCallContent>>,
}

impl Teller {
    pub(super) fn new(mine: &str) -> Self {
        Self { mine: mine.to_owned(), ..Self::default() }
    }

    /// Goes on where another one has told of everything so far.
    pub(super) fn go_on_from(&mut self, other: &Self) {
        (self.visible, self.text, self.shown) = (other.visible, other.text.clone(), None);
        self.changes.clone_from(&other.changes);
    }

    pub(super) fn tell(&mut self, envelope: &Envelope, telling: Telling) -> Option<SessionUpdate> {
        let seq = envelope.seq;
        match &envelope.event {
            Event::Turn(event) => self.turn(event, seq, telling),
            Event::Transcript(event) => self.transcript(event, seq),
            Event::Change(_)
            | Event::Inbox(_)
            | Event::Context(_)
            | Event::Control(_)
            | Event::Run(_)
            | Event::Gate(_)
            | Event::Writer(_)
            | Event::Review(_) => None,
        }
    }

    /// Text that is not an event yet, as far as it goes.
    pub(super) fn preview(&mut self, part: &TextPart, text: &str) -> Option<SessionUpdate> {
        let sent = match &self.shown {
            Some((held, sent)) if held == part => sent.as_str(),
            // What was sent of another text is not settled yet.
            Some(_) => return None,
            None => "",
        };
        // A preview of what comes after an event that is still on its way.
        let more = text.strip_prefix(sent).filter(|more| !more.is_empty())?.to_owned();
        self.shown = Some((part.clone(), text.to_owned()));
        Some(self.words(part, more))
    }

    fn turn(&mut self, event: &TurnEvent, seq: u64, telling: Telling) -> Option<SessionUpdate> {
        let TurnEvent::Started { turn, client_turn_id, prompt, parts, .. } = event else {
            if is_end(event) {
                self.shown = None;
            }
            return None;
        };
        self.shown = None;
        self.breaks(seq);
        let mine = client_turn_id.as_ref().is_some_and(|id| id.starts_with(&self.mine));
        (telling == Telling::PlayedBack || !mine)
            .then(|| SessionUpdate::UserMessageChunk(chunk(with_labels(prompt, parts), turn.to_string())))
    }

    fn transcript(&mut self, event: &TranscriptEvent, seq: u64) -> Option<SessionUpdate> {
        let update = match event {
            TranscriptEvent::Message { role: Role::Agent, text, message_id, parts } => {
                let text = with_labels(text, parts);
                return self.written(&TextPart::new(Kind::Message, message_id.as_deref()), &text, seq);
            }
            TranscriptEvent::Thought { text } => {
                return self.written(&TextPart::new(Kind::Thought, None), text, seq);
            }
            TranscriptEvent::Message { role: Role::User, text, parts, .. } => {
                SessionUpdate::UserMessageChunk(chunk(with_labels(text, parts), format!("user_{seq}")))
            }
            TranscriptEvent::ToolCalled { call, tool, arguments } => {
                let changes = content::changes(arguments);
                self.proposed(call, &changes);
                called(call, tool, arguments, changes)
            }
            TranscriptEvent::ToolReturned { call, is_error, content } => {
                let changes = self.changes.remove(call).unwrap_or_default();
                returned(call, *is_error, content, changes)
            }
            TranscriptEvent::Planned { entries } => {
                let entries = entries.iter().map(|entry| {
                    let status = match entry.status {
                        PlanEntryState::Pending => PlanEntryStatus::Pending,
                        PlanEntryState::InProgress => PlanEntryStatus::InProgress,
                        PlanEntryState::Completed => PlanEntryStatus::Completed,
                    };
                    PlanEntry::new(entry.text.clone(), PlanEntryPriority::Medium, status)
                });
                SessionUpdate::Plan(Plan::new(entries.collect()))
            }
            // The agent tells of its calls and changes itself; tokens come with the answer to the prompt.
            TranscriptEvent::ToolRelayed { .. }
            | TranscriptEvent::InFlight { .. }
            | TranscriptEvent::FileChanged { .. }
            | TranscriptEvent::UsageReported { .. } => return None,
        };
        self.breaks(seq);
        Some(update)
    }

    fn proposed(&mut self, call: &str, changes: &[ToolCallContent]) {
        if !changes.is_empty() && self.changes.len() < OPEN_CHANGES_MAX {
            self.changes.insert(call.to_owned(), changes.to_vec());
        }
    }

    /// Text that is an event: what was not sent of it before.
    fn written(&mut self, part: &TextPart, text: &str, seq: u64) -> Option<SessionUpdate> {
        let (sent, rest) = match self.shown.take() {
            Some((held, sent)) if held == *part => settle(&sent, text),
            // Another kind of text is being written; its event is still to come.
            other => {
                self.shown = other;
                (None, text)
            }
        };
        if let Some(sent) = sent {
            self.shown = Some((part.clone(), sent));
        }
        let update = (!rest.is_empty()).then(|| self.words(part, rest.to_owned()));
        self.visible = seq;
        update
    }

    /// A piece of text, in the message it belongs to. Most editors join chunks whatever their ids are, so a message
    /// that follows another begins with an empty line.
    fn words(&mut self, part: &TextPart, mut text: String) -> SessionUpdate {
        let began = match &self.text {
            Some((held, began)) if held == part => *began,
            Some((held, _)) if held.kind == part.kind => {
                text.insert_str(0, "\n\n");
                self.visible
            }
            Some(_) | None => self.visible,
        };
        self.text = Some((part.clone(), began));
        match part.kind {
            Kind::Message => SessionUpdate::AgentMessageChunk(chunk(text, format!("message_{began}"))),
            Kind::Thought => SessionUpdate::AgentThoughtChunk(chunk(text, format!("thought_{began}"))),
        }
    }

    /// What comes next is a message of its own.
    fn breaks(&mut self, seq: u64) {
        self.text = None;
        self.visible = seq;
    }
}

/// What is still ahead of the events after this text, and what of the text was not sent.
fn settle<'a>(sent: &str, text: &'a str) -> (Option<String>, &'a str) {
    if let Some(rest) = text.strip_prefix(sent) {
        return (None, rest);
    }
    match sent.strip_prefix(text) {
        // The text was cut into more events than it looked like.
        Some(ahead) => (Some(ahead.to_owned()), ""),
        // Nothing that was ever a beginning of it: rather twice than not at all.
        None => (None, text),
    }
}

fn is_end(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Finished { .. } | TurnEvent::Interrupted { .. })
}

fn chunk(text: String, id: String) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text))).message_id(MessageId::from(id))
}

fn called(call: &str, tool: &str, arguments: &Value, changes: Vec<ToolCallContent>) -> SessionUpdate {
    let locations = place(arguments).map(ToolCallLocation::new).into_iter().collect();
    let call = ToolCall::new(call.to_owned(), title(tool, arguments))
        .name(tool.to_owned())
        .kind(kind_of(tool))
        .status(ToolCallStatus::InProgress)
        .content(changes)
        .locations(locations)
        .raw_input((!arguments.is_null()).then(|| arguments.clone()));
    SessionUpdate::ToolCall(call)
}

fn returned(call: &str, is_error: bool, content: &Value, changes: Vec<ToolCallContent>) -> SessionUpdate {
    let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let answered = content::answer(content);
    // The agent's own account of a change says more than the call did.
    let told = answered.iter().any(|block| matches!(block, ToolCallContent::Diff(_)));
    let changes = if told || is_error { Vec::new() } else { changes };
    let blocks: Vec<ToolCallContent> = changes.into_iter().chain(answered).collect();
    let fields = ToolCallUpdateFields::new()
        .status(status)
        .content((!blocks.is_empty()).then_some(blocks))
        .raw_output((!content.is_null() && !content.is_string()).then(|| content.clone()));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.to_owned(), fields))
}

const PLACES: [&str; 3] = ["path", "file_path", "filePath"];

/// The file a call is about, where it says so in full.
fn place(arguments: &Value) -> Option<&str> {
    PLACES.iter().find_map(|name| arguments[*name].as_str()).filter(|path| path.starts_with('/'))
}

/// A tool with what says most of its arguments.
fn title(tool: &str, arguments: &Value) -> String {
    match telling(arguments).map(|text| one_line(&text)).filter(|text| !text.is_empty()) {
        Some(text) => format!("{}: {}", one_line(tool), fit(&text, TITLE_COLUMNS)),
        None => one_line(tool),
    }
}

/// What an editor may show a tool as, by the words of its name. A guess, for an icon.
fn kind_of(tool: &str) -> ToolKind {
    let lower = tool.to_ascii_lowercase();
    let mut words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    let kind = words.find_map(|word| match word {
        "read" | "look" | "view" | "cat" => Some(ToolKind::Read),
        "edit" | "multiedit" | "write" | "patch" | "create" => Some(ToolKind::Edit),
        "delete" | "remove" => Some(ToolKind::Delete),
        "move" | "rename" => Some(ToolKind::Move),
        "grep" | "glob" | "search" | "find" | "list" | "ls" | "websearch" => Some(ToolKind::Search),
        "bash" | "run" | "exec" | "shell" | "terminal" | "command" => Some(ToolKind::Execute),
        "think" => Some(ToolKind::Think),
        "fetch" | "webfetch" => Some(ToolKind::Fetch),
        _ => None,
    });
    kind.unwrap_or_default()
}

#[cfg(test)]
#[path = "tell_tests.rs"]
mod tests;
