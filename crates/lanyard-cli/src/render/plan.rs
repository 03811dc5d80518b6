//! Plans: a row of a listing, and one with its steps and tasks.

use std::collections::{BTreeMap, BTreeSet};

use lanyard_api::types::{PlanRow, PlanView, TaskView};
use lanyard_core::paper::Priority;
use lanyard_core::task::{Task, TaskState};
use lanyard_core::{TaskId, Timestamp};

use crate::render::approval::approvals;
use crate::render::card::Card;
use crate::render::plan_steps::{fraction, phases, progress, steps, story};
use crate::render::table::{Column, table};
use crate::render::task::{counts, listing, remark, state};
use crate::render::task_card::priority;
use crate::render::text::one_line;
use crate::render::time::{ago, stamp};

const ROW: [Column; 10] = [
    Column::whole("PLAN"),
    Column::elastic("NAME", 6),
    Column::whole("STATUS"),
    Column::whole("PRIORITY"),
    Column::whole("DONE"),
    Column::elastic("PHASE", 6),
    Column::elastic("AGENT", 6),
    Column::elastic("TASKS", 12),
    Column::whole("MADE"),
    Column::elastic("TITLE", 12),
];

/// Plans as a table. `now` is the daemon's clock.
pub(crate) fn plans(plans: &[PlanRow], now: Timestamp, max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = plans
        .iter()
        .map(|plan| {
            vec![
                plan.id.to_string(),
                plan.name.as_deref().map(one_line).unwrap_or_default(),
                status(plan),
                if plan.priority == Priority::Normal {
                    String::new()
                } else {
                    priority(plan.priority).to_owned()
                },
                fraction(&plan.progress),
                plan.current_phase.as_deref().map(one_line).unwrap_or_default(),
                plan.current_agent.as_deref().map(one_line).unwrap_or_default(),
                of_states(plan),
                ago(now, plan.created_at),
                one_line(&plan.title),
            ]
        })
        .collect();
    table(&ROW, &cells, max)
}

fn status(plan: &PlanRow) -> String {
    if plan.archived { format!("{}, archived", plan.status) } else { plan.status.to_string() }
}

fn of_states(plan: &PlanRow) -> String {
    let found: Vec<(TaskState, u64)> = plan.tasks.iter().map(|count| (count.state, count.tasks)).collect();
    counts(&found)
}

const TASK: [Column; 6] = [
    Column::whole("TASK"),
    Column::whole("STATE"),
    Column::elastic("AFTER", 8),
    Column::elastic("AGENT", 5),
    Column::elastic("WORK", 16),
    Column::elastic("NOTE", 16),
];

/// A plan with its steps and its tasks, parts below what they are a part of. `now` is the daemon's clock.
pub(crate) fn plan_card(view: &PlanView, now: Timestamp, max: Option<usize>) -> String {
    let plan = &view.plan;
    let mut card = Card::default();
    card.line("id", plan.id.to_string());
    card.text("name", plan.name.as_ref());
    card.text("title", Some(&plan.title));
    card.text("goal", view.goal.as_ref());
    card.line("status", status(plan));
    card.line("priority", priority(plan.priority));
    card.line("workspace", one_line(&plan.workspace));
    let made = format!(
        "{} ({}) by {}",
        stamp(plan.created_at),
        ago(now, plan.created_at),
        one_line(&plan.created_by)
    );
    card.line("created", made);
    card.line("done", progress(&plan.progress));
    card.line("phases", phases(&view.detail.phases));
    card.text("agent", plan.current_agent.as_ref());
    card.line("tasks", of_states(plan));
    story(&mut card, &view.detail, now);
    let mut text = card.done();
    if !view.detail.steps.is_empty() {
        text.push('\n');
        text.push_str(&steps(&view.detail.steps, max));
    }
    if !view.all.is_empty() {
        text.push('\n');
        text.push_str(&tasks(&view.all, max));
    }
    text.push_str(&approvals(&view.approvals));
    text
}

/// The tasks of a plan as a table. `now` is the daemon's clock.
pub(crate) fn tasks_table(all: &[TaskView], now: Timestamp, max: Option<usize>) -> String {
    let in_order: Vec<TaskView> = in_order(all).into_iter().map(|(_, view)| view.clone()).collect();
    listing(&in_order, now, max)
}

/// A task of a plan in one line: its key, its state and what there is to know. `all` are the plan's tasks, whose names
/// stand below each other.
pub(crate) fn task_line(view: &TaskView, all: &[TaskView]) -> String {
    let width = all.iter().map(|view| name(&view.task).chars().count()).max().unwrap_or_default();
    let note = match view.approvals.first().filter(|_| view.task.state != TaskState::Pending) {
        Some(entry) => format!("asks for approval: {}", one_line(&entry.gate.question.title)),
        None => remark(view),
    };
    let state = state(&view.task);
    let line = format!("{:width$}  {state:13}  {note}", name(&view.task));
    line.trim_end().to_owned()
}

