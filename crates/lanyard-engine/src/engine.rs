//! The engine owns the live sessions, and commits everything: events of sessions, and the records of tasks, mail, flows and
//! notifications, whose own modules decide about them. It drains everything that is ready, appends once, publishes, and
//! answers last. What piled up during one commit is the next commit's batch.
//!
//! Its rounds are made by its own thread, but for a request that is the only one, whose caller need not wait for another
//! thread to wake. The round holds the worker's lock, and nothing else can reach a session's state.

mod ask;
mod behind;
mod calls;
mod commit;
mod decisions;
mod draft;
mod halting;
mod import;
mod records;
mod residents;
mod sharing;
mod spending;
mod turn_span;
mod turns;
mod worker;
mod worker_lock;

use lanyard_core::journal::Damage;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lanyard_core::memory::MemoryPolicy;
use lanyard_core::session::{
    Call, Command, Effect, Import, Lead, NewSession, Passage, PastEvent, Refusal, Returned, Signal,
    TurnResult,
};
use lanyard_core::{Actor, Cause, Outcome, SessionId, refusals};
use lanyard_store::{Durability, KeyHash, Loss, RecordBatch, Store};
use tokio::runtime::RuntimeFlavor;
use tokio::sync::{mpsc, oneshot};

use crate::call_flags::Flags;
use crate::continuity::ContinuityCounter;
use crate::hub::Hub;
use crate::live_runs::LiveRuns;
use crate::presence::Seen;
use crate::redaction::Redaction;
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;

use behind::Behind;
pub use halting::{Halted, Halting};
pub use spending::{BudgetStatus, day_zone};
pub use turn_span::TurnSpan;
pub use turns::Sending;
pub use worker::incarnation;
use worker_lock::WorkerLock;

/// Inputs that may wait. Beyond that a caller waits to get in, and is told when it took too long.
const INBOX_MAX: usize = 4_096;
/// How long a caller waits for a place in the inbox.
const INBOX_WAIT: Duration = Duration::from_secs(5);

/// A handle to the engine; clones share it.
#[derive(Debug, Clone)]
pub struct Engine {
    inbox: mpsc::Sender<Input>,
    worker_lock: WorkerLock,
    /// Whether the runtime has more than one thread: one of them may be busy for a while.
    can_spare: bool,
    behind: Behind,
    pub stats: Arc<Stats>,
    /// Which sessions' tool calls have to ask before they go.
    pub flags: Flags,
    /// Which runs are alive.
    pub live: LiveRuns,
    /// Whether all work is halted: then no turn begins and no agent is started.
    pub halting: Arc<Halting>,
}

/// What the engine counts, for `status`.
#[derive(Debug, Default)]
pub struct Stats {
    pub commits: AtomicU64,
    pub events: AtomicU64,
    pub residents: AtomicU64,
    /// Tool calls that passed and could not be written down: a lost record is itself visible.
    pub unrecorded: AtomicU64,
    /// Takes secrets out of what is written, and counts them.
    pub redaction: Arc<Redaction>,
    /// Why nothing is acknowledged at the moment.
    pub storage_error: Mutex<Option<String>>,
}

impl Stats {
    #[must_use]
    pub fn storage_error(&self) -> Option<String> {
        self.storage_error.lock().clone()
    }

    fn set_storage_error(&self, error: Option<String>) {
        *self.storage_error.lock() = error;
    }
}

