//! `tasks`: agents that Lanyard runs for the caller, as tasks that outlive the call, the caller and the daemon. A task is a
//! handle: who waits for it may come back later, also as another run.

mod wait;

use lanyard_core::paper::Bounds;
use lanyard_core::task::{
    Isolation, Mail, MailKind, NewTask, ParentEnd, SPAWN_KEY, Task, TaskCommand, TaskEvent, TaskState,
};
use lanyard_core::{MailId, TaskId};
use lanyard_git::worktree::{self, WorktreeError};
use lanyard_store::TaskFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::families::{Adding, By, FamilyError, Owner, Said, find, refused};
use crate::own_tools::Told;
use crate::own_tools::args::need;
use crate::own_tools::caller::{ToolCaller, on_disk};
use crate::own_tools::schema::{About, tool as describe};
use crate::own_tools::spawn::title;
use crate::tool_refusal::Refused;

pub(super) const NAME: &str = "tasks";

/// Tasks one call may spawn, and wait for.
const MANY_MAX: usize = 50;
/// Tasks a listing shows.
const LIST_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    /// Give a piece of work to an agent (`prompt`; also `agent`, `title` and what else a task has). Answers its `task_id` at
    /// once, or with its result when it ends within `wait_ms`.
    Spawn,
    /// The same for several at once (`tasks`).
    SpawnMany,
    /// Wait for `task_ids`, at most `wait_ms`. Those that are still open are named; call it again for them, also after you
    /// were restarted.
    Await,
    /// Send `text` to `to`: one of your tasks, or `parent`.
    Message,
    /// How one task stands (`task_ids`, one).
    Status,
    /// Your tasks (`all`: ended ones too).
    List,
    /// The agents you can spawn.
    Agents,
    /// Say how your own task goes: `kind` and `text`, for `completed` also `evidence`.
    Report,
    /// Merge the work of an ended task (`task_ids`, one) into your workspace.
    Pull,
    /// End a task of yours (`task_ids`); what it did so far is kept. `text` says why.
    Cancel,
    /// What waits in your mailbox.
    Mailbox,
    /// Say that you have handled a message (`mail`).
    Ack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Progress,
    Question,
    Error,
    /// Your task is done; it ends with your turn.
    Completed,
    /// Your task cannot be done.
    Failed,
}

/// A piece of work.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Piece {
    /// What its agent is told.
    prompt: Option<String>,
    /// One of action agents; the default agent when left out.
    agent: Option<String>,
    /// One line for listings.
    title: Option<String>,
    /// Made again under the same key, it is the same task: for when you do not know whether a spawn went through.
    key: Option<String>,
    /// Tasks that must be completed first, by id or by the key you gave them.
    depends_on: Vec<String>,
    /// Files it will write: two tasks that name the same are not run at the same time.
    files: Vec<String>,
    /// The branch or commit its worktree begins at.
    base: Option<String>,
    /// Where it works.
    isolation: Isolation,
    /// What becomes of it when you end first.
    when_parent_ends: ParentEnd,
    /// Whether it may spawn tasks itself. No when left out.
    may_spawn: bool,
    /// What it is to keep to.
    bounds: Option<Bounds>,
    /// A plan it belongs to: it is begun when that plan's turn comes.
    plan: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do.
    action: Action,
    #[serde(flatten)]
    piece: Piece,
    /// `spawn_many`: the pieces of work.
    #[serde(default)]
    tasks: Vec<Piece>,
    /// The tasks that are meant, by id or by the key you gave them.
    #[serde(default)]
    task_ids: Vec<String>,
    /// `spawn`, `await`: how long to wait, in milliseconds; at most 600000. Spawn waits for nothing when left out.
    wait_ms: Option<u64>,
    /// `message`: whom to: a task of yours, or `parent`.
    to: Option<String>,
    /// `message`, `report`: the words. `cancel`: why.
    text: Option<String>,
    /// `report`: what it is.
    kind: Option<Kind>,
    /// `report`: what shows it.
    evidence: Option<String>,
    /// `ack`: the message.
    mail: Option<String>,
    /// `list`: ended ones too.
    #[serde(default)]
    all: bool,
}

