//! What holds for every session, whatever is thrown at it. `Given::put` itself panics when a decision makes an event
//! that does not apply, so each run here checks that too.

use crate::attachment::AttachmentId;
use crate::session::testing::{START_MS, begins, complies, ends};
use crate::session::testing::{comment_id, draft_of, send_review};
use crate::session::{
    AttachedContent, Compliance, Delivery, DraftComment, InboxChange, InboxCommand, LineSpan, Message,
    PARTS_BYTES_MAX, Promotion, PromptPart, ReviewCommand, StopScope,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::id::{GateId, RunId, SessionId, WorkerId};
use crate::memory::MemoryAsk;
use crate::policy::{Limits, MemoryMode, Overlong, Rules};
use crate::session::bounds::BoundedResource;
use crate::session::event::{
    Ending, Envelope, Event, InboxEvent, PlanEntry, PlanEntryState, Role, SnapshotReason, TurnOutcome,
};
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Given, HOUR, Input, ann, answer, archive, asked, born, cancel_turn, checkpoint, complete,
    context_compacted, daemon_restarted, delete, ended, fail, gate_asked, gate_id, given, greeting,
    guidance_delivered, guide, in_state, issue_seen, migrate_to_agent, mirrored_run_started, note_id,
    question, quiet, receipt, reset, run_ended, run_id, run_ready, run_started, session_id, start_turn, stop,
    tool_called, turn_finished, turn_id, turn_lost, unarchive, withdraw_stop, work_ended,
};
use crate::session::{
    AgentChoice, AgentInfo, AgentOffer, Command, GateKind, GateOption, Limit, LimitKind, LimitRules,
    LimitSeen, Lineage, NewSession, OfferItem, OfferMenu, OptionKind, Question, Refusal, ResumeWay, Run,
    RunEnd, RunEvent, RunReady, Session, Signal, StateName, TerminalActivity, create, link, replay,
};
use crate::text::NAME_CHARS_MAX;
use crate::time::Timestamp;

proptest! {
    /// S1-17, X-04, S1-B11: nothing panics, every event applies, and the log alone makes the session again, before and
    /// after a trip through JSON.
    #[test]
    fn a_log_always_adds_up_to_the_session(steps in vec(step(), 0..80), rules in rules()) {
        let mut given = given([]).rules(|held| *held = rules);
        for step in &steps {
            take(&mut given, step);
        }
        prop_assert!(given.log.iter().map(|envelope| envelope.seq).eq(1..=given.session.seq));
        prop_assert_eq!(replay(&given.log), Ok(Some(given.session.clone())));

        let read_back: Vec<Envelope> = given
            .log
            .iter()
            .map(|envelope| serde_json::from_str(&serde_json::to_string(envelope).unwrap()).unwrap())
            .collect();
        prop_assert_eq!(&read_back, &given.log);
        prop_assert_eq!(replay(&read_back), Ok(Some(given.session.clone())));

        let record = serde_json::to_string(&given.session).unwrap();
        prop_assert_eq!(serde_json::from_str::<Session>(&record).unwrap(), given.session);
    }

    /// S1-B10: whatever the clock does.
    #[test]
    fn the_last_activity_never_moves_back(steps in vec(step(), 0..80)) {
        let mut given = given([]);
        for step in &steps {
            let before = given.session.last_activity_at;
            take(&mut given, step);
            prop_assert!(given.session.last_activity_at >= before);
        }
    }

    /// S0-15, S0-B06, X-04: an end is an end. A stop alone can be followed by an operator's resume.
    #[test]
    fn an_ended_session_never_changes_its_state(
        before in vec(step(), 0..20),
        how in prop_oneof![Just(Ending::Completed), Just(Ending::Failed), Just(Ending::Stopped)],
        after in vec(step(), 1..60),
    ) {
        let mut given = given([]);
        for step in &before {
            take(&mut given, step);
        }
        take(&mut given, &Step { input: work_ended(), jump_ms: 0 });
        // A message that interrupted the turn runs as soon as that has ended.
        while given.session.turn.is_some() {
            take(&mut given, &Step { input: work_ended(), jump_ms: 0 });
        }
        if !given.session.state.is_ended() && !given.session.deleted {
            // Nothing waits in a session that has ended.
            for waiting in given.session.inbox.clone() {
                let gone = InboxEvent::Withdrawn { turn: waiting.turn, reason: None };
                given = given.event(Event::from(gone));
            }
            given = given.event(ended(how));
        }
        let first = given.session.clone();
        for step in after.iter().filter(|step| !matches!(step.input, Input::Command(Command::Resume { .. }))) {
            take(&mut given, step);
            prop_assert_eq!(given.session.state, first.state);
            prop_assert_eq!(given.session.turns, first.turns);
            prop_assert_eq!(&given.session.stop, &first.stop);
            prop_assert_eq!(&given.session.end_reason, &first.end_reason);
        }
    }

    /// S4-B01, S2-B01: one incarnation at a time, each with its number, its output read forward only; a question is
    /// open only while its run lives and its turn runs.
    #[test]
    fn runs_and_gates_keep_their_order(steps in vec(step(), 0..120)) {
        let mut given = given([]);
        for step in &steps {
            let before = given.session.clone();
            take(&mut given, step);
            let after = &given.session;
            one_run_follows_another(&before, after)?;
            let live = after.run.as_ref().filter(|run| run.is_live());
            for gate in after.open_gates() {
                prop_assert!(after.turn.is_some(), "an open gate outside a turn");
                prop_assert_eq!(Some(gate.run), live.map(|run| run.id), "an open gate of another run");
            }
            if after.state.is_ended() {
                prop_assert_eq!(after.open_gates().count(), 0, "an ended session with an open gate");
            }
        }
        let starts = given.log.iter().filter_map(|envelope| {
            let Event::Run(RunEvent::Started { number, .. }) = &envelope.event else { return None };
            Some(*number)
        });
        prop_assert!(starts.eq(1..=given.session.run.as_ref().map_or(0, |run| run.number)));
    }

    /// S0-B11, S3-B10: a session is stopped only when nothing of its own lives.
    #[test]
    fn a_stopped_session_has_no_live_run(steps in vec(step(), 0..120)) {
        let mut given = given([]);
        for step in &steps {
            take(&mut given, step);
            let stopped = given.session.state.name() == StateName::Stopped;
            prop_assert!(!stopped || given.session.live_run().is_none());
        }
    }

    /// A client in a loop cannot fill the disk with what was refused.
    #[test]
    fn refusals_in_a_row_are_bounded(steps in vec(step(), 0..60), repeats in 33..80_usize) {
        let mut given = given([]);
        for step in &steps {
            take(&mut given, step);
            let length = given.log.len();
            let mut again = given.clone();
            let refused = (0..repeats).filter(|_| again.put(&step.input).refusal.is_some()).count();
            if refused == repeats {
                prop_assert!(again.log.len() - length <= 32);
            }
        }
    }

    /// A decision depends on nothing but what it is given.
    #[test]
    fn the_same_inputs_make_the_same_log(steps in vec(step(), 0..40)) {
        let run = || {
            let mut given = given([]);
            for step in &steps {
                take(&mut given, step);
            }
            given.log
        };
        prop_assert_eq!(run(), run());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 256, ..ProptestConfig::default() })]

    /// S1-B11: the record does not grow with the log.
    #[test]
    fn the_record_stays_small_however_long_the_log(steps in vec(lasting_step(), 2_000)) {
        let mut given = given([]);
        for (number, step) in steps.iter().enumerate() {
            take(&mut given, step);
            if number % 100 == 99 {
                is_bounded(&given.session)?;
            }
        }
        prop_assert!(given.session.seq > 1_000);
        prop_assert_eq!(replay(&given.log), Ok(Some(given.session)));
    }
}

