//! A flow in a world that does what it likes: agents finish, ask, fail, hang and are lost, checks pass and fail, people
//! answer what is offered and what is not, cancel and take up again, deadlines come, and the daemon is killed between any
//! two writes. The world outside remembers what was really done, by the ids it was done under, and knows from the
//! requirements alone what may be offered and who has to be told what.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::actor::Actor;
use crate::flow::advance::{Due, FlowWant, Fresh, Looked, conclude, cut_off, due, quality_ended, want};
use crate::flow::decide::{FlowCommand, decide};
use crate::flow::event::{Conclusion, FailKind, FlowEnvelope, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGateKind, Probe};
use crate::flow::prompt;
use crate::flow::record::{CheckResult, Flow, FlowKind, FlowRole, FlowState, Stage};
use crate::flow::settings::{Asking, FlowSettings, GateDefault, QualityCommand};
use crate::flow::testing::{
    Given, begun, broken, complete, failed_with, fold, for_a_person, gate_id, gave_up, needs_human,
    not_ready, not_started, passed, ready, session_id, settings, turn_id, verdict,
};
use crate::flow::verdict::{Progress, Readiness};
use crate::id::{GateId, SessionId, TurnId};
use crate::log::Record as _;
use crate::time::Timestamp;

/// Looks after which a world that does no more than it must has to be at rest. A look is at most one step, and there are
/// only so many steps without a person.
const LOOKS_MAX: usize = 600;
/// Steps without a person, so that the bound is reached too.
const STEPS: u32 = 40;

/// A turn takes too long after this.
const TURN_MS: u64 = 3_000;

/// What somebody does, or what happens by itself. One that cannot happen now does not.
#[derive(Debug, Clone)]
enum Move {
    /// The daemon does the next thing that is wanted.
    Look,
    /// The daemon is killed before it writes what it has just found out, and looks again.
    DieBeforeWriting,
    /// It is killed, and reads everything from the log.
    Die,
    Answer(Choice, Option<u8>),
    /// The last answer is sent once more, as by a client that did not hear back.
    AnswerAgain,
    Cancel,
    Resume,
    /// Time passes.
    Wait(u64),
}

fn a_move() -> impl Strategy<Value = Move> {
    // Going on is what most is to be said about.
    let choices = [Choice::ALL.as_slice(), &[Choice::ContinueSession; 6], &[Choice::Continue; 4]].concat();
    prop_oneof![
        24 => Just(Move::Look),
        3 => Just(Move::DieBeforeWriting),
        2 => Just(Move::Die),
        8 => (proptest::sample::select(choices), proptest::option::of(0..4_u8))
            .prop_map(|(choice, words)| Move::Answer(choice, words)),
        2 => Just(Move::AnswerAgain),
        1 => Just(Move::Cancel),
        6 => Just(Move::Resume),
        2 => (1..5_000_u64).prop_map(Move::Wait),
    ]
}

/// What comes of a turn or a check, whatever it is asked.
#[derive(Debug, Clone)]
struct Fate {
    author: Conclusion,
    verdict: Conclusion,
    /// Instead of a result.
    failure: Option<FailKind>,
    looked: Looked,
    check: CheckResult,
    cancelled: bool,
}

fn fate() -> impl Strategy<Value = Fate> {
    let authors = vec![complete(), complete(), complete(), needs_human(), gave_up()];
    let verdicts = vec![
        ready(),
        ready(),
        not_ready("a"),
        not_ready("b"),
        verdict(Readiness::ReadyWithCorrections, &["c"], Some(50)),
        verdict(Readiness::NotReady, &[], None),
        for_a_person(),
    ];
    let failures = vec![
        FailKind::Timeout,
        FailKind::Transient,
        FailKind::Transient,
        FailKind::Busy,
        FailKind::Gone,
        FailKind::Exhausted,
        FailKind::Unreadable,
        FailKind::Failed,
        FailKind::NotStarted,
    ];
    let checks = vec![passed(), passed(), broken("a"), broken("b"), not_started()];
    (
        proptest::sample::select(authors),
        proptest::sample::select(verdicts),
        proptest::option::weighted(0.3, proptest::sample::select(failures)),
        looked(),
        proptest::sample::select(checks),
        proptest::bool::weighted(0.02),
    )
        .prop_map(|(author, verdict, failure, looked, check, cancelled)| Fate {
            author,
            verdict,
            failure,
            looked,
            check,
            cancelled,
        })
}

