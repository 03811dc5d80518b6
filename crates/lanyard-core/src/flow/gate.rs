//! A flow's question to a person. It is a part of the flow's log: the question and what it is about are on disk before
//! anybody sees it, an answer and what follows from it are written together, and any client can give it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::flow::record::{FlowRole, FlowState};
use crate::flow::settings::GateDefault;
use crate::flow::verdict::Item;
use crate::id::{GateId, SessionId};
use crate::time::Timestamp;

/// Characters of evidence a gate carries.
pub const EVIDENCE_CHARS_MAX: usize = 8_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowGateKind {
    /// A failure, or a result that needs a person.
    Escalation,
    /// A phase was found ready.
    Phase,
    /// A reviewer asks for corrections.
    Review,
}

impl FlowGateKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Escalation => "escalation",
            Self::Phase => "phase",
            Self::Review => "review",
        }
    }
}

/// A question that waits, or the answer it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowGate {
    pub id: GateId,
    pub kind: FlowGateKind,
    pub step: u32,
    /// The state that led here.
    pub from: FlowState,
    /// The state `continue` leads to, in a new session.
    pub next: FlowState,
    /// A stable word for why.
    pub code: String,
    /// Why, in one sentence.
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    pub iteration: u32,
    /// Evidence for the question: the output of a check, or notes of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// There only when going on with the session is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continue_session: Option<Continuation>,
    /// Why it is not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_offered: Option<String>,
    /// The session a new one is forked from, because another role needs what it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<SessionId>,
    pub opened_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    pub default: GateDefault,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<GateAnswered>,
}

/// The session that a continuation uses, and the state at which it resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Continuation {
    pub session: SessionId,
    pub resume_state: FlowState,
    pub role: FlowRole,
    /// The result of the latest probe of the session.
    pub probe: Probe,
}

/// Facts about a session that decide whether it can be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Probe {
    /// The session exists and has not ended.
    pub exists: bool,
    /// The agent's process is alive.
    pub alive: bool,
    /// The agent can load the session again after its process has ended.
    pub loadable: bool,
    /// No turn is running; a running turn is ended first.
    pub idle: bool,
    /// There is room in its context, as far as that is known.
    pub context_left: bool,
}

impl Probe {
    /// The reason why the session cannot be continued, if there is one.
    #[must_use]
    pub const fn hindrance(self) -> Option<&'static str> {
        if !self.exists {
            Some("its session is gone")
        } else if !self.alive && !self.loadable {
            Some("its agent cannot take the conversation up again")
        } else if !self.context_left {
            Some("its context is used up")
        } else {
            None
        }
    }
}

/// The answers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Go on in the same session, which knows everything.
    ContinueSession,
    /// Fix it in a new session.
    Continue,
    /// Let it pass as it is.
    Approve,
    Abort,
}

/// An answer, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateAnswered {
    pub choice: Choice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    pub by: Actor,
    pub at: Timestamp,
}

impl Choice {
    pub const ALL: [Self; 4] = [Self::ContinueSession, Self::Continue, Self::Approve, Self::Abort];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ContinueSession => "continue_session",
            Self::Continue => "continue",
            Self::Approve => "approve",
            Self::Abort => "abort",
        }
    }

    /// The letter for it at a prompt.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::ContinueSession => 'c',
            Self::Continue => 'f',
            Self::Approve => 'o',
            Self::Abort => 'q',
        }
    }

    /// The effect of the answer, in one line.
    #[must_use]
    pub const fn words(self, kind: FlowGateKind) -> &'static str {
        match (self, kind) {
            (Self::ContinueSession, _) => "continue the same session, which keeps everything it knows",
            (Self::Continue, FlowGateKind::Escalation) => "fix it in a new session",
            (Self::Continue, FlowGateKind::Review) => "let the author make these corrections",
            (Self::Continue, FlowGateKind::Phase) => "have the author change something first",
            (Self::Approve, FlowGateKind::Phase) => "the phase is good: go on with the next",
            (Self::Approve, FlowGateKind::Escalation | FlowGateKind::Review) => {
                "override: let it pass as it is"
            }
            (Self::Abort, _) => "abort the flow; `lanyard flow resume` takes it up again",
        }
    }

    /// Whether words for the agent may go with it.
    #[must_use]
    pub const fn takes_guidance(self) -> bool {
        matches!(self, Self::ContinueSession | Self::Continue)
    }
}

/// Parses an answer as a person types it: a letter, or a name with `-` or `_`, and guidance after a colon.
#[must_use]
pub fn parse(text: &str) -> Option<(Choice, Option<String>)> {
    let (word, words) = match text.split_once(':') {
        Some((word, words)) => (word, Some(words.trim()).filter(|words| !words.is_empty())),
        None => (text, None),
    };
    let word = word.trim().to_lowercase().replace('-', "_");
    let named = |choice: &Choice| choice.as_str() == word || word == choice.letter().to_string();
    let choice = Choice::ALL.into_iter().find(named).or(match word.as_str() {
        "fix" => Some(Choice::Continue),
        "override" => Some(Choice::Approve),
        "quit" => Some(Choice::Abort),
        _ => None,
    })?;
    (words.is_none() || choice.takes_guidance()).then(|| (choice, words.map(str::to_owned)))
}

impl FlowGate {
    /// Whether the gate offers this answer. Only the offers that the flow recorded count; none is inferred.
    #[must_use]
    pub fn offers(&self, choice: Choice) -> bool {
        match choice {
            Choice::ContinueSession => self.continue_session.is_some(),
            Choice::Continue | Choice::Approve | Choice::Abort => true,
        }
    }

    #[must_use]
    pub fn offered(&self) -> Vec<Choice> {
        Choice::ALL.into_iter().filter(|choice| self.offers(*choice)).collect()
    }

    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.answered.is_none()
    }
}