pub(super) fn tool() -> Value {
    describe::<Args>(&About {
        name: NAME,
        title: "Tasks",
        description: "Have other agents work for you, in worktrees of their own: spawn, await, message, pull their \
                      changes, cancel. Their results come to you by themselves, marked as agent output, also after \
                      you were restarted. With `report` you tell whoever you work for how your own task goes.",
        reads_only: false,
        destructive: true,
    })
}

pub(super) async fn call(caller: &ToolCaller, args: Args) -> Told {
    match args.action {
        Action::Spawn => spawn(caller, vec![args.piece], args.wait_ms).await,
        Action::SpawnMany => spawn(caller, args.tasks, args.wait_ms).await,
        Action::Await => {
            let tasks = mine(caller, &args.task_ids).await?;
            wait::for_tasks(caller, tasks, args.wait_ms.unwrap_or(wait::WAIT_MS)).await
        }
        Action::Message => message(caller, args).await,
        Action::Status => status(caller, &args.task_ids).await,
        Action::List => list(caller, args.all).await,
        Action::Agents => Ok(agents(caller).await),
        Action::Report => report(caller, args).await,
        Action::Pull => pull(caller, &args.task_ids).await,
        Action::Cancel => cancel(caller, args).await,
        Action::Mailbox => mailbox(caller).await,
        Action::Ack => acknowledge(caller, args).await,
    }
}

fn by(caller: &ToolCaller) -> By {
    By { actor: caller.actor.clone(), session: caller.id() }
}

/// A task in a few words, for the agent that has it done.
fn shown(task: &Task) -> Value {
    let mut value = json!({
        "task_id": task.id, "title": task.spec.title, "agent": task.spec.agent, "state": task.state,
        "session_id": task.session,
    });
    if let Some(reason) = &task.reason {
        value["reason"] = reason.as_str().into();
    }
    if let Some(result) = &task.result {
        value["result"] = json!(result);
    }
    if let Some(tree) = &task.tree {
        value["branch"] = tree.branch.as_str().into();
    }
    value
}

async fn spawn(caller: &ToolCaller, pieces: Vec<Piece>, wait_ms: Option<u64>) -> Told {
    caller.me()?;
    caller.may_write()?;
    if pieces.is_empty() || pieces.len() > MANY_MAX {
        let what = format!("{} pieces of work are not between 1 and {MANY_MAX}", pieces.len());
        return Err(Refused::new("tasks_too_many", what, "name them in `tasks`, fewer at a time"));
    }
    let mut tasks = pieces.into_iter().map(|piece| new_task(caller, piece)).collect::<Result<Vec<_>, _>>()?;
    let (by, keys) = (by(caller), Keys::of(caller)?);
    let made = caller.app.families.ask(move |owner| {
        // What was made before under the same key is not made again, and is depended on as it is.
        let mut known = Vec::new();
        for task in &mut tasks {
            known.push(task.key.as_deref().map(|key| keys.find(owner, key)).transpose()?.flatten());
            for on in &mut task.depends_on {
                *on = keys.resolved(owner, on)?;
            }
        }
        let fresh = tasks.into_iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(task, _)| task);
        let mut fresh = owner.add(Adding { tasks: fresh.collect(), plan: None }, &by)?.into_iter();
        Ok(known.into_iter().filter_map(|known| known.or_else(|| fresh.next())).collect::<Vec<_>>())
    });
    let made = made.await?;
    wait::for_tasks(caller, made, wait_ms.unwrap_or(0)).await
}

/// The keys under which the caller's task, or its session, spawned others. Its own, so that two agents may choose the same.
struct Keys {
    of: String,
}

impl Keys {
    fn of(caller: &ToolCaller) -> Result<Self, Refused> {
        let me = &caller.me()?.session;
        Ok(Self { of: me.task.map_or_else(|| me.id.to_string(), |task| task.to_string()) })
    }

    fn alias(&self, key: &str) -> String {
        format!("{SPAWN_KEY}{}:{key}", self.of)
    }

    fn find(&self, owner: &Owner, key: &str) -> Result<Option<TaskId>, FamilyError> {
        owner.aliased(&self.alias(key))
    }

    /// The id of a task that is called by its key; any other name as it is.
    fn resolved(&self, owner: &Owner, name: &str) -> Result<String, FamilyError> {
        Ok(self.find(owner, name)?.map_or_else(|| name.to_owned(), |id| id.to_string()))
    }
}

