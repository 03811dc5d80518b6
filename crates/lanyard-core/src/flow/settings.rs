//! Settings of a flow: agents, checks, gates and limits. A flow keeps a copy of the settings it began with; a change of
//! the config applies to the next flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MINUTE_MS: u64 = 60_000;

/// The settings of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowSettings {
    pub author: RoleSettings,
    pub reviewer: RoleSettings,
    /// Commands that must succeed before a review, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quality: Vec<QualityCommand>,
    pub rules: FlowRules,
    /// Commands and URLs that are called on events.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
}

/// Settings of the author or the reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSettings {
    /// An agent of the config; the default agent when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Milliseconds a turn may take before nobody waits for it any more; 0 is without end.
    pub timeout_ms: u64,
    /// End the turn when it took too long, and with it the way to go on with the session. Otherwise it goes on,
    /// within `preserve_ms`.
    pub abort_on_timeout: bool,
}

impl Default for RoleSettings {
    fn default() -> Self {
        Self { agent: None, timeout_ms: 60 * MINUTE_MS, abort_on_timeout: false }
    }
}

/// A command that checks the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QualityCommand {
    pub name: String,
    /// The program and its arguments, run in the flow's folder.
    pub command: Vec<String>,
    #[serde(default = "quality_timeout_ms")]
    pub timeout_ms: u64,
}

const fn quality_timeout_ms() -> u64 {
    10 * MINUTE_MS
}

/// A command or URL that is called on an event. Exactly one of `command` and `url`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Types of events, as `flow.gate_opened`; all of them when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// A program that gets the event as JSON on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// An address the event is posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Whether a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    #[default]
    Ask,
    Auto,
}

/// The answer of a gate whose deadline has passed. A gate without a deadline stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateDefault {
    #[default]
    Wait,
    /// Continue the session where that is offered; else the gate stays open.
    ContinueSession,
    Abort,
}

impl GateDefault {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::ContinueSession => "continue_session",
            Self::Abort => "abort",
        }
    }
}

/// Bounds and habits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FlowRules {
    /// Times that failed checks go back to the author before a gate opens.
    pub quality_retries: u32,
    /// Reviews of one phase before a person is asked.
    pub review_iterations: u32,
    /// Automatic retries in a row of a turn that was lost or had no usable answer.
    pub auto_retries: u32,
    /// Steps since a person last decided something.
    pub steps: u32,
    /// The same issue without a better score, or the same error, this often in a row: it goes in circles.
    pub stall_repeats: u32,
    /// Whether a phase that was found ready waits for a person.
    pub phase_gate: Asking,
    /// Whether corrections a reviewer asks for wait for a person.
    pub review_gate: Asking,
    /// An author that says it is done names a new commit on the flow's branch, where the flow works in a git repository.
    pub require_commit: bool,
    /// Work in a git worktree and branch of its own, where the plan's folder is in a git repository.
    pub worktree: bool,
    /// Milliseconds a gate waits before `gate_default`; 0 is without end.
    pub gate_deadline_ms: u64,
    pub gate_default: GateDefault,
    /// Milliseconds a session nobody waits for any more may go on.
    pub preserve_ms: u64,
    /// Tokens it may use meanwhile, where its agent reports them; 0 is without limit.
    pub preserve_tokens: u64,
    /// Tokens of context at which a session has no room to go on; 0 is not known.
    pub context_tokens: u64,
}

impl Default for FlowRules {
    fn default() -> Self {
        Self {
            quality_retries: 3,
            review_iterations: 5,
            auto_retries: 3,
            steps: 250,
            stall_repeats: 3,
            phase_gate: Asking::Ask,
            review_gate: Asking::Auto,
            require_commit: true,
            worktree: true,
            gate_deadline_ms: 0,
            gate_default: GateDefault::Wait,
            preserve_ms: 30 * MINUTE_MS,
            preserve_tokens: 0,
            context_tokens: 0,
        }
    }
}

impl FlowSettings {
    #[must_use]
    pub fn role(&self, role: super::FlowRole) -> &RoleSettings {
        match role {
            super::FlowRole::Author => &self.author,
            super::FlowRole::Reviewer => &self.reviewer,
        }
    }
}
