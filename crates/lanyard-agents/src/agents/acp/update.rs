//! What an ACP agent tells of its work: words, thoughts, tool calls, plans.

use agent_client_protocol_schema::v1::{
    Content, ContentBlock, ContentChunk, Cost, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use lanyard_core::session::{PlanEntry, PlanEntryState, Signal};
use serde_json::{Value, json};

use super::Acp;
use super::change::{CHANGE_BYTES_MAX, Change};
use crate::agents::driver::{Action, Actions, TextKind, is_amount, micros};

/// Tool calls remembered at a time; an agent with more open calls loses their names, nothing else.
const TOOLS_MAX: usize = 1_024;
/// Bytes of a tool's answer that are kept; the rest is left out and said so.
const CONTENT_BYTES_MAX: usize = 256 * 1024;

/// The least rise of a conversation's cost that is reported before the end of its turn: a cent.
const COST_STEP_MICROS: u64 = 10_000;

/// Whether a cost can be counted.
fn is_known(cost: &Cost) -> bool {
    cost.currency == "USD" && is_amount(cost.amount)
}

/// A tool call that has not ended.
#[derive(Debug, Default)]
pub(super) struct Tool {
    pub(super) name: String,
    input: Option<Value>,
    content: Vec<ToolCallContent>,
    /// What its terminal showed, where the agent runs one of its own.
    output: String,
    /// Told of already.
    told: bool,
}

/// What some agents tell beside the protocol: a tool's name, and what its terminal shows.
#[derive(Debug, Default)]
struct Hint {
    tool: Option<String>,
    output: String,
}

impl Hint {
    fn of(meta: &Value) -> Self {
        let tool = meta["claudeCode"]["toolName"].as_str().map(str::to_owned);
        let shown =
            ["terminal_output_delta", "terminal_output"].iter().find_map(|name| meta[name]["data"].as_str());
        Self { tool, output: shown.unwrap_or_default().to_owned() }
    }
}

impl Tool {
    /// A call that an earlier daemon told of.
    pub(super) fn told() -> Self {
        Self { told: true, ..Self::default() }
    }
}

impl Acp {
    pub(super) fn update(&mut self, mut params: Value, out: &mut Actions) {
        let native = params["sessionId"].as_str().and_then(|native| self.other(native));
        let update = params.get_mut("update").map(Value::take).unwrap_or_default();
        let kind = update["sessionUpdate"].as_str().unwrap_or("none").to_owned();
        // Most of what an agent writes is small pieces of text: they are not taken apart further than needed.
        if let (Some(kind), false) = (plain_text(&kind, &update), self.replaying) {
            self.stir();
            let text = update["content"]["text"].as_str().unwrap_or_default().to_owned();
            let message = update["messageId"].as_str().map(str::to_owned);
            return out.push(Action::Text { native, kind, text, message });
        }
        if native.is_none() && self.option_update(&kind, &update, out) {
            return;
        }
        let hint = Hint::of(&update["_meta"]);
        let update: SessionUpdate = match serde_json::from_value(update) {
            Ok(update) => update,
            Err(error) => {
                return out
                    .push(Action::Odd { what: format!("an update `{kind}` that is not known: {error}") });
            }
        };
        if self.replaying && native.is_none() {
            if matches!(
                update,
                SessionUpdate::UserMessageChunk(_)
                    | SessionUpdate::AgentMessageChunk(_)
                    | SessionUpdate::ToolCall(_)
            ) {
                out.push(Action::Replayed(1));
            }
            return;
        }
        self.seen(native, update, hint, out);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "later versions of the protocol add kinds of updates")]
    fn seen(&mut self, native: Option<String>, update: SessionUpdate, hint: Hint, out: &mut Actions) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                self.stir();
                text(native, TextKind::Message, chunk, out);
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                self.stir();
                text(native, TextKind::Thought, chunk, out);
            }
            // The prompt, said back: it is in the log already.
            SessionUpdate::UserMessageChunk(_) => {}
            SessionUpdate::ToolCall(call) => {
                self.stir();
                let id = call.tool_call_id.0.to_string();
                self.tool(native, &id, fields_of(call), hint, out);
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.stir();
                let id = update.tool_call_id.0.to_string();
                self.tool(native, &id, update.fields, hint, out);
            }
            SessionUpdate::Plan(plan) => {
                let entries = plan.entries.into_iter().map(|entry| PlanEntry {
                    text: entry.content,
                    status: match entry.status {
                        PlanEntryStatus::InProgress => PlanEntryState::InProgress,
                        PlanEntryStatus::Completed => PlanEntryState::Completed,
                        _ => PlanEntryState::Pending,
                    },
                });
                out.push(Action::Saw { native, signal: Signal::Planned { entries: entries.collect() } });
            }
            SessionUpdate::UsageUpdate(usage) if native.is_none() => {
                self.context = Some(usage.used);
                if let Some(cost) = usage.cost.filter(is_known) {
                    self.cost = micros(cost.amount);
                    if self.replaying {
                        self.cost_told = self.cost;
                    } else if self.cost >= self.cost_told.saturating_add(COST_STEP_MICROS) {
                        // A budget can only end a turn whose cost is known before its end.
                        out.extend(self.paid().map(|signal| Action::Saw { native, signal }));
                    }
                }
            }
            _ => {}
        }
    }

    /// A permission is asked for a call that may not have been told of.
    pub(super) fn known_by(
        &mut self,
        native: Option<String>,
        call: &str,
        update: &ToolCallUpdate,
        out: &mut Actions,
    ) {
        let mut fields = update.fields.clone();
        // The question's content describes what would be done, not what was.
        fields.content = None;
        fields.status = Some(ToolCallStatus::InProgress);
        self.tool(native, call, fields, Hint::default(), out);
    }

    fn tool(
        &mut self,
        native: Option<String>,
        id: &str,
        fields: ToolCallUpdateFields,
        hint: Hint,
        out: &mut Actions,
    ) {
        if self.tools.len() >= TOOLS_MAX && !self.tools.contains_key(id) {
            self.tools.clear();
        }
        let known = self.tools.contains_key(id);
        let tool = self.tools.entry(id.to_owned()).or_default();
        if let Some(name) = fields.name.or(hint.tool) {
            tool.name = name;
        } else if let (Some(title), true) = (fields.title, tool.name.is_empty()) {
            // Later titles describe what it does; the first one is the nearest to a name.
            tool.name = title;
        }
        if tool.output.len() < CONTENT_BYTES_MAX {
            tool.output.push_str(&hint.output);
        }
        if let Some(input) = fields.raw_input.filter(|input| !is_empty(input) && !is_only_place(input)) {
            tool.input = Some(input);
        }
        if let Some(content) = fields.content.filter(|content| !content.is_empty()) {
            tool.content = content;
        }
        let status =
            fields.status.unwrap_or(if known { ToolCallStatus::InProgress } else { ToolCallStatus::Pending });
        let over = matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        // A pending call may still be without its arguments; it is told of when it has them or begins.
        if !tool.told && (over || tool.input.is_some() || status == ToolCallStatus::InProgress) {
            tool.told = true;
            if tool.name.is_empty() {
                "tool".clone_into(&mut tool.name);
            }
            let (call, arguments) = (id.to_owned(), tool.input.clone().unwrap_or_default());
            let signal = Signal::ToolCalled { call, tool: tool.name.clone(), arguments };
            out.push(Action::Saw { native: native.clone(), signal });
        }
        if over && let Some(tool) = self.tools.remove(id) {
            returned(native, id, tool, fields.raw_output, status == ToolCallStatus::Failed, out);
        }
    }
}

