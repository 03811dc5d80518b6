//! Changes to sessions. Each handler turns its body into one thing to ask of the engine.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{Anchors, Migration, NewAlias, NewFork, NewGuidance, NewLink, NewSeen, Reason};
use lanyard_core::session::{Command, Continuity, DrivenBy, EXTERNAL, NewSession, Signal};
use lanyard_core::{Address, NoteId, Outcome, SessionId};
use lanyard_git::workspace_path;

use crate::api::App;
use crate::api::attachments::are_own;
use crate::api::choices::admit_new;
use crate::api::context::{Change, REPLAYED, Target, load, missing, on_disk};
use crate::api::guard::resolve;
use crate::families::FamilyError;
use crate::problem::Problem;
use crate::trees::SessionTree;
use lanyard_agents::agents::handover;
use lanyard_engine::engine::{Ask, Request};

type Answer = Result<Response, Problem>;
type Shared = State<Arc<App>>;

pub(super) async fn create(State(app): Shared, mut change: Change<NewSession>) -> Answer {
    check_new(&app, &mut change.body).await?;
    let parent = match &change.body.parent {
        Some(parent) => {
            let place = (change.body.workspace.clone(), change.body.plan.clone());
            Some(resolve_relative(&app, parent, place).await?)
        }
        None => None,
    };
    let id = SessionId::mint(app.clock.now(), app.clock.random());
    if change.body.worktree.is_some() {
        // Aside from the connection: a client that leaves does not leave half of it behind.
        let made = tokio::spawn(async move { create_in_tree(&app, change, id, parent).await });
        return made.await.unwrap_or_else(|_| Err(missing("handler")));
    }
    let ask = Ask::Create { id, new: Box::new(change.body.clone()), parent };
    carry_out(&app, change, ask, StatusCode::CREATED).await
}

/// Makes the worktree, then the session that knows it. One of two requests with the same key waits for the other.
pub(super) async fn create_in_tree(
    app: &Arc<App>,
    mut change: Change<NewSession>,
    id: SessionId,
    parent: Option<SessionId>,
) -> Answer {
    let lock = change.keys.first().map(|key| app.underway.lock(key.key));
    let _held = match &lock {
        Some(lock) => Some(lock.lock().await),
        None => None,
    };
    let keys: Vec<_> = change.keys.iter().map(|key| key.key).collect();
    let repeated = on_disk(app, move |store| {
        keys.iter().try_fold(false, |found, key| Ok(found || store.outcome(key)?.is_some()))
    });
    let repeated = repeated.await?;
    let tree = match change.body.worktree.take() {
        // The engine gives the first answer again.
        Some(_) if repeated => None,
        Some(wanted) => {
            let Some(folder) = change.body.workspace.clone() else { return Err(no_folder()) };
            workspace_path::check(&folder).await?;
            let title = change.body.aliases.first().or(change.body.title.as_ref());
            let begun = app.trees.begin(id, FilePath::new(&folder), title.map(String::as_str), &wanted);
            Some(begun.await.map_err(FamilyError::from)?)
        }
        None => None,
    };
    let made = tree.is_some();
    if let Some(SessionTree { tree, setup, workspace }) = tree {
        change.body = NewSession { tree: Some(tree), setup, workspace: Some(workspace), ..change.body };
    }
    let ask = Ask::Create { id, new: Box::new(change.body.clone()), parent };
    let answer = carry_out(app, change, ask, StatusCode::CREATED).await;
    let created = answer.as_ref().is_ok_and(|answer| !answer.headers().contains_key(REPLAYED));
    match (made, created) {
        (true, true) => app.trees.keep(id).await,
        (true, false) => app.trees.take_back(id).await,
        (false, _) => {}
    }
    answer
}

pub(super) fn no_folder() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "worktree_needs_folder",
        "a worktree is made from a repository, and the session names no folder",
        "name a folder of the repository as `workspace`",
    )
}

