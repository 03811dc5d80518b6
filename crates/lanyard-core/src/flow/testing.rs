//! The harness of the tests of flows: a flow with a past, one thing that happens, and what came of it as short text. It does
//! what the daemon does: asks `want`, chooses ids, writes down, and tells what was seen.
//!
//! Ids and times are fixed: sessions, turns and gates are numbered from 1 as they are needed, and events follow one second
//! apart.

use crate::actor::Actor;
use crate::flow::advance::{FlowWant, Fresh, Looked, conclude, cut_off, quality_ended, want};
use crate::flow::decide::{FlowCommand, NewFlow, create, decide};
use crate::flow::event::{Conclusion, FailKind, FlowEnvelope, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGate, Probe};
use crate::flow::record::{CheckResult, Flow, FlowKind, FlowState, Invocation, Phase, PhaseState, Stage};
use crate::flow::refusal::FlowRefusal;
use crate::flow::settings::{Asking, FlowSettings, QualityCommand};
use crate::flow::verdict::{Action, AuthorStatus, Item, ItemPriority, Progress, Readiness, Verdict};
use crate::id::{FlowId, GateId, SessionId, TurnId};
use crate::log::Record as _;
use crate::time::Timestamp;

/// 2026-11-15T08:00:00Z.
pub(super) const START_MS: i64 = 1_794_729_600_000;

pub(super) fn session_id(number: u128) -> SessionId {
    SessionId::from_u128(number)
}

pub(super) fn gate_id(number: u128) -> GateId {
    GateId::from_u128(number)
}

pub(super) fn turn_id(number: u128) -> TurnId {
    TurnId::from_u128(number)
}

pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + seconds * 1_000)
}

/// A flow with all that happened to it.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) flow: Flow,
    pub(super) log: Vec<FlowEnvelope>,
    /// The newest session, turn and gate.
    pub(super) sessions: u128,
    pub(super) turns: u128,
    pub(super) gates: u128,
}

/// Two phases, one check, and a person who is asked after each phase.
pub(super) fn settings() -> FlowSettings {
    let quality = QualityCommand { name: "test".into(), command: vec!["make".into()], timeout_ms: 1_000 };
    FlowSettings { quality: vec![quality], ..FlowSettings::default() }
}

pub(super) fn phases() -> Given {
    begun(FlowKind::Phases, settings())
}

pub(super) fn review() -> Given {
    begun(FlowKind::PlanReview, settings())
}

/// With the settings changed.
pub(super) fn phases_with(change: impl FnOnce(&mut FlowSettings)) -> Given {
    let mut settings = settings();
    change(&mut settings);
    begun(FlowKind::Phases, settings)
}

pub(super) fn new_flow(kind: FlowKind, settings: FlowSettings) -> NewFlow {
    let phase = |title: &str| Phase {
        title: title.to_owned(),
        text: format!("- [ ] {title}"),
        state: PhaseState::Open,
        commit: None,
    };
    NewFlow {
        kind,
        title: "A plan".to_owned(),
        plan: "/w/PLAN.md".to_owned(),
        plan_hash: "0".to_owned(),
        workspace: "/w".to_owned(),
        settings,
        phases: if kind == FlowKind::Phases { vec![phase("Lexer"), phase("Parser")] } else { Vec::new() },
        request: None,
    }
}

pub(super) fn begun(kind: FlowKind, settings: FlowSettings) -> Given {
    let event = create(new_flow(kind, settings)).unwrap();
    let (flow, actor) = (FlowId::from_u128(1), Actor::operator("ann"));
    let first = FlowEnvelope { flow, seq: 1, at: at(0), actor, event };
    Given { flow: Flow::born(&first).unwrap(), log: vec![first], sessions: 0, turns: 0, gates: 0 }
}

/// The flow its log makes.
pub(super) fn fold(log: &[FlowEnvelope]) -> Flow {
    let mut flow = Flow::born(&log[0]).unwrap();
    for entry in &log[1..] {
        flow.apply(entry).unwrap();
    }
    flow
}

impl Given {
    pub(super) fn now(&self) -> Timestamp {
        at(i64::try_from(self.flow.seq).unwrap())
    }

    pub(super) fn fresh(&mut self) -> Fresh {
        self.gates += 1;
        Fresh { now: self.now(), gate: gate_id(self.gates) }
    }

