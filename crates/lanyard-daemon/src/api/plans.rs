//! Plans over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    CancelTask, Deploy, DeployedTasks, HeldTask, ImportPlan, NewPlanBody, PlanDetail, PlanList, PlanMarkdown,
    PlanRow, PlanView, Reason, TaskCount,
};
use lanyard_core::PlanId;
use lanyard_core::paper::{Bounds, NewPlan, Plan, PlanStatus, TEXT_CHARS_MAX};
use lanyard_core::task::{NewTask, Task, TaskState, markdown, schedule};
use lanyard_core::text::one_line;
use lanyard_git::workspace_path;
use lanyard_store::Store;
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, on_disk, query};
use crate::families::read::TaskReader;
use crate::families::{Adding, FamilyError, Owner, plans, wrong};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

#[derive(Debug, Default, Deserialize)]
struct Listed {
    workspace: Option<String>,
    status: Option<PlanStatus>,
    #[serde(default)]
    archived: bool,
}

#[derive(Debug, Default, Deserialize)]
struct PlanPlaceQuery {
    workspace: Option<String>,
}

fn row(store: &dyn Store, workspace: &str, plan: &Plan) -> Result<PlanRow, FamilyError> {
    let mut states: BTreeMap<TaskState, u64> = BTreeMap::new();
    for task in plans::tasks_of(store, plan.id)? {
        *states.entry(task.state).or_default() += 1;
    }
    let counts = states.into_iter().map(|(state, tasks)| TaskCount { state, tasks });
    Ok(PlanRow::of(plan, workspace, counts.collect()))
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<PlanList>, Problem> {
    let asked: Listed = query(&uri)?;
    let plans = on_families_disk(&app, move |store| {
        let mut rows = Vec::new();
        for (workspace, plan) in plans::all(store)? {
            let here = asked.workspace.as_ref().is_none_or(|wanted| *wanted == workspace);
            let wanted = asked.status.is_none_or(|status| status == plan.status);
            if here && wanted && (asked.archived || !plan.archived) {
                rows.push(row(store, &workspace, &plan)?);
            }
        }
        rows.reverse();
        Ok(rows)
    })
    .await?;
    Ok(Json(PlanList { plans }))
}

/// Reads from the store, with the errors of families.
pub(super) async fn on_families_disk<T: Send + 'static>(
    app: &Arc<App>,
    read: impl FnOnce(&dyn Store) -> Result<T, FamilyError> + Send + 'static,
) -> Result<T, Problem> {
    Ok(on_disk(app, move |store| Ok(read(store))).await??)
}

/// Looks at tasks and plans, beside their owner.
pub(super) async fn with_reader<T: Send + 'static>(
    app: &Arc<App>,
    look: impl FnOnce(&dyn Store, &mut TaskReader<'_>) -> Result<T, FamilyError> + Send + 'static,
) -> Result<T, Problem> {
    let families = app.families.clone();
    on_families_disk(app, move |store| look(store, &mut families.reader(store))).await
}

/// The plan as it is now.
fn view(store: &dyn Store, reader: &mut TaskReader<'_>, id: PlanId) -> Result<PlanView, FamilyError> {
    let (workspace, plan) = plans::find(store, &id.to_string(), None)?;
    let tasks = plans::tasks_of(store, id)?;
    let tasks: Vec<Task> = schedule::order(tasks.iter()).into_iter().cloned().collect();
    let mut counts: BTreeMap<TaskState, u64> = BTreeMap::new();
    for task in &tasks {
        *counts.entry(task.state).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(state, tasks)| TaskCount { state, tasks }).collect();
    let all = reader.views(tasks)?;
    let approvals = all.iter().flat_map(|view| view.approvals.iter().cloned()).collect();
    Ok(PlanView {
        plan: PlanRow::of(&plan, &workspace, counts),
        goal: plan.goal.clone(),
        detail: PlanDetail::of(&plan),
        all,
        approvals,
    })
}

async fn ask(
    app: &Arc<App>,
    work: impl FnOnce(&mut Owner) -> Result<PlanId, FamilyError> + Send + 'static,
) -> Result<PlanView, Problem> {
    let id = app.families.ask(work).await?;
    with_reader(app, move |store, reader| view(store, reader, id)).await
}

