//! Putting Lanyard's words in front of a tool's answer, and taking the sting out of lookalikes in it. Pure: text in,
//! text out. What nobody touches stays as the server wrote it.

use lanyard_core::session::directive::{LOOKALIKES, defuse};
use lanyard_daemon::api::types::CallLead;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::relay::Pairs;

/// What has to be done so that words in front of an answer reach the client's model. Some clients show their model
/// nothing but `structuredContent` where there is one; some refuse an answer without it once the tool promised one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Codex and Claude: leave `structuredContent` out of annotated answers.
    Drop,
    /// OpenCode and Gemini read the content: leave all as it is.
    Keep,
    /// Nobody knows: the promise (`outputSchema`) is taken out of `tools/list`, and then `Drop` is safe everywhere.
    Unpromise,
}

impl Manner {
    /// By the name the client gave itself.
    pub(crate) fn of(client: &str) -> Self {
        let name = client.to_ascii_lowercase();
        if name.starts_with("codex") || name.starts_with("claude") {
            Self::Drop
        } else if name.starts_with("opencode") || name.starts_with("gemini") {
            Self::Keep
        } else {
            Self::Unpromise
        }
    }
}

/// What became of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Annotated {
    /// Nothing to change: send the bytes as they came.
    Untouched,
    /// Send this line instead; it has no newline.
    Changed(String),
    /// There is no place for words in it. Send the bytes as they came, and the words another time.
    NoPlace,
}

/// The answer to a call that was not carried out.
pub(crate) fn refusal(id: &RawValue, text: &str, is_error: bool) -> String {
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if is_error {
        result["isError"] = json!(true);
    }
    // Assembled as text, so that the id stays as it was written.
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get())
}

/// An answer with the words in front. `drop_structured` leaves `structuredContent` out when words are added.
pub(crate) fn answer(line: &str, lead: &CallLead, drop_structured: bool) -> Annotated {
    let Some(message) = Pairs::read(line) else { return Annotated::Untouched };
    if let Some(error) = message.get("error").map(|raw| raw.get().to_owned()) {
        return answer_error(message, &error, lead);
    }
    let Some(mut result) = message.get("result").and_then(|raw| Pairs::read(raw.get())) else {
        return Annotated::Untouched;
    };
    if lead.blocks.is_empty() && !lead.withhold {
        return if defuse_result(&mut result) { whole(message, &result) } else { Annotated::Untouched };
    }
    if lead.withhold {
        return whole(message, &withheld(lead));
    }
    // A question back to the client, or a task to look at later: no content, and no model that would read it.
    let kind = result.get("resultType").map(RawValue::get);
    if kind.is_some_and(|kind| kind != r#""complete""#) {
        return Annotated::NoPlace;
    }
    let content = match result.get("content").map(|raw| serde_json::from_str::<Vec<Box<RawValue>>>(raw.get()))
    {
        None => Vec::new(),
        Some(Ok(content)) => content,
        Some(Err(_)) => return Annotated::NoPlace,
    };
    defuse_result(&mut result);
    let content = match result.get("content") {
        Some(defused) => serde_json::from_str(defused.get()).unwrap_or(content),
        None => content,
    };
    let mut blocks: Vec<Box<RawValue>> = lead.blocks.iter().filter_map(|text| block(text)).collect();
    blocks.extend(content);
    let Ok(blocks) = to_raw_value(&blocks) else { return Annotated::NoPlace };
    result.set("content", blocks);
    if drop_structured {
        result.remove("structuredContent");
    }
    set_error(&mut result, lead);
    whole(message, &result)
}

/// A protocol error has only its message for words; clients show it to their model.
fn answer_error(mut message: Pairs, error: &str, lead: &CallLead) -> Annotated {
    if lead.withhold {
        message.remove("error");
        return whole(message, &withheld(lead));
    }
    let Some(mut error) = Pairs::read(error) else { return Annotated::Untouched };
    let said = error.get("message").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let said = said.unwrap_or_default();
    let harmless = defuse(&said);
    if lead.blocks.is_empty() && harmless.is_none() {
        return Annotated::Untouched;
    }
    let mut text = lead.blocks.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(harmless.as_deref().unwrap_or(&said));
    let Ok(text) = to_raw_value(&text) else { return Annotated::NoPlace };
    error.set("message", text);
    let Some(error) = error.raw() else { return Annotated::NoPlace };
    message.set("error", error);
    written(&message)
}

/// `tools/list` without the promise of structured content; nothing when there was none.
pub(crate) fn unpromised(line: &str) -> Option<String> {
    if !line.contains("outputSchema") {
        return None;
    }
    let mut message = Pairs::read(line)?;
    let mut result = Pairs::read(message.get("result")?.get())?;
    let mut tools: Vec<Pairs> = serde_json::from_str(result.get("tools")?.get()).ok()?;
    let mut any = false;
    for tool in &mut tools {
        any |= tool.remove("outputSchema").is_some();
    }
    if !any {
        return None;
    }
    result.set("tools", to_raw_value(&tools).ok()?);
    message.set("result", result.raw()?);
    Some(message.raw()?.get().to_owned())
}

/// Whether a text could hold a lookalike, at little cost. Letters may be written as escapes.
pub(crate) fn is_suspect(line: &str) -> bool {
    line.contains("\\u00") || LOOKALIKES.iter().any(|mark| line.contains(mark))
}

fn withheld(lead: &CallLead) -> Pairs {
    let mut result = Pairs::default();
    let blocks: Vec<Box<RawValue>> = lead.blocks.iter().filter_map(|text| block(text)).collect();
    if let Ok(blocks) = to_raw_value(&blocks) {
        result.set("content", blocks);
    }
    set_error(&mut result, lead);
    result
}

fn set_error(result: &mut Pairs, lead: &CallLead) {
    if lead.is_error
        && let Ok(yes) = to_raw_value(&true)
    {
        result.set("isError", yes);
    }
}

fn block(text: &str) -> Option<Box<RawValue>> {
    to_raw_value(&json!({ "type": "text", "text": text })).ok()
}

fn whole(mut message: Pairs, result: &Pairs) -> Annotated {
    let Some(result) = result.raw() else { return Annotated::NoPlace };
    message.set("result", result);
    written(&message)
}

fn written(message: &Pairs) -> Annotated {
    message.raw().map_or(Annotated::NoPlace, |raw| Annotated::Changed(raw.get().to_owned()))
}

/// Breaks lookalikes in what a model may read. True when there were any.
fn defuse_result(result: &mut Pairs) -> bool {
    let mut any = false;
    for member in ["content", "structuredContent"] {
        let Some(raw) = result.get(member) else { continue };
        if !is_suspect(raw.get()) {
            continue;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(raw.get()) else { continue };
        if defuse_value(&mut value)
            && let Ok(raw) = to_raw_value(&value)
        {
            result.set(member, raw);
            any = true;
        }
    }
    any
}

fn defuse_value(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match defuse(text) {
            Some(harmless) => {
                *text = harmless;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| defuse_value(item) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, item| defuse_value(item) | any),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
#[path = "annotate_tests.rs"]
mod tests;
