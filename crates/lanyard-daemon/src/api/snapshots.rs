//! Snapshots of a session's workspace: which there are, what differs, going back. All git work is done aside.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{NewRollback, Reason, Restored, RolledBack, SnapshotEntry, SnapshotList};
use lanyard_core::naming::SHORT_CHARS;
use lanyard_core::session::{
    ContextEvent, Envelope, Event, Refusal, Session, Signal, SnapshotReason, StateName,
};
use lanyard_core::{Actor, Cause, Outcome, SessionId, Timestamp};
use lanyard_git::snapshot::{Snapshot, SnapshotError};
use lanyard_store::{Filter, Store, StoreError};

use crate::api::App;
use crate::api::context::{Change, Target, load, missing, on_disk};
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, AskError, Key, Request};

type Shared = State<Arc<App>>;

/// Events of a log that are looked through for when and why snapshots were taken: the newest.
const SCANNED_MAX: u64 = 200_000;
const SCAN_PAGE: usize = 1_000;
/// Characters of a commit that stand for all of it.
const PREFIX_MIN: usize = 7;
/// Sessions that are searched for others that work in the workspace.
const NEIGHBOURS_MAX: usize = 2;

pub(super) async fn list(State(app): Shared, target: Target) -> Result<Json<SnapshotList>, Problem> {
    let session = load(&app, target.0).await?.session;
    let taken = known(&app, &session).await?;
    let entry = |Known { snapshot, told }: Known| {
        let told = told.as_ref();
        SnapshotEntry {
            name: snapshot.name,
            commit: snapshot.commit,
            at: told.map(|told| told.at),
            position: told.and_then(|told| told.position),
            reason: told.map(|told| told.reason),
            head: snapshot.head,
            files_changed: snapshot.files_changed,
            notes: snapshot.notes,
        }
    };
    Ok(Json(SnapshotList { snapshots: taken.into_iter().map(entry).collect() }))
}

/// What the log tells of a checkpoint.
#[derive(Debug, Clone)]
struct Told {
    seq: u64,
    at: Timestamp,
    position: Option<u64>,
    reason: SnapshotReason,
}

/// A checkpoint in the store, and what the log tells of it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    snapshot: Snapshot,
    told: Option<Told>,
}

impl Known {
    pub(super) fn snapshot(&self) -> Snapshot {
        self.snapshot.clone()
    }

    pub(super) fn reason(&self) -> Option<SnapshotReason> {
        self.told.as_ref().map(|told| told.reason)
    }
}

/// When and why each was taken, from the log.
fn told(store: &dyn Store, session: SessionId, head: u64) -> Result<HashMap<String, Told>, StoreError> {
    let mut told = HashMap::new();
    let mut after = head.saturating_sub(SCANNED_MAX);
    loop {
        let page = store.events(session, after, SCAN_PAGE)?;
        let Some(last) = page.events.last() else { return Ok(told) };
        after = last.seq;
        for body in page.events.iter().filter_map(|event| event.body.as_ref().ok()) {
            // Most events are something else, and reading them all would take long.
            if memchr::memmem::find(body, b"context.snapshot").is_none() {
                continue;
            }
            let Ok(envelope) = serde_json::from_slice::<Envelope>(body) else { continue };
            if let Event::Context(ContextEvent::Snapshot { name, position, reason, .. }) = envelope.event {
                told.insert(name, Told { seq: envelope.seq, at: envelope.at, position, reason });
            }
        }
    }
}

/// Marks a session for as long as its workspace is being changed for it: no turn begins meanwhile.
pub(super) struct WorkspaceHold<'a> {
    app: &'a App,
    session: SessionId,
}

impl<'a> WorkspaceHold<'a> {
    pub(super) fn begin(app: &'a App, session: SessionId) -> Result<Self, Problem> {
        let mut rolling = app.tools.rollbacks.lock();
        if rolling.insert(session) { Ok(Self { app, session }) } else { Err(Problem::rolling_back()) }
    }
}

impl Drop for WorkspaceHold<'_> {
    fn drop(&mut self) {
        self.app.tools.rollbacks.lock().remove(&self.session);
    }
}

/// Carried to its end even if the caller is gone: half of a workspace would be neither old nor new.
pub(super) async fn rollback(
    State(app): Shared,
    target: Target,
    change: Change<NewRollback>,
) -> Result<Response, Problem> {
    let done = tokio::spawn(async move { take_back(&app, target.0, change).await }).await;
    let done = done.map_err(|_| missing("end"))??;
    Ok((StatusCode::OK, Json(done)).into_response())
}

