//! Starting a run.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_api::agents::accounts::AccountChoice;
use lanyard_api::agents::known;
use lanyard_api::agents::settings::{AgentSettings, DriverKind};
use lanyard_api::names::SESSION;
use lanyard_core::session::{
    ActiveTurn, AgentOffer, Continuity, InterruptCause, Receipt, ResumeWay, Run, RunEnd, Session, Signal,
    SnapshotReason, TurnOutcome,
};
use lanyard_core::{RunId, SessionId, Timestamp, TurnId};
use lanyard_git::workspace_files;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use super::course::Course;
use super::end::ways_after;
use super::limited::{account_of, known as known_limit};
use super::spent::SpentOutput;
use super::{Left, Runner, tools};
use crate::agents::AgentWish;
use crate::agents::acp::Acp;
use crate::agents::addresses::Addresses;
use crate::agents::calls::{Calls, Stand};
use crate::agents::claude::{self, ClaudeCode};
use crate::agents::codex::Codex;
use crate::agents::command::{self, CommandDriver, Places};
use crate::agents::confine::{self, Confined};
use crate::agents::driver::{Begin, Driver, McpServer, Setting, Tuned};
use crate::agents::given::with_parts;
use crate::agents::handover;
use crate::agents::on_terminal::{self, OnTerminal};
use crate::agents::opencode::OpenCode;
use crate::agents::pen::Pen;
use crate::agents::shared::{Opened, Shared};
use crate::agents::words::{self, PastOf};
use crate::runs::bounds::RunLimits;
use crate::runs::cgroup;
use crate::runs::relay::Inlet;
use crate::runs::{Link, Spec, SpoolLimits, TerminalSpec};
use crate::sandbox::Enclosure;
use crate::terminal::settings_of;
use lanyard_base::failpoint;

use lanyard_base::environment;

/// What a program on a terminal is told to write for, unless the agent's settings say another.
const TERMINAL_VARIABLES: [(&str, &str); 2] = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// A run to be started.
pub(in crate::agents) struct Start {
    pub(in crate::agents) shared: Arc<Shared>,
    pub(in crate::agents) session: SessionId,
    pub(in crate::agents) orders: mpsc::Receiver<AgentWish>,
    pub(in crate::agents) turn: Option<TurnId>,
    /// How the conversation may be taken up again; the agent's settings when left out.
    pub(in crate::agents) ways: Option<Vec<ResumeWay>>,
}

/// How a conversation begins in a new run.
pub(super) struct Plan {
    pub(super) begin: Begin,
    /// How the conversation comes over, and the words that carry it; none for one that is lost.
    pub(super) past: Option<(Continuity, String)>,
    pub(super) ways: Vec<ResumeWay>,
}

/// What is kept beside a run from before its start: whose it is, and how its conversation was begun.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::agents) struct About {
    pub(in crate::agents) session: SessionId,
    agent: Option<String>,
    /// The conversation it was told to take up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) native: Option<String>,
    /// As what it is given the past, where it was told to begin a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) past: Option<Continuity>,
    /// What may be tried if that fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ways: Vec<ResumeWay>,
    /// Where its MCP servers are; none where that was the daemon itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) relay: Option<SocketAddr>,
    /// The turn it was started for, where an agent is run once per turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agents) turn: Option<TurnId>,
    /// The sandbox of the run. What is done for the agent by a later daemon is done in it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<Enclosure>,
    /// Its bounds, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<RunLimits>,
}

impl About {
    /// The turn a run of an agent that is run once per turn belongs to. Folders of older daemons do not name it: there
    /// it is the active turn, unless a later one began since the agent was ready.
    pub(in crate::agents) fn own_turn(&self, session: &Session, held: &Run) -> Option<TurnId> {
        let active = session.turn.as_ref().filter(|_| held.turns <= 1).map(ActiveTurn::prompt_id);
        self.turn.or(active)
    }
}