/// What is asked of the engine.
#[derive(Debug, Clone)]
pub enum Ask {
    Create {
        id: SessionId,
        new: Box<NewSession>,
        parent: Option<SessionId>,
    },
    /// Makes a session of a conversation from an agent's own history, with its transcript.
    Import {
        id: SessionId,
        new: Box<NewSession>,
        import: Box<Import>,
        past: Vec<PastEvent>,
    },
    Fork {
        id: SessionId,
        source: SessionId,
        at: Option<u64>,
        title: Option<String>,
    },
    Link {
        child: SessionId,
        parent: SessionId,
    },
    Do {
        session: SessionId,
        command: Command,
    },
    /// A message; [`Reply::sent`] is what became of it, unless it was sent before.
    Send {
        session: SessionId,
        sending: Box<Sending>,
    },
    Tell {
        session: SessionId,
        signals: Vec<Signal>,
    },
    /// What somebody outside says was seen. Taken only from those who can know it.
    Report {
        session: SessionId,
        signal: Box<Signal>,
    },
    /// A tool call comes by; [`Reply::passage`] is whether it is carried out.
    CallBegins {
        session: SessionId,
        call: Box<Call>,
    },
    /// Its answer is about to go out; [`Reply::lead`] is what goes with it.
    CallEnds {
        session: SessionId,
        call: Box<Call>,
        returned: Returned,
        /// What its record survives, where nothing else is written with it.
        durability: Durability,
    },
    /// Its answer has gone out; nothing was pending.
    CallPassed {
        session: SessionId,
        call: Box<Call>,
        returned: Returned,
    },
    /// The budgets of a session, in [`Reply::budget`].
    Measure {
        session: SessionId,
    },
    /// Nothing may have happened for a while: look, and answer in `seq` after how many milliseconds to look again.
    Nudge {
        session: SessionId,
    },
}

#[derive(Debug, Clone)]
pub struct Request {
    pub ask: Ask,
    pub actor: Actor,
    pub cause: Option<Cause>,
    /// The request is carried out once for each of these, whichever comes again.
    pub keys: Vec<Key>,
}

/// An idempotency key: who used which key, for which content.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub key: KeyHash,
    pub request: [u8; 16],
}

impl Key {
    /// The key's share for one of several things it stands for.
    #[must_use]
    pub fn part(&self, of: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.key).update(of.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self { key, request: self.request }
    }

    /// For something that happens once, whoever asks again after a crash.
    #[must_use]
    pub fn once(what: &str) -> Self {
        let hash = blake3::hash(what.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Self { key, request: key }
    }
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub outcome: Outcome,
    /// The key had been used before; this is what it was answered then.
    pub repeated: bool,
    /// Whether a tool call is carried out.
    pub passage: Option<Passage>,
    /// A subagent may have made it.
    pub uncertain: bool,
    /// What goes in front of its answer.
    pub lead: Lead,
    /// What became of a message that was not sent before.
    pub sent: Option<TurnResult>,
    /// The session's budgets.
    pub budget: Option<Box<BudgetStatus>>,
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            repeated: false,
            passage: None,
            uncertain: false,
            lead: Lead::default(),
            sent: None,
            budget: None,
        }
    }
}

refusals! {
    /// Why a request has no outcome.
    #[derive(Debug, Clone, thiserror::Error)]
    pub enum AskError {
        Unknown(id: SessionId) => "session_not_found", NotFound
            ("there is no session {0}")
            ("list the sessions with `lanyard ls --all`")
            agents ("list those you can see with memory_agent, action list");
        Deleted(id: SessionId) => "session_deleted", Gone
            ("session {0} was deleted") ("create a new one with `lanyard new`") agents ("name another session");
        Damaged { session: SessionId, damage: Damage } => "session_damaged", Conflict
            ("part of the log of session {session} cannot be read: {}", .damage.what)
            ("what can be read can still be read; fork it at a position before the damage to go on")
            agents ("name another session");
        AliasTaken(alias: String) => "alias_taken", Conflict
            ("alias `{0}` already names another session")
            ("choose another alias, or another workspace or plan") agents ("choose another alias");
        AliasReserved(alias: String) => "alias_reserved", Invalid
            ("alias `{0}` has the form of a Lanyard id")
            ("choose an alias that does not begin with `sess_`") agents ("choose another alias");
        KeyConflict => "idempotency_conflict", Conflict
            ("the key was used before with other content")
            ("use a new Idempotency-Key for a new request") agents ("use another key");
        Unavailable(why: String) => outage(why).0, Unavailable
            ("the journal cannot be written: {0}") ("{}", outage(why).1) agents ("try again in a moment");
        Overloaded => "overloaded", Unavailable
            ("too many requests are waiting")
            ("repeat with the same Idempotency-Key in a moment") agents ("try again in a moment");
        Closing => "daemon_closing", Unavailable
            ("the daemon is shutting down")
            ("repeat with the same Idempotency-Key once it runs again") agents ("try again once it runs again");
        Defect(what: String) => "defect", Defect
            ("{0}")
            ("nothing was changed; please report this with the daemon's log")
            agents ("nothing was changed; tell the user");
    }
    via { Refused(Refusal) }
}