    pub(super) fn add(&mut self, event: FlowEvent) {
        let (flow, seq, at) = (self.flow.id, self.flow.seq + 1, self.now());
        let entry = FlowEnvelope { flow, seq, at, actor: Actor::operator("ann"), event };
        self.flow.apply(&entry).unwrap();
        self.log.push(entry);
    }

    pub(super) fn add_all(&mut self, events: &[FlowEvent]) {
        for event in events {
            self.add(event.clone());
        }
    }

    /// Whoever is wanted begins to work; in a new session unless one is to be gone on with.
    pub(super) fn invoked(mut self) -> Self {
        self.invoke();
        self
    }

    pub(super) fn invoke(&mut self) -> Invocation {
        let FlowWant::Invoke { role, session, fork_of, guidance } = want(&self.flow, false) else {
            panic!("{:?} is wanted", want(&self.flow, false));
        };
        self.turns += 1;
        let continues = session.is_some();
        let session = session.unwrap_or_else(|| {
            self.sessions += 1;
            session_id(self.sessions)
        });
        let (step, turn) = (self.flow.step + 1, turn_id(self.turns));
        self.add(FlowEvent::Invoked {
            step,
            role,
            session,
            turn,
            continues,
            fork_of,
            guidance,
            before: Spent::default(),
        });
        self.flow.invocation.clone().unwrap()
    }

    /// It has done its work and is asked how it went.
    pub(super) fn asked(mut self) -> Self {
        self.turns += 1;
        self.add(FlowEvent::Asked { stage: Stage::Summary, turn: turn_id(self.turns), fault: None });
        self
    }

    pub(super) fn conclude(&mut self, conclusion: Conclusion, looked: Looked) -> Vec<FlowEvent> {
        let fresh = self.fresh();
        let spent = Spent { input_tokens: 100, output_tokens: 10, cost_micros: 0, ms: 1_000 };
        let events = conclude(&self.flow, conclusion, spent, looked, fresh);
        self.add_all(&events);
        events
    }

    /// Whoever is wanted works, and this is what comes of it; its session is as good as new.
    pub(super) fn works(mut self, conclusion: Conclusion) -> Self {
        self.invoke();
        self.conclude(conclusion, well());
        self
    }

    /// All checks are run; the first has this result and the others pass.
    pub(super) fn checked(mut self, first: &CheckResult) -> Self {
        let mut next = first.clone();
        for _ in 0..self.flow.settings.quality.len() {
            self.check(next);
            next = passed();
        }
        self
    }

    pub(super) fn check(&mut self, result: CheckResult) -> Vec<FlowEvent> {
        let FlowWant::Check { place } = want(&self.flow, false) else {
            panic!("{:?} is wanted", want(&self.flow, false));
        };
        let run = format!("{}-{place}", self.flow.step);
        self.add(FlowEvent::CheckBegun { place, run });
        let fresh = self.fresh();
        let events = quality_ended(&self.flow, result, well(), fresh);
        self.add_all(&events);
        events
    }

    pub(super) fn cut_off(mut self) -> Self {
        assert_eq!(want(&self.flow, false), FlowWant::CutOff);
        let fresh = self.fresh();
        let events = cut_off(&self.flow, fresh);
        self.add_all(&events);
        self
    }

    pub(super) fn put(&mut self, command: &FlowCommand) -> Result<Vec<FlowEvent>, FlowRefusal> {
        self.put_as(command, &Actor::operator("ann"))
    }

    pub(super) fn put_as(
        &mut self,
        command: &FlowCommand,
        by: &Actor,
    ) -> Result<Vec<FlowEvent>, FlowRefusal> {
        let fresh = self.fresh();
        let events = decide(&self.flow, command, by, fresh)?;
        self.add_all(&events);
        Ok(events)
    }

    pub(super) fn answered(mut self, choice: Choice, guidance: Option<&str>) -> Self {
        let answer = self.answer(choice, guidance);
        self.put(&answer).unwrap();
        self
    }

    /// An answer to the gate there is.
    pub(super) fn answer(&self, choice: Choice, guidance: Option<&str>) -> FlowCommand {
        let (gate, guidance) = (self.gate().id, guidance.map(str::to_owned));
        FlowCommand::Answer { gate, choice, guidance, probe: Some(well().probe) }
    }

    pub(super) fn after(mut self, command: &FlowCommand) -> Self {
        self.put(command).unwrap();
        self
    }

    pub(super) fn gate(&self) -> &FlowGate {
        self.flow.gate.as_ref().unwrap()
    }