/// Why a run could not be started: a stable code and a sentence.
type Failure = (String, String);

/// Starts a run and stays with it to its end.
pub(in crate::agents) async fn start(mut start: Start) -> Left {
    let Some(session) = start.shared.session(start.session).await else { return Left::default() };
    let agent = session.hands.agent.clone().unwrap_or_default();
    let Some(settings) = start.shared.settings.agent(&agent) else {
        return nobody_runs(start, &agent).await;
    };
    let settings = settings_of(&session, settings);
    // Ended while it waited, by a crash or a cancel: nobody needs a process for it.
    let is_current = |active: &ActiveTurn, turn| active.prompt_id() == turn && !active.is_waiting();
    if start.turn.is_some_and(|turn| !session.turn.as_ref().is_some_and(|active| is_current(active, turn))) {
        return left_by(start);
    }
    let (account, settings) = match account(&start, &session, &agent, settings).await {
        Ok(chosen) => chosen,
        Err(NoAccount::Limited(signal)) => {
            start.shared.note(start.session, *signal).await;
            return left_by(start);
        }
        Err(NoAccount::Unusable(what)) => {
            return fail_unstarted(start, &agent, "account_unusable", &what).await;
        }
    };
    if let Some(stale) = session.live_run() {
        // The turn that is to be run now was admitted after that run was lost.
        start.shared.end_unattended(start.session, stale.id, None).await;
    }
    failpoint::hit("before_run");
    let run = start.shared.mint_run();
    let driver = settings.driver.as_str().to_owned();
    let confined = confined(&start.shared, &session, &settings, run).await;
    let group = Confined::group_of(&confined);
    let sandbox = confined.as_ref().ok().and_then(|held| held.containment.clone()).map(Box::new);
    let agent = agent.clone();
    let started = Signal::RunStarted { run, agent, driver, mirrored: false, steers: false, sandbox, account };
    start.shared.note(start.session, started).await;
    // Read again: somebody may have stopped it, and a run the log does not know must not begin.
    let Some(session) = start.shared.session(start.session).await else { return Left::default() };
    if session.live_run().is_none_or(|held| held.id != run) {
        tracing::info!(session = %start.session, "the session wants no run any more");
        let_go(group.as_deref());
        return left_by(start);
    }
    let prepared = match confined {
        Ok(confined) => prepare(&mut start, &session, &settings, run, confined).await,
        Err(failure) => Err(failure),
    };
    match prepared {
        Ok(runner) => Box::pin(runner.run()).await,
        Err((code, what)) => {
            tracing::warn!(session = %start.session, %run, code, what, "an agent was not started");
            let signals = not_started(&start, run, code, &what);
            start.shared.note_all(start.session, signals).await;
            let _ = start.shared.runs.forget(&run.to_string());
            let_go(group.as_deref());
            left_by(start)
        }
    }
}

/// The sandbox and the bounds of the run. A workspace that is missing is told when the run is prepared.
async fn confined(
    shared: &Arc<Shared>,
    session: &Session,
    settings: &AgentSettings,
    run: RunId,
) -> Result<Confined, Failure> {
    let workspace = workspace_of(session).await?;
    confine::of_session(shared, session, settings, &workspace, run).await
}

/// Removes the control group of a run that never came to be.
fn let_go(group: Option<&Path>) {
    if let Some(group) = group {
        cgroup::remove(group);
    }
}

/// Why a run has no account.
enum NoAccount {
    /// The limit of every account is known to be reached: the turn waits.
    Limited(Box<Signal>),
    Unusable(String),
}

