//! Runs, gates and snapshots for the core's tests: `run#1` is the run made by `run_id(1)`, and every question is the
//! same one but for its handle.

use serde_json::json;

use super::{Given, Input};
use crate::id::{GateId, RunId};
use crate::session::event::{Event, PlanEntry, PlanEntryState, SnapshotReason};
use crate::session::gate::{GateEvent, GateKind, GateOption, OptionKind, Question};
use crate::session::run::{
    AgentInfo, Attempt, Capabilities, EndedProcess, Receipt, RunEnd, RunEvent, RunReady,
};
use crate::session::state::InterruptCause;
use crate::session::{
    AgentChoice, AgentOffer, BoundedResource, Command, OfferItem, OfferMenu, Signal, TerminalActivity,
};

pub(in crate::session) fn run_id(number: u128) -> RunId {
    RunId::from_u128(number)
}

pub(in crate::session) fn gate_id(number: u128) -> GateId {
    GateId::from_u128(number)
}

impl Given {
    /// Its first run, ready.
    #[track_caller]
    pub(in crate::session) fn with_run(self) -> Self {
        self.event(run_began(1)).event(RunEvent::Ready(Box::new(greeting(1))))
    }

    /// A run of its parent's, of which it shows a part.
    #[track_caller]
    pub(in crate::session) fn with_mirrored_run(self) -> Self {
        self.event(began(1, true))
    }

    /// A question of run 1, with the number of its gate as its handle.
    #[track_caller]
    pub(in crate::session) fn with_gate(self, gate: u128) -> Self {
        let question = Box::new(question(&gate.to_string()));
        self.event(GateEvent::Opened { gate: gate_id(gate), run: run_id(1), question })
    }
}

// Events, for the past of a session.

pub(in crate::session) fn run_began(run: u128) -> Event {
    began(run, false)
}

fn began(run: u128, mirrored: bool) -> Event {
    let (agent, driver) = ("executor".into(), "acp".into());
    RunEvent::Started {
        run: run_id(run),
        number: 1,
        agent,
        driver,
        mirrored,
        steers: false,
        sandbox: None,
        account: None,
    }
    .into()
}

pub(in crate::session) fn run_over(run: u128) -> Event {
    let (how, receipt) = (RunEnd::Exited { code: 0 }, Receipt::default());
    RunEvent::Ended { run: run_id(run), how, reason: None, receipt }.into()
}

// What they hold.

pub(in crate::session) fn greeting(run: u128) -> RunReady {
    RunReady {
        run: run_id(run),
        native: "thread-7".into(),
        info: AgentInfo { name: "scripted".into(), version: Some("1.2.3".into()), protocol: "acp 1".into() },
        capabilities: Capabilities { load: true, cancel: true, permissions: true, ..Capabilities::default() },
        continuity: None,
        history: None,
    }
}

pub(in crate::session) fn question(request: &str) -> Question {
    let option = |id: &str, name: &str, kind| GateOption { id: id.into(), name: name.into(), kind };
    Question {
        kind: GateKind::Permission,
        title: "Run the tests".into(),
        call: Some("c1".into()),
        detail: json!({ "command": "cargo test" }),
        options: vec![
            option("yes", "Allow", OptionKind::AllowOnce),
            option("yes-all", "Always", OptionKind::AllowAlways),
            option("no", "Reject", OptionKind::RejectOnce),
        ],
        request: request.into(),
    }
}

/// It heeded nothing but the last signal, and left a child behind.
pub(in crate::session) fn receipt() -> Receipt {
    let tried = |channel: &str, after_ms| Attempt { channel: channel.into(), after_ms };
    let process =
        |pid, name: &str, by: Option<&str>| EndedProcess { pid, name: name.into(), by: by.map(Into::into) };
    Receipt {
        tried: vec![tried("agent", 0), tried("term", 5_000), tried("kill", 7_000)],
        processes: vec![process(4_711, "agent", Some("KILL")), process(4_712, "sleep", None)],
        left: vec![process(4_713, "make", None)],
        kept: vec![process(4_714, "gopls", None)],
    }
}

// Inputs.

pub(in crate::session) fn resume() -> Input {
    Command::Resume { ways: Vec::new(), per_turn: false }.into()
}

pub(in crate::session) fn answer(gate: u128, option: &str) -> Input {
    Command::AnswerGate { gate: gate_id(gate), option: option.into(), message: None }.into()
}

pub(in crate::session) fn run_started(run: u128) -> Input {
    run_starts(run, false)
}

pub(in crate::session) fn mirrored_run_started(run: u128) -> Input {
    run_starts(run, true)
}

fn run_starts(run: u128, mirrored: bool) -> Input {
    let (agent, driver) = ("executor".into(), "acp".into());
    Signal::RunStarted {
        run: run_id(run),
        agent,
        driver,
        mirrored,
        steers: false,
        sandbox: None,
        account: None,
    }
    .into()
}

