//! Limits of a provider: which wait, how long, who says go, and that a turn goes on exactly once.

use expect_test::expect;

use crate::session::limit::{AskReason, Limit, LimitHold, LimitKind, LimitRules, LimitSeen, Waited, hold};
use crate::session::state::InterruptCause;
use crate::session::testing::{
    Given, HOUR, Input, MINUTE, START_MS, cancel_turn, daemon_restarted, given, resume, run_ended, run_ready,
    run_started, send, started, stop, story, tool_called, turn_delivered, turn_finished_as, turn_id,
    work_ended,
};
use crate::session::{Delivery, OperatorState, Signal, TurnOutcome};
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_millis(START_MS);

fn rules() -> LimitRules {
    LimitRules { jitter_ms: 0, retry_ms: 4_000, ..LimitRules::default() }
}

fn seen(kind: LimitKind, reset_in_ms: Option<u64>) -> LimitSeen {
    let resets_at = reset_in_ms.map(|after| NOW.plus_millis(after));
    let limit = Limit { kind, text: "no more".into(), resets_at, account: None };
    let (turn, leg) = (None, turn_id(11));
    LimitSeen { turn, limit, leg, now: NOW, rules: rules(), continues: true, blind: false, elsewhere: false }
}

pub(super) fn limited(kind: LimitKind, reset_in_ms: impl Into<Option<u64>>) -> Input {
    Signal::TurnLimited(Box::new(seen(kind, reset_in_ms.into()))).into()
}

fn next_leg(leg: u128) -> Input {
    let again = LimitSeen { leg: turn_id(leg), ..seen(LimitKind::Usage, Some(2 * HOUR)) };
    Signal::TurnLimited(Box::new(again)).into()
}

fn due(after_ms: u64) -> Input {
    Signal::Due { now: NOW.plus_millis(after_ms) }.into()
}

fn over(turn: u128) -> Input {
    turn_finished_as(turn, TurnOutcome::Completed)
}

/// A turn that the agent has, in a run of its own.
fn at_work() -> Given {
    given([started(1)]).after(run_started(1)).after(run_ready(1)).after(turn_delivered(1))
}

#[test]
fn a_limit_is_held_as_long_as_its_kind_and_the_rules_say() {
    use LimitKind::{Overloaded, Quota, Unavailable, Usage};
    let fresh = Waited { waits: 0, retries: 0, worked: false };
    let until = |after| LimitHold::Until(NOW.plus_millis(after));
    let table = [
        (Usage, Some(HOUR), fresh, until(HOUR)),
        (Usage, None, fresh, until(30 * MINUTE)),
        (Usage, Some(25 * HOUR), fresh, LimitHold::Asks(AskReason::TooLong)),
        (Usage, Some(HOUR), Waited { waits: 10, ..fresh }, LimitHold::Asks(AskReason::TooOften)),
        (Usage, Some(HOUR), Waited { worked: true, ..fresh }, until(HOUR)),
        (Quota, None, fresh, LimitHold::Asks(AskReason::NoReset)),
        (Quota, Some(HOUR), fresh, until(HOUR)),
        (Overloaded, None, fresh, until(4_000)),
        (Overloaded, Some(9_000), fresh, until(9_000)),
        (Unavailable, None, Waited { retries: 2, ..fresh }, until(16_000)),
        (Unavailable, None, Waited { retries: 4, ..fresh }, until(64_000)),
        (Unavailable, None, Waited { retries: 5, ..fresh }, LimitHold::GivesUp),
    ];
    for (kind, reset, waited, expected) in table {
        let pause = |held| match held {
            // The jitter of a retry is at most a quarter of its pause.
            LimitHold::Until(at) if kind.is_transient() => LimitHold::Until(Timestamp::from_millis(
                at.as_millis() - i64::try_from(at.millis_since(NOW) % 1_000).unwrap(),
            )),
            held @ (LimitHold::Until(_) | LimitHold::Asks(_) | LimitHold::GivesUp) => held,
        };
        let held = hold(&seen(kind, reset), waited, 0);
        assert_eq!(pause(held), expected, "{kind:?} {reset:?} {waited:?}");
    }
    let asks = LimitSeen { rules: LimitRules { go_on: false, ..rules() }, ..seen(Usage, Some(HOUR)) };
    assert_eq!(hold(&asks, fresh, 0), LimitHold::Asks(AskReason::Policy));
    let lost = LimitSeen { continues: false, ..seen(Usage, Some(HOUR)) };
    assert_eq!(hold(&lost, fresh, 0), until(HOUR));
    assert_eq!(hold(&lost, Waited { worked: true, ..fresh }, 0), LimitHold::Asks(AskReason::SideEffects));
    let elsewhere = LimitSeen { elsewhere: true, ..seen(Usage, Some(HOUR)) };
    assert_eq!(hold(&elsewhere, fresh, 0), until(0));
}

