//! What Codex tells unasked: turns, items, text, plans, tokens.

use lanyard_core::session::{LimitKind, PlanEntry, PlanEntryState, Signal, TurnOutcome};
use serde_json::Value;

use super::threads::Item;
use super::{Codex, items};
use crate::agents::driver::{Action, Actions, Child, TextKind, TurnEnd, error_seen};
use crate::agents::limits::{self, LimitSign};

impl Codex {
    pub(super) fn noticed(&mut self, method: &str, params: &Value, out: &mut Actions) {
        match method {
            "warning" | "guardianWarning" => odd(&params["message"], out),
            "configWarning" | "deprecationNotice" => odd(&params["summary"], out),
            _ => {}
        }
        // Before the greeting's end nothing is said of a conversation.
        if self.main.is_none() {
            return;
        }
        let Some(name) = params["threadId"].as_str() else {
            return;
        };
        self.heard(method, name, params, out);
        let native = self.native(name);
        match method {
            "turn/completed" => self.ended(name, &params["turn"], out),
            "item/started" => self.item_started(name, &params["item"], out),
            "item/completed" => self.item_completed(name, &params["item"], out),
            "item/agentMessage/delta" | "item/plan/delta" => {
                self.part(name, params, TextKind::Message, out);
            }
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.part(name, params, TextKind::Thought, out);
            }
            "item/reasoning/summaryPartAdded" if params["summaryIndex"].as_u64() > Some(0) => {
                let (kind, text) = (TextKind::Thought, "\n\n".to_owned());
                let message = params["itemId"].as_str().map(str::to_owned);
                out.push(Action::Text { native, kind, text, message });
            }
            "turn/plan/updated" => {
                out.push(Action::Saw { native, signal: Signal::Planned { entries: plan(&params["plan"]) } });
            }
            "thread/tokenUsage/updated" => self.used(name, &params["tokenUsage"], out),
            "error" => {
                let text = params["error"]["message"].as_str().unwrap_or("an error without words");
                let again = if params["willRetry"] == true { " (it tries again)" } else { "" };
                out.push(Action::Saw { native, signal: error_seen(format!("{text}{again}")) });
            }
            "mcpServer/startupStatus/updated" if params["status"] == "failed" => {
                let server = params["name"].as_str().unwrap_or_default();
                let why = params["error"].as_str().unwrap_or("no reason given");
                let text = format!("MCP server {server} did not start: {why}");
                out.push(Action::Saw { native, signal: error_seen(text) });
            }
            "serverRequest/resolved" => {
                let request = params["requestId"].to_string();
                if self.open.remove(&request) {
                    let why = "the agent no longer waits".to_owned();
                    out.push(Action::Unasked { request, why });
                }
            }
            _ => {}
        }
    }

    /// Learns from any notification: the id of the running turn, and subagents that nobody announced.
    fn heard(&mut self, method: &str, name: &str, params: &Value, out: &mut Actions) {
        let begins = method == "turn/started" || method == "item/started";
        if self.whole && begins && self.native(name).is_some() {
            let announced = self.threads.get(name).is_some_and(|thread| thread.announced);
            if !announced && let Some((parent, prompt)) = self.threads.spawning() {
                self.announce(name, &parent, None, &prompt, out);
            }
        }
        let turn = match method {
            "turn/started" => &params["turn"]["id"],
            // What a thread says of its past when it is taken up again names turns that do not run.
            "turn/completed" | "thread/tokenUsage/updated" => &Value::Null,
            _ => &params["turnId"],
        };
        if let Some(turn) = turn.as_str() {
            self.runs(name, turn, out);
        }
    }

    fn announce(&mut self, name: &str, parent: &str, title: Option<&str>, prompt: &str, out: &mut Actions) {
        let parent = self.native(parent);
        let Some(thread) = self.threads.of(name) else {
            return;
        };
        if std::mem::replace(&mut thread.announced, true) {
            return;
        }
        thread.total.get_or_insert((0, 0));
        out.push(Action::Child(Box::new(Child {
            native: name.to_owned(),
            also: Vec::new(),
            parent,
            title: title.map(str::to_owned),
            agent: None,
            prompt: prompt.to_owned(),
        })));
    }

    fn ended(&mut self, name: &str, turn: &Value, out: &mut Actions) {
        let native = self.native(name);
        let Some(thread) = self.threads.of(name) else {
            return;
        };
        let id = turn["id"].as_str();
        let ours = thread.turn.is_some()
            && (thread.expected.is_none() || thread.expected.as_deref() == id)
            && self.unsent.as_ref().is_none_or(|unsent| unsent.thread != name);
        if ours || native.is_some() {
            let turn_id = thread.turn;
            thread.over();
            out.push(Action::Finished { native, turn: turn_id, end: end(turn) });
        } else if self.compacting {
            self.compacting = false;
            thread.running = None;
            self.send_unsent(out);
        } else {
            thread.running = None;
            out.push(Action::Odd { what: "codex ended a turn that nobody here began".to_owned() });
        }
    }

    fn part(&mut self, name: &str, params: &Value, kind: TextKind, out: &mut Actions) {
        let native = self.native(name);
        if let Some((id, thread)) = params["itemId"].as_str().zip(self.threads.of(name)) {
            thread.item(id, Item { streamed: true, ..Item::default() });
        }
        let text = params["delta"].as_str().unwrap_or_default().to_owned();
        if !text.is_empty() {
            let message = params["itemId"].as_str().map(str::to_owned);
            out.push(Action::Text { native, kind, text, message });
        }
    }

    fn item_started(&mut self, name: &str, item: &Value, out: &mut Actions) {
        let native = self.native(name);
        let Some((id, thread)) = item["id"].as_str().zip(self.threads.of(name)) else {
            return;
        };
        let of = |kind: &str| item["type"] == kind;
        if of("contextCompaction") {
            thread.before = thread.context;
        }
        let spawn = of("collabAgentToolCall") && item["tool"] == "spawnAgent";
        thread.item(
            id,
            Item {
                streamed: false,
                changes: of("fileChange").then(|| item["changes"].clone()),
                spawn: spawn.then(|| item["prompt"].as_str().unwrap_or_default().to_owned()),
            },
        );
        if let Some((tool, arguments)) = items::called(item) {
            let signal = Signal::ToolCalled { call: id.to_owned(), tool, arguments };
            out.push(Action::Saw { native, signal });
        }
    }

    fn item_completed(&mut self, name: &str, item: &Value, out: &mut Actions) {
        let native = self.native(name);
        let Some((id, thread)) = item["id"].as_str().zip(self.threads.of(name)) else {
            return;
        };
        let begun = thread.items.remove(id);
        if let Some((kind, text)) = items::text(item) {
            if !text.is_empty() && begun.map_or(self.whole, |item| !item.streamed) {
                out.push(Action::Text { native, kind, text, message: Some(id.to_owned()) });
            }
            return;
        }
        if item["type"] == "contextCompaction" {
            let (before, after) = (thread.before.take(), thread.context);
            let signal = Signal::ContextCompacted {
                size_before: before.unwrap_or(0),
                size_after: after.unwrap_or(0),
                anchors_survived: Vec::new(),
            };
            return out.push(Action::Saw { native, signal });
        }
        if let Some((tool, arguments)) = items::called(item) {
            if begun.is_none() && self.whole {
                let signal = Signal::ToolCalled { call: id.to_owned(), tool, arguments };
                out.push(Action::Saw { native: native.clone(), signal });
            }
            let (is_error, content) = items::returned(item);
            let signal = Signal::ToolReturned { call: id.to_owned(), is_error, content };
            out.push(Action::Saw { native: native.clone(), signal });
        }
        out.extend(
            items::changes(item).into_iter().map(|signal| Action::Saw { native: native.clone(), signal }),
        );
        self.family(name, item, out);
    }

    /// Subagents an item started or spoke to.
    fn family(&mut self, name: &str, item: &Value, out: &mut Actions) {
        if item["type"] == "subAgentActivity"
            && item["kind"] == "started"
            && let Some(child) = item["agentThreadId"].as_str()
        {
            return self.announce(child, name, item["agentPath"].as_str(), "", out);
        }
        if item["type"] != "collabAgentToolCall" {
            return;
        }
        let prompt = item["prompt"].as_str().unwrap_or_default();
        let children = item["receiverThreadIds"].as_array().map_or(&[][..], Vec::as_slice);
        for child in children.iter().filter_map(Value::as_str) {
            if item["tool"] == "spawnAgent" {
                self.announce(child, name, None, prompt, out);
            } else if !prompt.is_empty() {
                let (native, text) = (self.native(child), prompt.to_owned());
                out.push(Action::Text { native, kind: TextKind::User, text, message: None });
            }
        }
    }

    fn used(&mut self, name: &str, usage: &Value, out: &mut Actions) {
        let native = self.native(name);
        let tokens =
            |of: &Value| (of["inputTokens"].as_u64().unwrap_or(0), of["outputTokens"].as_u64().unwrap_or(0));
        let (total, last) = (tokens(&usage["total"]), tokens(&usage["last"]));
        let context = usage["last"]["totalTokens"].as_u64().unwrap_or(0);
        let Some(thread) = self.threads.of(name) else {
            return;
        };
        if let Some((input, output)) = thread.used(total, last, context) {
            let signal = Signal::UsageReported {
                input_tokens: input,
                output_tokens: output,
                context_tokens: Some(context),
                cost_micros: 0,
            };
            out.push(Action::Saw { native, signal });
        }
    }
}