/// The account for the run, and the settings with its variables. A limit that is known already is the turn's end for now.
async fn account(
    start: &Start,
    session: &Session,
    agent: &str,
    mut settings: AgentSettings,
) -> Result<(Option<String>, AgentSettings), NoAccount> {
    let (shared, now) = (&start.shared, start.shared.clock.now());
    let held = account_of(session);
    if session.turn.as_ref().and_then(|turn| turn.leg.as_ref()).is_some_and(|leg| leg.asked) {
        let first = held.or(settings.accounts.first().map(|account| account.name.as_str()));
        shared.exhausted.forget(agent, first);
    }
    let name = match (shared.account(agent, &settings, held, now), start.turn) {
        (AccountChoice::Use(name), _) => name,
        (AccountChoice::Exhausted { account, resets_at }, Some(turn)) => {
            let signal = known_limit(shared, &settings, turn, (account, resets_at));
            return Err(NoAccount::Limited(Box::new(signal)));
        }
        // An agent that is only to be there costs nothing.
        (AccountChoice::Exhausted { account, .. }, None) => account,
    };
    let Some(account) = name.as_deref().and_then(|name| settings.account(name)).cloned() else {
        return Ok((None, settings));
    };
    let values =
        tokio::task::spawn_blocking(move || account.environment(|name| std::env::var(name).ok())).await;
    match values.map_err(|error| error.to_string()).and_then(|values| values.map_err(|why| why.to_string())) {
        Ok(values) => {
            settings.env.extend(values);
            Ok((name, settings))
        }
        Err(why) => Err(NoAccount::Unusable(why)),
    }
}

/// The agent is none of the config's: a subagent whose parent's process has ended. Its turn ends with these words.
async fn nobody_runs(start: Start, agent: &str) -> Left {
    let what = format!("no agent `{agent}` is configured; a subagent lives with its parent");
    fail_unstarted(start, agent, "agent_unknown", &what).await
}

/// No run is started: its turn fails, or the log says why there is none.
async fn fail_unstarted(start: Start, agent: &str, code: &str, what: &str) -> Left {
    if start.turn.is_some() {
        let (turn, outcome, reason) = (start.turn, TurnOutcome::Failed, Some(format!("{code}: {what}")));
        start.shared.note(start.session, Signal::TurnFinished { turn, outcome, reason }).await;
    } else {
        // Somebody waits for the run: the log says why there is none.
        let (run, agent, driver) = (start.shared.mint_run(), agent.to_owned(), "none".to_owned());
        let begun = Signal::RunStarted {
            run,
            agent,
            driver,
            mirrored: false,
            steers: false,
            sandbox: None,
            account: None,
        };
        let ended = not_started(&start, run, code.to_owned(), what);
        let signals = std::iter::once(begun).chain(ended).collect();
        start.shared.note_all(start.session, signals).await;
    }
    left_by(start)
}

/// What was ordered of a run that never came to be.
fn left_by(mut start: Start) -> Left {
    start.orders.close();
    let mut orders = Vec::new();
    while let Ok(order) = start.orders.try_recv() {
        orders.push(order);
    }
    Left { orders, again: None }
}

/// A run that did not begin. Without a program or a folder its turn failed, and nothing of it is in doubt; other ends
/// may be mended by another try.
fn not_started(start: &Start, run: RunId, code: String, what: &str) -> Vec<Signal> {
    let failed = matches!(
        code.as_str(),
        "workspace_missing"
            | "agent_program_missing"
            | confine::UNAVAILABLE
            | confine::IMPOSSIBLE
            | confine::UNBOUNDED
    );
    let turn = start.turn.filter(|_| failed);
    let reason = Some(format!("{code}: {what}"));
    let (cause, how) = (Some(InterruptCause::Crash).filter(|_| turn.is_none()), RunEnd::NotStarted { code });
    let ended = Signal::RunEnded { run, how, cause, reason: reason.clone(), receipt: Receipt::default() };
    let outcome = TurnOutcome::Failed;
    let finished = turn.map(|turn| Signal::TurnFinished { turn: Some(turn), outcome, reason });
    std::iter::once(ended).chain(finished).collect()
}

