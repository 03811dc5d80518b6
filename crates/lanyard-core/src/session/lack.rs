//! What a session's agent cannot do, each with its reason. Every client disables what is named here and shows these
//! sentences, so that no client has a reason of its own. Pure.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::session::choice::{AgentOffer, ChoiceKind};
use crate::session::driven::DrivenBy;
use crate::session::record::Session;
use crate::session::refusal::Refusal;
use crate::session::run::{Capabilities, RunPhase};

/// The name of an agent where the session has none.
const UNNAMED: &str = "the agent";

/// Something that an operator may want of a session's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentAbility {
    /// Take a message as a turn.
    Prompt,
    /// Take a message into the running turn.
    Steer,
    /// Compact its context when asked.
    Compact,
    /// Take images as they are.
    Images,
    /// Let the model be chosen.
    Model,
    /// Let the mode be chosen.
    Mode,
    /// Let the effort be chosen.
    Effort,
    /// Run commands of its own.
    Commands,
    /// End this session alone. Only a subagent may lack it.
    Stop,
    /// Continue its conversation in a new process.
    Resume,
    /// Ask before actions that need permission.
    Approvals,
    /// Show its subagents as sessions.
    Children,
}

impl AgentAbility {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Steer => "steer",
            Self::Compact => "compact",
            Self::Images => "images",
            Self::Model => "model",
            Self::Mode => "mode",
            Self::Effort => "effort",
            Self::Commands => "commands",
            Self::Stop => "stop",
            Self::Resume => "resume",
            Self::Approvals => "approvals",
            Self::Children => "children",
        }
    }

    /// The code of the refusal where it is asked for all the same.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Prompt => "prompt_not_taken",
            Self::Steer => "steer_not_offered",
            Self::Compact => "compact_not_offered",
            Self::Images => "images_not_taken",
            Self::Model | Self::Mode | Self::Effort => "choice_unavailable",
            Self::Commands => "commands_not_offered",
            Self::Stop => "stop_needs_hook",
            Self::Resume => "resume_not_offered",
            Self::Approvals => "approvals_not_offered",
            Self::Children => "children_not_shown",
        }
    }

    #[must_use]
    pub const fn of_choice(kind: ChoiceKind) -> Self {
        match kind {
            ChoiceKind::Model => Self::Model,
            ChoiceKind::Mode => Self::Mode,
            ChoiceKind::Effort => Self::Effort,
        }
    }
}

/// Something that an agent cannot do, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentLack {
    pub what: AgentAbility,
    /// One sentence, without a full stop.
    pub why: String,
    /// What can be done instead.
    pub instead: String,
}

impl AgentLack {
    fn new(what: AgentAbility, why: String, instead: &str) -> Self {
        Self { what, why, instead: instead.to_owned() }
    }

    fn refused(what: AgentAbility, refusal: &Refusal) -> Self {
        Self { what, why: refusal.to_string(), instead: refusal.advice() }
    }
}

impl fmt::Display for AgentLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.why, self.instead)
    }
}

/// What is known of a session's agent besides the session's log.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentTraits<'a> {
    /// As its last check found it.
    pub checked: Option<Capabilities>,
    pub offer: Option<&'a AgentOffer>,
    /// The agent that runs a subagent's session, as the config names it.
    pub above: Option<&'a str>,
    pub subagents: SubagentTraits,
}

/// What an agent lets be done to one of its subagents alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubagentTraits {
    /// They take prompts of their own.
    pub prompts: bool,
    /// The harness whose hook alone reaches them: the agent itself cannot end one.
    pub hook: Option<&'static str>,
}

/// What an agent cannot do. Nothing is said of abilities that are not known yet.
#[must_use]
pub fn lacks_of_agent(name: &str, can: Option<Capabilities>, offer: Option<&AgentOffer>) -> Vec<AgentLack> {
    let mut lacks = can.map_or_else(Vec::new, |can| lacks_of_capabilities(name, can));
    lacks.extend(by_offer(name, offer));
    lacks
}

/// What cannot be asked of a session's agent.
#[must_use]
pub fn lacks(session: &Session, agent: &AgentTraits<'_>) -> Vec<AgentLack> {
    let name = session.hands.agent.as_deref().unwrap_or(UNNAMED);
    if session.terminal.is_some() {
        return everything(&Refusal::TerminalTurns);
    }
    match session.driver() {
        DrivenBy::Parent => of_subagent(session, agent),
        DrivenBy::Host => everything(&Refusal::HostRun { native: session.native.is_some() }),
        DrivenBy::Nobody => Vec::new(),
        DrivenBy::Lanyard => {
            let mut lacks = lacks_of_agent(name, known(session, agent.checked), agent.offer);
            if session.live_run().is_none() && !lacks.iter().any(|lack| lack.what == AgentAbility::Compact) {
                lacks.push(not_running());
            }
            lacks.sort_by_key(|lack| lack.what);
            lacks
        }
    }
}

/// The reason why a session cannot be asked for one thing.
#[must_use]
pub fn lack_of<'a>(lacks: &'a [AgentLack], what: AgentAbility) -> Option<&'a AgentLack> {
    lacks.iter().find(|lack| lack.what == what)
}

