//! Which tasks may be worked at, in which order, and what holds the others.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::id::{PlanId, TaskId};
use crate::paper::{PlanStatus, Priority};
use crate::task::Task;
use crate::task::event::TaskEvent;
use crate::task::mail::MailTo;
use crate::task::record::{Isolation, TaskState};
use crate::task::schedule::{FamilyRules, Field, by_dependency, cycle, hold, is_stuck, order, wants_tree};
use crate::task::testing::{Given, pending, short_ids, task_id};

/// Task `number` of plan 1.
fn task(number: u128, given: Given) -> Task {
    Task { id: task_id(number), plan: Some(PlanId::from_u128(1)), ..given.task }
}

fn grouped(number: u128, given: Given, group: Option<&str>) -> Task {
    let mut task = task(number, given);
    task.spec.group = group.map(str::to_owned);
    task
}

fn writing(number: u128, given: Given, file: &str) -> Task {
    let mut task = task(number, given);
    task.spec.files = vec![file.to_owned()];
    task
}

fn after(number: u128, on: &[u128]) -> Task {
    let mut task = task(number, pending());
    task.spec.depends_on = on.iter().map(|&on| task_id(on)).collect();
    task
}

/// What holds the task among the others, with two places in the plan and three in all.
fn held(task: &Task, others: &[Task]) -> Option<String> {
    held_in(task, others, Some(PlanStatus::Active), false)
}

fn held_in(task: &Task, others: &[Task], plan: Option<PlanStatus>, halted: bool) -> Option<String> {
    let rules = FamilyRules { plan_concurrency: 2, concurrency: 3, ..FamilyRules::default() };
    let tasks: BTreeMap<TaskId, Task> =
        others.iter().chain([task]).map(|task| (task.id, task.clone())).collect();
    hold(task, &Field { tasks: &tasks, plan, halted, rules: &rules }).map(|hold| short_ids(&hold.to_string()))
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "takes what `held` answers")]
fn assert_held(found: Option<String>, expected: &str) {
    assert_eq!(found, Some(expected.to_owned()));
}

#[test]
fn a_task_is_held_by_its_state_a_halt_and_its_plan() {
    let one = task(1, pending());
    assert_eq!(held(&one, &[]), None);
    assert_held(held(&task(1, pending().running()), &[]), "it is running");
    assert_held(held_in(&one, &[], None, true), "everything was halted");
    assert_eq!(held_in(&one, &[], None, false), None);
    for status in [
        PlanStatus::Draft,
        PlanStatus::Paused,
        PlanStatus::Completed,
        PlanStatus::Failed,
        PlanStatus::Cancelled,
    ] {
        assert_held(held_in(&one, &[], Some(status), false), &format!("its plan is {status}"));
    }
}

/// A task that works for another.
fn below(parent: u128, mut task: Task) -> Task {
    task.reports_to = Some(MailTo::Task(task_id(parent)));
    task
}

/// S4-B09: who waits for its children does not hold them, however few places there are.
#[test]
fn one_child_may_work_in_the_place_of_a_parent_that_waits_for_it() {
    let parents: Vec<Task> = (1..=3).map(|number| task(number, pending().running())).collect();
    let among = |others: &[Task]| [&parents[..], others].concat();
    let child = below(1, task(4, pending()));
    assert_eq!(held(&child, &parents), None);
    let second = below(1, task(5, pending().running()));
    assert_held(
        held(&child, &among(std::slice::from_ref(&second))),
        "4 tasks are at work, which is all there may be",
    );
    assert_eq!(held(&below(5, task(6, pending())), &among(&[second])), None, "and so on below it");
    let stranger = task(6, pending());
    assert_held(held(&stranger, &parents), "3 tasks are at work, which is all there may be");
    let ended = task(7, pending().ended(TaskState::Failed));
    let orphan = below(7, task(8, pending()));
    assert_held(held(&orphan, &among(&[ended])), "3 tasks are at work, which is all there may be");
}

