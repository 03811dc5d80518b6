//! The one owner of tasks and mail.
//!
//! Nothing here remembers what it was about to do. The owner looks at a task's session, writes down what is new, and does
//! what the task's state wants; a daemon that comes back looks again and wants the same. What is done outside (a
//! worktree, a session, a prompt) is done under keys and ids that were written down before, so that done twice it is done
//! once.

mod add;
pub(crate) mod find;
pub(crate) mod halt;
mod health;
mod held;
mod kin;
mod look;
mod orders;
mod owner;
mod places;
pub(crate) mod plans;
mod post;
pub(crate) mod prerequisites;
pub(crate) mod read;
mod reports;
mod work;

use std::sync::Arc;
use std::time::Duration;

use lanyard_core::refusal::RefusalKind;
use lanyard_core::task::TaskRefusal;
use lanyard_core::{Actor, Rules, SessionId, TaskId, refusals};
use lanyard_git::worktree::WorktreeError;
use lanyard_store::{Store, StoreError};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::auth::TokenBook;
use crate::refusal::{Stated, refuses};
use crate::trees::OwnTrees;
pub(crate) use add::Adding;
use lanyard_agents::agents::roster::Roster;
use lanyard_base::clock::Clock;
use lanyard_base::error_chain;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::engine::{AskError, Engine};
use lanyard_engine::hub::{Hub, Of, Over};
pub(crate) use owner::Owner;
use read::{Published, TaskReader};
pub(crate) use reports::Said;
use work::Done;

/// Requests and news that may wait for the owner.
const INBOX_MAX: usize = 4_096;
/// Changed sessions passed on at a time.
const CHANGED_MAX: usize = 1_000;
/// How often it looks at what only time changes.
const TICK: Duration = Duration::from_secs(1);

/// What the owner works with.
pub(crate) struct Tools {
    engine: Engine,
    store: Arc<dyn Store>,
    clock: Arc<Clock>,
    settings: LiveConfig,
    agents: Roster,
    tokens: Arc<TokenBook>,
    /// Worktrees are made and set up there.
    trees: OwnTrees,
    runtime: tokio::runtime::Handle,
}

impl Tools {
    /// In the runtime of whoever calls.
    pub(crate) fn new(
        engine: &Engine,
        store: &Arc<dyn Store>,
        clock: &Arc<Clock>,
        settings: &LiveConfig,
        agents: &Roster,
        tokens: &Arc<TokenBook>,
        trees: &OwnTrees,
    ) -> Self {
        Self {
            engine: engine.clone(),
            store: store.clone(),
            clock: clock.clone(),
            settings: settings.clone(),
            agents: agents.clone(),
            tokens: tokens.clone(),
            trees: trees.clone(),
            runtime: tokio::runtime::Handle::current(),
        }
    }

    /// The rules in use.
    fn rules(&self) -> Rules {
        self.settings.rules()
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools").finish_non_exhaustive()
    }
}

/// Who asks: a person, or a session's agent.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub(crate) actor: Actor,
    pub(crate) session: Option<SessionId>,
}

refusals! {
    /// Why something about a family was not done.
    #[derive(Debug, Clone, thiserror::Error)]
    pub(crate) enum FamilyError {
        NoTask(name: String) => "task_not_found", NotFound
            ("there is no task `{0}`")
            ("list the tasks with `lanyard task ls --all`") agents ("list yours with tasks, action list");
        NoPlan(name: String) => "plan_not_found", NotFound
            ("there is no plan `{0}`")
            ("list the plans with `lanyard plan ls`") agents ("list the plans with memory_plan");
        NoMail(name: String) => "mail_not_found", NotFound
            ("there is no message `{0}`")
            ("list the mail with `lanyard mailbox --all`") agents ("list yours with tasks, action mailbox");
        Forged => "run_token_bad", Forbidden
            ("this token is not one of a run of this task")
            ("get the token of the task's run with `lanyard task token`") agents ("use the token of your own run");
        Unavailable(why: String) => "storage_unavailable", Unavailable
            ("the journal cannot be read or written: {0}")
            ("check the disk with `lanyard doctor`, then repeat it") agents ("try again in a moment");
        Closing => "daemon_closing", Unavailable
            ("the daemon is shutting down")
            ("repeat it once it runs again") agents ("try again once it runs again");
    }
    via { Task(#[from] TaskRefusal), Refused(Stated), Ask(#[from] AskError) }
}
refuses!(FamilyError);

impl From<StoreError> for FamilyError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error_chain(&error))
    }
}