/// The bound with the longest texts there can be: every list full, every character four bytes long.
#[test]
fn the_fullest_record_has_a_bound() {
    let text = |number: u128| format!("{number:04}{}", "🎈".repeat(NAME_CHARS_MAX - 4));
    let all = |prefix: u128, count: u128| {
        (0..count).map(|number| text(1_000 * prefix + number)).collect::<Vec<_>>()
    };
    let anchors = all(1, 64);
    let mut given = born(&NewSession {
        title: Some(text(1)),
        agent: Some(text(2)),
        owner: Some(text(3)),
        source: Some(text(4)),
        workspace: Some(text(5)),
        plan: Some(text(6)),
        phase: Some(text(7)),
        purpose: Some(text(8)),
        aliases: all(2, 16),
        anchors: anchors.clone(),
        ..NewSession::default()
    });
    let mut sizes = Vec::new();
    for round in 0..6 {
        for number in round * 20..(round + 1) * 20 {
            given = given.after_each([
                guide(number, &text(number)),
                migrate_to_agent(&text(number)),
                start_turn(number),
                tool_called(&text(number), &text(number)),
                issue_seen(&text(number), Some(0.1)),
                Signal::ErrorSeen { hash: text(number), text: Some(text(number)) }.into(),
                Signal::ContextCompacted { size_before: 9, size_after: 1, anchors_survived: anchors.clone() }
                    .into(),
                run_started(number),
                Signal::RunReady(Box::new(RunReady {
                    run: run_id(number),
                    native: text(number).repeat(9),
                    info: AgentInfo {
                        name: text(number),
                        version: Some(text(number)),
                        protocol: text(number),
                    },
                    ..greeting(number)
                }))
                .into(),
                asked(number, number, longest_question(&text(number))),
                Command::AnswerGate {
                    gate: gate_id(number),
                    option: "allow".into(),
                    message: Some(text(number)),
                }
                .into(),
                Signal::SnapshotSkipped { code: text(number), why: text(number) }.into(),
                Command::CancelTurn { reason: Some(text(number)) }.into(),
                run_ended(number, None),
            ]);
        }
        sizes.push(serde_json::to_string(&given.session).unwrap().len());
    }
    assert!(sizes[5] < 9 << 20, "{sizes:?}");
    // Guidance is full after four rounds; from then on nothing but numbers of more digits is added.
    assert!(sizes[5] < sizes[4] + 64, "{sizes:?}");
}

/// As long as a question may be, and what would be longer cut by the core.
fn longest_question(text: &str) -> Question {
    let option = |number: usize| GateOption {
        id: format!("{number:03}{}", "🎈".repeat(197)),
        name: text.to_owned(),
        kind: OptionKind::AllowOnce,
    };
    Question {
        title: text.repeat(9),
        call: Some(text.repeat(9)),
        detail: json!(text.repeat(99)),
        options: (0..99).map(option).collect(),
        request: text.to_owned(),
        ..question("")
    }
}

/// STYLE: from every live state some input sequence reaches an end. All situations a small set of inputs can bring about
/// are visited, and from each the ways to an end are tried.
#[test]
fn every_live_session_can_end() {
    let situations = reachable();
    assert!(situations.len() > 100, "only {} situations were found", situations.len());
    for state in StateName::ALL {
        assert!(
            situations.values().any(|given| given.session.state.name() == state),
            "{state} was not found"
        );
    }
    let ends: [(&str, Vec<Input>); 3] = [
        ("stopped", vec![stop(), work_ended(), over()]),
        ("completed", vec![complete()]),
        ("failed", vec![fail()]),
    ];
    for (key, given) in &situations {
        if given.session.deleted || given.session.state.is_ended() {
            continue;
        }
        for (end, way) in &ends {
            let after = given.clone().after_each(way.iter().cloned()).session;
            assert_eq!(after.state.name().as_str(), *end, "from {key}");
        }
    }
}

