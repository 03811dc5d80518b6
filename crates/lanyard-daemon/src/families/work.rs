//! Doing what a task wants: a worktree, a session, a prompt, an end. Each thing has an id or a key that was written down
//! before, so that it is done once however often it is tried.

use std::path::{Path, PathBuf};

use lanyard_core::paper::{Bounds, Brief, instructions};
use lanyard_core::session::{Command, Delivery, InboxChange, Message, NewSession, Refusal, StopScope};
use lanyard_core::task::{
    BaseConflict, Captured, TASK_SOURCE, Task, TaskState, TaskWant, Tree, WorkerKind, branch_name, schedule,
};
use lanyard_core::text::{self, NAME_CHARS_MAX};
use lanyard_core::{Actor, Cause, NoteId, SessionId, TurnId, WorkerId};
use lanyard_git::worktree::{self, WorktreeError};
use lanyard_store::Store;

use crate::families::prerequisites::work_before;
use crate::families::{FamilyError, Tools, plans};
use crate::notice::Left;
use lanyard_base::failpoint;
use lanyard_engine::engine::{Ask, AskError, Key, Request};

/// What came of it.
#[derive(Debug)]
pub(super) enum Done {
    /// It is done; the session will show it.
    Asked,
    /// Its agent is told, now or when its turn comes.
    Prompted,
    /// The worktree is there, and the session is not.
    TreeMade {
        tree: Tree,
    },
    /// The work of its prerequisites does not fit together; nothing was made.
    Conflicted(BaseConflict),
    /// What the session left is kept.
    Settled(Box<Settled>),
    Failed {
        why: String,
        for_good: bool,
    },
}

#[derive(Debug)]
pub(super) struct Settled {
    pub(super) state: TaskState,
    pub(super) reason: Option<String>,
    pub(super) captured: Option<Captured>,
    pub(super) capture_failed: Option<String>,
    pub(super) tree_removed: bool,
    /// Commits its branch has of its own, where it has one.
    pub(super) commits: Option<u32>,
    pub(super) left: Left,
}

pub(super) async fn carry_out(tools: &Tools, task: &Task, want: TaskWant, parent: Option<SessionId>) -> Done {
    let (Some(session), Some(worker)) = (task.session, task.worker) else {
        return Done::Failed { why: "it was not deployed".to_owned(), for_good: true };
    };
    failpoint::hit("families_before_act");
    let done = match want {
        TaskWant::Create => create(tools, task, session, worker, parent).await,
        TaskWant::Prompt { first } => prompt(tools, task, session, parent, first).await,
        TaskWant::CancelTurn => {
            let why =
                if task.state == TaskState::Paused { "its task was paused" } else { "it is begun again" };
            let reason = Some(why.to_owned());
            command(tools, task, session, Command::CancelTurn { reason }, None).await
        }
        TaskWant::Stop { now } => {
            let reason = task.reason.as_deref().map(as_reason);
            let stop = Command::Stop { reason, scope: StopScope::Subtree, now };
            command(tools, task, session, stop, None).await
        }
        TaskWant::EndSession { completed: true } => {
            let reason = task.result.as_ref().map(|result| as_reason(&result.summary));
            command(tools, task, session, Command::Complete { reason }, None).await
        }
        TaskWant::EndSession { completed: false } => {
            let reason = task.reason.as_deref().map(as_reason);
            command(tools, task, session, Command::Fail { reason }, None).await
        }
        TaskWant::Settle { state, reason } => settle(tools, task, session, state, reason).await,
        TaskWant::Restart => Done::Asked,
    };
    failpoint::hit("families_after_act");
    done
}

