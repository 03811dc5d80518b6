//! The state of a flow: its plan, its progress and its current invocation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::flow::event::Spent;
use crate::flow::gate::FlowGate;
use crate::flow::settings::FlowSettings;
use crate::flow::stall::FlowStall;
use crate::flow::verdict::Item;
use crate::id::{FlowId, SessionId, TurnId};
use crate::time::Timestamp;
use crate::tree::{Captured, Tree};

/// Sessions a record keeps; the flow's log keeps all.
pub(super) const SESSIONS_MAX: usize = 32;

/// A flow as its log adds up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    pub id: FlowId,
    /// The last event that was applied.
    pub seq: u64,
    pub kind: FlowKind,
    pub title: String,
    /// The plan's file, whole. One flow at a time works at it.
    pub plan: String,
    /// A fingerprint of what it said when the flow began.
    pub plan_hash: String,
    /// The folder the flow was begun in.
    pub workspace: String,
    pub settings: FlowSettings,
    pub created_at: Timestamp,
    pub created_by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<(String, String)>,
    /// Empty in a plan review.
    pub phases: Vec<Phase>,
    /// Index of the active phase.
    pub phase: usize,
    pub state: FlowState,
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The actor who ended the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Actor>,
    /// The state before the escalation or the end, to which it can go back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_from: Option<FlowState>,
    /// The number of the newest step: a turn with an agent, a round of checks, a gate.
    pub step: u32,
    /// The step at which a person last decided something.
    #[serde(default)]
    pub decided_at_step: u32,
    /// Reviews of this phase so far.
    #[serde(default)]
    pub iteration: u32,
    #[serde(default)]
    pub quality_retries: u32,
    /// Automatic retries in a row.
    #[serde(default)]
    pub auto_retries: u32,
    /// Items of the latest review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Item>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// Results of the latest round of checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Invocation>,
    /// Session and guidance for the next invocation; used once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<FlowPending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<FlowGate>,
    /// Sessions that go on although nobody waits for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preserved: Vec<Preserved>,
    /// The newest sessions of the flow, with their roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Worked>,
    #[serde(default)]
    pub spent: Spent,
    #[serde(default, skip_serializing_if = "FlowStall::is_default")]
    pub stall: FlowStall,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
    /// The flow has ended and its folder has been cleaned up.
    #[serde(default)]
    pub settled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The last event that was sent to hooks.
    #[serde(default)]
    pub hooked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowKind {
    /// A plan's phases, one after the other.
    Phases,
    /// The plan itself, until it is approved.
    PlanReview,
}

impl FlowKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Phases => "phases",
            Self::PlanReview => "plan_review",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    Author,
    Reviewer,
}

impl FlowRole {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Reviewer => "reviewer",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowState {
    Execute,
    QualityCheck,
    QualityRetry,
    Review,
    /// A review's items wait for a person's approval.
    ReviewGate,
    AutoFix,
    PhaseGate,
    PhaseComplete,
    Escalate,
    Aborted,
    /// All phases are complete.
    Completed,
    /// The plan is approved.
    Approved,
}

impl FlowState {
    pub const ALL: [Self; 12] = [
        Self::Execute,
        Self::QualityCheck,
        Self::QualityRetry,
        Self::Review,
        Self::ReviewGate,
        Self::AutoFix,
        Self::PhaseGate,
        Self::PhaseComplete,
        Self::Escalate,
        Self::Aborted,
        Self::Completed,
        Self::Approved,
    ];

    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Aborted | Self::Completed | Self::Approved)
    }

    /// The role that works in this state.
    #[must_use]
    pub const fn role(self) -> Option<FlowRole> {
        match self {
            Self::Execute | Self::QualityRetry | Self::AutoFix => Some(FlowRole::Author),
            Self::Review => Some(FlowRole::Reviewer),
            Self::QualityCheck
            | Self::ReviewGate
            | Self::PhaseGate
            | Self::PhaseComplete
            | Self::Escalate
            | Self::Aborted
            | Self::Completed
            | Self::Approved => None,
        }
    }

    /// Whether a person is asked in it.
    #[must_use]
    pub const fn asks(self) -> bool {
        matches!(self, Self::Escalate | Self::PhaseGate | Self::ReviewGate)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Execute => "execute",
            Self::QualityCheck => "quality_check",
            Self::QualityRetry => "quality_retry",
            Self::Review => "review",
            Self::ReviewGate => "review_gate",
            Self::AutoFix => "auto_fix",
            Self::PhaseGate => "phase_gate",
            Self::PhaseComplete => "phase_complete",
            Self::Escalate => "escalate",
            Self::Aborted => "aborted",
            Self::Completed => "completed",
            Self::Approved => "approved",
        }
    }
}

impl fmt::Display for FlowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A part of the plan that is implemented, checked and reviewed as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    pub title: String,
    /// The plan's text for this phase.
    pub text: String,
    pub state: PhaseState,
    /// The commit its author named last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseState {
    #[default]
    Open,
    Active,
    Complete,
    /// The phase was marked as done before the flow began.
    Skipped,
    /// A person approved it although it was not found ready.
    Overridden,
}

impl PhaseState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Skipped => "skipped",
            Self::Overridden => "overridden",
        }
    }
}