fn odd(message: &Value, out: &mut Actions) {
    out.push(Action::Odd { what: format!("codex: {}", message.as_str().unwrap_or_default()) });
}

fn end(turn: &Value) -> TurnEnd {
    let error = &turn["error"];
    let message = || error["message"].as_str().unwrap_or("codex gave no reason").to_owned();
    match turn["status"].as_str().unwrap_or_default() {
        "completed" => TurnEnd::Done(TurnOutcome::Completed),
        "interrupted" => TurnEnd::Cancelled,
        "failed" => match error["codexErrorInfo"].as_str().unwrap_or_default() {
            "contextWindowExceeded" | "sessionBudgetExceeded" => TurnEnd::Limit(message()),
            info => failed(info, &error["codexErrorInfo"], message()),
        },
        other => TurnEnd::Failed(format!("codex ended the turn as `{other}`")),
    }
}

/// A failure, or the limit that it is.
fn failed(info: &str, more: &Value, message: String) -> TurnEnd {
    let of_words = limits::in_words(&message);
    let named = match info {
        "usageLimitExceeded" => Some(LimitKind::Usage),
        "serverOverloaded" => Some(LimitKind::Overloaded),
        "internalServerError" => Some(LimitKind::Unavailable),
        // `{"httpConnectionFailed": {"httpStatusCode": 502}}`, and others of the kind.
        _ => more.as_object().and_then(|kinds| kinds.values().next()).map(|kind| {
            let status = kind["httpStatusCode"].as_u64();
            status.and_then(limits::of_status).unwrap_or(LimitKind::Unavailable)
        }),
    };
    // Words tell a spent quota from a usage window.
    match of_words.as_ref().map(|sign| sign.kind).or(named) {
        Some(kind) => {
            let reset = of_words.and_then(|sign| sign.reset);
            TurnEnd::Limited(LimitSign { kind, text: message, reset })
        }
        None => TurnEnd::Failed(message),
    }
}

fn plan(steps: &Value) -> Vec<PlanEntry> {
    let steps = steps.as_array().map_or(&[][..], Vec::as_slice);
    let status = |step: &Value| match step["status"].as_str().unwrap_or_default() {
        "completed" => PlanEntryState::Completed,
        "inProgress" => PlanEntryState::InProgress,
        _ => PlanEntryState::Pending,
    };
    let text = |step: &Value| step["step"].as_str().unwrap_or_default().to_owned();
    steps.iter().map(|step| PlanEntry { text: text(step), status: status(step) }).collect()
}
