//! Stops: asked for, raised, withdrawn, confirmed.

use super::*;
use crate::session::StopScope;

/// S0-04, S0-16: a stop of an active session begins at level 1.
#[test]
fn a_stop_begins_gracefully() {
    check(
        in_state(StateName::Executing),
        stop(),
        expect![[r#"
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1
        "#]],
    );
}

#[test]
fn a_stop_of_a_session_at_rest_says_that_nothing_runs() {
    check(
        in_state(StateName::BetweenTurn),
        stop(),
        expect![[r#"
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            between_turn, stop 1
        "#]],
    );
}

/// S0-03, S0-18, S0-43, S0-B17, S0-T5: pressing again raises the level, 1, 2, 3, 3, 3.
#[test]
fn pressing_again_raises_the_level_up_to_three() {
    story(
        in_state(StateName::Executing),
        [stop(), stop(), stop(), stop(), stop()],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1
            > stop
            stop.raised from=1 to=2
            do StopWork { level: Immediate, scope: Session, executing: true, answered: false }
            executing, stop 2
            > stop
            stop.raised from=2 to=3
            do StopWork { level: Terminated, scope: Session, executing: true, answered: false }
            executing, stop 3
            > stop
            executing, stop 3
            > stop
            executing, stop 3
        "#]],
    );
}

/// S0-B11, S3-B10: a stop that was asked for is not a stop that happened.
#[test]
fn a_stop_is_confirmed_when_the_work_has_ended() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]),
        work_ended(),
        expect![[r#"
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=3 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_stop_of_a_session_at_rest_is_confirmed_likewise() {
    check(
        given([stop_at(StopLevel::Graceful)]),
        work_ended(),
        expect![[r#"
            session.ended how=stopped
            beginning -> stopped, stop 1
        "#]],
    );
}

/// S0-B02: finishing the turn is what level 1 asks for.
#[test]
fn a_turn_that_finishes_under_a_stop_ends_the_session() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]),
        turn_finished(),
        expect![[r#"
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=3 reason=turn_end
            session.ended how=stopped
            executing -> between_turn -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_turn_lost_under_a_stop_ends_the_session() {
    let given = given([started(1), stop_at(StopLevel::Terminated)]);
    check(
        given,
        turn_lost(InterruptCause::HostLost),
        expect![[r#"
            turn.interrupted cause=host_lost review=true turn=turn#1
            context.checkpoint position=3 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 3
        "#]],
    );
}

#[test]
fn a_stop_keeps_its_reason_to_the_end() {
    story(
        in_state(StateName::Executing),
        [stop_because("too costly"), work_ended()],
        expect![[r#"
            > stop
            stop.requested level=1 reason="too costly"
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=3 reason=interruption
            session.ended how=stopped reason="too costly"
            executing -> interrupted -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_stop_with_an_unreadable_reason_is_refused() {
    check(
        in_state(StateName::Executing),
        stop_because("\0"),
        expect![[r#"
            refused field_bad_text: reason holds a control character; remove control characters such as NUL, escape or line breaks
            executing
        "#]],
    );
}

/// S0-B17.
#[test]
fn a_graceful_stop_can_be_withdrawn() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]),
        withdraw_stop(),
        expect![[r#"
            stop.withdrawn
            executing
        "#]],
    );
}

#[test]
fn an_immediate_stop_can_be_withdrawn() {
    check(
        given([started(1), stop_at(StopLevel::Immediate)]),
        withdraw_stop(),
        expect![[r#"
            stop.withdrawn
            executing
        "#]],
    );
}

/// S0-B06, S0-42: level 3 is final.
#[test]
fn a_terminating_stop_cannot_be_withdrawn() {
    check(
        given([started(1), stop_at(StopLevel::Terminated)]),
        withdraw_stop(),
        expect![[r#"
            refused stop_final: the stop has reached level 3; level 3 cannot be withdrawn; once stopped, `lanyard resume` brings it back
            command.refused code=stop_final command=withdraw_stop state=executing
            executing, stop 3
        "#]],
    );
}

#[test]
fn there_must_be_a_stop_to_withdraw() {
    check(
        in_state(StateName::Executing),
        withdraw_stop(),
        expect![[r#"
            refused no_stop_pending: no stop is pending; look at its state with `lanyard show`
            command.refused code=no_stop_pending command=withdraw_stop state=executing
            executing
        "#]],
    );
}

#[test]
fn a_stop_after_a_withdrawn_one_begins_at_one_again() {
    story(
        in_state(StateName::Executing),
        [stop(), stop(), withdraw_stop(), stop()],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1
            > stop
            stop.raised from=1 to=2
            do StopWork { level: Immediate, scope: Session, executing: true, answered: false }
            executing, stop 2
            > withdraw_stop
            stop.withdrawn
            executing
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1
        "#]],
    );
}

#[test]
fn a_session_works_on_after_its_stop_was_withdrawn() {
    story(
        given([stop_at(StopLevel::Graceful)]),
        [withdraw_stop(), start_turn(1)],
        expect![[r#"
            > withdraw_stop
            stop.withdrawn
            beginning
            > start_turn
            turn.started memory={mode=session_only} opening={kind=new} prompt=go turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

/// S0-B02: completing is compliance, at every level.
#[test]
fn completing_resolves_a_stop() {
    check(
        given([started(1), stop_at(StopLevel::Immediate)]),
        complete(),
        expect![[r#"
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=3 reason=turn_end
            session.ended how=completed
            executing -> between_turn -> completed, stop 2
        "#]],
    );
}

#[test]
fn failing_resolves_a_stop() {
    check(
        given([started(1), stop_at(StopLevel::Terminated)]),
        fail(),
        expect![[r#"
            turn.finished outcome=failed review=true turn=turn#1
            context.checkpoint position=3 reason=turn_end
            session.ended how=failed
            executing -> between_turn -> failed, stop 3
        "#]],
    );
}

/// S0-B02: so is handing off.
#[test]
fn a_hand_off_is_carried_out_under_a_stop() {
    check(
        given([stop_at(StopLevel::Immediate)]),
        migrate_to_agent("coordinator"),
        expect![[r#"
            session.migrated from={owner=ann} reason="better at it" to={agent=coordinator owner=ann}
            beginning, stop 2
        "#]],
    );
}

/// S0-B10: words are taken while the session is stopping, too.
#[test]
fn guidance_is_taken_under_a_stop() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]),
        guide(1, "commit first"),
        expect![[r#"
            guidance.queued note=note#1 text="commit first"
            do Steer { note: note#1 }
            executing, stop 1
        "#]],
    );
}

/// S0-16: nothing to stop.
#[test]
fn an_ended_session_cannot_be_stopped() {
    check(
        in_state(StateName::Completed),
        stop(),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=stop state=completed
            completed
        "#]],
    );
}

#[test]
fn a_stopped_session_stays_stopped() {
    check(
        in_state(StateName::Stopped),
        stop(),
        expect![[r#"
            refused session_ended: the session was stopped; resume it with `lanyard resume sess#1`, or fork it with `lanyard fork`
            command.refused code=session_ended command=stop state=stopped
            stopped, stop 1
        "#]],
    );
}

#[test]
fn a_stop_after_the_end_cannot_be_withdrawn() {
    check(
        in_state(StateName::Stopped),
        withdraw_stop(),
        expect![[r#"
            refused session_ended: the session was stopped; resume it with `lanyard resume sess#1`, or fork it with `lanyard fork`
            command.refused code=session_ended command=withdraw_stop state=stopped
            stopped, stop 1
        "#]],
    );
}

/// Starting over is no way around a stop.
#[test]
fn a_session_under_a_stop_is_not_reset() {
    check(
        given([stop_at(StopLevel::Terminated)]),
        reset(),
        expect![[r#"
            refused session_stopping: a stop is pending; withdraw the stop with `lanyard unstop`, or wait until it is confirmed
            command.refused code=session_stopping command=reset state=beginning
            beginning, stop 3
        "#]],
    );
}

/// S0-B06: the stop that ended the session stays in its record, for every later call to see.
#[test]
fn the_stop_outlives_the_session_it_ended() {
    let given = given([started(1), stop_at(StopLevel::Terminated)]).after(work_ended());
    assert_eq!(given.session.stop.unwrap().level, StopLevel::Terminated);
}

/// S0-B02: also one that was obeyed, so that an agent that says it is done and goes on is still stopped.
#[test]
fn the_stop_outlives_a_session_that_complied() {
    let given = given([started(1), stop_at(StopLevel::Graceful)]).after(complete());
    assert_eq!(given.session.stop.unwrap().level, StopLevel::Graceful);
}

/// S0-04: the directive names who asked for it first, when and why.
#[test]
fn a_raised_stop_is_still_the_stop_that_was_asked_for() {
    let first = in_state(StateName::Executing).after(stop_because("too costly")).session.stop.unwrap();
    let given = in_state(StateName::Executing).after(stop_because("too costly")).after(stop());
    let raised = given.session.stop.unwrap();
    assert_eq!(raised.level, StopLevel::Immediate);
    assert_eq!((raised.requested_at, raised.by, raised.reason), (first.requested_at, first.by, first.reason));
}

fn stop_because(reason: &str) -> Input {
    Command::Stop { reason: Some(reason.into()), scope: StopScope::Session, now: false }.into()
}