/// The reason why a subagent cannot be ended alone.
#[must_use]
pub fn unstoppable(above: &str, parent: Option<SessionId>, harness: &str) -> AgentLack {
    let why = format!("{above} cannot end this subagent alone: it works until it is done");
    let parent = parent.map_or_else(|| "the session above it".to_owned(), |parent| parent.to_string());
    let instead = format!(
        "cancel the turn of {parent}, or install the hook with `lanyard hook install {harness}`, which refuses the \
         subagent's tool calls"
    );
    AgentLack::new(AgentAbility::Stop, why, &instead)
}

/// What the agent of this session said of itself: in its run, or else in its last check.
fn known(session: &Session, checked: Option<Capabilities>) -> Option<Capabilities> {
    let run = session.run.as_ref();
    let told = run.filter(|run| run.phase != RunPhase::Starting && run.info.is_some());
    // After a handover the last run was another agent's.
    let own = told.filter(|run| run.is_live() || session.native.is_some());
    own.map(|run| run.capabilities).or(checked)
}

/// What an agent cannot do by what it said of itself.
#[must_use]
pub fn lacks_of_capabilities(name: &str, can: Capabilities) -> Vec<AgentLack> {
    let rows: [(bool, AgentAbility, String, &str); 6] = [
        (
            can.steer,
            AgentAbility::Steer,
            format!("{name} takes no message into a running turn"),
            "send it as the next message, or send guidance, which comes with the result of a tool call",
        ),
        (
            can.compact,
            AgentAbility::Compact,
            format!("{name} cannot be asked to compact its context"),
            "it compacts by itself; commands of its own, such as `/compact`, are sent as a message",
        ),
        (
            can.images,
            AgentAbility::Images,
            format!("{name} takes no images"),
            "an attached image is kept, and the agent gets its path",
        ),
        (
            can.resume || can.load,
            AgentAbility::Resume,
            format!("{name} cannot continue its conversation in a new process"),
            "allow `replay` or `preamble`, which give it the past from the log",
        ),
        (
            can.permissions,
            AgentAbility::Approvals,
            format!("{name} asks for no approvals"),
            "its own settings decide what it may do",
        ),
        (
            can.children,
            AgentAbility::Children,
            format!("{name} does not show its subagents"),
            "their work is part of its own session",
        ),
    ];
    let missing = rows.into_iter().filter(|(can, ..)| !can);
    missing.map(|(_, what, why, instead)| AgentLack::new(what, why, instead)).collect()
}

fn by_offer(name: &str, offer: Option<&AgentOffer>) -> Vec<AgentLack> {
    let Some(offer) = offer else {
        let unasked = |kind: ChoiceKind| {
            let why = format!("{name} has not said yet which {} it offers", kind.as_str());
            let instead = format!("ask it with `lanyard agents check {name}`, or send a first message");
            AgentLack::new(AgentAbility::of_choice(kind), why, &instead)
        };
        return ChoiceKind::ALL.map(unasked).into();
    };
    let menus = ChoiceKind::ALL.into_iter().filter(|kind| !offer.menu(*kind).is_offered());
    let mut lacks: Vec<AgentLack> = menus
        .map(|kind| {
            let refusal = Refusal::ChoiceNotOffered { what: kind.as_str() };
            AgentLack::refused(AgentAbility::of_choice(kind), &refusal)
        })
        .collect();
    if offer.commands.is_empty() {
        let why = format!("{name} lists no commands of its own");
        let instead = "write what it should do";
        lacks.push(AgentLack::new(AgentAbility::Commands, why, instead));
    }
    lacks
}

fn of_subagent(session: &Session, agent: &AgentTraits<'_>) -> Vec<AgentLack> {
    let above = agent.above.unwrap_or(UNNAMED);
    let mut lacks = Vec::new();
    if !agent.subagents.prompts {
        let why = format!("a subagent of {above} takes prompts of its parent only");
        let instead = "send the message to the session above it";
        lacks.push(AgentLack::new(AgentAbility::Prompt, why, instead));
    }
    if !session.run.as_ref().is_some_and(|run| run.capabilities.steer) {
        let why = format!("{above} takes no message into the turn of a subagent");
        let instead = "send it to the session above it, or send guidance";
        lacks.push(AgentLack::new(AgentAbility::Steer, why, instead));
    }
    for what in [
        AgentAbility::Compact,
        AgentAbility::Model,
        AgentAbility::Mode,
        AgentAbility::Effort,
        AgentAbility::Resume,
    ] {
        let why = "a subagent lives in the process of the session above it".to_owned();
        lacks.push(AgentLack::new(what, why, "do this in the session above it"));
    }
    // Its calls are refused, which ends it too.
    if let Some(harness) = agent.subagents.hook.filter(|_| !session.hears) {
        lacks.push(unstoppable(above, session.parent, harness));
    }
    lacks.sort_by_key(|lack| lack.what);
    lacks
}

fn not_running() -> AgentLack {
    let why = "no process of the session's agent is running".to_owned();
    AgentLack::new(AgentAbility::Compact, why, "start one with `lanyard resume`")
}

/// Nothing that goes through a turn of Lanyard's.
fn everything(refusal: &Refusal) -> Vec<AgentLack> {
    [
        AgentAbility::Prompt,
        AgentAbility::Steer,
        AgentAbility::Compact,
        AgentAbility::Images,
        AgentAbility::Model,
        AgentAbility::Mode,
        AgentAbility::Effort,
        AgentAbility::Commands,
    ]
    .map(|what| AgentLack::refused(what, refusal))
    .into()
}
