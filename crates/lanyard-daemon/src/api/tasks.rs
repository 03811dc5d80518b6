//! Tasks over HTTP.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lanyard_api::types::{
    AdoptTask, CancelTask, CompleteTask, Deploy, DiffCommit, DiffFile, DiscardedTask, MergeTask, MergedTask,
    Reason, RetryTask, RunToken, TaskDiff, TaskEdit, TaskLog, TaskPage, TaskView,
};
use lanyard_core::task::{
    NewTask, REQUEST_KEY, Task, TaskCommand, TaskEvent, TaskResult, TaskState, Tree, WorkerKind,
};
use lanyard_core::{PlanId, TaskId, WorkerId};
use lanyard_git::snapshot::FileDiff;
use lanyard_git::snapshot::diff::DiffStatus;
use lanyard_git::workspace_path;
use lanyard_git::worktree::{self, WorktreeError};
use lanyard_store::TaskFilter;
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, on_disk, query};
use crate::api::plans::{on_families_disk, with_reader};
use crate::api::system::host_token;
use crate::families::prerequisites::unmerged_before;
use crate::families::{Adding, By, FamilyError, Owner, find, plans, refused};
use crate::problem::Problem;
use lanyard_engine::engine::AskError;

type Shared = State<Arc<App>>;

/// Tasks of one page.
const PAGE_DEFAULT: usize = 100;
pub(super) const PAGE_MAX: usize = 500;

