//! Gemini `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::conversation::{Conversation, Role, Tool, items, str_of, text_of};
use super::frames::{Frames, Reply};
use super::pace::Piece;

pub(super) fn read(body: &Value) -> Conversation {
    let mut asked = Conversation::default();
    if !body["systemInstruction"].is_null() {
        asked.push(Role::System, text_of(&body["systemInstruction"]["parts"]));
    }
    for content in items(&body["contents"]) {
        let by_model = str_of(content, "role") == "model";
        for part in items(&content["parts"]) {
            match (by_model, part.get("functionCall"), part.get("functionResponse")) {
                (true, Some(call), _) => {
                    let name = str_of(call, "name").to_owned();
                    asked.assistant().calls.push(name);
                }
                (true, None, _) => asked.assistant().text.push_str(str_of(part, "text")),
                (false, _, Some(result)) => asked.push(Role::Tool, text_of(&result["response"])),
                (false, _, None) => asked.push(Role::User, text_of(part)),
            }
        }
    }
    let declared = items(&body["tools"]).iter().flat_map(|tool| items(&tool["functionDeclarations"]));
    asked.tools = declared.map(|function| Tool::named(str_of(function, "name"))).collect();
    asked
}

pub(super) fn write(reply: &Reply<'_>, streamed: bool) -> Vec<Piece> {
    let answer = |parts: Vec<Value>, finish: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let usage = json!({
            "promptTokenCount": reply.usage.input,
            "candidatesTokenCount": reply.usage.output,
            "totalTokenCount": reply.usage.input + reply.usage.output,
        });
        json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted",
            "responseId": format!("g{}", reply.seq) })
    };
    let calls: Vec<Value> = reply
        .calls
        .iter()
        .map(|call| json!({ "functionCall": { "id": call.id, "name": call.tool.name, "args": call.args } }))
        .collect();
    if !streamed {
        let mut parts = vec![json!({ "text": reply.step.text })];
        parts.extend(calls);
        return reply.document(&answer(parts, Some("STOP")));
    }
    let mut frames = Frames::new(reply);
    if !reply.step.thought.is_empty() {
        frames.data(&answer(vec![json!({ "text": reply.step.thought, "thought": true })], None));
    }
    frames.words(|frames, word| frames.data(&answer(vec![json!({ "text": word })], None)));
    if !calls.is_empty() {
        frames.data(&answer(calls, None));
    }
    frames.data(&answer(vec![json!({ "text": "" })], Some("STOP")));
    frames.end()
}
