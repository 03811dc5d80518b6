//! JSON lines as `codex exec --json` writes them.

use std::collections::BTreeSet;

use lanyard_core::session::{PlanEntry, PlanEntryState, Signal, TurnOutcome};
use serde_json::{Value, json};

use super::{OPEN_MAX, Told};
use crate::agents::driver::{Action, Actions, Child, TextKind, TurnEnd, error_seen};

#[derive(Debug)]
pub(super) struct CodexJson {
    /// The token counts are those of this turn: a resumed conversation's are of its whole life.
    counts: bool,
    /// All the program wrote was seen here.
    whole: bool,
    /// Calls whose beginning was seen.
    calls: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl CodexJson {
    pub(super) fn new(counts: bool, whole: bool) -> Self {
        Self { counts, whole, calls: BTreeSet::new(), children: BTreeSet::new() }
    }

    pub(super) fn told(&mut self, message: &Value, out: &mut Actions) -> Told {
        let item = &message["item"];
        match message["type"].as_str().unwrap_or_default() {
            "thread.started" => {
                if let Some(native) = message["thread_id"].as_str() {
                    return Told::Native { native: native.to_owned(), version: None };
                }
            }
            "item.started" => self.started(item, out),
            "item.updated" => planned(item, out),
            "item.completed" => self.completed(item, out),
            "error" => out.push(error(message)),
            "turn.completed" => {
                let tokens = |key: &str| message["usage"][key].as_u64().unwrap_or(0);
                if self.counts {
                    let (input, output) = (tokens("input_tokens"), tokens("output_tokens"));
                    let signal = Signal::UsageReported {
                        input_tokens: input,
                        output_tokens: output,
                        context_tokens: None,
                        cost_micros: 0,
                    };
                    out.push(Action::Saw { native: None, signal });
                }
                return self.end(TurnEnd::Done(TurnOutcome::Completed), out);
            }
            "turn.failed" => {
                let words = message["error"]["message"].as_str().unwrap_or("codex gave no reason");
                return self.end(TurnEnd::Failed(words.to_owned()), out);
            }
            _ => {}
        }
        Told::Nothing
    }

    /// The program ends with the turn, and its subagents with it.
    fn end(&mut self, end: TurnEnd, out: &mut Actions) -> Told {
        for child in std::mem::take(&mut self.children) {
            let end = TurnEnd::Cancelled;
            out.push(Action::Finished { native: Some(child), turn: None, end });
        }
        Told::End(end)
    }

    fn started(&mut self, item: &Value, out: &mut Actions) {
        planned(item, out);
        if let (Some(id), Some((tool, arguments))) = (item["id"].as_str(), called(item)) {
            if self.calls.len() < OPEN_MAX {
                self.calls.insert(id.to_owned());
            }
            let signal = Signal::ToolCalled { call: id.to_owned(), tool, arguments };
            out.push(Action::Saw { native: None, signal });
        }
    }

    fn completed(&mut self, item: &Value, out: &mut Actions) {
        planned(item, out);
        let text = || item["text"].as_str().unwrap_or_default().to_owned();
        let said = |kind| {
            let message = item["id"].as_str().map(str::to_owned);
            Action::Text { native: None, kind, text: text(), message }
        };
        match item["type"].as_str().unwrap_or_default() {
            "agent_message" => out.push(said(TextKind::Message)),
            "reasoning" => out.push(said(TextKind::Thought)),
            "error" => out.push(error(item)),
            "file_change" if item["status"] != "failed" => {
                let changes = item["changes"].as_array().map_or(&[][..], Vec::as_slice);
                for path in changes.iter().filter_map(|change| change["path"].as_str()) {
                    let signal = Signal::FileChanged { path: path.to_owned(), added: None, removed: None };
                    out.push(Action::Saw { native: None, signal });
                }
            }
            _ => {}
        }
        if let (Some(id), Some((tool, arguments))) = (item["id"].as_str(), called(item)) {
            let call = id.to_owned();
            if !self.calls.remove(id) && self.whole {
                let signal = Signal::ToolCalled { call: call.clone(), tool, arguments };
                out.push(Action::Saw { native: None, signal });
            }
            let (is_error, content) = returned(item);
            let signal = Signal::ToolReturned { call, is_error, content };
            out.push(Action::Saw { native: None, signal });
        }
        if item["type"] == "collab_tool_call" {
            self.family(item, out);
        }
    }

    /// Subagents write nothing here: they are seen when they are started and when somebody waits for them.
    fn family(&mut self, item: &Value, out: &mut Actions) {
        if item["tool"] == "spawn_agent" {
            let started = item["receiver_thread_ids"].as_array().map_or(&[][..], Vec::as_slice);
            for native in started.iter().filter_map(Value::as_str) {
                if self.children.len() < OPEN_MAX {
                    self.children.insert(native.to_owned());
                }
                out.push(Action::Child(Box::new(Child {
                    native: native.to_owned(),
                    also: Vec::new(),
                    parent: None,
                    title: None,
                    agent: None,
                    prompt: item["prompt"].as_str().unwrap_or_default().to_owned(),
                })));
            }
        }
        for (child, state) in item["agents_states"].as_object().into_iter().flatten() {
            let words = state["message"].as_str().unwrap_or_default().to_owned();
            let end = match state["status"].as_str().unwrap_or_default() {
                "completed" => TurnEnd::Done(TurnOutcome::Completed),
                "errored" => TurnEnd::Failed(words.clone()),
                "interrupted" | "shutdown" => TurnEnd::Cancelled,
                _ => continue,
            };
            // Each later look at a finished subagent tells its end again.
            if !self.children.remove(child) && self.whole {
                continue;
            }
            let native = Some(child.clone());
            if !words.is_empty() && end == TurnEnd::Done(TurnOutcome::Completed) {
                let kind = TextKind::Message;
                out.push(Action::Text { native: native.clone(), kind, text: words, message: None });
            }
            out.push(Action::Finished { native, turn: None, end });
        }
    }
}

fn called(item: &Value) -> Option<(String, Value)> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    Some(match item["type"].as_str()? {
        "command_execution" => ("shell".to_owned(), json!({ "command": item["command"] })),
        "mcp_tool_call" => (format!("mcp__{}__{}", text("server"), text("tool")), item["arguments"].clone()),
        "web_search" => ("web_search".to_owned(), json!({ "query": item["query"] })),
        "file_change" => ("apply_patch".to_owned(), json!({ "changes": item["changes"] })),
        "collab_tool_call" => {
            let arguments = json!({ "prompt": item["prompt"], "threads": item["receiver_thread_ids"] });
            (text("tool").to_owned(), arguments)
        }
        _ => return None,
    })
}