/// The ways to continue the conversation that the session's record and the agent's settings allow.
fn resume_ways(session: &Session, settings: &AgentSettings) -> Vec<ResumeWay> {
    match session.carries {
        // Another agent's conversation that this one may be able to load; where that fails, its text is handed over.
        Some(_) => [ResumeWay::Native].into_iter().chain(handover::ways(settings)).collect(),
        None => settings.resume.clone(),
    }
}

async fn prepare(
    start: &mut Start,
    session: &Session,
    settings: &AgentSettings,
    run: RunId,
    confined: Confined,
) -> Result<Runner, Failure> {
    let workspace = workspace_of(session).await?;
    let shared = start.shared.clone();
    let ways = start.ways.clone().unwrap_or_else(|| resume_ways(session, settings));
    let plan = plan(&shared, session, settings, ways).await?;
    let prompt = start_prompt(&shared, session, start.turn, settings, &plan).await?;
    let (choice, native) = (session.wanted_choice().over(&settings.choice()), native_of(&plan.begin));
    // The port is in the agent's configuration, so it is taken before there is an agent.
    let inlet = inlet(&shared)?;
    let relay = Some(inlet.address());
    let addresses = shared.addresses.through(relay);
    let mcp = servers(&addresses, session, run, settings);
    let (config, base) = (addresses.config(&mcp), addresses.base(start.session));
    let places = prompt.as_deref().map(|prompt| Places {
        prompt,
        choice: &choice,
        native: native.as_deref(),
        mcp_config: &config,
        mcp: &base,
    });
    let offered = tools::offered(settings, &mcp);
    let git_folders = git_folders(settings, &workspace).await;
    let tuned = tuned(&shared, session, &plan.begin).await;
    let setting = Setting { git_folders, ..setting(settings, &workspace, run, plan.begin, mcp, tuned) };
    let mut spec = spec(settings, &workspace, start.session, places)?;
    spec.env.extend(addresses.environment(start.session, run));
    add_conversation(&mut spec, settings, &setting, &config);
    let door = shared.runs.door(&run.to_string());
    spec.bounds = confined.bounds;
    spec.sandbox = confined.enclosure.map(|held| held.of_run(door, relay.map(|relay| relay.port())));
    let around = (spec.sandbox.clone(), spec.bounds.clone());
    add_terminal(&mut spec, session, shared.clock.now());
    let about = About {
        session: start.session,
        agent: session.hands.agent.clone(),
        native,
        past: plan.past.as_ref().map(|(how, _)| *how),
        ways: plan.ways.clone(),
        turn: start.turn.filter(|_| settings.driver == DriverKind::Command),
        relay,
        sandbox: around.0.clone(),
        bounds: around.1.clone(),
    };
    let about = serde_json::to_value(about).map_err(|error| ("defect".to_owned(), error.to_string()))?;
    failpoint::hit("before_spawn");
    let link = shared.runs.start_with(&run.to_string(), &about, &spec, Some(inlet)).await;
    failpoint::hit("after_spawn");
    let link = link.map_err(|error| (error.code().to_owned(), error.to_string()))?;
    let orders = std::mem::replace(&mut start.orders, mpsc::channel(1).1);
    let driver = driver(settings, setting);
    let patience = Duration::from_millis(settings.handshake_timeout_ms);
    let parts = (driver, link, around);
    let mut runner = Runner::new(shared, session, settings.clone(), workspace, run, parts, orders);
    runner.course.await_greeting(Instant::now() + patience);
    runner.waiting = start.turn;
    runner.offered = offered;
    runner.past = plan.past;
    runner.ways = plan.ways;
    runner.has_past = has_past(session);
    runner.open_console(session);
    runner.say(|driver, out| driver.begin(out));
    if let (Some(text), Some(turn)) = (prompt, start.turn) {
        runner.was_given(session, turn, &text).await;
    }
    Ok(runner)
}