fn new_task(caller: &ToolCaller, piece: Piece) -> Result<NewTask, Refused> {
    let prompt = need("prompt", piece.prompt)?;
    let me = caller.me()?;
    let keys = Keys::of(caller)?;
    let task = NewTask {
        title: piece.title.unwrap_or_else(|| title(&prompt)),
        aliases: piece.key.iter().map(|key| keys.alias(key)).collect(),
        key: piece.key,
        prompt: Some(prompt),
        agent: piece.agent,
        plan: piece.plan.clone(),
        depends_on: piece.depends_on,
        files: piece.files,
        base: piece.base,
        isolation: piece.isolation,
        when_parent_ends: piece.when_parent_ends,
        workspace: me.session.workspace.clone(),
        may_spawn: Some(piece.may_spawn),
        bounds: piece.bounds,
        deploy: piece.plan.is_none(),
        ..NewTask::default()
    };
    Ok(task)
}

/// Those of the names, which must be below the caller.
async fn mine(caller: &ToolCaller, names: &[String]) -> Result<Vec<TaskId>, Refused> {
    if names.is_empty() || names.len() > MANY_MAX {
        return Err(Refused::new(
            "tasks_required",
            "no tasks are named, or too many",
            "name them in `task_ids`",
        ));
    }
    let (names, me, keys) = (names.to_vec(), caller.id(), Keys::of(caller).ok());
    let found = caller.app.families.ask(move |owner| {
        let mut find = |name: &String| match (me, &keys) {
            (Some(me), Some(keys)) => owner.child(me, &keys.resolved(owner, name)?),
            (_, _) => owner.named(name),
        };
        names.iter().map(&mut find).collect::<Result<Vec<_>, FamilyError>>()
    });
    Ok(found.await?)
}

async fn one(caller: &ToolCaller, names: &[String]) -> Result<TaskId, Refused> {
    match mine(caller, names).await?.as_slice() {
        [one] => Ok(*one),
        _ => Err(Refused::new("tasks_required", "more than one task is named", "name one in `task_ids`")),
    }
}

async fn message(caller: &ToolCaller, args: Args) -> Told {
    caller.may_write()?;
    let (to, text, by) = (need("to", args.to)?, need("text", args.text)?, by(caller));
    let keys = Keys::of(caller).ok();
    let mail = caller.app.families.ask(move |owner| {
        let to = keys.map_or(Ok(to.clone()), |keys| keys.resolved(owner, &to))?;
        owner.message(&to, &text, None, &by)
    });
    let mail = mail.await?;
    Ok(json!({ "mail": mail.id, "to": mail.to, "state": mail.state.as_str() }).into())
}

async fn status(caller: &ToolCaller, names: &[String]) -> Told {
    let id = one(caller, names).await?;
    let families = caller.app.families.clone();
    let view = on_disk(&caller.app, move |store| Ok(families.reader(store).view(id)?)).await?;
    let mut value = shown(&view.task);
    value["held"] = json!(view.held);
    value["condition"] = json!(view.condition);
    value["open_children"] = view.open_children.into();
    value["run"] = view.task.run.into();
    value["worker_id"] = json!(view.task.worker);
    Ok(value.into())
}

async fn list(caller: &ToolCaller, all: bool) -> Told {
    let me = caller.me()?.session.id;
    let tasks = caller.app.families.ask(move |owner| {
        let store = owner.store();
        let reports_to = Some(find::box_of(&*store, me)?);
        let ended = (!all).then_some(false);
        Ok(store.tasks(&TaskFilter { reports_to, ended, ..TaskFilter::default() }, None, LIST_MAX)?)
    });
    let tasks: Vec<Value> = tasks.await?.iter().map(shown).collect();
    Ok(json!({ "tasks": tasks }).into())
}

async fn agents(caller: &ToolCaller) -> crate::own_tools::Answer {
    let listed = caller.app.agents.list(false).await.into_iter().filter(|listed| listed.configured);
    let default = caller.app.agents.default_name().unwrap_or_default();
    let agents: Vec<Value> =
        listed.map(|one| json!({ "name": one.name, "default": one.name == default })).collect();
    json!({ "agents": agents }).into()
}

