//! How a session is named and described in one line, in listings, trees and questions.

use std::fmt::Write as _;

use lanyard_core::Timestamp;
use lanyard_core::journal::Row;
use lanyard_core::session::{Attention, InterruptCause, StateName, Status};

use crate::render::table::{Column, table};
use crate::render::text::{one_line, quoted};
use crate::render::time::ago;

/// The state with what qualifies it: `interrupted (crash)`, `executing, stopping`.
pub(crate) fn state(name: StateName, cause: Option<InterruptCause>, status: Status) -> String {
    let mut text = name.to_string();
    if let Some(cause) = cause {
        text = format!("{text} ({})", cause.as_str());
    }
    match status {
        Status::Stopping => text + ", stopping",
        Status::Active | Status::Stopped | Status::Completed => text,
    }
}

fn state_of(row: &Row) -> String {
    let mut text = state(row.state, row.cause, row.status);
    if row.archived {
        text.push_str(", archived");
    }
    if let Some(until) = row.pending.limit_until {
        // Writing to a string cannot fail.
        let _ = write!(text, ", limit until {until}");
    }
    // A stop shows in the state already.
    for reason in row.attention.iter().filter(|reason| **reason != Attention::Stopping) {
        text.push_str(match reason {
            Attention::Gate => ", approval",
            Attention::SuspectedOrphan => ", silent",
            Attention::LimitReached => ", limit reached",
            Attention::Uncertain => ", uncertain",
            Attention::AgentCrashed => ", agent crashed",
            Attention::TurnFailed => ", turn failed",
            Attention::TurnRefused => ", turn refused",
            Attention::TurnFinished => ", unread",
            Attention::InboxPaused => ", paused",
            Attention::Guidance => ", words wait",
            Attention::Failed | Attention::Stopping => "",
        });
    }
    text
}

/// The line of a session in a tree.
pub(crate) fn line(row: &Row, now: Timestamp) -> String {
    let mut text = format!("{}  {} ({})", row.id, row.operator_state.label(), state_of(row));
    if let Some(agent) = &row.agent {
        text.push_str("  ");
        text.push_str(&one_line(agent));
    }
    if let Some(title) = &row.title {
        text.push_str("  ");
        text.push_str(&quoted(title));
    }
    text.push_str("  ");
    text.push_str(&ago(now, row.last_activity_at));
    text
}

/// What `lanyard ls` shows: sessions, and the branches of their own worktrees.
pub(crate) fn listing(rows: &[(Row, Option<String>)], now: Timestamp, max: Option<usize>) -> String {
    const COLUMNS: [Column; 8] = [
        Column::whole("ID"),
        Column::whole("STATE"),
        Column::elastic("DETAIL", 8),
        Column::elastic("AGENT", 5),
        Column::whole("TURNS"),
        Column::whole("ACTIVE"),
        Column::elastic("BRANCH", 8),
        Column::elastic("TITLE", 5),
    ];
    let optional = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|(row, branch)| {
            vec![
                row.id.to_string(),
                row.operator_state.label().to_owned(),
                state_of(row),
                optional(&row.agent),
                row.turns.to_string(),
                ago(now, row.last_activity_at),
                optional(branch),
                optional(&row.title),
            ]
        })
        .collect();
    table(&COLUMNS, &cells, max)
}

#[cfg(test)]
pub(crate) mod testing {
    use lanyard_core::session::{Lifecycle, OperatorState, Pending};
    use lanyard_core::{MemoryMode, SessionId};

    use super::{Row, StateName, Status, Timestamp};

    /// A row whose id ends in `n`.
    pub(crate) fn row(n: u128, parent: Option<u128>, title: &str) -> Row {
        let at = Timestamp::from_millis(1_794_729_600_000);
        Row {
            id: SessionId::from_u128(n),
            title: Some(title.to_owned()).filter(|title| !title.is_empty()),
            agent: None,
            owner: "operator".to_owned(),
            source: "cli".to_owned(),
            driven_by: None,
            workspace: None,
            plan: None,
            parent: parent.map(SessionId::from_u128),
            state: StateName::Idle,
            cause: None,
            status: Status::Active,
            lifecycle: Lifecycle::Idle,
            operator_state: OperatorState::Idle,
            unread: false,
            level: 1,
            memory_mode: MemoryMode::SessionOnly,
            archived: false,
            turns: 2,
            since: at,
            created_at: at,
            last_activity_at: at,
            pending: Pending::default(),
            attention: Vec::new(),
            last_seq: 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::testing::row;
    use super::*;

    #[test]
    fn a_listing_tells_state_and_time_in_words() {
        let mut crashed = row(1, None, "fix the\nlogin test");
        crashed.state = StateName::Interrupted;
        crashed.cause = Some(InterruptCause::Crash);
        crashed.archived = true;
        let mut stopping = row(2, None, "");
        stopping.state = StateName::Executing;
        stopping.status = Status::Stopping;
        stopping.agent = Some("opencode".to_owned());
        let now = Timestamp::from_millis(1_794_729_600_000 + 200_000);
        expect![[r"
            ID      STATE  DETAIL                         AGENT     TURNS  ACTIVE  TITLE
            000001  idle   interrupted (crash), archived            2      3m ago  fix the login test
            000002  idle   executing, stopping            opencode  2      3m ago
        "]]
        .assert_eq(&listing(&[(crashed, None), (stopping, None)], now, None));
    }
}