async fn take_back(
    app: &Arc<App>,
    id: SessionId,
    change: Change<NewRollback>,
) -> Result<RolledBack, Problem> {
    if let Some(outcome) = done_before(app, &change.keys).await? {
        return Ok(RolledBack { outcome, restored: None });
    }
    let _rolling = WorkspaceHold::begin(app, id)?;
    let session = load(app, id).await?.session;
    at_rest(&session)?;
    let workspace = workspace_of(&session)?;
    undisturbed(app, &session).await?;
    let to = find(&known(app, &session).await?, &change.body.to)?;
    let name = format!("rollback-{}", session.seq);
    let (before, outcome) =
        keep(app, &session, SnapshotReason::Rollback, name, &change.actor, change.cause.clone()).await?;
    let before = before.map_err(Problem::from)?;
    // A turn that began just before the mark was set.
    if outcome.state == StateName::Executing {
        at_rest(&load(app, id).await?.session)?;
    }
    let (commit, checkpoints) = (to.commit.clone(), app.checkpoints.clone());
    let restored = aside(move || checkpoints.restore(&workspace, &commit)).await??;
    // The key is kept with the event, so that a repeat rolls nothing back again.
    let signal = Signal::RolledBack {
        from: before.name.clone(),
        to: to.name.clone(),
        changed: restored.changed,
        added: restored.added,
        removed: restored.removed,
    };
    let ask = Ask::Tell { session: id, signals: vec![signal] };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let told = app.engine.ask(request).await?.outcome;
    let outcome = Outcome { events: outcome.events + told.events, ..told };
    let restored = Restored {
        to: to.name,
        before: before.name,
        changed: restored.changed,
        added: restored.added,
        removed: restored.removed,
        notes: restored.notes,
    };
    Ok(RolledBack { outcome, restored: Some(restored) })
}

pub(super) async fn done_before(app: &Arc<App>, keys: &[Key]) -> Result<Option<Outcome>, Problem> {
    for key in keys.iter().copied() {
        match on_disk(app, move |store| store.outcome(&key.key)).await? {
            Some(kept) if kept.request != key.request => return Err(AskError::KeyConflict.into()),
            Some(kept) => return Ok(Some(kept.outcome)),
            None => {}
        }
    }
    Ok(None)
}

pub(super) fn at_rest(session: &Session) -> Result<(), Problem> {
    match &session.turn {
        Some(turn) => Err(AskError::Refused(Refusal::Busy { turn: turn.id }).into()),
        None => Ok(()),
    }
}

/// Another session that works in the same folder would have its files changed under its hands.
pub(super) async fn undisturbed(app: &Arc<App>, session: &Session) -> Result<(), Problem> {
    let (workspace, id) = (session.workspace.clone(), session.id);
    let filter = Filter { workspace, state: Some(StateName::Executing), ..Filter::default() };
    let listing = on_disk(app, move |store| store.list(&filter, None, NEIGHBOURS_MAX)).await?;
    match listing.rows.iter().find(|row| row.id != id) {
        Some(other) => Err(Problem::new(
            StatusCode::CONFLICT,
            "workspace_busy",
            format!("session {} works in the same workspace", other.id),
            "wait for its turn to end, or cancel it with `lanyard cancel`",
        )),
        None => Ok(()),
    }
}

/// Besides the place in the log, keeps the workspace of a session that has one. Why it could not is a warning.
pub(super) async fn checkpoint(
    State(app): Shared,
    target: Target,
    change: Change<Reason>,
) -> Result<Response, Problem> {
    let (actor, cause) = (change.actor.clone(), change.cause.clone());
    let command = lanyard_core::session::Command::Checkpoint;
    let ask = Ask::Do { session: target.0, command };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    let reply = app.engine.ask(request).await?;
    let mut outcome = reply.outcome;
    if reply.repeated {
        return Ok(super::sessions::repeated(StatusCode::CREATED, outcome));
    }
    let session = load(&app, target.0).await?.session;
    if workspace_of(&session).is_ok() {
        // The number that the log and the answer give: the position before the checkpoint's own event.
        let name = format!("at-{}", outcome.seq.saturating_sub(1));
        match keep(&app, &session, SnapshotReason::Asked, name, &actor, cause).await {
            Ok((Ok(_), _)) => {}
            Ok((Err(error), _)) => outcome.warnings.push(format!("the workspace was not kept: {error}")),
            Err(_) => {
                outcome.warnings.push("the checkpoint of the workspace was not recorded".to_owned());
            }
        }
    }
    Ok((StatusCode::CREATED, Json(outcome)).into_response())
}