/// The code and the advice when writing failed.
fn outage(why: &str) -> (&'static str, &'static str) {
    match Loss::in_message(why) {
        Some(loss) => (
            loss.code(),
            "put the file back, or save what the daemon still has with `lanyard backup FILE`, then `lanyard down` and \
             `lanyard restore FILE`",
        ),
        None => (
            "storage_unavailable",
            "check the disk with `lanyard doctor`; repeat with the same Idempotency-Key when it is mended",
        ),
    }
}

/// What came of loading a session; an error is already told in words.
type LoadResult = Result<Option<Box<lanyard_store::Loaded>>, String>;

#[derive(Debug)]
enum Input {
    Ask(Box<Work>),
    /// Requests nobody waits for.
    Behind(Vec<Request>),
    Loaded {
        session: SessionId,
        result: LoadResult,
    },
    /// Records to commit.
    Write(Box<RecordWrite>),
    /// Time has passed; a failed journal is tried again.
    Tick,
    Stop,
}

#[derive(Debug)]
struct Work {
    request: Request,
    answer: Option<oneshot::Sender<Result<Reply, AskError>>>,
}

/// Writes of records, and their caller.
#[derive(Debug)]
struct RecordWrite {
    records: RecordBatch,
    answer: oneshot::Sender<Result<(), AskError>>,
}

/// Begins to tell the ancestors of a session that it ended or was resumed. It must not wait.
pub type ParentNotice = Box<dyn Fn(&Engine, SessionId) + Send + Sync>;

/// Passes an effect on to the agents that Lanyard runs. False when too much waits for them. It must not wait.
pub type AgentEffects = Box<dyn Fn(SessionId, Effect) -> bool + Send + Sync>;

/// Called with each turn that ended, once its end is on disk. It must not wait.
pub type TurnEnded = Box<dyn Fn(&TurnSpan) + Send + Sync>;

/// What the engine works with.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub hub: Arc<Hub>,
    pub clock: Arc<Clock>,
    /// The settings in use, read anew for each round.
    pub settings: LiveConfig,
    pub continuity: Arc<ContinuityCounter>,
    /// Where turns that ended are told of, if anybody collects traces.
    pub turn_ended: Option<TurnEnded>,
    /// What a session may remember that is nobody's child and names nothing else.
    pub memory: MemoryPolicy,
    /// Where what follows for the agents is left.
    pub agents: AgentEffects,
    /// When a connection was last seen.
    pub seen: Seen,
    pub parent_notice: ParentNotice,
    /// For loading sessions aside, so that no session waits for another's disk.
    pub runtime: tokio::runtime::Handle,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// Starts the engine's thread. It ends after `Engine::stop`, and with it the last write to the journal.
pub fn start(parts: Parts) -> std::io::Result<(Engine, std::thread::JoinHandle<()>)> {
    let (inbox, outlet) = mpsc::channel(INBOX_MAX);
    let behind = Behind::start(inbox.clone(), &parts.runtime);
    let worker_lock = WorkerLock::default();
    let engine = Engine {
        inbox,
        worker_lock: worker_lock.clone(),
        can_spare: parts.runtime.runtime_flavor() == RuntimeFlavor::MultiThread
            && parts.runtime.metrics().num_workers() > 1,
        behind,
        stats: Arc::new(Stats { redaction: parts.hub.redaction.clone(), ..Stats::default() }),
        flags: Flags::default(),
        live: LiveRuns::default(),
        halting: Arc::default(),
    };
    worker_lock.put(worker::Worker::new(parts, engine.clone()));
    let thread = std::thread::Builder::new()
        .name("lanyard-engine".to_owned())
        .spawn(move || worker_lock.run(outlet))?;
    Ok((engine, thread))
}

