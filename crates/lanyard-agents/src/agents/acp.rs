//! The Agent Client Protocol: any agent that speaks it over stdio.
//!
//! Agents differ in what the protocol leaves open. What is known of that is handled by what they offer and by what
//! they do, not by their names: a cancel is only sent into a running turn, open questions are given up before it, what
//! is played back after a load is told from what is new, and a prompt that a late cancel swallowed is sent again.

mod asks;
mod change;
mod greet;
mod options;
mod parts;
mod rpc;
#[cfg(test)]
mod tests;
mod update;

use std::collections::{BTreeSet, HashMap};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ContentBlock, FileSystemCapabilities, Implementation,
    InitializeRequest, PromptRequest, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome, StopReason,
};
use lanyard_api::agents::settings::ClientFiles;
use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, AgentInfo, Capabilities, Question, Signal, TurnOutcome};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agents::driver::{
    Action, Actions, Answer, Begin, CallError, Child, Driver, Opened, Setting, TurnEnd,
};
use crate::agents::given::{GivenPart, GivenPrompt};
use crate::agents::limits::LimitSign;
use crate::agents::tuning::Tuning;
use rpc::Message;
use update::Tool;

/// JSON-RPC's codes for what cannot be answered.
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const RESOURCE_NOT_FOUND: i64 = -32_002;
const INTERNAL_ERROR: i64 = -32_603;

/// Ids of the greeting's requests; a prompt's is its turn.
const INIT: &str = "init";
const OPEN: &str = "open";
const MODE: &str = "mode";
const CLOSE: &str = "close";
/// Ends the id of a prompt that is sent a second time.
const AGAIN: &str = ":again";

#[derive(Debug)]
pub(crate) struct Acp {
    setting: Setting,
    phase: Phase,
    /// The agent's id of the main conversation, once it is known.
    native: String,
    info: AgentInfo,
    capabilities: Capabilities,
    /// It takes the content of files in a prompt. Not known of an agent that an earlier daemon greeted.
    embeds: bool,
    turn: Option<Turn>,
    /// What comes now was said before: the agent plays a loaded conversation back.
    replaying: bool,
    /// A cancel was sent for the turn before this one, and may have come too late for it.
    late_cancel: bool,
    /// Questions and calls of the agent that wait for an answer.
    open: BTreeSet<String>,
    tools: HashMap<String, Tool>,
    tuning: Tuning,
    /// Tokens in the agent's context, as it last said.
    context: Option<u64>,
    /// What the conversation has cost, as the agent last said, in millionths of a dollar.
    cost: u64,
    /// How much of that was told of.
    cost_told: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Opening,
    /// The conversation is open, its mode is being set.
    Tuning(Opened),
    Ready,
}

#[derive(Debug)]
struct Turn {
    id: TurnId,
    content: Vec<ContentBlock>,
    cancelled: bool,
    /// The agent did something for it.
    stirred: bool,
    again: bool,
}

impl Acp {
    pub(crate) fn new(setting: Setting) -> Self {
        let mut driver = Self {
            phase: Phase::Greeting,
            native: String::new(),
            info: AgentInfo::default(),
            capabilities: Capabilities::default(),
            embeds: false,
            turn: None,
            replaying: false,
            late_cancel: false,
            open: BTreeSet::new(),
            tools: HashMap::new(),
            tuning: options::tuning(&setting),
            context: None,
            cost: 0,
            cost_told: 0,
            setting,
        };
        if let Begin::Adopted { readiness, turn, open } = &driver.setting.begin {
            driver.phase = Phase::Ready;
            driver.native.clone_from(&readiness.native);
            driver.info.clone_from(&readiness.info);
            driver.capabilities = readiness.capabilities;
            driver.replaying = readiness.how == Opened::Resumed && turn.is_none();
            driver.turn = turn.map(|id| Turn {
                id,
                content: Vec::new(),
                cancelled: false,
                stirred: true,
                again: false,
            });
            driver.open = open.iter().map(|question| question.request.clone()).collect();
        }
        driver
    }