    /// The session that can be gone on with, where to, and why not.
    pub(super) fn offer(&self) -> String {
        let gate = self.gate();
        assert!(gate.is_open() && self.flow.state.asks());
        match (&gate.continue_session, &gate.not_offered) {
            (Some(payload), None) => {
                let (session, role) = (payload.session.as_u128(), payload.role.as_str());
                format!("session {session}, {role}, {}", payload.resume_state)
            }
            (None, Some(why)) => format!("not offered: {why}"),
            (None, None) => "not offered".to_owned(),
            (Some(_), Some(_)) => panic!("both offered and not"),
        }
    }

    /// Up to the review of the first phase, or of the plan.
    pub(super) fn at_review(self) -> Self {
        match self.flow.state {
            FlowState::Review => self,
            FlowState::QualityCheck => self.checked(&passed()),
            FlowState::Execute
            | FlowState::QualityRetry
            | FlowState::ReviewGate
            | FlowState::AutoFix
            | FlowState::PhaseGate
            | FlowState::PhaseComplete
            | FlowState::Escalate
            | FlowState::Aborted
            | FlowState::Completed
            | FlowState::Approved => self.works(complete()).at_review(),
        }
    }
}

/// A session that lives, waits and has room.
pub(super) fn well() -> Looked {
    let probe = Probe { exists: true, alive: true, loadable: true, idle: true, context_left: true };
    Looked { probe, tokens: 0, unheard: false }
}

/// One that is not there.
pub(super) fn nowhere() -> Looked {
    Looked::default()
}

/// One that works.
pub(super) fn busy() -> Looked {
    Looked { probe: Probe { idle: false, ..well().probe }, tokens: 7, unheard: false }
}

fn author(status: Progress, reason: Option<&str>) -> Conclusion {
    let commit = (status == Progress::Complete).then(|| "abcd1234".to_owned());
    let notes = Some("notes".to_owned());
    Conclusion::Author(AuthorStatus { status, commit, reason: reason.map(str::to_owned), notes })
}

pub(super) fn complete() -> Conclusion {
    author(Progress::Complete, None)
}

pub(super) fn needs_human() -> Conclusion {
    author(Progress::NeedsHuman, Some("which one?"))
}

pub(super) fn gave_up() -> Conclusion {
    author(Progress::Failed, Some("too hard"))
}

pub(super) fn item(id: &str, title: &str, action: Action) -> Item {
    Item { id: id.into(), title: title.into(), action, priority: ItemPriority::P1, reason: None }
}

pub(super) fn verdict(readiness: Readiness, titles: &[&str], score: Option<u32>) -> Conclusion {
    let items = titles.iter().enumerate();
    let items = items.map(|(at, title)| item(&format!("i{at}"), title, Action::AutoFix)).collect();
    Conclusion::Verdict(Verdict { readiness, items, score, summary: Some("summary".to_owned()) })
}

pub(super) fn ready() -> Conclusion {
    verdict(Readiness::Ready, &[], None)
}

pub(super) fn not_ready(title: &str) -> Conclusion {
    verdict(Readiness::NotReady, &[title], None)
}

/// Something only a person can settle.
pub(super) fn for_a_person() -> Conclusion {
    let items = vec![item("i0", "a", Action::AutoFix), item("i1", "b", Action::HumanRequired)];
    Conclusion::Verdict(Verdict { readiness: Readiness::NotReady, items, score: None, summary: None })
}

pub(super) fn failed(kind: FailKind) -> Conclusion {
    failed_with(kind, "it broke")
}

pub(super) fn failed_with(kind: FailKind, reason: &str) -> Conclusion {
    Conclusion::Failed { kind, reason: reason.to_owned() }
}

pub(super) fn passed() -> CheckResult {
    CheckResult {
        name: "test".to_owned(),
        passed: true,
        exit_code: Some(0),
        timed_out: false,
        error: None,
        output: "ok".to_owned(),
        truncated: false,
        ms: 5,
    }
}

pub(super) fn broken(output: &str) -> CheckResult {
    CheckResult { passed: false, exit_code: Some(1), output: output.to_owned(), ..passed() }
}

pub(super) fn not_started() -> CheckResult {
    let error = Some("no such program".to_owned());
    CheckResult { passed: false, exit_code: None, error, output: String::new(), ..passed() }
}

/// A phase flow in which each check and each review gate is as it likes.
pub(super) fn asking_for_corrections() -> Given {
    phases_with(|settings| settings.rules.review_gate = Asking::Ask)
}
