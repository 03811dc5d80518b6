//! Starting and ending: take the data folder, open the journal, settle what a crash left, serve, end in order.

pub(crate) mod contexts;

use lanyard_core::journal::Row;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::config::{Config, ConfigFile};
use lanyard_api::home::{Home, HomeError, Running};
use lanyard_core::memory::MemoryPolicy;
use lanyard_core::session::{Signal, StateName, Status};
use lanyard_core::{Actor, Cause, SessionId};
use lanyard_git::snapshot::CheckpointStore;
use lanyard_store::{
    AttachmentError, Attachments, Filter, OpenError, Owed, SqliteJournal, SqliteOptions, Store, StoreError,
};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::agent_engine::EngineOfAgents;
use crate::api::{App, Front, Underway};
use crate::auth::{self, TokenBook};
use crate::budgets::{BudgetTeller, BudgetWatch};
use crate::dashboard::Dashboard;
use crate::families;
use crate::flow;
use crate::indexer;
use crate::memory::{Keeper, Memory};
use crate::notice;
use crate::notifications::{NotificationHandle, Upkeep};
use crate::outward::Address;
use crate::reload::{Overrides, Reloader};
use crate::server::serve;
use crate::storage::Purger;
use crate::telemetry::Telemetry;
use crate::timers::Timers;
use crate::trees::OwnTrees;
use contexts::Common;
use lanyard_agents::agents::addresses::Addresses;
use lanyard_agents::agents::engine::AgentEngine;
use lanyard_agents::agents::roster::Roster;
use lanyard_agents::agents::wanted::{self, WantedRun};
use lanyard_agents::agents::{self, Wishes};
use lanyard_agents::runs::Runs;
use lanyard_agents::sandbox::OwnFiles;
use lanyard_agents::terminal::{LiveTerminals, TerminalArchive};
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::continuity::ContinuityCounter;
use lanyard_engine::engine::{self, Ask, Engine, Parts, Request, TurnEnded};
use lanyard_engine::hub::Hub;
use lanyard_engine::presence::{Presence, Seen};
use lanyard_engine::redaction::{given, redactor};
use lanyard_gateway::intercept;
use lanyard_gateway::mcp::Gateway;

/// Longest path a Unix socket can have, with its final NUL.
const SOCKET_PATH_MAX: usize = 107;
/// Sessions settled at a time after a crash.
const SETTLE_PAGE: usize = 1_000;

/// What is done once, as soon as a daemon can be reached.
pub type OnReady = Box<dyn FnOnce(&Running, &App) + Send>;

/// How to run a daemon.
pub struct Options {
    /// The data folder.
    pub home: PathBuf,
    /// The config file, with the overrides; its changes are taken up.
    pub config: ConfigFile,
    /// What the command line sets besides, for the next time the file is read.
    pub overrides: Overrides,
    /// Overrides the config's address; port 0 takes any free one.
    pub listen: Option<SocketAddr>,
    /// Where traces and logs go, if anybody collects them.
    pub telemetry: Option<Arc<Telemetry>>,
    /// Called once the daemon can be reached.
    pub on_ready: OnReady,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("home", &self.home).finish_non_exhaustive()
    }
}

