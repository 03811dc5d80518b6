//! The tools against a real engine and a real journal, called as the gateway calls them.

mod agents;
mod bodies;
mod document;
mod letters;
mod memory;
mod orphaned;
mod papers;
mod protocol;
mod readers;
mod redacted;
mod spawning;

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_api::config::{CallRecording, Config, ConfigFile, MemoryConfig};
use lanyard_core::memory::MemoryPolicy;
use lanyard_core::policy::{MemoryMode, Staleness};
use lanyard_core::session::{Command, NewSession, Signal};
use lanyard_core::{Actor, Rules, Session, SessionId};
use lanyard_git::snapshot::CheckpointStore;
use lanyard_store::{SqliteJournal, SqliteOptions, Store};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::api::App;
use crate::auth::TokenBook;
use crate::boot::contexts::{Common, Contexts};
use crate::families::{self, Families};
use crate::flow::{self, FlowHandle};
use crate::memory::Memory;
use crate::notifications::NotificationHandle;
use crate::reload::{Overrides, Reloader};
use crate::trees::OwnTrees;
use lanyard_agents::agents::roster::Roster;
use lanyard_agents::agents::{Agents, agents};
use lanyard_agents::runs::Runs;
use lanyard_agents::sandbox::OwnFiles;
use lanyard_agents::terminal::{LiveTerminals, TerminalArchive};
use lanyard_base::clock::Clock;
use lanyard_base::live_config::LiveConfig;
use lanyard_engine::continuity::ContinuityCounter;
use lanyard_engine::engine::{self, Ask, Parts, Request};
use lanyard_engine::hub::Hub;
use lanyard_gateway::mcp::Gateway;

const WORKSPACE: &str = "/w";
/// How long what happens aside may take. Generous: the machine may be busy.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// A daemon without a door: engine and journal as they are, nobody at the desk.
struct Room {
    app: Arc<App>,
    /// Orders for agents end here: nothing is started.
    _desk: Agents,
    threads: Vec<std::thread::JoinHandle<()>>,
    /// Gone when the journal is closed.
    folder: Arc<tempfile::TempDir>,
}

/// These rules, and one agent that cannot be started.
fn settings(rules: Rules) -> LiveConfig {
    let helper = AgentSettings::of(DriverKind::Acp, vec!["/nonexistent/helper".to_owned()]);
    let agents = BTreeMap::from([("helper".to_owned(), helper)]);
    let Rules { staleness, limits, stop, writer, families, health, budgets: _ } = rules;
    let config = Config { agents, staleness, limits, stop, writer, families, health, ..Config::default() };
    LiveConfig::new(config, "/nonexistent/lanyard".into())
}

fn contexts(
    common: &Common<'_>,
    folder: &tempfile::TempDir,
    hub: &Hub,
    families: &Families,
    (trees, checkpoints, notifications): (&OwnTrees, &CheckpointStore, &NotificationHandle),
) -> Contexts {
    let memory = Memory::new(&MemoryConfig::default(), hub.redaction.clone()).unwrap();
    let gateway = Gateway::new(&Config::default(), folder.path());
    let attachments = Arc::new(lanyard_store::Attachments::open(folder.path().join("attachments")).unwrap());
    let kept = (trees, checkpoints, &attachments, notifications);
    common.contexts(memory, (gateway, CallRecording::default()), families, kept)
}

fn notifications(engine: &engine::Engine, store: &Arc<dyn Store>, clock: &Arc<Clock>) -> NotificationHandle {
    let told = Config::default().notifications;
    NotificationHandle::open(store.clone(), engine.sink(), clock.clone(), &told).unwrap()
}

fn flows(
    (engine, store, clock): (&engine::Engine, &Arc<dyn Store>, &Arc<Clock>),
    roster: &Roster,
    notifications: &NotificationHandle,
    place: (&std::path::Path, PathBuf, &OwnTrees),
    hub: &Arc<Hub>,
) -> FlowHandle {
    let settings = lanyard_core::flow::FlowSettings::default();
    let tools = flow::Tools::new(engine, store, clock, roster, settings, notifications, place);
    FlowHandle::start(tools, hub).unwrap()
}