fn returned(
    native: Option<String>,
    id: &str,
    tool: Tool,
    raw_output: Option<Value>,
    is_error: bool,
    out: &mut Actions,
) {
    let (mut texts, mut changes) = (Vec::new(), Vec::new());
    let mut room = CHANGE_BYTES_MAX;
    for content in tool.content {
        match content {
            ToolCallContent::Content(Content { content: ContentBlock::Image(image), .. }) => {
                changes.push(json!({ "type": "image", "data": image.data }));
            }
            ToolCallContent::Content(content) => texts.push(words(content.content)),
            ToolCallContent::Diff(diff) if !is_error => {
                let change = Change::of(&diff);
                let path = diff.path.display().to_string();
                changes.push(change.block(&path, &mut room));
                let (added, removed) = (Some(change.added()), Some(change.removed()));
                let signal = Signal::FileChanged { path, added, removed };
                out.push(Action::Saw { native: native.clone(), signal });
            }
            ToolCallContent::Diff(_) | ToolCallContent::Terminal(_) => {}
            _ => {}
        }
    }
    if texts.is_empty() && !tool.output.is_empty() {
        texts.push(tool.output);
    }
    let content = if texts.is_empty() {
        raw_output.filter(|output| !is_empty(output)).map_or(Value::Null, bounded)
    } else {
        bounded(Value::String(texts.join("\n")))
    };
    let content = with_changes(content, changes);
    let signal = Signal::ToolReturned { call: id.to_owned(), is_error, content };
    out.push(Action::Saw { native, signal });
}

