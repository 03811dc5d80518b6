//! JSON lines as `claude -p --output-format stream-json --verbose` writes them, whoever started the program.
//!
//! A subagent is named by the tool call that started it, because every message of it carries that id. Text rule: the parts
//! of a message are passed on as they come, and the whole message only where none of its parts was.

use std::collections::BTreeMap;

use lanyard_core::session::{LimitKind, PlanEntry, PlanEntryState, Signal, TurnOutcome};
use serde_json::Value;

use super::asks;
use crate::agents::driver::{Action, Actions, Child, TextKind, TurnEnd, error_seen, micros};
use crate::agents::limits::{self, LimitReset, LimitSign};

/// Calls and subagents at work that are kept in mind.
const OPEN_MAX: usize = 1024;

/// How long the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agents) enum ClaudeSpan {
    /// For one turn: its subagents and its costs end with its result.
    OneTurn,
    /// For turn after turn. A subagent in the background may work on after a result.
    ManyTurns,
}

/// What a line told beyond actions.
#[derive(Debug)]
pub(in crate::agents) enum ClaudeNews {
    Nothing,
    /// The conversation's id and the program's version.
    Opened {
        native: String,
        version: Option<String>,
    },
    Result(TurnEnd),
}

#[derive(Debug)]
pub(in crate::agents) struct ClaudeLines {
    span: ClaudeSpan,
    /// The main conversation, once it is open.
    main: Option<String>,
    /// Subagents at work.
    children: BTreeMap<String, Subagent>,
    /// In whose conversation a call was made, for calls inside subagents.
    callers: BTreeMap<String, String>,
    /// Subagents by the id that questions name.
    tasks: BTreeMap<String, String>,
    /// The message whose parts the main conversation is streaming.
    streaming: Option<String>,
    /// The last message of which parts were passed on.
    parts: Option<String>,
    /// It asks Lanyard; what it denies otherwise, nobody was asked about.
    asks: bool,
    context: Option<u64>,
    /// The limit that the turn met, by what was said of it before the result.
    limit: ToldLimit,
    /// What the program has cost since its start, by its last word.
    cost: Option<u64>,
}

#[derive(Debug, Default)]
struct ToldLimit {
    kind: Option<LimitKind>,
    reset: Option<LimitReset>,
}

#[derive(Debug, Default)]
struct Subagent {
    /// It is said to be done.
    done: bool,
    /// The call that started it has returned, and its last words are a message like any other.
    background: bool,
    /// Its last message that was passed on.
    last: Option<String>,
    /// The last message whose tokens were counted: each of its parts tells them again.
    counted: Option<String>,
}

impl ClaudeLines {
    pub(in crate::agents) fn new(span: ClaudeSpan, main: Option<String>, asks: bool) -> Self {
        Self {
            span,
            main,
            children: BTreeMap::new(),
            callers: BTreeMap::new(),
            tasks: BTreeMap::new(),
            streaming: None,
            parts: None,
            asks,
            context: None,
            limit: ToldLimit::default(),
            cost: None,
        }
    }

    /// The same for a program that has cost nothing yet.
    pub(super) fn at_start(self) -> Self {
        Self { cost: Some(0), ..self }
    }

    pub(in crate::agents) fn told(&mut self, message: &Value, out: &mut Actions) -> ClaudeNews {
        let native = message["parent_tool_use_id"].as_str().map(str::to_owned);
        match message["type"].as_str().unwrap_or_default() {
            "system" => return self.system(message, out),
            "assistant" => self.assistant(native.as_ref(), message, out),
            "user" => self.user(native.as_deref(), message, out),
            "stream_event" => self.streamed(native, message, out),
            "rate_limit_event" => self.rate_limited(&message["rate_limit_info"]),
            "control_request" => self.asked(message, out),
            "control_cancel_request" => asks::withdrawn(message, out),
            "result" => return ClaudeNews::Result(self.result(message, out)),
            _ => {}
        }
        ClaudeNews::Nothing
    }

