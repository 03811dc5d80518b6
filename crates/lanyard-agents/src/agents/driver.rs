//! The one small trait behind which agents differ.
//!
//! A driver translates: lines the agent wrote become [`Action`]s, wishes become lines to write. It does no input or
//! output, reads no clock and starts nothing, so it can be tested as text in, actions out, and picked up in mid-turn:
//! after a daemon restart a new driver is told what the log knows ([`Begin::Adopted`]) and is shown the output again
//! from the last position that became events. Everything it sends carries a key, and the shim writes each key once per
//! run: a driver may send again what was sent before the restart, and nothing reaches the agent twice.

use std::path::PathBuf;

use lanyard_api::agents::settings::ClientFiles;
use lanyard_core::TurnId;
use lanyard_core::session::{
    AgentChoice, AgentInfo, AgentOffer, Capabilities, GateOption, Question, Signal, TurnOutcome,
};
use lanyard_core::text::content_hash;
use serde_json::Value;

use super::given::{GivenPart, GivenPrompt};
use super::limits::LimitSign;

/// An agent's own protocol.
pub(crate) trait Driver: Send + Sync {
    /// The first words. Called once, before anything else.
    fn begin(&mut self, out: &mut Actions);

    /// These tool calls were told of by an earlier daemon, and have not returned. Called before [`Driver::begin`].
    fn knows(&mut self, _calls: &[String]) {}

    /// A line that an earlier daemon has read to the end. Whatever in it waits for an answer that only that daemon could
    /// give is refused; where it was given, the refusal is never written.
    fn recall(&mut self, _line: &[u8], _out: &mut Actions) {}

    /// Later lines can only be understood together with earlier ones, which [`Driver::recall`] has to see in a daemon that
    /// comes after.
    fn is_midway(&self) -> bool {
        false
    }

    /// One line the agent wrote, without its newline.
    fn line(&mut self, line: &[u8], out: &mut Actions);

    /// Whether the agent takes this part of a prompt as it is. What it does not take is named in the prompt's text.
    fn takes(&self, _part: &GivenPart) -> bool {
        false
    }

    /// Hands over a prompt. Only called after [`Action::Ready`] and while no other turn of the same conversation runs.
    /// `native` names a subagent's conversation; the main one when left out.
    fn prompt(&mut self, turn: TurnId, native: Option<&str>, prompt: GivenPrompt<'_>, out: &mut Actions);

    /// The model, mode and effort from here on, for prompts and for the turn that runs, as far as the agent takes them. `key`
    /// names the wish: the same again is one. A prompt that follows waits until the agent has agreed, and its turn fails
    /// if the agent does not.
    fn choose(&mut self, _key: &str, _wanted: &AgentChoice, _out: &mut Actions) {}

    /// Whether the prompt of a turn waits for the agent to agree to its model, mode or effort.
    fn holds_prompt(&self) -> bool {
        false
    }

    /// Asks the agent to end the turn. It answers with [`Action::Finished`], late or never.
    fn cancel(&mut self, turn: TurnId, native: Option<&str>, out: &mut Actions);

    /// Answers a question the agent asked with [`Action::Asked`].
    fn answer(&mut self, question: &Question, answer: &Answer, out: &mut Actions);

    /// Puts words into the running turn. False when the agent cannot take them. `native` names a subagent's
    /// conversation; the main one when left out.
    fn steer(
        &mut self,
        _key: &str,
        _native: Option<&str>,
        _prompt: GivenPrompt<'_>,
        _out: &mut Actions,
    ) -> bool {
        false
    }

    /// Asks the agent to compact its context. False when it cannot.
    fn compact(&mut self, _key: &str, _out: &mut Actions) -> bool {
        false
    }

    /// Says goodbye, before its input is closed.
    fn close(&mut self, _out: &mut Actions) {}

    /// The result of a [`Action::Call`].
    fn called(&mut self, _request: &str, _result: Result<Value, CallError>, _out: &mut Actions) {}

    /// The process ended with this code. For an agent that is run once per turn this is the end of the turn.
    fn exited(&mut self, _code: Option<i32>, _out: &mut Actions) {}
}

pub(crate) type Actions = Vec<Action>;

/// What a driver wants done, or has seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Write this line (its newline is added) to the agent, once per key and run.
    Send { key: String, line: String },
    /// The agent takes prompts from now on.
    Ready(Box<Readiness>),
    /// The agent played back so many messages of a conversation it took up again. May come before or after `Ready`.
    Replayed(u64),
    /// Part of a message or thought; parts are joined before they become an event.
    Text {
        native: Option<String>,
        kind: TextKind,
        text: String,
        /// The protocol's id of the message that the text is part of.
        message: Option<String>,
    },
    /// An image of a message, in base64.
    Image { native: Option<String>, data: String, message: Option<String> },
    /// Something of the agent's work.
    Saw { native: Option<String>, signal: Signal },
    /// The agent asks and waits.
    Asked { native: Option<String>, question: Box<Question> },
    /// It no longer waits.
    Unasked { request: String, why: String },
    /// A subagent appeared: a conversation of its own, already at work on `prompt`.
    Child(Box<Child>),
    /// The turn is over. `native` for a subagent's.
    Finished { native: Option<String>, turn: Option<TurnId>, end: TurnEnd },
    /// The agent asks the client to do something; the result goes to [`Driver::called`].
    Call { request: String, call: Call },
    /// The agent broke its protocol, or refused to work: the run is ended with this reason.
    Broken { code: &'static str, what: String },
    /// Something odd that harms nothing; it goes to the daemon's log.
    Odd { what: String },
}

/// The greeting's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// The agent's own id of the conversation.
    pub(crate) native: String,
    pub(crate) info: AgentInfo,
    pub(crate) capabilities: Capabilities,
    pub(crate) how: Opened,
}