    fn failed(&mut self, id: &Value, message: String, limit: Option<LimitSign>, out: &mut Actions) {
        match id.as_str() {
            Some(INIT) => broken(out, "handshake_failed", message),
            Some(OPEN) => {
                let code = match self.setting.begin {
                    Begin::Resume { .. } => "resume_refused",
                    Begin::New | Begin::Adopted { .. } => "handshake_failed",
                };
                broken(out, code, message);
            }
            Some(MODE) => broken(out, "mode_refused", message),
            Some(text) if Tuning::is_id(text) => self.option_refused(text, &message, out),
            Some(text) => {
                let end = limit.map_or(TurnEnd::Failed(message), TurnEnd::Limited);
                self.prompt_over(text, end, out);
            }
            None => out.push(Action::Odd { what: format!("an error nobody asked for: {message}") }),
        }
    }

    fn answered(&mut self, id: &Value, result: Value, out: &mut Actions) {
        match id.as_str() {
            Some(INIT) if self.phase == Phase::Greeting => self.greeted(result, out),
            Some(OPEN) if self.phase == Phase::Opening => self.opened(result, out),
            Some(MODE) if let Phase::Tuning(how) = self.phase => {
                self.config_mode_set(out);
                self.ready(how, out);
            }
            Some(INIT | OPEN | MODE | CLOSE) => {}
            Some(text) if Tuning::is_id(text) => self.option_set(text, &result, out),
            Some(text) => {
                self.usage(&result, out);
                let end = match serde_json::from_value(result["stopReason"].clone()) {
                    Ok(StopReason::EndTurn) => TurnEnd::Done(TurnOutcome::Completed),
                    Ok(StopReason::Refusal) => TurnEnd::Done(TurnOutcome::Refused),
                    Ok(StopReason::Cancelled) => TurnEnd::Cancelled,
                    Ok(StopReason::MaxTokens) => TurnEnd::Limit("the agent's limit of tokens".to_owned()),
                    Ok(StopReason::MaxTurnRequests) => {
                        TurnEnd::Limit("the agent's limit of requests in one turn".to_owned())
                    }
                    // A reason of a later version: the turn is over all the same.
                    Ok(_) | Err(_) => TurnEnd::Done(TurnOutcome::Completed),
                };
                self.prompt_over(text, end, out);
            }
            None => out.push(Action::Odd { what: "an answer nobody asked for".to_owned() }),
        }
    }

    fn usage(&mut self, result: &Value, out: &mut Actions) {
        let usage = [&result["usage"], &result["_meta"]["usage"], &result["_meta"]["quota"]["token_count"]];
        let number = |usage: &Value, names: [&str; 2]| names.iter().find_map(|name| usage[name].as_u64());
        let told = usage.into_iter().find(|usage| usage.is_object());
        let input = told.and_then(|usage| number(usage, ["inputTokens", "input_tokens"]));
        let output = told.and_then(|usage| number(usage, ["outputTokens", "output_tokens"]));
        let cost = self.cost_to_tell();
        if input.is_some() || output.is_some() || self.context.is_some() {
            let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
            let signal = Signal::UsageReported {
                input_tokens: input,
                output_tokens: output,
                context_tokens: self.context,
                cost_micros: cost,
            };
            out.push(Action::Saw { native: None, signal });
        }
    }

    /// What the conversation has cost since the last report. A sum that went back has begun anew.
    fn cost_to_tell(&mut self) -> u64 {
        let cost = self.cost.checked_sub(self.cost_told).unwrap_or(self.cost);
        self.cost_told = self.cost;
        cost
    }

    /// The cost since the last report, while a turn goes on.
    pub(super) fn paid(&mut self) -> Option<Signal> {
        let (cost_micros, context_tokens) = (self.cost_to_tell(), self.context);
        let signal = Signal::UsageReported { input_tokens: 0, output_tokens: 0, context_tokens, cost_micros };
        (cost_micros > 0).then_some(signal)
    }

