//! Tasks and workers as they are shown: the record, with what only the owner knows.

use lanyard_core::session::Session;
use lanyard_core::task::{MailTo, Task, TaskState, is_key};
use lanyard_core::{MailId, TaskId};

use crate::api::types::{TaskView, WorkerRow};
use crate::families::FamilyError;
use crate::families::owner::Owner;

impl Owner {
    pub(crate) fn view(&mut self, id: TaskId) -> Result<TaskView, FamilyError> {
        let task = self.task(id)?.clone();
        self.shown(task)
    }

    pub(crate) fn views(&mut self, tasks: Vec<Task>) -> Result<Vec<TaskView>, FamilyError> {
        // What is in memory is newer than what was read.
        tasks
            .into_iter()
            .map(|task| {
                let task = self.tasks.get(&task.id).cloned().unwrap_or(task);
                self.shown(task)
            })
            .collect()
    }

    fn shown(&mut self, mut task: Task) -> Result<TaskView, FamilyError> {
        // Keys of requests find it too, and are nobody's name for it.
        task.aliases.retain(|alias| !is_key(alias));
        let held = match task.state {
            TaskState::Pending => self.hold_of(task.id)?.map(|hold| hold.to_string()),
            TaskState::Deploying
            | TaskState::Running
            | TaskState::Paused
            | TaskState::Interrupted
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Cancelled => None,
        };
        let kin = self.kin(task.id);
        let running = (task.state == TaskState::Running).then_some(task.worker).flatten();
        Ok(TaskView {
            uri: task.uri(),
            held,
            condition: running.and_then(|worker| self.health.condition(worker)),
            open_children: kin.open_children as u64,
            mail: self.mail.get(&MailTo::Task(task.id)).map_or(0, |held| held.len() as u64),
            task,
        })
    }

    /// Who works, by worker; those of ended tasks are not in memory.
    pub(crate) fn workers(&self) -> Result<Vec<WorkerRow>, FamilyError> {
        let at_work = self.tasks.values().filter(|task| !task.state.is_ended());
        at_work.filter_map(|task| self.worker_row(task).transpose()).collect()
    }

    pub(crate) fn worker_row(&self, task: &Task) -> Result<Option<WorkerRow>, FamilyError> {
        let (Some(worker), Some(source)) = (task.worker, task.worker_source) else { return Ok(None) };
        let session: Option<Session> = match task.session {
            Some(id) => self.tools.store.load(id)?.map(|loaded| loaded.session),
            None => None,
        };
        let live = session.as_ref().is_some_and(|session| session.live_run().is_some());
        Ok(Some(WorkerRow {
            worker,
            source,
            kind: task.spec.kind,
            agent: session
                .as_ref()
                .and_then(|session| session.hands.agent.clone())
                .or(task.spec.agent.clone()),
            task: task.id,
            title: task.spec.title.clone(),
            task_state: task.state,
            plan: task.plan,
            session: task.session,
            session_state: session.as_ref().map(|session| session.state.name()),
            run: task.run,
            process: task.current_run().and_then(|run| run.run),
            live,
            condition: self.health.condition(worker),
            remedies: task.remedies,
            last_activity_at: session.map(|session| session.last_activity_at),
        }))
    }

    /// The id a message would have that was asked for under a key.
    pub(crate) const fn mail_of_key(key: [u8; 16]) -> MailId {
        MailId::from_u128(u128::from_be_bytes(key))
    }
}