/// The one run of these situations is over.
fn over() -> Input {
    run_ended(1, InterruptCause::Crash)
}

/// A stop that was asked for needs nobody's goodwill: the end of the work is enough, where a process works for the
/// session its end, and either is enough after a restart.
#[test]
fn every_pending_stop_is_confirmed_by_the_end_of_the_work() {
    let mut pending = 0;
    for (key, given) in reachable() {
        let session = &given.session;
        if session.stop.is_none() || session.deleted || session.state.is_ended() {
            continue;
        }
        pending += 1;
        let end = if session.live_run().is_some() { over() } else { work_ended() };
        if session.live_run().is_some() {
            let early = given.clone().after(work_ended()).session;
            assert_eq!(early.stop, session.stop, "from {key}");
            assert!(!early.state.is_ended(), "from {key}");
        }
        for signal in [end, daemon_restarted()] {
            let after = given.clone().after(signal).session;
            assert_eq!(after.state.name(), StateName::Stopped, "from {key}");
        }
    }
    assert!(pending > 20, "only {pending} situations with a stop were found");
}

/// S1-B07: no turn runs on after a restart, and every session that is at rest can be used or says why not.
#[test]
fn after_a_restart_nothing_is_executing() {
    for (key, given) in reachable() {
        let after = given.after(daemon_restarted());
        assert!(after.session.turn.is_none(), "from {key}");
        assert_ne!(after.session.state.name(), StateName::Executing, "from {key}");
        let alive = after.session.run.as_ref().is_some_and(Run::is_live);
        assert!(after.session.deleted || !alive, "from {key}");
        assert_eq!(after.session.open_gates().count(), 0, "from {key}");
    }
}

/// A turn is running exactly while the session is executing.
#[test]
fn executing_means_that_a_turn_runs() {
    for (key, given) in reachable() {
        let executing = given.session.state.name() == StateName::Executing;
        assert_eq!(given.session.turn.is_some(), executing, "in {key}");
    }
}

/// Every situation that can be reached, told apart by what decisions look at, with the shortest way there.
fn reachable() -> BTreeMap<String, Given> {
    let inputs = [
        start_turn(1),
        cancel_turn(),
        turn_finished(),
        turn_lost(InterruptCause::Crash),
        work_ended(),
        context_compacted(9, 1, &[]),
        quiet(HOUR),
        quiet(48 * HOUR),
        stop(),
        withdraw_stop(),
        complete(),
        fail(),
        archive(),
        unarchive(),
        reset(),
        delete(0),
        guide(1, "x"),
        guidance_delivered(&[1]),
        tool_called("c", "read"),
        run_started(1),
        mirrored_run_started(1),
        run_ready(1),
        run_ended(1, InterruptCause::Crash),
        run_ended(1, None),
        gate_asked(1, 1),
        answer(1, "allow"),
    ];
    let one_note = |given: Given| given.rules(|rules| rules.limits.guidance_pending = 1);
    let mut found = BTreeMap::new();
    let mut next: VecDeque<Given> =
        [given([]), in_state(StateName::Custom)].into_iter().map(one_note).collect();
    while let Some(given) = next.pop_front() {
        for input in &inputs {
            let mut after = given.clone();
            after.put(input);
            if let Entry::Vacant(unseen) = found.entry(situation(&after.session)) {
                unseen.insert(after.clone());
                next.push_back(after);
            }
        }
    }
    found
}

fn situation(session: &Session) -> String {
    let cancelled = session.turn.as_ref().is_some_and(|turn| turn.cancel_requested);
    let level = session.stop.as_ref().map(|stop| u8::from(stop.level));
    let notes: Vec<_> = session.guidance.iter().map(|note| note.status).collect();
    let run = session.run.as_ref().map(|run| (run.phase, run.mirrored));
    let gates = session.open_gates().count();
    let Session { state, archived, deleted, .. } = session;
    format!(
        "{state:?} cancelled={cancelled} stop={level:?} archived={archived} deleted={deleted} {notes:?} \
         run={run:?} gates={gates}"
    )
}

mod families {
    use super::*;

    proptest! {
        /// S1-28, S1-31, S1-B02, X-07: however a family was put together, it is a tree, no deeper than its policy, and
        /// no session is allowed more than its parent.
        #[test]
        fn a_family_never_outgrows_its_policy(acts in vec(act(), 1..60), depth in 0..6_u32) {
            let mut family = Family { limits: Limits { depth, ..Limits::default() }, members: Vec::new() };
            for act in acts {
                family.perform(act)?;
                family.is_sound()?;
            }
        }
    }

    /// The sessions of one or more families, in the order they were made.
    struct Family {
        limits: Limits,
        members: Vec<Session>,
    }

    #[derive(Debug, Clone)]
    enum Act {
        Create { parent: Option<prop::sample::Index>, new: Box<NewSession> },
        Link { child: prop::sample::Index, parent: prop::sample::Index },
        End(prop::sample::Index),
        Delete(prop::sample::Index),
    }