/// Refuses a session that could never run: its agent or its folder is not there. Sessions that Lanyard does not run may
/// have any agent's name, and a name instead of a folder.
pub(super) async fn check_new(app: &App, new: &mut NewSession) -> Result<(), Problem> {
    if new.driven_by.is_some_and(|by| by != DrivenBy::Nobody) {
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "driven_by_bad",
            "`driven_by` can only be `nobody`",
            "leave it out; a session whose agent runs under a host of its own has the source `external`",
        ));
    }
    if let Some(workspace) = &mut new.workspace {
        *workspace = workspace_path::expanded(workspace);
    }
    let Some(agent) = new.agent.as_deref().filter(|_| new.source.as_deref() != Some(EXTERNAL)) else {
        return Ok(());
    };
    if new.driven_by.is_some() {
        return Ok(());
    }
    let unusable = |refusal| Problem::of_agent(StatusCode::UNPROCESSABLE_ENTITY, refusal);
    app.agents.can_start(agent, new.terminal.as_ref()).map_err(unusable)?;
    admit_new(app, agent, &new.choice)?;
    match &new.workspace {
        Some(workspace) => workspace_path::check(workspace).await.map_err(Problem::from),
        None => Ok(()),
    }
}

pub(super) async fn fork(State(app): Shared, target: Target, change: Change<NewFork>) -> Answer {
    let id = SessionId::mint(app.clock.now(), app.clock.random());
    let ask = Ask::Fork { id, source: target.0, at: change.body.at, title: change.body.title.clone() };
    carry_out(&app, change, ask, StatusCode::CREATED).await
}

pub(super) async fn link(State(app): Shared, target: Target, change: Change<NewLink>) -> Answer {
    let parent = resolve(&app, Address::of(change.body.parent.clone())).await?;
    carry_out(&app, change, Ask::Link { child: target.0, parent }, StatusCode::OK).await
}

pub(super) async fn complete(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    let command = Command::Complete { reason: change.body.reason.clone() };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn fail(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    let command = Command::Fail { reason: change.body.reason.clone() };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn guide(State(app): Shared, target: Target, change: Change<NewGuidance>) -> Answer {
    let note = NoteId::mint(app.clock.now(), app.clock.random());
    let command = Command::Guide { note, text: change.body.text.clone() };
    command_on(&app, target, change, command, StatusCode::CREATED).await
}

pub(super) async fn withdraw_guidance(
    State(app): Shared,
    target: Target,
    Path((_, note)): Path<(String, String)>,
    change: Change<Reason>,
) -> Answer {
    let note: NoteId = note.parse().map_err(|error| {
        Problem::bad_request(
            "note_id_bad",
            format!("`{note}` is not a guidance id: {error}"),
            "list what is pending with `lanyard show`",
        )
    })?;
    command_on(&app, target, change, Command::WithdrawGuidance { note }, StatusCode::OK).await
}

pub(super) async fn signal(State(app): Shared, target: Target, change: Change<Signal>) -> Answer {
    if change.body.is_internal() {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "signal_internal",
            format!("`{}` is a signal only Lanyard itself sends", change.body.name()),
            "report what the agent did",
        ));
    }
    are_own(&app, target.0, &change.body)?;
    let ask = Ask::Report { session: target.0, signal: Box::new(change.body.clone()) };
    carry_out(&app, change, ask, StatusCode::CREATED).await
}

pub(super) async fn migrate(State(app): Shared, target: Target, change: Change<Migration>) -> Answer {
    let Migration { agent, worker, owner, reason } = change.body.clone();
    let continuity = match &agent {
        Some(agent) => carried(&app, target.0, agent).await?,
        None => None,
    };
    let command = Command::Migrate { agent, worker, owner, reason, continuity };
    command_on(&app, target, change, command, StatusCode::OK).await
}

