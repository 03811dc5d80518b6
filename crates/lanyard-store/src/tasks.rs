//! The contract for tasks and mail: rows with a log beside them, written by their one owner in the daemon.

use lanyard_core::task::{Mail, MailTo, Task, TaskEnvelope, TaskState};
use lanyard_core::{MailId, PlanId, SessionId, TaskId, WorkerId};

use crate::error::{AppendError, StoreError};

/// Tasks and mail. All calls block. One thread writes; any number read what has been committed.
pub trait Tasks: Send + Sync {
    /// Writes the whole batch in one transaction. When it answers `Ok`, all of it is on disk and can be read; when it
    /// answers `Err`, nothing of it can.
    fn write_work(&self, batch: &WorkBatch) -> Result<(), AppendError>;

    /// A damaged row is rebuilt from the task's log; one that cannot be is an error.
    fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// Tasks that match all of the filter, by id, those after `after` only.
    fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError>;

    /// Up to `limit` events of a task's log with `seq > after`, in order.
    fn task_events(&self, task: TaskId, after: u64, limit: usize) -> Result<Vec<TaskEnvelope>, StoreError>;

    /// The tasks a name stands for: an alias, or the id of a worker, session or run that worked at it. At most `FIND_MAX`.
    fn tasks_named(&self, name: &str) -> Result<Vec<TaskId>, StoreError>;

    fn mail(&self, id: MailId) -> Result<Option<Mail>, StoreError>;

    /// Mail that matches all of the filter, by box and place in it, those after `after` only.
    fn mails(
        &self,
        filter: &MailFilter,
        after: Option<(MailTo, u64)>,
        limit: usize,
    ) -> Result<Vec<Mail>, StoreError>;
}

/// Everything one commit of families makes durable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkBatch {
    /// In the order they happened. Per task, `seq` goes on without a gap.
    pub entries: Vec<TaskEnvelope>,
    /// Each as of its last entry.
    pub tasks: Vec<Task>,
    /// Each as it now is. A new one has the next place in its box.
    pub mail: Vec<Mail>,
    /// Names by which tasks can be found from now on.
    pub names: Vec<(String, TaskId)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub plan: Option<PlanId>,
    pub parent: Option<TaskId>,
    pub reports_to: Option<MailTo>,
    pub worker: Option<WorkerId>,
    pub session: Option<SessionId>,
    pub workspace: Option<String>,
    pub state: Option<TaskState>,
    /// Those that have ended, or those that have not.
    pub ended: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailFilter {
    pub to: Option<MailTo>,
    /// Those that are settled, or those that are not.
    pub settled: Option<bool>,
    pub dead: Option<bool>,
}