    fn act() -> impl Strategy<Value = Act> {
        let index = any::<prop::sample::Index>;
        let new = (
            option::of(0..7_u32),
            option::of(prop::sample::select(&MemoryMode::ALL[..])),
            prop::bool::weighted(0.1),
            option::of(prop::bool::ANY),
            option::of(vec(prop::sample::select(&["api", "dev_test"][..]).prop_map(str::to_owned), 0..2)),
        )
            .prop_map(|(depth_limit, memory_mode, leaf, session_memory, allow)| {
                let tags = allow.clone();
                let memory = Some(MemoryAsk { session_memory, tags, allow, ..MemoryAsk::default() });
                Box::new(NewSession { memory_mode, memory, leaf, depth_limit, ..NewSession::default() })
            });
        prop_oneof![
            6 => (option::of(index()), new).prop_map(|(parent, new)| Act::Create { parent, new }),
            6 => (index(), index()).prop_map(|(child, parent)| Act::Link { child, parent }),
            1 => index().prop_map(Act::End),
            1 => index().prop_map(Act::Delete),
        ]
    }

    impl Family {
        fn perform(&mut self, act: Act) -> Result<(), TestCaseError> {
            let count = self.members.len();
            match act {
                Act::Create { parent, new } => {
                    let parent = parent.filter(|_| count > 0).map(|parent| parent.index(count));
                    self.create(parent, &new)?;
                }
                Act::Link { child, parent } if count > 0 => {
                    self.link(child.index(count), parent.index(count))?;
                }
                Act::End(member) if count > 0 => {
                    self.tell(member.index(count), ended(Ending::Completed));
                }
                Act::Delete(member) if count > 0 => {
                    let member = member.index(count);
                    if !self.members.iter().any(|other| other.parent == Some(self.members[member].id)) {
                        self.tell(member, crate::session::testing::deleted());
                    }
                }
                Act::Link { .. } | Act::End(_) | Act::Delete(_) => {}
            }
            Ok(())
        }

        fn create(&mut self, parent: Option<usize>, new: &NewSession) -> Result<(), TestCaseError> {
            let lineage = parent.map(|parent| self.lineage(parent)).unwrap_or_default();
            let under = parent.map(|parent| (&self.members[parent], &lineage));
            match create(new, "ann", under, &self.limits) {
                Ok(created) => {
                    let id = session_id(1 + self.members.len() as u128);
                    let at = Timestamp::from_millis(0);
                    let first = Envelope {
                        seq: 1,
                        session: id,
                        at,
                        actor: ann(),
                        cause: None,
                        event: created.into(),
                    };
                    self.members.push(Session::born(&first).unwrap());
                }
                Err(Refusal::DepthExceeded { depth, limit }) => {
                    prop_assert_eq!(depth, lineage.depth() + 1);
                    prop_assert!(depth > limit);
                }
                Err(refusal) => {
                    let parent = &self.members[parent.unwrap()];
                    let gone = parent.state.is_ended() || parent.deleted;
                    prop_assert!(gone || parent.policy.leaf, "{}", refusal);
                }
            }
            Ok(())
        }

        fn link(&mut self, child: usize, parent: usize) -> Result<(), TestCaseError> {
            let (lineage, height) = (self.lineage(parent), self.height(child));
            let made = link(&self.members[child], &self.members[parent], &lineage, height);
            if let Ok((in_child, in_parent, in_former)) = made {
                prop_assert!(self.tell(child, in_child));
                prop_assert!(self.tell(parent, in_parent));
                if let Some((former, event)) = in_former {
                    let former = index(former);
                    prop_assert!(self.tell(former, event));
                }
            }
            Ok(())
        }

        /// Writes an event into a member's log; whether it fitted.
        fn tell(&mut self, member: usize, event: Event) -> bool {
            let session = &mut self.members[member];
            let (seq, at) = (session.seq + 1, Timestamp::from_millis(0));
            let envelope = Envelope { seq, session: session.id, at, actor: ann(), cause: None, event };
            let mut draft = session.clone();
            let fits = draft.apply(&envelope).is_ok();
            if fits {
                *session = draft;
            }
            fits
        }

        fn is_sound(&self) -> Result<(), TestCaseError> {
            for (number, session) in self.members.iter().enumerate() {
                let lineage = self.lineage(number);
                prop_assert!(!lineage.ancestors.contains(&session.id), "a cycle");
                prop_assert_eq!(lineage.level(), lineage.depth().min(3));
                let Some(parent) = session.parent.map(|parent| &self.members[index(parent)]) else {
                    prop_assert_eq!(lineage.depth(), 1);
                    continue;
                };
                let root = &self.members[index(lineage.root().unwrap())];
                prop_assert!(lineage.depth() <= root.policy.depth_limit, "deeper than the root allows");
                prop_assert!(lineage.depth() <= self.limits.depth.max(1), "deeper than the config allows");
                prop_assert!(!parent.policy.leaf, "a leaf with a child");
                prop_assert!(session.policy.depth_limit <= parent.policy.depth_limit, "a wider depth limit");
                let wider = session.policy.memory.is_wider_than(&parent.policy.memory);
                prop_assert!(!wider, "a wider memory");
            }
            Ok(())
        }

        fn lineage(&self, member: usize) -> Lineage {
            let mut ancestors = Vec::new();
            let mut above = self.members[member].parent;
            while let Some(id) = above {
                assert!(ancestors.len() <= self.members.len(), "a cycle");
                ancestors.push(id);
                above = self.members[index(id)].parent;
            }
            Lineage { ancestors }
        }

        fn height(&self, member: usize) -> u32 {
            let id = self.members[member].id;
            let children = (0..self.members.len()).filter(|&other| self.members[other].parent == Some(id));
            1 + children.map(|child| self.height(child)).max().unwrap_or(0)
        }
    }

    fn index(id: SessionId) -> usize {
        usize::try_from(id.as_u128()).unwrap() - 1
    }
}

/// An input, and how the clock moves before it.
#[derive(Debug, Clone)]
struct Step {
    input: Input,
    jump_ms: i64,
}

fn take(given: &mut Given, step: &Step) {
    given.now = Timestamp::from_millis(given.now.as_millis().saturating_add(step.jump_ms));
    given.put(&step.input);
}