async fn create(
    tools: &Tools,
    task: &Task,
    session: SessionId,
    worker: WorkerId,
    parent: Option<SessionId>,
) -> Done {
    let tree = match tree(tools, task).await {
        Ok(tree) => tree,
        Err(WorktreeError::BaseConflict { branch, with, files }) => {
            return Done::Conflicted(BaseConflict { branch, with, files });
        }
        Err(error) => return Done::Failed { why: error.to_string(), for_good: error.is_for_good() },
    };
    // Written down before anybody works there: what a worktree holds is kept only by who knows of it.
    if let Some(tree) = tree.clone().filter(|tree| task.tree.as_ref() != Some(tree)) {
        return Done::TreeMade { tree };
    }
    let workspace = tree.map(|tree| tree.path).or_else(|| task.workspace.clone());
    let external = task.spec.kind == WorkerKind::External;
    let agent = match (&task.spec.agent, tools.agents.default_name()) {
        (Some(agent), _) => Some(agent.clone()),
        (None, _) if external => None,
        (None, Ok(agent)) => Some(agent),
        (None, Err(refusal)) => return Done::Failed { why: refusal.title, for_good: true },
    };
    let new = NewSession {
        title: Some(task.spec.title.clone()),
        agent,
        source: Some(if external { lanyard_core::session::EXTERNAL } else { TASK_SOURCE }.to_owned()),
        workspace,
        plan: task.plan.map(|plan| plan.to_string()),
        leaf: !task.spec.may_spawn,
        purpose: Some("task".to_owned()),
        task: Some((task.id, worker)),
        ..NewSession::default()
    };
    let ask = Ask::Create { id: session, new: Box::new(new), parent };
    let key = Key::once(&format!("task session\0{}\0{session}", task.id));
    match ask_engine(tools, ask, Some(key)).await {
        Ok(()) => Done::Asked,
        // It ended meanwhile; without it the session is a root.
        Err(error @ AskError::Refused(Refusal::ParentEnded { .. })) => {
            Done::Failed { why: error.to_string(), for_good: false }
        }
        Err(AskError::Refused(refusal)) => Done::Failed { why: refusal.to_string(), for_good: true },
        Err(error) => Done::Failed { why: error.to_string(), for_good: false },
    }
}

/// Its own worktree, where it wants one and can have one.
async fn tree(tools: &Tools, task: &Task) -> Result<Option<Tree>, WorktreeError> {
    let (root, store, task) = (tools.trees.root(), tools.store.clone(), task.clone());
    let made = blocking(move || make_tree(&root, &*store, &task));
    let made = made.await.unwrap_or(Err(WorktreeError::Interrupted))?;
    if let Some(tree) = &made {
        tools.trees.prepare(tree).await?;
    }
    Ok(made)
}

fn make_tree(root: &Path, store: &dyn Store, task: &Task) -> Result<Option<Tree>, WorktreeError> {
    if task.spec.kind != WorkerKind::Background {
        return Ok(None);
    }
    let known = task.tree.as_ref().filter(|tree| !tree.removed && Path::new(&tree.path).is_dir());
    if known.is_some() {
        return Ok(known.cloned());
    }
    let Some(workspace) = task.workspace.as_ref().map(PathBuf::from) else { return Ok(None) };
    let base = task.spec.base.clone();
    let (folder, base) = match branch_of(root, &workspace, store) {
        Some(gone) => (PathBuf::from(gone.repository), base.or(Some(gone.branch))),
        None => (workspace, base),
    };
    if !schedule::wants_tree(task.spec.isolation, worktree::is_repository(&folder)) {
        return Ok(None);
    }
    // Tried again: without the work of those before it, it must not begin.
    let work = work_before(store, task).map_err(|_| WorktreeError::Interrupted)?;
    let name = task.id.to_string();
    let branch = branch(store, task).map_err(|_| WorktreeError::Interrupted)?;
    match worktree::create_after(root, &folder, &name, branch.as_deref(), base.as_deref(), &work) {
        // Somebody has a branch of that name. The task's id is nobody else's.
        Err(WorktreeError::BranchExists { .. }) if branch.is_some() && task.tree.is_none() => {
            worktree::create_after(root, &folder, &name, None, base.as_deref(), &work)
        }
        made => made,
    }
    .map(Some)
}

