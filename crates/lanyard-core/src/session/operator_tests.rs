//! The operator's word for every kind of session, and what ends it.

use crate::actor::{Actor, ActorKind};
use crate::session::calls::Channel;
use crate::session::event::{
    ChangeEvent, Ending, Event, InboxEvent, TranscriptEvent, TurnEvent, TurnOutcome,
};
use crate::session::operator::{OperatorState, SEEN_MAX, calls_for_review};
use crate::session::record::ActiveTurn;
use crate::session::state::{InterruptCause, StateName};
use crate::session::testing::{
    Given, HOUR, activity, ann, archive, born, calls_in_flight, daemon_restarted, ended, finished,
    gate_asked, given, in_state, interrupted, interrupted_by, quiet, run_adopted, run_ended, run_id,
    run_ready, run_started, see, send, session_id, start_turn, started, turn_finished, turn_finished_as,
    turn_id, turn_lost,
};
use crate::session::{
    Command, Delivery, NewSession, PauseReason, Refusal, Signal, TerminalActivity, decide, replay,
};

fn word(given: &Given) -> (OperatorState, bool) {
    (given.session.operator_state(), given.session.unread())
}

fn other(kind: ActorKind, name: &str) -> Actor {
    Actor { kind, name: name.to_owned() }
}

/// FND-D2: each way a session can be, and the one word for it.
#[test]
fn fnd_d2_every_session_has_one_word_for_its_operator() {
    use OperatorState::{Done, Failed, Idle, NeedsAnswer, ReadyForReview, Working};
    let outcome = |outcome| given([started(1)]).after(turn_finished_as(1, outcome));
    let uncertain = TurnEvent::Interrupted {
        turn: turn_id(1),
        cause: InterruptCause::Crash,
        reason: None,
        uncertain: true,
        receipt: crate::session::run::Receipt::default(),
        review: true,
    };
    let running = || given([]).after_each([start_turn(1), run_started(1), run_ready(1)]);
    let held = given([started(1), finished(1)])
        .after(see(ann(), 3))
        .event(InboxEvent::Paused { reason: PauseReason::Asked })
        .after(send(7, Delivery::Queue));
    let table = vec![
        ("new", given([]), (Idle, false)),
        ("a turn runs", running(), (Working, false)),
        ("a turn runs and asks", running().after(gate_asked(1, 1)), (NeedsAnswer, false)),
        ("completed", outcome(TurnOutcome::Completed), (ReadyForReview, true)),
        ("failed", outcome(TurnOutcome::Failed), (Failed, true)),
        ("refused", outcome(TurnOutcome::Refused), (Failed, true)),
        ("crashed", interrupted_by(InterruptCause::Crash), (Failed, true)),
        ("out of time", interrupted_by(InterruptCause::Timeout), (Failed, true)),
        ("cancelled", interrupted_by(InterruptCause::User), (Idle, false)),
        ("uncertain", given([started(1), uncertain.into()]), (NeedsAnswer, true)),
        ("went idle unseen", in_state(StateName::Idle), (ReadyForReview, true)),
        ("turns wait", held, (NeedsAnswer, false)),
        ("session failed", given([ended(Ending::Failed)]), (Failed, false)),
        ("session completed", in_state(StateName::Completed), (Done, false)),
        ("session stopped", in_state(StateName::Stopped), (Done, false)),
        ("archived", in_state(StateName::BetweenTurn).after(archive()), (Done, false)),
    ];
    for (name, given, expected) in table {
        assert_eq!(word(&given), expected, "{name}");
    }
}

/// FND-D2: the mark of an operator ends what is unread; an observer's is kept and ends nothing.
#[test]
fn fnd_d2_an_end_is_unread_until_an_operator_has_seen_it() {
    let mut given = given([]).after_each([start_turn(1), turn_finished()]);
    let end = given.session.last_turn.as_ref().unwrap().seq;
    let active = given.session.last_activity_at;
    given = given.later(5_000).after(see(ann(), end - 1));
    assert_eq!(word(&given), (OperatorState::ReadyForReview, true), "the end was not on the screen");
    given = given.after(see(ann(), end));
    assert_eq!(word(&given), (OperatorState::Idle, false));
    assert_eq!(given.session.last_activity_at, active, "reading is no activity");
    let marks = given.log.len();
    let head = given.session.seq;
    given = given.after(see(ann(), head));
    assert_eq!(given.log.len(), marks, "nothing new was seen, so nothing is written");
    // The next turn is a new thing to see, while it runs there is nothing to review.
    given = given.after(start_turn(2));
    assert_eq!(word(&given), (OperatorState::Working, false));
    given = given.after(turn_finished());
    assert_eq!(word(&given), (OperatorState::ReadyForReview, true));
}

