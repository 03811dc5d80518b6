//! Why a task does not do what it was asked to. Each has a stable code, a sentence of what happened and one of what to do.

use crate::id::TaskId;
use crate::paper;
use crate::refusals;
use crate::task::record::TaskState;

refusals! {
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    pub enum TaskRefusal {
        Ended { task: TaskId, state: TaskState } => "task_ended", Conflict
            ("task {task} has ended: it is {state}") ("run it again with `lanyard task retry {task}`");
        NotNow { task: TaskId, state: TaskState } => "task_state", Conflict
            ("task {task} is {state}, which does not allow this")
            ("look how it stands with `lanyard task show {task}`");
        AtWork { task: TaskId, state: TaskState } => "task_at_work", Conflict
            ("task {task} is at work already, it is {state}")
            ("look how it stands with `lanyard task show {task}`");
        Blocked { task: TaskId, on: TaskId, state: TaskState } => "task_blocked", Conflict
            ("task {task} waits for {on}, which is {state}")
            ("finish it first, see `lanyard task show {on}`, or deploy with `--force`");
        Cycle { tasks: Vec<TaskId> } => "dependency_cycle", Invalid
            ("the tasks {} depend on each other in a circle", list(.tasks)) ("take one of the dependencies away");
        ChatNeedsSession => "chat_needs_session", Invalid
            ("a task of kind `chat` needs its session") ("name it with `session`");
    }
    via { Paper(#[from] paper::PaperRefusal) }
}

fn list(tasks: &[TaskId]) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