impl From<WorktreeError> for FamilyError {
    fn from(error: WorktreeError) -> Self {
        let (code, kind, advice) = (error.code(), error.kind(), error.advice());
        Self::Refused(Stated { code, kind, what: error.to_string(), advice })
    }
}

/// A refusal because of how things stand.
pub(crate) fn refused(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> FamilyError {
    stated(code, RefusalKind::Conflict, what.into(), advice.into())
}

/// A refusal because of the request itself.
pub(crate) fn wrong(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> FamilyError {
    stated(code, RefusalKind::Invalid, what.into(), advice.into())
}

/// A refusal of the given kind, but for the codes that have a kind of their own.
fn stated(code: &'static str, kind: RefusalKind, what: String, advice: String) -> FamilyError {
    let kind = match code {
        "storage_unavailable" => RefusalKind::Unavailable,
        "id_unknown" | "box_unknown" | "session_not_found" => RefusalKind::NotFound,
        _ => kind,
    };
    FamilyError::Refused(Stated { code, kind, what, advice })
}

type Answer = Box<dyn FnOnce(Result<(), FamilyError>) + Send>;
type Job = Box<dyn FnOnce(&mut Owner) -> Answer + Send>;

enum Input {
    Job(Job),
    /// Something about these sessions is different.
    Changed(Vec<SessionId>),
    /// These sessions ended.
    Ended(Vec<SessionId>),
    /// So much changed that nobody knows what.
    ChangedAll,
    Done {
        task: TaskId,
        done: Done,
    },
    Gave(post::Gave),
    Tick,
    Stop,
}

/// A handle to the owner; clones share it.
#[derive(Debug, Clone)]
pub struct Families {
    inbox: mpsc::Sender<Input>,
    /// Told when tasks have ended.
    ends: Arc<Notify>,
    published: Published,
    settings: LiveConfig,
}

impl Families {
    /// Has the owner do something, and waits until it is on disk.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Owner) -> Result<T, FamilyError> + Send + 'static,
    ) -> Result<T, FamilyError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |owner| {
            let result = work(owner);
            Box::new(move |written| {
                // A caller that went away misses its answer; what was written stays.
                let _ = answer.send(written.and(result));
            })
        });
        self.inbox.send(Input::Job(job)).await.map_err(|_| FamilyError::Closing)?;
        answered.await.map_err(|_| FamilyError::Closing)?
    }

    /// A reader of tasks and plans, beside the owner.
    pub(crate) fn reader<'a>(&self, store: &'a dyn Store) -> TaskReader<'a> {
        TaskReader::new(store, self.settings.rules().families, &self.published)
    }

    /// Waits until a task ends, for as long as that takes.
    pub(crate) fn next_end(&self) -> tokio::sync::futures::Notified<'_> {
        self.ends.notified()
    }

    async fn tell(&self, input: Input) {
        let _ = self.inbox.send(input).await;
    }

    pub async fn stop(&self) {
        self.tell(Input::Stop).await;
    }
}

/// Starts the owner's thread, and what tells it of changes and of time.
pub(crate) fn start(
    tools: Tools,
    hub: &Arc<Hub>,
) -> std::io::Result<(Families, std::thread::JoinHandle<()>)> {
    let (inbox, outlet) = mpsc::channel(INBOX_MAX);
    let (published, settings) = (Published::default(), tools.settings.clone());
    let families = Families { inbox, ends: Arc::default(), published, settings };
    let runtime = tools.runtime.clone();
    runtime.spawn(watch(families.clone(), hub.clone(), Of::Structure));
    runtime.spawn(watch(families.clone(), hub.clone(), Of::Ends));
    runtime.spawn(tick(families.clone()));
    let owner = Owner::new(Arc::new(tools), families.clone());
    let thread =
        std::thread::Builder::new().name("lanyard-families".to_owned()).spawn(move || owner.run(outlet))?;
    Ok((families, thread))
}

async fn watch(families: Families, hub: Arc<Hub>, of: Of) {
    loop {
        let changes = hub.changes(of);
        // What changed before anybody watched is looked at whole.
        families.tell(Input::ChangedAll).await;
        loop {
            match changes.wait().await {
                Ok(()) if of == Of::Ends => families.tell(Input::Ended(changes.take(CHANGED_MAX))).await,
                Ok(()) => families.tell(Input::Changed(changes.take(CHANGED_MAX))).await,
                Err(Over::Behind) => break,
                Err(Over::Closing) => return,
            }
        }
    }
}

async fn tick(families: Families) {
    let mut every = tokio::time::interval(TICK);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !families.inbox.is_closed() {
        every.tick().await;
        // A busy owner looks by itself.
        let _ = families.inbox.try_send(Input::Tick);
    }
}
