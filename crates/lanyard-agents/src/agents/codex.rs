//! The driver for `codex app-server`: one JSON message per line, JSON-RPC without its version member.
//!
//! Request ids are ours and say what they are for (`init`, `thread`, a turn's id, `cancel:<turn>`), so an answer is
//! recognised by a driver that did not send the question. Text rule: the parts of a message are passed on as they come,
//! and the whole text at its end only when its beginning was seen here and no part was: a driver that starts in
//! mid-message trusts that what came before was passed on.

mod asks;
#[cfg(test)]
mod asks_tests;
mod hello;
mod items;
mod notices;
#[cfg(test)]
mod tests;
mod threads;
mod turn_choice;
pub(in crate::agents) mod wire;

use std::collections::BTreeSet;

use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, PromptPart, Question};
use serde_json::{Value, json};

use self::threads::{Threads, Unsent};
use super::driver::{Action, Actions, Answer, Begin, Driver, Setting, Tuned, TurnEnd};
use super::given::{GivenPart, GivenPrompt};

/// Bytes of a foreign line that are quoted in the daemon's log.
const QUOTE_BYTES_MAX: usize = 200;

/// Speaks with `codex app-server`.
#[derive(Debug)]
pub(crate) struct Codex {
    setting: Setting,
    /// The main conversation's thread, once it is open.
    main: Option<String>,
    version: Option<String>,
    threads: Threads,
    /// Requests of the agent that wait for an answer.
    open: BTreeSet<String>,
    /// This driver has seen all the agent wrote.
    whole: bool,
    /// A compaction was asked for and runs as a turn of its own, in which Codex refuses prompts.
    compacting: bool,
    unsent: Option<Unsent>,
    tuned: Tuned,
}

impl Codex {
    pub(crate) fn new(setting: Setting) -> Self {
        let mut codex = Self {
            main: None,
            version: None,
            threads: Threads::default(),
            open: BTreeSet::new(),
            whole: true,
            compacting: false,
            unsent: None,
            tuned: setting.tuned.clone(),
            setting,
        };
        if let Begin::Adopted { readiness, turn, open } = &codex.setting.begin {
            codex.whole = false;
            codex.open = open.iter().map(|question| question.request.clone()).collect();
            if let Some(thread) = codex.threads.of(&readiness.native) {
                thread.turn = *turn;
            }
            codex.main = Some(readiness.native.clone());
            // A question that waits names the turn it came from.
            for question in open {
                let at = |key: &str| question.detail[key].as_str();
                if let Some((name, running)) = at("threadId").zip(at("turnId"))
                    && let Some(thread) = codex.threads.of(name)
                {
                    thread.running = Some(running.to_owned());
                }
            }
        }
        codex
    }

    /// How a thread is named outside: the main one has no name.
    fn native(&self, thread: &str) -> Option<String> {
        (self.main.as_deref() != Some(thread)).then(|| thread.to_owned())
    }

    fn answered(&mut self, id: &str, result: Result<&Value, &str>, out: &mut Actions) {
        if let Ok(turn) = id.parse::<TurnId>() {
            return self.prompted(turn, result, out);
        }
        match (id, result) {
            ("init", _) => self.greeted(result, out),
            ("thread", _) => self.opened(result, out),
            (turn_choice::MODELS, Ok(found)) => self.learn_models(found, out),
            (_, Ok(found)) => {
                if let Some(turn) = id.strip_prefix("look:").and_then(|turn| turn.parse().ok()) {
                    self.looked(turn, found, out);
                }
            }
            (_, Err(why)) => {
                if id.starts_with("compact:") {
                    self.compacting = false;
                    self.send_unsent(out);
                }
                out.push(Action::Odd { what: format!("codex refused `{id}`: {why}") });
            }
        }
    }

