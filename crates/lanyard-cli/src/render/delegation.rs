//! Where a session stands in its family: its level, who called whom, and its children.

use lanyard_api::types::{Child, Delegation, StackCaller};
use lanyard_core::Timestamp;
use lanyard_core::paper::Liveness;

use crate::render::card::Card;
use crate::render::table::{Column, table};
use crate::render::task::marked;
use crate::render::text::one_line;
use crate::render::time::ago;

const COLUMNS: [Column; 7] = [
    Column::whole("CHILD"),
    Column::elastic("AGENT", 5),
    Column::whole("STATE"),
    Column::whole("LIVENESS"),
    Column::whole("MADE"),
    Column::whole("TASK"),
    Column::whole("TASK STATE"),
];

/// `now` is the daemon's clock.
pub(crate) fn delegation(told: &Delegation, now: Timestamp, max: Option<usize>) -> String {
    let mut card = Card::default();
    card.line("session", told.session.to_string());
    card.line("level", told.level.to_string());
    let may = if told.can_delegate { "" } else { ", cannot delegate" };
    card.line("depth", format!("{} of {}{may}", told.depth, told.depth_limit));
    card.lines("call stack", told.call_stack.iter().enumerate().map(|(at, caller)| call(at, caller)));
    let mut text = card.done();
    if !told.children.is_empty() {
        let cells: Vec<Vec<String>> = told.children.iter().map(|child| cells(child, now)).collect();
        text.push('\n');
        text.push_str(&table(&COLUMNS, &cells, max));
    }
    text
}

/// Further in with each call.
fn call(at: usize, caller: &StackCaller) -> String {
    let agent = caller.agent.as_deref().map(|agent| format!("  {}", one_line(agent))).unwrap_or_default();
    let task = caller.task.map(|task| format!("  {task}")).unwrap_or_default();
    format!("{}{}{agent}{task}", "  ".repeat(at), caller.session)
}

fn cells(child: &Child, now: Timestamp) -> Vec<String> {
    let liveness = match child.liveness {
        Liveness::Live => "live",
        Liveness::Suspected => "suspected",
        Liveness::Orphaned => "orphaned",
        Liveness::Ended => "ended",
    };
    vec![
        child.session.to_string(),
        child.agent.as_deref().map(one_line).unwrap_or_default(),
        child.state.to_string(),
        liveness.to_owned(),
        ago(now, child.created_at),
        child.task.map(|task| task.to_string()).unwrap_or_default(),
        child.task_state.map(marked).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use lanyard_core::TaskId;
    use lanyard_core::session::StateName;
    use lanyard_core::task::TaskState;

    use super::*;
    use crate::render::task::testing::{now, session_id, then};

    #[test]
    fn a_session_shows_who_called_it_and_its_children() {
        let caller = |id: u128, agent: Option<&str>| StackCaller {
            session: session_id(id),
            agent: agent.map(str::to_owned),
            task: None,
        };
        let child = |id: u128, liveness| Child {
            session: session_id(id),
            agent: Some("codex".to_owned()),
            created_at: then(),
            state: StateName::Executing,
            task: Some(TaskId::from_u128(id)),
            task_state: Some(TaskState::Running),
            liveness,
        };
        let told = Delegation {
            session: session_id(2),
            level: 2,
            depth: 2,
            depth_limit: 3,
            can_delegate: false,
            call_stack: vec![caller(1, None), caller(2, Some("architect"))],
            children: vec![child(3, Liveness::Live), child(4, Liveness::Orphaned)],
            truncated: false,
        };
        expect![[r"
            session      sess_00000000000000000000000002
            level        2
            depth        2 of 3, cannot delegate
            call stack   sess_00000000000000000000000001
                           sess_00000000000000000000000002  architect

            CHILD   AGENT  STATE      LIVENESS  MADE    TASK    TASK STATE
            000003  codex  executing  live      3m ago  000003  [>] running
            000004  codex  executing  orphaned  3m ago  000004  [>] running
        "]]
        .assert_eq(&delegation(&told, now(), None));
    }
}