fn one_run_follows_another(before: &Session, after: &Session) -> Result<(), TestCaseError> {
    let Some(new) = &after.run else {
        prop_assert!(before.run.is_none(), "a run was forgotten");
        return Ok(());
    };
    match &before.run {
        Some(old) if old.number == new.number => {
            prop_assert_eq!(old.id, new.id);
            prop_assert!(old.is_live() || !new.is_live(), "a run that was over lives");
            prop_assert!(old.cursor <= new.cursor, "output was read back");
        }
        Some(old) => {
            prop_assert!(!old.is_live(), "two runs at once");
            prop_assert_eq!(old.number + 1, new.number);
        }
        None => prop_assert_eq!(new.number, 1),
    }
    Ok(())
}

fn is_bounded(session: &Session) -> Result<(), TestCaseError> {
    prop_assert!(session.history.len() <= 16);
    prop_assert!(session.handoffs.len() <= 16);
    prop_assert!(session.compaction_history.len() <= 16);
    prop_assert!(session.checkpoints.len() <= 16);
    prop_assert!(session.open_calls.len() <= 16);
    prop_assert!(session.stall.issues.len() <= 16);
    prop_assert!(session.stall.errors.len() <= 16);
    prop_assert!(session.stall.scores.len() <= 16);
    prop_assert!(session.aliases.len() <= 16);
    prop_assert!(session.anchors.len() <= 64);
    prop_assert!(session.anchors_due.len() <= session.anchors.len());
    prop_assert!(session.guidance.len() <= 64);
    prop_assert!(session.refused_in_row <= 32);
    prop_assert!(session.open_gates().count() <= 64);
    prop_assert!(session.gates.len() - session.open_gates().count() <= 32);
    prop_assert!(session.review.comments.len() <= 6);
    let bytes = serde_json::to_string(session).unwrap().len();
    prop_assert!(bytes < 64 << 10, "{} bytes", bytes);
    Ok(())
}

fn step() -> impl Strategy<Value = Step> {
    let jump_ms = prop_oneof![6 => Just(0_i64), 1 => -1_000_000_000..1_000_000_000_i64];
    (input(), jump_ms).prop_map(|(input, jump_ms)| Step { input, jump_ms })
}

/// A step that does not end the session for good, so that a long run stays a long run.
fn lasting_step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => signal(short_text()), 2 => run_signal(short_text()), 2 => passing(), 3 => command(short_text())]
        .prop_map(|input| {
            let ends = matches!(
                input,
                Input::Command(
                    Command::Complete { .. }
                        | Command::Fail { .. }
                        | Command::Stop { .. }
                        | Command::Delete { .. }
                )
            );
            Step { input: if ends { checkpoint() } else { input }, jump_ms: 0 }
        })
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![3 => signal(any_text()), 2 => run_signal(any_text()), 2 => passing(), 3 => command(any_text())]
}

fn short_text() -> BoxedStrategy<String> {
    "[a-z]{1,12}".boxed()
}

/// Sense and nonsense: empty, blank, too long, control characters, any Unicode.
fn any_text() -> BoxedStrategy<String> {
    prop_oneof![
        8 => "[a-c]",
        2 => any::<String>(),
        1 => prop::sample::select(vec!["", " ", "\n", "\0", "a\u{7}b", "\u{202e}x", "::", "🎈"]).prop_map(str::to_owned),
        1 => (490..510_usize).prop_map(|length| "é".repeat(length)),
        1 => (995..1_005_usize).prop_map(|length| "🎈".repeat(length)),
    ]
    .boxed()
}

fn rules() -> impl Strategy<Value = Rules> {
    let limits = (0..6_u32, 0..12_usize, any::<bool>(), 0..5_usize, 0..5_u32).prop_map(
        |(depth, guidance_chars, refuse, guidance_pending, stall_repeats)| Limits {
            depth,
            guidance_chars,
            overlong: if refuse { Overlong::Refuse } else { Overlong::Cut },
            guidance_pending,
            stall_repeats,
            ..Limits::default()
        },
    );
    prop_oneof![Just(Limits::default()), limits].prop_map(|limits| Rules { limits, ..Rules::default() })
}