/// How a plan stands, as a sentence: `release is active: 2 pending, 1 running`.
pub(crate) fn plan_sentence(view: &PlanView) -> String {
    let plan = &view.plan;
    let called = plan.name.as_deref().map_or_else(|| plan.id.to_string(), one_line);
    let tasks = of_states(plan);
    let tasks = if tasks.is_empty() { String::new() } else { format!(": {tasks}") };
    format!("{called} is {}{tasks}", status(plan))
}

fn tasks(all: &[TaskView], max: Option<usize>) -> String {
    let names: BTreeMap<TaskId, String> = all.iter().map(|view| (view.task.id, name(&view.task))).collect();
    let cells: Vec<Vec<String>> = in_order(all)
        .into_iter()
        .map(|(depth, view)| {
            let task = &view.task;
            let after = task
                .spec
                .depends_on
                .iter()
                .map(|on| names.get(on).cloned().unwrap_or_else(|| on.to_string()));
            vec![
                task.id.to_string(),
                state(task),
                after.collect::<Vec<String>>().join(", "),
                task.spec.agent.as_deref().map(one_line).unwrap_or_default(),
                format!("{}{}", "  ".repeat(depth), work(task)),
                remark(view),
            ]
        })
        .collect();
    table(&TASK, &cells, max)
}

/// What its plan calls it, or its id.
pub(super) fn name(task: &Task) -> String {
    task.spec.key.as_deref().map_or_else(|| task.id.to_string(), one_line)
}

fn work(task: &Task) -> String {
    let title = one_line(&task.spec.title);
    task.spec.key.as_deref().map_or_else(|| title.clone(), |key| format!("{}: {title}", one_line(key)))
}