#[test]
fn the_group_and_the_files_of_a_parent_are_its_childrens() {
    let parent = grouped(1, pending().running(), Some("left"));
    let child = below(1, grouped(2, pending(), Some("right")));
    assert_eq!(held(&child, std::slice::from_ref(&parent)), None);
    assert_eq!(held(&below(2, grouped(3, pending(), Some("right"))), &[parent, child]), None);
    let parent = writing(1, pending().running(), "a.txt");
    assert_eq!(held(&below(1, writing(2, pending(), "a.txt")), std::slice::from_ref(&parent)), None);
    assert_held(
        held(&writing(2, pending(), "a.txt"), &[parent]),
        "task#1 writes `a.txt` as well and is at work",
    );
}

#[test]
fn a_task_waits_until_all_it_depends_on_are_completed() {
    let one = after(1, &[2, 3]);
    let done = |number| task(number, pending().ended(TaskState::Completed));
    assert_eq!(held(&one, &[done(2), done(3)]), None);
    assert_held(held(&one, &[done(2), task(3, pending())]), "waits for task#3");
    for state in [TaskState::Failed, TaskState::Cancelled] {
        let ended = task(2, pending().ended(state));
        assert_held(held(&one, &[ended, done(3)]), &format!("waits for task#2 ({state})"));
    }
    assert_held(held(&one, &[done(2)]), "it depends on task#3, which does not exist");
    // By their keys in the same plan, and by their ids elsewhere.
    let keyed = |number, key: &str| {
        let mut task = task(number, pending());
        task.spec.key = Some(key.to_owned());
        task
    };
    assert_held(held(&one, &[keyed(2, "build"), keyed(3, "test")]), "waits for build, test");
    let elsewhere = Task { plan: None, ..keyed(2, "build") };
    assert_held(held(&one, &[elsewhere, keyed(3, "test")]), "waits for task#2, test");
}

#[test]
fn tasks_are_merged_after_what_they_depend_on() {
    let numbers = |tasks: &[Task]| -> Vec<TaskId> {
        by_dependency(tasks.iter()).into_iter().map(|task| task.id).collect()
    };
    let ids = |numbers: &[u128]| -> Vec<TaskId> { numbers.iter().map(|&n| task_id(n)).collect() };
    let free = |number| task(number, pending());
    assert_eq!(numbers(&[free(3), free(1)]), ids(&[3, 1]), "otherwise as they came");
    assert_eq!(numbers(&[after(1, &[2, 3]), after(2, &[3]), free(3), free(4)]), ids(&[3, 2, 1, 4]));
    assert_eq!(numbers(&[after(1, &[9]), free(2)]), ids(&[1, 2]), "9 is not among them");
    assert_eq!(numbers(&[after(1, &[2]), after(2, &[1]), free(3)]), ids(&[3, 1, 2]), "a circle ends");
}

#[test]
fn there_are_so_many_places_in_a_plan_and_in_all() {
    let one = task(1, pending());
    let running = |number| task(number, pending().running());
    let elsewhere = |number| Task { plan: None, ..running(number) };
    assert_eq!(held(&one, &[running(2), elsewhere(3)]), None);
    let full = "2 tasks are at work, which is all there may be";
    assert_held(held(&one, &[running(2), running(3)]), full);
    let full = "3 tasks are at work, which is all there may be";
    assert_held(held(&one, &[running(2), elsewhere(3), elsewhere(4)]), full);
    // Who was interrupted or held while at work keeps the place; who was held before has none.
    let paused = |number| task(number, pending().running().paused());
    assert!(held(&one, &[paused(2), paused(3)]).is_some());
    let held_before = |number| task(number, pending().paused());
    assert_eq!(held(&one, &[held_before(2), held_before(3), held_before(4)]), None);
    let ended = |number| task(number, pending().running().ended(TaskState::Failed));
    assert_eq!(held(&one, &[ended(2), ended(3), ended(4)]), None);
}

