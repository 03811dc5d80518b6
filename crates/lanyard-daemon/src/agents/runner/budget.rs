//! Telling people in time that a turn comes near to what it may use.

use lanyard_core::notification::{NewNotification, NotificationKind, Severity};

use super::Runner;

/// So many fifths of a budget are most of it.
const FIFTHS: u64 = 4;

/// The part of a budget at which people are told; nothing of one without limit.
pub(super) const fn most_of(limit: u64) -> u64 {
    // Divided first: no limit is too large for it.
    limit / 5 * FIFTHS + limit % 5 * FIFTHS / 5
}

fn nearly(limit: u64, used: u64) -> bool {
    limit > 0 && used >= most_of(limit).max(1)
}

impl Runner {
    /// Once in a turn; `late` when most of its time is spent.
    pub(super) fn warn_of_budget(&mut self, late: bool) {
        let budget = self.settings.budget;
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.over && !turn.warned) else { return };
        let what = if nearly(budget.tool_calls, turn.tool_calls) {
            format!("{} of {} tool calls", turn.tool_calls, budget.tool_calls)
        } else if nearly(budget.tokens, turn.tokens) {
            format!("{} of {} tokens", turn.tokens, budget.tokens)
        } else if late {
            format!("{} of {} ms", most_of(budget.time_ms), budget.time_ms)
        } else {
            return;
        };
        turn.warned = true;
        let (session, turn) = (self.session, turn.id);
        let new = NewNotification {
            kind: NotificationKind::BudgetWarning,
            severity: Severity::Warning,
            key: format!("budget-warning:{turn}"),
            title: "A turn has used most of what it may use".to_owned(),
            text: format!("{what}. Look with `lanyard show {session}`; it is ended when all is spent."),
            session: Some(session),
            subject: Some(turn.to_string()),
            // It tells of a moment: what comes of it is told by itself.
            lasts: false,
        };
        let notifications = self.shared.notifications.clone();
        tokio::spawn(async move {
            if let Err(error) = notifications.aside(move |all| all.raise(new)).await {
                tracing::warn!(%session, %error, "people could not be told of a budget");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{most_of, nearly};

    #[test]
    fn most_of_a_budget_is_four_fifths_of_it() {
        assert_eq!([0, 1, 5, 10, 9, u64::MAX].map(most_of), [0, 0, 4, 8, 7, 14_757_395_258_967_641_292]);
        assert!(!nearly(0, 1_000) && !nearly(10, 7) && nearly(10, 8) && nearly(1, 1) && !nearly(1, 0));
    }
}
