//! How a task is named and described in one line, in listings and in notes.

use lanyard_api::types::TaskView;
use lanyard_core::Timestamp;
use lanyard_core::task::health::Condition;
use lanyard_core::task::{Task, TaskEnding, TaskState, WorkerSource};

use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};
use crate::render::time::ago;

/// A short mark in front of the state, so that a column of them can be read at a glance and without colour.
pub(crate) const fn mark(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "[ ]",
        TaskState::Deploying => "[+]",
        TaskState::Running => "[>]",
        TaskState::Paused => "[=]",
        TaskState::Interrupted => "[?]",
        TaskState::Completed => "[x]",
        TaskState::Failed => "[!]",
        TaskState::Cancelled => "[-]",
    }
}

/// The state with its mark.
pub(crate) fn marked(state: TaskState) -> String {
    format!("{} {state}", mark(state))
}

/// The state with its mark and what qualifies it: `[>] running, being cancelled`.
pub(crate) fn state(task: &Task) -> String {
    let ending = match &task.ending {
        None => "",
        Some(TaskEnding::Complete) => ", being completed",
        Some(TaskEnding::Fail) => ", being failed",
        Some(TaskEnding::Cancel { now: false }) => ", being cancelled",
        Some(TaskEnding::Cancel { now: true }) => ", being cancelled at once",
    };
    format!("{}{ending}", marked(task.state))
}

/// How a worker does, in words; nothing when it does well.
pub(crate) const fn trouble(condition: Condition) -> Option<&'static str> {
    match condition {
        Condition::Well => None,
        Condition::Idle => Some("idle: between turns, and nothing comes"),
        Condition::Stuck => Some("stuck: in a turn, and nothing comes"),
        Condition::Looping => Some("looping: the same call again and again"),
        Condition::ErrorStreak => Some("errors in a row"),
        Condition::RateLimited => Some("rate limited by its model's provider"),
    }
}

/// Where its worker's id came from.
pub(crate) const fn source(source: WorkerSource) -> &'static str {
    match source {
        WorkerSource::Reused => "id reused",
        WorkerSource::Session => "id of its session",
        WorkerSource::Generated => "id generated",
    }
}

/// What a person should know of it beside its state: what holds it, what is wrong, what came of it.
pub(crate) fn remark(view: &TaskView) -> String {
    let task = &view.task;
    if let Some(held) = view.held.as_deref().filter(|_| task.state == TaskState::Pending) {
        return one_line(held);
    }
    if let Some(entry) = view.approvals.first() {
        let title = one_line(&entry.gate.question.title);
        return format!("asks for approval: {title}; `lanyard answer {} allow` or `deny`", entry.gate.id);
    }
    if let Some(trouble) = view.condition.filter(|_| !task.state.is_ended()).and_then(trouble) {
        return trouble.to_owned();
    }
    let result = task.result.as_ref().map(|result| result.summary.as_str());
    match task.state {
        TaskState::Completed => result.or(task.reason.as_deref()),
        TaskState::Pending
        | TaskState::Deploying
        | TaskState::Running
        | TaskState::Paused
        | TaskState::Interrupted
        | TaskState::Failed
        | TaskState::Cancelled => task.reason.as_deref().or(result),
    }
    .map(one_line)
    .unwrap_or_default()
}

/// How it stands, as a sentence: `task_… is pending: waits for api`.
pub(crate) fn sentence(view: &TaskView) -> String {
    let remark = remark(view);
    let why = if remark.is_empty() { String::new() } else { format!(": {remark}") };
    let ending = if view.task.ending.is_some() { " and about to end" } else { "" };
    format!("{} is {}{ending}{why}", view.task.id, view.task.state)
}

/// `2 running, 1 failed`: how many are in which state, in the order of a task's life.
pub(crate) fn counts(counts: &[(TaskState, u64)]) -> String {
    let parts = TaskState::ALL.into_iter().filter_map(|state| {
        let tasks: u64 = counts.iter().filter(|(of, _)| *of == state).map(|(_, tasks)| tasks).sum();
        (tasks > 0).then(|| format!("{tasks} {state}"))
    });
    parts.collect::<Vec<String>>().join(", ")
}

const COLUMNS: [Column; 8] = [
    Column::whole("TASK"),
    Column::whole("STATE"),
    Column::elastic("KEY", 5),
    Column::elastic("AGENT", 5),
    Column::whole("SINCE"),
    Column::whole("WAITING"),
    Column::elastic("TITLE", 12),
    Column::elastic("NOTE", 16),
];

/// The tasks as a table. `now` is the daemon's clock.
pub(crate) fn listing(tasks: &[TaskView], now: Timestamp, max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = tasks.iter().map(|view| cells(view, now)).collect();
    table(&COLUMNS, &cells, max)
}

fn cells(view: &TaskView, now: Timestamp) -> Vec<String> {
    let task = &view.task;
    vec![
        task.id.to_string(),
        state(task),
        task.spec.key.as_deref().map(one_line).unwrap_or_default(),
        task.spec.agent.as_deref().map(one_line).unwrap_or_default(),
        ago(now, task.since),
        waiting(view),
        one_line(&task.spec.title),
        remark(view),
    ]
}

