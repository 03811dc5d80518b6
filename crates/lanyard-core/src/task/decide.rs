//! Commands to a task, and their events. Pure: ids and the state of other tasks arrive as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TaskId, WorkerId};
use crate::paper::{self, Bounds, Priority};
use crate::task::event::{TaskCreated, TaskEvent};
use crate::task::record::{
    Isolation, ParentEnd, Task, TaskEnding, TaskResult, TaskSpec, TaskState, WorkerKind, WorkerSource,
};
use crate::task::refusal::TaskRefusal;

/// Characters of a task's prompt.
pub(super) const PROMPT_CHARS_MAX: usize = 100_000;
/// Characters of a reason, a summary, evidence.
pub(super) const WORDS_CHARS_MAX: usize = 16_000;
/// Tasks one may depend on, files it may name, aliases it may have.
pub(super) const LIST_MAX: usize = 200;

/// The reason of a cancel that names none.
pub(super) const CANCELLED: &str = "it was cancelled";

/// The request for a new task. Ids may be aliases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewTask {
    pub title: String,
    /// The agent's prompt; the title when absent.
    pub prompt: Option<String>,
    pub agent: Option<String>,
    /// The plan it belongs to, by id or name.
    pub plan: Option<String>,
    /// The task's name in its plan.
    pub key: Option<String>,
    /// The task it is a part of.
    pub parent: Option<String>,
    /// Tasks that must be completed first.
    pub depends_on: Vec<String>,
    pub priority: Priority,
    pub group: Option<String>,
    pub files: Vec<String>,
    pub base: Option<String>,
    pub kind: WorkerKind,
    pub isolation: Isolation,
    pub when_parent_ends: ParentEnd,
    /// The chat session that works at it.
    pub session: Option<String>,
    pub workspace: Option<String>,
    /// Foreign ids by which it can be found as well.
    pub aliases: Vec<String>,
    /// Whether its worker may spawn others. A person's may when left out, an agent's may not.
    pub may_spawn: Option<bool>,
    /// Whether its agent may use its own subagents, also where it may not spawn.
    pub subagents: bool,
    /// Scope limits of the work.
    pub bounds: Option<Bounds>,
    /// Deploy it at once.
    pub deploy: bool,
}

/// A wish of somebody outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskCommand {
    Deploy {
        /// Minted before; used where the task has no chat session.
        session: SessionId,
        /// Minted before; used where neither the task nor a chat session has one.
        worker: WorkerId,
        /// A task it depends on that is not completed.
        blocked: Option<(TaskId, TaskState)>,
        /// Turns its chat session has had.
        turns: u64,
    },
    Pause {
        reason: Option<String>,
    },
    /// Goes on after a pause or an interruption; `turns` its session has had.
    Resume {
        turns: u64,
    },
    Cancel {
        reason: Option<String>,
        now: bool,
    },
    Complete {
        result: TaskResult,
    },
    Fail {
        reason: String,
    },
    Retry,
    Edit {
        spec: Box<TaskSpec>,
    },
}

impl TaskCommand {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Deploy { .. } => "deploy",
            Self::Pause { .. } => "pause",
            Self::Resume { .. } => "resume",
            Self::Cancel { .. } => "cancel",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
            Self::Retry => "retry",
            Self::Edit { .. } => "edit",
        }
    }
}

/// The event that makes a task.
pub fn create(new: TaskCreated) -> Result<TaskEvent, TaskRefusal> {
    check(&new.spec)?;
    paper::optional("workspace", new.workspace.as_deref())?;
    paper::few("aliases", &new.aliases, LIST_MAX)?;
    new.aliases.iter().try_for_each(|alias| paper::name("aliases", alias))?;
    Ok(TaskEvent::Created(Box::new(new)))
}