    fn prompt_over(&mut self, id: &str, end: TurnEnd, out: &mut Actions) {
        let Ok(turn) = id.trim_end_matches(AGAIN).parse::<TurnId>() else {
            return out.push(Action::Odd { what: format!("an answer to `{id}`, which nobody asked") });
        };
        match self.turn.take() {
            // Some agents let a cancel that came too late for its turn swallow the next prompt.
            Some(running)
                if running.id == turn
                    && end == TurnEnd::Cancelled
                    && !running.cancelled
                    && !running.stirred
                    && !running.again
                    && self.late_cancel =>
            {
                let content = running.content.clone();
                self.turn = Some(Turn { again: true, ..running });
                let again = self.prompt_line(&format!("{turn}{AGAIN}"), content);
                out.push(again);
            }
            Some(running) if running.id == turn => {
                self.late_cancel = running.cancelled;
                self.tuning.drop_held(turn);
                self.tools.clear();
                out.push(Action::Finished { native: None, turn: Some(turn), end });
            }
            running => {
                self.turn = running;
                out.push(Action::Odd {
                    what: format!("turn {turn} was answered more than once or too late"),
                });
            }
        }
    }

    fn prompt_line(&self, id: &str, content: Vec<ContentBlock>) -> Action {
        let asked = PromptRequest::new(self.native.clone(), content);
        Action::Send { key: id.to_owned(), line: rpc::request(id, "session/prompt", &asked) }
    }

    fn told(&mut self, method: &str, params: Value, out: &mut Actions) {
        match method {
            "session/update" => self.update(params, out),
            // Lanyard's own words for what the protocol has none for yet.
            "_lanyard/child" => {
                let text = |name: &str| params[name].as_str().map(str::to_owned);
                let Some(native) = text("sessionId") else { return };
                let parent = text("parentSessionId").and_then(|parent| self.other(&parent));
                let (title, agent) = (text("title"), text("agent"));
                let prompt = text("prompt").unwrap_or_default();
                out.push(Action::Child(Box::new(Child {
                    native,
                    also: Vec::new(),
                    parent,
                    title,
                    agent,
                    prompt,
                })));
            }
            "_lanyard/child_ended" => {
                let Some(native) = params["sessionId"].as_str() else { return };
                let end = match params["stopReason"].as_str() {
                    Some("cancelled") => TurnEnd::Cancelled,
                    Some("refusal") => TurnEnd::Done(TurnOutcome::Refused),
                    _ => TurnEnd::Done(TurnOutcome::Completed),
                };
                out.push(Action::Finished { native: Some(native.to_owned()), turn: None, end });
            }
            "_lanyard/compacted" => {
                let size = |name: &str| params[name].as_u64().unwrap_or(0);
                let signal = Signal::ContextCompacted {
                    size_before: size("sizeBefore"),
                    size_after: size("sizeAfter"),
                    anchors_survived: Vec::new(),
                };
                let native = params["sessionId"].as_str().and_then(|native| self.other(native));
                out.push(Action::Saw { native, signal });
            }
            // Agents send notes of their own; what is not known harms nothing.
            _ => {}
        }
    }

    /// The conversation's id, unless it is the main one.
    fn other(&self, native: &str) -> Option<String> {
        (native != self.native && !self.native.is_empty()).then(|| native.to_owned())
    }

    fn stir(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.stirred = true;
        }
    }
}

impl Driver for Acp {
    fn knows(&mut self, calls: &[String]) {
        self.tools.extend(calls.iter().map(|call| (call.clone(), Tool::told())));
    }

    fn begin(&mut self, out: &mut Actions) {
        if self.phase == Phase::Ready {
            return;
        }
        let (reads, writes) = match self.setting.client_files {
            ClientFiles::ReadWrite => (true, true),
            ClientFiles::Write => (false, true),
            ClientFiles::None => (false, false),
        };
        let files = FileSystemCapabilities::new().read_text_file(reads).write_text_file(writes);
        let offers = ClientCapabilities::new().fs(files).terminal(true);
        let asked = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(offers)
            .client_info(Implementation::new("lanyard", env!("CARGO_PKG_VERSION")));
        out.push(Action::Send { key: INIT.to_owned(), line: rpc::request(INIT, "initialize", &asked) });
    }

    fn recall(&mut self, line: &[u8], out: &mut Actions) {
        let Ok(Message::Request { id, method, .. }) = rpc::parse(line) else { return };
        if method.starts_with("fs/") || method.starts_with("terminal/") {
            let request = id.to_string();
            let line = rpc::error(&request, INTERNAL_ERROR, "the daemon ended before it could answer");
            out.push(Action::Send { key: format!("reply:{request}"), line });
        }
    }

