//! What the tasks before a task left in git, for the branch it begins on (decision 0036).

use std::collections::{BTreeSet, VecDeque};

use lanyard_core::TaskId;
use lanyard_core::task::{Task, TaskState};
use lanyard_git::worktree::FinishedWork;
use lanyard_store::{Store, StoreError};

/// The work of the completed tasks it depends on, in the order they are named. One that has no branch, because it was
/// done elsewhere or by hand, stands for what it depends on itself.
pub(super) fn work_before(store: &dyn Store, task: &Task) -> Result<Vec<FinishedWork>, StoreError> {
    let tasks = before(store, task, |before| before.tree.is_none())?;
    let work = tasks.into_iter().filter_map(|before| {
        let captured = before.captured.map(|captured| captured.commit);
        Some(FinishedWork { tree: before.tree?, captured, merged: before.merged })
    });
    Ok(work.collect())
}

/// All completed tasks it builds on, however far back, whose branches are not known to be merged.
pub(crate) fn unmerged_before(store: &dyn Store, task: &Task) -> Result<Vec<Task>, StoreError> {
    let mut tasks = before(store, task, |_| true)?;
    tasks.retain(|before| before.tree.is_some() && before.merged.is_none());
    Ok(tasks)
}

/// The completed tasks it depends on, the nearest first, and those behind each that `is_passed`.
fn before(
    store: &dyn Store,
    task: &Task,
    is_passed: impl Fn(&Task) -> bool,
) -> Result<Vec<Task>, StoreError> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<TaskId> = BTreeSet::from([task.id]);
    let mut next: VecDeque<TaskId> = task.spec.depends_on.iter().copied().collect();
    while let Some(id) = next.pop_front() {
        if !seen.insert(id) {
            continue;
        }
        let completed = |before: &Task| before.state == TaskState::Completed;
        let Some(before) = store.task(id)?.filter(completed) else { continue };
        if is_passed(&before) {
            next.extend(before.spec.depends_on.iter().copied());
        }
        found.push(before);
    }
    Ok(found)
}
