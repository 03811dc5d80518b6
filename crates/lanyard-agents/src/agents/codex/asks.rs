//! Codex's questions, and how they are answered. A question carries all that its answer needs: the driver that answers
//! may not be the one that heard it.

use lanyard_core::session::{GateKind, GateOption, OptionKind, Question};
use serde_json::{Value, json};

use super::wire;
use crate::agents::driver::{Action, Answer};

const NO_SUCH_METHOD: i64 = -32601;

/// The question in a request, or the reply to one that no person can answer.
pub(super) fn question(
    method: &str,
    request: &str,
    params: &Value,
    changes: Option<&Value>,
) -> Result<Question, Value> {
    let (title, options) = match method {
        "item/commandExecution/requestApproval" => (command(params), decisions(params)),
        "item/fileChange/requestApproval" => (files(params, changes), decisions(params)),
        "item/permissions/requestApproval" => (reason(params, "More permissions"), grants()),
        "mcpServer/elicitation/request" if !formless(params) => {
            return Err(json!({ "result": { "action": "decline" } }));
        }
        "mcpServer/elicitation/request" => {
            (params["message"].as_str().unwrap_or("An MCP server asks").to_owned(), consents(params))
        }
        "execCommandApproval" => (command(params), reviews()),
        "applyPatchApproval" => (reason(params, "Change files"), reviews()),
        _ => {
            let message = format!("this client has no `{method}`");
            return Err(json!({ "error": { "code": NO_SUCH_METHOD, "message": message } }));
        }
    };
    let call = params["itemId"].as_str().or_else(|| params["callId"].as_str()).map(str::to_owned);
    let mut detail = if params.is_object() { params.clone() } else { json!({}) };
    detail["method"] = method.into();
    if let Some(changes) = changes {
        detail["changes"] = changes.clone();
    }
    Ok(Question { kind: GateKind::Permission, title, call, detail, options, request: request.to_owned() })
}

/// The result that answers a question.
pub(super) fn result(question: &Question, answer: &Answer) -> Value {
    let detail = &question.detail;
    let chosen = match answer {
        Answer::Chosen { option, .. } => Some(option.id.as_str()),
        Answer::Void => None,
    };
    match detail["method"].as_str().unwrap_or_default() {
        "item/permissions/requestApproval" => match chosen {
            Some(scope @ ("turn" | "session")) => {
                json!({ "permissions": detail["permissions"], "scope": scope })
            }
            _ => json!({ "permissions": {} }),
        },
        "mcpServer/elicitation/request" => match chosen.unwrap_or("cancel").split_once(':') {
            Some((action, persist)) => {
                json!({ "action": action, "content": {}, "_meta": { "persist": persist } })
            }
            None if chosen == Some("accept") => json!({ "action": "accept", "content": {} }),
            None => json!({ "action": chosen.unwrap_or("cancel") }),
        },
        "execCommandApproval" | "applyPatchApproval" => json!({ "decision": review(chosen, answer) }),
        _ => json!({ "decision": decision(detail, chosen.unwrap_or("cancel")) }),
    }
}

/// A person's words with a no: Codex takes them only as words put into the turn.
pub(super) fn words(question: &Question, answer: &Answer) -> Option<Action> {
    let Answer::Chosen { option, message: Some(message) } = answer else {
        return None;
    };
    let (thread, turn) = (question.detail["threadId"].as_str()?, question.detail["turnId"].as_str()?);
    let goes_on = option.id != "cancel" && !message.trim().is_empty();
    goes_on.then(|| {
        wire::steer(
            &format!("steer:answer:{}", question.request),
            thread,
            turn,
            &wire::input(message.as_str().into()),
        )
    })
}

fn review(chosen: Option<&str>, answer: &Answer) -> Value {
    match chosen {
        Some(yes @ ("approved" | "approved_for_session")) => yes.into(),
        Some("denied") => {
            let words = match answer {
                Answer::Chosen { message: Some(message), .. } => message.as_str(),
                Answer::Chosen { message: None, .. } | Answer::Void => "rejected by the user",
            };
            json!({ "denied": { "rejection": words } })
        }
        _ => "abort".into(),
    }
}

/// A decision by its name; those with content are found among the ones that were offered.
fn decision(detail: &Value, chosen: &str) -> Value {
    let offered = detail["availableDecisions"].as_array().map_or(&[][..], Vec::as_slice);
    offered.iter().find(|offer| offer.get(chosen).is_some()).cloned().unwrap_or_else(|| chosen.into())
}