fn command(text: BoxedStrategy<String>) -> impl Strategy<Value = Input> {
    let reason = option::of(text.clone());
    let note = (0..4_u128).prop_map(note_id);
    prop_oneof![
        8 => ((0..4_u128), option::of(text.clone()), text.clone()).prop_map(|(turn, client_turn_id, prompt)| {
            Command::StartTurn { turn: turn_id(turn), client_turn_id, prompt }
        }),
        6 => inbox_change().prop_map(|change| Command::Inbox(change.into())),
        3 => reason.clone().prop_map(|reason| Command::CancelTurn { reason }),
        1 => reason.clone().prop_map(|reason| Command::Complete { reason }),
        1 => reason.clone().prop_map(|reason| Command::Fail { reason }),
        2 => reason.clone().prop_map(|reason| Command::Stop { reason, scope: StopScope::Session, now: false }),
        1 => (reason.clone(), scope(), any::<bool>()).prop_map(|(reason, scope, now)| Command::Stop { reason, scope, now }),
        1 => (note.clone(), text.clone()).prop_map(|(note, text)| Command::Notify { note, kind: crate::session::NoteKind::Notice, about: Some(session_id(7)), text }),
        2 => reason.clone().prop_map(|reason| Command::WithdrawStop { reason }),
        4 => (note.clone(), text.clone()).prop_map(|(note, text)| Command::Guide { note, text }),
        2 => note.prop_map(|note| Command::WithdrawGuidance { note }),
        4 => (gate(), word(text.clone()), reason.clone())
            .prop_map(|(gate, option, message)| Command::AnswerGate { gate, option, message }),
        2 => vec(prop::sample::select(vec![ResumeWay::Native, ResumeWay::Replay, ResumeWay::Preamble]), 0..3)
            .prop_map(|ways| Command::Resume { ways, per_turn: false }),
        2 => (option::of(text.clone()), option::of(0..3_u128), option::of(text.clone()), text.clone()).prop_map(
            |(agent, worker, owner, reason)| {
                Command::Migrate { agent, worker: worker.map(WorkerId::from_u128), owner, reason, continuity: None }
            }
        ),
        2 => text.clone().prop_map(|alias| Command::AddAlias { alias }),
        2 => vec(text.clone(), 0..4).prop_map(|anchors| Command::SetAnchors { anchors }),
        1 => prop::sample::select(&MemoryMode::ALL[..]).prop_map(|mode| {
            let ask = MemoryAsk { mode: Some(mode), ..MemoryAsk::default() };
            Command::SetMemory { ask, above: None }
        }),
        1 => any::<u8>().prop_map(|n| Command::Choose { choice: chosen(n.into()) }),
        1 => Just(Command::Checkpoint),
        1 => text.clone().prop_map(|title| Command::Rename { title }),
        4 => review_command(text).prop_map(Command::Review),
        2 => (0..40_u64).prop_map(|seq| Command::See { by: ann(), seq }),
        1 => Just(Command::Archive),
        2 => Just(Command::Unarchive),
        1 => reason.clone().prop_map(|reason| Command::Reset { reason }),
        1 => (reason, 0..3_u64).prop_map(|(reason, children)| Command::Delete { reason, children }),
    ]
    .prop_map(Input::from)
}

fn signal(text: BoxedStrategy<String>) -> impl Strategy<Value = Input> {
    let reason = option::of(text.clone());
    let role = prop_oneof![Just(Role::User), Just(Role::Agent)];
    let outcome =
        prop_oneof![Just(TurnOutcome::Completed), Just(TurnOutcome::Failed), Just(TurnOutcome::Refused)];
    // JSON has finite numbers only.
    let score = any::<f64>().prop_map(|score| score.is_finite().then_some(score));
    prop_oneof![
        2 => (role, text.clone()).prop_map(|(role, text)| Signal::Said { role, text, message_id: None, parts: Vec::new() }),
        1 => text.clone().prop_map(|text| Signal::Thought { text }),
        4 => (text.clone(), tool(text.clone()), json_value()).prop_map(|(call, tool, arguments)| {
            Signal::ToolCalled { call, tool, arguments }
        }),
        4 => (text.clone(), any::<bool>(), json_value()).prop_map(|(call, is_error, content)| {
            Signal::ToolReturned { call, is_error, content }
        }),
        1 => (any::<u64>(), any::<u64>(), option::of(any::<u64>()), any::<u64>()).prop_map(
            |(input_tokens, output_tokens, context_tokens, cost_micros)| {
                Signal::UsageReported { input_tokens, output_tokens, context_tokens, cost_micros }
            }
        ),
        4 => (option::of((0..4_u128).prop_map(turn_id)), outcome, reason.clone())
            .prop_map(|(turn, outcome, reason)| Signal::TurnFinished { turn, outcome, reason }),
        2 => (prop::sample::select(&InterruptCause::ALL[..]), reason.clone())
            .prop_map(|(cause, reason)| Signal::TurnLost { cause, reason, receipt: crate::session::run::Receipt::default() }),
        1 => text.clone().prop_map(|why| Signal::EndBlocked { why }),
        3 => limit_seen().prop_map(|seen| Signal::TurnLimited(Box::new(seen))),
        3 => (any::<u64>(), any::<u64>(), vec(text.clone(), 0..4)).prop_map(
            |(size_before, size_after, anchors_survived)| {
                Signal::ContextCompacted { size_before, size_after, anchors_survived }
            }
        ),
        3 => (text.clone(), score).prop_map(|(hash, score)| Signal::IssueSeen { hash, score }),
        3 => (text.clone(), reason).prop_map(|(hash, text)| Signal::ErrorSeen { hash, text }),
        3 => (vec((0..4_u128).prop_map(note_id), 0..4), text.clone())
            .prop_map(|(notes, channel)| Signal::GuidanceDelivered { notes, channel }),
        2 => text.prop_map(|channel| Signal::WorkEnded { channel }),
        1 => (0..6_u128).prop_map(|turn| Signal::TurnDelivered { turn: turn_id(turn) }),
        1 => Just(Signal::DaemonRestarted),
        3 => prop_oneof![0..100 * HOUR, any::<u64>()].prop_map(|for_ms| Signal::Quiet { for_ms }),
    ]
    .prop_map(Input::from)
}

