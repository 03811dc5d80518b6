//! Flows at work: one driver each, which owns its flow, does what the record wants, and writes down what came of it.
//!
//! A driver remembers nothing that matters. It looks at the record, writes down what it is about to do under an id, does
//! it under that id, looks at what came of it, and writes that down; a daemon that comes back starts the drivers of all
//! flows that are not over, and they look again. Sessions, turns and the runs of checks outlive the daemon, so what was
//! finished meanwhile is found finished.

mod attend;
mod begin;
mod check;
mod driver;
mod hooks;
mod look;
mod place;
mod plan_lock;
mod tell;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lanyard_core::flow::{Flow, FlowCommand, FlowEnvelope, FlowRefusal, FlowSettings, Fresh, decide};
use lanyard_core::refusal::RefusalKind;
use lanyard_core::{Actor, FlowId, GateId, SessionId, refusals};
use lanyard_store::{FlowFilter, Store, StoreError};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::approvals;
use crate::notifications::NotificationHandle;
use crate::refusal::{Stated, refuses};
use crate::trees::OwnTrees;
pub(crate) use begin::Beginning;
use driver::Driver;
use lanyard_agents::agents::roster::Roster;
use lanyard_agents::runs::Runs;
use lanyard_base::clock::Clock;
use lanyard_base::error_chain;
use lanyard_engine::engine::{AskError, Engine, incarnation};
use lanyard_engine::hub::{Hub, Of, Over};

/// Orders that may wait for one flow.
const ORDERS_MAX: usize = 64;
/// Flows that may be open at a time.
const OPEN_MAX: usize = 256;
/// Flows read at a time.
const PAGE: usize = 100;
/// Changed sessions taken at a time.
const CHANGED_MAX: usize = 1_000;

/// What drivers work with.
pub(crate) struct Tools {
    engine: Engine,
    store: Arc<dyn Store>,
    clock: Arc<Clock>,
    agents: Roster,
    /// Worktrees are made and set up there.
    trees: OwnTrees,
    /// The runs of checks.
    checks: Runs,
    /// The config's.
    settings: FlowSettings,
    /// This incarnation of the daemon.
    holder: String,
    notifications: NotificationHandle,
}

impl Tools {
    pub(crate) fn new(
        engine: &Engine,
        store: &Arc<dyn Store>,
        clock: &Arc<Clock>,
        agents: &Roster,
        settings: FlowSettings,
        notifications: &NotificationHandle,
        (data, program, trees): (&Path, PathBuf, &OwnTrees),
    ) -> Self {
        Self {
            engine: engine.clone(),
            store: store.clone(),
            clock: clock.clone(),
            agents: agents.clone(),
            trees: trees.clone(),
            checks: Runs::new(data.join("flow-checks"), program),
            settings,
            notifications: notifications.clone(),
            holder: incarnation(),
        }
    }

    fn fresh(&self) -> Fresh {
        let now = self.clock.now();
        Fresh { now, gate: GateId::mint(now, self.clock.random()) }
    }

    /// Works with the store without holding up the runtime's threads.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, FlowError> + Send + 'static,
    ) -> Result<T, FlowError> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || work(&*store)).await.map_err(|_| FlowError::Closing)?
    }
}

refusals! {
    /// Why something about a flow was not done.
    #[derive(Debug, Clone, thiserror::Error)]
    pub(crate) enum FlowError {
        Unknown(name: String) => "flow_not_found", NotFound
            ("there is no flow `{0}`") ("list the flows with `lanyard flow ls --all`");
        Unavailable(why: String) => "storage_unavailable", Unavailable
            ("the journal cannot be read or written: {0}") ("check the disk with `lanyard doctor`, then repeat it");
        Defect(what: String) => "defect", Defect
            ("{0}") ("nothing was changed; please report this with the daemon's log");
        Closing => "daemon_closing", Unavailable ("the daemon is shutting down") ("repeat it once it runs again");
    }
    via { Refused(#[from] FlowRefusal), Bad(Stated), Ask(#[from] AskError) }
}
refuses!(FlowError);

impl From<StoreError> for FlowError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error_chain(&error))
    }
}

