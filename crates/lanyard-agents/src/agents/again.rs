//! Going on by itself after a crash: a policy, off unless the agent's settings say otherwise, and only for a turn that
//! the crash cut off. One that was itself begun so is not begun again: an agent that dies each time comes to rest.

use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::session::{ActiveTurn, Command};
use lanyard_core::{Actor, RunId, SessionId, TurnId};

use crate::agents::shared::{Shared, once};

/// What the client's id of such a turn begins with.
const MARK: &str = "auto-resume:";

/// Begins a new turn in place of the one that was lost, if the policy says so.
pub(super) async fn auto_resume(
    shared: &Shared,
    settings: &AgentSettings,
    session: SessionId,
    run: RunId,
    lost: &ActiveTurn,
) {
    let was_again = lost.client_turn_id.as_ref().is_some_and(|id| id.starts_with(MARK));
    if !settings.auto_resume || lost.cancel_requested || was_again {
        return;
    }
    let command = Command::StartTurn {
        turn: TurnId::mint(shared.clock.now(), shared.clock.random()),
        client_turn_id: Some(format!("{MARK}{}", lost.id)),
        prompt: settings.auto_resume_prompt.clone(),
    };
    let once = Some(once(run, "auto-resume"));
    match shared.command(session, command, Actor::system("auto-resume"), once).await {
        Ok(_) => tracing::info!(%session, lost = %lost.id, "goes on by itself after a crash"),
        Err(error) => tracing::warn!(%session, %error, "could not go on by itself after a crash"),
    }
}