    fn line(&mut self, line: &[u8], out: &mut Actions) {
        match rpc::parse(line) {
            Ok(Message::Request { id, method, params }) => self.asked(&id, &method, params, out),
            Ok(Message::Notification { method, params }) => self.told(&method, params, out),
            Ok(Message::Result { id, result }) => self.answered(&id, result, out),
            Ok(Message::Error { id, message, limit }) => self.failed(&id, message, limit, out),
            Err(what) => out.push(Action::Odd { what: format!("the agent wrote {what}") }),
        }
    }

    fn takes(&self, part: &GivenPart) -> bool {
        parts::takes(part, self.capabilities.images)
    }

    fn prompt(&mut self, turn: TurnId, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) {
        if native.is_some() {
            // The protocol has no way to speak to a subagent.
            let end = TurnEnd::Failed("the agent takes no prompts for a subagent".to_owned());
            return out.push(Action::Finished { native: native.map(str::to_owned), turn: Some(turn), end });
        }
        // The words are told again after a restart, which changes nothing for a turn that runs.
        let stirred = self.turn.as_ref().is_some_and(|running| running.id == turn && running.stirred);
        self.replaying = false;
        let content = parts::blocks(prompt, self.embeds);
        self.turn =
            Some(Turn { id: turn, content: content.clone(), cancelled: false, stirred, again: false });
        let id = turn.to_string();
        let prompt = self.prompt_line(&id, content);
        self.tuning.hold(turn, prompt);
        self.tune(out);
    }

    fn choose(&mut self, key: &str, wanted: &AgentChoice, out: &mut Actions) {
        self.tuning.wants(key, wanted);
        if self.phase == Phase::Ready {
            self.tune(out);
        }
    }

    fn holds_prompt(&self) -> bool {
        self.tuning.is_holding()
    }

    fn cancel(&mut self, turn: TurnId, native: Option<&str>, out: &mut Actions) {
        if let Some(native) = native {
            let line = rpc::notification("session/cancel", &CancelNotification::new(native.to_owned()));
            return out.push(Action::Send { key: format!("cancel:{turn}"), line });
        }
        let Some(running) = self.turn.as_mut().filter(|running| running.id == turn) else { return };
        running.cancelled = true;
        if self.tuning.drop_held(turn) {
            self.turn = None;
            let end = TurnEnd::Cancelled;
            return out.push(Action::Finished { native: None, turn: Some(turn), end });
        }
        // An agent may wait for its questions before it heeds the cancel.
        let outcome = RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
        for request in std::mem::take(&mut self.open) {
            let line = rpc::result(&request, &outcome);
            out.push(Action::Send { key: format!("answer:{request}"), line });
        }
        let line = rpc::notification("session/cancel", &CancelNotification::new(self.native.clone()));
        out.push(Action::Send { key: format!("cancel:{turn}"), line });
    }

    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions) {
        self.open.remove(&question.request);
        let outcome = match answer {
            Answer::Chosen { option, .. } => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.id.clone()))
            }
            Answer::Void => RequestPermissionOutcome::Cancelled,
        };
        let line = rpc::result(&question.request, &RequestPermissionResponse::new(outcome));
        out.push(Action::Send { key: format!("answer:{}", question.request), line });
    }

    fn close(&mut self, out: &mut Actions) {
        if self.capabilities.close {
            let line = rpc::request(CLOSE, "session/close", &json!({ "sessionId": self.native }));
            out.push(Action::Send { key: CLOSE.to_owned(), line });
        }
    }

    fn called(&mut self, request: &str, result: Result<Value, CallError>, out: &mut Actions) {
        let line = match result {
            Ok(value) => rpc::result(request, &value),
            Err(CallError { message, missing: true }) => rpc::error(request, RESOURCE_NOT_FOUND, &message),
            Err(CallError { message, missing: false }) => rpc::error(request, INTERNAL_ERROR, &message),
        };
        out.push(Action::Send { key: format!("reply:{request}"), line });
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn terminal(params: &Value) -> Result<String, String> {
    params["terminalId"].as_str().map(str::to_owned).ok_or_else(|| "no terminalId".to_owned())
}

fn broken(out: &mut Actions, code: &'static str, what: String) {
    out.push(Action::Broken { code, what });
}
