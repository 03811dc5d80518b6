//! The driver for Claude Code in both directions: `claude -p` with `stream-json` in and out, one process per conversation.
//!
//! Prompts and words for a running turn are lines with an id of ours. Claude Code names the ids in what it tells of them
//! (`command_lifecycle`, `user_message_uuids` of a result), so a driver that did not send a line knows whose result it
//! reads. A turn is over when its result came and Claude Code says that it is idle: until then subagents in the
//! background are at work, or words that came too late for the turn's last call to the model are being answered. A
//! version that tells no state ends a turn with its result.

pub(super) mod asks;
pub(super) mod lines;
mod options;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, AgentInfo, Capabilities, Question};
use serde_json::{Value, json};

use self::lines::{ClaudeLines, ClaudeNews, ClaudeSpan};
use super::driver::{Action, Actions, Answer, Begin, Driver, Opened, Readiness, Setting, Tuned, TurnEnd};
use super::given::{GivenPart, GivenPrompt};
use super::tuning::Tuning;

/// Bytes of a foreign line that are quoted in the daemon's log.
const QUOTE_BYTES_MAX: usize = 200;
/// Words for a running turn that may wait for Claude Code.
const WORDS_MAX: usize = 1024;
/// The beginning of the ids of words that were put into a running turn.
const WORDS: &str = "words:";

/// The arguments that the driver needs, beside those of the conversation. Lanyard's own tools need no question: they act
/// as the session itself.
const ARGUMENTS: [&str; 11] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--allowedTools",
    "mcp__lanyard",
];

/// Makes Claude Code tell whether it is idle.
pub(super) const STATES: (&str, &str) = ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1");

/// The arguments of a run.
pub(super) fn arguments(setting: &Setting, mcp_config: &str) -> Vec<String> {
    let mut words: Vec<String> = ARGUMENTS.iter().map(|word| (*word).to_owned()).collect();
    let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
    add("--mcp-config", mcp_config);
    if let Some(model) = &setting.model {
        add("--model", model);
    }
    if let Some(mode) = &setting.mode {
        add("--permission-mode", mode);
    }
    match &setting.begin {
        Begin::New | Begin::Adopted { .. } => add("--session-id", &setting.conversation),
        Begin::Resume { native } => add("--resume", native),
    }
    // Without it Claude Code refuses a request for that mode.
    if setting.tuned.wanted.mode.as_deref() == Some(options::BYPASS) {
        words.push("--allow-dangerously-skip-permissions".to_owned());
    }
    words
}

/// Speaks with Claude Code.
#[derive(Debug)]
pub(crate) struct ClaudeCode {
    begin: Begin,
    /// The conversation's id, chosen here for a new one.
    native: String,
    lines: ClaudeLines,
    ready: bool,
    activity: Activity,
    turn: Option<TurnId>,
    /// How the turn ends, once its result came and something of it goes on.
    end: Option<TurnEnd>,
    /// Words for the turn that Claude Code has not taken up.
    words: BTreeMap<String, WordsPassage>,
    /// It tells what becomes of the lines it is given.
    tells_queue: bool,
    cancelled: bool,
    tuning: Tuning,
    /// The model and the mode that the program was started with.
    model: Option<String>,
    mode: Option<String>,
}

/// How far words have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordsPassage {
    /// They were written, and Claude Code has not said that it read them.
    Sent,
    Queued,
}

/// What Claude Code says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Nothing, so far.
    Untold,
    Idle,
    Busy,
}

impl ClaudeCode {
    pub(crate) fn new(setting: Setting) -> Self {
        let (native, turn) = match &setting.begin {
            Begin::New => (setting.conversation, None),
            Begin::Resume { native } => (native.clone(), None),
            Begin::Adopted { readiness, turn, .. } => (readiness.native.clone(), *turn),
        };
        let adopted = matches!(setting.begin, Begin::Adopted { .. });
        let lines = ClaudeLines::new(ClaudeSpan::ManyTurns, Some(native.clone()), true);
        Self {
            lines: if adopted { lines } else { lines.at_start() },
            native,
            ready: adopted,
            begin: setting.begin,
            activity: Activity::Untold,
            turn,
            end: None,
            words: BTreeMap::new(),
            tells_queue: false,
            cancelled: false,
            tuning: Tuning::new(setting.tuned),
            model: setting.model,
            mode: setting.mode,
        }
    }