/// In some worlds the same happens again and again.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    prop_oneof![3 => vec(fate(), 1..30), 1 => vec(fate(), 1..3)]
}

fn looked() -> impl Strategy<Value = Looked> {
    let mostly = || proptest::bool::weighted(0.85);
    (mostly(), mostly(), mostly(), any::<bool>(), mostly(), proptest::bool::weighted(0.2)).prop_map(
        |(exists, alive, loadable, idle, context_left, unheard)| Looked {
            probe: Probe { exists, alive, loadable, idle, context_left },
            tokens: 0,
            unheard,
        },
    )
}

fn rules() -> impl Strategy<Value = FlowSettings> {
    let asking = || proptest::sample::select(vec![Asking::Ask, Asking::Auto]);
    let defaults = vec![GateDefault::Wait, GateDefault::ContinueSession, GateDefault::Abort];
    let deadline = proptest::sample::select(vec![0, 1_000]);
    let parts = (0..4_u32, 1..5_u32, 0..4_u32, 0..3_usize);
    let kinds = (asking(), asking(), proptest::sample::select(defaults), deadline);
    (parts, kinds, any::<bool>(), any::<bool>()).prop_map(|(numbers, gates, author, reviewer)| {
        let mut settings = settings();
        (settings.author.timeout_ms, settings.reviewer.timeout_ms) = (TURN_MS, TURN_MS);
        let (quality_retries, review_iterations, auto_retries, checks) = numbers;
        let check = |place| QualityCommand { name: format!("check {place}"), ..settings.quality[0].clone() };
        settings.quality = (0..checks).map(check).collect();
        let (phase_gate, review_gate, gate_default, gate_deadline_ms) = gates;
        let rules = &mut settings.rules;
        (rules.quality_retries, rules.review_iterations) = (quality_retries, review_iterations);
        (rules.auto_retries, rules.steps) = (auto_retries, STEPS);
        (rules.phase_gate, rules.review_gate) = (phase_gate, review_gate);
        (rules.gate_default, rules.gate_deadline_ms) = (gate_default, gate_deadline_ms);
        settings.author.abort_on_timeout = author;
        settings.reviewer.abort_on_timeout = reviewer;
        settings
    })
}

/// Somebody at work, as the world outside saw it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    session: SessionId,
    role: FlowRole,
    state: FlowState,
    /// The invocation continued an existing session.
    old: bool,
    /// Because that was chosen at a gate, at once or before turns of it were lost.
    chosen: bool,
}

/// What a person said, and who has heard it.
#[derive(Debug, Clone)]
struct Said {
    words: String,
    heard: BTreeSet<SessionId>,
}

/// What was really done under an id, and whether that is written down.
#[derive(Debug, Clone)]
struct Done<T> {
    what: T,
    told: bool,
}

struct World {
    log: Vec<FlowEnvelope>,
    flow: Flow,
    now: Timestamp,
    fates: Vec<Fate>,
    next_fate: usize,
    ids: u128,
    turns: BTreeMap<TurnId, Done<Fate>>,
    checks: BTreeMap<String, Done<CheckResult>>,
    answered: BTreeSet<GateId>,
    last_answer: Option<FlowCommand>,
    /// Who worked last.
    seen: Option<Seen>,
    said: Option<Said>,
    /// The next session was chosen to be gone on with.
    chosen: bool,
    open: Option<GateId>,
}

fn person() -> Actor {
    Actor::operator("ann")
}

fn daemon() -> Actor {
    Actor::system("flow")
}

fn usable(probe: Probe) -> bool {
    probe.exists && (probe.alive || probe.loadable) && probe.context_left
}

