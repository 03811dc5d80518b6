//! A plan as it is watched on a terminal: a line about the whole, and a row for each task.

use std::fmt::Write as _;

use lanyard_api::types::{PlanView, TaskView};

use crate::render::ids::short_id;
use crate::render::plan::{in_order, name, plan_sentence};
use crate::render::table::{Column, table};
use crate::render::task::{remark, state};
use crate::render::text::{count, one_line};

const BOARD: [Column; 5] = [
    Column::elastic("TASK", 10),
    Column::whole("STATE"),
    Column::elastic("WORKER", 8),
    Column::elastic("NOTE", 16),
    Column::elastic("ASKS", 12),
];
/// Lines of the board that are no task: the sentence, the head of the table, what was left out.
const OTHER_LINES: usize = 3;

/// At most `rows` lines. Tasks that have no room are counted.
pub(crate) fn plan_board(view: &PlanView, max: Option<usize>, rows: usize) -> String {
    let all = in_order(&view.all);
    let room = rows.saturating_sub(OTHER_LINES).max(1);
    let left = all.len().saturating_sub(room);
    let cells: Vec<Vec<String>> = all.iter().take(room).map(|(depth, view)| row(*depth, view)).collect();
    let mut text = format!("{}\n{}", plan_sentence(view), table(&BOARD, &cells, max));
    if left > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "and {}", count(left, "more task"));
    }
    text
}

fn row(depth: usize, view: &TaskView) -> Vec<String> {
    let task = &view.task;
    let agent = task.spec.agent.as_deref().map(one_line);
    let worker = task.worker.map(|worker| short_id(&worker.to_string()).to_owned());
    let asks = view.approvals.first().map(|entry| one_line(&entry.gate.question.title));
    vec![
        format!("{}{}", "  ".repeat(depth), name(task)),
        state(task),
        agent.into_iter().chain(worker).collect::<Vec<_>>().join(" "),
        remark(view),
        asks.unwrap_or_default(),
    ]
}