pub(super) async fn add(State(app): Shared, change: Change<NewPlanBody>) -> Result<Response, Problem> {
    let (by, key, mut body) = (change.by(), change.keys.first().copied(), change.body);
    body.workspace = workspace_path::place(body.workspace).await?;
    let made = ask(&app, move |owner| {
        let (id, written) = owner.plan_for(key.as_ref())?;
        if written && (body.tasks.is_empty() || !owner.tasks_of(id)?.is_empty()) {
            return Ok(id);
        }
        let new = NewPlan {
            name: body.name,
            title: body.title,
            goal: body.goal,
            priority: body.priority,
            ..NewPlan::default()
        };
        let adding = Adding { tasks: body.tasks, plan: None };
        owner.new_plan(id, new, body.workspace.as_deref().unwrap_or_default(), adding, body.start, &by)
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

pub(super) async fn import(State(app): Shared, change: Change<ImportPlan>) -> Result<Response, Problem> {
    let (by, key, mut body) = (change.by(), change.keys.first().copied(), change.body);
    body.workspace = workspace_path::place(body.workspace).await?;
    let read = markdown::read(&body.markdown)
        .map_err(|error| wrong(error.what.code(), error.to_string(), error.what.advice()))?;
    let made = ask(&app, move |owner| {
        let (id, written) = owner.plan_for(key.as_ref())?;
        if written && !owner.tasks_of(id)?.is_empty() {
            return Ok(id);
        }
        let new = NewPlan { name: body.name, title: read.title, goal: read.goal, ..NewPlan::default() };
        let done: Vec<String> =
            read.tasks.iter().filter(|task| task.done).map(|task| task.key.clone()).collect();
        let tasks = read.tasks.into_iter().map(new_task).collect();
        let workspace = body.workspace.unwrap_or_default();
        let id = owner.new_plan(id, new, &workspace, Adding { tasks, plan: None }, body.start, &by)?;
        owner.tick_off(id, &done, &by)?;
        Ok(id)
    });
    Ok((StatusCode::CREATED, Json(made.await?)).into_response())
}

fn new_task(task: markdown::TaskText) -> NewTask {
    NewTask {
        title: task.title,
        prompt: Some(task.prompt).filter(|prompt| !prompt.trim().is_empty()),
        agent: task.agent,
        key: Some(task.key),
        parent: task.parent,
        depends_on: task.depends_on,
        priority: task.priority,
        group: task.group,
        files: task.files,
        base: task.base,
        isolation: task.isolation,
        when_parent_ends: task.when_parent_ends,
        may_spawn: Some(task.may_spawn),
        subagents: task.subagents,
        bounds: Some(task.bounds).filter(|bounds| *bounds != Bounds::default()),
        ..NewTask::default()
    }
}

pub(super) async fn get(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<PlanView>, Problem> {
    let place: PlanPlaceQuery = query(&uri)?;
    let found = with_reader(&app, move |store, reader| {
        let (_, plan) = plans::find(store, &name, place.workspace.as_deref())?;
        view(store, reader, plan.id)
    });
    Ok(Json(found.await?))
}

pub(super) async fn export(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<PlanMarkdown>, Problem> {
    let place: PlanPlaceQuery = query(&uri)?;
    let found = on_families_disk(&app, move |store| {
        let (_, plan) = plans::find(store, &name, place.workspace.as_deref())?;
        let tasks = plans::tasks_of(store, plan.id)?;
        let text = markdown::PlanText {
            title: plan.title.clone(),
            goal: plan.goal.clone(),
            tasks: tasks.iter().map(|task| task_text(task, &tasks)).collect(),
            steps: markdown::section(&plan),
        };
        Ok(PlanMarkdown { plan: plan.id, markdown: markdown::write(&text) })
    });
    Ok(Json(found.await?))
}

/// A task without a key of its own goes by the end of its id.
fn key_of(task: &Task) -> String {
    let id = task.id.to_string();
    let tail = id.len().saturating_sub(8);
    task.spec.key.clone().unwrap_or_else(|| format!("t{}", &id[tail..]))
}

/// Each entry in one line, as the fields of a text are.
fn in_lines(bounds: &Bounds) -> Bounds {
    let lines = |entries: &[String]| {
        let lines = entries.iter().map(|entry| one_line(entry, TEXT_CHARS_MAX));
        lines.filter(|line| !line.is_empty()).collect()
    };
    Bounds {
        may_change: lines(&bounds.may_change),
        must_not_change: lines(&bounds.must_not_change),
        out_of_scope: lines(&bounds.out_of_scope),
    }
}

fn task_text(task: &Task, all: &[Task]) -> markdown::TaskText {
    let key = |id: &lanyard_core::TaskId| all.iter().find(|task| task.id == *id).map(key_of);
    markdown::TaskText {
        key: key_of(task),
        title: task.spec.title.clone(),
        prompt: task.spec.prompt.clone(),
        agent: task.spec.agent.clone(),
        depends_on: task.spec.depends_on.iter().filter_map(key).collect(),
        priority: task.spec.priority,
        group: task.spec.group.clone(),
        files: task.spec.files.clone(),
        base: task.spec.base.clone(),
        isolation: task.spec.isolation,
        when_parent_ends: task.spec.when_parent_ends,
        parent: task.parent.as_ref().and_then(key),
        may_spawn: task.spec.may_spawn,
        subagents: task.spec.subagents && !task.spec.may_spawn,
        bounds: task.spec.bounds.as_ref().map(in_lines).unwrap_or_default(),
        done: task.state == TaskState::Completed,
    }
}

async fn set(app: Arc<App>, name: String, uri: &Uri, status: PlanStatus) -> Result<Json<PlanView>, Problem> {
    let place: PlanPlaceQuery = query(uri)?;
    let set = ask(&app, move |owner| owner.set_plan(&name, place.workspace.as_deref(), status));
    Ok(Json(set.await?))
}

pub(super) async fn start(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
    _: Change<Reason>,
) -> Result<Json<PlanView>, Problem> {
    set(app, name, &uri, PlanStatus::Active).await
}

pub(super) async fn pause(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
    _: Change<Reason>,
) -> Result<Json<PlanView>, Problem> {
    set(app, name, &uri, PlanStatus::Paused).await
}

pub(super) async fn cancel(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
    change: Change<CancelTask>,
) -> Result<Response, Problem> {
    let (by, place) = (change.by(), query::<PlanPlaceQuery>(&uri)?);
    let CancelTask { reason, now } = change.body;
    let cancelled = ask(&app, move |owner| {
        owner.cancel_plan(&name, place.workspace.as_deref(), reason.as_deref(), now, &by)
    });
    Ok((StatusCode::ACCEPTED, Json(cancelled.await?)).into_response())
}

pub(super) async fn archive(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
    _: Change<Reason>,
) -> Result<Json<PlanView>, Problem> {
    let place: PlanPlaceQuery = query(&uri)?;
    let put_away = ask(&app, move |owner| owner.archive_plan(&name, place.workspace.as_deref()));
    Ok(Json(put_away.await?))
}

pub(super) async fn deploy(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
    change: Change<Deploy>,
) -> Result<Json<DeployedTasks>, Problem> {
    let (by, force) = (change.by(), change.body.force);
    let place: PlanPlaceQuery = query(&uri)?;
    let answer = app.families.ask(move |owner| {
        let (_, plan) = plans::find(&*owner.store(), &name, place.workspace.as_deref())?;
        let (deployed, held) = owner.deploy_plan(plan.id, force, &by)?;
        let held = held.into_iter().map(|(task, why)| {
            let title = owner.task(task)?.spec.title.clone();
            Ok(HeldTask { task, title, why })
        });
        Ok(DeployedTasks { deployed, held: held.collect::<Result<_, FamilyError>>()? })
    });
    Ok(Json(answer.await?))
}

impl Owner {
    /// The tasks of a plan, in the order they would be begun.
    fn tasks_of(&mut self, plan: PlanId) -> Result<Vec<Task>, FamilyError> {
        let tasks = plans::tasks_of(&*self.store(), plan)?;
        // Those of this round are not on disk yet.
        let mut all: BTreeMap<_, Task> = tasks.into_iter().map(|task| (task.id, task)).collect();
        all.extend(self.held_of(plan).map(|task| (task.id, task.clone())));
        Ok(schedule::order(all.values()).into_iter().cloned().collect())
    }
}
