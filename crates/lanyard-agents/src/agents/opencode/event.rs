//! Events of `OpenCode`, with the bridge's notes, as actions.

use lanyard_core::session::{GateKind, GateOption, OptionKind, PlanEntry, PlanEntryState, Question, Signal};
use serde_json::{Value, json};

use super::{OpenCode, end_in, orders, turn_in};
use crate::agents::driver::{Action, Actions, Child, TextKind, error_seen, micros};

impl OpenCode {
    pub(super) fn event(&mut self, event: &Value, note: &Value, out: &mut Actions) {
        let properties = &event["properties"];
        let session = properties["sessionID"].as_str().unwrap_or_default();
        let native = self.native_of(session);
        match event["type"].as_str().unwrap_or_default() {
            "message.part.delta" => text(native, properties, note, out),
            "message.part.updated" => part(native.as_deref(), &properties["part"], note, out),
            "session.created" => self.child(&properties["info"], note, out),
            "session.idle" => finished(native, note, out),
            "session.status" => {
                let status = &properties["status"];
                let text = format!(
                    "attempt {} failed and is repeated: {}",
                    status["attempt"],
                    status["message"].as_str().unwrap_or("no reason was given"),
                );
                out.push(Action::Saw { native, signal: error_seen(text) });
            }
            "session.compacted" => {
                let count = |name: &str| note[name].as_u64().unwrap_or(0);
                let signal = Signal::ContextCompacted {
                    size_before: count("before"),
                    size_after: count("after"),
                    anchors_survived: Vec::new(),
                };
                out.push(Action::Saw { native, signal });
            }
            "todo.updated" => {
                out.push(Action::Saw {
                    native,
                    signal: Signal::Planned { entries: plan(&properties["todos"]) },
                });
            }
            "permission.asked" => permission(native, properties, out),
            "question.asked" => question(native, properties, out),
            "permission.replied" | "question.replied" | "question.rejected" => replied(properties, note, out),
            "session.error" => {
                let what = properties["error"]["data"]["message"].as_str().unwrap_or("unknown").to_owned();
                out.push(Action::Odd { what: format!("an error of no conversation: {what}") });
            }
            other => out.push(Action::Odd { what: format!("an event of no known kind: {other}") }),
        }
    }

    fn child(&self, info: &Value, note: &Value, out: &mut Actions) {
        let Some(native) = info["id"].as_str() else { return };
        let said = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let title = said(&info["title"]);
        let child = Child {
            native: native.to_owned(),
            also: Vec::new(),
            parent: info["parentID"].as_str().and_then(|parent| self.native_of(parent)),
            agent: said(&info["agent"]),
            prompt: said(&note["prompt"]).or_else(|| title.clone()).unwrap_or_default(),
            title,
        };
        out.push(Action::Child(Box::new(child)));
    }
}

fn text(native: Option<String>, properties: &Value, note: &Value, out: &mut Actions) {
    let Some(text) = properties["delta"].as_str().filter(|text| !text.is_empty()) else { return };
    let kind = match note["kind"].as_str() {
        // A summary is what the agent tells itself.
        Some("reasoning" | "summary") => TextKind::Thought,
        Some(_) | None => TextKind::Message,
    };
    let message = properties["partID"].as_str().or(properties["messageID"].as_str()).map(str::to_owned);
    out.push(Action::Text { native, kind, text: text.to_owned(), message });
}

fn part(native: Option<&str>, part: &Value, note: &Value, out: &mut Actions) {
    let mut saw = |signal: Signal| out.push(Action::Saw { native: native.map(str::to_owned), signal });
    match part["type"].as_str() {
        Some("tool") => {
            if let Some((called, returned)) = tool(part, note) {
                called.into_iter().chain(returned).for_each(&mut saw);
            }
        }
        Some("step-finish") => saw(usage(part, note["summary"] == true)),
        Some(_) | None => {}
    }
    for file in note["files"].as_array().into_iter().flatten() {
        let Some(path) = file["path"].as_str() else { continue };
        let (added, removed) = (file["added"].as_u64(), file["removed"].as_u64());
        saw(Signal::FileChanged { path: path.to_owned(), added, removed });
    }
}

/// The call, unless it was said before, and the return, once there is one.
fn tool(part: &Value, note: &Value) -> Option<(Option<Signal>, Option<Signal>)> {
    let state = &part["state"];
    let call = part["callID"].as_str()?.to_owned();
    let called = note["was"].is_null().then(|| Signal::ToolCalled {
        call: call.clone(),
        tool: part["tool"].as_str().unwrap_or("unknown").to_owned(),
        arguments: state["input"].clone(),
    });
    let returned = match state["status"].as_str()? {
        "completed" => Some((false, state["output"].clone())),
        "error" => Some((true, state["error"].clone())),
        _ => None,
    };
    let returned = returned.map(|(is_error, content)| Signal::ToolReturned { call, is_error, content });
    Some((called, returned))
}

