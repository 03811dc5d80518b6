//! Scheduling: the tasks that may start now, and the holds of the others. Dependencies, the plan's status, concurrency,
//! groups and files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::paper::{PlanStatus, Priority};
use crate::task::files;
use crate::task::mail::MailTo;
use crate::task::record::{Isolation, Task, TaskState};
use crate::text::{NAME_CHARS_MAX, one_line};
use crate::tree::BaseConflict;

/// Limits of concurrency and of the growth of a family. Inherited and never widened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FamilyRules {
    /// Concurrent tasks of one plan.
    pub plan_concurrency: u32,
    /// Concurrent tasks of all plans.
    pub concurrency: u32,
    /// Tasks one session, or one task, may have open below it.
    pub breadth: u32,
    /// Tasks one session may make in a minute.
    pub spawns_per_minute: u32,
    /// Tasks that may ever be made below one root.
    pub budget: u32,
    /// A parent between turns is given its mail as a prompt.
    pub wake: bool,
}

impl Default for FamilyRules {
    fn default() -> Self {
        Self {
            plan_concurrency: 4,
            concurrency: 16,
            breadth: 16,
            spawns_per_minute: 30,
            budget: 200,
            wake: true,
        }
    }
}

/// The reason why a task does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    NotPending(TaskState),
    Halted,
    Plan(PlanStatus),
    /// Prerequisites that are not completed, in the order the task names them.
    Waits(Vec<Prerequisite>),
    /// A prerequisite no longer exists.
    Missing {
        on: TaskId,
    },
    /// The work of its prerequisites does not fit together.
    Conflict {
        task: TaskId,
        conflict: BaseConflict,
    },
    Group {
        running: String,
    },
    Files {
        /// The other task, by its key where both are of one plan.
        task: String,
        file: String,
    },
    Places {
        running: u32,
    },
}

/// A task that has to be completed first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prerequisite {
    pub id: TaskId,
    /// Its key where both are of one plan, else its id.
    pub name: String,
    pub state: TaskState,
}

impl fmt::Display for Prerequisite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            // On its way, or done: its name is enough.
            TaskState::Pending | TaskState::Deploying | TaskState::Running | TaskState::Completed => {
                f.write_str(&self.name)
            }
            TaskState::Paused | TaskState::Interrupted | TaskState::Failed | TaskState::Cancelled => {
                write!(f, "{} ({})", self.name, self.state)
            }
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPending(state) => write!(f, "it is {state}"),
            Self::Halted => write!(f, "everything was halted"),
            Self::Plan(status) => write!(f, "its plan is {status}"),
            Self::Waits(on) => {
                let names: Vec<String> = on.iter().map(ToString::to_string).collect();
                write!(f, "waits for {}", names.join(", "))
            }
            Self::Missing { on } => write!(f, "it depends on {on}, which does not exist"),
            Self::Conflict { task, conflict } => conflicting(f, *task, conflict),
            Self::Group { running } => write!(f, "the group `{running}` of its plan is at work"),
            Self::Files { task, file } => write!(f, "{task} writes `{file}` as well and is at work"),
            Self::Places { running } => write!(f, "{running} tasks are at work, which is all there may be"),
        }
    }
}

/// Files a hold names; it says how many more there are.
const NAMED_MAX: usize = 5;

fn conflicting(f: &mut fmt::Formatter<'_>, task: TaskId, conflict: &BaseConflict) -> fmt::Result {
    let named: Vec<&str> = conflict.files.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = match conflict.files.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    write!(
        f,
        "the work of its prerequisites conflicts in {}{more}: {} with {}; merge one branch into the other, or all into \
         the workspace, then run `lanyard task retry {task}`",
        named.join(", "),
        conflict.branch,
        conflict.with.join(", "),
    )
}

/// The other tasks, the plan and the limits against which holds are checked.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    /// The tasks of the plan, and all that are at work.
    pub tasks: &'a BTreeMap<TaskId, Task>,
    pub plan: Option<PlanStatus>,
    pub halted: bool,
    pub rules: &'a FamilyRules,
}

/// The hold of the task, if there is one.
#[must_use]
pub fn hold(task: &Task, field: &Field<'_>) -> Option<Hold> {
    if task.state != TaskState::Pending {
        return Some(Hold::NotPending(task.state));
    }
    if field.halted {
        return Some(Hold::Halted);
    }
    if let Some(status) = field.plan
        && status != PlanStatus::Active
    {
        return Some(Hold::Plan(status));
    }
    if let Some(hold) = blocked(task, field.tasks) {
        return Some(hold);
    }
    if let Some(conflict) = task.conflict.clone() {
        return Some(Hold::Conflict { task: task.id, conflict });
    }
    crowded(task, field)
}

/// The tasks it depends on that are not completed, or the first that does not exist.
#[must_use]
pub fn blocked(task: &Task, tasks: &BTreeMap<TaskId, Task>) -> Option<Hold> {
    let mut open = Vec::new();
    for on in &task.spec.depends_on {
        let Some(found) = tasks.get(on) else { return Some(Hold::Missing { on: *on }) };
        if found.state != TaskState::Completed {
            open.push(Prerequisite { id: *on, name: name_beside(task, found), state: found.state });
        }
    }
    (!open.is_empty()).then_some(Hold::Waits(open))
}

/// How a task names another: by its key where both are of one plan, else by its id.
fn name_beside(task: &Task, other: &Task) -> String {
    let key = other.spec.key.as_ref().filter(|_| task.plan.is_some() && task.plan == other.plan);
    key.map_or_else(|| other.id.to_string(), |key| one_line(key, NAME_CHARS_MAX))
}

