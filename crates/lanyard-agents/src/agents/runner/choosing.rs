//! The model, mode and effort of turns, and prompts that are held back until the agent has agreed to them.

use lanyard_core::TurnId;
use lanyard_core::session::Session;

use super::Runner;

impl Runner {
    /// Tells the driver what the session wants now: the choice of its running turn over its own. The driver knows that of the
    /// agent's settings.
    pub(super) fn choose(&mut self, key: &str, session: &Session) {
        let wanted = session.wanted_choice();
        self.say(|driver, out| driver.choose(key, &wanted, out));
    }

    /// After a turn with a choice of its own the session's is back.
    pub(super) async fn choose_own(&mut self) {
        if !std::mem::take(&mut self.chosen_for_turn) {
            return;
        }
        if let Some(session) = self.shared.session(self.session).await {
            self.choose(&format!("after-{}", session.seq), &session);
        }
    }

    /// The agent has the prompt, unless the driver holds it back.
    pub(super) async fn given(&mut self, turn: TurnId, told: Option<Box<Session>>) {
        self.undelivered = Some((turn, told));
        self.give_held().await;
    }

    /// Notes that a prompt which was held back is with the agent. One whose turn ended before never is.
    pub(super) async fn give_held(&mut self) {
        let Some((turn, _)) = &self.undelivered else { return };
        if self.turn.as_ref().is_none_or(|running| running.id != *turn || running.over) {
            self.undelivered = None;
        } else if !self.driver.holds_prompt()
            && let Some((turn, told)) = self.undelivered.take()
        {
            self.handed_over(turn, told.as_deref()).await;
        }
    }

    /// Whether a prompt is a command of the agent's own, before which no other words may go.
    pub(super) async fn is_command(&self, session: &Session, prompt: &str) -> bool {
        prompt.starts_with('/') && self.shared.offer(session).await.is_command(prompt)
    }
}