/// Why a daemon did not start. Nothing was changed but, at most, the data folder made.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("cannot open the journal at {path}")]
    Journal { path: PathBuf, source: OpenError },
    #[error("the journal {} is missing, although a daemon has used this folder before ({found})", path.display())]
    JournalMissing { path: PathBuf, found: &'static str },
    #[error("cannot read the journal")]
    Store(#[from] StoreError),
    #[error("cannot read the attachments")]
    Attachments(#[from] AttachmentError),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("cannot listen on {path}, which is longer than a socket's path may be ({SOCKET_PATH_MAX} bytes)")]
    SocketPath { path: PathBuf },
    #[error("cannot listen on {path}")]
    Socket { path: PathBuf, source: std::io::Error },
    #[error("the engine ended unexpectedly; what was acknowledged is kept")]
    EngineLost,
    #[error("cannot get {what} from the system")]
    System { what: &'static str, source: std::io::Error },
    #[error("the config under [memory] cannot be used: {0}")]
    Memory(String),
    #[error("the config under [[flow.hooks]] cannot be used: {0}")]
    Hook(String),
    #[error("the config under [redaction] cannot be used: {0}")]
    Redaction(String),
}

/// Runs a daemon until it is told to end: by SIGTERM, SIGINT or the API.
pub async fn run(options: Options) -> Result<(), BootError> {
    let system = |what| move |source| BootError::System { what, source };
    let (ends, home) = (Ends::listen().map_err(system("signals"))?, Home::create(&options.home)?);
    let (mut claim, clock) = (home.claim()?, Arc::new(Clock::from_env().map_err(system("random bits"))?));
    let (store, config) = (open(&home, &clock)?, &options.config.config);
    // The token first: whoever finds the sockets looks for it.
    let (operator, (tcp, socket, address)) = (operator_token(&home)?, listen(&home, &options).await?);

    let (program, presence) = (agents::program(), Presence::new(clock.clone()));
    let (live, hub) = (LiveConfig::new(config.clone(), program.clone()), hub(config, &store)?);
    let (memory, policy) = remembering(config, &hub)?;
    let continuity = ContinuityCounter::open(config.continuity, &*store)?;
    let ((desk, wishes), set) = (agents::agents(&live, terminals(&home)), (&options, &live));
    let parts = parts(&store, &hub, &clock, presence.seen(), set, &wishes, (&continuity, policy));
    let (engine, thread) = start_engine(parts)?;
    let notifications = notifications((&engine, &store, &clock), config, &continuity)?;
    let (runs, (checkpoints, attachments)) = (Runs::new(home.runs(), program), beside(&home)?);
    let tokens = tokens(&operator, &store, &engine, config)?;
    let (asked, budgets) = engine_of_agents(&engine, &hub, (&notifications, &store, &live));
    let addresses = addresses(&home, address, &tokens, &options.config);
    let (gateway, runs_wanted) = (Gateway::open(config, &home.dir).await, wanted::wanted(&*store)?);
    let parts = (asked.clone(), store.clone(), clock.clone(), runs.clone());
    let roster = Roster::new(&live, runs, clock.clone(), home.checks(), own_files(&home, &options.config));
    let opened = desk.open(parts, addresses, (&checkpoints, &attachments), roster.offers());
    let (adopted, agents) = Box::pin(opened).await;
    take_over((&engine, &store, &clock), &adopted, runs_wanted, (&*asked, &wishes)).await?;
    let (trees, running) = (own_trees(&home, &store, &clock, &hub).await, running(&home, address, &clock));
    let tools = families::Tools::new(&engine, &store, &clock, &live, &roster, &tokens, &trees);
    // After what the last daemon left is settled, and before anybody can ask for anything new.
    let (families, tasks) = families::start(tools, &hub).map_err(system("a thread"))?;

    let common = Common::new(&engine, &store, &hub, &clock, &live, &roster, &tokens);
    let kept = (&trees, &checkpoints, &attachments, &notifications);
    let contexts = common.contexts(memory, (gateway, config.gateway.record), &families, kept);
    let flows = flows((&engine, &store, &clock), &roster, &options, &notifications, (&home, &trees), &hub)?;
    let app = Arc::new(App {
        reloader: reloader(&options, &live, (&hub, &notifications, &clock)),
        engine: engine.clone(),
        families,
        flows,
        agents: roster,
        wishes,
        seen: presence.seen(),
        checkpoints,
        underway: Underway::default(),
        trees,
        store,
        presence,
        glances: Arc::default(),
        router: Mutex::default(),
        hub,
        memories: contexts.memories,
        mcp: contexts.mcp,
        tools: contexts.tools,
        storage: contexts.storage,
        clock,
        config: live,
        continuity,
        notifications,
        budgets,
        telemetry: options.telemetry,
        tokens,
        dashboard: Dashboard::from_env(),
        address,
        data_dir: home.dir.clone(),
        started_at: running.started_at,
        hosts: hosts(address),
        shutdown: Arc::new(Notify::new()),
    });
    // Said before the first answer: who was answered can read where. The sockets are open, so nobody is turned away.
    claim.announce(&running).map_err(system("the lock file"))?;
    let at_work = AtWork::begin(&app, tcp, socket);
    ready(&running, &app, options.on_ready);
    until_told(&app, at_work, ends, agents, (thread, tasks)).await
}

fn terminals(home: &Home) -> LiveTerminals {
    LiveTerminals::new(TerminalArchive::in_data(&home.dir))
}

fn ready(running: &Running, app: &App, on_ready: OnReady) {
    let Running { address, pid, .. } = running;
    tracing::info!(%address, pid, data = %app.data_dir.display(), "ready");
    on_ready(running, app);
}

/// What lies beside the journal: checkpoints of workspaces, and attachments.
fn beside(home: &Home) -> Result<(CheckpointStore, Arc<Attachments>), BootError> {
    Ok((CheckpointStore::new(&home.dir), Arc::new(Attachments::open(home.attachments())?)))
}

/// Worktrees of the data folder, after what the last daemon began and did not finish was taken back.
async fn own_trees(home: &Home, store: &Arc<dyn Store>, clock: &Arc<Clock>, hub: &Hub) -> OwnTrees {
    let trees = OwnTrees::new((&home.dir, agents::program()), store, clock, &hub.redaction);
    trees.recover().await;
    trees
}

/// Takes up changes of the config file.
fn reloader(
    options: &Options,
    live: &LiveConfig,
    around: (&Arc<Hub>, &NotificationHandle, &Arc<Clock>),
) -> Arc<Reloader> {
    Arc::new(Reloader::new(&options.config, options.overrides.clone(), live, around))
}

/// The flows, those that the last daemon left among them.
fn flows(
    (engine, store, clock): (&Engine, &Arc<dyn Store>, &Arc<Clock>),
    roster: &Roster,
    options: &Options,
    notifications: &NotificationHandle,
    (home, trees): (&Home, &OwnTrees),
    hub: &Arc<Hub>,
) -> Result<flow::FlowHandle, BootError> {
    let place = (home.dir.as_path(), agents::program(), trees);
    let settings = options.config.config.flow.clone();
    for url in settings.hooks.iter().filter_map(|hook| hook.url.as_ref()) {
        // Whether a certificate can be checked is found out here, before a flow needs the hook.
        Address::new(url, None).map_err(|what| BootError::Hook(format!("`url`: {what}")))?;
    }
    let tools = flow::Tools::new(engine, store, clock, roster, settings, notifications, place);
    Ok(flow::FlowHandle::start(tools, hub)?)
}

/// The operator's token, made at the first start.
fn operator_token(home: &Home) -> Result<String, BootError> {
    let fresh = auth::fresh().map_err(|source| BootError::System { what: "random bits", source })?;
    Ok(home.operator_token(&fresh)?)
}

/// The tokens that are accepted: the operator's, and those that were issued.
fn tokens(
    operator: &str,
    store: &Arc<dyn Store>,
    engine: &Engine,
    config: &Config,
) -> Result<Arc<TokenBook>, BootError> {
    let (stored, mut notes) = (store.tokens()?, auth::read_all(&**store)?);
    let tokens =
        TokenBook::new(operator, engine.live.clone()).with_operator_streams(config.daemon.operator_streams);
    for token in &stored {
        tokens.add(token, notes.remove(&token.id).unwrap_or_default());
    }
    Ok(Arc::new(tokens))
}

/// Where readers are fed, and secrets taken out of what they get.
fn hub(config: &Config, store: &Arc<dyn Store>) -> Result<Arc<Hub>, BootError> {
    let hub = Hub::default();
    hub.redact_with(redactor(config, &given(config)).map_err(BootError::Redaction)?);
    let hub = Arc::new(hub);
    let followed = hub.clone();
    store.tell_changes(Box::new(move |last| followed.note_records(last)));
    Ok(hub)
}

/// An engine that knows whether all work is halted before anything is asked of it.
fn start_engine(parts: Parts) -> Result<(Engine, std::thread::JoinHandle<()>), BootError> {
    let halted = families::halt::how(&*parts.store)?;
    let system = |source| BootError::System { what: "a thread", source };
    let (engine, thread) = engine::start(parts).map_err(system)?;
    engine.halting.set(halted);
    Ok((engine, thread))
}

/// Memory, and what sessions may remember that name nothing else.
fn remembering(config: &Config, hub: &Hub) -> Result<(Memory, MemoryPolicy), BootError> {
    let policy = config.memory.policy().map_err(BootError::Memory)?;
    Ok((Memory::new(&config.memory, hub.redaction.clone()).map_err(BootError::Memory)?, policy))
}

/// What people are told, with what the last daemon had told.
fn notifications(
    (engine, store, clock): (&Engine, &Arc<dyn Store>, &Arc<Clock>),
    config: &Config,
    continuity: &ContinuityCounter,
) -> Result<NotificationHandle, BootError> {
    lanyard_base::environment::keep_private(config.notifications.secret_variables());
    let settings = &config.notifications;
    let notifications = NotificationHandle::open(store.clone(), engine.sink(), clock.clone(), settings)?;
    if let Err(error) = notifications.recall_alerts(continuity) {
        tracing::warn!(%error, "what was told of continuity cannot be read");
    }
    Ok(notifications)
}

/// What the engine works with, in the caller's runtime.
fn parts(
    store: &Arc<dyn Store>,
    hub: &Arc<Hub>,
    clock: &Arc<Clock>,
    seen: Seen,
    (options, live): (&Options, &LiveConfig),
    wishes: &Wishes,
    (continuity, memory): (&Arc<ContinuityCounter>, MemoryPolicy),
) -> Parts {
    let (runtime, wishes) = (tokio::runtime::Handle::current(), wishes.clone());
    Parts {
        parent_notice: notice::sender(store, clock, &runtime),
        agents: Box::new(move |session, effect| wishes.put(session, effect)),
        store: store.clone(),
        hub: hub.clone(),
        clock: clock.clone(),
        seen,
        memory,
        settings: live.clone(),
        continuity: continuity.clone(),
        turn_ended: options.telemetry.clone().map(turn_ended),
        runtime,
    }
}

/// A collector of traces is told of each turn that ended.
fn turn_ended(telemetry: Arc<Telemetry>) -> TurnEnded {
    Box::new(move |turn| telemetry.turn_ended(turn))
}

/// Works until it is told to end, then ends in order. The agents themselves go on, under their shims.
async fn until_told(
    app: &App,
    at_work: AtWork,
    mut ends: Ends,
    agents: JoinHandle<()>,
    (engine, tasks): (std::thread::JoinHandle<()>, std::thread::JoinHandle<()>),
) -> Result<(), BootError> {
    let mut engine_ended = tokio::task::spawn_blocking(move || engine.join());
    let mut tasks_ended = tokio::task::spawn_blocking(move || tasks.join());
    tokio::select! {
        () = ends.told(&app.shutdown) => {}
        // Without its engine a daemon would only refuse; better that whoever watches it starts it again.
        _ = &mut engine_ended => return Err(BootError::EngineLost),
        _ = &mut tasks_ended => return Err(BootError::EngineLost),
    }
    tracing::info!("ending");
    at_work.end(app).await;
    app.flows.stop().await;
    app.families.stop().await;
    let _ = tasks_ended.await;
    agents.abort();
    let _ = agents.await;
    app.engine.stop().await;
    let _ = engine_ended.await;
    lanyard_git::snapshot::live::end_all();
    Upkeep::last_flush(&app.notifications, &app.continuity).await;
    tracing::info!("ended");
    if let Some(telemetry) = &app.telemetry {
        telemetry.last_words().await;
    }
    // One that stays is replaced by the next daemon.
    std::fs::remove_file(Home { dir: app.data_dir.clone() }.socket()).ok();
    Ok(())
}

/// Lanyard's own files, which no sandbox shows.
fn own_files(home: &Home, config: &ConfigFile) -> OwnFiles {
    OwnFiles {
        hidden: vec![home.dir.clone(), config.path.clone()],
        worktrees: vec![home.dir.join("trees"), home.checks()],
        shown: Vec::new(),
    }
}

/// What agents reach, with the tokens of their runs.
fn addresses(home: &Home, address: SocketAddr, tokens: &Arc<TokenBook>, config: &ConfigFile) -> Addresses {
    let tokens = tokens.clone();
    let own_files = own_files(home, config);
    let token_of = Arc::new(move |session, run| tokens.of_session(session, run));
    Addresses::new(address, home, token_of, &config.config, own_files)
}

fn engine_of_agents(
    engine: &Engine,
    hub: &Arc<Hub>,
    (notifications, store, live): (&NotificationHandle, &Arc<dyn Store>, &LiveConfig),
) -> (Arc<dyn AgentEngine>, Arc<BudgetTeller>) {
    let budgets = Arc::new(BudgetTeller::new(notifications.clone(), store.clone()));
    let (engine, hub, notifications) = (engine.clone(), hub.clone(), notifications.clone());
    let asked =
        Arc::new(EngineOfAgents { engine, hub, notifications, live: live.clone(), budgets: budgets.clone() });
    (asked, budgets)
}

fn running(home: &Home, address: SocketAddr, clock: &Clock) -> Running {
    Running {
        pid: std::process::id(),
        address,
        socket: home.socket(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: clock.now(),
    }
}

/// Everything that runs beside the engine.
struct AtWork {
    close: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    waking: JoinHandle<()>,
    telling: JoinHandle<()>,
    ticking: JoinHandle<()>,
    sweeping: JoinHandle<()>,
    /// Notifications: upkeep, the watch over sessions, a line to each receiver, and the way to a collector; and the watch
    /// over the config file.
    notifying: Vec<JoinHandle<()>>,
    keeping: JoinHandle<()>,
    /// Purges what is deleted.
    purging: JoinHandle<()>,
    /// Keeps the index of texts up with the log.
    indexing: JoinHandle<()>,
    /// Ends share links and writes down when tokens were used.
    noting: JoinHandle<()>,
}

impl AtWork {
    fn begin(app: &Arc<App>, tcp: TcpListener, socket: UnixListener) -> Self {
        let (engine, store, clock) = (app.engine.clone(), app.store.clone(), app.clock.clone());
        let timers = Timers { engine, store, clock, settings: app.config.clone() };
        let (close, closing) = oneshot::channel();
        let router = crate::api::router(app);
        *app.router.lock() = Some(router.clone());
        Self {
            close,
            serving: tokio::spawn(serve(tcp, socket, Arc::new(Front::new(app, router)), closing)),
            waking: tokio::spawn(app.hub.clone().run()),
            telling: tokio::spawn(app.presence.clone().run(app.hub.clone())),
            ticking: tokio::spawn(timers.run()),
            sweeping: tokio::spawn({
                let app = app.clone();
                async move { app.mcp.gateway.look_after(app.store.clone()).await }
            }),
            notifying: notifying(app),
            keeping: tokio::spawn(Keeper::new(app.memories.clone()).run()),
            purging: tokio::spawn(Purger::new(app.storage.clone()).run()),
            indexing: tokio::spawn(indexer::keep_up(app.store.clone(), app.clock.clone())),
            noting: tokio::spawn(auth::keep_up(app.tokens.clone(), app.store.clone(), app.clock.clone())),
        }
    }

    /// Streams first, since they never end by themselves; then requests, which the engine still answers.
    async fn end(self, app: &App) {
        app.hub.close();
        app.notifications.close();
        app.mcp.gateway.close_streams();
        let _ = self.close.send(());
        let _ = self.waking.await;
        let _ = self.serving.await;
        app.router.lock().take();
        self.telling.abort();
        self.ticking.abort();
        self.sweeping.abort();
        for task in self.notifying {
            task.abort();
            let _ = task.await;
        }
        self.keeping.abort();
        // Between two steps: the next daemon goes on with it.
        self.purging.abort();
        let _ = self.purging.await;
        self.indexing.abort();
        let _ = self.indexing.await;
        self.noting.abort();
        let _ = self.noting.await;
        app.mcp.gateway.close().await;
    }
}

fn notifying(app: &Arc<App>) -> Vec<JoinHandle<()>> {
    let (notifications, continuity) = (app.notifications.clone(), app.continuity.clone());
    let mut tasks = vec![tokio::spawn(notifications.clone().send_outward())];
    tasks.push(tokio::spawn(notifications.clone().watch_sessions(
        app.hub.clone(),
        app.presence.clone(),
        app.config.clone(),
    )));
    tasks.push(tokio::spawn(Upkeep { notifications, continuity }.run()));
    let watch = BudgetWatch {
        teller: app.budgets.clone(),
        store: app.store.clone(),
        engine: app.engine.clone(),
        live: app.config.clone(),
        clock: app.clock.clone(),
    };
    tasks.push(tokio::spawn(watch.run()));
    tasks.push(tokio::spawn(intercept::tell_of_calls(app.engine.clone(), app.config.clone())));
    tasks.push(tokio::spawn(app.reloader.clone().watch()));
    tasks.extend(app.telemetry.clone().map(|telemetry| tokio::spawn(telemetry.run())));
    tasks
}

/// What shows that a journal was here before.
fn used_before(home: &Home) -> Option<&'static str> {
    if home.token().exists() {
        return Some("its token is there");
    }
    let runs = std::fs::read_dir(home.runs()).is_ok_and(|mut runs| runs.next().is_some());
    runs.then_some("folders of runs are there")
}

fn open(home: &Home, clock: &Clock) -> Result<Arc<dyn Store>, BootError> {
    let path = home.journal();
    // To begin anew would be to lose every session without a word.
    if !path.exists()
        && let Some(found) = used_before(home)
    {
        return Err(BootError::JournalMissing { path, found });
    }
    let mut options = SqliteOptions::at(path.clone());
    options.failpoint = Some(Arc::new(lanyard_base::failpoint::hit));
    // The crash suite wants checkpoints often enough to die in one.
    if let Some(pages) = std::env::var("LANYARD_CHECKPOINT_PAGES").ok().and_then(|pages| pages.parse().ok()) {
        options.checkpoint_pages = pages;
    }
    let journal = SqliteJournal::open(options).map_err(|source| BootError::Journal { path, source })?;
    let store: Arc<dyn Store> = Arc::new(journal);
    if let Some(latest) = store.latest_at()? {
        clock.not_before(latest);
    }
    Ok(store)
}

async fn listen(
    home: &Home,
    options: &Options,
) -> Result<(TcpListener, UnixListener, SocketAddr), BootError> {
    let address = options.listen.unwrap_or(options.config.config.daemon.listen);
    let tcp = TcpListener::bind(address).await.map_err(|source| BootError::Listen { address, source })?;
    let bound = tcp.local_addr().map_err(|source| BootError::System { what: "the address", source })?;
    let path = home.socket();
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(BootError::SocketPath { path });
    }
    // The folder is ours, so a socket in it is a dead daemon's.
    let _ = std::fs::remove_file(&path);
    let socket =
        UnixListener::bind(&path).map_err(|source| BootError::Socket { path: path.clone(), source })?;
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).map_err(|source| BootError::Socket { path, source })?;
    Ok((tcp, socket, bound))
}

/// The names by which this daemon may be addressed.
fn hosts(address: SocketAddr) -> HashSet<String> {
    let port = address.port();
    let mut hosts = HashSet::from([address.to_string()]);
    if address.ip().is_loopback() {
        hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
    }
    hosts
}

/// Settles what the last daemon left and no runner took over, and starts the runs that were asked for.
async fn take_over(
    (engine, store, clock): (&Engine, &Arc<dyn Store>, &Arc<Clock>),
    adopted: &HashSet<SessionId>,
    runs_wanted: Vec<WantedRun>,
    (asked, wishes): (&dyn AgentEngine, &Wishes),
) -> Result<(), BootError> {
    settle(engine, store, adopted).await?;
    wanted::revive(runs_wanted, adopted, (asked, wishes, clock)).await;
    tokio::spawn(catch_up(engine.clone(), store.clone(), clock.clone()));
    Ok(())
}

/// Turns that were running when the last daemon ended have no agent any more, and a stop that waited
/// for such a turn, or that was not delivered before the crash, has nothing left to wait for.
async fn settle(
    engine: &Engine,
    store: &Arc<dyn Store>,
    adopted: &HashSet<SessionId>,
) -> Result<(), BootError> {
    let executing = Filter { state: Some(StateName::Executing), ..Filter::default() };
    let stopping = Filter { status: Some(Status::Stopping), ..Filter::default() };
    for filter in [executing, stopping] {
        let mut cursor = None;
        loop {
            // Those that change drop out of the listing; the cursor leads past those that cannot.
            let page = store.list(&filter, cursor.as_ref(), SETTLE_PAGE)?;
            let lost = page.rows.iter().map(|row| row.id).filter(|id| !adopted.contains(id));
            let asks: Vec<_> = lost.map(|id| tokio::spawn(settle_one(engine.clone(), id))).collect();
            for ask in asks {
                let _ = ask.await;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    Ok(())
}

/// Deadlines that were running, and ends of children that were not reported.
async fn catch_up(engine: Engine, store: Arc<dyn Store>, clock: Arc<Clock>) {
    let stopping = Filter { status: Some(Status::Stopping), ..Filter::default() };
    let stopped = move |store: &dyn Store| store.list(&stopping, None, SETTLE_PAGE).map(|page| page.rows);
    for session in listed(&store, stopped).await {
        let signal = Signal::Due { now: clock.now() };
        let cause = Some(Cause::Signal(signal.name().to_owned()));
        let ask = Ask::Tell { session, signals: vec![signal] };
        let request = Request { ask, actor: Actor::system("boot"), cause, keys: Vec::new() };
        if let Err(error) = engine.ask(request).await {
            tracing::warn!(%session, %error, "a stop that was under way could not be looked at");
        }
    }
    for session in listed(&store, |store| wanted::owed(store, Owed::Notice)).await {
        notice::send(&engine, &store, &clock, session).await;
    }
}

async fn listed(
    store: &Arc<dyn Store>,
    list: impl FnOnce(&dyn Store) -> Result<Vec<Row>, StoreError> + Send + 'static,
) -> Vec<SessionId> {
    let store = store.clone();
    let rows = tokio::task::spawn_blocking(move || list(&*store)).await;
    match rows {
        Ok(Ok(rows)) => rows.iter().map(|row| row.id).collect(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the journal could not be looked through after the start");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

async fn settle_one(engine: Engine, session: SessionId) {
    let signal = Signal::DaemonRestarted;
    let cause = Some(Cause::Signal(signal.name().to_owned()));
    let ask = Ask::Tell { session, signals: vec![signal] };
    let request = Request { ask, actor: Actor::system("boot"), cause, keys: Vec::new() };
    if let Err(error) = engine.ask(request).await {
        tracing::warn!(%session, %error, "what the last daemon left could not be settled");
    }
}

/// The ways to tell a daemon to end. Listened to from the start, so that one that is just starting ends in order too.
struct Ends {
    terminate: Signals,
    interrupt: Signals,
}

impl Ends {
    fn listen() -> std::io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    async fn told(&mut self, asked: &Notify) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = asked.notified() => {}
        }
    }
}
