//! One thing done to many sessions: each on its own, so that one that refuses holds up none of the others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lanyard_api::types::{Bulk, BulkAction, BulkAnswer, BulkFilter, BulkOutcome, BulkResult};
use lanyard_core::session::{Command, Session, StopScope, decide};
use lanyard_core::{Address, NoteId, SessionId};
use lanyard_store::Filter;

use crate::api::App;
use crate::api::context::{Change, load, on_disk};
use crate::api::guard::resolve;
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, AskError, Request};

/// Sessions one request reaches.
const BULK_MAX: usize = 500;

pub(super) async fn bulk(
    State(app): State<Arc<App>>,
    change: Change<Bulk>,
) -> Result<Json<BulkAnswer>, Problem> {
    check(&change.body)?;
    let (ids, more) = chosen(&app, &change.body).await?;
    let mut sessions = Vec::with_capacity(ids.len());
    for id in ids {
        sessions.push(one(&app, id, &change).await?);
    }
    Ok(Json(BulkAnswer { dry_run: change.body.dry_run, sessions, more }))
}

fn check(body: &Bulk) -> Result<(), Problem> {
    let bad = |code, what: &str, advice: &str| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, what.to_owned(), advice.to_owned())
    };
    let filtered = body.filter.as_ref().is_some_and(|filter| *filter != BulkFilter::default());
    match (body.sessions.is_empty(), filtered) {
        (true, false) => Err(bad(
            "bulk_unselected",
            "no sessions were named and no filter was given",
            "name sessions, or give at least one condition, such as a state",
        )),
        (false, true) => {
            Err(bad("bulk_overselected", "both sessions and a filter were given", "give one of them"))
        }
        (_, _) if body.sessions.len() > BULK_MAX => Err(bad(
            "bulk_too_many",
            &format!("more than {BULK_MAX} sessions were named"),
            "send them in several requests",
        )),
        (_, _) if (body.action == BulkAction::Guide) != body.text.is_some() => Err(bad(
            "bulk_text",
            "`text` belongs to `guide`, and `guide` needs it",
            "say what to tell the agents",
        )),
        (_, _) => Ok(()),
    }
}

async fn chosen(app: &Arc<App>, body: &Bulk) -> Result<(Vec<SessionId>, bool), Problem> {
    if let Some(filter) = body.filter.clone().filter(|_| body.sessions.is_empty()) {
        let BulkFilter { status, lifecycle, state, source, owner, agent, workspace, archived, text } = filter;
        let filter = Filter {
            status,
            lifecycle,
            state,
            source,
            owner,
            agent,
            workspace,
            archived,
            text,
            ..Filter::default()
        };
        let listing = on_disk(app, move |store| store.list(&filter, None, BULK_MAX)).await?;
        return Ok((listing.rows.into_iter().map(|row| row.id).collect(), listing.next.is_some()));
    }
    let mut ids = Vec::new();
    for name in &body.sessions {
        let id = resolve(app, Address::of(name.clone())).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok((ids, false))
}

async fn one(app: &Arc<App>, id: SessionId, change: &Change<Bulk>) -> Result<BulkOutcome, Problem> {
    let held = load(app, id).await?.session;
    let command = command(app, &change.body);
    let agent = held.hands.agent.as_deref().unwrap_or_default();
    let result = match change.body.dry_run {
        // Nobody runs it, or somebody else: there is nothing Lanyard could have there.
        _ if change.body.action == BulkAction::Resume && app.agents.settings(agent).is_none() => {
            Err(("agent_not_configured".to_owned(), "its agent is not in the config".to_owned()))
        }
        true => foreseen(app, &held, &command).await?,
        false => done(app, id, command, change).await,
    };
    let (result, code, what) = match result {
        Ok(result) => (result, None, None),
        Err((code, what)) => (BulkResult::Refused, Some(code), Some(what)),
    };
    let (title, state) = (held.title, held.state.name());
    Ok(BulkOutcome { session: id, title, state, result, code, what })
}

fn command(app: &App, body: &Bulk) -> Command {
    let reason = body.reason.clone();
    match body.action {
        BulkAction::Cancel => Command::CancelTurn { reason },
        BulkAction::Stop => Command::Stop { reason, scope: StopScope::Session, now: false },
        BulkAction::Guide => {
            let note = NoteId::mint(app.clock.now(), app.clock.random());
            Command::Guide { note, text: body.text.clone().unwrap_or_default() }
        }
        BulkAction::Resume => Command::Resume { ways: Vec::new(), per_turn: false },
        BulkAction::Archive => Command::Archive,
        BulkAction::Unarchive => Command::Unarchive,
        BulkAction::Reset => Command::Reset { reason },
        BulkAction::Delete => Command::Delete { reason, children: 0 },
    }
}

type Told = Result<BulkResult, (String, String)>;

/// What would come of it now: the same decision, and nothing is written.
async fn foreseen(app: &Arc<App>, held: &Session, command: &Command) -> Result<Told, Problem> {
    let mut command = command.clone();
    if let Command::Delete { children, .. } = &mut command {
        let id = held.id;
        *children = on_disk(app, move |store| store.live_children(id)).await?;
    }
    Ok(match decide(held, &command, app.clock.now(), &app.config.rules()) {
        Ok(events) if events.is_empty() => Ok(BulkResult::Unchanged),
        Ok(_) => Ok(BulkResult::WouldDo),
        Err(refusal) => Err((refusal.code().to_owned(), refusal.to_string())),
    })
}

async fn done(app: &Arc<App>, id: SessionId, command: Command, change: &Change<Bulk>) -> Told {
    let ask = Ask::Do { session: id, command };
    let (actor, cause) = (change.actor.clone(), change.cause.clone());
    // Each session has its own share of the request's key, so that a repeat is one for each of them.
    let keys = change.keys.iter().map(|key| key.part(&id.to_string())).collect();
    match app.engine.ask(Request { ask, actor, cause, keys }).await {
        Ok(reply) if reply.outcome.events == 0 => Ok(BulkResult::Unchanged),
        Ok(_) => Ok(BulkResult::Done),
        Err(AskError::Refused(refusal)) => Err((refusal.code().to_owned(), refusal.to_string())),
        Err(error) => {
            let problem = Problem::from(error);
            Err((problem.code.to_owned(), problem.title))
        }
    }
}