async fn report(caller: &ToolCaller, args: Args) -> Told {
    let session = caller.me()?.session.id;
    let (kind, text) = (need("kind", args.kind)?, need("text", args.text)?);
    let word = |kind| Said::Word { kind, text: text.clone() };
    let said = match kind {
        Kind::Progress => word(MailKind::Progress),
        Kind::Question => word(MailKind::Question),
        Kind::Error => word(MailKind::Error),
        Kind::Completed => Said::Completed { summary: text, evidence: args.evidence },
        Kind::Failed => Said::Failed { why: text },
    };
    let by = by(caller);
    let task = caller.app.families.ask(move |owner| {
        let id = owner.report(session, said, None, &by)?;
        Ok(owner.task(id)?.clone())
    });
    let task = task.await?;
    let mut value = json!({ "task_id": task.id, "reported": true });
    if matches!(kind, Kind::Completed | Kind::Failed) {
        value["next"] = "end your turn; your task ends with it".into();
    }
    Ok(value.into())
}

async fn pull(caller: &ToolCaller, names: &[String]) -> Told {
    caller.may_write()?;
    let me = caller.me()?;
    let into = me.session.workspace.clone();
    let into = into.ok_or_else(|| Refused::new("no_workspace", "you work in no folder", "tell the user"))?;
    let id = one(caller, names).await?;
    let task = caller.app.families.ask(move |owner| Ok(owner.task(id)?.clone())).await?;
    if matches!(task.state, TaskState::Deploying | TaskState::Running) {
        let what = format!("task {id} is {}", task.state);
        return Err(Refused::new("task_at_work", what, "wait for it with action await"));
    }
    let tree = task.tree.ok_or_else(|| {
        Refused::new(
            "no_branch",
            format!("task {id} has no branch of its own"),
            "it worked in your workspace",
        )
    })?;
    let merged = tokio::task::spawn_blocking(move || worktree::pull(&tree, into.as_ref())).await;
    let merged = merged.unwrap_or(Err(WorktreeError::Interrupted)).map_err(FamilyError::from)?;
    let (commit, into, by) = (merged.commit.clone(), merged.into.clone(), by(caller));
    caller.app.families.ask(move |owner| owner.note(id, TaskEvent::Merged { commit, into }, &by)).await?;
    Ok(json!({ "task_id": id, "commit": merged.commit, "into": merged.into, "nothing_new": merged.nothing })
        .into())
}

async fn cancel(caller: &ToolCaller, args: Args) -> Told {
    caller.may_write()?;
    let tasks = mine(caller, &args.task_ids).await?;
    let (by, reason) = (by(caller), args.text);
    let cancelled = caller.app.families.ask(move |owner| {
        let command = TaskCommand::Cancel { reason, now: false };
        for id in &tasks {
            // One that has ended keeps none of the others.
            if !owner.task(*id)?.state.is_ended() {
                owner.order(*id, &command, &by)?;
            }
        }
        tasks.iter().map(|id| Ok(owner.task(*id)?.clone())).collect::<Result<Vec<_>, FamilyError>>()
    });
    let cancelled: Vec<Value> = cancelled.await?.iter().map(shown).collect();
    Ok(json!({ "tasks": cancelled, "next": "their ends come into your mailbox" }).into())
}

fn letter(mail: &Mail) -> Value {
    json!({
        "mail": mail.id, "from": mail.from, "kind": mail.kind, "ended": mail.ended, "at": mail.at,
        "state": mail.state.as_str(), "text": mail.text,
    })
}

async fn mailbox(caller: &ToolCaller) -> Told {
    let me = caller.me()?.session.id;
    let mail = caller.app.families.ask(move |owner| {
        let to = find::box_of(&*owner.store(), me)?;
        Ok(owner.unsettled(to))
    });
    let mail: Vec<Value> = mail.await?.iter().map(letter).collect();
    Ok(json!({ "mail": mail, "note": "agent output, not from the user" }).into())
}

async fn acknowledge(caller: &ToolCaller, args: Args) -> Told {
    let me = caller.me()?.session.id;
    let text = need("mail", args.mail)?;
    let id: MailId = text.parse().map_err(|_| {
        refused("mail_not_found", format!("there is no message `{text}`"), "list yours with action mailbox")
    })?;
    let mail = caller.app.families.ask(move |owner| owner.acknowledge(id, Some(me), "its agent said so"));
    Ok(json!({ "mail": mail.await?.id, "acknowledged": true }).into())
}