/// For a file that is not there.
fn reloader(
    folder: &std::path::Path,
    live: &LiveConfig,
    around: (&Arc<Hub>, &NotificationHandle, &Arc<Clock>),
) -> Arc<Reloader> {
    let file = ConfigFile::read(&folder.join("config.toml")).unwrap();
    Arc::new(Reloader::new(&file, Overrides::default(), live, around))
}

fn terminals(data: &std::path::Path) -> LiveTerminals {
    LiveTerminals::new(TerminalArchive::in_data(data))
}

impl Room {
    fn new() -> Self {
        Self::with(Rules::default())
    }

    /// Quiet for no time at all is quiet for long enough: every session without a sign of life is an orphan.
    fn impatient() -> Self {
        let staleness = Staleness { suspect_after_ms: 0, idle_after_ms: 0, ..Staleness::default() };
        Self::with(Rules { staleness, ..Rules::default() })
    }

    fn with(rules: Rules) -> Self {
        Self::open(rules, Arc::new(tempfile::tempdir().unwrap()))
    }

    fn open(rules: Rules, folder: Arc<tempfile::TempDir>) -> Self {
        let (path, live) = (folder.path().join("journal.db"), settings(rules));
        let store: Arc<dyn Store> = Arc::new(SqliteJournal::open(SqliteOptions::at(path)).unwrap());
        let (clock, hub) = (Arc::new(Clock::from_env().unwrap()), Arc::new(Hub::default()));
        let (desk, wishes) = agents(&live, terminals(folder.path()));
        let continuity = ContinuityCounter::open(Config::default().continuity, &*store).unwrap();
        let (runtime, effects) = (tokio::runtime::Handle::current(), wishes.clone());
        let parts = Parts {
            parent_notice: crate::notice::sender(&store, &clock, &runtime),
            seen: Arc::new(|_, _| None),
            agents: Box::new(move |session, effect| effects.put(session, effect)),
            store: store.clone(),
            hub: hub.clone(),
            clock: clock.clone(),
            settings: live.clone(),
            continuity: continuity.clone(),
            turn_ended: None,
            // Sessions that say nothing else may remember all; what a policy forbids is tested with policies.
            memory: MemoryPolicy::of(MemoryMode::Full),
            runtime,
        };
        let (engine, thread) = engine::start(parts).unwrap();
        let notifications = notifications(&engine, &store, &clock);
        let runs = Runs::new(folder.path().join("runs"), "/nonexistent/lanyard".into());
        let (program, checks) = (PathBuf::from("/nonexistent/lanyard"), folder.path().join("checks"));
        let trees = OwnTrees::new((folder.path(), program.clone()), &store, &clock, &hub.redaction);
        let place = (folder.path(), program, &trees);
        let tokens = Arc::new(TokenBook::new("operator", engine.live.clone()));
        let roster = Roster::new(&live, runs, clock.clone(), checks, OwnFiles::default());
        let tools = families::Tools::new(&engine, &store, &clock, &live, &roster, &tokens, &trees);
        let (families, tasks) = families::start(tools, &hub).unwrap();
        let flows = flows((&engine, &store, &clock), &roster, &notifications, place, &hub);
        let reloader = reloader(folder.path(), &live, (&hub, &notifications, &clock));
        let common = Common::new(&engine, &store, &hub, &clock, &live, &roster, &tokens);
        let checkpoints = CheckpointStore::new(folder.path());
        let kept = (&trees, &checkpoints, &notifications);
        let Contexts { memories, mcp, tools, storage } = contexts(&common, &folder, &hub, &families, kept);
        let app = Arc::new(App {
            budgets: Arc::new(crate::budgets::BudgetTeller::new(notifications.clone(), store.clone())),
            flows,
            seen: Arc::new(|_, _| None),
            families,
            agents: roster,
            wishes,
            checkpoints,
            memories,
            mcp,
            tools,
            storage,
            underway: crate::api::Underway::default(),
            trees: trees.clone(),
            store,
            hub,
            presence: lanyard_engine::presence::Presence::new(clock.clone()),
            glances: Arc::default(),
            router: Mutex::default(),
            continuity,
            notifications,
            telemetry: None,
            started_at: clock.now(),
            clock,
            config: live,
            reloader,
            tokens,
            dashboard: crate::dashboard::Dashboard::from_env(),
            engine,
            address: ([127, 0, 0, 1], 0).into(),
            data_dir: folder.path().to_owned(),
            hosts: HashSet::new(),
            shutdown: Arc::new(Notify::new()),
        });
        Self { app, _desk: desk, threads: vec![tasks, thread], folder }
    }