    /// Parts of a message may name it only at its start, and questions of a subagent name the task that it began as.
    pub(in crate::agents) fn is_midway(&self) -> bool {
        self.streaming.is_some() || !self.children.is_empty()
    }

    /// Keeps in mind what a line says that an earlier daemon has read.
    pub(in crate::agents) fn learn(&mut self, message: &Value) {
        let mut passed_on = Actions::new();
        let _ = self.told(message, &mut passed_on);
    }

    /// The task that a subagent runs as.
    pub(super) fn task_of(&self, child: &str) -> Option<&str> {
        self.tasks.iter().find(|(_, held)| *held == child).map(|(task, _)| task.as_str())
    }

    /// Nothing is at work any more: subagents that did not tell of their end have come to it.
    pub(super) fn rest(&mut self, out: &mut Actions) {
        for (child, state) in std::mem::take(&mut self.children) {
            let end = if state.done { TurnEnd::Done(TurnOutcome::Completed) } else { TurnEnd::Cancelled };
            out.push(Action::Finished { native: Some(child), turn: None, end });
        }
        self.callers.clear();
        self.tasks.clear();
        self.streaming = None;
    }

    fn system(&mut self, message: &Value, out: &mut Actions) -> ClaudeNews {
        let text = |key: &str| message[key].as_str().map(str::to_owned);
        match message["subtype"].as_str().unwrap_or_default() {
            "init" => {
                if let Some(native) = text("session_id") {
                    self.main = Some(native.clone());
                    return ClaudeNews::Opened { native, version: text("claude_code_version") };
                }
            }
            "task_started" => self.child(message, out),
            "task_notification" => {
                if let Some(native) = text("tool_use_id") {
                    self.notified(native, message, out);
                }
            }
            "compact_boundary" => {
                let tokens = |key: &str| message["compact_metadata"][key].as_u64().unwrap_or(0);
                let (before, after) = (tokens("pre_tokens"), tokens("post_tokens"));
                self.context = Some(after);
                let signal = Signal::ContextCompacted {
                    size_before: before,
                    size_after: after,
                    anchors_survived: Vec::new(),
                };
                out.push(Action::Saw { native: None, signal });
            }
            _ => {}
        }
        ClaudeNews::Nothing
    }

    fn child(&mut self, message: &Value, out: &mut Actions) {
        let text = |key: &str| message[key].as_str().map(str::to_owned);
        let Some(native) = text("tool_use_id") else {
            return;
        };
        if message["task_type"].as_str().is_some_and(|kind| kind != "local_agent") {
            return;
        }
        self.open(&native);
        if let Some(child) = self.children.get_mut(&native) {
            child.background = message["is_backgrounded"] == true;
        }
        if let Some(task) = text("task_id").filter(|_| self.tasks.len() < OPEN_MAX) {
            self.tasks.insert(task, native.clone());
        }
        // By this name the hook knows it.
        let also = self.main.as_ref().zip(text("task_id"));
        out.push(Action::Child(Box::new(Child {
            also: also.map(|(main, task)| format!("{main}/{task}")).into_iter().collect(),
            parent: self.callers.get(&native).cloned(),
            title: text("description"),
            agent: text("subagent_type"),
            prompt: text("prompt").unwrap_or_default(),
            native,
        })));
    }

    fn asked(&mut self, message: &Value, out: &mut Actions) {
        let native = message["request"]["agent_id"].as_str().and_then(|task| self.tasks.get(task)).cloned();
        out.push(asks::asked(native, message));
    }

    fn open(&mut self, child: &str) {
        if self.children.len() < OPEN_MAX {
            self.children.entry(child.to_owned()).or_default();
        }
    }

