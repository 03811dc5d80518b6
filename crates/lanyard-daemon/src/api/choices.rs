//! Models, modes and effort levels: what an agent offers, and choosing it for a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use lanyard_agents::agents::roster::CheckOutcome;
use lanyard_api::agents::naming;
use lanyard_api::types::AgentDetail;
use lanyard_core::Session;
use lanyard_core::session::{
    AgentAbility, AgentChoice, AgentOffer, ChoiceKind, Command, DrivenBy, Envelope, Event, Refusal, RunEvent,
    lacks_of_agent,
};

use crate::api::App;
use crate::api::agents::entry;
use crate::api::context::{Change, Target, load, on_disk};
use crate::api::lacks;
use crate::api::sessions::command_on;
use crate::problem::Problem;
use lanyard_engine::engine::AskError;

type Shared = State<Arc<App>>;

/// Sets the session's own choice, all of it at once.
pub(super) async fn set(
    State(app): Shared,
    target: Target,
    change: Change<AgentChoice>,
) -> Result<Response, Problem> {
    let session = load(&app, target.0).await?.session;
    admit(&app, &session, &change.body).await?;
    let command = Command::Choose { choice: change.body.clone() };
    command_on(&app, target, change, command, StatusCode::OK).await
}

/// One agent, with what it last offered to choose.
pub(super) async fn agent(
    State(app): Shared,
    Path(name): Path<String>,
) -> Result<Json<AgentDetail>, Problem> {
    let listed = app.agents.list(false).await.into_iter().find(|listed| listed.name == name);
    let Some(listed) = listed else {
        let refusal = app.agents.named(&name).err();
        let refusal = refusal.unwrap_or_else(|| naming::unknown(&name, &[], false));
        return Err(Problem::of_agent(StatusCode::NOT_FOUND, refusal));
    };
    let known = app.agents.offer(&name);
    let (offered_at, offer) = known.map_or((None, None), |known| (Some(known.at), Some(known.offer)));
    let can = match &listed.checked {
        Some(CheckOutcome::Works { capabilities, .. }) => Some(*capabilities),
        Some(CheckOutcome::Fails { .. }) | None => None,
    };
    let lacks = lacks_of_agent(&name, can, offer.as_ref());
    Ok(Json(AgentDetail { agent: entry(listed), offer, offered_at, lacks }))
}

/// What the session's agent offers: as it said itself, else as it said elsewhere. Nothing where it is not known.
pub(super) async fn offer_of(app: &Arc<App>, session: &Session) -> Result<Option<AgentOffer>, Problem> {
    let (Some(mark), id) = (session.offered.clone(), session.id) else {
        return Ok(session.hands.agent.as_deref().and_then(|agent| known(app, agent)));
    };
    let page = on_disk(app, move |store| store.events(id, mark.seq.saturating_sub(1), 1)).await?;
    let body = page.events.into_iter().next().and_then(|event| event.body.ok());
    let event = body.and_then(|body| serde_json::from_slice::<Envelope>(&body).ok()).map(|found| found.event);
    Ok(match event {
        Some(Event::Run(RunEvent::Offered(offer))) => Some(*offer),
        Some(_) | None => None,
    })
}

fn known(app: &App, agent: &str) -> Option<AgentOffer> {
    app.agents.offer(agent).map(|known| known.offer)
}

fn refused(refusal: Refusal) -> Problem {
    Problem::from(AskError::Refused(refusal))
}

/// Refuses what the session's agent is known not to offer.
pub(super) async fn admit(app: &Arc<App>, session: &Session, choice: &AgentChoice) -> Result<(), Problem> {
    if choice.is_empty() {
        return Ok(());
    }
    if session.driver() == DrivenBy::Parent {
        for kind in ChoiceKind::ALL.into_iter().filter(|kind| choice.get(*kind).is_some()) {
            lacks::admit(app, session, AgentAbility::of_choice(kind)).await?;
        }
    }
    match offer_of(app, session).await? {
        Some(offer) => offer.admit(choice).map_err(refused),
        None => Ok(()),
    }
}

/// The same for a session that is to be made.
pub(super) fn admit_new(app: &App, agent: &str, choice: &AgentChoice) -> Result<(), Problem> {
    match known(app, agent).filter(|_| !choice.is_empty()) {
        Some(offer) => offer.admit(choice).map_err(refused),
        None => Ok(()),
    }
}
