//! Workers: who works at what, and how they do.

use lanyard_api::types::WorkerRow;
use lanyard_core::Timestamp;

use crate::render::table::{Column, table};
use crate::render::task::marked;
use crate::render::text::one_line;
use crate::render::time::ago;

const COLUMNS: [Column; 9] = [
    Column::whole("WORKER"),
    Column::whole("KIND"),
    Column::elastic("AGENT", 5),
    Column::elastic("HEALTH", 12),
    Column::whole("RUN"),
    Column::whole("ACTIVE"),
    Column::whole("TASK"),
    Column::whole("STATE"),
    Column::elastic("TITLE", 12),
];

/// Workers as a table. `now` is the daemon's clock.
pub(crate) fn workers(workers: &[WorkerRow], now: Timestamp, max: Option<usize>) -> String {
    let cells: Vec<Vec<String>> = workers
        .iter()
        .map(|row| {
            vec![
                row.worker.to_string(),
                row.kind.as_str().to_owned(),
                row.agent.as_deref().map(one_line).unwrap_or_default(),
                health(row),
                run(row),
                row.last_activity_at.map(|at| ago(now, at)).unwrap_or_default(),
                row.task.to_string(),
                marked(row.task_state),
                one_line(&row.title),
            ]
        })
        .collect();
    table(&COLUMNS, &cells, max)
}

fn health(row: &WorkerRow) -> String {
    let mut parts: Vec<String> =
        row.condition.map(|condition| condition.as_str().replace('_', " ")).into_iter().collect();
    for (times, word) in [(row.remedies.nudges, "nudged"), (row.remedies.restarts, "restarted")] {
        match times {
            0 => {}
            1 => parts.push(word.to_owned()),
            times => parts.push(format!("{word} {times} times")),
        }
    }
    if row.remedies.escalations > 0 {
        parts.push("waits for approval".to_owned());
    }
    parts.join(", ")
}

fn run(row: &WorkerRow) -> String {
    match (row.run, row.live) {
        (0, _) => String::new(),
        (number, true) => format!("{number}, live"),
        (number, false) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::TaskId;
    use lanyard_core::task::health::Condition;
    use lanyard_core::task::{Remedies, TaskState, WorkerKind, WorkerSource};

    use super::*;
    use crate::render::task::testing::{now, then, worker_id};

    fn row(id: u128) -> WorkerRow {
        WorkerRow {
            worker: worker_id(id),
            source: WorkerSource::Generated,
            kind: WorkerKind::Background,
            agent: Some("codex".to_owned()),
            task: TaskId::from_u128(id),
            title: "fix the login test".to_owned(),
            task_state: TaskState::Running,
            plan: None,
            session: None,
            session_state: None,
            run: 3,
            process: None,
            live: true,
            condition: Some(Condition::Well),
            remedies: Remedies::default(),
            last_activity_at: Some(then()),
        }
    }

    #[test]
    fn workers_are_listed_with_how_they_do_and_what_was_done_about_it() {
        let mut sick = row(2);
        sick.condition = Some(Condition::ErrorStreak);
        sick.remedies = Remedies { nudges: 2, restarts: 1, escalations: 1, last_at: None };
        sick.live = false;
        let mut new = row(3);
        new.kind = WorkerKind::External;
        new.agent = None;
        new.condition = None;
        new.run = 0;
        new.last_activity_at = None;
        new.task_state = TaskState::Deploying;
        expect![[r"
            WORKER  KIND        AGENT  HEALTH                                                       RUN      ACTIVE  TASK    STATE          TITLE
            000001  background  codex  well                                                         3, live  3m ago  000001  [>] running    fix the login test
            000002  background  codex  error streak, nudged 2 times, restarted, waits for approval  3        3m ago  000002  [>] running    fix the login test
            000003  external                                                                                         000003  [+] deploying  fix the login test
        "]].assert_eq(&workers(&[row(1), sick, new], now(), None));
    }
}