/// What is open around it.
pub(crate) fn waiting(view: &TaskView) -> String {
    let children = (view.open_children > 0).then(|| {
        if view.open_children == 1 {
            "1 child".to_owned()
        } else {
            format!("{} children", view.open_children)
        }
    });
    let mail = (view.mail > 0).then(|| format!("{} of mail", count(view.mail, "piece")));
    children.into_iter().chain(mail).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
pub(crate) mod testing {
    use lanyard_core::Record as _;
    use lanyard_core::task::{TaskCreated, TaskEnvelope, TaskEvent, TaskSpec};
    use lanyard_core::{Actor, PlanId, SessionId, TaskId, WorkerId};

    use super::*;

    /// The daemon's clock in the tests: three minutes after everything happened.
    pub(crate) fn now() -> Timestamp {
        Timestamp::from_millis(1_794_729_600_000 + 200_000)
    }

    pub(crate) fn then() -> Timestamp {
        Timestamp::from_millis(1_794_729_600_000)
    }

    /// A task with its title as its prompt, in a state it was put into by hand.
    pub(crate) fn task(id: u128, state: TaskState, title: &str) -> TaskView {
        let spec = TaskSpec { title: title.to_owned(), prompt: title.to_owned(), ..TaskSpec::default() };
        let created = TaskCreated {
            plan: None,
            parent: None,
            reports_to: None,
            workspace: Some("/srv/web".to_owned()),
            created_in: None,
            aliases: Vec::new(),
            spec,
        };
        let envelope = TaskEnvelope {
            task: TaskId::from_u128(id),
            seq: 1,
            at: then(),
            actor: Actor::operator("operator"),
            event: TaskEvent::Created(Box::new(created)),
        };
        let mut task = lanyard_core::task::Task::born(&envelope).unwrap();
        task.state = state;
        let uri = task.uri();
        TaskView { task, uri, held: None, condition: None, open_children: 0, mail: 0, approvals: Vec::new() }
    }

    pub(crate) fn plan_id() -> PlanId {
        PlanId::from_u128(9)
    }

    pub(crate) fn worker_id(id: u128) -> WorkerId {
        WorkerId::from_u128(id)
    }

    pub(crate) fn session_id(id: u128) -> SessionId {
        SessionId::from_u128(id)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::task::TaskResult;

    use super::testing::{now, task};
    use super::*;

    #[test]
    fn every_state_has_a_mark_of_its_own() {
        let marks: std::collections::BTreeSet<&str> = TaskState::ALL.into_iter().map(mark).collect();
        assert_eq!(marks.len(), TaskState::ALL.len());
    }

    #[test]
    fn a_listing_says_what_holds_a_task_what_is_wrong_and_what_came_of_it() {
        let mut held = task(1, TaskState::Pending, "write the\u{1b}[31m notes");
        held.held = Some("waits for task_2".to_owned());
        held.task.spec.key = Some("notes".to_owned());
        let mut stuck = task(2, TaskState::Running, "fix the login test");
        stuck.condition = Some(Condition::Stuck);
        stuck.task.ending = Some(TaskEnding::Cancel { now: false });
        stuck.task.spec.agent = Some("codex".to_owned());
        stuck.open_children = 2;
        stuck.mail = 1;
        let mut done = task(3, TaskState::Completed, "review");
        done.task.result = Some(TaskResult {
            summary: "two remarks,\nboth small".to_owned(),
            evidence: None,
            by_turn_end: true,
        });
        let mut failed = task(4, TaskState::Failed, "deploy");
        failed.task.reason = Some("the agent crashed".to_owned());
        expect![[r"
            TASK    STATE                         KEY    AGENT  SINCE   WAITING                      TITLE                 NOTE
            000001  [ ] pending                   notes         3m ago                               write the�[31m notes  waits for task_2
            000002  [>] running, being cancelled         codex  3m ago  2 children, 1 piece of mail  fix the login test    stuck: in a turn, and nothing comes
            000003  [x] completed                               3m ago                               review                two remarks, both small
            000004  [!] failed                                  3m ago                               deploy                the agent crashed
        "]]
        .assert_eq(&listing(&[held, stuck, done, failed], now(), None));
    }

    #[test]
    fn a_task_stands_in_a_sentence() {
        let mut view = task(1, TaskState::Pending, "x");
        assert_eq!(sentence(&view), "task_00000000000000000000000001 is pending");
        view.held = Some("its plan is draft".to_owned());
        assert_eq!(sentence(&view), "task_00000000000000000000000001 is pending: its plan is draft");
        view.task.state = TaskState::Running;
        view.task.ending = Some(TaskEnding::Complete);
        assert_eq!(sentence(&view), "task_00000000000000000000000001 is running and about to end");
    }

    #[test]
    fn counts_come_in_the_order_of_a_tasks_life() {
        let given = [(TaskState::Failed, 1), (TaskState::Pending, 3), (TaskState::Running, 0)];
        assert_eq!(counts(&given), "3 pending, 1 failed");
    }
}
