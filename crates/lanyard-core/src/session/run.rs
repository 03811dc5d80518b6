//! A run: one incarnation of the agent behind a session, from its start to the end of its last process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::RunId;
use crate::session::bounds::BoundedResource;
use crate::session::choice::{AgentChoice, AgentOffer};
use crate::session::sandbox::Containment;

/// The newest run of a session, as its record knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub id: RunId,
    /// First, second, … run of this session.
    pub number: u64,
    pub phase: RunPhase,
    /// Position in the agent's output up to which events were made. After a crash the rest is read again, and nothing
    /// twice.
    pub cursor: u64,
    /// The account of the agent that the run uses, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Turns that began since the run was ready.
    #[serde(default)]
    pub turns: u64,
    /// The process belongs to the parent's run; this session shows one of its subagents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirrored: bool,
    /// The way in which this run got the conversation; absent for the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<Continuity>,
    /// The way in which this process got the conversation, whichever daemon supervises it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<Continuity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo>,
    #[serde(default)]
    pub capabilities: Capabilities,
    /// MCP servers that were offered to the agent and that it has not reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_tools: Vec<String>,
    /// The sandbox and the bounds that hold; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<Containment>>,
    /// What a program on a terminal is seen to do; absent for agents that are spoken to by a protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<ActivityMark>,
}

/// What a program on a terminal is seen to do. Its output is all that tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TerminalActivity {
    /// It writes.
    Working,
    /// It has written nothing for a while.
    Quiet,
    /// The same, and it rang the bell or sent a notification before.
    Rang,
}

impl TerminalActivity {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Quiet => "quiet",
            Self::Rang => "rang",
        }
    }
}

/// The last change of a program's activity, and where in the log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityMark {
    pub activity: TerminalActivity,
    pub seq: u64,
    /// Its screen was shown somewhere at that moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
}

impl ActivityMark {
    /// Whether the program came to rest and no screen showed it.
    #[must_use]
    pub const fn is_unwatched_rest(&self) -> bool {
        !self.watched && !matches!(self.activity, TerminalActivity::Working)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// The process is starting, and the handshake has not finished.
    Starting,
    /// The agent accepts prompts.
    Ready,
    /// All processes of the run have ended.
    Ended,
}

impl Run {
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.phase != RunPhase::Ended
    }
}

/// The way in which a conversation continued after a break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Continuity {
    /// The same process.
    Exact,
    /// The agent's own resume or load.
    Native,
    /// The transcript was given back.
    Replayed,
    /// A bounded summary made from the log.
    Preamble,
    /// The agent knows nothing of it.
    Lost,
}

impl Continuity {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Native => "native",
            Self::Replayed => "replayed",
            Self::Preamble => "preamble",
            Self::Lost => "lost",
        }
    }
}

/// A way to go on with a conversation whose process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeWay {
    /// The agent's own load or resume.
    Native,
    /// The whole transcript with the next prompt, when it is small enough.
    Replay,
    /// A bounded summary made from the log, with the next prompt.
    Preamble,
}

/// The agent's name and version, as it reports them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentInfo {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The protocol it is spoken to in, with its version: `acp 1`.
    pub protocol: String,
}

/// Capabilities of the agent: those it reports, and those its driver can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Capabilities {
    /// Load a conversation and play it back.
    pub load: bool,
    /// Go on with a conversation without playing it back.
    pub resume: bool,
    pub fork: bool,
    pub list: bool,
    pub close: bool,
    pub cancel: bool,
    /// Take words into a running turn.
    pub steer: bool,
    pub compact: bool,
    /// Subagents appear as sessions of their own.
    pub children: bool,
    /// The agent asks before actions that need permission.
    pub permissions: bool,
    pub images: bool,
    pub mcp_stdio: bool,
    pub mcp_http: bool,
    pub mcp_sse: bool,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunEnd {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    /// The supervisor died; the remaining processes were ended.
    Lost,
    /// The machine was restarted.
    HostLost,
    /// The agent never became ready; the code says why.
    NotStarted {
        code: String,
    },
}

impl RunEnd {
    /// Whether it ended because the agent could not take its conversation up again.
    #[must_use]
    pub fn lost_the_conversation(&self) -> bool {
        matches!(self, Self::NotStarted { code } if code.starts_with("resume_"))
    }
}

/// An attempt to end the work of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// `agent` (its own cancel), `term`, `kill`, `close`.
    pub channel: String,
    /// Milliseconds after the order to end.
    pub after_ms: u64,
}

/// A process in a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndedProcess {
    pub pid: u32,
    pub name: String,
    /// The signal it was sent last; nothing when it was sent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The record of ending a run or a turn: each channel that was tried and each process that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<EndedProcess>,
    /// Processes that may belong to the ended work and may still live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<EndedProcess>,
    /// Servers that the agent started for itself during the turn. They belong to the agent and live on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<EndedProcess>,
}

/// The life of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum RunEvent {
    /// Written before its process is started.
    #[serde(rename = "run.started")]
    Started {
        run: RunId,
        number: u64,
        agent: String,
        driver: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        mirrored: bool,
        /// The account of the agent, where it has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// A subagent that takes words into its running turn; other runs say so when they are ready.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steers: bool,
        /// The sandbox and the bounds that hold; absent where there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<Box<Containment>>,
    },
    #[serde(rename = "run.ready")]
    Ready(Box<RunReady>),
    /// A restarted daemon found the run alive and continues it.
    #[serde(rename = "run.adopted")]
    Adopted { run: RunId },
    /// The agent works without some of the MCP servers it was offered; with none listed, it has reached them since.
    #[serde(rename = "run.tools_missing")]
    ToolsMissing {
        run: RunId,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        servers: Vec<String>,
    },
    /// A program on a terminal began to write, or came to rest.
    #[serde(rename = "run.activity")]
    Activity {
        run: RunId,
        activity: TerminalActivity,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        watched: bool,
    },
    /// The run reached a bound on its resources.
    #[serde(rename = "run.bound_met")]
    BoundMet {
        run: RunId,
        what: BoundedResource,
        /// In words: `2048 MiB`.
        limit: String,
        /// In all since the run began.
        times: u64,
    },
    /// What the agent offers to choose, and its own commands; written when it changes.
    #[serde(rename = "run.offered")]
    Offered(Box<AgentOffer>),
    /// The model, mode and effort in force; written when they change, whoever changed them.
    #[serde(rename = "run.in_force")]
    InForce(AgentChoice),
    #[serde(rename = "run.ended")]
    Ended {
        run: RunId,
        how: RunEnd,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default)]
        receipt: Receipt,
    },
    /// The agent is requested without a prompt yet.
    #[serde(rename = "run.wanted")]
    Wanted {
        /// Allowed ways to continue the conversation; the agent's settings when absent.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<ResumeWay>,
    },
}

/// The agent answered its greeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunReady {
    pub run: RunId,
    /// The agent's own id of the conversation.
    pub native: String,
    pub info: AgentInfo,
    pub capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuity: Option<Continuity>,
    /// Messages the agent played back when it took the conversation up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u64>,
}