/// The words that an agent is started with, where it is started for each turn.
async fn start_prompt(
    shared: &Shared,
    session: &Session,
    turn: Option<TurnId>,
    settings: &AgentSettings,
    plan: &Plan,
) -> Result<Option<String>, Failure> {
    match (settings.driver, turn) {
        (DriverKind::Command, Some(turn)) => {
            once_prompt(shared, session, turn, settings, plan).await.map(Some)
        }
        (DriverKind::Command, None) => {
            let what = "this agent is started anew for each turn; send it a prompt";
            Err(("agent_per_turn".to_owned(), what.to_owned()))
        }
        (
            DriverKind::Acp
            | DriverKind::Claude
            | DriverKind::Codex
            | DriverKind::Opencode
            | DriverKind::Terminal,
            _,
        ) => Ok(None),
    }
}

/// Whether there was something before the running turn that the agent should know.
fn has_past(session: &Session) -> bool {
    // A conversation the agent had before its first run here should be known to it too.
    let brought = session.native.is_some() && session.run.as_ref().is_some_and(|held| held.number == 1);
    let worked = session.turn.as_ref().is_some_and(|turn| turn.leg.is_some() && turn.worked);
    brought || worked || had_turns(session)
}

/// Whether there was a turn before the running one.
fn had_turns(session: &Session) -> bool {
    session.turns > u64::from(session.turn.is_some())
}

/// Whether the agent was given a prompt before, which may be that of the running turn before a limit.
fn was_prompted(session: &Session) -> bool {
    let before = session.turn.as_ref().is_some_and(|turn| turn.leg.is_some() && turn.delivered);
    before || had_turns(session)
}

/// The listener of the run's relay.
fn inlet(shared: &Shared) -> Result<Inlet, Failure> {
    Inlet::open(shared.addresses.socket.clone())
        .map_err(|error| ("relay_failed".to_owned(), format!("no loopback port is free: {error}")))
}

fn native_of(begin: &Begin) -> Option<String> {
    match begin {
        Begin::Resume { native } => Some(native.clone()),
        Begin::New | Begin::Adopted { .. } => None,
    }
}

/// The words of a turn for an agent that is started with them.
async fn once_prompt(
    shared: &Shared,
    session: &Session,
    turn: TurnId,
    settings: &AgentSettings,
    plan: &Plan,
) -> Result<String, Failure> {
    let gone = || ("prompt_missing".to_owned(), "the turn's prompt cannot be read from the log".to_owned());
    let active = session.turn.as_ref().filter(|active| active.prompt_id() == turn).ok_or_else(gone)?;
    let Opened { prompt, parts, anchors, governance } =
        shared.prompt(session.id, active.seq).await.ok_or_else(gone)?;
    // A command takes words alone.
    let prompt = with_parts(&prompt, &shared.given(session.id, &parts).await);
    let prompt = words::of_leg(active, prompt, !matches!(plan.begin, Begin::New));
    let tell = governance || matches!(plan.begin, Begin::New);
    let before = words::Before {
        instructions: settings.instructions.as_deref().filter(|_| tell),
        rules: session.governance.sentences().filter(|_| tell),
        past: plan.past.as_ref().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty()),
        anchors: &anchors,
        guidance: &session.guidance,
    };
    Ok(words::prompt(&prompt, &before))
}

impl Runner {
    /// The program was started with its prompt and may greet in the middle of its answer.
    async fn was_given(&mut self, session: &Session, turn: TurnId, text: &str) {
        self.waiting = None;
        self.own_turn = Some(turn);
        self.snapshot(session, SnapshotReason::TurnStart, &turn.to_string()).await;
        if let Some(active) = &session.turn {
            self.take_turn(active);
        }
        self.say(|driver, out| driver.prompt(turn, None, text.into(), out));
        self.carry_out().await;
        self.handed_over(turn, Some(session)).await;
        self.close_unless_two_way().await;
    }

    /// An agent that is started with its prompt is told nothing more, unless it takes answers while it works.
    pub(super) async fn close_unless_two_way(&self) {
        if !self.settings.per_turn().is_two_way() {
            let _ = self.link.close_input().await;
        }
    }
}

