//! Claude Code's control lines: it asks before it uses a tool, and is answered on its standard input.
//!
//! A question is answered from what the log keeps of it, so that a daemon that comes after can do it.

use std::collections::BTreeSet;

use lanyard_core::session::{GateKind, GateOption, OptionKind, Question};
use serde_json::{Value, json};

use crate::agents::driver::{Action, Actions, Answer};
use crate::agents::given::{GivenPart, GivenPrompt};

/// The tool with which the model asks the user something, with choices.
const QUESTION: &str = "AskUserQuestion";
/// What of a tool's input says best what it would do.
const TELLING: [&str; 7] =
    ["command", "file_path", "notebook_path", "url", "query", "pattern", "description"];
/// Tools that were denied and are named in one note.
const DENIED_MAX: usize = 10;

/// A prompt as a line.
pub(in crate::agents) fn prompt(text: &str) -> String {
    spoken(text.into()).to_string()
}

/// The same with an id. Claude Code names it in what it tells of the prompt, and takes no prompt twice.
pub(in crate::agents) fn named_prompt(id: &str, prompt: GivenPrompt<'_>) -> String {
    let mut line = spoken(prompt);
    line["uuid"] = id.into();
    line.to_string()
}

fn spoken(prompt: GivenPrompt<'_>) -> Value {
    let images = prompt.parts.iter().filter_map(GivenPart::image).map(|(attached, data)| {
        let source = json!({ "type": "base64", "media_type": attached.media_type, "data": data });
        json!({ "type": "image", "source": source })
    });
    let mut content: Vec<Value> = images.collect();
    // The API takes no empty text.
    if content.is_empty() || !prompt.text.is_empty() {
        content.push(json!({ "type": "text", "text": prompt.text }));
    }
    let message = json!({ "role": "user", "content": content });
    json!({ "type": "user", "message": message, "parent_tool_use_id": null, "session_id": "" })
}

/// A request of Lanyard's own. Its id is its key too, so that a later daemon recognises the response.
pub(super) fn request(id: String, request: &Value) -> Action {
    let line = json!({ "type": "control_request", "request_id": id, "request": request }).to_string();
    Action::Send { key: id, line }
}

/// A `control_request`: a question, or something Lanyard does not offer.
pub(in crate::agents) fn asked(native: Option<String>, message: &Value) -> Action {
    let (id, request) = (message["request_id"].as_str().unwrap_or_default(), &message["request"]);
    if request["subtype"] != "can_use_tool" {
        let body = json!({ "subtype": "error", "request_id": id, "error": "Lanyard does not offer this" });
        return reply(id, &body);
    }
    let (tool, input) = (request["tool_name"].as_str().unwrap_or("a tool"), &request["input"]);
    let (title, options) = if tool == QUESTION {
        // One with choices fits a gate; more than one at a time does not.
        let [question] = input["questions"].as_array().map_or(&[][..], Vec::as_slice) else {
            return reply(id, &denial(id, "Ask one question at a time."));
        };
        choices(question)
    } else {
        let about = TELLING.iter().find_map(|name| input[*name].as_str());
        let title = about.map_or_else(|| tool.to_owned(), |about| format!("{tool}: {about}"));
        let allow = option("allow", "Allow once", OptionKind::AllowOnce);
        (title, vec![allow, option("deny", "Deny", OptionKind::RejectOnce)])
    };
    let question = Question {
        kind: GateKind::Permission,
        title,
        call: request["tool_use_id"].as_str().map(str::to_owned),
        detail: json!({ "name": tool, "rawInput": input }),
        options,
        request: id.to_owned(),
    };
    Action::Asked { native, question: Box::new(question) }
}

fn choices(question: &Value) -> (String, Vec<GateOption>) {
    let title = question["question"].as_str().unwrap_or("a question").to_owned();
    let labels = question["options"].as_array().into_iter().flatten();
    let mut options: Vec<GateOption> = labels
        .filter_map(|choice| choice["label"].as_str())
        .enumerate()
        .map(|(number, label)| option(&format!("choice{}", number + 1), label, OptionKind::Other))
        .collect();
    options.push(option("reject", "Do not answer", OptionKind::RejectOnce));
    (title, options)
}

fn option(id: &str, name: &str, kind: OptionKind) -> GateOption {
    GateOption { id: id.to_owned(), name: name.to_owned(), kind }
}

/// A `control_cancel_request`: it no longer waits.
pub(in crate::agents) fn withdrawn(message: &Value, out: &mut Actions) {
    if let Some(request) = message["request_id"].as_str() {
        let why = "Claude Code does not ask any more".to_owned();
        out.push(Action::Unasked { request: request.to_owned(), why });
    }
}

pub(in crate::agents) fn answer(question: &Question, answer: &Answer) -> Action {
    let id = &question.request;
    let Answer::Chosen { option, message } = answer else {
        return reply(id, &denial(id, "Nobody answers this any more."));
    };
    let body = match option.kind {
        // Nothing in `updatedInput` stands for the input it asked about.
        OptionKind::AllowOnce | OptionKind::AllowAlways => allowance(id, &json!({})),
        OptionKind::Other => {
            let questions = &question.detail["rawInput"]["questions"];
            let said = message.as_deref().unwrap_or(&option.name);
            let asked = questions[0]["question"].as_str().unwrap_or(&question.title);
            allowance(id, &json!({ "questions": questions, "answers": { asked: said } }))
        }
        OptionKind::RejectOnce | OptionKind::RejectAlways => {
            denial(id, message.as_deref().unwrap_or("This was denied."))
        }
    };
    reply(id, &body)
}

fn allowance(id: &str, input: &Value) -> Value {
    let response = json!({ "behavior": "allow", "updatedInput": input });
    json!({ "subtype": "success", "request_id": id, "response": response })
}

fn denial(id: &str, message: &str) -> Value {
    let response = json!({ "behavior": "deny", "message": message });
    json!({ "subtype": "success", "request_id": id, "response": response })
}

fn reply(id: &str, body: &Value) -> Action {
    let line = json!({ "type": "control_response", "response": body }).to_string();
    Action::Send { key: format!("answer:{id}"), line }
}

/// What was denied in a turn, in words; its `result` lists that. For a program that cannot ask.
pub(in crate::agents) fn denied(result: &Value) -> Option<String> {
    let denials = result["permission_denials"].as_array()?;
    let tools = denials.iter().filter_map(|denial| denial["tool_name"].as_str());
    let tools: BTreeSet<&str> = tools.collect();
    let named = tools.into_iter().take(DENIED_MAX).collect::<Vec<_>>().join(", ");
    let (count, calls) = (denials.len(), if denials.len() == 1 { "call" } else { "calls" });
    (count > 0).then(|| {
        format!(
            "Claude Code denied {count} tool {calls} and asked nobody: {named}; `lanyard agents check` says how to \
             let it ask"
        )
    })
}