/// Takes a checkpoint of the workspace, and tells the log, also of why there is none.
async fn keep(
    app: &Arc<App>,
    session: &Session,
    reason: SnapshotReason,
    name: String,
    actor: &Actor,
    cause: Option<Cause>,
) -> Result<(Result<Snapshot, SnapshotError>, Outcome), Problem> {
    let (workspace, owner) = (workspace_of(session)?, session.id.to_string());
    let message = format!("Lanyard: {owner}, {name}");
    let checkpoints = app.checkpoints.clone();
    let taken = aside(move || checkpoints.take(&workspace, &owner, &name, &message)).await?;
    let signal = match &taken {
        Ok(taken) => Signal::SnapshotTaken {
            name: taken.name.clone(),
            commit: taken.commit.clone(),
            reason,
            files_changed: taken.files_changed,
        },
        Err(error) => Signal::SnapshotSkipped { code: error.code().to_owned(), why: error.to_string() },
    };
    let ask = Ask::Tell { session: session.id, signals: vec![signal] };
    let request = Request { ask, actor: actor.clone(), cause, keys: Vec::new() };
    Ok((taken, app.engine.ask(request).await?.outcome))
}

/// The session's checkpoints, oldest first. Those of an unchanged workspace share a commit, so that its date is no order;
/// the log is.
pub(super) async fn known(app: &Arc<App>, session: &Session) -> Result<Vec<Known>, Problem> {
    let (workspace, owner) = (workspace_of(session)?, session.id.to_string());
    let checkpoints = app.checkpoints.clone();
    let taken = aside(move || checkpoints.list(&workspace, &owner)).await??;
    let (id, head) = (session.id, session.seq);
    let mut told = on_disk(app, move |store| told(store, id, head)).await?;
    let known = |snapshot: Snapshot| Known { told: told.remove(&snapshot.name), snapshot };
    let mut known: Vec<Known> = taken.into_iter().map(known).collect();
    // What the log does not tell of is older than what it is read for, and keeps its order.
    known.sort_by_key(|known| known.told.as_ref().map(|told| told.seq));
    Ok(known)
}

/// The newest checkpoint that is not the end of a turn: after a turn the question is what the turn changed.
pub(super) fn newest(taken: &[Known]) -> Result<Snapshot, Problem> {
    let is_end =
        |known: &Known| known.told.as_ref().is_some_and(|told| told.reason == SnapshotReason::TurnEnd);
    let found = taken.iter().rev().find(|known| !is_end(known)).or_else(|| taken.last());
    found.map(|known| known.snapshot.clone()).ok_or_else(none)
}

/// By name, by the position of one that was asked for, by the beginning of the commit or the end of the name where that is
/// enough, and the newest by `last`.
pub(super) fn find(taken: &[Known], named: &str) -> Result<Snapshot, Problem> {
    let Some(newest) = taken.last() else { return Err(none()) };
    let taken: Vec<&Snapshot> = taken.iter().map(|known| &known.snapshot).collect();
    let at = format!("at-{named}");
    if let Some(snapshot) = taken.iter().find(|snapshot| snapshot.name == named || snapshot.name == at) {
        return Ok((*snapshot).clone());
    }
    if named == "last" {
        return Ok(newest.snapshot.clone());
    }
    let is_part = |snapshot: &&Snapshot| {
        (named.len() >= PREFIX_MIN && snapshot.commit.starts_with(named))
            || (named.len() >= SHORT_CHARS && snapshot.name.ends_with(named))
    };
    let mut parts: Vec<&Snapshot> = taken.into_iter().filter(is_part).collect();
    // Names of an unchanged workspace share a commit.
    parts.dedup_by_key(|snapshot| &snapshot.commit);
    match parts.as_slice() {
        [only] => Ok((*only).clone()),
        [] => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "snapshot_not_found",
            format!("the session has no checkpoint `{named}`"),
            "list them with `lanyard checkpoints`",
        )),
        several => {
            let all: Vec<&str> = several.iter().map(|snapshot| snapshot.name.as_str()).collect();
            Err(Problem::new(
                StatusCode::CONFLICT,
                "snapshot_ambiguous",
                format!("`{named}` means {} checkpoints: {}", several.len(), all.join(", ")),
                "type more of the one you mean",
            ))
        }
    }
}

pub(super) fn none() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "snapshot_not_found",
        "the session has no checkpoints",
        "take one with `lanyard checkpoint`",
    )
}

/// A workspace may be just a name: then there is no folder to look at.
pub(super) fn workspace_of(session: &Session) -> Result<PathBuf, Problem> {
    let path = session.workspace.as_ref().map(PathBuf::from);
    path.filter(|path| path.is_absolute()).ok_or_else(|| {
        Problem::new(
            StatusCode::CONFLICT,
            "workspace_missing",
            "the session's workspace is no folder",
            "make a session with `lanyard run`, or with `lanyard new --workspace .`",
        )
    })
}

pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| missing("git"))
}
