//! What an id stands for, bringing back whatever it names, and where a session stands in its family.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    Child, Delegation, IdChain, IdKind, IdPlan, IdSession, Reason, Resumed, ResumedHow, StackCaller,
};
use lanyard_core::paper::{Facts, judge};
use lanyard_core::session::Session;
use lanyard_core::task::{Task, TaskState};
use lanyard_core::{SessionId, TaskId};
use lanyard_store::{Filter, Store};

use crate::api::App;
use crate::api::agents::resume_command;
use crate::api::context::{Change, Target, load};
use crate::api::plans::{on_families_disk, with_reader};
use crate::families::find::{self, Named};
use crate::families::{FamilyError, plans, refused};
use crate::problem::Problem;
use lanyard_engine::engine::{Ask, Request};

type Shared = State<Arc<App>>;

/// Children one answer shows.
const CHILDREN_MAX: usize = 500;

/// Everything a name is linked to, without what only the owner knows.
struct Found {
    kind: IdKind,
    tasks: Vec<TaskId>,
    session: Option<Session>,
    plan: Option<IdPlan>,
    mail: Option<lanyard_core::task::Mail>,
    reports_to: Vec<String>,
}

fn look_up(store: &dyn Store, text: &str) -> Result<Found, FamilyError> {
    let named = Named::parse(text);
    let kind = match named {
        Named::Session(_) => IdKind::Session,
        Named::Task(_) => IdKind::Task,
        Named::Worker(_) => IdKind::Worker,
        Named::Run(_) => IdKind::Run,
        Named::Plan(_) => IdKind::Plan,
        Named::Mail(_) => IdKind::Mail,
        Named::Alias => IdKind::Alias,
    };
    let mail = match named {
        Named::Mail(id) => store.mail(id)?,
        Named::Session(_)
        | Named::Task(_)
        | Named::Worker(_)
        | Named::Run(_)
        | Named::Plan(_)
        | Named::Alias => None,
    };
    let tasks = match mail.as_ref().and_then(|mail| mail.from.task) {
        Some(task) => vec![task],
        None => find::tasks_named(store, text)?,
    };
    let task = match tasks.first() {
        Some(id) => store.task(*id)?,
        None => None,
    };
    let session = match (named, task.as_ref().and_then(|task| task.session)) {
        (Named::Session(id), _) => Some(id),
        (_, Some(id)) => Some(id),
        (Named::Alias, None) => find::sessions_named(store, text)?.first().copied(),
        (_, None) => None,
    };
    let session = match session {
        Some(id) => store.load(id)?.map(|loaded| loaded.session),
        None => None,
    };
    let plan = match (named, task.as_ref().and_then(|task| task.plan)) {
        (Named::Plan(id), _) => plan_of(store, &id.to_string())?,
        (_, Some(id)) => plan_of(store, &id.to_string())?,
        (Named::Alias, None) if session.is_none() => plan_of(store, text)?,
        (_, None) => None,
    };
    let above = match &task {
        Some(task) => find::above(store, task)?,
        None => Vec::new(),
    };
    let reports_to = above.iter().map(ToString::to_string).collect();
    let found = Found { kind, tasks, session, plan, mail, reports_to };
    if found.tasks.is_empty() && found.session.is_none() && found.plan.is_none() && found.mail.is_none() {
        let what = format!("nothing is called `{text}`");
        return Err(refused(
            "id_unknown",
            what,
            "list the sessions with `lanyard ls --all`, the tasks with `lanyard task ls --all`",
        ));
    }
    Ok(found)
}