    fn heard(&mut self, message: &Value, out: &mut Actions) {
        match message["type"].as_str().unwrap_or_default() {
            "control_response" => return self.answered(&message["response"], out),
            "command_lifecycle" => return self.moved(message, out),
            "conversation_reset" => {
                let what = "Claude Code left the conversation for an empty one; start a new session instead of `/clear`";
                return out.push(Action::Broken { code: "conversation_left", what: what.to_owned() });
            }
            "system" if message["subtype"] == "session_state_changed" => {
                return self.changed(&message["state"], out);
            }
            "system" => self.learn_mode(message, out),
            _ => {}
        }
        match self.lines.told(message, out) {
            ClaudeNews::Nothing => {}
            ClaudeNews::Opened { native, .. } => self.opened(&native, out),
            ClaudeNews::Result(end) if self.ready => self.result(message, end, out),
            ClaudeNews::Result(end) => self.unopened(message, end, out),
        }
    }

    /// The answer to a request of ours.
    fn answered(&mut self, response: &Value, out: &mut Actions) {
        let (id, body) = (response["request_id"].as_str().unwrap_or_default(), &response["response"]);
        let refused = (response["subtype"] == "error")
            .then(|| response["error"].as_str().unwrap_or("no reason given").to_owned());
        if id == "init" {
            return self.greeted(refused, body, out);
        }
        if Tuning::is_id(id) {
            return self.option_answered(id, refused.as_deref(), out);
        }
        if let Some(why) = refused {
            return out.push(Action::Odd { what: format!("Claude Code refused `{id}`: {why}") });
        }
        if let Some(turn) = id.strip_prefix("cancel:") {
            if self.is_turn(turn) {
                self.note_cancel();
            }
            // What waits in its queue would be taken up next.
            let queued = body["still_queued"].as_array().map_or(&[][..], Vec::as_slice);
            for held in queued.iter().filter_map(Value::as_str).filter(|held| self.is_ours(held)) {
                out.push(drop_queued(held));
            }
        } else if let Some(held) = id.strip_prefix("drop:")
            && body["cancelled"] == false
            && self.cancelled
        {
            // It was taken up in the meantime.
            out.push(interrupt(format!("cancel:{held}:again")));
        }
    }

    fn greeted(&mut self, refused: Option<String>, body: &Value, out: &mut Actions) {
        if self.ready {
            return;
        }
        if let Some(why) = refused {
            let what = format!("Claude Code refused the greeting: {why}");
            return out.push(Action::Broken { code: "handshake_failed", what });
        }
        self.ready = true;
        self.learn_options(body, out);
        let how = match &self.begin {
            Begin::New | Begin::Adopted { .. } => Opened::New,
            // One it does not know ends the program before the greeting.
            Begin::Resume { .. } => Opened::Believed,
        };
        let version = body["claude_code_version"].as_str().map(str::to_owned);
        let (name, protocol) = ("claude".to_owned(), "claude stream-json, both ways".to_owned());
        out.push(Action::Ready(Box::new(Readiness {
            native: self.native.clone(),
            info: AgentInfo { name, version, protocol },
            capabilities: capabilities(),
            how,
        })));
    }

    /// A result before the greeting says why there is no conversation.
    fn unopened(&self, message: &Value, end: TurnEnd, out: &mut Actions) {
        // The end of something that an earlier process left behind.
        if !message["origin"].is_null() {
            return;
        }
        let code = match &self.begin {
            Begin::Resume { .. } => "resume_refused",
            Begin::New | Begin::Adopted { .. } => "handshake_failed",
        };
        let what = match end {
            TurnEnd::Failed(what) | TurnEnd::Limit(what) | TurnEnd::Noted(_, what) => what,
            TurnEnd::Limited(limit) => limit.text,
            TurnEnd::Done(_) | TurnEnd::Cancelled => "Claude Code ended before it greeted".to_owned(),
        };
        out.push(Action::Broken { code, what });
    }

