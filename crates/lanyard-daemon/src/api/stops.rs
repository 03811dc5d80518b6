//! Stops and guidance: asking, raising, withdrawing, and what came of them.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{GuidanceList, NewStop, Reason, StopReceipt, Stopping};
use lanyard_core::session::{Command, Session, StopScope};
use lanyard_core::{Outcome, SessionId};
use lanyard_store::Filter;

use crate::api::App;
use crate::api::context::{Change, Target, load, on_disk};
use crate::api::sessions::repeated;
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, AskError, Request};

mod receipt;

type Answer = Result<Response, Problem>;
type Shared = State<Arc<App>>;

/// Sessions of a family that are reached at a time.
const AT_ONCE: usize = 256;
/// Children read at a time.
const CHILDREN_PAGE: usize = 500;

pub(super) async fn stop(State(app): Shared, target: Target, change: Change<NewStop>) -> Answer {
    let NewStop { reason, scope, now } = change.body.clone();
    let command = Command::Stop { reason, scope, now };
    over(&app, target, change, &command, scope == StopScope::Subtree, StatusCode::ACCEPTED).await
}

/// Takes a stop back; one of a whole family everywhere it reached.
pub(super) async fn withdraw(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    let command = Command::WithdrawStop { reason: change.body.reason.clone() };
    let held = load(&app, target.0).await?.session;
    let subtree = held.stop.is_some_and(|stop| stop.scope == StopScope::Subtree);
    over(&app, target, change, &command, subtree, StatusCode::OK).await
}

pub(super) async fn guidance(State(app): Shared, target: Target) -> Result<Json<GuidanceList>, Problem> {
    let Session { guidance, guidance_settled, .. } = load(&app, target.0).await?.session;
    Ok(Json(GuidanceList { waiting: guidance, settled: guidance_settled.into() }))
}

pub(super) async fn receipt(State(app): Shared, target: Target) -> Result<Json<StopReceipt>, Problem> {
    let id = target.0;
    let session = load(&app, id).await?.session;
    let receipt = on_disk(&app, move |store| receipt::of(store, &session)).await?;
    receipt.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no_stop",
            "no stop of this session is pending",
            "ask with `lanyard stop`",
        )
    })
}

/// Does it to the session and, with a subtree, to all below it. The session first: a child that is born meanwhile
/// inherits from its parent.
async fn over<T>(
    app: &Arc<App>,
    target: Target,
    change: Change<T>,
    command: &Command,
    subtree: bool,
    accepted: StatusCode,
) -> Answer {
    let (actor, cause) = (change.actor.clone(), change.cause.clone());
    let ask = Ask::Do { session: target.0, command: command.clone() };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let reply = app.engine.ask(request).await?;
    if reply.repeated {
        return Ok(repeated(accepted, reply.outcome));
    }
    let family = below(app, target.0).await?;
    let mut reached: Vec<Outcome> = Vec::new();
    let untouched = if subtree { 0 } else { family.len() as u64 };
    for some in family.chunks(AT_ONCE).filter(|_| subtree) {
        let asks: Vec<_> = some
            .iter()
            .map(|session| {
                let ask = Ask::Do { session: *session, command: command.clone() };
                let request = Request { ask, actor: actor.clone(), cause: cause.clone(), keys: Vec::new() };
                let engine = app.engine.clone();
                tokio::spawn(async move { engine.ask(request).await })
            })
            .collect();
        for ask in asks {
            match ask.await.map_err(|_| AskError::Closing).flatten() {
                Ok(reply) => reached.push(reply.outcome),
                // It ended meanwhile, or has nothing to take back.
                Err(AskError::Refused(_) | AskError::Deleted(_) | AskError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let answer = Stopping { outcome: reply.outcome, below: reached, untouched };
    Ok((accepted, Json(answer)).into_response())
}

/// The live sessions below one, parents before children.
async fn below(app: &Arc<App>, root: SessionId) -> Result<Vec<SessionId>, Problem> {
    on_disk(app, move |store| {
        let mut found = Vec::new();
        let mut parents = VecDeque::from([root]);
        while let Some(parent) = parents.pop_front() {
            let filter = Filter { parent: Some(parent), ..Filter::default() };
            let mut cursor = None;
            loop {
                let page = store.list(&filter, cursor.as_ref(), CHILDREN_PAGE)?;
                for row in &page.rows {
                    // Below one that has ended there may still be some that live.
                    parents.push_back(row.id);
                    if !row.state.is_ended() {
                        found.push(row.id);
                    }
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    })
    .await
}