impl World {
    fn new(kind: FlowKind, settings: FlowSettings, fates: Vec<Fate>) -> Self {
        let Given { flow, log, .. } = begun(kind, settings);
        let now = flow.created_at;
        Self {
            log,
            flow,
            now,
            fates,
            next_fate: 0,
            ids: 0,
            turns: BTreeMap::new(),
            checks: BTreeMap::new(),
            answered: BTreeSet::new(),
            last_answer: None,
            seen: None,
            said: None,
            chosen: false,
            open: None,
        }
    }

    fn id(&mut self) -> u128 {
        self.ids += 1;
        self.ids
    }

    fn fresh(&mut self) -> Fresh {
        Fresh { now: self.now, gate: gate_id(self.id()) }
    }

    fn fate(&mut self) -> Fate {
        self.next_fate += 1;
        self.fates[(self.next_fate - 1) % self.fates.len()].clone()
    }

    fn die(&mut self) {
        self.flow = fold(&self.log);
    }

    /// One write: all of it or nothing. What cannot have happened is never among what the rules answer.
    fn commit(&mut self, events: &[FlowEvent], by: &Actor) {
        for event in events {
            let (flow, seq, at) = (self.flow.id, self.flow.seq + 1, self.now);
            let entry = FlowEnvelope { flow, seq, at, actor: by.clone(), event: event.clone() };
            self.flow.apply(&entry).unwrap_or_else(|error| panic!("{error}\n{}", self.describe()));
            self.log.push(entry);
            if let FlowEvent::GateOpened { gate } = event {
                self.open = Some(gate.id);
            }
            if let FlowEvent::GateAnswered { gate, .. } = event {
                assert!(self.answered.insert(*gate), "a gate was answered twice\n{}", self.describe());
                assert_eq!(self.open.take(), Some(*gate));
            }
        }
        assert_eq!(fold(&self.log), self.flow, "the log makes another flow\n{}", self.describe());
        let open = self.flow.gate.as_ref().filter(|gate| gate.is_open()).map(|gate| gate.id);
        assert_eq!(open, self.open, "a gate was lost\n{}", self.describe());
        let ended = self.flow.state.is_ended();
        assert!(ended || self.flow.state.asks() == self.open.is_some(), "{}", self.describe());
    }

    /// The daemon looks once and does the next thing. Answers whether there was anything to do.
    fn look(&mut self, dies: bool) -> bool {
        if let Some(next) = due(&self.flow, self.now).first().copied() {
            return self.carry_out(next);
        }
        match want(&self.flow, false) {
            FlowWant::Invoke { role, session, fork_of, guidance } => {
                if !dies {
                    self.invoke(role, session, fork_of, guidance);
                }
            }
            FlowWant::Attend => self.attend(dies),
            FlowWant::Check { place } => {
                let run = format!("{}-{place}", self.flow.step);
                assert!(!self.checks.contains_key(&run), "{run} is run twice\n{}", self.describe());
                self.commit(&[FlowEvent::CheckBegun { place, run }], &daemon());
            }
            FlowWant::AttendCheck => self.attend_check(dies),
            FlowWant::CutOff => {
                let fresh = self.fresh();
                let events = cut_off(&self.flow, fresh);
                self.commit(&events, &daemon());
                self.expect_offer(false);
            }
            FlowWant::Settle => {
                let settled = FlowEvent::Settled { captured: None, tree_removed: false, failed: None };
                self.commit(&[settled], &daemon());
            }
            FlowWant::Answer | FlowWant::Nothing => return false,
            FlowWant::MakeTree => unreachable!("it has no worktree"),
        }
        true
    }

