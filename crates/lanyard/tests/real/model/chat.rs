//! `OpenAI` chat completions.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role, Tool, items, str_of, text_of};
use super::frames::{Frames, Reply};
use super::pace::Piece;

pub(super) fn read(body: &Value) -> Conversation {
    let mut asked = Conversation::default();
    for message in items(&body["messages"]) {
        let text = text_of(&message["content"]);
        match str_of(message, "role") {
            "tool" => asked.push(Role::Tool, text),
            "assistant" => {
                let turn = asked.assistant();
                turn.text.push_str(&text);
                let calls = items(&message["tool_calls"]).iter();
                turn.calls.extend(calls.map(|call| str_of(&call["function"], "name").to_owned()));
            }
            "system" | "developer" => asked.push(Role::System, text),
            _ => asked.push(Role::User, text),
        }
    }
    let tools = items(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    asked.tools = tools.map(Tool::named).collect();
    asked
}

pub(super) fn write(reply: &Reply<'_>, streamed: bool) -> Vec<Piece> {
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let function = json!({ "name": call.tool.name, "arguments": call.args.to_string() });
            json!({ "index": index, "id": call.id, "type": "function", "function": function })
        })
        .collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let usage = json!({
        "prompt_tokens": reply.usage.input,
        "completion_tokens": reply.usage.output,
        "total_tokens": reply.usage.input + reply.usage.output,
    });
    let envelope = |object: &str, choices: Value| {
        json!({ "id": format!("chatcmpl-{}", reply.seq), "object": object, "created": 0, "model": reply.model,
            "choices": choices })
    };
    if !streamed {
        let mut message = json!({ "role": "assistant", "content": reply.step.text });
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish });
        let mut document = envelope("chat.completion", json!([choice]));
        document["usage"] = usage;
        return reply.document(&document);
    }
    let chunk = |delta: Value, finish: Option<&str>| {
        envelope("chat.completion.chunk", json!([{ "index": 0, "delta": delta, "finish_reason": finish }]))
    };
    let mut frames = Frames::new(reply);
    frames.data(&chunk(json!({ "role": "assistant", "content": "" }), None));
    if !reply.step.thought.is_empty() {
        frames.data(&chunk(json!({ "reasoning_content": reply.step.thought }), None));
    }
    frames.words(|frames, word| frames.data(&chunk(json!({ "content": word }), None)));
    for call in calls {
        frames.data(&chunk(json!({ "tool_calls": [call] }), None));
    }
    frames.data(&chunk(json!({}), Some(finish)));
    let mut last = envelope("chat.completion.chunk", json!([]));
    last["usage"] = usage;
    frames.data(&last);
    frames.done()
}