/// The folder the agent works in: the session's workspace, which must be there.
async fn workspace_of(session: &Session) -> Result<PathBuf, Failure> {
    let Some(text) = &session.workspace else {
        return Err(("workspace_missing".to_owned(), "the session names no workspace".to_owned()));
    };
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        let what = format!("the workspace `{text}` is no absolute path");
        return Err(("workspace_missing".to_owned(), what));
    }
    if !workspace_files::is_folder(&path).await {
        let what = format!("the workspace {text} is no folder, or has vanished");
        return Err(("workspace_missing".to_owned(), what));
    }
    Ok(path)
}

/// Decides how the conversation goes on: the first way that can be tried.
async fn plan(
    shared: &Shared,
    session: &Session,
    settings: &AgentSettings,
    ways: Vec<ResumeWay>,
) -> Result<Plan, Failure> {
    let fresh = Plan { begin: Begin::New, past: None, ways: Vec::new() };
    if settings.driver == DriverKind::Terminal {
        let again = session.run.as_ref().is_some_and(|run| run.number > 1);
        let (held, own) = (session.clone(), settings.clone());
        let found = tokio::task::spawn_blocking(move || on_terminal::resumable(&held, &own)).await;
        if let (true, Ok(Some(native))) = (again, found) {
            return Ok(Plan { begin: Begin::Resume { native }, ..fresh });
        }
        // The same command again: what the program remembers of the run before is not known.
        return Ok(Plan { past: again.then(|| (Continuity::Lost, String::new())), ..fresh });
    }
    let Some(native) = session.native.clone().filter(|_| !is_unwritten(session, settings)) else {
        // A fork goes on from what was said before it, and an agent that takes over from what another was told.
        let told = match (session.carries, session.forked_from) {
            (Some(_), _) => handover::ways(settings),
            (None, Some(_)) => vec![ResumeWay::Replay, ResumeWay::Preamble],
            (None, None) => return Ok(fresh),
        };
        for how in told.into_iter().filter_map(handover::in_words) {
            if let Some(text) = past(shared, session, how).await {
                return Ok(Plan { past: Some((how, text)), ..fresh });
            }
        }
        let lost = session.carries.map(|_| (Continuity::Lost, String::new()));
        return Ok(Plan { past: lost, ..fresh });
    };
    let alone = settings.driver == DriverKind::Command && settings.per_turn().next.is_empty();
    for way in &ways {
        let rest = ways_after(&ways, *way);
        let how = match way {
            ResumeWay::Native if alone => continue,
            ResumeWay::Native => {
                return Ok(Plan { begin: Begin::Resume { native }, past: None, ways: rest });
            }
            ResumeWay::Replay => Continuity::Replayed,
            ResumeWay::Preamble => Continuity::Preamble,
        };
        if let Some(text) = past(shared, session, how).await {
            return Ok(Plan { begin: Begin::New, past: Some((how, text)), ways: rest });
        }
    }
    if alone {
        // Each of its turns begins a new conversation, and the log must say so.
        return Ok(Plan { past: Some((Continuity::Lost, String::new())), ..fresh });
    }
    let what =
        "no way is left to go on with the conversation; allow `replay` or `preamble`, or fork the session";
    Err(("resume_impossible".to_owned(), what.to_owned()))
}

/// Claude Code writes a conversation down with its first prompt. One that was opened by a run of this session and never
/// prompted is nowhere, and nothing is lost with it.
fn is_unwritten(session: &Session, settings: &AgentSettings) -> bool {
    let opened_here = session.run.as_ref().is_some_and(|held| held.number > 1);
    settings.driver == DriverKind::Claude && opened_here && !was_prompted(session)
}

/// The conversation before the running turn, in words: with what came before the fork, where it is one.
pub(super) async fn past(shared: &Shared, session: &Session, how: Continuity) -> Option<String> {
    let held = session.clone();
    let read = shared.on_disk(move |store| handover::conversation(store, &held));
    let whose = match (session.carries, &session.native) {
        (Some(_), _) => PastOf::Another,
        (None, Some(_)) => PastOf::Lost,
        (None, None) => PastOf::Forked,
    };
    words::past(&read.await.ok()?, how, whose)
}