#[test]
fn sessions_that_wait_for_the_same_reset_are_spread_and_each_stays_where_it_is() {
    let seen = LimitSeen {
        rules: LimitRules { jitter_ms: 10_000, ..rules() },
        ..seen(LimitKind::Usage, Some(HOUR))
    };
    let fresh = Waited { waits: 0, retries: 0, worked: false };
    let at = |salt| match hold(&seen, fresh, salt) {
        LimitHold::Until(at) => at.millis_since(NOW.plus_millis(HOUR)),
        other @ (LimitHold::Asks(_) | LimitHold::GivesUp) => panic!("{other:?}"),
    };
    let spread: std::collections::BTreeSet<u64> = (0..100).map(at).collect();
    assert!(spread.len() > 50 && spread.iter().all(|late| *late <= 10_000), "{spread:?}");
    assert_eq!(at(7), at(7));
}

/// The turn is kept and goes on once at the reset, with a prompt of its own.
#[test]
fn a_turn_waits_for_the_reset_and_goes_on_once() {
    story(
        at_work(),
        [
            tool_called("c1", "bash"),
            limited(LimitKind::Usage, HOUR),
            limited(LimitKind::Usage, HOUR),
            due(HOUR - 1),
            due(HOUR),
            due(HOUR + 1),
            turn_delivered(11),
            turn_delivered(11),
            over(11),
        ],
        expect![[r#"
            > tool_called
            context.checkpoint position=5 reason=risky_tool
            tool.called call=c1 tool=bash
            executing, run 1 ready
            > turn_limited
            turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
            executing, run 1 ready
            > turn_limited
            executing, run 1 ready
            > due
            executing, run 1 ready
            > due
            turn.continued leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing, run 1 ready
            > due
            executing, run 1 ready
            > turn_delivered
            turn.delivered turn=turn#1
            executing, run 1 ready
            > turn_delivered
            executing, run 1 ready
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=10 reason=turn_end
            executing -> between_turn, run 1 ready
        "#]],
    );
}

#[test]
fn an_operator_sees_the_wait_and_when_it_ends() {
    let mut given = at_work().after(limited(LimitKind::Usage, HOUR));
    assert_eq!(given.session.operator_state(), OperatorState::WaitingForLimit);
    given.put(&due(HOUR));
    assert_eq!(given.session.operator_state(), OperatorState::Working);
    let asks = at_work().after(limited(LimitKind::Quota, None));
    assert_eq!(asks.session.operator_state(), OperatorState::NeedsAnswer);
    let retry = at_work().after(limited(LimitKind::Overloaded, None));
    assert_eq!(retry.session.operator_state(), OperatorState::Working);
}

/// A daemon that was killed after it had decided to go on, and before the agent had the prompt, goes on; one that was
/// killed after that does not give the prompt again.
#[test]
fn a_restart_around_the_reset_neither_loses_nor_repeats_the_prompt() {
    let waits = || at_work().after(limited(LimitKind::Usage, HOUR)).after(run_ended(1, None));
    story(
        waits(),
        [daemon_restarted(), due(HOUR), daemon_restarted(), due(HOUR)],
        expect![[r#"
        > daemon_restarted
        executing
        > due
        turn.continued leg=turn#11 turn=turn#1
        do RunTurn { turn: turn#11 }
        executing
        > daemon_restarted
        turn.waiting again=true leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T08:00:08.000Z
        executing
        > due
        turn.continued leg=turn#11 turn=turn#1
        do RunTurn { turn: turn#11 }
        executing
    "#]],
    );
    story(
        waits(),
        [due(HOUR), run_started(2), daemon_restarted(), due(HOUR), run_started(3), turn_delivered(11)],
        expect![[r#"
            > due
            turn.continued leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            executing, run 2 starting
            > daemon_restarted
            run.ended how={kind=lost} reason="the daemon restarted and the turn's work was gone" receipt={} run=run#2
            turn.waiting again=true leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T08:00:07.000Z
            executing
            > due
            turn.continued leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing
            > run_started
            run.started agent=executor driver=acp number=3 run=run#3
            executing, run 3 starting
            > turn_delivered
            turn.delivered turn=turn#1
            executing, run 3 starting
        "#]],
    );
    story(
        waits(),
        [due(HOUR), turn_delivered(11), daemon_restarted(), due(HOUR)],
        expect![[r#"
        > due
        turn.continued leg=turn#11 turn=turn#1
        do RunTurn { turn: turn#11 }
        executing
        > turn_delivered
        turn.delivered turn=turn#1
        executing
        > daemon_restarted
        turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1 uncertain=true
        context.checkpoint position=9 reason=interruption
        executing -> interrupted
        > due
        interrupted
    "#]],
    );
}

/// The agent's process may end while its turn waits, however it ends.
#[test]
fn a_wait_survives_the_agent() {
    story(
        at_work(),
        [limited(LimitKind::Usage, HOUR), run_ended(1, InterruptCause::Crash), due(HOUR)],
        expect![[r#"
            > turn_limited
            turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
            executing, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            executing
            > due
            turn.continued leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing
        "#]],
    );
}

#[test]
fn a_person_sends_it_on_or_gives_it_up() {
    story(
        at_work(),
        [limited(LimitKind::Quota, None), due(100 * HOUR), resume(), resume()],
        expect![[r#"
            > turn_limited
            turn.waiting asks=no_reset leg=turn#11 limit={kind=quota text="no more"} turn=turn#1
            executing, run 1 ready
            > due
            executing, run 1 ready
            > resume
            turn.continued asked=true leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing, run 1 ready
            > resume
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=resume state=executing
            executing, run 1 ready
        "#]],
    );
    story(
        at_work(),
        [limited(LimitKind::Usage, HOUR), cancel_turn(), due(HOUR), work_ended()],
        expect![[r#"
        > turn_limited
        turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
        executing, run 1 ready
        > cancel_turn
        turn.cancel_requested forced=false turn=turn#1
        do CancelWork { turn: turn#1, forced: false }
        executing, cancel requested, run 1 ready
        > due
        executing, cancel requested, run 1 ready
        > work_ended
        turn.interrupted cause=user reason=sigterm turn=turn#1
        context.checkpoint position=7 reason=interruption
        executing -> interrupted, run 1 ready
    "#]],
    );
    story(
        at_work(),
        [limited(LimitKind::Usage, HOUR), stop(), due(HOUR), run_ended(1, None)],
        expect![[r#"
        > turn_limited
        turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
        executing, run 1 ready
        > stop
        stop.requested level=1
        do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
        executing, stop 1, run 1 ready
        > due
        stop.raised from=1 reason="its deadline passed" to=2
        do StopWork { level: Immediate, scope: Session, executing: true, answered: false }
        executing, stop 2, run 1 ready
        > run_ended
        run.ended how={code=0 kind=exited} receipt={} run=run#1
        turn.interrupted cause=user turn=turn#1
        context.checkpoint position=8 reason=interruption
        session.ended how=stopped
        executing -> interrupted -> stopped, stop 2
    "#]],
    );
}

/// The inbox does what it does while a turn runs.
#[test]
fn messages_meanwhile_are_those_of_a_running_turn() {
    story(
        at_work(),
        [
            limited(LimitKind::Usage, HOUR),
            send(2, Delivery::Reject),
            send(3, Delivery::Queue),
            send(4, Delivery::Interrupt),
            work_ended(),
        ],
        expect![[r#"
            > turn_limited
            turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
            executing, run 1 ready
            > start_turn
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=start_turn state=executing
            executing, run 1 ready
            > start_turn
            turn.queued delivery=queue prompt="go 3" turn=turn#3
            executing, run 1 ready, waiting turn#3
            > start_turn
            turn.queued delivery=interrupt prompt="go 4" turn=turn#4
            turn.cancel_requested forced=false reason="a message takes its place" turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested, run 1 ready, waiting turn#4 turn#3
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=10 reason=interruption
            inbox.paused reason=interrupted
            turn.started by={kind=operator name=ann} delivery=interrupt memory={mode=session_only} opening={kind=continued} prompt="go 4" queued=true turn=turn#4
            do RunTurn { turn: turn#4 }
            executing -> interrupted -> executing, run 1 ready, waiting turn#3, paused (interrupted)
        "#]],
    );
}

#[test]
fn retries_are_bounded_and_then_the_turn_has_failed() {
    let mut given = at_work();
    for retry in 0..5_u32 {
        let leg = u128::from(retry) + 20;
        let seen = LimitSeen { leg: turn_id(leg), ..seen(LimitKind::Overloaded, None) };
        given.put(&Signal::TurnLimited(Box::new(seen)).into());
        given.put(&due(HOUR));
        given.put(&turn_delivered(leg));
        assert_eq!(given.session.turn.as_ref().unwrap().retries, retry + 1);
    }
    story(
        given,
        [limited(LimitKind::Overloaded, None)],
        expect![[r#"
        > turn_limited
        turn.finished outcome=failed reason="overload of the provider, given up after 5 more tries: no more" review=true turn=turn#1
        context.checkpoint position=20 reason=turn_end
        executing -> between_turn, run 1 ready
    "#]],
    );
}

/// A report about a prompt before the last limit is late.
#[test]
fn the_end_of_an_earlier_prompt_ends_nothing() {
    story(
        at_work(),
        [
            limited(LimitKind::Usage, HOUR),
            due(HOUR),
            over(1),
            next_leg(12),
            due(2 * HOUR),
            over(11),
            over(12),
        ],
        expect![[r#"
            > turn_limited
            turn.waiting leg=turn#11 limit={kind=usage resets_at=2026-11-15T09:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T09:00:00.000Z
            executing, run 1 ready
            > due
            turn.continued leg=turn#11 turn=turn#1
            do RunTurn { turn: turn#11 }
            executing, run 1 ready
            > turn_finished
            signal.unexpected signal=turn_finished state=executing
            executing, run 1 ready
            > turn_limited
            turn.waiting leg=turn#12 limit={kind=usage resets_at=2026-11-15T10:00:00.000Z text="no more"} turn=turn#1 until=2026-11-15T10:00:00.000Z
            executing, run 1 ready
            > due
            turn.continued leg=turn#12 turn=turn#1
            do RunTurn { turn: turn#12 }
            executing, run 1 ready
            > turn_finished
            signal.unexpected signal=turn_finished state=executing
            executing, run 1 ready
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=11 reason=turn_end
            executing -> between_turn, run 1 ready
        "#]],
    );
}