    fn opened(&self, native: &str, out: &mut Actions) {
        if native != self.native {
            let what = format!("{} was asked for and {native} was opened", self.native);
            out.push(Action::Broken { code: "resume_refused", what });
        }
    }

    /// The running turn is being cancelled.
    fn note_cancel(&mut self) {
        self.cancelled = true;
        if self.end.is_some() {
            // The turn's own work was done; that of its subagents is not.
            self.end = Some(TurnEnd::Cancelled);
        }
    }

    fn is_ours(&self, id: &str) -> bool {
        id.starts_with(WORDS) || self.is_turn(id)
    }

    fn is_turn(&self, id: &str) -> bool {
        self.turn.is_some_and(|turn| turn.to_string() == id)
    }

    /// What became of a line that Claude Code was given.
    fn moved(&mut self, message: &Value, out: &mut Actions) {
        let Some(id) = message["command_uuid"].as_str() else {
            return;
        };
        self.tells_queue = true;
        let state = message["state"].as_str().unwrap_or_default();
        if state == "queued" {
            return self.keep_words(id, WordsPassage::Queued);
        }
        self.words.remove(id);
        if self.is_turn(id) && self.end.is_none() {
            self.end = match state {
                // It was dropped before its work began, so no result will tell its end.
                "cancelled" => Some(TurnEnd::Cancelled),
                "completed" => {
                    let why = "Claude Code took this prompt in an earlier process and does not take it twice";
                    Some(TurnEnd::Failed(why.to_owned()))
                }
                _ => None,
            };
        }
        self.finish_unless_busy(out);
    }

    fn keep_words(&mut self, id: &str, passage: WordsPassage) {
        if id.starts_with(WORDS) && self.words.len() < WORDS_MAX {
            self.words.insert(id.to_owned(), passage);
        }
    }

    fn changed(&mut self, state: &Value, out: &mut Actions) {
        if state != "idle" {
            self.activity = Activity::Busy;
            return;
        }
        self.activity = Activity::Idle;
        // It said so before it read words that are on their way.
        let tells = self.tells_queue;
        self.words.retain(|_, passage| tells && *passage == WordsPassage::Sent);
        self.lines.rest(out);
        self.finish_unless_busy(out);
    }

    /// A result: of the turn, of words that were put into it, of a subagent's report, or of nothing that was asked here.
    fn result(&mut self, message: &Value, end: TurnEnd, out: &mut Actions) {
        if self.turn.is_none() {
            return;
        }
        let ids = message["user_message_uuids"].as_array().map_or(&[][..], Vec::as_slice);
        let ours = if ids.is_empty() {
            message["origin"].is_null() || self.end.is_some()
        } else {
            ids.iter().filter_map(Value::as_str).any(|id| self.is_ours(id))
        };
        if !ours {
            return;
        }
        let broken_off = self.cancelled && matches!(end, TurnEnd::Failed(_));
        self.end = Some(if broken_off { TurnEnd::Cancelled } else { end });
        self.finish_unless_busy(out);
    }

    fn finish_unless_busy(&mut self, out: &mut Actions) {
        let busy = match self.activity {
            Activity::Busy => true,
            Activity::Idle | Activity::Untold => !self.words.is_empty(),
        };
        if busy {
            return;
        }
        if let Some(end) = self.end.take() {
            self.cancelled = false;
            out.push(Action::Finished { native: None, turn: self.turn.take(), end });
        }
    }
}

impl Driver for ClaudeCode {
    fn begin(&mut self, out: &mut Actions) {
        if !self.ready {
            out.push(asks::request("init".to_owned(), &json!({ "subtype": "initialize" })));
        }
    }