fn returned(item: &Value) -> (bool, Value) {
    let content = match item["type"].as_str().unwrap_or_default() {
        "command_execution" => json!({
            "output": item["aggregated_output"],
            "exit_code": item["exit_code"],
            "status": item["status"],
        }),
        "mcp_tool_call" if item["result"].is_null() => item["error"]["message"].clone(),
        "mcp_tool_call" => item["result"]["content"].clone(),
        "collab_tool_call" => item["agents_states"].clone(),
        _ => item["status"].clone(),
    };
    (matches!(item["status"].as_str(), Some("failed" | "declined")), content)
}

fn error(of: &Value) -> Action {
    let text = of["message"].as_str().unwrap_or("an error without words").to_owned();
    Action::Saw { native: None, signal: error_seen(text) }
}

fn planned(item: &Value, out: &mut Actions) {
    if item["type"] != "todo_list" {
        return;
    }
    let entries = item["items"].as_array().map_or(&[][..], Vec::as_slice);
    let entries = entries
        .iter()
        .map(|entry| PlanEntry {
            text: entry["text"].as_str().unwrap_or_default().to_owned(),
            status: if entry["completed"] == true {
                PlanEntryState::Completed
            } else {
                PlanEntryState::Pending
            },
        })
        .collect();
    out.push(Action::Saw { native: None, signal: Signal::Planned { entries } });
}