/// How the conversation was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    New,
    /// Taken up again, and what was played back shows whether anything is left of it.
    Resumed,
    /// Taken up again by the agent's word alone: its protocol has no way to see.
    Believed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Message,
    Thought,
    /// Words of the user that the agent repeats or got from elsewhere.
    User,
}

/// An error that the agent showed.
pub(crate) fn error_seen(text: String) -> Signal {
    Signal::ErrorSeen { hash: content_hash(text.as_bytes()), text: Some(text) }
}

/// The most that a conversation can cost, in dollars. What is more is a mistake of the agent.
const CONVERSATION_MAX: f64 = 100_000.0;

/// Whether an agent's number of dollars can be what a conversation cost. NaN and what is below zero cannot.
pub(crate) fn is_amount(dollars: f64) -> bool {
    (0.0..=CONVERSATION_MAX).contains(&dollars)
}

/// Dollars as millionths of one; nothing for what is no amount.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an amount is within bounds")]
pub(crate) fn micros(dollars: f64) -> u64 {
    if is_amount(dollars) { (dollars * 1_000_000.0).round() as u64 } else { 0 }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) native: String,
    /// Further names it goes by. A hook may have made its session known under one of them.
    pub(crate) also: Vec<String>,
    /// The conversation it was spawned from; the main one when left out.
    pub(crate) parent: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) prompt: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Done(TurnOutcome),
    /// It is over, and this should be known of it.
    Noted(TurnOutcome, String),
    Cancelled,
    /// The agent's own limit: tokens or requests of one turn.
    Limit(String),
    /// It failed, in its own words.
    Failed(String),
    /// A limit of its provider ended it: it may go on later.
    Limited(LimitSign),
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Chosen {
        option: GateOption,
        message: Option<String>,
    },
    /// Nobody will answer: the turn is being cancelled, or the question came at a wrong time.
    Void,
}

/// Something an agent asks its client to do, confined to the workspace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    ReadFile {
        path: PathBuf,
        line: Option<u64>,
        limit: Option<u64>,
    },
    WriteFile {
        path: PathBuf,
        text: String,
    },
    TerminalCreate {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
        output_bytes_max: Option<u64>,
    },
    TerminalOutput {
        terminal: String,
    },
    TerminalWait {
        terminal: String,
    },
    TerminalKill {
        terminal: String,
    },
    TerminalRelease {
        terminal: String,
    },
}

impl Call {
    /// Whether doing it twice differs from doing it once.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::WriteFile { .. } | Self::TerminalCreate { .. } => true,
            Self::ReadFile { .. }
            | Self::TerminalOutput { .. }
            | Self::TerminalWait { .. }
            | Self::TerminalKill { .. }
            | Self::TerminalRelease { .. } => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallError {
    pub(crate) message: String,
    /// The thing it names does not exist.
    pub(crate) missing: bool,
}

/// Everything a driver is told before it begins.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) begin: Begin,
    pub(crate) workspace: PathBuf,
    /// The agent's role, said before the first prompt of a conversation where the protocol has no place for it.
    pub(crate) instructions: Option<String>,
    /// A mode or model the agent knows by this name.
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) mcp: Vec<McpServer>,
    /// The file access that an ACP agent is offered.
    pub(crate) client_files: ClientFiles,
    /// The id of a new conversation, for an agent that lets its client choose it.
    pub(crate) conversation: String,
    /// Git's folders outside the workspace that a commit in it writes, for agents with a sandbox of their own.
    pub(crate) git_folders: Vec<PathBuf>,
    pub(crate) tuned: Tuned,
}

/// What the log knows of an agent's choices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tuned {
    /// The session's own choice.
    pub(crate) wanted: AgentChoice,
    pub(crate) in_force: AgentChoice,
    /// What the run has offered; empty for a new one.
    pub(crate) offer: AgentOffer,
}

#[derive(Debug, Clone)]
pub(crate) enum Begin {
    New,
    /// Take this conversation up again; if the agent cannot, [`Action::Broken`] with code `resume_refused`.
    Resume {
        native: String,
    },
    /// The run is alive and was greeted: say nothing, go on from what the log knows.
    Adopted {
        readiness: Readiness,
        turn: Option<TurnId>,
        open: Vec<Question>,
    },
}

/// An MCP server to be offered to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum McpServer {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the gateway offers addresses only; drivers know programs too")
    )]
    Stdio {
        name: String,
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    Http {
        name: String,
        url: String,
        headers: Vec<(String, String)>,
    },
}
