//! Events of a task. They form its log, and the record is their sum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::id::{PlanId, RunId, SessionId, TaskId, WorkerId};
use crate::log::LogEntry;
use crate::session::InterruptCause;
use crate::task::health::Remedy;
use crate::task::mail::MailTo;
use crate::task::record::{TaskEnding, TaskResult, TaskSpec, TaskState, WorkerSource};
use crate::time::Timestamp;
use crate::tree::{BaseConflict, Captured, Tree};

/// An entry of a task's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEnvelope {
    pub task: TaskId,
    pub seq: u64,
    pub at: Timestamp,
    pub actor: Actor,
    #[serde(flatten)]
    pub event: TaskEvent,
}

impl LogEntry for TaskEnvelope {
    type Id = TaskId;

    fn record(&self) -> TaskId {
        self.task
    }

    fn seq(&self) -> u64 {
        self.seq
    }

    /// Foreign ids, and the ids of the worker, session and run.
    fn names(&self) -> Vec<String> {
        match &self.event {
            TaskEvent::Created(created) => created.aliases.clone(),
            TaskEvent::Deployed { worker, session, .. } => vec![worker.to_string(), session.to_string()],
            TaskEvent::RunSeen { process, .. } => vec![process.to_string()],
            TaskEvent::Edited { .. }
            | TaskEvent::TreeMade { .. }
            | TaskEvent::BaseConflict { .. }
            | TaskEvent::BranchCounted { .. }
            | TaskEvent::Started {}
            | TaskEvent::Interrupted { .. }
            | TaskEvent::Resumed { .. }
            | TaskEvent::Paused { .. }
            | TaskEvent::EndAsked { .. }
            | TaskEvent::Reported { .. }
            | TaskEvent::Captured { .. }
            | TaskEvent::CaptureFailed { .. }
            | TaskEvent::Ended { .. }
            | TaskEvent::Retried {}
            | TaskEvent::Merged { .. }
            | TaskEvent::TreeRemoved {}
            | TaskEvent::Discarded { .. }
            | TaskEvent::Remedied { .. }
            | TaskEvent::Adopted { .. } => Vec::new(),
        }
    }
}

/// Prefix of the names under which a repeated request or spawn finds the task that it made.
pub const REQUEST_KEY: &str = "request:";
pub const SPAWN_KEY: &str = "spawn:";

/// Whether a name is such a key. A key is no name that people use, and is forgotten some time after the task's end.
#[must_use]
pub fn is_key(name: &str) -> bool {
    [REQUEST_KEY, SPAWN_KEY].iter().any(|key| name.starts_with(key))
}

/// The data with which a task is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCreated {
    pub plan: Option<PlanId>,
    pub parent: Option<TaskId>,
    pub reports_to: Option<MailTo>,
    pub workspace: Option<String>,
    pub created_in: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    pub spec: TaskSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum TaskEvent {
    #[serde(rename = "task.created")]
    Created(Box<TaskCreated>),
    #[serde(rename = "task.edited")]
    Edited { spec: Box<TaskSpec> },
    /// The worker's id is chosen and kept before anything is started.
    #[serde(rename = "task.deployed")]
    Deployed {
        worker: WorkerId,
        source: WorkerSource,
        session: SessionId,
        run: u32,
        /// Turns the session had had by then.
        #[serde(default)]
        turns: u64,
    },
    #[serde(rename = "task.tree_made")]
    TreeMade { tree: Tree },
    /// The work of its prerequisites does not fit together. No agent was started; it waits until somebody has resolved it.
    #[serde(rename = "task.base_conflict")]
    BaseConflict { conflict: BaseConflict },
    #[serde(rename = "task.started")]
    Started {},
    /// The worker has a process, or another one than before.
    #[serde(rename = "task.run_seen")]
    RunSeen { run: u32, process: RunId },
    #[serde(rename = "task.interrupted")]
    Interrupted { cause: InterruptCause, reason: Option<String> },
    /// The task continued after an interruption or a pause.
    #[serde(rename = "task.resumed")]
    Resumed { turns: u64 },
    #[serde(rename = "task.paused")]
    Paused { reason: Option<String> },
    #[serde(rename = "task.end_asked")]
    EndAsked { ending: TaskEnding, reason: Option<String> },
    #[serde(rename = "task.reported")]
    Reported { result: TaskResult },
    #[serde(rename = "task.captured")]
    Captured { captured: Captured },
    /// The content of the worktree could not be committed; the worktree stays.
    #[serde(rename = "task.capture_failed")]
    CaptureFailed { why: String },
    /// The commits its branch has of its own, counted at its end.
    #[serde(rename = "task.branch_counted")]
    BranchCounted { commits: u32 },
    #[serde(rename = "task.ended")]
    Ended { state: TaskState, reason: Option<String> },
    #[serde(rename = "task.retried")]
    Retried {},
    #[serde(rename = "task.merged")]
    Merged { commit: String, into: String },
    /// The worktree was removed; the branch stays.
    #[serde(rename = "task.tree_removed")]
    TreeRemoved {},
    /// Worktree and branch were removed; their content is under this ref.
    #[serde(rename = "task.discarded")]
    Discarded { reference: String },
    /// A remedy was applied to keep the worker healthy.
    #[serde(rename = "task.remedied")]
    Remedied {
        remedy: Remedy,
        why: String,
        /// Turns its session had had by then.
        #[serde(default)]
        turns: u64,
    },
    /// Another mailbox gets the reports from now on.
    #[serde(rename = "task.adopted")]
    Adopted { reports_to: Option<MailTo> },
}