    /// The answer to a prompt: the turn's own id in Codex, or a refusal.
    fn prompted(&mut self, turn: TurnId, result: Result<&Value, &str>, out: &mut Actions) {
        let native = self.threads.with_turn(turn).and_then(|id| self.native(&id));
        let Some(name) = native.clone().or_else(|| self.main.clone()) else {
            return;
        };
        let Some(thread) = self.threads.of(&name) else {
            return;
        };
        match result {
            Ok(found) => {
                thread.prompt = None;
                thread.expected = found["turn"]["id"].as_str().map(str::to_owned);
                thread.running = thread.running.take().filter(|id| thread.expected.as_ref() == Some(id));
            }
            // A compaction nobody here knew of is on its way: the prompt is given again when it is over.
            Err(why) if why.contains("ActiveTurnNotSteerable") && thread.prompt.is_some() => {
                let input = thread.prompt.take().unwrap_or_default();
                self.compacting = true;
                self.unsent = Some(Unsent { turn, thread: name, input, key: format!("{turn}:again") });
            }
            Err(why) => {
                thread.over();
                out.push(Action::Finished { native, turn: Some(turn), end: TurnEnd::Failed(why.to_owned()) });
            }
        }
    }

    /// The running turn of a thread, as Codex lists it.
    fn looked(&mut self, turn: TurnId, found: &Value, out: &mut Actions) {
        let last = &found["data"][0];
        if last["status"] == "inProgress"
            && let Some(running) = last["id"].as_str()
            && let Some(name) = self.threads.cancelling(turn)
        {
            self.runs(&name, running, out);
        }
    }

    /// A turn of a thread runs under this id; an interrupt that waited for it is sent. Codex refuses an interrupt
    /// between the answer to a prompt and the turn's start, so the answer's id alone is not enough.
    fn runs(&mut self, name: &str, running: &str, out: &mut Actions) {
        let Some(thread) = self.threads.of(name) else {
            return;
        };
        if thread.expected.as_deref().is_some_and(|expected| expected != running) {
            return;
        }
        if thread.running.as_deref() != Some(running) {
            thread.running = Some(running.to_owned());
        }
        if let Some(turn) = thread.cancel.take() {
            out.push(wire::interrupt(turn, name, running));
        }
    }

    fn send_unsent(&mut self, out: &mut Actions) {
        if let Some(unsent) = self.unsent.take() {
            let choice = self.turn_choice(out);
            out.push(wire::prompt(unsent.key, unsent.turn, (&unsent.thread, &unsent.input), &choice));
        }
    }

    fn asked(&mut self, id: &Value, method: &str, params: &Value, out: &mut Actions) {
        let request = id.to_string();
        if self.open.contains(&request) {
            return;
        }
        let name = params["threadId"].as_str().or_else(|| params["conversationId"].as_str());
        if let Some((name, running)) = name.zip(params["turnId"].as_str()) {
            self.runs(name, running, out);
        }
        let changes = name
            .and_then(|name| self.threads.get(name))
            .and_then(|thread| thread.items.get(params["itemId"].as_str().unwrap_or_default()))
            .and_then(|item| item.changes.as_ref());
        match asks::question(method, &request, params, changes) {
            Ok(question) => {
                self.open.insert(request);
                let native = name.and_then(|name| self.native(name));
                out.push(Action::Asked { native, question: Box::new(question) });
            }
            Err(reply) => {
                out.push(Action::Odd {
                    what: format!("codex asked `{method}`, which nobody here can answer"),
                });
                out.push(wire::reply(&request, &reply));
            }
        }
    }
}

impl Driver for Codex {
    fn begin(&mut self, out: &mut Actions) {
        if matches!(self.setting.begin, Begin::Adopted { .. }) {
            return;
        }
        out.push(hello::initialize());
    }