fn usage(part: &Value, is_summary: bool) -> Signal {
    let tokens = &part["tokens"];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let cache = &tokens["cache"];
    let input =
        count(&tokens["input"]).saturating_add(count(&cache["read"])).saturating_add(count(&cache["write"]));
    let output = count(&tokens["output"]).saturating_add(count(&tokens["reasoning"]));
    // The step that sums up says nothing of the size of the conversation.
    let context = (!is_summary).then(|| tokens["total"].as_u64().unwrap_or(input.saturating_add(output)));
    let cost = part["cost"].as_f64().map_or(0, micros);
    Signal::UsageReported {
        input_tokens: input,
        output_tokens: output,
        context_tokens: context,
        cost_micros: cost,
    }
}

fn plan(todos: &Value) -> Vec<PlanEntry> {
    let entry = |todo: &Value| {
        let status = match todo["status"].as_str() {
            // What was given up is done with.
            Some("completed" | "cancelled") => PlanEntryState::Completed,
            Some("in_progress") => PlanEntryState::InProgress,
            Some(_) | None => PlanEntryState::Pending,
        };
        Some(PlanEntry { text: todo["content"].as_str()?.to_owned(), status })
    };
    todos.as_array().into_iter().flatten().filter_map(entry).collect()
}

fn permission(native: Option<String>, properties: &Value, out: &mut Actions) {
    let Some(request) = properties["id"].as_str() else { return };
    let permission = properties["permission"].as_str().unwrap_or("something");
    let patterns: Vec<&str> =
        properties["patterns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let about = properties["metadata"]["command"].as_str().map_or_else(|| patterns.join(", "), str::to_owned);
    let title = if about.is_empty() { permission.to_owned() } else { format!("{permission}: {about}") };
    let detail = json!({
        "permission": permission,
        "patterns": properties["patterns"],
        "always": properties["always"],
        "metadata": properties["metadata"],
    });
    let options = vec![
        option("once", "Allow once", OptionKind::AllowOnce),
        option("always", "Allow always", OptionKind::AllowAlways),
        option("reject", "Reject", OptionKind::RejectOnce),
    ];
    out.push(asked(native, properties, request, title, detail, options));
}

/// A question of the model itself. One with choices fits a gate; more than one at a time does not.
fn question(native: Option<String>, properties: &Value, out: &mut Actions) {
    let Some(request) = properties["id"].as_str() else { return };
    let [question] = properties["questions"].as_array().map_or(&[][..], Vec::as_slice) else {
        let refusal = json!({"op": "answer", "request": request});
        out.push(orders::send(&format!("answer:{request}"), &refusal));
        out.push(Action::Odd {
            what: "the model asked several questions at once, and was refused".to_owned(),
        });
        return;
    };
    let title = question["question"].as_str().unwrap_or("a question").to_owned();
    let labels = question["options"].as_array().into_iter().flatten();
    let mut options: Vec<GateOption> = labels
        .filter_map(|choice| choice["label"].as_str())
        .enumerate()
        .map(|(number, label)| option(&format!("choice{}", number + 1), label, OptionKind::Other))
        .collect();
    options.push(option("reject", "Do not answer", OptionKind::RejectOnce));
    out.push(asked(native, properties, request, title, question.clone(), options));
}

fn option(id: &str, name: &str, kind: OptionKind) -> GateOption {
    GateOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn asked(
    native: Option<String>,
    properties: &Value,
    request: &str,
    title: String,
    detail: Value,
    options: Vec<GateOption>,
) -> Action {
    let question = Question {
        kind: GateKind::Permission,
        title,
        call: properties["tool"]["callID"].as_str().map(str::to_owned),
        detail,
        options,
        request: request.to_owned(),
    };
    Action::Asked { native, question: Box::new(question) }
}

fn replied(properties: &Value, note: &Value, out: &mut Actions) {
    let Some(request) = properties["requestID"].as_str().filter(|_| note["ours"] != true) else { return };
    let why = match properties["reply"].as_str() {
        Some("void") => "the work it was about has ended".to_owned(),
        Some("gone") => "OpenCode does not ask any more".to_owned(),
        Some(reply) => format!("answered elsewhere: {reply}"),
        None => "answered elsewhere".to_owned(),
    };
    out.push(Action::Unasked { request: request.to_owned(), why });
}

fn finished(native: Option<String>, note: &Value, out: &mut Actions) {
    let turn = turn_in(note);
    if native.is_none() && turn.is_none() {
        // A compaction between turns, or a word that came too late to join one.
        let what = "the agent worked without a prompt of this run, and is idle again".to_owned();
        out.push(Action::Odd { what });
        return;
    }
    out.push(Action::Finished { native, turn, end: end_in(note) });
}
