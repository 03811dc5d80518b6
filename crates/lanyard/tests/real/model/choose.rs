//! Which step of which script answers a request, and the calls it makes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::conversation::{Conversation, Role, Tool};
use super::script::{Step, Wanted};

/// What a request without tools gets: titles, summaries, probes.
const AUXILIARY: &str = "Scripted title";

/// A tool call, ready to be written in any protocol.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: Tool,
    pub(crate) args: Value,
}

#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) script: String,
    pub(super) index: usize,
    pub(super) step: Step,
}

pub(super) fn choose(asked: &Conversation, scripts: &BTreeMap<String, Vec<Step>>) -> Choice {
    let fixed =
        |script: &str, text: &str| Choice { script: script.to_owned(), index: 0, step: Step::text(text) };
    if asked.tools.is_empty() {
        return fixed("auxiliary", AUXILIARY);
    }
    let Some((script, after)) = last_marker(asked) else {
        return fixed("none", "No script marker in this conversation.");
    };
    let index = asked.messages[after..].iter().filter(|message| message.role == Role::Assistant).count();
    let step = match scripts.get(&script) {
        None => Step::text(&format!("Unknown script {script}.")),
        Some(steps) => {
            steps.get(index).cloned().unwrap_or_else(|| Step::text(&format!("Script {script} is finished.")))
        }
    };
    Choice { script, index, step }
}

/// The last script named by the user, and where the messages after it begin.
fn last_marker(asked: &Conversation) -> Option<(String, usize)> {
    asked.messages.iter().enumerate().rev().find_map(|(at, message)| {
        let named = (message.role == Role::User).then(|| marker_in(&message.text)).flatten();
        named.map(|name| (name.to_owned(), at + 1))
    })
}

fn marker_in(text: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.rmatch_indices("@@").find_map(|(at, mark)| {
        let (name, _) = text[at + mark.len()..].split_once("@@")?;
        (!name.is_empty() && name.chars().all(is_name)).then_some(name)
    })
}

pub(super) fn calls(wanted: &[Wanted], asked: &Conversation, seq: u64) -> Vec<Call> {
    let call = |(index, wanted): (usize, &Wanted)| Call {
        id: format!("call_{seq:05}_{index}"),
        tool: resolve(&wanted.tool, &asked.tools),
        args: filled(&wanted.args, asked),
    };
    wanted.iter().enumerate().map(call).collect()
}

fn resolve(wanted: &str, offered: &[Tool]) -> Tool {
    let exact = |name: &str| offered.iter().find(|tool| tool.full_name() == name || tool.name == name);
    let found = match wanted.strip_prefix('~') {
        None => exact(wanted),
        Some(part) => exact(part)
            .or_else(|| offered.iter().find(|tool| tool.name.ends_with(part)))
            .or_else(|| offered.iter().find(|tool| tool.name.contains(part))),
    };
    let made_up = || match wanted.split_once("::") {
        Some((namespace, name)) => Tool { namespace: Some(namespace.to_owned()), ..Tool::named(name) },
        None => Tool::named(wanted.trim_start_matches('~')),
    };
    found.cloned().unwrap_or_else(made_up)
}

/// Arguments with `{{last_tool_result}}` and `{{field:KEY}}` replaced; the latter is the value of the last
/// `"KEY": "value"` in what the tools answered, such as the id of a subagent.
fn filled(args: &Value, asked: &Conversation) -> Value {
    match args {
        Value::String(text) => Value::String(filled_text(text, asked)),
        Value::Array(list) => list.iter().map(|value| filled(value, asked)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), filled(value, asked))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => args.clone(),
    }
}

fn filled_text(text: &str, asked: &Conversation) -> String {
    let Some((before, rest)) = text.split_once("{{") else {
        return text.to_owned();
    };
    let Some((name, after)) = rest.split_once("}}") else {
        return text.to_owned();
    };
    let value = match name.strip_prefix("field:") {
        Some(key) => last_field(key, asked).unwrap_or_default(),
        None if name == "last_tool_result" => asked.last_tool_result().unwrap_or_default(),
        None => return format!("{before}{{{{{name}}}}}{}", filled_text(after, asked)),
    };
    format!("{before}{value}{}", filled_text(after, asked))
}

fn last_field<'a>(key: &str, asked: &'a Conversation) -> Option<&'a str> {
    let quoted = format!("\"{key}\"");
    asked.tool_results().into_iter().rev().find_map(|text| {
        let after = &text[text.rfind(&quoted)? + quoted.len()..];
        let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next()
    })
}
