//! Anthropic Messages.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role, Tool, items, str_of, text_of};
use super::frames::{Frames, Reply};
use super::pace::Piece;

pub(super) fn read(body: &Value) -> Conversation {
    let mut asked = Conversation::default();
    if !body["system"].is_null() {
        asked.push(Role::System, text_of(&body["system"]));
    }
    for message in items(&body["messages"]) {
        let role = match str_of(message, "role") {
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        if let Some(text) = message["content"].as_str() {
            read_part(&mut asked, role, &json!({ "type": "text", "text": text }));
        }
        for part in items(&message["content"]) {
            read_part(&mut asked, role, part);
        }
    }
    let tools = items(&body["tools"]).iter().filter_map(|tool| tool["name"].as_str());
    asked.tools = tools.map(Tool::named).collect();
    asked
}

fn read_part(asked: &mut Conversation, role: Role, part: &Value) {
    match (role, str_of(part, "type")) {
        (Role::Assistant, "text") => asked.assistant().text.push_str(str_of(part, "text")),
        (Role::Assistant, "tool_use") => {
            let name = str_of(part, "name").to_owned();
            asked.assistant().calls.push(name);
        }
        (Role::Assistant, _) => {
            asked.assistant();
        }
        (_, "tool_result") => asked.push(Role::Tool, text_of(&part["content"])),
        (role, _) => asked.push(role, text_of(part)),
    }
}

pub(super) fn write(reply: &Reply<'_>, streamed: bool) -> Vec<Piece> {
    let stop = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    let usage = |output: u64| {
        json!({ "input_tokens": reply.usage.input, "output_tokens": output,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 })
    };
    let message = |content: Vec<Value>, stop: Option<&str>, output: u64| {
        json!({ "id": format!("msg_{:05}", reply.seq), "type": "message", "role": "assistant",
            "model": reply.model, "content": content, "stop_reason": stop, "stop_sequence": null,
            "usage": usage(output) })
    };
    let tool_use = |id: &str, name: &str, input: Value| json!({ "type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input });
    if !streamed {
        let mut content = Vec::new();
        if !reply.step.text.is_empty() {
            content.push(json!({ "type": "text", "text": reply.step.text }));
        }
        content.extend(reply.calls.iter().map(|call| tool_use(&call.id, &call.tool.name, call.args.clone())));
        return reply.document(&message(content, Some(stop), reply.usage.output));
    }
    let mut blocks = Blocks { frames: Frames::new(reply), index: 0 };
    blocks.frames.event(&json!({ "type": "message_start", "message": message(Vec::new(), None, 1) }));
    if !reply.step.thought.is_empty() {
        let begun = json!({ "type": "thinking", "thinking": "", "signature": "" });
        let said = json!({ "type": "thinking_delta", "thinking": reply.step.thought });
        blocks.block(&begun, |frames, delta| frames.event(&delta(&said)));
    }
    if reply.step.text.is_empty() {
        blocks.frames.words(|_, _| {});
    } else {
        blocks.block(&json!({ "type": "text", "text": "" }), |frames, delta| {
            frames.words(|frames, word| frames.event(&delta(&json!({ "type": "text_delta", "text": word }))));
        });
    }
    for call in reply.calls {
        let args = json!({ "type": "input_json_delta", "partial_json": call.args.to_string() });
        let begun = tool_use(&call.id, &call.tool.name, json!({}));
        blocks.block(&begun, |frames, delta| frames.event(&delta(&args)));
    }
    let mut frames = blocks.frames;
    let delta = json!({ "stop_reason": stop, "stop_sequence": null });
    frames.event(&json!({ "type": "message_delta", "delta": delta, "usage": usage(reply.usage.output) }));
    frames.event(&json!({ "type": "message_stop" }));
    frames.end()
}

/// Content blocks, numbered.
struct Blocks<'a> {
    frames: Frames<'a>,
    index: usize,
}

impl<'a> Blocks<'a> {
    /// One block: its start, what `fill` writes with the event it is given for a delta, its stop.
    fn block(&mut self, begun: &Value, fill: impl FnOnce(&mut Frames<'a>, &dyn Fn(&Value) -> Value)) {
        let index = self.index;
        self.frames.event(&json!({ "type": "content_block_start", "index": index, "content_block": begun }));
        let delta = |delta: &Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        fill(&mut self.frames, &delta);
        self.frames.event(&json!({ "type": "content_block_stop", "index": index }));
        self.index += 1;
    }
}