#[test]
fn fnd_d2_marks_are_kept_per_reader_and_bounded() {
    let mut given = given([]).after_each([start_turn(1), turn_finished()]);
    let end = given.session.last_turn.as_ref().unwrap().seq;
    let decided = |given: &Given, by: Actor, seq| {
        decide(&given.session, &Command::See { by, seq }, given.now, &given.rules)
    };
    assert_eq!(decided(&given, other(ActorKind::Agent, "worker"), end), Ok(Vec::new()));
    let ahead = given.session.seq + 1;
    assert_eq!(
        decided(&given, ann(), ahead),
        Err(Refusal::SeenAhead { seq: ahead, head: given.session.seq })
    );
    let at = given.now;
    for reader in 0..40 {
        given.session.saw(&other(ActorKind::Observer, &format!("observer {reader}")), end, at);
    }
    assert_eq!(given.session.seen.len(), SEEN_MAX);
    assert!(given.session.unread(), "observers do not review for the operator");
}

/// Turns of flows, tasks and subagents report to their sender, and an end a person asked for is no news.
#[test]
fn fnd_d2_only_turns_of_operators_call_for_review() {
    let by = |by: Option<Actor>| {
        let given = given([]).after(start_turn(1));
        let turn = ActiveTurn { by, ..given.session.turn.clone().unwrap() };
        calls_for_review(&given.session, &turn, None)
    };
    assert!(by(Some(ann())));
    assert!(!by(Some(Actor::system("flow"))));
    assert!(!by(Some(other(ActorKind::Agent, "hub"))));
    assert!(!by(None));
    // A turn that goes on by itself after a crash is still the operator's.
    let crashed = born(&NewSession::default()).after_each([start_turn(1), turn_lost(InterruptCause::Crash)]);
    let turn = given([]).after(start_turn(1)).session.turn.unwrap();
    let again = ActiveTurn { by: Some(Actor::system("auto-resume")), ..turn };
    assert!(calls_for_review(&crashed.session, &again, None));
}

/// Logs of older daemons: their ends are known, and none of them asks to be reviewed.
#[test]
fn fnd_d2_ends_of_an_older_log_are_not_unread() {
    let mut log = given([started(1), interrupted(1, InterruptCause::Crash)]).log;
    for envelope in &mut log {
        let mut value = serde_json::to_value(&*envelope).unwrap();
        value["data"].as_object_mut().unwrap().remove("review");
        *envelope = serde_json::from_value(value).unwrap();
    }
    let session = replay(&log).unwrap().unwrap();
    assert_eq!((session.operator_state(), session.unread()), (OperatorState::Failed, false));
}

/// FND-M5, S1-10: calls are all there is of an agent that its own host runs; they make it work and rest.
#[test]
fn fnd_m5_a_call_under_way_shows_an_agent_of_another_host_at_work() {
    let host = NewSession { source: Some("external".into()), ..NewSession::default() };
    let mut given = born(&host);
    let lifecycle = |given: &Given| (given.session.state.name(), given.session.operator_state());
    assert_eq!(lifecycle(&given), (StateName::Beginning, OperatorState::Idle));
    given = given.after(calls_in_flight(1));
    assert_eq!(lifecycle(&given), (StateName::Executing, OperatorState::Working));
    let relayed = |took_ms| TranscriptEvent::ToolRelayed {
        call: "1".into(),
        server: None,
        tool: "search".into(),
        channel: Channel::Mcp,
        is_error: false,
        took_ms,
        bytes: 1,
        uncertain: false,
    };
    given = given.event(relayed(3));
    assert_eq!(given.session.state.name(), StateName::Executing, "another call returned");
    given = given.event(relayed(5_000));
    assert_eq!(lifecycle(&given), (StateName::BetweenTurn, OperatorState::Idle));
    // From there it takes the way of all sessions.
    given = given.later(HOUR).after(quiet(HOUR));
    assert_eq!(given.session.state.name(), StateName::Idle);
    given = given.after(quiet(48 * HOUR));
    assert_eq!(given.session.state.name(), StateName::Stale);
    given = given.after(calls_in_flight(2));
    assert_eq!(given.session.state.name(), StateName::Executing);
    // A daemon that comes back knows of no call, and one nobody tells the end of is given up.
    let restarted = given.clone().after(daemon_restarted());
    assert_eq!(restarted.session.state.name(), StateName::BetweenTurn);
    given = given.after(quiet(48 * HOUR));
    assert_eq!((given.session.state.name(), given.session.calls_in_flight), (StateName::Stale, 0));
}

