//! Comparisons: one message to several agents, each in a session and a worktree of its own. A paper names the sessions
//! before any is made; a request that is repeated after a crash makes what is missing. Each session knows its comparison.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use lanyard_api::types::{
    COMPARED_MAX, COMPARED_MIN, ComparedSession, ComparisonList, ComparisonView, KeepOne, KeptOne,
    NewCompared, NewComparison, NewTurn, NotDiscarded, Problem as ToldProblem,
};
use lanyard_base::failpoint;
use lanyard_core::session::{Command, NewSession, NewWorktree, StopScope};
use lanyard_core::text::{NAME_CHARS_MAX, one_line};
use lanyard_core::{Actor, ComparisonId, SessionId, Timestamp};
use lanyard_store::{Paper, PaperKey, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::api::App;
use crate::api::branches::{BranchRefusal, ChangeAuthor, discard_branch, merge_branch, no_loose_work};
use crate::api::context::{Change, load, missing, on_disk};
use crate::api::sessions::{check_new, create_in_tree, no_folder};
use crate::api::turns::deliver;
use crate::problem::Problem;
use lanyard_engine::engine::Key;
use lanyard_engine::live_runs::RunProof;

type Shared = State<Arc<App>>;

/// Papers of comparisons. Their key is the id.
const COMPARISONS: &str = "comparison";
/// Comparisons that are kept; the oldest goes. Its sessions stay.
const COMPARISONS_MAX: usize = 500;
/// Comparisons of one answer.
const LISTED_MAX: usize = 50;
/// Characters of a title that is made of the message.
const TITLE_CHARS: usize = 60;
/// How long a session that is stopped may take to end.
const STOP_WAIT: Duration = Duration::from_mins(1);
const STOP_LOOK: Duration = Duration::from_millis(100);

/// A comparison as it is written down. The message is in the logs of its sessions alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Compared {
    created_at: Timestamp,
    by: Actor,
    workspace: String,
    sessions: Vec<PlannedSession>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PlannedSession {
    session: SessionId,
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<ToldProblem>,
}

fn place(id: ComparisonId) -> PaperKey {
    PaperKey { kind: COMPARISONS.to_owned(), workspace: String::new(), key: id.to_string() }
}

fn read(paper: &Paper) -> Option<(ComparisonId, Compared)> {
    Some((paper.place.key.parse().ok()?, serde_json::from_str(&paper.body).ok()?))
}

fn write(store: &dyn Store, id: ComparisonId, at: Timestamp, compared: &Compared) -> Result<(), StoreError> {
    let from = store.paper(&place(id))?.map_or(0, |paper| paper.version);
    let body = serde_json::to_string(compared).unwrap_or_default();
    // The lock of its id makes this the only writer.
    store.put_paper(&place(id), from, at, &body).map(drop)
}

async fn save(app: &Arc<App>, id: ComparisonId, compared: &Compared) -> Result<(), Problem> {
    let (at, compared) = (app.clock.now(), compared.clone());
    on_disk(app, move |store| write(store, id, at, &compared)).await
}

async fn find(app: &Arc<App>, name: &str) -> Result<(ComparisonId, Compared), Problem> {
    let unknown = || BranchRefusal::ComparisonUnknown { comparison: one_line(name, NAME_CHARS_MAX) };
    let id: ComparisonId = name.parse().map_err(|_| unknown())?;
    let paper = on_disk(app, move |store| store.paper(&place(id))).await?;
    Ok(paper.as_ref().and_then(read).ok_or_else(unknown)?)
}

/// All or none is made of what can be known before; what fails later is told with its session.
pub(super) async fn create(State(app): Shared, change: Change<NewComparison>) -> Result<Response, Problem> {
    let author = change.author();
    let key = change.keys.first().copied();
    let body = checked(&app, change.body).await?;
    let id = key.map_or_else(
        || ComparisonId::mint(app.clock.now(), app.clock.random()),
        |key| ComparisonId::from_u128(u128::from_be_bytes(key.key)),
    );
    let known = on_disk(&app, move |store| store.paper(&place(id))).await?;
    let mut compared = match known.as_ref().and_then(read) {
        Some((_, compared)) => compared,
        None => begin(&app, id, &author, &body).await?,
    };
    failpoint::hit("comparison_after_note");
    let making = compared.sessions.iter().enumerate().map(|(at, member)| {
        let new = body.agents.get(at).cloned();
        make_one(&app, (id, at), member.session, new, (&body, &author))
    });
    let made = join_all(making).await;
    if made.iter().all(Result::is_err) {
        on_disk(&app, move |store| store.remove_paper(&place(id))).await?;
        return Err(made.into_iter().find_map(Result::err).unwrap_or_else(|| missing("session")));
    }
    for (member, made) in compared.sessions.iter_mut().zip(made) {
        member.problem = made.err().map(Problem::told);
    }
    save(&app, id, &compared).await?;
    let view = view_of(&app, id, compared).await?;
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Refuses what could never run.
async fn checked(app: &Arc<App>, mut body: NewComparison) -> Result<NewComparison, Problem> {
    let count = body.agents.len();
    if !(COMPARED_MIN..=COMPARED_MAX).contains(&count) {
        return Err(BranchRefusal::ComparedCount { count }.into());
    }
    if body.workspace.trim().is_empty() {
        return Err(no_folder());
    }
    for at in 0..count {
        let mut new = session_of(&body, at);
        check_new(app, &mut new).await?;
        body.workspace = new.workspace.unwrap_or_default();
    }
    Ok(body)
}

fn session_of(body: &NewComparison, at: usize) -> NewSession {
    let Some(NewCompared { agent, choice }) = body.agents.get(at).cloned() else {
        return NewSession::default();
    };
    let title = body.title.clone().unwrap_or_else(|| one_line(&body.prompt, TITLE_CHARS));
    let before = body.agents.iter().take(at).filter(|other| other.agent == agent).count();
    let title = match before {
        0 => format!("{title} · {agent}"),
        more => format!("{title} · {agent} {}", more + 1),
    };
    NewSession {
        title: Some(title),
        agent: Some(agent),
        choice,
        workspace: Some(body.workspace.clone()),
        worktree: Some(NewWorktree { branch: None, base: body.base.clone() }),
        purpose: Some("comparison".to_owned()),
        ..NewSession::default()
    }
}

/// Writes down which sessions are to be made. The oldest comparison makes room.
async fn begin(
    app: &Arc<App>,
    id: ComparisonId,
    author: &ChangeAuthor,
    body: &NewComparison,
) -> Result<Compared, Problem> {
    let member = |new: &NewCompared| PlannedSession {
        session: SessionId::mint(app.clock.now(), app.clock.random()),
        agent: new.agent.clone(),
        problem: None,
    };
    let compared = Compared {
        created_at: app.clock.now(),
        by: author.actor.clone(),
        workspace: body.workspace.clone(),
        sessions: body.agents.iter().map(member).collect(),
        kept: None,
    };
    let (at, kept) = (app.clock.now(), compared.clone());
    on_disk(app, move |store| {
        let papers = store.papers_named(COMPARISONS, None, COMPARISONS_MAX)?;
        if papers.len() >= COMPARISONS_MAX
            && let Some((oldest, _)) = papers.iter().filter_map(read).min_by_key(|(_, old)| old.created_at)
        {
            store.remove_paper(&place(oldest))?;
        }
        write(store, id, at, &kept)
    })
    .await?;
    Ok(compared)
}

/// Makes one session and gives it the message. Under keys of its own: what an earlier daemon did is not done again.
async fn make_one(
    app: &Arc<App>,
    (id, at): (ComparisonId, usize),
    session: SessionId,
    new: Option<NewCompared>,
    (body, author): (&NewComparison, &ChangeAuthor),
) -> Result<(), Problem> {
    if new.is_none() {
        return Err(missing("agent"));
    }
    let new = NewSession { comparison: Some(id), ..session_of(body, at) };
    Box::pin(create_in_tree(app, author.change("session", session, new), session, None)).await?;
    failpoint::hit("comparison_after_session");
    let (prompt, parts) = (body.prompt.clone(), body.parts.clone());
    let turn = NewTurn { prompt, parts, ..NewTurn::default() };
    Box::pin(deliver(app, session, None, author.change("turn", session, turn))).await?;
    Ok(())
}

impl ChangeAuthor {
    /// A change that happens once for a session, whoever asks again.
    fn change<T>(&self, what: &str, session: SessionId, body: T) -> Change<T> {
        Change {
            actor: self.actor.clone(),
            cause: self.cause.clone(),
            keys: vec![Key::once(&format!("comparison {what}\0{session}"))],
            repeats: None,
            proof: RunProof::default(),
            body,
        }
    }
}

pub(super) async fn get(
    State(app): Shared,
    Path(name): Path<String>,
) -> Result<Json<ComparisonView>, Problem> {
    let (id, compared) = find(&app, &name).await?;
    view_of(&app, id, compared).await.map(Json)
}

pub(super) async fn list(State(app): Shared) -> Result<Json<ComparisonList>, Problem> {
    let comparisons = on_disk(&app, |store| {
        let papers = store.papers_named(COMPARISONS, None, COMPARISONS_MAX)?;
        let mut all: Vec<(ComparisonId, Compared)> = papers.iter().filter_map(read).collect();
        all.sort_by_key(|(_, compared)| std::cmp::Reverse(compared.created_at));
        all.truncate(LISTED_MAX);
        all.into_iter().map(|(id, compared)| shown(store, id, compared)).collect::<Result<Vec<_>, _>>()
    });
    Ok(Json(ComparisonList { comparisons: comparisons.await? }))
}

async fn view_of(app: &Arc<App>, id: ComparisonId, compared: Compared) -> Result<ComparisonView, Problem> {
    on_disk(app, move |store| shown(store, id, compared)).await
}

fn shown(store: &dyn Store, id: ComparisonId, compared: Compared) -> Result<ComparisonView, StoreError> {
    let Compared { created_at, by, workspace, sessions, kept } = compared;
    let session = |member: PlannedSession| {
        let PlannedSession { session, agent, problem } = member;
        let held = store.load(session)?.map(|loaded| loaded.session).filter(|held| !held.deleted);
        let tree = held.as_ref().and_then(|held| held.tree.clone());
        Ok(ComparedSession {
            session,
            agent,
            problem,
            operator_state: held.as_ref().map(lanyard_core::Session::operator_state),
            title: held.and_then(|held| held.title),
            discarded: tree.as_ref().is_some_and(|tree| tree.removed),
            branch: tree.map(|tree| tree.branch),
        })
    };
    let sessions = sessions.into_iter().map(session).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(ComparisonView { id, created_at, by, workspace, sessions, kept })
}

/// Nothing is changed before all that would be lost was agreed to. One at a time for a comparison; asked again after a
/// crash, it finishes.
pub(super) async fn keep(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<KeepOne>,
) -> Result<Json<KeptOne>, Problem> {
    let author = change.author();
    let KeepOne { session, merge, commit, force, reason } = change.body;
    let lock = find(&app, &name).await?.0;
    let lock = app.underway.lock(Key::once(&format!("comparison keep\0{lock}")).key);
    let _one = lock.lock().await;
    let (id, mut compared) = find(&app, &name).await?;
    if !compared.sessions.iter().any(|member| member.session == session) {
        return Err(BranchRefusal::NotCompared { session, comparison: id }.into());
    }
    if let Some(kept) = compared.kept.filter(|kept| *kept != session) {
        return Err(BranchRefusal::KeptOther { kept }.into());
    }
    let others = others(&app, &compared, session).await?;
    if !force {
        for other in &others {
            nothing_to_lose(&app, *other).await?;
        }
    }
    let merged = if merge { Some(merge_branch(&app, session, (None, commit), &author).await?) } else { None };
    failpoint::hit("comparison_after_merge");
    compared.kept = Some(session);
    save(&app, id, &compared).await?;
    let (mut discarded, mut left) = (Vec::new(), Vec::new());
    for other in others {
        match drop_one(&app, other, (force, reason.as_deref()), &author).await {
            Ok(done) => discarded.push(done),
            Err(problem) => left.push(NotDiscarded { session: other, problem: problem.told() }),
        }
    }
    let comparison = view_of(&app, id, compared).await?;
    Ok(Json(KeptOne { comparison, merged, discarded, left }))
}

/// The sessions that would be discarded: those that are there and still have their worktree.
async fn others(app: &Arc<App>, compared: &Compared, kept: SessionId) -> Result<Vec<SessionId>, Problem> {
    let ids: Vec<SessionId> = compared.sessions.iter().map(|member| member.session).collect();
    on_disk(app, move |store| {
        let mut others = Vec::new();
        for id in ids.into_iter().filter(|id| *id != kept) {
            let held = store.load(id)?.map(|loaded| loaded.session).filter(|held| !held.deleted);
            if held.and_then(|held| held.tree).is_some_and(|tree| !tree.removed) {
                others.push(id);
            }
        }
        Ok(others)
    })
    .await
}

async fn nothing_to_lose(app: &Arc<App>, id: SessionId) -> Result<(), Problem> {
    let session = load(app, id).await?.session;
    if session.turn.is_some() {
        return Err(BranchRefusal::Running { session: id }.into());
    }
    no_loose_work(&session).await
}

async fn drop_one(
    app: &Arc<App>,
    id: SessionId,
    (force, reason): (bool, Option<&str>),
    author: &ChangeAuthor,
) -> Result<lanyard_api::types::DiscardedSession, Problem> {
    if force && load(app, id).await?.session.turn.is_some() {
        let reason = Some(reason.unwrap_or("another session of the comparison was kept").to_owned());
        author.commands(app, id, Command::Stop { reason, scope: StopScope::Subtree, now: true }).await?;
        let rests = async {
            while load(app, id).await?.session.turn.is_some() {
                tokio::time::sleep(STOP_LOOK).await;
            }
            Ok(())
        };
        let waited: Result<Result<(), Problem>, _> = tokio::time::timeout(STOP_WAIT, rests).await;
        waited.unwrap_or_else(|_| Err(BranchRefusal::Running { session: id }.into()))?;
    }
    discard_branch(app, id, force, author).await
}