fn bad(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> FlowError {
    let kind = match code {
        "plan_locked" | "flows_too_many" => RefusalKind::Conflict,
        _ => RefusalKind::Invalid,
    };
    FlowError::Bad(Stated { code, kind, what: what.into(), advice: advice.into() })
}

/// Something asked of a flow.
struct Order {
    command: FlowCommand,
    by: Actor,
    answer: oneshot::Sender<Result<Flow, FlowError>>,
}

/// A driver, from outside.
struct DriverHandle {
    orders: mpsc::Sender<Order>,
    /// Something about one of its sessions is different.
    poke: Arc<Notify>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Desk {
    seats: HashMap<FlowId, DriverHandle>,
    /// Whose sessions these are.
    sessions: HashMap<SessionId, Arc<Notify>>,
    /// What tells drivers of changes.
    watching: Option<JoinHandle<()>>,
    closing: bool,
}

struct Inner {
    tools: Arc<Tools>,
    desk: Mutex<Desk>,
    /// One flow is begun at a time, so that no plan is taken twice.
    beginning: tokio::sync::Mutex<()>,
    /// Told when anything of any flow was written.
    written: Notify,
}

/// A handle to all flows; clones share it.
#[derive(Clone)]
pub struct FlowHandle(Arc<Inner>);

impl std::fmt::Debug for FlowHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flows").finish_non_exhaustive()
    }
}

impl FlowHandle {
    /// Starts the drivers of all flows that are not over, and what tells them of changes.
    pub(crate) fn start(tools: Tools, hub: &Arc<Hub>) -> Result<Self, StoreError> {
        let inner = Inner {
            tools: Arc::new(tools),
            desk: Mutex::default(),
            beginning: tokio::sync::Mutex::default(),
            written: Notify::new(),
        };
        let flows = Self(Arc::new(inner));
        let mut before = None;
        loop {
            let filter = FlowFilter { settled: Some(false), ..FlowFilter::default() };
            let page = flows.0.tools.store.flows(&filter, before, PAGE)?;
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            for flow in page {
                flows.seat(flow, None);
            }
        }
        let watching = tokio::spawn(watch(flows.clone(), hub.clone()));
        flows.desk().watching = Some(watching);
        Ok(flows)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.desk.lock()
    }

    /// Gives a flow its driver, and the driver its first order.
    fn seat(&self, flow: Flow, first: Option<Order>) {
        let mut desk = self.desk();
        let id = flow.id;
        if desk.closing {
            return;
        }
        if let Some(seat) = desk.seats.get(&id).filter(|seat| !seat.orders.is_closed()) {
            // One that finds no place is dropped, and whoever asked learns that it was not done.
            let _ = first.map(|order| seat.orders.try_send(order));
            return;
        }
        let (orders, outlet) = mpsc::channel(ORDERS_MAX);
        let _ = first.map(|order| orders.try_send(order));
        let poke = Arc::new(Notify::new());
        for worked in &flow.sessions {
            desk.sessions.insert(worked.session, poke.clone());
        }
        let driver = Driver::new(self.clone(), flow, outlet, poke.clone());
        let task = tokio::spawn(driver.run());
        desk.seats.insert(id, DriverHandle { orders, poke, task });
    }

