//! Tasks and plans for readers: from the store, beside the owner's thread. However many read and however long it takes, the
//! owner writes on. What is answered to a writer is on disk, so that it reads what it wrote.

use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lanyard_api::types::{TaskView, WorkerRow};
use lanyard_core::paper::PlanStatus;
use lanyard_core::task::health::Condition;
use lanyard_core::task::schedule::{self, FamilyRules, Field};
use lanyard_core::task::{MailTo, Task, TaskState, is_key};
use lanyard_core::{PlanId, SessionId, TaskId, WorkerId};
use lanyard_store::{MailFilter, Store, StoreError, TaskFilter};

use crate::approvals;
use crate::families::{FamilyError, halt, plans};

/// Rows read at a time.
const PAGE: usize = 500;
/// Mail that is counted; a box takes no more.
const MAIL_MAX: usize = lanyard_core::task::mail::BOX_MAX;

/// How workers do, as the owner found it last. All else a reader needs is in the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Published(Arc<RwLock<Arc<HashMap<WorkerId, Condition>>>>);

impl Published {
    pub(super) fn set(&self, conditions: HashMap<WorkerId, Condition>) {
        *self.0.write() = Arc::new(conditions);
    }

    fn get(&self) -> Arc<HashMap<WorkerId, Condition>> {
        self.0.read().clone()
    }
}

/// One answer's look at tasks.
pub(crate) struct TaskReader<'a> {
    store: &'a dyn Store,
    rules: FamilyRules,
    conditions: Arc<HashMap<WorkerId, Condition>>,
    /// What tasks that wait are held against; read once, when it is needed.
    field: Option<Around>,
}

struct Around {
    halted: bool,
    tasks: BTreeMap<TaskId, Task>,
    plans: HashMap<PlanId, Option<PlanStatus>>,
}

impl<'a> TaskReader<'a> {
    pub(crate) fn new(store: &'a dyn Store, rules: FamilyRules, published: &Published) -> Self {
        Self { store, rules, conditions: published.get(), field: None }
    }

    pub(crate) fn task(&self, id: TaskId) -> Result<Task, FamilyError> {
        self.store.task(id)?.ok_or_else(|| FamilyError::NoTask(id.to_string()))
    }

    pub(crate) fn view(&mut self, id: TaskId) -> Result<TaskView, FamilyError> {
        let task = self.task(id)?;
        self.shown(task)
    }

    pub(crate) fn views(&mut self, tasks: Vec<Task>) -> Result<Vec<TaskView>, FamilyError> {
        tasks.into_iter().map(|task| self.shown(task)).collect()
    }

    fn shown(&mut self, mut task: Task) -> Result<TaskView, FamilyError> {
        // Keys of requests find it too, and are nobody's name for it.
        task.aliases.retain(|alias| !is_key(alias));
        let held = match task.state {
            TaskState::Pending => self.held(&task)?,
            TaskState::Deploying
            | TaskState::Running
            | TaskState::Paused
            | TaskState::Interrupted
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Cancelled => None,
        };
        let to = MailTo::Task(task.id);
        let open = TaskFilter { reports_to: Some(to), ended: Some(false), ..TaskFilter::default() };
        let unsettled = MailFilter { to: Some(to), settled: Some(false), ..MailFilter::default() };
        let running = (task.state == TaskState::Running).then_some(task.worker).flatten();
        let at_work = task.session.filter(|_| !task.state.is_ended());
        Ok(TaskView {
            uri: task.uri(),
            held,
            condition: running.and_then(|worker| self.conditions.get(&worker).copied()),
            open_children: self.store.tasks(&open, None, PAGE)?.len() as u64,
            mail: self.store.mails(&unsettled, None, MAIL_MAX)?.len() as u64,
            approvals: approvals::open(self.store, at_work)?,
            task,
        })
    }

    /// What holds a task that waits.
    fn held(&mut self, task: &Task) -> Result<Option<String>, FamilyError> {
        let store = self.store;
        let mut around = match self.field.take() {
            Some(around) => around,
            None => Around::read(store)?,
        };
        around.hold_for(store, task)?;
        let plan = match task.plan {
            Some(id) => {
                if let Some(known) = around.plans.get(&id) {
                    *known
                } else {
                    let status = plans::status(store, task)?;
                    around.plans.insert(id, status);
                    status
                }
            }
            None => None,
        };
        let field = Field { tasks: &around.tasks, plan, halted: around.halted, rules: &self.rules };
        let held = schedule::hold(task, &field).map(|hold| hold.to_string());
        self.field = Some(around);
        Ok(held)
    }

    /// The workers of tasks that have not ended.
    pub(crate) fn workers(&self) -> Result<Vec<WorkerRow>, FamilyError> {
        let tasks = all(self.store, &TaskFilter { ended: Some(false), ..TaskFilter::default() })?;
        tasks.iter().filter_map(|task| self.worker_row(task).transpose()).collect()
    }

    pub(crate) fn worker_row(&self, task: &Task) -> Result<Option<WorkerRow>, FamilyError> {
        let (Some(worker), Some(source)) = (task.worker, task.worker_source) else { return Ok(None) };
        let session = match task.session {
            Some(id) => self.store.load(id)?.map(|loaded| loaded.session),
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
            condition: self.conditions.get(&worker).copied(),
            remedies: task.remedies,
            last_activity_at: session.map(|session| session.last_activity_at),
        }))
    }
}

impl Around {
    /// All that are at work.
    fn read(store: &dyn Store) -> Result<Self, FamilyError> {
        let mut tasks = BTreeMap::new();
        for state in [TaskState::Deploying, TaskState::Running, TaskState::Paused, TaskState::Interrupted] {
            let found = all(store, &TaskFilter { state: Some(state), ..TaskFilter::default() })?;
            tasks.extend(found.into_iter().map(|task| (task.id, task)));
        }
        Ok(Self { halted: halt::how(store)?.is, tasks, plans: HashMap::new() })
    }

    /// What this task depends on, and whom it works for.
    fn hold_for(&mut self, store: &dyn Store, task: &Task) -> Result<(), StoreError> {
        let above = |to: Option<MailTo>| match to {
            Some(MailTo::Task(id)) => Some(id),
            Some(MailTo::Session(_)) | None => None,
        };
        let mut next: Vec<TaskId> = task.spec.depends_on.clone();
        next.extend(above(task.reports_to));
        while let Some(id) = next.pop() {
            if self.tasks.contains_key(&id) {
                continue;
            }
            let Some(found) = store.task(id)? else { continue };
            next.extend(above(found.reports_to));
            self.tasks.insert(id, found);
        }
        Ok(())
    }
}

/// Sessions about which Lanyard itself asks a person.
pub(crate) fn asked_about(store: &dyn Store) -> Result<Vec<SessionId>, StoreError> {
    let tasks = all(store, &TaskFilter { ended: Some(false), ..TaskFilter::default() })?;
    let asked = tasks.into_iter().filter(|task| task.remedies.escalations > 0);
    Ok(asked.filter_map(|task| task.session).collect())
}

fn all(store: &dyn Store, filter: &TaskFilter) -> Result<Vec<Task>, StoreError> {
    let mut found: Vec<Task> = Vec::new();
    loop {
        let page = store.tasks(filter, found.last().map(|task| task.id), PAGE)?;
        let last = page.len() < PAGE;
        found.extend(page);
        if last {
            return Ok(found);
        }
    }
}