/// What an agent is told of MCP servers: where the gateway has them for this session.
pub(in crate::agents) fn servers(
    addresses: &Addresses,
    session: &Session,
    run: RunId,
    settings: &AgentSettings,
) -> Vec<McpServer> {
    let agent = session.hands.agent.as_deref().unwrap_or_default();
    addresses.offered((session.id, run), agent, settings.mcp.keys())
}

pub(in crate::agents) fn setting(
    settings: &AgentSettings,
    workspace: &Path,
    run: RunId,
    begin: Begin,
    mcp: Vec<McpServer>,
    tuned: Tuned,
) -> Setting {
    Setting {
        begin,
        workspace: workspace.to_owned(),
        instructions: settings.instructions.clone(),
        mode: settings.mode.clone(),
        model: settings.model.clone(),
        mcp,
        client_files: known::client_files(settings),
        conversation: conversation_of(run),
        git_folders: Vec::new(),
        tuned,
    }
}

/// What the log knows of the choices of a run. A new conversation offers anew.
pub(super) async fn tuned(shared: &Shared, session: &Session, begin: &Begin) -> Tuned {
    let offer = match begin {
        Begin::New => AgentOffer::default(),
        Begin::Resume { .. } | Begin::Adopted { .. } => shared.offer(session).await,
    };
    Tuned { wanted: session.choice.clone(), in_force: session.in_force.clone(), offer }
}

/// The run's own bits as a UUID. A daemon that comes before the agent has greeted finds the same.
fn conversation_of(run: RunId) -> String {
    let bits = format!("{:032x}", run.as_u128());
    let parts = [&bits[..8], &bits[8..12], &bits[12..16], &bits[16..20], &bits[20..]];
    parts.join("-")
}

