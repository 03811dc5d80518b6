//! What a session's agent cannot do: for clients, which disable it, and for requests, which are refused with the same words.

use std::sync::Arc;

use axum::http::StatusCode;
use lanyard_agents::agents::roster::CheckOutcome;
use lanyard_core::Session;
use lanyard_core::session::{
    AgentAbility, AgentLack, AgentOffer, AgentTraits, Delivery, DrivenBy, Message, PromptPart, lack_of, lacks,
};

use crate::api::App;
use crate::api::choices::offer_of;
use crate::api::context::on_disk;
use crate::problem::Problem;

/// Sessions above a subagent that are looked at for the one whose agent runs it.
const ABOVE_MAX: usize = 32;

/// All of it, by what is known of the agent.
pub(super) async fn of(
    app: &Arc<App>,
    session: &Session,
    offer: Option<&AgentOffer>,
) -> Result<Vec<AgentLack>, Problem> {
    let above = match session.driver() {
        DrivenBy::Parent => above(app, session).await?,
        DrivenBy::Lanyard | DrivenBy::Host | DrivenBy::Nobody => None,
    };
    let settings = above.as_deref().and_then(|agent| app.agents.settings(agent));
    let subagents = settings.map(|settings| settings.subagents()).unwrap_or_default();
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    let checked = match app.agents.checked(agent) {
        Some(CheckOutcome::Works { capabilities, .. }) => Some(capabilities),
        Some(CheckOutcome::Fails { .. }) | None => None,
    };
    Ok(lacks(session, &AgentTraits { checked, offer, above: above.as_deref(), subagents }))
}

/// Refuses what the session's agent cannot do.
pub(super) async fn admit(app: &Arc<App>, session: &Session, what: AgentAbility) -> Result<(), Problem> {
    let offer = offer_of(app, session).await?;
    match lack_of(&of(app, session, offer.as_ref()).await?, what) {
        Some(lack) => Err(refused(lack)),
        None => Ok(()),
    }
}

/// What becomes of a message in another way than it was sent, because the agent cannot take it so.
pub(super) async fn warnings(
    app: &Arc<App>,
    session: &Session,
    message: &Message,
) -> Result<Vec<String>, Problem> {
    let shows = message.parts.iter().any(|part| matches!(part, PromptPart::Image(_)));
    let steers = message.delivery == Delivery::Steer && session.turn.is_some();
    let wanted = [(shows, AgentAbility::Images), (steers, AgentAbility::Steer)];
    if !wanted.iter().any(|(is_wanted, _)| *is_wanted) {
        return Ok(Vec::new());
    }
    // An offer has no say in either.
    let lacks = of(app, session, None).await?;
    let found = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
    Ok(found.filter_map(|(_, what)| lack_of(&lacks, what)).map(ToString::to_string).collect())
}

fn refused(lack: &AgentLack) -> Problem {
    Problem::new(StatusCode::CONFLICT, lack.what.code(), lack.why.clone(), lack.instead.clone())
}

/// The agent in whose process a subagent works.
async fn above(app: &Arc<App>, session: &Session) -> Result<Option<String>, Problem> {
    let mut parent = session.parent;
    for _ in 0..ABOVE_MAX {
        let Some(id) = parent else { return Ok(None) };
        let Some(loaded) = on_disk(app, move |store| store.load(id)).await? else { return Ok(None) };
        if loaded.session.driver() != DrivenBy::Parent {
            return Ok(loaded.session.hands.agent);
        }
        parent = loaded.session.parent;
    }
    Ok(None)
}
