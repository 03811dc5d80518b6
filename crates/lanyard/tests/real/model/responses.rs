//! `OpenAI` Responses.

use serde_json::{Value, json};

use super::choose::Call;
use super::conversation::{Conversation, Role, Tool, items, str_of, text_of};
use super::frames::{Frames, Reply};
use super::pace::Piece;

pub(super) fn read(body: &Value) -> Conversation {
    let mut asked = Conversation::default();
    if let Some(instructions) = body["instructions"].as_str() {
        asked.push(Role::System, instructions.to_owned());
    }
    if let Some(text) = body["input"].as_str() {
        asked.push(Role::User, text.to_owned());
    }
    for item in items(&body["input"]) {
        read_item(&mut asked, item);
    }
    asked.tools = items(&body["tools"]).iter().flat_map(read_tool).collect();
    asked
}

fn read_item(asked: &mut Conversation, item: &Value) {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let text = text_of(&item["content"]);
            match str_of(item, "role") {
                "assistant" => asked.assistant().text.push_str(&text),
                "system" | "developer" => asked.push(Role::System, text),
                _ => asked.push(Role::User, text),
            }
        }
        "reasoning" => {
            asked.assistant();
        }
        kind if kind.ends_with("_output") => asked.push(Role::Tool, text_of(&item["output"])),
        kind if kind.ends_with("_call") => {
            let name = item["name"].as_str().unwrap_or(kind).to_owned();
            asked.assistant().calls.push(name);
        }
        // Items that are no part of the talk, such as a compaction.
        _ => asked.push(Role::System, item.to_string()),
    }
}

fn read_tool(tool: &Value) -> Vec<Tool> {
    let kind = str_of(tool, "type");
    let name = tool["name"].as_str().unwrap_or(kind);
    if kind == "namespace" {
        let inside =
            |held: &Value| Tool { namespace: Some(name.to_owned()), ..Tool::named(str_of(held, "name")) };
        return items(&tool["tools"]).iter().map(inside).collect();
    }
    vec![Tool { custom: kind == "custom", ..Tool::named(name) }]
}

pub(super) fn write(reply: &Reply<'_>, streamed: bool) -> Vec<Piece> {
    let message_id = format!("msg_{:05}", reply.seq);
    let part = json!({ "type": "output_text", "text": reply.step.text, "annotations": [] });
    let message = json!({ "type": "message", "id": message_id, "role": "assistant", "status": "completed",
        "content": [part] });
    let mut output: Vec<Value> = Vec::new();
    if !reply.step.text.is_empty() {
        output.push(message);
    }
    output.extend(reply.calls.iter().map(call_item));
    if !streamed {
        return reply.document(&response(reply, "completed", &output));
    }
    let mut stream = Stream { frames: Frames::new(reply), number: 0 };
    stream.event("response.created", json!({ "response": response(reply, "in_progress", &[]) }));
    stream.event("response.in_progress", json!({ "response": response(reply, "in_progress", &[]) }));
    if reply.step.text.is_empty() {
        stream.frames.words(|_, _| {});
    }
    for (index, item) in output.iter().enumerate() {
        match str_of(item, "type") {
            "message" => stream.message(index, item),
            kind => stream.call(index, item, kind == "custom_tool_call"),
        }
    }
    stream.event("response.completed", json!({ "response": response(reply, "completed", &output) }));
    stream.frames.end()
}

fn call_item(call: &Call) -> Value {
    let Call { id, tool, args } = call;
    if tool.custom {
        let input =
            args.as_str().or_else(|| args["input"].as_str()).map_or_else(|| args.to_string(), str::to_owned);
        return json!({ "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id, "name": tool.name,
            "input": input, "status": "completed" });
    }
    let mut item = json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": tool.name,
        "arguments": args.to_string(), "status": "completed" });
    if let Some(namespace) = &tool.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

fn response(reply: &Reply<'_>, status: &str, output: &[Value]) -> Value {
    let usage = (status == "completed").then(|| {
        json!({
            "input_tokens": reply.usage.input, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": reply.usage.output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": reply.usage.input + reply.usage.output,
        })
    });
    json!({ "id": format!("resp_{:05}", reply.seq), "object": "response", "created_at": 0, "status": status,
        "model": reply.model, "output": output, "parallel_tool_calls": true, "tools": [], "error": null,
        "incomplete_details": null, "usage": usage })
}

/// Events with their running number.
struct Stream<'a> {
    frames: Frames<'a>,
    number: u64,
}

impl Stream<'_> {
    fn event(&mut self, kind: &str, data: Value) {
        let event = numbered(&mut self.number, kind, data);
        self.frames.event(&event);
    }

    fn message(&mut self, index: usize, item: &Value) {
        let (id, part) = (&item["id"], &item["content"][0]);
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun["content"] = json!([]);
        self.event("response.output_item.added", json!({ "output_index": index, "item": begun }));
        let at = |key: &str, value: Value| {
            let mut data = json!({ "item_id": id, "output_index": index, "content_index": 0 });
            data[key] = value;
            data
        };
        let empty = json!({ "type": "output_text", "text": "", "annotations": [] });
        self.event("response.content_part.added", at("part", empty));
        let number = &mut self.number;
        self.frames.words(|frames, word| {
            frames.event(&numbered(number, "response.output_text.delta", at("delta", json!(word))));
        });
        self.event("response.output_text.done", at("text", part["text"].clone()));
        self.event("response.content_part.done", at("part", part.clone()));
        self.event("response.output_item.done", json!({ "output_index": index, "item": item }));
    }

    fn call(&mut self, index: usize, item: &Value, custom: bool) {
        let (key, name) = if custom {
            ("input", "custom_tool_call_input")
        } else {
            ("arguments", "function_call_arguments")
        };
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun[key] = json!("");
        self.event("response.output_item.added", json!({ "output_index": index, "item": begun }));
        let at = |key: &str, value: &Value| {
            let mut data = json!({ "item_id": item["id"], "output_index": index });
            data[key] = value.clone();
            data
        };
        self.event(&format!("response.{name}.delta"), at("delta", &item[key]));
        self.event(&format!("response.{name}.done"), at(key, &item[key]));
        self.event("response.output_item.done", json!({ "output_index": index, "item": item }));
    }
}

fn numbered(number: &mut u64, kind: &str, mut data: Value) -> Value {
    *number += 1;
    data["type"] = json!(kind);
    data["sequence_number"] = json!(*number);
    data
}