fn check(spec: &TaskSpec) -> Result<(), TaskRefusal> {
    paper::name("title", &spec.title)?;
    paper::words("prompt", &spec.prompt, PROMPT_CHARS_MAX)?;
    for (field, text) in
        [("agent", &spec.agent), ("group", &spec.group), ("base", &spec.base), ("key", &spec.key)]
    {
        paper::optional(field, text.as_deref())?;
    }
    paper::few("files", &spec.files, LIST_MAX)?;
    spec.files.iter().try_for_each(|file| paper::name("files", file))?;
    paper::few("depends_on", &spec.depends_on, LIST_MAX)?;
    if let Some(bounds) = &spec.bounds {
        bounds.check()?;
    }
    if spec.kind == WorkerKind::Chat && spec.chat.is_none() {
        return Err(TaskRefusal::ChatNeedsSession);
    }
    Ok(())
}

pub fn decide(task: &Task, command: &TaskCommand) -> Result<Vec<TaskEvent>, TaskRefusal> {
    match command {
        TaskCommand::Deploy { session, worker, blocked, turns } => {
            deploy(task, *session, *worker, *blocked, *turns)
        }
        TaskCommand::Pause { reason } => pause(task, reason.as_deref()),
        TaskCommand::Resume { turns } => resume(task, *turns),
        TaskCommand::Cancel { reason, now } => cancel(task, reason.as_deref(), *now),
        TaskCommand::Complete { result } => complete(task, result),
        TaskCommand::Fail { reason } => fail(task, reason),
        TaskCommand::Retry => retry(task),
        TaskCommand::Edit { spec } => edit(task, spec),
    }
}

/// Chooses the worker id: the task's own, else the chat session's, else a new one.
fn deploy(
    task: &Task,
    session: SessionId,
    worker: WorkerId,
    blocked: Option<(TaskId, TaskState)>,
    turns: u64,
) -> Result<Vec<TaskEvent>, TaskRefusal> {
    alive(task)?;
    if task.is_at_work() {
        return Err(TaskRefusal::AtWork { task: task.id, state: task.state });
    }
    if task.state != TaskState::Pending {
        return Err(TaskRefusal::NotNow { task: task.id, state: task.state });
    }
    if let Some((on, state)) = blocked {
        return Err(TaskRefusal::Blocked { task: task.id, on, state });
    }
    let chat = task.spec.chat;
    let (worker, source) = match (task.worker, chat) {
        (Some(own), _) => (own, WorkerSource::Reused),
        (None, Some(chat)) => (WorkerId::from_u128(chat.as_u128()), WorkerSource::Session),
        (None, None) => (worker, WorkerSource::Generated),
    };
    let session = chat.unwrap_or(session);
    Ok(vec![TaskEvent::Deployed { worker, source, session, run: task.run + 1, turns }])
}

fn pause(task: &Task, reason: Option<&str>) -> Result<Vec<TaskEvent>, TaskRefusal> {
    alive(task)?;
    said("reason", reason)?;
    match task.state {
        TaskState::Paused => Ok(Vec::new()),
        TaskState::Pending | TaskState::Running | TaskState::Interrupted if task.ending.is_none() => {
            Ok(vec![TaskEvent::Paused { reason: reason.map(str::to_owned) }])
        }
        TaskState::Pending
        | TaskState::Running
        | TaskState::Interrupted
        | TaskState::Deploying
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Cancelled => Err(TaskRefusal::NotNow { task: task.id, state: task.state }),
    }
}

fn resume(task: &Task, turns: u64) -> Result<Vec<TaskEvent>, TaskRefusal> {
    alive(task)?;
    match task.state {
        TaskState::Paused | TaskState::Interrupted => Ok(vec![TaskEvent::Resumed { turns }]),
        TaskState::Running | TaskState::Deploying => Ok(Vec::new()),
        TaskState::Pending | TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
            Err(TaskRefusal::NotNow { task: task.id, state: task.state })
        }
    }
}