    fn recall(&mut self, line: &[u8], out: &mut Actions) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        let turn = self.turn;
        let mut passed_on = Actions::new();
        // The log knows what has come of choices since.
        let tuning = std::mem::replace(&mut self.tuning, Tuning::new(Tuned::default()));
        self.heard(&message, &mut passed_on);
        self.tuning = tuning;
        // The log has no end of it, so nothing that was read before ended it.
        self.turn = turn;
        if message["type"] == "control_request" && message["request"]["subtype"] != "can_use_tool" {
            out.extend(passed_on);
        }
    }

    fn is_midway(&self) -> bool {
        self.turn.is_some() || self.activity == Activity::Busy || self.lines.is_midway()
    }

    fn line(&mut self, line: &[u8], out: &mut Actions) {
        match serde_json::from_slice::<Value>(line) {
            Ok(message) => self.heard(&message, out),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => {
                let quote = String::from_utf8_lossy(line.get(..QUOTE_BYTES_MAX).unwrap_or(line));
                out.push(Action::Odd { what: format!("Claude Code wrote no JSON: {quote}") });
            }
        }
    }

    fn takes(&self, part: &GivenPart) -> bool {
        part.image().is_some()
    }

    fn prompt(&mut self, turn: TurnId, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) {
        if let Some(native) = native.map(str::to_owned) {
            let end =
                TurnEnd::Failed("a subagent of Claude Code takes prompts of its parent only".to_owned());
            return out.push(Action::Finished { native: Some(native), turn: Some(turn), end });
        }
        if self.turn != Some(turn) {
            (self.turn, self.end, self.cancelled) = (Some(turn), None, false);
        }
        let id = turn.to_string();
        let line = asks::named_prompt(&id, prompt);
        self.tuning.hold(turn, Action::Send { key: id, line });
        self.tune(out);
    }

    fn choose(&mut self, key: &str, wanted: &AgentChoice, out: &mut Actions) {
        self.tuning.wants(key, wanted);
        if self.ready {
            self.tune(out);
        }
    }

    fn holds_prompt(&self) -> bool {
        self.tuning.is_holding()
    }

    fn cancel(&mut self, turn: TurnId, native: Option<&str>, out: &mut Actions) {
        if let Some(child) = native {
            if let Some(task) = self.lines.task_of(child) {
                let request = json!({ "subtype": "stop_task", "task_id": task });
                out.push(asks::request(format!("stop:{turn}"), &request));
            }
            return;
        }
        if self.tuning.drop_held(turn) {
            self.turn = None;
            let end = TurnEnd::Cancelled;
            return out.push(Action::Finished { native: None, turn: Some(turn), end });
        }
        self.note_cancel();
        out.extend(self.words.keys().map(|id| drop_queued(id)));
        out.push(interrupt(format!("cancel:{turn}")));
    }

    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions) {
        out.push(asks::answer(question, answer));
    }

    /// Taken up before the next call to the model, or, when none follows, answered before the turn is over.
    fn steer(&mut self, key: &str, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) -> bool {
        if native.is_some() || self.turn.is_none() || self.cancelled {
            return false;
        }
        let id = format!("{WORDS}{key}");
        self.keep_words(&id, WordsPassage::Sent);
        let line = asks::named_prompt(&id, prompt);
        out.push(Action::Send { key: id, line });
        true
    }

    fn compact(&mut self, key: &str, out: &mut Actions) -> bool {
        if self.turn.is_some() || self.activity == Activity::Busy {
            return false;
        }
        let id = format!("compact:{key}");
        let line = asks::named_prompt(&id, "/compact".into());
        out.push(Action::Send { key: id, line });
        true
    }
}

fn interrupt(id: String) -> Action {
    asks::request(id, &json!({ "subtype": "interrupt" }))
}

/// Takes a line out of Claude Code's queue.
fn drop_queued(id: &str) -> Action {
    asks::request(format!("drop:{id}"), &json!({ "subtype": "cancel_async_message", "message_uuid": id }))
}

fn capabilities() -> Capabilities {
    Capabilities {
        resume: true,
        cancel: true,
        steer: true,
        compact: true,
        children: true,
        permissions: true,
        images: true,
        mcp_stdio: true,
        mcp_http: true,
        ..Capabilities::default()
    }
}