/// The branch it had before, else the one named by its plan and its key. Nothing when its id is to name it.
fn branch(store: &dyn Store, task: &Task) -> Result<Option<String>, FamilyError> {
    if let Some(tree) = &task.tree {
        return Ok(Some(tree.branch.clone()));
    }
    let Some(key) = &task.spec.key else { return Ok(None) };
    let plan = match task.plan.map(|plan| plans::find(store, &plan.to_string(), None)) {
        Some(Ok((_, plan))) => Some(plan.name.unwrap_or(plan.title)),
        None | Some(Err(FamilyError::NoPlan(_))) => None,
        Some(Err(error)) => return Err(error),
    };
    Ok(Some(branch_name(plan.as_deref(), key, task.id)))
}

/// What is to be taken away in the end: also a worktree that was begun by a daemon that did not live to write it down.
fn tree_to_settle(root: &Path, store: &dyn Store, task: &Task) -> Result<Option<Tree>, WorktreeError> {
    match task.tree.clone().filter(|tree| !tree.removed) {
        Some(tree) => Ok(Some(tree)),
        None if worktree::was_begun(root, &task.id.to_string()) => make_tree(root, store, task),
        None => Ok(None),
    }
}

/// The worktree that `folder` was, if it belonged to a task that has ended: its branch can still be the base.
fn branch_of(root: &Path, folder: &Path, store: &dyn Store) -> Option<Tree> {
    let root = root.canonicalize().ok()?;
    if folder.exists() || folder.parent() != Some(&root) {
        return None;
    }
    let task = folder.file_name()?.to_str()?.parse().ok()?;
    store.task(task).ok()??.tree
}