    /// The end of a subagent. One that ends well says its last words in the result of the call that started it, which
    /// comes right after; one in the background has had its result already.
    fn notified(&mut self, child: String, message: &Value, out: &mut Actions) {
        let Some(state) = self.children.get_mut(&child) else {
            return;
        };
        let summary = message["summary"].as_str().unwrap_or_default().to_owned();
        let end = match message["status"].as_str().unwrap_or_default() {
            "completed" if state.background && self.span == ClaudeSpan::ManyTurns => {
                if state.last.is_none() && !summary.is_empty() {
                    let (native, kind) = (Some(child.clone()), TextKind::Message);
                    out.push(Action::Text { native, kind, text: summary, message: None });
                }
                TurnEnd::Done(TurnOutcome::Completed)
            }
            "completed" => {
                state.done = true;
                return;
            }
            "failed" => TurnEnd::Failed(summary),
            _ => TurnEnd::Cancelled,
        };
        self.children.remove(&child);
        self.tasks.retain(|_, held| *held != child);
        out.push(Action::Finished { native: Some(child), turn: None, end });
    }

    fn assistant(&mut self, native: Option<&String>, message: &Value, out: &mut Actions) {
        let body = &message["message"];
        if let Some(child) = native {
            self.open(child);
            self.count(child, body, out);
        } else if body["model"] != "<synthetic>" {
            self.context = Some(input(&body["usage"]).saturating_add(output(&body["usage"])));
        }
        let failed = !message["error"].is_null();
        let id = body["id"].as_str().map(str::to_owned);
        // Subagents' messages, and those the program made up itself, come only whole.
        let whole = native.is_some() || id.is_none() || self.parts != id;
        for block in body["content"].as_array().map_or(&[][..], Vec::as_slice) {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str().unwrap_or_default() {
                "text" if failed => {
                    let signal = error_seen(text("text"));
                    out.push(Action::Saw { native: native.cloned(), signal });
                }
                "text" if whole => {
                    let (kind, text) = (TextKind::Message, text("text"));
                    if let Some(child) = native.and_then(|child| self.children.get_mut(child)) {
                        child.last = Some(text.clone());
                    }
                    out.push(Action::Text { native: native.cloned(), kind, text, message: id.clone() });
                }
                "thinking" if whole => {
                    let (kind, text) = (TextKind::Thought, text("thinking"));
                    out.push(Action::Text { native: native.cloned(), kind, text, message: id.clone() });
                }
                "tool_use" | "server_tool_use" => self.called(native, block, out),
                _ => {}
            }
        }
    }

    /// The tokens of a subagent's message. The program's own sum at the end is the main conversation's alone.
    fn count(&mut self, child: &str, body: &Value, out: &mut Actions) {
        let Some(state) = self.children.get_mut(child) else { return };
        let id = body["id"].as_str().map(str::to_owned);
        if id.is_none() || state.counted == id {
            return;
        }
        state.counted = id;
        out.extend(used(child, &body["usage"]));
    }

    fn called(&mut self, native: Option<&String>, block: &Value, out: &mut Actions) {
        let Some(call) = block["id"].as_str().map(str::to_owned) else {
            return;
        };
        if let Some(native) = native
            && self.callers.len() < OPEN_MAX
        {
            self.callers.insert(call.clone(), native.clone());
        }
        let tool = block["name"].as_str().unwrap_or_default().to_owned();
        let plan = (tool == "TodoWrite").then(|| plan(&block["input"]["todos"]));
        let signal = Signal::ToolCalled { call, tool, arguments: block["input"].clone() };
        out.push(Action::Saw { native: native.cloned(), signal });
        if let Some(entries) = plan {
            out.push(Action::Saw { native: native.cloned(), signal: Signal::Planned { entries } });
        }
    }

