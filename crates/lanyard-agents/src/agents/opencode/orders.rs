//! Wishes as the bridge's orders.

use lanyard_core::session::{OptionKind, Question};
use serde_json::{Map, Value, json};

use crate::agents::driver::{Action, Answer, McpServer, Setting};
use crate::agents::given::GivenPart;

/// An order under its key; the key is its id too, so that its answer is recognised after a restart.
pub(super) fn send(key: &str, order: &Value) -> Action {
    let mut line = Map::new();
    line.insert("id".to_owned(), key.into());
    if let Value::Object(fields) = order {
        line.extend(fields.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())));
    }
    Action::Send { key: key.to_owned(), line: Value::Object(line).to_string() }
}

pub(super) fn open(setting: &Setting, native: Option<&str>) -> Value {
    let mcp: Vec<Value> = setting.mcp.iter().map(mcp).collect();
    json!({
        "op": "open",
        "native": native,
        "directory": setting.workspace,
        "agent": setting.mode,
        "model": setting.model,
        "system": setting.instructions,
        "mcp": mcp,
    })
}

/// Files in OpenCode's terms; nothing where there are none.
pub(in crate::agents) fn files(parts: &[GivenPart]) -> Value {
    let files = parts.iter().filter_map(GivenPart::image).map(|(attached, data)| {
        let url = format!("data:{};base64,{data}", attached.media_type);
        json!({"type": "file", "mime": attached.media_type, "filename": attached.name, "url": url})
    });
    let files: Vec<Value> = files.collect();
    if files.is_empty() { Value::Null } else { Value::Array(files) }
}

fn mcp(server: &McpServer) -> Value {
    let map = |pairs: &[(String, String)]| -> Value {
        Value::Object(pairs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect())
    };
    match server {
        McpServer::Stdio { name, command, args, env } => {
            let command: Vec<&String> = std::iter::once(command).chain(args).collect();
            json!({"name": name, "config": {"type": "local", "command": command, "environment": map(env)}})
        }
        McpServer::Http { name, url, headers } => {
            // Without this a server that says 401 would start a login in a browser.
            let config = json!({"type": "remote", "url": url, "headers": map(headers), "oauth": false});
            json!({"name": name, "config": config})
        }
    }
}

/// Answers a permission, or a question of the model. `request` tells which it is by its prefix.
pub(super) fn answer(question: &Question, answer: &Answer) -> Value {
    let request = &question.request;
    let (option, message) = match answer {
        Answer::Chosen { option, message } => (Some(option), message.as_deref()),
        Answer::Void => (None, None),
    };
    if request.starts_with("que") {
        let answers = option.filter(|option| option.kind == OptionKind::Other).map(|option| {
            let said = message.unwrap_or(&option.name);
            json!([[said]])
        });
        return json!({"op": "answer", "request": request, "answers": answers});
    }
    let reply = match option.map(|option| option.kind) {
        Some(OptionKind::AllowOnce) => "once",
        Some(OptionKind::AllowAlways) => "always",
        Some(OptionKind::RejectOnce | OptionKind::RejectAlways | OptionKind::Other) | None => "reject",
    };
    // OpenCode takes words with a refusal only, and goes on with the turn then.
    let message = message.filter(|_| reply == "reject");
    json!({"op": "reply", "request": request, "reply": reply, "message": message})
}