async fn prompt(
    tools: &Tools,
    task: &Task,
    session: SessionId,
    parent: Option<SessionId>,
    first: bool,
) -> Done {
    let text = if first { first_words(tools, task, session, parent) } else { Ok(go_on(task)) };
    let text = match text {
        Ok(text) => text,
        Err(error) => return Done::Failed { why: error.to_string(), for_good: true },
    };
    let (now, clock) = (tools.clock.now(), &tools.clock);
    // A chat may be in the middle of something else.
    let delivery = if task.spec.kind == WorkerKind::Chat { Delivery::Queue } else { Delivery::Reject };
    let message = Message {
        turn: TurnId::mint(now, clock.random()),
        note: NoteId::mint(now, clock.random()),
        client_turn_id: None,
        prompt: text,
        parts: Vec::new(),
        delivery,
        memory: None,
        choice: lanyard_core::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    let send = Command::Inbox(InboxChange::Send(Box::new(message)).into());
    let key = Key::once(&format!("task prompt\0{}\0{}\0{}", task.id, task.run, task.seq));
    match command(tools, task, session, send, Some(key)).await {
        Done::Asked => Done::Prompted,
        done @ (Done::Prompted
        | Done::TreeMade { .. }
        | Done::Conflicted(_)
        | Done::Settled(_)
        | Done::Failed { .. }) => done,
    }
}

/// What it needs to know first, then its task.
fn first_words(
    tools: &Tools,
    task: &Task,
    session: SessionId,
    parent: Option<SessionId>,
) -> Result<String, lanyard_core::paper::PaperRefusal> {
    if task.spec.kind == WorkerKind::Chat {
        return Ok(task.spec.prompt.clone());
    }
    let nonce = tools.tokens.nonce(session);
    let plan = task.plan.map(|plan| plan.to_string());
    let of_files = || Bounds { may_change: task.spec.files.clone(), ..Bounds::default() };
    let bounds = task.spec.bounds.clone().unwrap_or_else(of_files);
    let workspace = task.tree.as_ref().map(|tree| tree.path.as_str()).or(task.workspace.as_deref());
    Brief {
        workspace,
        plan: plan.as_deref(),
        phase: None,
        session,
        parent,
        nonce: &nonce,
        caller: instructions::CallAttribution::ByConnection,
        agent: task.agent(),
        bounds: &bounds,
        may_spawn: task.spec.may_spawn,
        subagents: task.spec.subagents,
        prompt: &task.spec.prompt,
    }
    .text()
}

fn go_on(task: &Task) -> String {
    format!(
        "Your work on the task \"{}\" was interrupted. Look at what is done already, do not repeat what cannot be \
         repeated, and go on until it is finished.",
        task.spec.title
    )
}

async fn command(tools: &Tools, task: &Task, session: SessionId, command: Command, key: Option<Key>) -> Done {
    let name = command.name();
    match ask_engine(tools, Ask::Do { session, command }, key).await {
        Ok(()) => Done::Asked,
        // It has ended meanwhile, which the next look shows.
        Err(AskError::Refused(
            Refusal::Ended { .. }
            | Refusal::Deleted
            | Refusal::NoTurn
            | Refusal::Busy { .. }
            | Refusal::Stopping,
        )) => Done::Asked,
        Err(AskError::Unknown(_) | AskError::Deleted(_)) => Done::Asked,
        Err(error) => {
            tracing::debug!(task = %task.id, %session, name, %error, "a task's session did not do what it was asked");
            Done::Failed { why: error.to_string(), for_good: false }
        }
    }
}

/// Commits what its worktree holds, takes the worktree away, and reads what its agent left.
async fn settle(
    tools: &Tools,
    task: &Task,
    session: SessionId,
    state: TaskState,
    reason: Option<String>,
) -> Done {
    let (store, root, task) = (tools.store.clone(), tools.trees.root(), task.clone());
    let message =
        format!("{}\n\nWork of {} that was not committed, kept by Lanyard.", task.spec.title, task.id);
    let settled = blocking(move || {
        let loaded = store.load(session).ok().flatten();
        let left = loaded.and_then(|loaded| Left::of(&*store, &loaded.session).ok()).unwrap_or_default();
        let mut settled = Settled {
            state,
            reason,
            captured: None,
            capture_failed: None,
            tree_removed: false,
            commits: None,
            left,
        };
        match tree_to_settle(&root, &*store, &task) {
            Ok(Some(tree)) => put_away(&tree, &message, &task, &mut settled),
            Ok(None) => {}
            Err(error) => settled.capture_failed = Some(error.to_string()),
        }
        settled
    })
    .await;
    match settled {
        Some(settled) => Done::Settled(Box::new(settled)),
        None => Done::Failed { why: "what it left could not be kept".to_owned(), for_good: false },
    }
}

/// Commits what a worktree holds, takes it away, and counts the commits of its branch.
fn put_away(tree: &Tree, message: &str, task: &Task, settled: &mut Settled) {
    if Path::new(&tree.path).exists() {
        match worktree::capture(tree, message) {
            Ok(captured) => {
                settled.captured = captured;
                match worktree::remove(tree) {
                    Ok(()) => settled.tree_removed = true,
                    Err(error) => settled.capture_failed = Some(error.to_string()),
                }
            }
            Err(error) => settled.capture_failed = Some(error.to_string()),
        }
    } else {
        // Somebody took it away, or a daemon that died of it: what that one left goes as well.
        if let Err(error) = worktree::remove(tree) {
            tracing::warn!(task = %task.id, %error, "what is left of a worktree could not be taken away");
        }
        settled.tree_removed = true;
    }
    match worktree::own_commits(tree) {
        Ok(commits) => settled.commits = commits,
        Err(error) => tracing::warn!(task = %task.id, %error, "the commits of a branch could not be counted"),
    }
}

pub(super) async fn ask_engine(tools: &Tools, ask: Ask, key: Option<Key>) -> Result<(), AskError> {
    let actor = Actor::system("families");
    let cause = Some(Cause::Signal("families".to_owned()));
    let request = Request { ask, actor, cause, keys: key.into_iter().collect() };
    tools.engine.ask(request).await.map(|_| ())
}

/// Nothing when it was cut off.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// A reason for the log: words that may be none.
pub(super) fn as_reason(words: &str) -> String {
    let line = text::one_line(words, NAME_CHARS_MAX);
    if line.is_empty() { "no reason was given".to_owned() } else { line }
}