impl<T> Change<T> {
    pub(super) fn by(&self) -> By {
        By { actor: self.actor.clone(), session: None }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Listed {
    plan: Option<String>,
    parent: Option<String>,
    reports_to: Option<String>,
    worker: Option<WorkerId>,
    session: Option<String>,
    workspace: Option<String>,
    state: Option<TaskState>,
    ended: Option<bool>,
    cursor: Option<TaskId>,
    limit: Option<usize>,
}

pub(super) async fn list(State(app): Shared, uri: Uri) -> Result<Json<TaskPage>, Problem> {
    let asked: Listed = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let tasks = with_reader(&app, move |store, reader| {
        let filter = TaskFilter {
            plan: asked.plan.as_deref().map(|name| plan_id(store, name)).transpose()?,
            parent: asked.parent.as_deref().map(|name| find::task_named(store, name)).transpose()?,
            reports_to: asked.reports_to.as_deref().map(|name| find::box_named(store, name)).transpose()?,
            worker: asked.worker,
            session: match &asked.session {
                Some(name) => find::sessions_named(store, name)?.first().copied(),
                None => None,
            },
            workspace: asked.workspace,
            state: asked.state,
            ended: asked.ended,
        };
        let tasks = store.tasks(&filter, asked.cursor, limit + 1)?;
        reader.views(tasks)
    })
    .await?;
    let more = tasks.len() > limit;
    let tasks: Vec<TaskView> = tasks.into_iter().take(limit).collect();
    let next = tasks.last().filter(|_| more).map(|view| view.task.id.to_string());
    Ok(Json(TaskPage { tasks, next }))
}

pub(super) fn plan_id(store: &dyn lanyard_store::Store, name: &str) -> Result<PlanId, FamilyError> {
    match name.parse() {
        Ok(id) => Ok(id),
        Err(_) => plans::find(store, name, None).map(|(_, plan)| plan.id),
    }
}

pub(super) async fn add(State(app): Shared, change: Change<NewTask>) -> Result<Response, Problem> {
    let (by, mut new) = (change.by(), change.body);
    if new.kind == WorkerKind::Background {
        new.workspace = workspace_path::folder(new.workspace).await?;
    }
    // Asked for again under the same key, it is the same task; another one needs another key.
    let request = change.keys.first().map(|key| {
        let name = format!("{REQUEST_KEY}{:032x}", u128::from_be_bytes(key.key));
        let exact = format!("{name}:{:032x}", u128::from_be_bytes(key.request));
        (name, exact)
    });
    let made = app
        .families
        .ask(move |owner| {
            if let Some((name, exact)) = request {
                if let Some(known) = owner.aliased(&name)? {
                    let same = owner.task(known)?.aliases.contains(&exact);
                    return if same { Ok(known) } else { Err(AskError::KeyConflict.into()) };
                }
                new.aliases.extend([name, exact]);
            }
            let made = owner.add(Adding { tasks: vec![new], plan: None }, &by)?;
            made.first().copied().ok_or_else(|| FamilyError::NoTask("new".to_owned()))
        })
        .await?;
    let view = with_reader(&app, move |_, reader| reader.view(made)).await?;
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Has the owner do something with the task, and shows it as it then is.
async fn ask(
    app: &Arc<App>,
    name: String,
    work: impl FnOnce(&mut Owner, TaskId) -> Result<(), FamilyError> + Send + 'static,
) -> Result<Json<TaskView>, Problem> {
    let id = app
        .families
        .ask(move |owner| {
            let id = owner.named(&name)?;
            work(owner, id)?;
            Ok(id)
        })
        .await?;
    Ok(Json(with_reader(app, move |_, reader| reader.view(id)).await?))
}

pub(super) async fn get(State(app): Shared, Path(name): Path<String>) -> Result<Json<TaskView>, Problem> {
    let found = with_reader(&app, move |store, reader| reader.view(find::task_named(store, &name)?));
    Ok(Json(found.await?))
}

pub(super) async fn edit(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<TaskEdit>,
) -> Result<Json<TaskView>, Problem> {
    let (by, edit) = (change.by(), change.body);
    let depends_on = edit.depends_on.clone();
    ask(&app, name, move |owner, id| {
        let apply = |spec: &mut lanyard_core::task::TaskSpec| {
            let TaskEdit { title, prompt, agent, priority, group, files, base, isolation, .. } = edit;
            // One whose title is all its agent is told is told the new one.
            let only_title = (spec.prompt == spec.title).then(|| title.clone()).flatten();
            spec.title = title.unwrap_or_else(|| spec.title.clone());
            spec.prompt = prompt.or(only_title).unwrap_or_else(|| spec.prompt.clone());
            spec.agent = agent.or_else(|| spec.agent.take());
            spec.priority = priority.unwrap_or(spec.priority);
            spec.group = group.or_else(|| spec.group.take());
            spec.files = files.unwrap_or_else(|| std::mem::take(&mut spec.files));
            spec.base = base.or_else(|| spec.base.take());
            spec.isolation = isolation.unwrap_or(spec.isolation);
            spec.when_parent_ends = edit.when_parent_ends.unwrap_or(spec.when_parent_ends);
            spec.may_spawn = edit.may_spawn.unwrap_or(spec.may_spawn);
        };
        owner.edit(id, apply, depends_on, &by)
    })
    .await
}

#[derive(Debug, Default, Deserialize)]
struct LogAsked {
    after: Option<u64>,
    limit: Option<usize>,
}

pub(super) async fn log(
    State(app): Shared,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<TaskLog>, Problem> {
    let asked: LogAsked = query(&uri)?;
    let limit = asked.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let task = on_families_disk(&app, move |store| find::task_named(store, &name)).await?;
    let (events, head) = on_disk(&app, move |store| {
        let head = store.task(task)?.map_or(0, |task| task.seq);
        Ok((store.task_events(task, asked.after.unwrap_or(0), limit)?, head))
    })
    .await?;
    Ok(Json(TaskLog { events, head }))
}

pub(super) async fn deploy(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<Deploy>,
) -> Result<Response, Problem> {
    let (by, force) = (change.by(), change.body.force);
    let view = ask(&app, name, move |owner, id| owner.deploy(id, force, &by)).await?;
    Ok((StatusCode::ACCEPTED, view).into_response())
}

pub(super) async fn pause(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<Reason>,
) -> Result<Json<TaskView>, Problem> {
    let (by, command) = (change.by(), TaskCommand::Pause { reason: change.body.reason });
    ask(&app, name, move |owner, id| owner.order(id, &command, &by)).await
}

pub(super) async fn resume(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<Reason>,
) -> Result<Json<TaskView>, Problem> {
    let by = change.by();
    ask(&app, name, move |owner, id| owner.resume(id, &by)).await
}

pub(super) async fn cancel(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<CancelTask>,
) -> Result<Response, Problem> {
    let by = change.by();
    let command = TaskCommand::Cancel { reason: change.body.reason, now: change.body.now };
    let view = ask(&app, name, move |owner, id| owner.order(id, &command, &by)).await?;
    Ok((StatusCode::ACCEPTED, view).into_response())
}

pub(super) async fn retry(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<RetryTask>,
) -> Result<Json<TaskView>, Problem> {
    let (by, deploy) = (change.by(), change.body.deploy);
    ask(&app, name, move |owner, id| owner.retry(id, deploy, &by)).await
}

pub(super) async fn complete(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<CompleteTask>,
) -> Result<Json<TaskView>, Problem> {
    let by = change.by();
    let CompleteTask { summary, evidence } = change.body;
    let command = TaskCommand::Complete { result: TaskResult { summary, evidence, by_turn_end: false } };
    ask(&app, name, move |owner, id| owner.order(id, &command, &by)).await
}

pub(super) async fn fail(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<Reason>,
) -> Result<Json<TaskView>, Problem> {
    let by = change.by();
    let reason = change.body.reason.unwrap_or_else(|| "no reason was given".to_owned());
    let command = TaskCommand::Fail { reason };
    ask(&app, name, move |owner, id| owner.order(id, &command, &by)).await
}

pub(super) async fn adopt(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<AdoptTask>,
) -> Result<Json<TaskView>, Problem> {
    let (by, parent) = (change.by(), change.body.parent);
    ask(&app, name, move |owner, id| {
        let parent = parent.as_deref().map(|name| find::box_named(&*owner.store(), name)).transpose()?;
        owner.adopt(id, parent, &by)
    })
    .await
}

pub(super) async fn token(
    State(app): Shared,
    Path(name): Path<String>,
    _: Change<Reason>,
) -> Result<Json<RunToken>, Problem> {
    let (task, run_token) = app
        .families
        .ask(move |owner| {
            let id = owner.named(&name)?;
            owner.run_token(id)
        })
        .await?;
    let (Some(worker), Some(session)) = (task.worker, task.session) else {
        return Err(FamilyError::NoTask(task.id.to_string()).into());
    };
    let session_token = host_token(&app, session).await?;
    Ok(Json(RunToken { task: task.id, worker, session, run: task.run, run_token, session_token }))
}

async fn task(app: &Arc<App>, name: String) -> Result<Task, Problem> {
    with_reader(app, move |store, reader| reader.task(find::task_named(store, &name)?)).await
}

fn no_branch(task: TaskId) -> FamilyError {
    let what = format!("task {task} has no branch of its own");
    refused("no_branch", what, "it worked in its workspace, or was not begun, or its branch was discarded")
}

/// Runs git on a blocking thread.
pub(super) async fn with_git<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or(Err(WorktreeError::Interrupted));
    done.map_err(|error| FamilyError::from(error).into())
}

pub(super) async fn diff(State(app): Shared, Path(name): Path<String>) -> Result<Json<TaskDiff>, Problem> {
    let task = task(&app, name).await?;
    let tree = task.tree.ok_or_else(|| no_branch(task.id))?;
    let (branch, base) = (tree.branch.clone(), tree.base.clone());
    let (changes, patch) = with_git(move || Ok((worktree::changes(&tree)?, worktree::patch(&tree)?))).await?;
    let commits =
        changes.commits.into_iter().map(|one| DiffCommit { commit: one.hash, subject: one.subject });
    let files = changes.files.into_iter().map(diff_file);
    Ok(Json(TaskDiff {
        task: task.id,
        branch,
        base,
        commits: commits.collect(),
        files: files.collect(),
        uncommitted: changes.uncommitted,
        patch: patch.text,
        truncated: patch.truncated || changes.truncated,
    }))
}

/// A changed file as the API shows it.
pub(super) fn diff_file(file: FileDiff) -> DiffFile {
    DiffFile {
        status: letter(file.status).to_owned(),
        added: (!file.binary).then_some(u64::from(file.added)),
        removed: (!file.binary).then_some(u64::from(file.removed)),
        path: file.path,
    }
}

/// As git has it.
const fn letter(status: DiffStatus) -> &'static str {
    match status {
        DiffStatus::Added => "A",
        DiffStatus::Modified => "M",
        DiffStatus::Deleted => "D",
        DiffStatus::Renamed => "R",
        DiffStatus::TypeChanged => "T",
    }
}

fn at_rest(task: &Task) -> Result<(), FamilyError> {
    match task.state {
        TaskState::Deploying | TaskState::Running => {
            Err(lanyard_core::task::TaskRefusal::AtWork { task: task.id, state: task.state }.into())
        }
        TaskState::Pending
        | TaskState::Paused
        | TaskState::Interrupted
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled => Ok(()),
    }
}

pub(super) async fn merge(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<MergeTask>,
) -> Result<Json<MergedTask>, Problem> {
    let by = change.by();
    let task = task(&app, name).await?;
    at_rest(&task)?;
    let tree = task.tree.clone().ok_or_else(|| no_branch(task.id))?;
    let into = change.body.into.or_else(|| task.workspace.clone());
    let into = PathBuf::from(into.unwrap_or_else(|| tree.repository.clone()));
    let message = format!("Merge {}: {}", tree.branch, task.spec.title);
    let id = task.id;
    let before = on_disk(&app, move |store| unmerged_before(store, &task)).await?;
    // A branch that began at the work of others brings that work along.
    let (merged, brought) = with_git(move || {
        let merged = worktree::merge(&tree, &into, &message)?;
        let is_part = |tree: &Tree| worktree::is_part_of(tree, &merged.commit).unwrap_or(false);
        let brought = before.into_iter().filter(|task| task.tree.as_ref().is_some_and(is_part));
        let brought: Vec<TaskId> = brought.map(|task| task.id).collect();
        Ok((merged, brought))
    })
    .await?;
    let answer = MergedTask { task: id, commit: merged.commit, into: merged.into, nothing: merged.nothing };
    let (commit, into) = (answer.commit.clone(), answer.into.clone());
    app.families
        .ask(move |owner| {
            for id in brought.into_iter().chain([id]) {
                owner.note(id, TaskEvent::Merged { commit: commit.clone(), into: into.clone() }, &by)?;
            }
            Ok(())
        })
        .await?;
    Ok(Json(answer))
}

pub(super) async fn discard(
    State(app): Shared,
    Path(name): Path<String>,
    change: Change<Reason>,
) -> Result<Json<DiscardedTask>, Problem> {
    let by = change.by();
    let task = task(&app, name).await?;
    at_rest(&task)?;
    let tree = task.tree.clone().ok_or_else(|| no_branch(task.id))?;
    let reference = with_git(move || worktree::discard(&tree)).await?;
    let kept = reference.clone();
    app.families.ask(move |owner| owner.note(task.id, TaskEvent::Discarded { reference: kept }, &by)).await?;
    Ok(Json(DiscardedTask { task: task.id, reference }))
}