/// What is seen of runs, gates and snapshots, and any signal as it was read from an agent's output.
#[expect(clippy::too_many_lines, reason = "a list of samples")]
fn run_signal(text: BoxedStrategy<String>) -> impl Strategy<Value = Input> {
    let reason = option::of(text.clone());
    let cause = option::of(prop::sample::select(&InterruptCause::ALL[..]));
    let how = prop_oneof![
        any::<i32>().prop_map(|code| RunEnd::Exited { code }),
        any::<i32>().prop_map(|signal| RunEnd::Signalled { signal }),
        Just(RunEnd::Lost),
        Just(RunEnd::HostLost),
        text.clone().prop_map(|code| RunEnd::NotStarted { code }),
    ];
    let ready = (run(), text.clone(), reason.clone(), option::of(any::<u64>())).prop_map(
        |(run, native, version, history)| {
            let info = AgentInfo { version, ..greeting(1).info };
            Signal::RunReady(Box::new(RunReady { run, native, info, history, ..greeting(1) }))
        },
    );
    let entry =
        (text.clone(), prop::sample::select(vec![PlanEntryState::Pending, PlanEntryState::Completed]))
            .prop_map(|(text, status)| PlanEntry { text, status });
    let seen = prop_oneof![
        5 => (run(), text.clone(), text.clone(), prop::bool::weighted(0.2)).prop_map(
            |(run, agent, driver, mirrored)| Signal::RunStarted {
                run,
                agent,
                driver,
                mirrored,
                steers: mirrored,
                sandbox: None,
                account: None,
            }
        ),
        4 => ready,
        1 => run().prop_map(|run| Signal::RunAdopted { run }),
        1 => (run(), vec(text.clone(), 0..3)).prop_map(|(run, servers)| Signal::ToolsMissing { run, servers }),
        1 => (run(), any::<bool>(), any::<bool>()).prop_map(|(run, rang, watched)| {
            let activity = if rang { TerminalActivity::Rang } else { TerminalActivity::Working };
            Signal::TerminalActivity { run, activity, watched }
        }),
        1 => (run(), 0..4_u64).prop_map(|(run, times)| Signal::BoundMet {
            run,
            what: BoundedResource::Processes,
            times,
        }),
        1 => any::<u8>().prop_map(|n| Signal::InForce(chosen(n.into()))),
        1 => vec(text.clone(), 0..4).prop_map(|ids| Signal::Offered(Box::new(offer_of(&ids)))),
        3 => (run(), how, cause, reason).prop_map(|(run, how, cause, reason)| {
            Signal::RunEnded { run, how, cause, reason, receipt: receipt() }
        }),
        6 => (gate(), run(), any_question(text.clone())).prop_map(|(gate, run, question)| {
            Signal::GateAsked { gate, run, question: Box::new(question) }
        }),
        2 => ("[a-c]", text.clone()).prop_map(|(request, why)| Signal::GateWithdrawn { request, why }),
        1 => (text.clone(), text.clone(), any::<u32>()).prop_map(|(name, commit, files_changed)| {
            Signal::SnapshotTaken { name, commit, reason: SnapshotReason::TurnStart, files_changed }
        }),
        1 => (text.clone(), text.clone()).prop_map(|(code, why)| Signal::SnapshotSkipped { code, why }),
        1 => text.clone().prop_map(|branch| {
            Signal::BranchMerged { branch, commit: "9fceb02".into(), into: "main".into() }
        }),
        1 => text.clone().prop_map(|branch| Signal::BranchDiscarded { branch, reference: "refs/x".into() }),
        1 => vec(entry, 0..4).prop_map(|entries| Signal::Planned { entries }),
        1 => text.clone().prop_map(|path| Signal::FileChanged { path, added: None, removed: Some(1) }),
    ];
    let read = prop_oneof![seen.clone().prop_map(Input::from), signal(text)].prop_flat_map(|input| {
        (run(), any::<u64>()).prop_map(move |(run, to)| match input.clone() {
            Input::Signal(signal) => Input::Output { run, to, signal },
            other @ (Input::Command(_)
            | Input::Output { .. }
            | Input::Begins(_)
            | Input::Ends(_)
            | Input::Restarted) => other,
        })
    });
    prop_oneof![3 => seen.prop_map(Input::from), 1 => read]
}

fn scope() -> impl Strategy<Value = StopScope> {
    prop::sample::select(vec![StopScope::Turn, StopScope::Session, StopScope::Subtree])
}

/// Tool calls that come by, answers that go out or are lost, deadlines, and the daemon killed in between.
fn passing() -> impl Strategy<Value = Input> {
    let how = prop::sample::select(vec![Compliance::HandOff, Compliance::Complete, Compliance::Acknowledge]);
    prop_oneof![
        6 => (0..3_u32).prop_map(begins),
        6 => (0..3_u32).prop_map(ends),
        1 => how.clone().prop_map(|how| Input::Begins(complies(how))),
        1 => how.prop_map(|how| Input::Ends(complies(how))),
        1 => Just(Input::Restarted),
        1 => vec((0..4_u128).prop_map(note_id), 0..3).prop_map(|notes| Signal::AnswerLost { notes }.into()),
        2 => (0..200_000_i64).prop_map(|after| {
            Signal::Due { now: Timestamp::from_millis(START_MS + after) }.into()
        }),
        1 => Just(Signal::NoticeSent { to: None, note: None, since: None }.into()),
        1 => Just(Signal::Introduced { agent: "a".into(), extension_session_id: None }.into()),
        1 => Just(Signal::PlanJoined { plan: "p".into() }.into()),
    ]
}

fn limit_seen() -> impl Strategy<Value = LimitSeen> {
    let turn = option::of((0..6_u128).prop_map(turn_id));
    let kind = prop::sample::select(&LimitKind::ALL[..]);
    (turn, kind, option::of(0..48 * HOUR), 4..9_u128, any::<(bool, bool)>()).prop_map(
        |(turn, kind, reset, leg, (continues, elsewhere))| {
            let now = Timestamp::from_millis(START_MS);
            let resets_at = reset.map(|after| now.plus_millis(after));
            let limit = Limit { kind, text: "no more".into(), resets_at, account: None };
            let (leg, rules) = (turn_id(leg), LimitRules::default());
            LimitSeen { turn, limit, leg, now, rules, continues, blind: leg == turn_id(4), elsewhere }
        },
    )
}

fn run() -> impl Strategy<Value = RunId> {
    (0..3_u128).prop_map(run_id)
}

fn gate() -> impl Strategy<Value = GateId> {
    (0..5_u128).prop_map(gate_id)
}

