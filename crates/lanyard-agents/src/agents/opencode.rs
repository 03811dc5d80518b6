//! `OpenCode`, spoken to through the bridge (`lanyard opencode-bridge`), whose module describes the lines.
//!
//! The bridge remembers what was said, so this driver remembers next to nothing: each line becomes the same actions
//! whether the driver saw the lines before it or not. That is what makes it safe to take up in mid-turn.

mod event;
mod options;
pub(in crate::agents) mod orders;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, AgentInfo, Capabilities, Question};
use serde_json::{Value, json};

use super::driver::{
    Action, Actions, Answer, Begin, Driver, Opened, Readiness, Setting, Tuned, TurnEnd, error_seen,
};
use super::given::{GivenPart, GivenPrompt};
use super::limits;
use options::command_in;

/// Key and id of the order that opens the conversation.
const OPEN: &str = "open";

/// What the bridge makes of `OpenCode`. Resuming plays nothing back, but says how much there is.
const CAPABILITIES: Capabilities = Capabilities {
    load: false,
    resume: true,
    fork: false,
    list: false,
    close: true,
    cancel: true,
    steer: true,
    compact: true,
    children: true,
    permissions: true,
    images: true,
    mcp_stdio: true,
    mcp_http: true,
    mcp_sse: false,
};

#[derive(Debug)]
pub(crate) struct OpenCode {
    setting: Setting,
    /// The main conversation, once it is known.
    native: Option<String>,
    tuned: Tuned,
}

impl OpenCode {
    pub(crate) fn new(setting: Setting) -> Self {
        let native = match &setting.begin {
            Begin::New => None,
            Begin::Resume { native } => Some(native.clone()),
            Begin::Adopted { readiness, .. } => Some(readiness.native.clone()),
        };
        Self { native, tuned: setting.tuned.clone(), setting }
    }

    /// A conversation as the daemon names it: nothing for the main one.
    fn native_of(&self, session: &str) -> Option<String> {
        (self.native.as_deref() != Some(session)).then(|| session.to_owned())
    }

    fn answered(&mut self, re: &str, line: &Value, out: &mut Actions) {
        let error = &line["error"];
        let message = || error["message"].as_str().unwrap_or("no reason was given").to_owned();
        match re.split_once(':').map_or(re, |(kind, _)| kind) {
            OPEN if error.is_null() => self.opened(&line["ok"], out),
            OPEN => {
                let resuming = matches!(self.setting.begin, Begin::Resume { .. });
                let unknown = error["code"] == "unknown";
                let code = if resuming && unknown { "resume_refused" } else { "open_failed" };
                out.push(Action::Broken { code, what: message() });
            }
            // A prompt that was not taken ends with its turn, in an event.
            _ if error.is_null() => {}
            "prompt" => {}
            "compact" => {
                let text = format!("the context was not compacted: {}", message());
                out.push(Action::Saw { native: None, signal: error_seen(text) });
            }
            _ => out.push(Action::Odd { what: format!("{re}: {}", message()) }),
        }
    }

    fn opened(&mut self, ok: &Value, out: &mut Actions) {
        let Some(native) = ok["native"].as_str() else {
            out.push(Action::Broken { code: "open_failed", what: "the conversation has no id".to_owned() });
            return;
        };
        self.native = Some(native.to_owned());
        let history = ok["history"].as_u64();
        if let Some(messages) = history {
            out.push(Action::Replayed(messages));
        }
        let info = AgentInfo {
            name: "OpenCode".to_owned(),
            version: ok["version"].as_str().map(str::to_owned),
            protocol: "opencode http".to_owned(),
        };
        self.learn_offer(&ok["offers"], out);
        let how = if history.is_some() { Opened::Resumed } else { Opened::New };
        let readiness = Readiness { native: native.to_owned(), info, capabilities: CAPABILITIES, how };
        out.push(Action::Ready(Box::new(readiness)));
    }
}

impl Driver for OpenCode {
    fn begin(&mut self, out: &mut Actions) {
        let native = match &self.setting.begin {
            Begin::New => None,
            Begin::Resume { native } => Some(native.as_str()),
            Begin::Adopted { .. } => return,
        };
        out.push(orders::send(OPEN, &orders::open(&self.setting, native)));
    }