    /// Ends the engine and closes the journal; another room can be opened in the folder.
    async fn close(mut self) -> Arc<tempfile::TempDir> {
        self.app.flows.stop().await;
        self.app.families.stop().await;
        self.app.engine.stop().await;
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        self.folder.clone()
    }

    /// Waits for something the owner of tasks does by itself.
    async fn until(&self, met: impl Fn() -> bool) {
        let looks = async {
            while !met() {
                // sleep: between two looks at what happens aside.
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looks).await.unwrap();
    }

    fn find(&self, id: SessionId) -> Option<Session> {
        self.app.store.load(id).unwrap().map(|loaded| loaded.session)
    }

    async fn ask(&self, ask: Ask) -> lanyard_core::Outcome {
        let request = Request { ask, actor: Actor::operator("local"), cause: None, keys: Vec::new() };
        self.app.engine.ask(request).await.unwrap().outcome
    }

    async fn session(&self, new: NewSession, parent: Option<SessionId>) -> SessionId {
        let id = SessionId::mint(self.app.clock.now(), self.app.clock.random());
        let workspace = new.workspace.clone().or_else(|| Some(WORKSPACE.to_owned()));
        let new = Box::new(NewSession { workspace, ..new });
        self.ask(Ask::Create { id, new, parent }).await.session
    }

    async fn hub(&self, plan: Option<&str>) -> SessionId {
        let agent = Some("Coordinator".to_owned());
        self.session(NewSession { agent, plan: plan.map(str::to_owned), ..NewSession::default() }, None).await
    }

    async fn child(&self, parent: SessionId) -> SessionId {
        let agent = Some("Executor".to_owned());
        self.session(NewSession { agent, ..NewSession::default() }, Some(parent)).await
    }

    /// A session without a workspace.
    async fn anywhere(&self, parent: Option<SessionId>) -> SessionId {
        let id = SessionId::mint(self.app.clock.now(), self.app.clock.random());
        self.ask(Ask::Create { id, new: Box::default(), parent }).await.session
    }

    async fn command(&self, session: SessionId, command: Command) {
        self.ask(Ask::Do { session, command }).await;
    }

    async fn tell(&self, session: SessionId, signals: Vec<Signal>) {
        self.ask(Ask::Tell { session, signals }).await;
    }

    fn load(&self, session: SessionId) -> Session {
        self.app.store.load(session).unwrap().unwrap().session
    }

    /// The whole result of a call.
    async fn result(&self, session: Option<SessionId>, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        super::handle(&self.app.tools, session, "tools/call", params).await.unwrap()
    }

    /// What a call that must work answers.
    async fn call(&self, session: impl Into<Option<SessionId>>, tool: &str, arguments: Value) -> Value {
        let result = self.result(session.into(), tool, arguments.clone()).await;
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    /// The code with which a call is refused.
    async fn refused(&self, session: impl Into<Option<SessionId>>, tool: &str, arguments: Value) -> String {
        let result = self.result(session.into(), tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("refused: ") && text.contains("\ntry: "), "{text}");
        text.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned()
    }
}