/// How the agent that takes over gets the conversation. Refuses one that could not be started.
async fn carried(app: &Arc<App>, id: SessionId, agent: &str) -> Result<Option<Continuity>, Problem> {
    let session = load(app, id).await?.session;
    let to = match app.agents.can_start(agent, None) {
        Ok(()) => app.agents.settings(agent),
        // The host or client that runs a session may call its agent what it likes.
        Err(_) if session.driver() != DrivenBy::Lanyard => None,
        Err(refusal) => return Err(Problem::of_agent(StatusCode::UNPROCESSABLE_ENTITY, refusal)),
    };
    let Some(to) = to.filter(|_| session.hands.agent.as_deref() != Some(agent)) else { return Ok(None) };
    let from = session.hands.agent.as_deref().and_then(|agent| app.agents.settings(agent));
    on_disk(app, move |store| handover::carried(store, &session, from.as_ref(), &to)).await
}

pub(super) async fn add_alias(State(app): Shared, target: Target, change: Change<NewAlias>) -> Answer {
    let command = Command::AddAlias { alias: change.body.alias.clone() };
    command_on(&app, target, change, command, StatusCode::CREATED).await
}

pub(super) async fn set_anchors(State(app): Shared, target: Target, change: Change<Anchors>) -> Answer {
    let command = Command::SetAnchors { anchors: change.body.anchors.clone() };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn see(State(app): Shared, target: Target, change: Change<NewSeen>) -> Answer {
    let command = Command::See { by: change.actor.clone(), seq: change.body.seq };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn archive(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    command_on(&app, target, change, Command::Archive, StatusCode::OK).await
}

pub(super) async fn unarchive(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    command_on(&app, target, change, Command::Unarchive, StatusCode::OK).await
}

pub(super) async fn reset(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    let command = Command::Reset { reason: change.body.reason.clone() };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn delete(State(app): Shared, target: Target, change: Change<Reason>) -> Answer {
    // The engine counts the children when it decides.
    let command = Command::Delete { reason: change.body.reason.clone(), children: 0 };
    command_on(&app, target, change, command, StatusCode::OK).await
}

pub(super) async fn command_on<T>(
    app: &Arc<App>,
    target: Target,
    change: Change<T>,
    command: Command,
    accepted: StatusCode,
) -> Answer {
    carry_out(app, change, Ask::Do { session: target.0, command }, accepted).await
}

/// Asks the engine. A repeat of a key is answered as the first time, and says that it is one.
pub(super) async fn carry_out<T>(
    app: &Arc<App>,
    change: Change<T>,
    ask: Ask,
    accepted: StatusCode,
) -> Answer {
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let reply = app.engine.ask(request).await?;
    if reply.repeated {
        return Ok(repeated(accepted, reply.outcome));
    }
    Ok((accepted, Json(reply.outcome)).into_response())
}

/// The first outcome of a key again.
pub(super) fn repeated(accepted: StatusCode, outcome: Outcome) -> Response {
    marked((accepted, Json(outcome)).into_response())
}

/// An answer that says it was given before.
pub(super) fn marked(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// No agent is set to work while its files are being changed.
pub(super) fn not_rolling_back(app: &App, session: SessionId) -> Result<(), Problem> {
    let rolling = app.tools.rollbacks.lock().contains(&session);
    if rolling { Err(Problem::rolling_back()) } else { Ok(()) }
}

/// A parent named by an alias is looked for where the child will be, and then anywhere.
async fn resolve_relative(
    app: &Arc<App>,
    parent: &str,
    (workspace, plan): (Option<String>, Option<String>),
) -> Result<SessionId, Problem> {
    if parent.parse::<SessionId>().is_err() && (workspace.is_some() || plan.is_some()) {
        let near = Address { session: parent.to_owned(), workspace, plan };
        if let Ok(id) = resolve(app, near).await {
            return Ok(id);
        }
    }
    resolve(app, Address::of(parent)).await
}