    fn line(&mut self, line: &[u8], out: &mut Actions) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            if !line.trim_ascii().is_empty() {
                out.push(Action::Odd { what: format!("codex wrote no JSON: {}", wire::quote(line)) });
            }
            return;
        };
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some(method) if id.is_null() => self.noticed(method, params, out),
            Some(method) => self.asked(id, method, params, out),
            None => match (id.as_str(), message.get("error")) {
                (Some(id), Some(error)) => {
                    let why = error["message"].as_str().unwrap_or("no reason given");
                    self.answered(id, Err(why), out);
                }
                (Some(id), None) => self.answered(id, Ok(&message["result"]), out),
                (None, _) => {
                    out.push(Action::Odd { what: format!("codex wrote no message: {}", wire::quote(line)) });
                }
            },
        }
    }

    fn takes(&self, part: &GivenPart) -> bool {
        matches!(part.part, PromptPart::Image(_)) && part.path().is_some()
    }

    fn prompt(&mut self, turn: TurnId, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) {
        let name = native.map(str::to_owned).or_else(|| self.main.clone());
        let Some((name, thread)) = name.and_then(|name| Some((name.clone(), self.threads.of(&name)?))) else {
            let end = TurnEnd::Failed("the conversation is not open".to_owned());
            out.push(Action::Finished { native: native.map(str::to_owned), turn: Some(turn), end });
            return;
        };
        let input = wire::input(prompt);
        thread.begin(turn, &input);
        if self.compacting && native.is_none() {
            self.unsent = Some(Unsent { turn, thread: name, input, key: turn.to_string() });
            return;
        }
        // Subagents have what their parent gave them.
        let choice = if native.is_none() { self.turn_choice(out) } else { serde_json::Map::new() };
        out.push(wire::prompt(turn.to_string(), turn, (&name, &input), &choice));
    }

    fn choose(&mut self, _key: &str, wanted: &AgentChoice, _out: &mut Actions) {
        self.tuned.wanted.clone_from(wanted);
    }

    fn cancel(&mut self, turn: TurnId, native: Option<&str>, out: &mut Actions) {
        let Some(name) = native.map(str::to_owned).or_else(|| self.main.clone()) else {
            return;
        };
        let Some(thread) = self.threads.of(&name) else {
            return;
        };
        if self.unsent.take_if(|unsent| unsent.turn == turn).is_some() {
            thread.over();
            let native = native.map(str::to_owned);
            out.push(Action::Finished { native, turn: Some(turn), end: TurnEnd::Cancelled });
            return;
        }
        if let Some(running) = thread.running.clone() {
            out.push(wire::interrupt(turn, &name, &running));
            return;
        }
        thread.cancel = Some(turn);
        if !self.whole {
            // An agent that writes nothing more would never tell the id.
            out.push(wire::look(turn, &name));
        }
    }

    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions) {
        self.open.remove(&question.request);
        out.push(wire::reply(&question.request, &json!({ "result": asks::result(question, answer) })));
        out.extend(asks::words(question, answer));
    }

    fn steer(&mut self, key: &str, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) -> bool {
        let Some(name) = native.map(str::to_owned).or_else(|| self.main.clone()) else {
            return false;
        };
        // Without the turn's id in Codex the words would be lost: they take another way. Codex begins the turns of
        // subagents itself.
        let running = self.threads.get(&name).filter(|thread| thread.turn.is_some() || native.is_some());
        let Some(running) = running.and_then(|thread| thread.running.clone()) else {
            return false;
        };
        out.push(wire::steer(&format!("steer:{key}"), &name, &running, &wire::input(prompt)));
        true
    }

    fn compact(&mut self, key: &str, out: &mut Actions) -> bool {
        let Some(name) = self.main.clone() else {
            return false;
        };
        // Codex would end a running turn to compact.
        if self.compacting || self.threads.of(&name).is_none_or(|thread| thread.turn.is_some()) {
            return false;
        }
        self.compacting = true;
        out.push(wire::request(
            format!("compact:{key}"),
            &format!("compact:{key}"),
            "thread/compact/start",
            &json!({ "threadId": name }),
        ));
        true
    }
}
