//! Why a task does not do what it was asked to. Each has a stable code, a sentence of what happened and one of what to do.

use crate::id::TaskId;
use crate::paper;
use crate::task::record::TaskState;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    #[error("task {task} has ended: it is {state}")]
    Ended { task: TaskId, state: TaskState },
    #[error("task {task} is {state}, which does not allow this")]
    NotNow { task: TaskId, state: TaskState },
    #[error("task {task} is at work already, it is {state}")]
    AtWork { task: TaskId, state: TaskState },
    #[error("task {task} waits for {on}, which is {state}")]
    Blocked { task: TaskId, on: TaskId, state: TaskState },
    #[error("the tasks {} depend on each other in a circle", list(.tasks))]
    Cycle { tasks: Vec<TaskId> },
    #[error("a task of kind `chat` needs the session it is worked at in")]
    ChatNeedsSession,
    #[error("{0}")]
    Paper(#[from] paper::Refusal),
}

fn list(tasks: &[TaskId]) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl TaskRefusal {
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Ended { .. } => "task_ended",
            Self::NotNow { .. } => "task_state",
            Self::AtWork { .. } => "task_at_work",
            Self::Blocked { .. } => "task_blocked",
            Self::Cycle { .. } => "dependency_cycle",
            Self::ChatNeedsSession => "chat_needs_session",
            Self::Paper(refusal) => refusal.code(),
        }
    }

    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Ended { task, .. } => format!("run it again with `lanyard task retry {task}`"),
            Self::NotNow { task, .. } | Self::AtWork { task, .. } => {
                format!("look how it stands with `lanyard task show {task}`")
            }
            Self::Blocked { on, .. } => {
                format!("finish it first, see `lanyard task show {on}`, or deploy with `--force`")
            }
            Self::Cycle { .. } => "take one of the dependencies away".to_owned(),
            Self::ChatNeedsSession => "name it with `session`".to_owned(),
            Self::Paper(refusal) => refusal.advice(),
        }
    }

    /// Whether the request itself is at fault, rather than the moment it came at.
    #[must_use]
    pub const fn is_bad_request(&self) -> bool {
        matches!(self, Self::Cycle { .. } | Self::ChatNeedsSession | Self::Paper(_))
    }
}
