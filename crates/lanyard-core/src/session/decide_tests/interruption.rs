//! Turns that end before their time: cancelled, lost, gone with a restart.

use super::*;

/// S1-12, S1-38, S3-B10: asking is one event, the end of the work another.
#[test]
fn a_cancel_is_asked_for_first() {
    check(
        in_state(StateName::Executing),
        cancel_turn(),
        expect![[r#"
            turn.cancel_requested forced=false turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested
        "#]],
    );
}

#[test]
fn a_second_cancel_does_not_wait_for_the_agent() {
    check(
        given([started(1), cancel_asked(1)]),
        cancel_turn(),
        expect![[r#"
            turn.cancel_requested forced=true turn=turn#1
            do CancelWork { turn: turn#1, forced: true }
            executing, cancel requested
        "#]],
    );
}

/// S1-22: user interruption is detected and leaves a checkpoint.
#[test]
fn a_cancel_is_confirmed_when_the_work_has_ended() {
    check(
        given([started(1), cancel_asked(1)]),
        work_ended(),
        expect![[r#"
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=3 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_cancelled_turn_that_comes_to_its_end_was_interrupted_all_the_same() {
    check(
        given([started(1), cancel_asked(1)]),
        turn_finished(),
        expect![[r#"
            turn.interrupted cause=user reason=cancelled turn=turn#1
            context.checkpoint position=3 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn there_is_nothing_to_cancel_between_turns() {
    check(
        in_state(StateName::BetweenTurn),
        cancel_turn(),
        expect![[r#"
            refused no_active_turn: no turn is running; look at its state with `lanyard show`
            command.refused code=no_active_turn command=cancel_turn state=between_turn
            between_turn
        "#]],
    );
}

#[test]
fn there_is_nothing_to_cancel_after_the_end() {
    check(
        in_state(StateName::Failed),
        cancel_turn(),
        expect![[r#"
            refused session_ended: the session has ended as failed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=cancel_turn state=failed
            failed
        "#]],
    );
}

#[test]
fn a_cancel_says_why() {
    check(
        in_state(StateName::Executing),
        cancel_because("wrong branch"),
        expect![[r#"
            turn.cancel_requested forced=false reason="wrong branch" turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested
        "#]],
    );
}

#[test]
fn a_reason_must_be_readable() {
    check(
        in_state(StateName::Executing),
        cancel_because("\u{7}"),
        expect![[r#"
            refused field_bad_text: reason holds a control character; remove control characters such as NUL, escape or line breaks
            executing
        "#]],
    );
}

#[test]
fn a_reason_must_not_be_blank() {
    check(
        in_state(StateName::Executing),
        cancel_because("  "),
        expect![[r#"
            refused field_empty: reason is empty; give at least one visible character
            executing
        "#]],
    );
}

/// S1-23, S1-B07: the cause is what was seen.
#[test]
fn a_turn_can_be_lost_to_a_crash() {
    check(
        in_state(StateName::Executing),
        turn_lost(InterruptCause::Crash),
        expect![[r#"
            turn.interrupted cause=crash review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_turn_can_run_out_of_time() {
    check(
        in_state(StateName::Executing),
        turn_lost(InterruptCause::Timeout),
        expect![[r#"
            turn.interrupted cause=timeout review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_turn_can_be_lost_with_its_host() {
    check(
        in_state(StateName::Executing),
        turn_lost(InterruptCause::HostLost),
        expect![[r#"
            turn.interrupted cause=host_lost review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_turn_can_spend_its_budget() {
    check(
        in_state(StateName::Executing),
        turn_lost(InterruptCause::Limit),
        expect![[r#"
            turn.interrupted cause=limit review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_turn_can_be_ended_by_its_user_elsewhere() {
    check(
        in_state(StateName::Executing),
        turn_lost(InterruptCause::User),
        expect![[r#"
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_lost_turn_says_why() {
    let lost = Signal::TurnLost {
        cause: InterruptCause::Crash,
        reason: Some("signal 9".into()),
        receipt: crate::session::run::Receipt::default(),
    };
    check(
        in_state(StateName::Executing),
        lost,
        expect![[r#"
            turn.interrupted cause=crash reason="signal 9" review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_turn_can_be_lost_once() {
    check(
        in_state(StateName::Interrupted),
        turn_lost(InterruptCause::Crash),
        expect![[r#"
            signal.unexpected signal=turn_lost state=interrupted
            interrupted
        "#]],
    );
}

/// S1-23: work that ended without a normal end was lost.
#[test]
fn work_that_ends_unasked_is_a_crash() {
    check(
        in_state(StateName::Executing),
        work_ended(),
        expect![[r#"
            turn.interrupted cause=crash reason=sigterm review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn the_end_of_no_work_says_nothing() {
    check(
        in_state(StateName::BetweenTurn),
        work_ended(),
        expect![[r#"
            between_turn
        "#]],
    );
}

/// S1-B07, S4-B07: after a restart nothing is left executing without a process.
#[test]
fn a_restart_finds_the_turn_gone() {
    check(
        in_state(StateName::Executing),
        daemon_restarted(),
        expect![[r#"
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_restart_is_told_once() {
    story(
        in_state(StateName::Executing),
        [daemon_restarted(), daemon_restarted()],
        expect![[r#"
            > daemon_restarted
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1
            context.checkpoint position=2 reason=interruption
            executing -> interrupted
            > daemon_restarted
            interrupted
        "#]],
    );
}

/// The cancel was on disk before the restart: it is what ended the turn, and nobody should take it up again.
#[test]
fn a_restart_confirms_a_cancel() {
    check(
        given([started(1), cancel_asked(1)]),
        daemon_restarted(),
        expect![[r#"
            turn.interrupted cause=user reason="the daemon restarted and the turn's work was gone" turn=turn#1
            context.checkpoint position=3 reason=interruption
            executing -> interrupted
        "#]],
    );
}

/// A crash between append and effect loses nothing: the stop that could not be carried out is confirmed now.
#[test]
fn a_restart_confirms_a_stop_of_a_session_at_rest() {
    let given = in_state(StateName::BetweenTurn).event(stop_at(StopLevel::Graceful));
    check(
        given,
        daemon_restarted(),
        expect![[r#"
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_restart_confirms_a_stop_of_a_running_session() {
    check(
        given([started(1), stop_at(StopLevel::Immediate)]),
        daemon_restarted(),
        expect![[r#"
            turn.interrupted cause=user reason="the daemon restarted and the turn's work was gone" turn=turn#1
            context.checkpoint position=3 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 2
        "#]],
    );
}

#[test]
fn a_restart_means_nothing_to_a_session_at_rest() {
    check(
        in_state(StateName::BetweenTurn),
        daemon_restarted(),
        expect![[r#"
            between_turn
        "#]],
    );
}

#[test]
fn a_restart_means_nothing_to_an_ended_session() {
    check(
        in_state(StateName::Stopped),
        daemon_restarted(),
        expect![[r#"
            stopped, stop 1
        "#]],
    );
}

/// S1-22: the whole way, from the interruption to the resumed work.
#[test]
fn work_resumes_after_an_interruption() {
    story(
        in_state(StateName::Executing),
        [cancel_turn(), work_ended(), start_turn(2), turn_finished()],
        expect![[r#"
            > cancel_turn
            turn.cancel_requested forced=false turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=3 reason=interruption
            executing -> interrupted
            > start_turn
            turn.started governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            interrupted -> executing
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#2
            context.checkpoint position=6 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

fn cancel_because(reason: &str) -> Input {
    Command::CancelTurn { reason: Some(reason.into()) }.into()
}