    fn invoke(
        &mut self,
        role: FlowRole,
        session: Option<SessionId>,
        fork_of: Option<SessionId>,
        guidance: Option<String>,
    ) {
        // Whatever was done before is written down: nothing that was finished is begun anew.
        assert!(self.turns.values().all(|done| done.told), "a turn is repeated\n{}", self.describe());
        assert!(self.checks.values().all(|done| done.told), "a check is repeated\n{}", self.describe());
        let old = session.is_some();
        let session = session.unwrap_or_else(|| session_id(self.id()));
        let owed =
            self.said.as_ref().filter(|said| !said.heard.contains(&session)).map(|said| said.words.clone());
        assert_eq!(guidance, owed, "whoever works is told what was said\n{}", self.describe());
        let (step, turn, continues) = (self.flow.step + 1, turn_id(self.id()), old);
        let chosen = std::mem::take(&mut self.chosen) && old;
        self.seen = Some(Seen { session, role, state: self.flow.state, old, chosen });
        let event = FlowEvent::Invoked {
            step,
            role,
            session,
            turn,
            continues,
            fork_of,
            guidance,
            before: Spent::default(),
        };
        self.commit(&[event], &daemon());
    }

    /// The turn is begun if it was not, under its id; what comes of it is there when the daemon comes back.
    fn attend(&mut self, dies: bool) {
        let invocation = self.flow.invocation.clone().unwrap();
        if !self.turns.contains_key(&invocation.turn) {
            let mut fate = self.fate();
            // Whoever answers has heard.
            fate.looked.unheard &= matches!(
                fate.failure,
                Some(
                    FailKind::Timeout
                        | FailKind::Transient
                        | FailKind::Busy
                        | FailKind::Gone
                        | FailKind::NotStarted
                )
            );
            let text = prompt::text(&self.flow, &invocation);
            if let Some(said) = &mut self.said {
                let told = text.contains(&said.words);
                assert!(!told || !said.heard.contains(&invocation.session), "{} is told twice", said.words);
                if told && !fate.looked.unheard {
                    said.heard.insert(invocation.session);
                }
            }
            self.turns.insert(invocation.turn, Done { what: fate, told: false });
        }
        if dies {
            return self.die();
        }
        let done = self.turns.get_mut(&invocation.turn).unwrap();
        done.told = true;
        let fate = done.what.clone();
        let conclusion = match (fate.failure, invocation.role) {
            _ if fate.cancelled => Conclusion::Cancelled { reason: "enough".to_owned() },
            (Some(kind), _) => failed_with(kind, &format!("reason {}", self.next_fate % 3)),
            (None, _) if invocation.stage == Stage::Work => {
                let turn = turn_id(self.id());
                let asked = FlowEvent::Asked { stage: Stage::Summary, turn, fault: None };
                return self.commit(&[asked], &daemon());
            }
            (None, FlowRole::Author) => fate.author.clone(),
            (None, FlowRole::Reviewer) => fate.verdict.clone(),
        };
        self.concluded(conclusion, fate.looked);
    }

    fn concluded(&mut self, conclusion: Conclusion, looked: Looked) {
        let first = self.flow.invocation.as_ref().unwrap().stage == Stage::Work;
        let (fresh, expected) = (self.fresh(), self.may_go_on(&conclusion, looked, first));
        let events = conclude(&self.flow, conclusion, Spent::default(), looked, fresh);
        self.commit(&events, &daemon());
        if let Some(FlowEvent::Retried { session, .. }) = events.last() {
            self.chosen = session.is_some() && self.seen.unwrap().chosen;
        } else if self.flow.state != FlowState::Aborted {
            // Whoever takes up what was aborted has not heard what was said; all else is over.
            self.said = None;
        }
        if self.flow.state.asks() {
            self.expect_offer(expected);
        }
    }

    /// What the requirements say: S2-09, S2-12, S2-13, S2-22, S2-23, S2-B02, S2-B03.
    fn may_go_on(&self, conclusion: &Conclusion, looked: Looked, first: bool) -> bool {
        let seen = self.seen.unwrap();
        let settings = &self.flow.settings;
        let aborts = match seen.role {
            FlowRole::Author => settings.author.abort_on_timeout,
            FlowRole::Reviewer => settings.reviewer.abort_on_timeout,
        };
        let knows_its_work = seen.old || !first || !looked.unheard;
        let fit = match conclusion {
            // A question is no failure, and is answered however often it is asked.
            Conclusion::Author(status) => !seen.chosen || status.status == Progress::NeedsHuman,
            // Only a reviewer who has to say more goes on reviewing; all else is the author's.
            Conclusion::Verdict(verdict) => {
                verdict.items.is_empty() && verdict.readiness == Readiness::NotReady
            }
            Conclusion::Failed { kind, .. } => match kind {
                FailKind::Timeout => !seen.chosen && !aborts && knows_its_work,
                FailKind::Transient | FailKind::Busy => knows_its_work,
                FailKind::Unreadable | FailKind::Failed => !seen.chosen && knows_its_work,
                FailKind::Gone | FailKind::Exhausted | FailKind::NotStarted => false,
            },
            Conclusion::Cancelled { .. } => false,
        };
        fit && usable(looked.probe)
    }

