//! The contract for tasks and mail: rows with a log beside them, written by their one owner in the daemon.

use lanyard_core::task::{Mail, MailTo, Task, TaskEnvelope, TaskState};
use lanyard_core::{MailId, PlanId, SessionId, TaskId, WorkerId};

use crate::error::{AppendError, StoreError};

/// Tasks and mail. All calls block. One thread writes; any number read what has been committed.
pub trait Tasks: Send + Sync {
    /// Writes the whole batch in one transaction. When it answers `Ok`, all of it is on disk and can be read; when it
    /// answers `Err`, nothing of it can. As with `append`, after `Unavailable` nothing is written until `recover`, and a
    /// crash may still bring the batch back whole.
    fn write_work(&self, batch: &WorkBatch) -> Result<(), AppendError>;

    /// A damaged row is rebuilt from the task's log; one that cannot be is an error.
    fn task(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// Tasks that match all of the filter, by id, those after `after` only. At most `limit`; fewer only when there are no
    /// more. One that cannot be made from its row or its log is left out and reported by `check`.
    fn tasks(
        &self,
        filter: &TaskFilter,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Vec<Task>, StoreError>;

    /// Up to `limit` events of a task's log with `seq > after`, in order. A damaged one among them is an error.
    fn task_events(&self, task: TaskId, after: u64, limit: usize) -> Result<Vec<TaskEnvelope>, StoreError>;

    /// The tasks a name stands for: an alias, or the id of a worker, session or run that worked at it. Newest first, at
    /// most `FIND_MAX`.
    fn tasks_named(&self, name: &str) -> Result<Vec<TaskId>, StoreError>;

    /// A damaged one is an error.
    fn mail(&self, id: MailId) -> Result<Option<Mail>, StoreError>;

    /// The last place that is taken in a box; 0 when it is empty.
    fn last_mail(&self, to: MailTo) -> Result<u64, StoreError>;

    /// Mail that matches all of the filter, by box and place in it, those after `after` only. At most `limit`; fewer
    /// only when there is no more. A damaged one is left out and reported by `check`.
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
    /// In the order they happened. Per task, `seq` goes on without a gap. The names they give their tasks
    /// ([`TaskEnvelope::names`]) are kept with them.
    pub entries: Vec<TaskEnvelope>,
    /// Each as of its last entry; all that have entries are here.
    pub tasks: Vec<Task>,
    /// Each as it now is. No two have the same place in a box.
    pub mail: Vec<Mail>,
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

impl TaskFilter {
    pub(crate) fn matches(&self, task: &Task) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none() || wanted == found
        }
        is(self.plan.as_ref(), task.plan.as_ref())
            && is(self.parent.as_ref(), task.parent.as_ref())
            && is(self.reports_to.as_ref(), task.reports_to.as_ref())
            && is(self.worker.as_ref(), task.worker.as_ref())
            && is(self.session.as_ref(), task.session.as_ref())
            && is(self.workspace.as_ref(), task.workspace.as_ref())
            && self.state.is_none_or(|wanted| wanted == task.state)
            && self.ended.is_none_or(|wanted| wanted == task.state.is_ended())
    }
}

impl MailFilter {
    pub(crate) fn matches(&self, mail: &Mail) -> bool {
        self.to.is_none_or(|wanted| wanted == mail.to)
            && self.settled.is_none_or(|wanted| wanted == mail.state.is_settled())
            && self.dead.is_none_or(|wanted| wanted == mail.state.is_dead())
    }
}