fn decisions(params: &Value) -> Vec<GateOption> {
    let Some(offered) = params["availableDecisions"].as_array() else {
        return ["accept", "acceptForSession", "decline", "cancel"]
            .into_iter()
            .map(|name| named(name, &Value::Null))
            .collect();
    };
    let mut options: Vec<GateOption> = offered
        .iter()
        .filter_map(|offer| match offer.as_object().and_then(|offer| offer.iter().next()) {
            Some((name, content)) => Some(named(name, content)),
            None => offer.as_str().map(|name| named(name, &Value::Null)),
        })
        .collect();
    // Codex takes a plain no even where it offers only to end the turn.
    if !options.iter().any(|option| option.kind == OptionKind::RejectOnce) {
        let last = options.iter().position(|option| option.id == "cancel").unwrap_or(options.len());
        options.insert(last, named("decline", &Value::Null));
    }
    options
}

fn named(decision: &str, content: &Value) -> GateOption {
    let (name, kind) = match decision {
        "accept" => ("Allow".to_owned(), OptionKind::AllowOnce),
        "acceptForSession" => ("Allow for this session".to_owned(), OptionKind::AllowAlways),
        "acceptWithExecpolicyAmendment" => {
            let words = content["execpolicy_amendment"].as_array().map_or(&[][..], Vec::as_slice);
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            (format!("Always allow `{}`", words.join(" ")), OptionKind::AllowAlways)
        }
        "applyNetworkPolicyAmendment" => {
            let rule = &content["network_policy_amendment"];
            let host = rule["host"].as_str().unwrap_or("this host");
            if rule["action"] == "allow" {
                (format!("Always allow {host}"), OptionKind::AllowAlways)
            } else {
                (format!("Never allow {host}"), OptionKind::RejectAlways)
            }
        }
        "decline" => ("Reject".to_owned(), OptionKind::RejectOnce),
        "cancel" => ("Reject and end the turn".to_owned(), OptionKind::Other),
        other => (other.to_owned(), OptionKind::Other),
    };
    GateOption { id: decision.to_owned(), name, kind }
}

fn grants() -> Vec<GateOption> {
    vec![
        option("turn", "Grant for this turn", OptionKind::AllowOnce),
        option("session", "Grant for this session", OptionKind::AllowAlways),
        option("decline", "Reject", OptionKind::RejectOnce),
    ]
}

fn consents(params: &Value) -> Vec<GateOption> {
    let mut options = vec![option("accept", "Allow", OptionKind::AllowOnce)];
    let persist = params["_meta"]["persist"].as_array().map_or(&[][..], Vec::as_slice);
    for scope in persist.iter().filter_map(Value::as_str) {
        let (id, name) = (format!("accept:{scope}"), format!("Allow ({scope})"));
        options.push(GateOption { id, name, kind: OptionKind::AllowAlways });
    }
    options.push(option("decline", "Reject", OptionKind::RejectOnce));
    options.push(option("cancel", "Reject and end the turn", OptionKind::Other));
    options
}

fn reviews() -> Vec<GateOption> {
    vec![
        option("approved", "Allow", OptionKind::AllowOnce),
        option("approved_for_session", "Allow for this session", OptionKind::AllowAlways),
        option("denied", "Reject", OptionKind::RejectOnce),
        option("abort", "Reject and end the turn", OptionKind::Other),
    ]
}

fn option(id: &str, name: &str, kind: OptionKind) -> GateOption {
    GateOption { id: id.to_owned(), name: name.to_owned(), kind }
}

/// Whether a yes is all that an MCP server wants to know.
fn formless(params: &Value) -> bool {
    params["mode"] != "url"
        && params["requestedSchema"]["properties"].as_object().is_none_or(serde_json::Map::is_empty)
}

fn command(params: &Value) -> String {
    let words = params["command"].as_array().map_or(&[][..], Vec::as_slice);
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    match params["command"].as_str() {
        Some(command) => command.to_owned(),
        None if !words.is_empty() => words.join(" "),
        None => match params["networkApprovalContext"]["host"].as_str() {
            Some(host) => format!("Reach {host}"),
            None => reason(params, "Run a command"),
        },
    }
}

fn files(params: &Value, changes: Option<&Value>) -> String {
    let changes = changes.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let paths: Vec<&str> = changes.iter().filter_map(|change| change["path"].as_str()).collect();
    if paths.is_empty() { reason(params, "Change files") } else { format!("Change {}", paths.join(", ")) }
}

fn reason(params: &Value, otherwise: &str) -> String {
    params["reason"].as_str().unwrap_or(otherwise).to_owned()
}
