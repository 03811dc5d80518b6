//! The driver for any command-line agent that is run once per turn: the prompt goes in with the arguments or on
//! standard input, text or JSON lines come out, and the next turn names the conversation again.
//!
//! The program starts with its prompt, so it may have told much, even its end, before [`Driver::prompt`] says which turn
//! it is about: an end that came early is kept until then. With the prompt on standard input, `prompt` may (and where
//! the program tells its conversation's id only after reading it, must) be called before [`Action::Ready`].
//!
//! Claude Code takes lines while it works: its input stays open for answers until its turn has ended.

mod codex_json;
#[cfg(test)]
mod tests;

use lanyard_api::agents::settings::{OutputForm, PerTurn};
use lanyard_core::TurnId;
use lanyard_core::session::{AgentChoice, AgentInfo, Capabilities, ChoiceKind, Question, TurnOutcome};
use serde_json::Value;

use self::codex_json::CodexJson;
use super::claude::asks;
use super::claude::lines::{ClaudeLines, ClaudeNews, ClaudeSpan};
use super::driver::{Action, Actions, Answer, Begin, Driver, Opened, Readiness, Setting, TextKind, TurnEnd};
use super::given::GivenPrompt;

/// Bytes of a foreign line that are quoted in the daemon's log.
const QUOTE_BYTES_MAX: usize = 200;
/// Calls and subagents at work that are kept in mind.
const OPEN_MAX: usize = 1024;

/// Reads what a command writes in its one turn.
#[derive(Debug)]
pub(crate) struct CommandDriver {
    begin: Begin,
    per_turn: PerTurn,
    form: Form,
    turn: Option<TurnId>,
    ready: bool,
    cancelled: bool,
    end: End,
}

#[derive(Debug)]
enum Form {
    Text,
    Claude(ClaudeLines),
    Codex(CodexJson),
}

/// Where the turn's end is.
#[derive(Debug)]
enum End {
    Ahead,
    /// Seen before anybody said which turn it ends.
    Kept(TurnEnd),
    Told,
}

/// What a line of JSON told beyond actions.
#[derive(Debug)]
enum Told {
    Nothing,
    /// The conversation's id and the program's version.
    Native {
        native: String,
        version: Option<String>,
    },
    End(TurnEnd),
}

impl CommandDriver {
    pub(crate) fn new(setting: Setting, per_turn: PerTurn) -> Self {
        let (turn, how) = match &setting.begin {
            Begin::New => (None, Opened::New),
            Begin::Resume { .. } => (None, Opened::Believed),
            Begin::Adopted { readiness, turn, .. } => (*turn, readiness.how),
        };
        let adopted = matches!(setting.begin, Begin::Adopted { .. });
        let main = match &setting.begin {
            Begin::New => None,
            Begin::Resume { native } => Some(native.clone()),
            Begin::Adopted { readiness, .. } => Some(readiness.native.clone()),
        };
        let form = match per_turn.output {
            OutputForm::Text => Form::Text,
            OutputForm::ClaudeJson => {
                Form::Claude(ClaudeLines::new(ClaudeSpan::OneTurn, main, per_turn.asks()))
            }
            OutputForm::CodexJson => Form::Codex(CodexJson::new(how == Opened::New, !adopted)),
        };
        Self { begin: setting.begin, per_turn, form, turn, ready: adopted, cancelled: false, end: End::Ahead }
    }

    fn ready(&mut self, native: String, version: Option<String>, out: &mut Actions) {
        if self.ready {
            return;
        }
        let how = match &self.begin {
            Begin::New | Begin::Adopted { .. } => Opened::New,
            Begin::Resume { native: wanted } if *wanted == native || matches!(self.form, Form::Text) => {
                Opened::Believed
            }
            Begin::Resume { native: wanted } => {
                let what = format!("{wanted} was asked for and {native} was opened");
                self.end = End::Told;
                return out.push(Action::Broken { code: "resume_refused", what });
            }
        };
        self.ready = true;
        let (info, capabilities) = identity(&self.per_turn, version);
        out.push(Action::Ready(Box::new(Readiness { native, info, capabilities, how })));
    }