fn word(text: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let known = vec!["allow", "always", "deny", "never", "yes", "no"];
    prop_oneof![4 => prop::sample::select(known).prop_map(str::to_owned), 1 => text]
}

fn any_question(text: BoxedStrategy<String>) -> impl Strategy<Value = Question> {
    let kinds = vec![
        OptionKind::AllowOnce,
        OptionKind::AllowAlways,
        OptionKind::RejectOnce,
        OptionKind::RejectAlways,
        OptionKind::Other,
    ];
    let option = (word(text.clone()), text.clone(), prop::sample::select(kinds))
        .prop_map(|(id, name, kind)| GateOption { id, name, kind });
    let request = prop_oneof![4 => "[a-c]".boxed(), 1 => text.clone()];
    (text.clone(), option::of(text), json_value(), vec(option, 0..4), request).prop_map(
        |(title, call, detail, options, request)| Question {
            kind: GateKind::Permission,
            title,
            call,
            detail,
            options,
            request,
        },
    )
}

fn tool(text: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    prop_oneof![text, Just("bash".to_owned()), Just("read".to_owned())]
}

/// Any JSON, some of it nested deeper than parsers follow.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..3).prop_map(|fields| json!(fields)),
        ]
    });
    prop_oneof![
        8 => tree,
        1 => (0..140_usize).prop_map(|levels| (0..levels).fold(Value::Null, |inner, _| json!([inner]))),
    ]
}

/// Comments of six ids on few lines, and files that were viewed.
fn review_command(text: BoxedStrategy<String>) -> impl Strategy<Value = ReviewCommand> {
    let comment = || (0..6_u128).prop_map(comment_id);
    let lines = (0..4_u32, 0..4_u32).prop_map(|(first, last)| LineSpan { first, last });
    prop_oneof![
        4 => (0..6_u128, lines, text.clone(), any::<bool>()).prop_map(|(comment, lines, text, fits)| {
            let count = if fits { lines.len() } else { 2 };
            let quote = vec!["x"; usize::try_from(count).unwrap()].join("\n");
            ReviewCommand::Draft(Box::new(DraftComment { lines, quote, text, ..draft_of(comment, 1) }))
        }),
        1 => (comment(), text.clone()).prop_map(|(comment, text)| ReviewCommand::Edit { comment, text }),
        1 => comment().prop_map(|comment| ReviewCommand::Remove { comment }),
        1 => ("[a-c]", option::of(text)).prop_map(|(path, hash)| ReviewCommand::View { path, hash }),
    ]
}

/// Something attached now and then.
fn any_parts() -> impl Strategy<Value = Vec<PromptPart>> {
    let attached = |seed: u8| AttachedContent {
        id: AttachmentId::of(&[seed]),
        media_type: "image/png".to_owned(),
        bytes: u64::from(seed) * (PARTS_BYTES_MAX / 2),
        name: None,
    };
    let part = prop_oneof![
        any::<u8>().prop_map(move |seed| PromptPart::Image(attached(seed % 4))),
        any::<u8>().prop_map(move |seed| PromptPart::File(attached(seed % 4))),
        "[a-c]{0,2}".prop_map(|uri| PromptPart::Link { uri, name: None }),
    ];
    vec(part, 0..3)
}

/// Every second one chooses nothing.
fn chosen(n: u128) -> AgentChoice {
    let model = (n % 2 == 1).then(|| format!("m{}", n % 4));
    AgentChoice { model, ..AgentChoice::default() }
}

fn offer_of(ids: &[String]) -> AgentOffer {
    let items = ids.iter().map(|id| OfferItem::new(id)).collect();
    AgentOffer { models: OfferMenu { items, ..OfferMenu::default() }, ..AgentOffer::default() }
}

/// Messages and what is done to those that wait. Their notes are no guidance's.
fn inbox_change() -> impl Strategy<Value = InboxChange> {
    let turn = || (0..6_u128).prop_map(turn_id);
    let note = || (10..16_u128).prop_map(note_id);
    let delivery = || prop::sample::select(Delivery::ALL.to_vec());
    let promotion = prop::sample::select(vec![Promotion::Front, Promotion::Steer, Promotion::Interrupt]);
    prop_oneof![
        6 => (turn(), note(), delivery(), "[a-c]{0,3}", any_parts()).prop_map(|(turn, note, delivery, prompt, parts)| {
            let (client_turn_id, memory, take_over) = (None, None, false);
            let choice = chosen(turn.as_u128());
            let message = Message { turn, note, client_turn_id, prompt, parts, delivery, memory, choice, take_over, review: None, forced: false };
            InboxChange::Send(Box::new(message))
        }),
        3 => (turn(), delivery(), vec(0..6_u128, 0..4)).prop_map(|(turn, delivery, comments)| {
            let Input::Command(Command::Inbox(InboxCommand { change, .. })) = send_review(0, delivery, &comments)
            else {
                unreachable!("it is a message")
            };
            let InboxChange::Send(message) = change else { unreachable!("it is sent") };
            InboxChange::Send(Box::new(Message { turn, note: note_id(20), ..*message }))
        }),
        1 => (turn(), note(), proptest::option::of(delivery()), proptest::option::of("[a-c]{0,3}"))
            .prop_map(|(turn, note, delivery, prompt)| InboxChange::Edit { turn, prompt, delivery, note }),
        1 => turn().prop_map(|turn| InboxChange::Withdraw { turn, reason: None }),
        1 => vec(turn(), 0..4).prop_map(|turns| InboxChange::Order { turns }),
        1 => (turn(), promotion, note())
            .prop_map(|(turn, to, note)| InboxChange::Promote { turn, to, note }),
        1 => Just(InboxChange::Pause),
        2 => Just(InboxChange::Go),
    ]
}