    /// The gate that was opened offers the last session, or nothing.
    fn expect_offer(&self, expected: bool) {
        let gate = self.flow.gate.as_ref().unwrap();
        let payload = gate
            .continue_session
            .as_ref()
            .map(|payload| (payload.session, payload.resume_state, payload.role));
        let seen = self.seen.map(|seen| (seen.session, seen.state, seen.role));
        let expected = seen.filter(|_| expected && gate.kind == FlowGateKind::Escalation);
        assert_eq!(payload, expected, "wrongly offered or not\n{}", self.describe());
    }

    fn attend_check(&mut self, dies: bool) {
        let check = self.flow.check.clone().unwrap();
        let fate = self.fate();
        let result = CheckResult { name: self.flow.settings.quality[check.place].name.clone(), ..fate.check };
        let done = self.checks.entry(check.run.clone()).or_insert(Done { what: result, told: false });
        if dies {
            return self.die();
        }
        done.told = true;
        let result = done.what.clone();
        let fresh = self.fresh();
        let started = result.error.is_none();
        let events = quality_ended(&self.flow, result, fate.looked, fresh);
        self.commit(&events, &daemon());
        if self.flow.state.asks() {
            let seen = self.seen.unwrap();
            let fit = started && seen.state == FlowState::QualityRetry;
            self.expect_offer(fit && usable(fate.looked.probe));
        }
    }

    fn carry_out(&mut self, next: Due) -> bool {
        match next {
            Due::Timeout => {
                let turn = self.flow.invocation.as_ref().unwrap().turn;
                let mut looked = self.fate().looked;
                looked.unheard = self.turns.get(&turn).is_none_or(|done| done.what.looked.unheard);
                if let Some(done) = self.turns.get_mut(&turn) {
                    done.told = true;
                }
                self.concluded(failed_with(FailKind::Timeout, "too long"), looked);
            }
            Due::Reap { session } => {
                let why = "it had its time".to_owned();
                self.commit(&[FlowEvent::SessionReleased { session, why }], &daemon());
            }
            Due::Answer { gate, choice } => {
                let gate_default = self.flow.settings.rules.gate_default;
                assert_ne!(gate_default, GateDefault::Wait, "nobody answers for a person who is waited for");
                self.answer(gate, choice, None, &daemon());
            }
        }
        true
    }

    fn answer(&mut self, gate: GateId, choice: Choice, words: Option<String>, by: &Actor) {
        let probe = Some(self.fate().looked.probe);
        let command = FlowCommand::Answer { gate, choice, guidance: words.clone(), probe };
        let offered = self.flow.gate.as_ref().is_some_and(|open| open.id == gate && open.offers(choice));
        let open = self.open == Some(gate) && !self.flow.state.is_ended();
        let fits = words.is_none() || choice.takes_guidance();
        let able = choice != Choice::ContinueSession || probe.is_some_and(usable);
        let fresh = self.fresh();
        let decided = decide(&self.flow, &command, by, fresh);
        self.last_answer = Some(command);
        if !open {
            assert!(decided.is_err() || decided == Ok(Vec::new()), "{}", self.describe());
            return;
        }
        assert_eq!(decided.is_ok(), offered && fits && able, "{decided:?}\n{}", self.describe());
        match decided {
            Ok(events) => {
                self.chosen = choice == Choice::ContinueSession;
                self.said = words.map(|words| Said { words, heard: BTreeSet::new() });
                self.commit(&events, by);
            }
            Err(_) if offered && fits => {
                let why = "its session is gone".to_owned();
                self.commit(&[FlowEvent::ContinuationWithdrawn { gate, why }], &daemon());
            }
            Err(_) => {}
        }
    }