/// Tells a program of its conversation and its MCP servers where its protocol has no place for them.
pub(in crate::agents) fn add_conversation(
    spec: &mut Spec,
    settings: &AgentSettings,
    setting: &Setting,
    mcp_config: &str,
) {
    if settings.driver == DriverKind::Terminal {
        spec.argv.extend(on_terminal::conversation_words(&settings.command, setting));
    }
    if settings.driver == DriverKind::Claude {
        spec.argv.extend(claude::arguments(setting, mcp_config));
        let (name, value) = claude::STATES;
        spec.env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// Gives the program of a terminal run its terminal.
fn add_terminal(spec: &mut Spec, session: &Session, now: Timestamp) {
    let Some(program) = &session.terminal else { return };
    spec.terminal = Some(TerminalSpec::new(program.size, now.as_millis() / 1_000));
    for (name, value) in TERMINAL_VARIABLES {
        spec.env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// Where a commit in one of Lanyard's worktrees is written, for the agent whose sandbox has to be told.
async fn git_folders(settings: &AgentSettings, workspace: &Path) -> Vec<PathBuf> {
    if settings.driver != DriverKind::Codex {
        return Vec::new();
    }
    let folder = workspace.to_owned();
    let found = tokio::task::spawn_blocking(move || lanyard_git::worktree::commit_folders(&folder)).await;
    found.unwrap_or_default()
}

pub(in crate::agents) fn driver(settings: &AgentSettings, setting: Setting) -> Box<dyn Driver> {
    match settings.driver {
        DriverKind::Acp => Box::new(Acp::new(setting)),
        DriverKind::Opencode => Box::new(OpenCode::new(setting)),
        DriverKind::Claude => Box::new(ClaudeCode::new(setting)),
        DriverKind::Codex => Box::new(Codex::new(setting)),
        DriverKind::Command => Box::new(CommandDriver::new(setting, settings.per_turn())),
        DriverKind::Terminal => Box::new(OnTerminal::new(&settings.command, setting)),
    }
}

pub(in crate::agents) fn spec(
    settings: &AgentSettings,
    workspace: &Path,
    session: SessionId,
    places: Option<Places<'_>>,
) -> Result<Spec, Failure> {
    let mut argv = settings.command.clone();
    if argv.is_empty() {
        return Err(("agent_program_missing".to_owned(), "the agent's command is empty".to_owned()));
    }
    match settings.driver {
        DriverKind::Opencode => {
            let bridge =
                [crate::agents::program().display().to_string(), "opencode-bridge".into(), "--".into()];
            argv.splice(0..0, bridge);
            add_missing(&mut argv, "serve");
        }
        DriverKind::Codex => add_missing(&mut argv, "app-server"),
        DriverKind::Acp | DriverKind::Claude | DriverKind::Command | DriverKind::Terminal => {}
    }
    if let Some(places) = places {
        argv.extend(command::arguments(&settings.per_turn(), places));
    }
    Ok(Spec {
        argv,
        env: environment(settings, session),
        clear_env: settings.clear_env,
        cwd: workspace.to_owned(),
        grace_ms: settings.kill_grace_ms,
        limits: SpoolLimits::default(),
        sandbox: None,
        bounds: None,
        terminal: None,
    })
}

/// What every process of a session's agent finds in its environment, beside what is inherited where that is not cleared.
fn environment(settings: &AgentSettings, session: SessionId) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = BTreeMap::new();
    if settings.clear_env {
        let kept =
            environment::KEPT.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        env.extend(kept);
    }
    env.extend(settings.env.clone());
    env.insert(SESSION.to_owned(), session.to_string());
    env
}

/// Adds the subcommand a driver needs, unless the config has it.
fn add_missing(argv: &mut Vec<String>, word: &str) {
    if !argv.iter().any(|held| held == word) {
        argv.push(word.to_owned());
    }
}

/// The sandbox and the bounds of a run.
type Held = (Option<Enclosure>, Option<RunLimits>);

impl Runner {
    pub(super) fn new(
        shared: Arc<Shared>,
        session: &Session,
        settings: AgentSettings,
        workspace: PathBuf,
        run: RunId,
        (driver, link, (enclosure, bounds)): (Box<dyn Driver>, Link, Held),
        orders: mpsc::Receiver<AgentWish>,
    ) -> Self {
        let held = session.run.as_ref().filter(|held| held.id == run);
        let from = held.map_or(0, |held| held.cursor).max(link.consumed_to());
        let now = Instant::now();
        let stand = Stand { enclosure, bounds, ..Stand::of(&shared, &settings, &workspace, session.id, run) };
        Self {
            session: session.id,
            agent: session.hands.agent.clone().unwrap_or_default(),
            account: held.and_then(|held| held.account.clone()),
            output: link.output(from),
            console: None,
            unread: Vec::new(),
            position: from,
            here: from,
            actions: VecDeque::new(),
            pen: Pen::new(shared.engine.redactor()),
            report_at: None,
            held_since: None,
            reported: from,
            told: HashMap::from([(session.id, from)]),
            spent: SpentOutput::new(from),
            course: Course::ready(),
            turn: None,
            began: None,
            waiting: None,
            own_turn: None,
            children: HashMap::new(),
            end_reason: None,
            tried: Vec::new(),
            tried_since: None,
            ended_turn: None,
            calls: Calls::new(stand),
            held_back: VecDeque::new(),
            clearing: JoinSet::new(),
            past: None,
            own_turns: HashSet::new(),
            ways: Vec::new(),
            has_past: false,
            replayed: 0,
            odd: 0,
            offered: Vec::new(),
            bound_behind: String::new(),
            idle_since: now,
            flood: None,
            unmeasured: false,
            undelivered: None,
            chosen_for_turn: false,
            shared,
            settings,
            workspace,
            run,
            driver,
            link,
            orders,
        }
    }
}
