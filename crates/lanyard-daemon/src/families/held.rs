//! The tasks that are held in memory, and the ways to them that every look goes. It knows nothing of what a task wants,
//! nor of disks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;

use lanyard_core::Record as _;
use lanyard_core::task::{MailTo, Task, TaskEnvelope, TaskEvent};
use lanyard_core::{PlanId, TaskId};

/// Read as a map; changed only here, so that the ways are always those of the tasks.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    all: BTreeMap<TaskId, Task>,
    below: HashMap<MailTo, BTreeSet<TaskId>>,
    /// How many of a plan have not ended.
    open_in: HashMap<PlanId, usize>,
    ended: BTreeSet<TaskId>,
}

impl Deref for Tasks {
    type Target = BTreeMap<TaskId, Task>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Tasks {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// One that is held already is newer.
    pub(super) fn hold(&mut self, task: Task) {
        let id = task.id;
        if let Entry::Vacant(place) = self.all.entry(id) {
            place.insert(task);
            self.link(id);
        }
    }

    /// The task as it is after this event.
    pub(super) fn apply(&mut self, envelope: &TaskEnvelope) -> Result<&Task, String> {
        let id = envelope.task;
        if matches!(envelope.event, TaskEvent::Created(_)) && !self.all.contains_key(&id) {
            self.hold(Task::born(envelope).map_err(|error| error.to_string())?);
        } else {
            self.unlink(id);
            let applied = self.all.get_mut(&id).map(|task| task.apply(envelope));
            self.link(id);
            applied.ok_or("the task is not in memory")?.map_err(|error| error.to_string())?;
        }
        self.all.get(&id).ok_or_else(|| "the task is not in memory".to_owned())
    }

    /// Those whose ends are told there.
    pub(super) fn below(&self, to: MailTo) -> impl Iterator<Item = &Task> {
        self.below.get(&to).into_iter().flatten().filter_map(|id| self.all.get(id))
    }

    /// The same without those that have ended.
    pub(super) fn open_below(&self, to: MailTo) -> impl Iterator<Item = &Task> {
        self.below(to).filter(|task| !task.state.is_ended())
    }

    /// Whether any of them has.
    pub(super) fn have_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Lets go of tasks that have ended and belong to no plan with open ones, but for these.
    pub(super) fn forget_ended(&mut self, keep: impl Fn(TaskId) -> bool) {
        let goes = |task: &&Task| task.plan.is_none_or(|plan| !self.open_in.contains_key(&plan));
        let ended = self.ended.iter().filter(|id| !keep(**id)).filter_map(|id| self.all.get(id));
        let gone: Vec<TaskId> = ended.filter(goes).map(|task| task.id).collect();
        for id in gone {
            self.unlink(id);
            self.all.remove(&id);
        }
    }

    fn link(&mut self, id: TaskId) {
        let Some(task) = self.all.get(&id) else { return };
        if let Some(to) = task.reports_to {
            self.below.entry(to).or_default().insert(id);
        }
        if task.state.is_ended() {
            self.ended.insert(id);
        } else if let Some(plan) = task.plan {
            *self.open_in.entry(plan).or_default() += 1;
        }
    }

    /// Takes back what `link` did for the task as it is.
    fn unlink(&mut self, id: TaskId) {
        let Some(task) = self.all.get(&id) else { return };
        if let Some(to) = task.reports_to
            && let Some(below) = self.below.get_mut(&to)
        {
            below.remove(&id);
            if below.is_empty() {
                self.below.remove(&to);
            }
        }
        if task.state.is_ended() {
            self.ended.remove(&id);
        } else if let Some(plan) = task.plan
            && let Some(open) = self.open_in.get_mut(&plan)
        {
            *open -= 1;
            if *open == 0 {
                self.open_in.remove(&plan);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lanyard_core::task::{NewTask, TaskCreated, TaskSpec, TaskState};
    use lanyard_core::{Actor, SessionId, Timestamp};

    use super::*;

    fn put(tasks: &mut Tasks, id: u128, event: TaskEvent) {
        let task = TaskId::from_u128(id);
        let seq = tasks.get(&task).map_or(0, |task| task.seq) + 1;
        let at = Timestamp::from_millis(1_000);
        let envelope = TaskEnvelope { task, seq, at, actor: Actor::system("test"), event };
        tasks.apply(&envelope).unwrap();
    }

    fn made(tasks: &mut Tasks, id: u128, to: MailTo, plan: Option<u128>) {
        let spec = spec_of(&NewTask { title: "it".to_owned(), ..NewTask::default() });
        let created = TaskCreated {
            plan: plan.map(PlanId::from_u128),
            parent: None,
            reports_to: Some(to),
            workspace: None,
            created_in: None,
            aliases: Vec::new(),
            spec,
        };
        put(tasks, id, TaskEvent::Created(Box::new(created)));
    }

    fn spec_of(new: &NewTask) -> TaskSpec {
        TaskSpec {
            key: None,
            title: new.title.clone(),
            prompt: new.title.clone(),
            agent: None,
            depends_on: Vec::new(),
            priority: new.priority,
            group: None,
            files: Vec::new(),
            base: None,
            kind: new.kind,
            isolation: new.isolation,
            when_parent_ends: new.when_parent_ends,
            chat: None,
            auto: false,
            may_spawn: false,
            subagents: false,
            bounds: None,
        }
    }

    fn ids<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<u128> {
        tasks.map(|task| task.id.as_u128()).collect()
    }

    /// The ways are those of the tasks as they are: after an end, another parent, and another run.
    #[test]
    fn whoever_is_below_is_found_as_tasks_change() {
        let (one, two) = (MailTo::Task(TaskId::from_u128(100)), MailTo::Session(SessionId::from_u128(101)));
        let mut tasks = Tasks::default();
        made(&mut tasks, 1, one, None);
        made(&mut tasks, 2, one, None);
        put(&mut tasks, 1, TaskEvent::Adopted { reports_to: Some(two) });
        assert_eq!((ids(tasks.open_below(one)), ids(tasks.open_below(two))), (vec![2], vec![1]));
        put(&mut tasks, 2, TaskEvent::Ended { state: TaskState::Failed, reason: None });
        assert_eq!((ids(tasks.open_below(one)), ids(tasks.below(one))), (vec![], vec![2]));
        put(&mut tasks, 2, TaskEvent::Retried {});
        assert_eq!(ids(tasks.open_below(one)), [2]);
        put(&mut tasks, 1, TaskEvent::Adopted { reports_to: None });
        assert_eq!(ids(tasks.below(two)), Vec::<u128>::new());
    }

    /// An ended task stays for as long as its plan has open ones, and while somebody has to do with it.
    #[test]
    fn what_has_ended_is_let_go_with_the_last_of_its_plan() {
        let to = MailTo::Task(TaskId::from_u128(100));
        let mut tasks = Tasks::default();
        made(&mut tasks, 1, to, Some(7));
        made(&mut tasks, 2, to, Some(7));
        made(&mut tasks, 3, to, None);
        let end = || TaskEvent::Ended { state: TaskState::Completed, reason: None };
        put(&mut tasks, 1, end());
        put(&mut tasks, 3, end());
        tasks.forget_ended(|_| false);
        assert_eq!(ids(tasks.values()), [1, 2]);
        put(&mut tasks, 2, end());
        tasks.forget_ended(|id| id.as_u128() == 1);
        assert_eq!(ids(tasks.values()), [1]);
        tasks.forget_ended(|_| false);
        assert_eq!((ids(tasks.values()), ids(tasks.below(to))), (vec![], vec![]));
    }
}