/// A place in a queue, waited for where there is none.
async fn place_in<T>(queue: &mpsc::Sender<T>) -> Result<mpsc::Permit<'_, T>, AskError> {
    if let Ok(place) = queue.try_reserve() {
        return Ok(place);
    }
    // Aside, so that the usual way stays small.
    tokio::time::timeout(INBOX_WAIT, Box::pin(queue.reserve()))
        .await
        .map_err(|_| AskError::Overloaded)?
        .map_err(|_| AskError::Closing)
}

impl Engine {
    /// Asks, and waits until what the answer says is on disk. A caller that goes away does not take the request with it.
    pub async fn ask(&self, request: Request) -> Result<Reply, AskError> {
        let (answer, answered) = oneshot::channel();
        let place = place_in(&self.inbox).await?;
        place.send(Input::Ask(Box::new(Work { request, answer: Some(answer) })));
        answered.await.map_err(|_| AskError::Closing)?
    }

    /// Asks, and makes the engine's round itself where nobody else waits for one: that spares the caller two hops between
    /// threads. At most one thread of the runtime is busy with it, and never the only one.
    pub async fn ask_here(&self, request: Request) -> Result<Reply, AskError> {
        let (answer, answered) = oneshot::channel();
        let mut work = Some(Box::new(Work { request, answer: Some(answer) }));
        if self.can_spare && self.inbox.capacity() == self.inbox.max_capacity() {
            work = work.and_then(|work| self.worker_lock.round(work));
        }
        if let Some(work) = work {
            place_in(&self.inbox).await?.send(Input::Ask(work));
        }
        answered.await.map_err(|_| AskError::Closing)?
    }

    /// Asks and does not wait for the answer, only for a place: nothing is dropped, a flood is slowed.
    pub async fn ask_later(&self, request: Request) -> Result<(), AskError> {
        self.behind.put(request).await
    }

    /// Commits records with whatever else the round commits, and waits until they are on disk. After `Unavailable` they may
    /// still turn out to be written: the caller reads them again before it goes on.
    pub async fn write(&self, records: RecordBatch) -> Result<(), AskError> {
        let (answer, answered) = oneshot::channel();
        place_in(&self.inbox).await?.send(Input::Write(Box::new(RecordWrite { records, answer })));
        answered.await.map_err(|_| AskError::Closing)?
    }

    /// As [`Self::write`], for a thread outside of the runtime.
    pub fn write_blocking(&self, records: RecordBatch) -> Result<(), AskError> {
        let (answer, answered) = oneshot::channel();
        let write = Input::Write(Box::new(RecordWrite { records, answer }));
        self.inbox.blocking_send(write).map_err(|_| AskError::Closing)?;
        answered.blocking_recv().map_err(|_| AskError::Closing)?
    }

    /// [`Self::write_blocking`] as a function, for modules that the engine's own depend on.
    pub fn sink(&self) -> impl Fn(RecordBatch) -> Result<(), String> + Send + Sync + 'static {
        let engine = self.clone();
        move |records| engine.write_blocking(records).map_err(|error| error.to_string())
    }

    /// Says that time has passed. Lost when the engine is busy, which is as good: it then looks by itself.
    pub fn tick(&self) {
        let _ = self.inbox.try_send(Input::Tick);
    }

    /// Lets the engine finish what is in front of this, and end.
    pub async fn stop(&self) {
        self.behind.flush().await;
        let _ = self.inbox.send(Input::Stop).await;
    }

    fn loaded(&self, session: SessionId, result: LoadResult) {
        let _ = self.inbox.blocking_send(Input::Loaded { session, result });
    }

    /// Tool calls passed that the log does not know of.
    pub fn unrecorded(&self, calls: u64) {
        if calls > 0 {
            self.stats.unrecorded.fetch_add(calls, Ordering::Relaxed);
            tracing::error!(calls, "tool calls passed and could not be written down");
        }
    }

    fn counted(&self, events: usize, residents: usize) {
        self.stats.commits.fetch_add(1, Ordering::Relaxed);
        self.stats.events.fetch_add(events as u64, Ordering::Relaxed);
        self.stats.residents.store(residents as u64, Ordering::Relaxed);
    }
}
