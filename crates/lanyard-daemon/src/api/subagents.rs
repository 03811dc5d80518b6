//! What the agent of a session may ask about the family below it with its own token: its hook and its wrapped servers see
//! subagents that share its process, and no operator's token is near them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use lanyard_api::types::{FamilyMember, McpNames, NewSubagent, Relation, Subagent};
use lanyard_core::session::{EXTERNAL, Lineage, NewSession};
use lanyard_core::{Address, SessionId};
use lanyard_store::{Store, StoreError};

use crate::api::App;
use crate::api::context::{Change, Target, load, on_disk};
use crate::auth::Denied;
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, AskError, Request};

type Shared = State<Arc<App>>;

/// Finds the session of a subagent by the agent's own name for it, or makes one.
pub(super) async fn enlist(
    State(app): Shared,
    target: Target,
    change: Change<NewSubagent>,
) -> Result<Json<Subagent>, Problem> {
    let host = target.0;
    if let Some(session) = below(&app, host, &change.body.alias).await? {
        return Ok(Json(Subagent { session }));
    }
    let NewSubagent { alias, agent, workspace } = &change.body;
    let new = NewSession {
        agent: agent.clone(),
        source: Some(EXTERNAL.to_owned()),
        workspace: workspace.clone(),
        parent: Some(host.to_string()),
        aliases: vec![alias.clone()],
        ..NewSession::default()
    };
    let id = SessionId::mint(app.clock.now(), app.clock.random());
    let request = Request {
        ask: Ask::Create { id, new: Box::new(new), parent: Some(host) },
        actor: change.actor.clone(),
        cause: change.cause.clone(),
        keys: change.keys.clone(),
    };
    match app.engine.ask(request).await {
        Ok(reply) => Ok(Json(Subagent { session: reply.outcome.session })),
        // Another hook of the same agent was quicker.
        Err(error @ AskError::AliasTaken(_)) => match below(&app, host, alias).await? {
            Some(session) => Ok(Json(Subagent { session })),
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The session of this name below the host; an error when the name is another family's.
async fn below(app: &Arc<App>, host: SessionId, name: &str) -> Result<Option<SessionId>, Problem> {
    let member = relation(app, host, name.to_owned()).await?;
    match member.relation {
        Relation::Below => Ok(member.session),
        Relation::Unknown => Ok(None),
        Relation::Same | Relation::Other => Err(Denied::OtherSession.into()),
    }
}

pub(super) async fn family(
    State(app): Shared,
    target: Target,
    Path((_, name)): Path<(String, String)>,
) -> Result<Json<FamilyMember>, Problem> {
    relation(&app, target.0, name).await.map(Json)
}

async fn relation(app: &Arc<App>, own: SessionId, name: String) -> Result<FamilyMember, Problem> {
    on_disk(app, move |store| related(store, own, &name)).await
}

fn related(store: &dyn Store, own: SessionId, name: &str) -> Result<FamilyMember, StoreError> {
    let found = store.find(&Address::of(name.to_owned()))?;
    let ids: Vec<SessionId> = found.iter().filter(|it| !it.deleted).map(|it| it.session).collect();
    let lineages = store.lineages(&ids)?;
    let place = |(id, line): (&SessionId, &Lineage)| {
        if *id == own {
            Some((*id, Relation::Same))
        } else {
            line.ancestors.contains(&own).then_some((*id, Relation::Below))
        }
    };
    // Whose a foreign session is stays its own business: not even its id is told.
    let none = if ids.is_empty() { Relation::Unknown } else { Relation::Other };
    Ok(match ids.iter().zip(&lineages).find_map(place) {
        Some((session, relation)) => FamilyMember { session: Some(session), relation },
        None => FamilyMember { session: None, relation: none },
    })
}

pub(super) async fn mcp_names(State(app): Shared, target: Target) -> Result<Json<McpNames>, Problem> {
    // Of a session that is gone there is nothing to tell.
    load(&app, target.0).await?;
    Ok(Json(McpNames { servers: app.mcp.gateway.list().into_iter().map(|server| server.name).collect() }))
}