pub(in crate::session) fn run_ready(run: u128) -> Input {
    Signal::RunReady(Box::new(greeting(run))).into()
}

pub(in crate::session) fn offered(models: &[&str]) -> Input {
    let items = models.iter().map(|id| OfferItem::new(id)).collect();
    let models = OfferMenu { items, ..OfferMenu::default() };
    Signal::Offered(Box::new(AgentOffer { models, ..AgentOffer::default() })).into()
}

pub(in crate::session) fn in_force(model: &str) -> Input {
    Signal::InForce(AgentChoice { model: Some(model.into()), ..AgentChoice::default() }).into()
}

pub(in crate::session) fn activity(run: u128, activity: TerminalActivity) -> Input {
    Signal::TerminalActivity { run: run_id(run), activity, watched: false }.into()
}

pub(in crate::session) fn tools_missing(run: u128, servers: &[&str]) -> Input {
    let servers = servers.iter().map(|server| (*server).to_owned()).collect();
    Signal::ToolsMissing { run: run_id(run), servers }.into()
}

pub(in crate::session) fn bound_met(run: u128, times: u64) -> Input {
    Signal::BoundMet { run: run_id(run), what: BoundedResource::Memory, times }.into()
}

pub(in crate::session) fn run_adopted(run: u128) -> Input {
    Signal::RunAdopted { run: run_id(run) }.into()
}

/// The process exited by itself, whoever wanted it to.
pub(in crate::session) fn run_ended(run: u128, cause: impl Into<Option<InterruptCause>>) -> Input {
    run_ended_as(run, RunEnd::Exited { code: 0 }, cause, None)
}

pub(in crate::session) fn run_ended_as(
    run: u128,
    how: RunEnd,
    cause: impl Into<Option<InterruptCause>>,
    reason: Option<&str>,
) -> Input {
    let (cause, reason) = (cause.into(), reason.map(Into::into));
    Signal::RunEnded { run: run_id(run), how, cause, reason, receipt: Receipt::default() }.into()
}

/// A question of this run, with the number of its gate as its handle.
pub(in crate::session) fn gate_asked(gate: u128, run: u128) -> Input {
    asked_again(gate, run, &gate.to_string())
}

/// A question with this handle, which may have been asked before.
pub(in crate::session) fn asked_again(gate: u128, run: u128, request: &str) -> Input {
    asked(gate, run, question(request))
}

pub(in crate::session) fn asked(gate: u128, run: u128, question: Question) -> Input {
    Signal::GateAsked { gate: gate_id(gate), run: run_id(run), question: Box::new(question) }.into()
}

pub(in crate::session) fn gate_withdrawn(request: &str) -> Input {
    Signal::GateWithdrawn { request: request.into(), why: "the agent went on".into() }.into()
}

pub(in crate::session) fn planned(texts: &[&str]) -> Input {
    let entry = |text: &&str| PlanEntry { text: (*text).to_owned(), status: PlanEntryState::InProgress };
    Signal::Planned { entries: texts.iter().map(entry).collect() }.into()
}

pub(in crate::session) fn file_changed(path: &str) -> Input {
    Signal::FileChanged { path: path.into(), added: Some(3), removed: None }.into()
}

pub(in crate::session) fn snapshot_taken(name: &str) -> Input {
    let (name, commit, reason) = (name.to_owned(), "9fceb02".to_owned(), SnapshotReason::TurnStart);
    Signal::SnapshotTaken { name, commit, reason, files_changed: 2 }.into()
}

pub(in crate::session) fn rolled_back() -> Input {
    let (from, to) = ("rollback-42".into(), "turn-12".into());
    Signal::RolledBack { from, to, changed: 2, added: 1, removed: 0 }.into()
}

pub(in crate::session) fn branch_merged() -> Input {
    let (branch, commit, into) = ("lanyard/fix".into(), "9fceb02".into(), "main".into());
    Signal::BranchMerged { branch, commit, into }.into()
}

pub(in crate::session) fn branch_discarded() -> Input {
    let (branch, reference) = ("lanyard/fix".into(), "refs/lanyard/discarded/x/1".into());
    Signal::BranchDiscarded { branch, reference }.into()
}

pub(in crate::session) fn snapshot_skipped(code: &str) -> Input {
    Signal::SnapshotSkipped { code: code.into(), why: "the workspace cannot be kept".into() }.into()
}

/// A signal read from the first `to` bytes of a run's output.
pub(in crate::session) fn output(run: u128, to: u64, input: Input) -> Input {
    let Input::Signal(signal) = input else { panic!("an agent's output holds signals") };
    Input::Output { run: run_id(run), to, signal }
}