    fn user(&mut self, native: Option<&str>, message: &Value, out: &mut Actions) {
        let saw = |signal: Signal| Action::Saw { native: native.map(str::to_owned), signal };
        let result = &message["tool_use_result"];
        for block in message["message"]["content"].as_array().map_or(&[][..], Vec::as_slice) {
            let Some(call) = block["tool_use_id"].as_str().filter(|_| block["type"] == "tool_result") else {
                continue;
            };
            if result["agentId"].is_string() && result["status"] == "completed" {
                self.last_words(call, result, out);
            }
            if result["isAsync"] == true
                && let Some(child) = self.children.get_mut(call)
            {
                child.background = true;
            }
            self.callers.remove(call);
            let (is_error, content) = (block["is_error"] == true, block["content"].clone());
            out.push(saw(Signal::ToolReturned { call: call.to_owned(), is_error, content }));
            out.extend(changed(result).map(saw));
        }
    }

    fn last_words(&mut self, child: &str, result: &Value, out: &mut Actions) {
        let last = self.children.remove(child).and_then(|child| child.last);
        self.tasks.retain(|_, held| *held != child);
        let mut news = false;
        for block in result["content"].as_array().map_or(&[][..], Vec::as_slice) {
            // Some versions have said them as a message already.
            if let Some(text) = block["text"].as_str().filter(|text| last.as_deref() != Some(text)) {
                let (native, text) = (Some(child.to_owned()), text.to_owned());
                out.push(Action::Text { native, kind: TextKind::Message, text, message: None });
                news = true;
            }
        }
        if news {
            // The tokens of that last message, which nobody has told yet.
            out.extend(used(child, &result["usage"]));
        }
        let end = TurnEnd::Done(TurnOutcome::Completed);
        out.push(Action::Finished { native: Some(child.to_owned()), turn: None, end });
    }

    fn streamed(&mut self, native: Option<String>, message: &Value, out: &mut Actions) {
        let (event, delta) = (&message["event"], &message["event"]["delta"]);
        let kind = event["type"].as_str().unwrap_or_default();
        if native.is_none() {
            match kind {
                "message_start" => self.streaming = event["message"]["id"].as_str().map(str::to_owned),
                "message_stop" => self.streaming = None,
                "message_delta" if input(&event["usage"]) > 0 => {
                    let usage = &event["usage"];
                    self.context = Some(input(usage).saturating_add(output(usage)));
                }
                _ => {}
            }
        }
        let (kind, text) = match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => (TextKind::Message, delta["text"].as_str()),
            "thinking_delta" => (TextKind::Thought, delta["thinking"].as_str()),
            _ => return,
        };
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let message = message["api_message_id"].as_str().map(str::to_owned);
            let (text, message) = (text.to_owned(), message.or_else(|| self.streaming.clone()));
            self.parts.clone_from(&message);
            out.push(Action::Text { native, kind, text, message });
        }
    }

    fn result(&mut self, message: &Value, out: &mut Actions) -> TurnEnd {
        (self.streaming, self.parts) = (None, None);
        let told = std::mem::take(&mut self.limit);
        if self.span == ClaudeSpan::OneTurn {
            self.rest(out);
        }
        let usage = &message["usage"];
        let (input, output, cost) = (input(usage), output(usage), self.paid(message));
        if (input, output, cost) != (0, 0, 0) {
            let signal = Signal::UsageReported {
                input_tokens: input,
                output_tokens: output,
                context_tokens: self.context,
                cost_micros: cost,
            };
            out.push(Action::Saw { native: None, signal });
        }
        let denied = if self.asks { None } else { asks::denied(message) };
        let errors = message["errors"].as_array().map_or(&[][..], Vec::as_slice);
        let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
        let subtype = message["subtype"].as_str().unwrap_or_default();
        let words = message["result"].as_str().map_or_else(|| errors.join("; "), str::to_owned);
        let words = if words.is_empty() { subtype.to_owned() } else { words };
        let why = message["terminal_reason"].as_str().unwrap_or_default();
        match subtype {
            limit if limit.starts_with("error_max_") => TurnEnd::Limit(words),
            "success" if message["is_error"] != true && message["stop_reason"] == "refusal" => {
                TurnEnd::Done(TurnOutcome::Refused)
            }
            "success" if message["is_error"] != true => {
                let done = TurnOutcome::Completed;
                denied.map_or(TurnEnd::Done(done), |note| TurnEnd::Noted(done, note))
            }
            _ if why.starts_with("aborted") => TurnEnd::Cancelled,
            _ => failed(message, words, told),
        }
    }

    /// `rate_limit_event`: the state of a usage window.
    fn rate_limited(&mut self, info: &Value) {
        if info["status"] == "rejected" {
            self.limit.kind = Some(LimitKind::Usage);
            self.limit.reset = info["resetsAt"].as_u64().map(LimitReset::at_epoch);
        }
    }

    /// What a result cost. The program's own sum begins with its process.
    fn paid(&mut self, message: &Value) -> u64 {
        let total = message["total_cost_usd"].as_f64().map_or(0, micros);
        let before = self.cost.replace(total);
        if self.span == ClaudeSpan::OneTurn {
            return total;
        }
        if let Some(models) = message["model_usage_since_last_result"].as_object() {
            let costs = models.values().filter_map(|model| model["costUSD"].as_f64()).map(micros);
            return costs.fold(0, u64::saturating_add);
        }
        before.map_or(0, |before| total.saturating_sub(before))
    }
}