#[test]
fn groups_of_a_plan_take_turns() {
    let at_work = |group| grouped(2, pending().running(), group);
    for (ours, theirs, together) in [
        (Some("a"), Some("a"), true),
        (Some("a"), Some("b"), false),
        (Some("a"), None, true),
        (None, Some("b"), true),
        (None, None, true),
    ] {
        let found = held(&grouped(1, pending(), ours), &[at_work(theirs)]);
        let expected = (!together).then_some("the group `b` of its plan is at work");
        assert_eq!(found.as_deref(), expected, "{ours:?} beside {theirs:?}");
    }
    let other_plan = Task { plan: Some(PlanId::from_u128(2)), ..at_work(Some("b")) };
    assert_eq!(held(&grouped(1, pending(), Some("a")), &[other_plan]), None);
}

#[test]
fn two_tasks_do_not_write_the_same_files_in_one_workspace() {
    let one = writing(1, pending(), "src/a.rs");
    let other = writing(2, pending().running(), "src/*.rs");
    assert_held(held(&one, std::slice::from_ref(&other)), "task#2 writes `src/a.rs` as well and is at work");
    let elsewhere = Task { workspace: Some("/w".to_owned()), ..other.clone() };
    assert_eq!(held(&one, &[elsewhere]), None);
    assert_eq!(held(&one, &[writing(2, pending(), "src/a.rs")]), None);
    assert_eq!(held(&one, &[writing(2, pending().running(), "docs/a.md")]), None);
}

#[test]
fn the_most_urgent_comes_first_and_then_the_oldest() {
    let urgent = |number, priority| {
        let mut task = task(number, pending());
        task.spec.priority = priority;
        task
    };
    let tasks = [
        urgent(1, Priority::Low),
        urgent(2, Priority::Normal),
        urgent(5, Priority::Critical),
        urgent(3, Priority::High),
        urgent(4, Priority::Critical),
        urgent(6, Priority::Normal),
    ];
    let ids: Vec<u128> = order(tasks.iter()).iter().map(|task| task.id.as_u128()).collect();
    assert_eq!(ids, [4, 5, 3, 2, 6, 1]);
}

fn circle(edges: &[(u128, &[u128])]) -> Option<Vec<u128>> {
    let depends =
        edges.iter().map(|(id, on)| (task_id(*id), on.iter().map(|&on| task_id(on)).collect())).collect();
    cycle(&depends).map(|tasks| tasks.into_iter().map(TaskId::as_u128).collect())
}

#[test]
fn circles_are_found_and_nothing_else_is() {
    assert_eq!(circle(&[]), None);
    assert_eq!(circle(&[(1, &[2, 3]), (2, &[4]), (3, &[4]), (4, &[])]), None);
    assert_eq!(circle(&[(1, &[9])]), None, "what is not there depends on nothing");
    assert_eq!(circle(&[(1, &[1])]), Some(vec![1]));
    assert_eq!(circle(&[(1, &[2]), (2, &[3]), (3, &[2])]), Some(vec![2, 3]));
    assert_eq!(circle(&[(1, &[2, 3]), (2, &[]), (3, &[4]), (4, &[1])]), Some(vec![1, 3, 4]));
    // Deeper than any stack would go.
    let depends: BTreeMap<TaskId, Vec<TaskId>> =
        (1..20_000).map(|number| (task_id(number), vec![task_id(number + 1)])).collect();
    assert_eq!(cycle(&depends), None);
}

