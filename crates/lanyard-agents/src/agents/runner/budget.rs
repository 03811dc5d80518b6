//! What a turn uses: people are told in time, and a turn that has used too much is cut off.
//!
//! Cost is only known when the agent reports it, and each report is measured. Its own budget is counted here; those of its
//! session, its family and the day are asked of the engine once the report is on disk.

use lanyard_core::budget::{Dollars, is_near, warn_at};
use lanyard_core::notification::{NewNotification, NotificationKind, Severity};
use lanyard_core::session::InterruptCause;
use lanyard_core::text::dollars;

use super::Runner;
use crate::agents::driver::Action;

/// What one signal adds to the use of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TurnUse {
    pub(super) tool_calls: u64,
    pub(super) tokens: u64,
    /// Millionths of a dollar.
    pub(super) cost: u64,
}

impl Runner {
    /// Adds to what the turn has used, and cuts it off when that is too much.
    pub(super) async fn measure(&mut self, used: TurnUse) {
        self.unmeasured |= used.cost > 0;
        if let Some(reason) = self.overspent(used) {
            self.cut_short(InterruptCause::Limit, reason).await;
        }
        self.warn_of_budget(false);
    }

    /// Compares what was reported with the budgets of the session, its family and the day. A turn that has ended with the
    /// report is not cut off any more.
    pub(super) async fn compare_budgets(&mut self) {
        self.unmeasured = false;
        // The engine's sums have what the log has.
        self.report().await;
        let spent = self.shared.engine.budget_spent(self.session).await;
        if let Some(line) = spent.filter(|_| !self.is_finishing()) {
            self.cut_short(InterruptCause::Limit, format!("budget_spent: {line}")).await;
        }
    }

    /// The agent has said that its turn is over, and what it cost with it: there is nothing to cut off.
    fn is_finishing(&self) -> bool {
        self.actions.iter().any(|(_, action)| matches!(action, Action::Finished { native: None, .. }))
    }

    /// Adds to what the turn has used, and says so when that is too much.
    fn overspent(&mut self, used: TurnUse) -> Option<String> {
        let (budget, cost_max) = (self.settings.budget, self.cost_max());
        let finishing = self.is_finishing();
        let turn = self.turn.as_mut().filter(|turn| !turn.over)?;
        turn.tool_calls += used.tool_calls;
        turn.tokens = turn.tokens.saturating_add(used.tokens);
        turn.cost = turn.cost.saturating_add(used.cost);
        let over = |limit: u64, used: u64| limit > 0 && used > limit;
        if over(budget.tool_calls, turn.tool_calls) {
            Some(format!("the turn's budget of {} tool calls is spent", budget.tool_calls))
        } else if over(budget.tokens, turn.tokens) {
            Some(format!("the turn's budget of {} tokens is spent", budget.tokens))
        } else if !cost_max.is_zero() && turn.cost >= cost_max.micros() && !finishing {
            Some(format!("budget_spent: the turn's budget of {cost_max} is spent: {}", dollars(turn.cost)))
        } else {
            None
        }
    }

    /// What a turn of this agent may cost.
    fn cost_max(&self) -> Dollars {
        self.shared.settings.rules().budgets.of_turn(self.settings.budget.cost_usd)
    }

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
        let (budget, cost_max) = (self.settings.budget, self.cost_max());
        let percent = self.shared.settings.rules().budgets.warn_percent;
        let nearly = |limit: u64, used: u64| is_near(limit, used, percent);
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.over && !turn.warned) else { return };
        let what = if nearly(budget.tool_calls, turn.tool_calls) {
            format!("{} of {} tool calls", turn.tool_calls, budget.tool_calls)
        } else if nearly(budget.tokens, turn.tokens) {
            format!("{} of {} tokens", turn.tokens, budget.tokens)
        } else if nearly(cost_max.micros(), turn.cost) {
            format!("{} of {cost_max}", dollars(turn.cost))
        } else if late {
            format!("{} of {} ms", warn_at(budget.time_ms, percent), budget.time_ms)
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