/// Each task with how deep it stands, parts right below what they are a part of. A part of something that is not in the
/// plan stands at the top.
pub(super) fn in_order(all: &[TaskView]) -> Vec<(usize, &TaskView)> {
    let known: BTreeSet<TaskId> = all.iter().map(|view| view.task.id).collect();
    let mut below: BTreeMap<Option<TaskId>, Vec<&TaskView>> = BTreeMap::new();
    for view in all {
        let parent = view.task.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(view);
    }
    let mut placed = Vec::with_capacity(all.len());
    // The next to be placed is the last one here.
    let mut open: Vec<(usize, &TaskView)> = Vec::new();
    let mut next = below.remove(&None);
    let mut depth = 0;
    loop {
        open.extend(next.into_iter().flatten().rev().map(|view| (depth, view)));
        let Some((at, view)) = open.pop() else { return placed };
        placed.push((at, view));
        next = below.remove(&Some(view.task.id));
        depth = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_api::types::{PlanDetail, TaskCount};
    use lanyard_core::paper::{Handover, NewPlan, NewStep, Plan, PlanProgress, PlanStatus, StepKind, steps};

    use super::*;
    use crate::render::task::testing::{now, plan_id, task, then};

    fn row() -> PlanRow {
        PlanRow {
            id: plan_id(),
            name: Some("release".to_owned()),
            title: "Release 1.0".to_owned(),
            status: PlanStatus::Active,
            priority: Priority::High,
            workspace: "/srv/web".to_owned(),
            archived: false,
            created_at: then(),
            created_by: "operator".to_owned(),
            current_phase: None,
            current_agent: None,
            progress: PlanProgress { total: 3, tasks: 3, ..PlanProgress::default() },
            tasks: vec![
                TaskCount { state: TaskState::Running, tasks: 1 },
                TaskCount { state: TaskState::Pending, tasks: 2 },
            ],
        }
    }

    #[test]
    fn plans_are_listed_with_how_far_they_are() {
        let mut old = row();
        old.name = None;
        old.archived = true;
        old.status = PlanStatus::Completed;
        old.priority = Priority::Normal;
        old.tasks.clear();
        old.progress = PlanProgress { done: 2, total: 2, steps_done: 2, steps: 2, ..PlanProgress::default() };
        old.current_phase = Some("build".to_owned());
        old.current_agent = Some("Coordinator".to_owned());
        expect![[r"
            PLAN    NAME     STATUS               PRIORITY  DONE  PHASE  AGENT        TASKS                 MADE    TITLE
            000009  release  active               high      0/3                       2 pending, 1 running  3m ago  Release 1.0
            000009           completed, archived            2/2   build  Coordinator                        3m ago  Release 1.0
        "]].assert_eq(&plans(&[row(), old], now(), None));
    }

    #[test]
    fn a_plan_shows_its_tasks_with_parts_below_what_they_are_a_part_of() {
        let keyed = |id: u128, state, key: &str, title: &str| {
            let mut view = task(id, state, title);
            view.task.spec.key = Some(key.to_owned());
            view
        };
        let first = keyed(1, TaskState::Running, "api", "the API");
        let mut last = keyed(2, TaskState::Pending, "docs", "write it down");
        last.task.spec.depends_on = vec![first.task.id, TaskId::from_u128(99)];
        last.held = Some("waits for api".to_owned());
        let mut part = task(3, TaskState::Completed, "one route of it");
        part.task.parent = Some(first.task.id);
        part.task.spec.agent = Some("codex".to_owned());
        let mut foreign = task(4, TaskState::Failed, "a part of another plan's task");
        foreign.task.parent = Some(TaskId::from_u128(98));
        let view = PlanView {
            plan: row(),
            goal: Some("Everything\nfor the release".to_owned()),
            detail: PlanDetail::default(),
            all: vec![first, last, part, foreign],
            approvals: Vec::new(),
        };
        expect![[r"
            id           plan_00000000000000000000000009
            name         release
            title        Release 1.0
            goal         Everything for the release
            status       active
            priority     high
            workspace    /srv/web
            created      2026-11-15T08:00:00Z (3m ago) by operator
            done         0 of 3 tasks
            tasks        2 pending, 1 running

            TASK    STATE          AFTER                                 AGENT  WORK                           NOTE
            000001  [>] running                                                 api: the API
            000003  [x] completed                                        codex    one route of it
            000002  [ ] pending    api, task_00000000000000000000000033         docs: write it down            waits for api
            000004  [!] failed                                                  a part of another plan's task
        "]].assert_eq(&plan_card(&view, now(), None));
    }

    #[test]
    fn a_task_of_a_plan_is_one_line() {
        let keyed = |id: u128, state, key: &str| {
            let mut view = task(id, state, "work");
            view.task.spec.key = Some(key.to_owned());
            view
        };
        let mut waits = keyed(2, TaskState::Pending, "notes");
        waits.held = Some("waits for api".to_owned());
        let all = [keyed(1, TaskState::Running, "api"), waits, task(3, TaskState::Completed, "no key")];
        let lines: String = all.iter().map(|view| task_line(view, &all) + "\n").collect();
        expect![[r"
            api                              [>] running
            notes                            [ ] pending    waits for api
            task_00000000000000000000000003  [x] completed
        "]]
        .assert_eq(&lines);
    }

    #[test]
    fn a_plan_without_tasks_is_a_card_alone() {
        let row = PlanRow { tasks: Vec::new(), progress: PlanProgress::default(), ..row() };
        let view = PlanView {
            plan: row,
            goal: None,
            detail: PlanDetail::default(),
            all: Vec::new(),
            approvals: Vec::new(),
        };
        expect![[r"
            id           plan_00000000000000000000000009
            name         release
            title        Release 1.0
            status       active
            priority     high
            workspace    /srv/web
            created      2026-11-15T08:00:00Z (3m ago) by operator
        "]]
        .assert_eq(&plan_card(&view, now(), None));
    }

    /// FND-M4: a plan of agents shows its phases, steps and hand-offs.
    #[test]
    fn fnd_m4_a_plan_shows_the_steps_its_agents_keep() {
        let phases = vec!["design".to_owned(), "build".to_owned()];
        let new = NewPlan { title: "Checkout".to_owned(), phases, ..NewPlan::default() };
        let mut plan = Plan::new(plan_id(), new, "hub", then()).unwrap();
        plan.add_steps(vec![
            NewStep { task: "Draw the form".to_owned(), ..NewStep::default() },
            NewStep {
                task: "Test it".to_owned(),
                phase: Some("build".to_owned()),
                kind: StepKind::Test,
                notes: Some("two\ncards".to_owned()),
                acceptance: vec!["all green".to_owned(), "no warnings".to_owned()],
            },
        ])
        .unwrap();
        let hand = steps::Hand { session: None, name: "ann", now: then() };
        plan.complete_step(1, Some("a picture".to_owned()), &hand, |_| false).unwrap();
        plan.note("the bank is slow", "ann", then()).unwrap();
        let (from, to, reason) = ("Coordinator".to_owned(), "Executor".to_owned(), "go".to_owned());
        plan.hand_over(Handover { timestamp: then(), from, to, reason, notes: None, session: None }).unwrap();
        let view = PlanView {
            plan: PlanRow::of(&plan, "/srv/web", Vec::new()),
            goal: None,
            detail: PlanDetail::of(&plan),
            all: Vec::new(),
            approvals: Vec::new(),
        };
        expect![[r"
            id           plan_00000000000000000000000009
            title        Checkout
            status       draft
            priority     normal
            workspace    /srv/web
            created      2026-11-15T08:00:00Z (3m ago) by hub
            done         1 of 2 steps
            phases       design (1/1, current), build (0/1)
            agent        Executor
            handed off   Coordinator to Executor 3m ago: go
            note         the bank is slow (3m ago, by ann)

            STEP  STATE        PHASE   TYPE  TASK           ACCEPTANCE              NOTES      DONE BY
            1     [x] done     design  code  Draw the form                                     ann: a picture
            2     [ ] pending  build   test  Test it        all green; no warnings  two cards
        "]]
        .assert_eq(&plan_card(&view, now(), None));
    }
}