    fn take(&mut self, one: &Move) {
        match one {
            Move::Look => {
                self.look(false);
            }
            Move::DieBeforeWriting => {
                self.look(true);
            }
            Move::Die => self.die(),
            Move::Answer(choice, words) => {
                let words = words.map(|_| format!("words {}.", self.id()));
                if let Some(gate) = self.flow.gate.as_ref().map(|gate| gate.id) {
                    self.answer(gate, *choice, words, &person());
                }
            }
            Move::AnswerAgain => {
                let Some(FlowCommand::Answer { gate, choice, guidance, .. }) = self.last_answer.clone()
                else {
                    return;
                };
                if self.open != Some(gate) {
                    self.answer(gate, choice, guidance, &person());
                }
            }
            Move::Cancel => self.command(&FlowCommand::Cancel { reason: None }),
            Move::Resume => {
                let aborted = self.flow.state == FlowState::Aborted;
                self.command(&FlowCommand::Resume);
                if aborted && self.flow.state.asks() {
                    self.expect_offer(false);
                }
            }
            Move::Wait(ms) => self.now = self.now.plus_millis(*ms),
        }
    }

    fn command(&mut self, command: &FlowCommand) {
        let fresh = self.fresh();
        if let Ok(events) = decide(&self.flow, command, &person(), fresh)
            && !events.is_empty()
        {
            self.commit(&events, &person());
            // What runs is ended by the daemon, and nothing is waited for.
            self.turns.values_mut().for_each(|done| done.told = true);
            self.checks.values_mut().for_each(|done| done.told = true);
            self.chosen = false;
        }
    }

    /// Goes on until only a person can. Answers whether that came.
    fn settle_down(&mut self) -> bool {
        for _ in 0..LOOKS_MAX {
            if !self.look(false) {
                self.now = self.now.plus_millis(10_000);
                if due(&self.flow, self.now).is_empty() {
                    return true;
                }
            }
        }
        false
    }

    fn describe(&self) -> String {
        let log: Vec<String> = self.log.iter().map(|entry| format!("{:?}", entry.event)).collect();
        format!("{:#?}\n{}", self.flow.settings, log.join("\n"))
    }
}

fn kinds() -> impl Strategy<Value = FlowKind> {
    proptest::sample::select(vec![FlowKind::Phases, FlowKind::Phases, FlowKind::PlanReview])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// S2-B01, S2-B09 and the rules of what is offered: see the head of this file. In the end it waits for a person or has
    /// ended, and says why; and when that person has enough, it ends.
    #[test]
    fn nothing_is_done_twice_and_no_question_is_lost(
        kind in kinds(),
        settings in rules(),
        fates in fates(),
        moves in vec(a_move(), 0..200),
    ) {
        let mut world = World::new(kind, settings, fates);
        for one in &moves {
            world.take(one);
        }
        prop_assert!(world.settle_down(), "there is always something to do:\n{}", world.describe());
        if !world.flow.state.is_ended() {
            prop_assert!(world.open.is_some(), "nobody is asked:\n{}", world.describe());
            world.take(&Move::Cancel);
            prop_assert!(world.settle_down());
            prop_assert_eq!(world.flow.state, FlowState::Aborted);
        }
        prop_assert!(world.flow.settled);
        prop_assert!(world.flow.reason.is_some() || world.flow.state != FlowState::Aborted);
        // And the log is the same after a trip through JSON.
        let text = serde_json::to_string(&world.log).unwrap();
        prop_assert_eq!(fold(&serde_json::from_str::<Vec<FlowEnvelope>>(&text).unwrap()), world.flow.clone());
        let record = serde_json::to_string(&world.flow).unwrap();
        prop_assert_eq!(serde_json::from_str::<Flow>(&record).unwrap(), world.flow);
    }
}