/// A parent is at work until its children have ended, so what it holds does not hold them: in its place one of them may
/// work, and its group and its files are theirs.
fn crowded(task: &Task, field: &Field<'_>) -> Option<Hold> {
    let at_work = || field.tasks.values().filter(|other| other.id != task.id && other.is_at_work());
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let above = above(task, field.tasks);
    let waited_for = above.first().and_then(|parent| field.tasks.get(parent)).is_some_and(Task::is_at_work);
    let lent = waited_for && !at_work().any(|other| other.reports_to == task.reports_to);
    let all = count(at_work().count());
    if all >= field.rules.concurrency && !lent {
        return Some(Hold::Places { running: all });
    }
    if task.plan.is_some() {
        let mates = || at_work().filter(|other| other.plan == task.plan);
        let running = count(mates().count());
        if running >= field.rules.plan_concurrency && !lent {
            return Some(Hold::Places { running });
        }
        let other_group = |other: &&Task| match (&other.spec.group, &task.spec.group) {
            (Some(theirs), Some(ours)) => theirs != ours && !above.contains(&other.id),
            (_, _) => false,
        };
        if let Some(other) = mates().find(other_group) {
            return Some(Hold::Group { running: other.spec.group.clone().unwrap_or_default() });
        }
    }
    let same_place = |other: &&Task| other.workspace == task.workspace && !above.contains(&other.id);
    at_work().filter(same_place).find_map(|other| {
        let file = files::conflict(&task.spec.files, &other.spec.files)?;
        Some(Hold::Files { task: name_beside(task, other), file: file.to_owned() })
    })
}

/// The tasks above, from the nearest up.
fn above(task: &Task, tasks: &BTreeMap<TaskId, Task>) -> Vec<TaskId> {
    let mut found = Vec::new();
    let mut next = task.reports_to;
    while let Some(MailTo::Task(id)) = next {
        if found.contains(&id) {
            break;
        }
        found.push(id);
        next = tasks.get(&id).and_then(|task| task.reports_to);
    }
    found
}

/// Whether none of a plan's tasks is at work, and all that are left can only wait for one that will never be completed.
#[must_use]
pub fn is_stuck(plan: &[&Task], tasks: &BTreeMap<TaskId, Task>) -> bool {
    if plan.iter().any(|task| task.is_at_work()) {
        return false;
    }
    let is_lost = |state: TaskState| matches!(state, TaskState::Failed | TaskState::Cancelled);
    let mut lost: BTreeSet<TaskId> = BTreeSet::new();
    lost.extend(plan.iter().filter(|task| is_lost(task.state)).map(|task| task.id));
    let open: Vec<&&Task> = plan.iter().filter(|task| !task.state.is_ended()).collect();
    // What waits for something lost is lost itself, and so on; each round finds one more, or it was the last.
    loop {
        let before = lost.len();
        for task in &open {
            let gone = |on: &TaskId| lost.contains(on) || tasks.get(on).is_none_or(|on| is_lost(on.state));
            if task.spec.depends_on.iter().any(gone) {
                lost.insert(task.id);
            }
        }
        if lost.len() == before {
            return before > 0 && open.iter().all(|task| lost.contains(&task.id));
        }
    }
}

/// The tasks of a plan in the order they should be begun.
#[must_use]
pub fn order<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<&'a Task> {
    let mut tasks: Vec<&Task> = tasks.collect();
    tasks.sort_by_key(|task| (std::cmp::Reverse(rank(task.spec.priority)), task.id));
    tasks
}

/// The tasks with every prerequisite before the tasks that depend on it; otherwise in the order they came. Tasks that
/// depend on each other in a circle, which no plan has, come last.
#[must_use]
pub fn by_dependency<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<&'a Task> {
    let mut left: Vec<&Task> = tasks.collect();
    let mut waiting: BTreeSet<TaskId> = left.iter().map(|task| task.id).collect();
    let mut placed = Vec::with_capacity(left.len());
    loop {
        let is_next = |task: &&Task| !task.spec.depends_on.iter().any(|on| waiting.contains(on));
        let Some(at) = left.iter().position(is_next) else {
            placed.append(&mut left);
            return placed;
        };
        let next = left.remove(at);
        waiting.remove(&next.id);
        placed.push(next);
    }
}

const fn rank(priority: Priority) -> u8 {
    match priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
        Priority::Critical => 3,
    }
}

/// Tasks that depend on each other in a circle, if there are any.
#[must_use]
pub fn cycle(depends: &BTreeMap<TaskId, Vec<TaskId>>) -> Option<Vec<TaskId>> {
    circle(depends)
}

/// The same for whatever tasks are called by.
pub(super) fn circle<K: Copy + Ord>(depends: &BTreeMap<K, Vec<K>>) -> Option<Vec<K>> {
    let mut done: BTreeSet<K> = BTreeSet::new();
    for start in depends.keys().copied() {
        // Depth first, with the path so far; no recursion, however deep it goes.
        let mut path: Vec<(K, usize)> = vec![(start, 0)];
        while let Some((at, next)) = path.last_mut() {
            let (at, index) = (*at, *next);
            *next += 1;
            let on = depends.get(&at).and_then(|list| list.get(index)).copied();
            match on {
                None => {
                    done.insert(at);
                    path.pop();
                }
                Some(on) if done.contains(&on) => {}
                Some(on) => {
                    if let Some(from) = path.iter().position(|(id, _)| *id == on) {
                        return Some(path[from..].iter().map(|(id, _)| *id).collect());
                    }
                    path.push((on, 0));
                }
            }
        }
    }
    None
}

/// Whether its worker is to have a worktree of its own.
#[must_use]
pub fn wants_tree(isolation: Isolation, is_repository: bool) -> bool {
    match isolation {
        Isolation::Auto => is_repository,
        Isolation::Worktree => true,
        Isolation::Shared => false,
    }
}