/// What a call answered, and behind it what it changed; without changes just the answer.
fn with_changes(content: Value, changes: Vec<Value>) -> Value {
    if changes.is_empty() {
        return content;
    }
    let text = match content {
        Value::Null => None,
        Value::String(text) => Some(json!({ "type": "text", "text": text })),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(json!({ "type": "text", "text": content.to_string() }))
        }
    };
    Value::Array(text.into_iter().chain(changes).collect())
}

fn text(native: Option<String>, kind: TextKind, chunk: ContentChunk, out: &mut Actions) {
    if let (TextKind::Message, ContentBlock::Image(image)) = (kind, &chunk.content) {
        let message = chunk.message_id.as_ref().map(|id| id.0.to_string());
        return out.push(Action::Image { native, data: image.data.clone(), message });
    }
    let text = words(chunk.content);
    if !text.is_empty() {
        let message = chunk.message_id.map(|id| id.0.to_string());
        out.push(Action::Text { native, kind, text, message });
    }
}

/// A block as text; what is no text is named.
fn words(content: ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Image(_) => "[image]".to_owned(),
        ContentBlock::Audio(_) => "[audio]".to_owned(),
        ContentBlock::Resource(_) | _ => "[resource]".to_owned(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Arguments that name nothing but the folder: the real ones are still to come.
fn is_only_place(input: &Value) -> bool {
    input.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("cwd"))
}

/// Whether an update is nothing but words, and whose.
fn plain_text(kind: &str, update: &Value) -> Option<TextKind> {
    let kind = match kind {
        "agent_message_chunk" => TextKind::Message,
        "agent_thought_chunk" => TextKind::Thought,
        _ => return None,
    };
    let content = &update["content"];
    let is_text = content["type"] == "text" && content["text"].as_str().is_some_and(|text| !text.is_empty());
    is_text.then_some(kind)
}

/// A tool's answer in bounds.
fn bounded(value: Value) -> Value {
    let text = if let Value::String(text) = value {
        text
    } else {
        let text = value.to_string();
        if text.len() <= CONTENT_BYTES_MAX {
            return value;
        }
        text
    };
    if text.len() <= CONTENT_BYTES_MAX {
        return Value::String(text);
    }
    let end = text.floor_char_boundary(CONTENT_BYTES_MAX);
    Value::String(format!("{}\n[{} more bytes were left out]", &text[..end], text.len() - end))
}

fn fields_of(call: ToolCall) -> ToolCallUpdateFields {
    let mut fields = ToolCallUpdateFields::new();
    fields.kind = Some(call.kind);
    fields.status = Some(call.status);
    fields.title = Some(call.title);
    fields.name = call.name;
    fields.content = Some(call.content);
    fields.raw_input = call.raw_input;
    fields.raw_output = call.raw_output;
    fields
}
