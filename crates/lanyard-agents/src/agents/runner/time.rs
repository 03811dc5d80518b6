//! What time brings: a greeting that takes too long, a turn that took too long, a cancel nobody heeded.

use lanyard_core::session::{InterruptCause, Receipt, Signal};
use tokio::time::{Duration, Instant};

use super::Runner;
use super::course::GreetingStage;

/// When nothing is due, look again after this long.
const IDLE_LOOK: Duration = Duration::from_mins(1);

impl Runner {
    /// When something is due next.
    pub(super) fn next_wake(&self) -> Instant {
        let mut due: Vec<Instant> = vec![Instant::now() + IDLE_LOOK];
        due.extend(self.report_at);
        due.extend(self.console_rests_at());
        match self.course.stage() {
            GreetingStage::Greeting { until } => due.push(*until),
            GreetingStage::Settling { quiet_at, until, replayed, .. } => {
                due.push(if *replayed > 0 { *quiet_at } else { *until });
            }
            GreetingStage::Ready => {}
        }
        match &self.turn {
            Some(turn) => {
                if !turn.over {
                    due.extend(turn.deadline);
                    due.extend(turn.budget_at);
                    due.extend(turn.warn_at.filter(|_| !turn.warned));
                }
                let asked = turn.cancel.filter(|_| !self.course.is_ending() && !turn.clearing);
                due.extend(asked.map(|cancel| cancel.until));
            }
            None => due.extend(self.idle_until()),
        }
        due.into_iter().min().unwrap_or_else(Instant::now)
    }

    fn idle_until(&self) -> Option<Instant> {
        let kept = self.settings.keep_alive_ms;
        let resting = kept > 0 && self.course.takes_turns();
        resting.then(|| self.idle_since + Duration::from_millis(kept))
    }

    pub(super) async fn on_time(&mut self) {
        let now = Instant::now();
        if self.report_at.is_some_and(|at| at <= now) {
            self.report_safe().await;
        }
        self.look_at_greeting(now).await;
        self.look_at_console(now).await;
        if let Some(turn) = self.turn.as_ref().filter(|turn| !turn.over) {
            if turn.deadline.is_some_and(|at| at <= now) {
                self.timed_out().await;
            } else if turn.budget_at.is_some_and(|at| at <= now) {
                let budget = self.settings.budget.time_ms;
                let reason = format!("the turn's budget of {budget} ms is spent");
                self.cut_short(InterruptCause::Limit, reason).await;
            }
        }
        let late = self.turn.as_ref().and_then(|turn| turn.warn_at).is_some_and(|at| at <= now);
        self.warn_of_budget(late);
        let asked = self.turn.as_ref().filter(|turn| !turn.clearing).and_then(|turn| turn.cancel);
        let unheeded = asked.is_some_and(|cancel| cancel.until <= now);
        if unheeded && !self.course.is_ending() {
            self.end_run("the agent did not heed its own cancel").await;
        }
        if self.turn.is_none() && self.idle_until().is_some_and(|at| at <= now) {
            self.end_run("nobody asked anything of it for a while").await;
        }
    }

    async fn look_at_greeting(&mut self, now: Instant) {
        match self.course.stage() {
            GreetingStage::Greeting { until } if *until <= now && !self.course.is_ending() => {
                let waited = self.settings.handshake_timeout_ms;
                self.break_with("handshake_timeout", format!("it did not greet within {waited} ms"));
            }
            GreetingStage::Settling { readiness, replayed, quiet_at, until } => {
                let (readiness, replayed) = (readiness.clone(), *replayed);
                if replayed > 0 && (*quiet_at <= now || *until <= now) {
                    self.ready(&readiness, Some(replayed)).await;
                } else if *until <= now {
                    self.break_with(
                        "resume_lost",
                        "it says it took the conversation up again, and knows nothing of it".to_owned(),
                    );
                }
            }
            GreetingStage::Greeting { .. } | GreetingStage::Ready => {}
        }
    }

    async fn timed_out(&mut self) {
        let limit = self.settings.turn_timeout_ms;
        self.cut_short(InterruptCause::Timeout, format!("the turn took more than {limit} ms")).await;
        if self.settings.abort_on_timeout {
            self.end_run("the turn took too long, and the agent is set to be ended then").await;
        }
    }

    /// Ends the turn for the log, and asks the agent to come to rest. Its conversation is kept.
    pub(super) async fn cut_short(&mut self, cause: InterruptCause, reason: String) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.over) else { return };
        turn.over = true;
        self.report().await;
        // Not part of the output: told with a place in it, it would pass for something that was told before.
        self.shared
            .note(self.session, Signal::TurnLost { cause, reason: Some(reason), receipt: Receipt::default() })
            .await;
        self.cancel_turn(Duration::from_millis(self.settings.cancel_grace_ms));
    }
}