/// FND-M5: what Lanyard runs tells of its turns itself.
#[test]
fn fnd_m5_a_call_under_way_changes_no_state_of_an_agent_run_here() {
    let given = in_state(StateName::BetweenTurn).after(calls_in_flight(1));
    assert_eq!(given.session.state.name(), StateName::BetweenTurn);
    assert!(given.session.is_in_call());
}

/// FND-M3, S0-B13: a call that is under way, and a question, are reasons to be silent.
#[test]
fn fnd_m3_a_session_in_a_call_or_at_a_gate_is_no_suspected_orphan() {
    let staleness = crate::policy::Staleness::default();
    let running = || given([]).after_each([start_turn(1), run_started(1), run_ready(1)]);
    let suspected = |given: &Given| {
        let now = given.session.last_activity_at.plus_millis(staleness.suspect_after_ms);
        let view = crate::session::view(&given.session, &crate::session::Lineage::default(), now, &staleness);
        let reasons = crate::session::Pending::of(&given.session).attention(view.state, view.cause, true);
        (view.suspected_orphan, reasons.contains(&crate::session::Attention::SuspectedOrphan))
    };
    assert_eq!(suspected(&running()), (true, true));
    assert_eq!(suspected(&running().after(calls_in_flight(1))), (false, false));
    assert_eq!(suspected(&running().after(gate_asked(1, 1))), (false, false));
}

/// FND-M3: an orphan that is adopted leaves its former parent as silent as it was, and its siblings orphaned.
/// FND-D17: what a daemon finds when it starts is no activity.
#[test]
fn fnd_m3_fnd_d17_family_matters_and_boots_are_no_activity() {
    let given = in_state(StateName::BetweenTurn).after_each([run_started(1), run_ready(1)]);
    let before = given.session.last_activity_at;
    let child = session_id(7);
    let quiet_events =
        [ChangeEvent::ChildLinked { child, agent: None }.into(), ChangeEvent::ChildUnlinked { child }.into()];
    let mut given =
        quiet_events.into_iter().fold(given.later(HOUR), |given, event: Event| given.event(event));
    given = given.after(run_adopted(1)).later(HOUR).after(daemon_restarted());
    assert!(given.session.live_run().is_none());
    assert_eq!(given.session.last_activity_at, before);
}

/// A program on a terminal has no turns: what it writes is all that tells.
#[test]
fn a_program_on_a_terminal_works_rests_and_is_seen() {
    use OperatorState::{Idle, NeedsAnswer, ReadyForReview, Working};
    use TerminalActivity::{Quiet, Rang};
    let works =
        || given([]).after_each([run_started(1), run_ready(1), activity(1, TerminalActivity::Working)]);
    assert_eq!(word(&given([]).after_each([run_started(1), run_ready(1)])), (Idle, false));
    assert_eq!(word(&works()), (Working, false));
    for (rest, expected) in [(Quiet, ReadyForReview), (Rang, NeedsAnswer)] {
        let rests = works().after(activity(1, rest));
        assert_eq!(word(&rests), (expected, true), "{rest:?}");
        // The same again is nothing new.
        let again = works().after(activity(1, rest)).after(activity(1, rest));
        assert_eq!(again.session.seq, rests.session.seq, "{rest:?}");
        let head = rests.session.seq;
        let seen = rests.after(see(ann(), head));
        assert_eq!(word(&seen), (Idle, false), "{rest:?}");
        assert_eq!(word(&seen.after(activity(1, TerminalActivity::Working))), (Working, false), "{rest:?}");
        // On a screen somewhere it was seen at once.
        let watched = Signal::TerminalActivity { run: run_id(1), activity: rest, watched: true };
        assert_eq!(word(&works().after(watched)), (Idle, false), "{rest:?}");
    }
    let over = works().after(run_ended(1, None));
    assert_ne!(over.session.operator_state(), Working, "nothing runs any more");
}
