//! Telling people in time that a turn comes near to what it may use.

use lanyard_core::notification::{NewNotification, NotificationKind, Severity};
use lanyard_core::session::InterruptCause;

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
    /// Whether the turn has written more than it may.
    pub(super) fn measure_output(&mut self) {
        let limit = self.settings.budget.output_bytes;
        let written = self.position + self.unread.len() as u64;
        let turn = self.turn.as_ref().filter(|turn| !turn.over);
        if limit > 0 && turn.is_some_and(|turn| written.saturating_sub(turn.from) > limit) {
            self.flood = Some(0);
        }
    }

    /// Ends a turn that writes without end, and the run with it: an agent that floods heeds nothing in time. What it
    /// writes from here on is dropped, and the end of the run says how much that was.
    pub(super) async fn stem_flood(&mut self) {
        if self.flood.is_none() || self.course.is_ending() {
            return;
        }
        let limit = self.settings.budget.output_bytes;
        let reason = format!("output_limit: the turn wrote more than {limit} bytes; what follows is dropped");
        self.cut_short(InterruptCause::Limit, reason).await;
        self.end_run("output_limit: it wrote more than a turn may write").await;
    }

    /// What the end of the run says of output that was dropped.
    pub(super) fn dropped(&self) -> String {
        match self.flood {
            None => String::new(),
            Some(bytes) => format!("; {bytes} bytes of its output were dropped"),
        }
    }

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
        let (session, turn) = (self.session, turn.of);
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
        self.shared.engine.notify(new);
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