    fn ended(&mut self, end: TurnEnd, out: &mut Actions) {
        if matches!(self.end, End::Told) || self.unopened(&end, out) {
            return;
        }
        match self.turn {
            Some(_) => self.finish(end, out),
            None => self.end = End::Kept(end),
        }
    }

    /// A conversation that was never opened has no turn that could fail: the run did.
    fn unopened(&mut self, end: &TurnEnd, out: &mut Actions) -> bool {
        let code = match (&self.begin, self.turn) {
            (Begin::Resume { .. }, _) => "resume_refused",
            (Begin::New, None) => "handshake_failed",
            (Begin::New | Begin::Adopted { .. }, _) => return false,
        };
        let TurnEnd::Failed(what) = end else {
            return false;
        };
        if self.ready || self.cancelled {
            return false;
        }
        self.end = End::Told;
        out.push(Action::Broken { code, what: what.clone() });
        true
    }

    fn finish(&mut self, end: TurnEnd, out: &mut Actions) {
        let killed = self.cancelled && matches!(end, TurnEnd::Failed(_) | TurnEnd::Limited(_));
        let end = if killed { TurnEnd::Cancelled } else { end };
        self.end = End::Told;
        out.push(Action::Finished { native: None, turn: self.turn, end });
    }
}

impl Driver for CommandDriver {
    fn begin(&mut self, out: &mut Actions) {
        if matches!(self.form, Form::Text) {
            self.ready("text".to_owned(), None, out);
        }
    }

    fn recall(&mut self, line: &[u8], _out: &mut Actions) {
        if let (Form::Claude(claude), Ok(message)) = (&mut self.form, serde_json::from_slice(line)) {
            claude.learn(&message);
        }
    }

    fn is_midway(&self) -> bool {
        matches!(&self.form, Form::Claude(claude) if claude.is_midway())
    }

    fn line(&mut self, line: &[u8], out: &mut Actions) {
        if matches!(self.form, Form::Text) {
            let text = format!("{}\n", String::from_utf8_lossy(line));
            return out.push(Action::Text { native: None, kind: TextKind::Message, text, message: None });
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            if !line.trim_ascii().is_empty() {
                let quote = String::from_utf8_lossy(line.get(..QUOTE_BYTES_MAX).unwrap_or(line));
                out.push(Action::Odd { what: format!("the command wrote no JSON: {quote}") });
            }
            return;
        };
        let told = match &mut self.form {
            Form::Text => Told::Nothing,
            Form::Claude(claude) => match claude.told(&message, out) {
                ClaudeNews::Nothing => Told::Nothing,
                ClaudeNews::Opened { native, version } => Told::Native { native, version },
                ClaudeNews::Result(end) => Told::End(end),
            },
            Form::Codex(codex) => codex.told(&message, out),
        };
        match told {
            Told::Nothing => {}
            Told::Native { native, version } => self.ready(native, version, out),
            Told::End(end) => self.ended(end, out),
        }
    }

    fn prompt(&mut self, turn: TurnId, _native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions) {
        let text = prompt.text;
        self.turn = Some(turn);
        if self.per_turn.prompt_on_stdin {
            let two_way = self.per_turn.is_two_way();
            let line = if two_way { asks::prompt(text) } else { text.to_owned() };
            out.push(Action::Send { key: turn.to_string(), line });
        }
        if let End::Kept(end) = std::mem::replace(&mut self.end, End::Ahead) {
            self.finish(end, out);
        }
    }