/// A failure, or the limit that it is. What the program said of the limit before its result counts most.
fn failed(message: &Value, words: String, told: ToldLimit) -> TurnEnd {
    let of_words = limits::in_words(&words);
    let status = message["api_error_status"].as_u64();
    let kind = of_words.as_ref().map(|sign| sign.kind).or(told.kind).or(status.and_then(limits::of_status));
    match kind {
        Some(kind) => {
            let reset = of_words.and_then(|sign| sign.reset).or(told.reset);
            TurnEnd::Limited(LimitSign { kind, text: words, reset })
        }
        None => TurnEnd::Failed(words),
    }
}

/// What a message of a subagent cost; nothing where it does not say.
fn used(child: &str, usage: &Value) -> Option<Action> {
    let (input, output) = (input(usage), output(usage));
    let context = Some(input.saturating_add(output));
    let signal = Signal::UsageReported {
        input_tokens: input,
        output_tokens: output,
        context_tokens: context,
        cost_micros: 0,
    };
    (context != Some(0)).then(|| Action::Saw { native: Some(child.to_owned()), signal })
}

/// All the model read, from its cache or not.
fn input(usage: &Value) -> u64 {
    let keys = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    keys.iter().fold(0, |sum: u64, key| sum.saturating_add(usage[*key].as_u64().unwrap_or(0)))
}

fn output(usage: &Value) -> u64 {
    usage["output_tokens"].as_u64().unwrap_or(0)
}

/// The file a tool changed, by the result the program keeps for itself.
fn changed(result: &Value) -> Option<Signal> {
    let path = result["filePath"].as_str()?.to_owned();
    let hunks = result["structuredPatch"].as_array()?;
    let (added, removed) = if result["type"] == "create" {
        (result["content"].as_str().unwrap_or_default().lines().count() as u64, 0)
    } else {
        let lines = hunks.iter().filter_map(|hunk| hunk["lines"].as_array()).flatten();
        let lines = lines.filter_map(Value::as_str);
        lines.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
            Some(b'+') => (added + 1, removed),
            Some(b'-') => (added, removed + 1),
            _ => (added, removed),
        })
    };
    Some(Signal::FileChanged { path, added: Some(added), removed: Some(removed) })
}

fn plan(todos: &Value) -> Vec<PlanEntry> {
    let status = |todo: &Value| match todo["status"].as_str().unwrap_or_default() {
        "completed" => PlanEntryState::Completed,
        "in_progress" => PlanEntryState::InProgress,
        _ => PlanEntryState::Pending,
    };
    let text = |todo: &Value| todo["content"].as_str().unwrap_or_default().to_owned();
    let todos = todos.as_array().map_or(&[][..], Vec::as_slice);
    todos.iter().map(|todo| PlanEntry { text: text(todo), status: status(todo) }).collect()
}
