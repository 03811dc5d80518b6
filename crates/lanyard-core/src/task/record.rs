//! The state of a task: its work, its worker and its progress.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{PlanId, RunId, SessionId, TaskId, WorkerId};
use crate::paper::{Bounds, Priority};
use crate::session::InterruptCause;
use crate::task::mail::MailTo;
use crate::time::Timestamp;
use crate::tree::{BaseConflict, Captured, Tree};

/// Where the sessions of tasks come from.
pub const TASK_SOURCE: &str = "task";

/// Runs a record keeps; the task's log keeps all.
pub(super) const RUNS_MAX: usize = 16;

/// A task as its log adds up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: TaskId,
    /// The last event that was applied.
    pub seq: u64,
    pub plan: Option<PlanId>,
    /// The task it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The mailbox that gets its reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reports_to: Option<MailTo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(flatten)]
    pub spec: TaskSpec,
    /// Foreign ids by which it can be found as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    pub created_at: Timestamp,
    pub created_by: Actor,
    /// The session whose agent made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_in: Option<SessionId>,
    pub state: TaskState,
    pub since: Timestamp,
    /// Why it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Cause of the interruption, while the task is interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_by: Option<InterruptCause>,
    /// An end was requested, and the session has not ended yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<TaskEnding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_source: Option<WorkerSource>,
    /// The session of its current or latest worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Turns that session had had when it was last asked to work; one more, and it has begun.
    #[serde(default)]
    pub turns_before: u64,
    /// The agent has received the task in this attempt.
    #[serde(default)]
    pub begun: bool,
    /// The number of the newest run; reports of an older run are late.
    #[serde(default)]
    pub run: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<TaskRun>,
    /// Number of deployments.
    #[serde(default)]
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// The work of its prerequisites conflicts, so that the task cannot begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<BaseConflict>,
    /// The commits its branch has of its own, once it has ended. Without any there is nothing to merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u32>,
    /// Work that Lanyard committed for the task, so that none was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Captured>,
    /// Why what its worktree holds could not be committed; the worktree stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_failed: Option<String>,
    /// The commit its work was merged with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    #[serde(default)]
    pub remedies: Remedies,
}

/// The work itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskSpec {
    /// The task's name in its plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub title: String,
    pub prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    pub priority: Priority,
    /// Tasks of a plan run beside each other when they have the same group, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Files it will write: two tasks that name the same are not run at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The branch, tag or commit its worktree begins at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    pub kind: WorkerKind,
    pub isolation: Isolation,
    pub when_parent_ends: ParentEnd,
    /// The chat session that works at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<SessionId>,
    /// Scope limits of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The task starts as soon as nothing holds it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto: bool,
    /// The worker may spawn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_spawn: bool,
    /// The agent may use its own subagents, even when it may not spawn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub subagents: bool,
}

/// The kind of worker: a field, never guessed from an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerKind {
    /// A session people talk in as well; the task ends when somebody says so.
    Chat,
    /// An agent Lanyard runs for the task alone.
    #[default]
    Background,
    /// A program outside, which reports with the token of its run.
    External,
}

/// The folder in which a background worker works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In a git worktree and branch of its own, where the workspace is a git repository; else in the workspace.
    #[default]
    Auto,
    /// In a git worktree and branch of its own, or not at all.
    Worktree,
    /// In the workspace itself.
    Shared,
}

/// The policy for a task whose parent ends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParentEnd {
    /// The task continues, and its result waits in the parent's mailbox.
    Wait,
    /// The task continues, and reports to the nearest live ancestor.
    #[default]
    Adopt,
    /// The task is cancelled.
    Cancel,
}

/// The source of a worker's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerSource {
    /// The task had one.
    Reused,
    /// The chat session's.
    Session,
    Generated,
}

impl WorkerSource {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::Session => "session",
            Self::Generated => "generated",
        }
    }
}

impl WorkerKind {
    pub const ALL: [Self; 3] = [Self::Chat, Self::Background, Self::External];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Background => "background",
            Self::External => "external",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The task has not started.
    Pending,
    /// Worktree and session are being made.
    Deploying,
    Running,
    /// Held by somebody until they say go.
    Paused,
    /// The run was lost or the turn interrupted; the task can continue.
    Interrupted,
    Completed,
    Failed,
    Cancelled,
}

impl TaskState {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Deploying,
        Self::Running,
        Self::Paused,
        Self::Interrupted,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Deploying => "deploying",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An end somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TaskEnding {
    Complete,
    Fail,
    Cancel {
        /// At once, whatever its agent is doing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
    },
}

/// The result of a task, as it was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// No result was reported: the agent ended its turn, and this is its last message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_turn_end: bool,
}

/// An incarnation of the task's worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRun {
    pub number: u32,
    pub session: SessionId,
    /// The agent's process, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub at: Timestamp,
}

/// Remedies that were applied to the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Remedies {
    pub nudges: u32,
    pub restarts: u32,
    pub escalations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
}

impl Task {
    /// By which chat hosts address it.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("orchestrator:/{}", self.id)
    }

    /// The name of what reports for it.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.spec.agent.as_deref().unwrap_or("agent")
    }

    /// Whether the task counts against the concurrency limit. A task that was held before its worker started does not.
    #[must_use]
    pub const fn is_at_work(&self) -> bool {
        match self.state {
            TaskState::Deploying | TaskState::Running | TaskState::Paused | TaskState::Interrupted => {
                self.session.is_some()
            }
            TaskState::Pending | TaskState::Completed | TaskState::Failed | TaskState::Cancelled => false,
        }
    }

    #[must_use]
    pub fn current_run(&self) -> Option<&TaskRun> {
        self.runs.last()
    }
}