    /// The program has no words for it: it is ended by signals, and its end is then read as a cancel. A subagent cannot
    /// be ended alone.
    fn cancel(&mut self, _turn: TurnId, native: Option<&str>, _out: &mut Actions) {
        self.cancelled |= native.is_none();
    }

    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions) {
        if matches!(self.form, Form::Claude(_)) {
            out.push(asks::answer(question, answer));
        }
    }

    fn exited(&mut self, code: Option<i32>, out: &mut Actions) {
        let end = match std::mem::replace(&mut self.end, End::Ahead) {
            End::Told => {
                self.end = End::Told;
                return;
            }
            End::Kept(end) => end,
            // Killed, and not by a cancel: that is for the end of the run to say, and no end the agent gave its turn.
            End::Ahead if code.is_none() && !self.cancelled => {
                self.end = End::Told;
                return;
            }
            End::Ahead => match (&self.form, code) {
                (Form::Text, Some(0)) => TurnEnd::Done(TurnOutcome::Completed),
                (Form::Claude(_) | Form::Codex(_), Some(0)) => {
                    TurnEnd::Failed("exited with 0 before it told a result".to_owned())
                }
                (_, Some(code)) => TurnEnd::Failed(format!("exited with {code}")),
                (_, None) => TurnEnd::Failed("ended by a signal".to_owned()),
            },
        };
        if !self.unopened(&end, out) {
            self.finish(end, out);
        }
    }
}

/// What such an agent is called and can do: the same before a run, in a check, and in it.
pub(crate) fn identity(per_turn: &PerTurn, version: Option<String>) -> (AgentInfo, Capabilities) {
    let (name, protocol, children) = match per_turn.output {
        OutputForm::Text => ("command", "text", false),
        OutputForm::ClaudeJson => ("claude", "claude stream-json", true),
        OutputForm::CodexJson => ("codex", "codex exec", true),
    };
    let info = AgentInfo { name: name.to_owned(), version, protocol: protocol.to_owned() };
    let (resume, permissions) = (!per_turn.next.is_empty(), per_turn.asks());
    // Its turn is cancelled by ending its process.
    let capabilities =
        Capabilities { resume, cancel: true, children, permissions, ..Capabilities::default() };
    (info, capabilities)
}

/// What an argument's places stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) prompt: &'a str,
    /// The model, mode and effort of the turn.
    pub(crate) choice: &'a AgentChoice,
    pub(crate) native: Option<&'a str>,
    /// The session's MCP servers as clients write them into `mcp.json`. The token is named, not told: no secret stands
    /// in an argument.
    pub(crate) mcp_config: &'a str,
    /// Where the gateway has the session's servers: a server's own address is this, `/` and its name.
    pub(crate) mcp: &'a str,
}

/// The arguments of one turn: the places are filled in one pass, so that none is looked for inside another. A prompt
/// that has no place, neither there nor on standard input, comes last.
pub(crate) fn arguments(per_turn: &PerTurn, places: Places<'_>) -> Vec<String> {
    let form = match places.native {
        Some(_) if !per_turn.next.is_empty() => &per_turn.next,
        Some(_) | None => &per_turn.first,
    };
    let mut arguments: Vec<String> = Vec::new();
    for argument in form {
        if let Some(kind) = ChoiceKind::ALL.into_iter().find(|kind| argument.contains(&place_of(*kind)))
            && places.choice.get(kind).is_none()
        {
            // Nothing is chosen: the argument goes, and with it the option before it.
            if *argument == place_of(kind) {
                arguments.pop_if(|before| before.starts_with('-'));
            }
            continue;
        }
        arguments.push(filled(argument, places));
    }
    if !per_turn.prompt_on_stdin && !form.iter().any(|argument| argument.contains("{prompt}")) {
        arguments.push(places.prompt.to_owned());
    }
    arguments
}

fn place_of(kind: ChoiceKind) -> String {
    format!("{{{}}}", kind.as_str())
}

fn filled(argument: &str, places: Places<'_>) -> String {
    let mut text = String::new();
    let mut rest = argument;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let values = [
            ("{prompt}", places.prompt),
            ("{native}", places.native.unwrap_or_default()),
            ("{model}", places.choice.model.as_deref().unwrap_or_default()),
            ("{mode}", places.choice.mode.as_deref().unwrap_or_default()),
            ("{effort}", places.choice.effort.as_deref().unwrap_or_default()),
            ("{mcp_config}", places.mcp_config),
            ("{mcp}", places.mcp),
        ];
        let value = values.into_iter().find_map(|(name, value)| Some((value, from.strip_prefix(name)?)));
        let (value, after) = value.unwrap_or_else(|| from.split_at(1));
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    text
}