fn plan_of(store: &dyn Store, name: &str) -> Result<Option<IdPlan>, FamilyError> {
    match plans::find(store, name, None) {
        Ok((_, plan)) => Ok(Some(IdPlan { id: plan.id, title: plan.title, status: plan.status })),
        Err(FamilyError::NoPlan(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) async fn explain(State(app): Shared, Path(text): Path<String>) -> Result<Json<IdChain>, Problem> {
    let asked = text.clone();
    let found = on_families_disk(&app, move |store| look_up(store, &asked)).await?;
    let first = found.tasks.first().copied();
    let task = match first {
        Some(id) => Some(with_reader(&app, move |_, reader| reader.view(id)).await?),
        None => None,
    };
    let worker = task.as_ref().and_then(|view| view.task.worker);
    let worker = worker.or_else(|| found.session.as_ref().and_then(|session| session.hands.worker));
    Ok(Json(IdChain {
        id: text,
        kind: found.kind,
        plan: found.plan,
        worker,
        session: found.session.map(|session| shown(&session)),
        task,
        more_tasks: found.tasks.into_iter().skip(1).collect(),
        reports_to: found.reports_to,
        mail: found.mail,
    }))
}

fn shown(session: &Session) -> IdSession {
    IdSession {
        id: session.id,
        state: session.state.name(),
        agent: session.hands.agent.clone(),
        parent: session.parent,
        process: session.run.as_ref().map(|run| run.id),
        live: session.live_run().is_some(),
    }
}

/// Finds or redeploys, under the same worker.
pub(super) async fn resume(
    State(app): Shared,
    Path(text): Path<String>,
    change: Change<Reason>,
) -> Result<Response, Problem> {
    let by = change.by();
    let asked = text.clone();
    let found = on_families_disk(&app, move |store| look_up(store, &asked)).await?;
    if !found.tasks.is_empty() {
        let (task, how) = app
            .families
            .ask(move |owner| {
                let id = owner.named(&text)?;
                let how = match owner.task(id)?.state {
                    TaskState::Running | TaskState::Deploying => ResumedHow::AtWork,
                    TaskState::Paused | TaskState::Interrupted => {
                        owner.resume(id, &by)?;
                        ResumedHow::Resumed
                    }
                    TaskState::Pending => {
                        owner.deploy(id, false, &by)?;
                        ResumedHow::Redeployed
                    }
                    TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                        owner.redeploy(id, &by)?;
                        ResumedHow::Redeployed
                    }
                };
                Ok((owner.task(id)?.clone(), how))
            })
            .await?;
        let Task { id, session, worker, .. } = task;
        return Ok(
            (StatusCode::ACCEPTED, Json(Resumed { how, session, task: Some(id), worker })).into_response()
        );
    }
    let Some(session) = found.session else {
        return Err(refused(
            "id_unknown",
            "there is nothing to bring back",
            "name a session, a task or a worker",
        )
        .into());
    };
    resume_session(&app, &session, change).await
}

async fn resume_session(
    app: &Arc<App>,
    session: &Session,
    change: Change<Reason>,
) -> Result<Response, Problem> {
    let worker = session.hands.worker;
    let answer =
        |how| (StatusCode::ACCEPTED, Json(Resumed { how, session: Some(session.id), task: None, worker }));
    if session.live_run().is_some() {
        return Ok(answer(ResumedHow::AtWork).into_response());
    }
    let command = resume_command(app, session, Vec::new())?;
    let ask = Ask::Do { session: session.id, command };
    let request = Request { ask, actor: change.actor, cause: change.cause, keys: change.keys };
    app.engine.ask(request).await?;
    Ok(answer(ResumedHow::Resumed).into_response())
}

/// Level, depth and call stack of a session, derived from its chain of parents and never counted.
pub(super) async fn delegation(State(app): Shared, target: Target) -> Result<Json<Delegation>, Problem> {
    let me = load(&app, target.0).await?;
    let (staleness, clock) = (app.config.rules().staleness, app.clock.clone());
    let (session, lineage) = (me.session.clone(), me.lineage.clone());
    let (call_stack, children, truncated) = on_families_disk(&app, move |store| {
        let mut stack = Vec::new();
        for id in lineage.ancestors.iter().rev() {
            if let Some(above) = store.load(*id)? {
                stack.push(caller(&above.session));
            }
        }
        stack.push(caller(&session));
        let filter = Filter { parent: Some(session.id), ..Filter::default() };
        let page = store.list(&filter, None, CHILDREN_MAX)?;
        let mut children = Vec::new();
        for row in &page.rows {
            let Some(child) = store.load(row.id)? else { continue };
            let quiet_ms = clock.elapsed_ms(child.session.last_activity_at);
            let facts = Facts::of(&child.session, quiet_ms, false, store.waits_below(row.id)?);
            let task = task_of(store, &child.session)?;
            children.push(Child {
                session: row.id,
                agent: row.agent.clone(),
                created_at: row.created_at,
                state: row.state,
                task: task.as_ref().map(|task| task.id),
                task_state: task.map(|task| task.state),
                liveness: judge(&facts, &staleness),
            });
        }
        children.reverse();
        Ok((stack, children, page.next.is_some()))
    })
    .await?;
    let (session, depth) = (&me.session, me.lineage.depth());
    Ok(Json(Delegation {
        session: session.id,
        level: u8::try_from(me.lineage.level()).unwrap_or(u8::MAX),
        depth,
        depth_limit: session.policy.depth_limit,
        can_delegate: !session.policy.leaf && depth < session.policy.depth_limit && !session.state.is_ended(),
        call_stack,
        children,
        truncated,
    }))
}

fn task_of(store: &dyn Store, session: &Session) -> Result<Option<Task>, FamilyError> {
    let id: Option<TaskId> = match session.task {
        Some(task) => Some(task),
        None => find::open_task_of(store, session.id)?,
    };
    match id {
        Some(id) => Ok(store.task(id)?),
        None => Ok(None),
    }
}

fn caller(session: &Session) -> StackCaller {
    let id: SessionId = session.id;
    StackCaller { session: id, agent: session.hands.agent.clone(), task: session.task }
}