fn cancel(task: &Task, reason: Option<&str>, now: bool) -> Result<Vec<TaskEvent>, TaskRefusal> {
    said("reason", reason)?;
    if task.state == TaskState::Cancelled {
        return Ok(Vec::new());
    }
    alive(task)?;
    // Who only presses on means what was said before.
    let said_before = task.reason.as_deref().filter(|_| is_cancelled(task));
    let reason = reason.or(said_before).map(str::to_owned);
    if task.session.is_none() {
        let reason = reason.or_else(|| Some(CANCELLED.to_owned()));
        return Ok(vec![TaskEvent::Ended { state: TaskState::Cancelled, reason }]);
    }
    let ending = TaskEnding::Cancel { now };
    // Asked again, it is only made more urgent.
    if task.ending == Some(ending.clone()) || task.ending == Some(TaskEnding::Cancel { now: true }) {
        return Ok(Vec::new());
    }
    Ok(vec![TaskEvent::EndAsked { ending, reason }])
}

fn complete(task: &Task, result: &TaskResult) -> Result<Vec<TaskEvent>, TaskRefusal> {
    // Whoever did not hear the answer says the same again.
    if task.state == TaskState::Completed && task.result.as_ref() == Some(result) {
        return Ok(Vec::new());
    }
    alive(task)?;
    paper::words("summary", &result.summary, WORDS_CHARS_MAX)?;
    said("evidence", result.evidence.as_deref())?;
    let mut events = vec![TaskEvent::Reported { result: result.clone() }];
    if task.session.is_none() {
        events.push(TaskEvent::Ended { state: TaskState::Completed, reason: None });
    } else if !is_cancelled(task) {
        events.push(TaskEvent::EndAsked { ending: TaskEnding::Complete, reason: None });
    }
    Ok(events)
}

fn fail(task: &Task, reason: &str) -> Result<Vec<TaskEvent>, TaskRefusal> {
    if task.state == TaskState::Failed && task.reason.as_deref() == Some(reason) {
        return Ok(Vec::new());
    }
    alive(task)?;
    said("reason", Some(reason))?;
    let reason = Some(reason.to_owned());
    if task.session.is_none() {
        return Ok(vec![TaskEvent::Ended { state: TaskState::Failed, reason }]);
    }
    if is_cancelled(task) {
        return Ok(Vec::new());
    }
    Ok(vec![TaskEvent::EndAsked { ending: TaskEnding::Fail, reason }])
}

/// Whether a cancel was accepted; a later report of the worker does not undo it.
fn is_cancelled(task: &Task) -> bool {
    matches!(task.ending, Some(TaskEnding::Cancel { .. }))
}

fn retry(task: &Task) -> Result<Vec<TaskEvent>, TaskRefusal> {
    // One that could not begin has not ended, and is tried again all the same.
    if !task.state.is_ended() && task.conflict.is_none() {
        return Err(TaskRefusal::NotNow { task: task.id, state: task.state });
    }
    Ok(vec![TaskEvent::Retried {}])
}

fn edit(task: &Task, spec: &TaskSpec) -> Result<Vec<TaskEvent>, TaskRefusal> {
    alive(task)?;
    if task.state != TaskState::Pending && !(task.state == TaskState::Paused && task.session.is_none()) {
        return Err(TaskRefusal::AtWork { task: task.id, state: task.state });
    }
    check(spec)?;
    if *spec == task.spec {
        return Ok(Vec::new());
    }
    Ok(vec![TaskEvent::Edited { spec: Box::new(spec.clone()) }])
}

fn alive(task: &Task) -> Result<(), TaskRefusal> {
    if task.state.is_ended() {
        return Err(TaskRefusal::Ended { task: task.id, state: task.state });
    }
    Ok(())
}

fn said(field: &'static str, text: Option<&str>) -> Result<(), TaskRefusal> {
    match text {
        Some(text) => Ok(paper::words(field, text, WORDS_CHARS_MAX)?),
        None => Ok(()),
    }
}