    /// Hands an order to the flow's driver; gives it back when there is none.
    fn hand(&self, id: FlowId, order: Order) -> Result<Option<Order>, FlowError> {
        // Under the lock: a driver that leaves has looked for orders under it.
        let desk = self.desk();
        let Some(seat) = desk.seats.get(&id) else { return Ok(Some(order)) };
        match seat.orders.try_send(order) {
            Ok(()) => Ok(None),
            Err(mpsc::error::TrySendError::Full(_)) => {
                let what = format!("{ORDERS_MAX} requests wait for the flow already");
                Err(FlowError::Unavailable(what))
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(FlowError::Closing),
        }
    }

    /// A driver has nothing left to do. False when something was asked of it in the last moment.
    fn left(&self, flow: &Flow, orders: &mpsc::Receiver<Order>) -> bool {
        let mut desk = self.desk();
        if !orders.is_empty() {
            return false;
        }
        desk.seats.remove(&flow.id);
        for worked in &flow.sessions {
            desk.sessions.remove(&worked.session);
        }
        true
    }

    fn watches(&self, session: SessionId, poke: &Arc<Notify>) {
        self.desk().sessions.insert(session, poke.clone());
    }

    fn wrote(&self) {
        self.0.written.notify_waiters();
    }

    /// Asks something of a flow, and waits until it is on disk.
    pub(crate) async fn ask(&self, id: FlowId, command: FlowCommand, by: Actor) -> Result<Flow, FlowError> {
        let resumes = command == FlowCommand::Resume;
        // Until it is taken up again nobody else begins with its plan.
        let _one = if resumes { Some(self.0.beginning.lock().await) } else { None };
        if resumes {
            let flow = self.get(id).await?;
            decide(&flow, &command, &by, self.0.tools.fresh())?;
            self.may_take(&flow).await?;
        }
        let (answer, answered) = oneshot::channel();
        let order = Order { command: command.clone(), by: by.clone(), answer };
        if let Some(order) = self.hand(id, order)? {
            let flow = self.get(id).await?;
            // What is over is only taken up again, or told what it was told before.
            if !resumes {
                let events = decide(&flow, &command, &by, self.0.tools.fresh())?;
                return if events.is_empty() { Ok(flow) } else { Err(FlowError::Closing) };
            }
            self.seat(flow, Some(order));
        }
        answered.await.map_err(|_| FlowError::Closing)?
    }

    pub(crate) async fn get(&self, id: FlowId) -> Result<Flow, FlowError> {
        let found = self.0.tools.on_disk(move |store| Ok(store.flow(id)?)).await?;
        found.ok_or_else(|| FlowError::Unknown(id.to_string()))
    }

    /// A piece of its log. With `patience`, waits until there is something.
    pub(crate) async fn events(
        &self,
        id: FlowId,
        after: u64,
        limit: usize,
        patience: Duration,
        known: Option<BTreeSet<GateId>>,
    ) -> Result<(Flow, Vec<FlowEnvelope>), FlowError> {
        let until = tokio::time::Instant::now() + patience;
        loop {
            let mut told = std::pin::pin!(self.0.written.notified());
            // Listens before it looks: what is written in between wakes it.
            told.as_mut().enable();
            let flow = self.get(id).await?;
            if flow.seq > after {
                let events = self.0.tools.on_disk(move |store| Ok(store.flow_events(id, after, limit)?));
                return Ok((flow, events.await?));
            }
            if let Some(known) = &known
                && self.approvals(&flow).await? != *known
            {
                return Ok((flow, Vec::new()));
            }
            if tokio::time::timeout_at(until, told).await.is_err() {
                return Ok((flow, Vec::new()));
            }
        }
    }

    /// The gates at which its agents wait.
    async fn approvals(&self, flow: &Flow) -> Result<BTreeSet<GateId>, FlowError> {
        let sessions = flow.sessions_at_work();
        let open = self.0.tools.on_disk(move |store| Ok(approvals::open(store, sessions)?)).await?;
        Ok(open.into_iter().map(|entry| entry.gate.id).collect())
    }

    /// Those whose gate waits.
    pub(crate) async fn asking(&self) -> Result<Vec<Flow>, FlowError> {
        self.0
            .tools
            .on_disk(|store| {
                let filter = FlowFilter { ended: Some(false), ..FlowFilter::default() };
                let mut flows = store.flows(&filter, None, OPEN_MAX)?;
                flows.retain(|flow| flow.gate.as_ref().is_some_and(lanyard_core::flow::FlowGate::is_open));
                Ok(flows)
            })
            .await
    }

    pub(crate) async fn stop(&self) {
        let (seats, watching): (Vec<DriverHandle>, _) = {
            let mut desk = self.desk();
            desk.closing = true;
            (desk.seats.drain().map(|(_, seat)| seat).collect(), desk.watching.take())
        };
        for task in seats.into_iter().map(|seat| seat.task).chain(watching) {
            task.abort();
            let _ = task.await;
        }
    }

    fn poke(&self, sessions: &[SessionId]) {
        let desk = self.desk();
        for poke in sessions.iter().filter_map(|session| desk.sessions.get(session)) {
            poke.notify_one();
        }
        // Whoever watches a flow looks whether one of its agents, or of their subagents, waits to be allowed something.
        self.0.written.notify_waiters();
    }

    fn poke_all(&self) {
        for seat in self.desk().seats.values() {
            seat.poke.notify_one();
        }
    }
}

async fn watch(flows: FlowHandle, hub: Arc<Hub>) {
    loop {
        let changes = hub.changes(Of::Structure);
        // What changed before anybody watched is looked at whole.
        flows.poke_all();
        loop {
            match changes.wait().await {
                Ok(()) => flows.poke(&changes.take(CHANGED_MAX)),
                Err(Over::Behind) => break,
                Err(Over::Closing) => return,
            }
        }
    }
}