proptest! {
    /// What is found is a circle; where none is found, the tasks can be put in an order in which each comes after all
    /// it depends on.
    #[test]
    fn a_circle_is_found_exactly_when_there_is_no_order(edges in vec((0..8_u128, 0..8_u128), 0..20)) {
        let mut depends: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
        for (from, to) in edges {
            depends.entry(task_id(from)).or_default().push(task_id(to));
        }
        if let Some(found) = cycle(&depends) {
            prop_assert!(!found.is_empty());
            let next = found.iter().cycle().skip(1);
            for (from, to) in found.iter().zip(next) {
                prop_assert!(depends[from].contains(to), "{from} does not depend on {to}");
            }
        } else {
            let mut left = depends.clone();
            while !left.is_empty() {
                let free: Vec<TaskId> = left
                    .iter()
                    .filter(|(_, on)| on.iter().all(|on| !left.contains_key(on)))
                    .map(|(id, _)| *id)
                    .collect();
                prop_assert!(!free.is_empty(), "there is a circle among {left:?}");
                left.retain(|id, _| !free.contains(id));
            }
        }
    }
}

#[test]
fn a_worktree_is_made_where_it_can_be_or_must_be() {
    for (isolation, in_repository, elsewhere) in
        [(Isolation::Auto, true, false), (Isolation::Worktree, true, true), (Isolation::Shared, false, false)]
    {
        assert_eq!(wants_tree(isolation, true), in_repository, "{isolation:?}");
        assert_eq!(wants_tree(isolation, false), elsewhere, "{isolation:?}");
    }
}

/// A hold names the one thing that has to change first.
#[test]
fn what_holds_a_task_is_asked_in_a_fixed_order() {
    let mut one = after(1, &[2]);
    one.spec.files = vec!["a".to_owned()];
    let blocker = writing(2, pending().running(), "a");
    let fields = [blocker.clone(), task(3, pending().running())];
    assert_held(held(&one, &fields), "waits for task#2");
    one.spec.depends_on.clear();
    assert!(matches!(held(&one, &fields).as_deref(), Some("2 tasks are at work, which is all there may be")));
    assert_held(held(&one, &[blocker]), "task#2 writes `a` as well and is at work");
    let retried = task(1, pending().running().ended(TaskState::Failed).event(TaskEvent::Retried {}));
    assert_eq!(held(&retried, &[]), None);
}

/// Whether the plan of these tasks can only wait.
fn stuck(tasks: &[Task]) -> bool {
    let held: BTreeMap<TaskId, Task> = tasks.iter().map(|task| (task.id, task.clone())).collect();
    is_stuck(&tasks.iter().collect::<Vec<_>>(), &held)
}

#[test]
fn a_plan_is_stuck_when_all_that_is_left_waits_for_what_is_lost() {
    let (failed, done) = (TaskState::Failed, TaskState::Completed);
    let ended = |number, state| task(number, pending().ended(state));
    for (tasks, expected) in [
        (vec![ended(1, done)], false),
        (vec![ended(1, failed)], true),
        (vec![ended(1, failed), after(2, &[1]), after(3, &[2])], true),
        (vec![after(3, &[2]), after(2, &[1]), ended(1, failed)], true),
        (vec![ended(1, failed), after(2, &[1]), task(3, pending())], false),
        (vec![ended(1, failed), after(2, &[1]), task(3, pending().running())], false),
        (vec![ended(1, done), after(2, &[1])], false),
        (vec![after(2, &[9])], true),
    ] {
        let told: Vec<String> =
            tasks.iter().map(|task| short_ids(&format!("{} {}", task.id, task.state))).collect();
        assert_eq!(stuck(&tasks), expected, "{told:?}");
    }
}

/// Each way through the layers would be one of 2^100.
#[test]
fn many_ways_to_the_same_task_are_looked_at_once() {
    let layers = |first: Task| -> Vec<Task> {
        let rest = (1..100).flat_map(|layer: u128| {
            let (one, other) = (2 * layer - 1, 2 * layer);
            [after(one + 2, &[one, other]), after(other + 2, &[one, other])]
        });
        [first, task(2, pending())].into_iter().chain(rest).collect()
    };
    assert!(!stuck(&layers(task(1, pending()))));
    assert!(
        !stuck(&layers(task(1, pending().ended(TaskState::Failed)))),
        "one that waits for nothing is left"
    );
}