/// An agent at work for the flow: one session, and up to three prompts of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invocation {
    pub step: u32,
    pub state: FlowState,
    pub role: FlowRole,
    pub session: SessionId,
    /// The invocation continues an existing session; none is created.
    pub continues: bool,
    /// The session is a fork of this one, which has the context that the role needs and is not disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<SessionId>,
    /// A person's words that go with its first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Guidance that the session has already received. A session that replaces it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    pub stage: Stage,
    /// The turn that is waited for, by an id that was written down before it was begun.
    pub turn: TurnId,
    /// Usage of the session before this invocation.
    #[serde(default)]
    pub before: Spent,
    pub begun_at: Timestamp,
    /// Time at which the turn was requested.
    pub asked_at: Timestamp,
    /// The fault of the answer that is being repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The agent does the work.
    Work,
    /// The agent reports the result in a structured form.
    Summary,
    /// The agent repeats a report that was unreadable.
    Repair,
}

/// The part of a gate's answer that the next invocation uses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowPending {
    /// The session to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_of: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// A person's words the session has heard already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// Going on with the session was chosen at a gate, and is not a try of the flow's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

/// A command that is being run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Index among the quality commands.
    pub place: usize,
    /// The name of its run: the step, the place and how often it was begun.
    pub run: String,
    pub begun_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    pub name: String,
    pub passed: bool,
    /// Absent when a signal ended the command or it did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The end of what it wrote.
    pub output: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    pub ms: u64,
}

/// A session that goes on although nobody waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preserved {
    pub session: SessionId,
    pub turn: TurnId,
    pub since: Timestamp,
    /// Time at which the session is ended; absent means without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Tokens it had used when nobody waited for it any more.
    pub tokens: u64,
}

/// A session that worked for the flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worked {
    pub session: SessionId,
    pub role: FlowRole,
    pub state: FlowState,
    pub phase: usize,
    pub step: u32,
    /// An answer at a gate continued the session. If that invocation fails, continuing is not offered again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

/// The lease of the daemon that drives the flow. A later holder has a higher number, and writes of an earlier one are
/// refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lease {
    /// Incarnation of the daemon that holds the lease.
    pub holder: String,
    pub epoch: u64,
    pub since: Timestamp,
}

impl Invocation {
    /// The guidance for this work, whether or not the session has received it.
    pub(super) fn words(&self) -> Option<&String> {
        self.guidance.as_ref().or(self.heard.as_ref())
    }
}

impl Flow {
    /// The active phase.
    #[must_use]
    pub fn active(&self) -> Option<&Phase> {
        self.phases.get(self.phase)
    }

    /// The sessions in which something may run for it now.
    #[must_use]
    pub fn sessions_at_work(&self) -> Vec<SessionId> {
        let invoked = self.invocation.iter().map(|invocation| invocation.session);
        let mut sessions: Vec<SessionId> =
            invoked.chain(self.preserved.iter().map(|kept| kept.session)).collect();
        sessions.dedup();
        sessions
    }

    /// The folder its agents work in.
    #[must_use]
    pub fn folder(&self) -> String {
        match self.tree.as_ref().filter(|tree| !tree.removed) {
            Some(tree) => in_tree(tree, &self.workspace).unwrap_or_else(|| tree.path.clone()),
            None => self.workspace.clone(),
        }
    }

    /// The plan's file in a worktree, where the plan is in the repository the worktree was made of.
    #[must_use]
    pub fn plan_in(&self, tree: &Tree) -> String {
        in_tree(tree, &self.plan).unwrap_or_else(|| self.plan.clone())
    }

    /// The plan's file as its agents find it.
    #[must_use]
    pub fn plan_here(&self) -> String {
        match self.tree.as_ref().filter(|tree| !tree.removed) {
            Some(tree) => self.plan_in(tree),
            None => self.plan.clone(),
        }
    }

    /// Whether an author has to name a commit.
    #[must_use]
    pub fn needs_commit(&self) -> bool {
        self.settings.rules.require_commit && self.tree.is_some() && self.kind == FlowKind::Phases
    }

    /// The commit that an author's work must follow: the last accepted one, or the start of the branch. Commits that an
    /// author names before the first work on a phase ends are not accepted yet.
    #[must_use]
    pub fn last_commit(&self) -> Option<&str> {
        let first = self.invocation.as_ref().is_none_or(|invocation| invocation.state == FlowState::Execute);
        let taken = self.phases.iter().take(self.phase + usize::from(!first));
        let taken = taken.filter_map(|phase| phase.commit.as_deref()).next_back();
        taken.or_else(|| self.tree.as_ref().map(|tree| tree.base.as_str()))
    }

    /// The newest session that worked in this role at this phase.
    #[must_use]
    pub fn last_session(&self, role: FlowRole) -> Option<SessionId> {
        let mine = |worked: &&Worked| worked.role == role && worked.phase == self.phase;
        self.sessions.iter().rev().find(mine).map(|worked| worked.session)
    }
}

/// A path of the repository, as it is in the worktree.
fn in_tree(tree: &Tree, path: &str) -> Option<String> {
    let rest = path.strip_prefix(&tree.repository)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", tree.path))
}