    fn line(&mut self, line: &[u8], out: &mut Actions) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            let text: String = String::from_utf8_lossy(line).chars().take(200).collect();
            out.push(Action::Odd { what: format!("a line that is no JSON: {text}") });
            return;
        };
        if let Some(re) = line["re"].as_str() {
            self.answered(re, &line, out);
        } else if line["event"].is_object() {
            self.event(&line["event"], &line["note"], out);
        } else if let Some(what) = line["odd"].as_str() {
            out.push(Action::Odd { what: what.to_owned() });
        } else if line["gap"].is_object() {
            let what = "OpenCode's stream broke and is back; what was missed was asked for".to_owned();
            out.push(Action::Odd { what });
        } else if let Some(what) = line["down"]["what"].as_str() {
            // The process ends with it, which says the rest.
            out.push(Action::Odd { what: what.to_owned() });
        } else {
            let text: String = line.to_string().chars().take(200).collect();
            out.push(Action::Odd { what: format!("a line of no known kind: {text}") });
        }
    }

    fn takes(&self, part: &GivenPart) -> bool {
        part.image().is_some()
    }

    fn prompt(&mut self, turn: TurnId, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) {
        let (text, files) = (prompt.text, orders::files(prompt.parts));
        let mut order =
            json!({"op": "prompt", "turn": turn, "session": native, "text": text, "files": files});
        if native.is_none() {
            self.name_choice(&mut order, out);
            if let Some((name, arguments)) = command_in(&self.tuned.offer, text) {
                order["command"] = name.into();
                order["text"] = arguments.into();
            }
        }
        out.push(orders::send(&format!("prompt:{turn}"), &order));
    }

    fn choose(&mut self, _key: &str, wanted: &AgentChoice, _out: &mut Actions) {
        self.tuned.wanted.clone_from(wanted);
    }

    fn cancel(&mut self, turn: TurnId, native: Option<&str>, out: &mut Actions) {
        let order = json!({"op": "abort", "session": native});
        out.push(orders::send(&format!("cancel:{turn}"), &order));
    }

    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions) {
        let order = orders::answer(question, answer);
        out.push(orders::send(&format!("answer:{}", question.request), &order));
    }

    fn steer(&mut self, key: &str, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) -> bool {
        let (text, files) = (prompt.text, orders::files(prompt.parts));
        let order = json!({"op": "steer", "session": native, "text": text, "files": files});
        out.push(orders::send(&format!("steer:{key}"), &order));
        true
    }

    fn compact(&mut self, key: &str, out: &mut Actions) -> bool {
        out.push(orders::send(&format!("compact:{key}"), &json!({"op": "compact"})));
        true
    }

    /// Without it the bridge goes on when its input is closed: it cannot tell a goodbye from a daemon that is away.
    fn close(&mut self, out: &mut Actions) {
        out.push(orders::send("end", &json!({"op": "end"})));
    }
}

/// The turn a note names.
fn turn_in(note: &Value) -> Option<TurnId> {
    note["turn"].as_str().and_then(|turn| TurnId::from_str(turn).ok())
}

/// How the work ended, by the bridge's note.
fn end_in(note: &Value) -> TurnEnd {
    let error = &note["error"];
    let text = || {
        let said = error["message"].as_str().or_else(|| error["name"].as_str());
        said.unwrap_or("OpenCode gave no reason").to_owned()
    };
    if note["aborted"] == true {
        return TurnEnd::Cancelled;
    }
    if error.is_null() {
        return TurnEnd::Done(lanyard_core::session::TurnOutcome::Completed);
    }
    match error["name"].as_str() {
        Some("MessageAbortedError") => TurnEnd::Cancelled,
        Some("MessageOutputLengthError") => TurnEnd::Limit(text()),
        Some(_) | None => match limits::in_error(error, &text()) {
            Some(limit) => TurnEnd::Limited(limit),
            None => TurnEnd::Failed(text()),
        },
    }
}
