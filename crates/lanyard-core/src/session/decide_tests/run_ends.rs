//! The end of a run: what it settles, and what waits for it.

use super::*;

/// S0-B11, S3-B10: nothing but the end of the process confirms the stop.
#[test]
fn a_stop_with_a_live_run_waits_for_its_end() {
    story(
        given([started(1), stop_at(StopLevel::Graceful)]).with_run(),
        [turn_finished(), work_ended(), run_ended(1, None)],
        expect![[r#"
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=5 reason=turn_end
            executing -> between_turn, stop 1, run 1 ready
            > work_ended
            between_turn, stop 1, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_stop_with_a_live_run_is_confirmed_by_its_end_in_mid_turn() {
    check(
        given([started(1), stop_at(StopLevel::Terminated)]).with_run(),
        killed(1, InterruptCause::Crash),
        expect![[r#"
            run.ended how={kind=signalled signal=9} reason="it did not heed TERM" receipt={} run=run#1
            turn.interrupted cause=user reason="it did not heed TERM" turn=turn#1
            context.checkpoint position=5 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 3
        "#]],
    );
}

#[test]
fn a_stop_with_a_live_run_is_not_confirmed_by_the_work_alone() {
    story(
        given([started(1), stop_at(StopLevel::Immediate)]).with_run(),
        [work_ended(), run_ended(1, None)],
        expect![[r#"
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=5 reason=interruption
            executing -> interrupted, stop 2, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            interrupted -> stopped, stop 2
        "#]],
    );
}

#[test]
fn a_lost_turn_does_not_confirm_a_stop_while_its_run_lives() {
    story(
        given([started(1), stop_at(StopLevel::Graceful)]).with_run(),
        [turn_lost(InterruptCause::User), run_ended(1, None)],
        expect![[r#"
            > turn_lost
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=5 reason=interruption
            executing -> interrupted, stop 1, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            interrupted -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_stop_at_rest_waits_for_the_run_too() {
    story(
        in_state(StateName::BetweenTurn).with_run(),
        [stop(), work_ended(), run_ended(1, None)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            between_turn, stop 1, run 1 ready
            > work_ended
            between_turn, stop 1, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

/// S0-B17: what was withdrawn before the process ended does not end the session.
#[test]
fn the_end_of_a_run_after_a_withdrawn_stop() {
    story(
        given([started(1), stop_at(StopLevel::Graceful)]).with_run(),
        [withdraw_stop(), run_ended(1, InterruptCause::Crash)],
        expect![[r#"
            > withdraw_stop
            stop.withdrawn
            executing, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=crash review=true turn=turn#1
            context.checkpoint position=6 reason=interruption
            executing -> interrupted
        "#]],
    );
}

/// S1-22: who cancelled interrupted, however the process ended.
#[test]
fn a_cancel_and_the_end_of_the_run_is_an_interruption_by_the_user() {
    story(
        in_state(StateName::Executing).with_run(),
        [cancel_turn(), killed(1, InterruptCause::Crash)],
        expect![[r#"
            > cancel_turn
            turn.cancel_requested forced=false turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested, run 1 ready
            > run_ended
            run.ended how={kind=signalled signal=9} reason="it did not heed TERM" receipt={} run=run#1
            turn.interrupted cause=user reason="it did not heed TERM" turn=turn#1
            context.checkpoint position=5 reason=interruption
            executing -> interrupted
        "#]],
    );
}

/// S1-B07: nobody asked for it: the turn was lost, and the cause is said.
#[test]
fn a_run_that_is_lost_interrupts_its_turn() {
    check(
        in_state(StateName::Executing).with_run(),
        run_ended_as(1, RunEnd::Lost, InterruptCause::Crash, Some("its supervisor died")),
        expect![[r#"
            run.ended how={kind=lost} reason="its supervisor died" receipt={} run=run#1
            turn.interrupted cause=crash reason="its supervisor died" review=true turn=turn#1
            context.checkpoint position=4 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn a_run_that_ran_out_of_time_says_so() {
    check(
        in_state(StateName::Executing).with_run(),
        run_ended_as(1, RunEnd::Signalled { signal: 15 }, InterruptCause::Timeout, Some("10 min")),
        expect![[r#"
            run.ended how={kind=signalled signal=15} reason="10 min" receipt={} run=run#1
            turn.interrupted cause=timeout reason="10 min" review=true turn=turn#1
            context.checkpoint position=4 reason=interruption
            executing -> interrupted
        "#]],
    );
}

/// S1-B07, S4-B07.
#[test]
fn a_machine_that_was_started_anew_lost_the_host() {
    check(
        in_state(StateName::Executing).with_run(),
        run_ended_as(1, RunEnd::HostLost, InterruptCause::HostLost, Some("the machine was started anew")),
        expect![[r#"
            run.ended how={kind=host_lost} reason="the machine was started anew" receipt={} run=run#1
            turn.interrupted cause=host_lost reason="the machine was started anew" review=true turn=turn#1
            context.checkpoint position=4 reason=interruption
            executing -> interrupted
        "#]],
    );
}

/// A resume that failed is tried another way, under the same turn.
#[test]
fn a_turn_waits_for_a_further_run_when_no_cause_is_given() {
    story(
        in_state(StateName::Executing),
        [
            run_started(1),
            run_ended_as(1, RunEnd::NotStarted { code: "resume_refused".into() }, None, None),
            run_started(2),
            run_ready(2),
            turn_finished(),
        ],
        expect![[r#"
            > run_started
            run.started agent=executor driver=acp number=1 run=run#1
            executing, run 1 starting
            > run_ended
            run.ended how={code=resume_refused kind=not_started} receipt={} run=run#1
            executing
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            executing, run 2 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#2
            executing, run 2 ready
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=6 reason=turn_end
            executing -> between_turn, run 2 ready
        "#]],
    );
}

#[test]
fn a_turn_that_was_cancelled_waits_for_no_further_run() {
    check(
        given([started(1), cancel_asked(1)]).with_run(),
        run_ended(1, None),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=5 reason=interruption
            executing -> interrupted
        "#]],
    );
}

#[test]
fn the_end_of_a_run_between_turns_changes_no_state() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        run_ended(1, InterruptCause::Crash),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            between_turn
        "#]],
    );
}

#[test]
fn a_run_that_ended_twice_ended_once() {
    story(
        in_state(StateName::Executing).with_run(),
        [run_ended(1, InterruptCause::Crash), run_ended(1, InterruptCause::Crash)],
        expect![[r#"
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=crash review=true turn=turn#1
            context.checkpoint position=4 reason=interruption
            executing -> interrupted
            > run_ended
            interrupted
        "#]],
    );
}

/// S4-B01.
#[test]
fn the_end_of_another_run_says_nothing() {
    check(
        in_state(StateName::Executing).with_run(),
        run_ended(9, InterruptCause::Crash),
        expect![[r#"
            executing, run 1 ready
        "#]],
    );
}

/// S0-B04: each channel that was tried, each process that was ended.
#[test]
fn the_end_of_a_run_comes_with_its_receipt() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        with_receipt(1),
        expect![[r#"
            run.ended how={kind=signalled signal=9} receipt={kept=[{name=gopls pid=4714}] left=[{name=make pid=4713}] processes=[{by=KILL name=agent pid=4711}, {name=sleep pid=4712}] tried=[{after_ms=0 channel=agent}, {after_ms=5000 channel=term}, {after_ms=7000 channel=kill}]} run=run#1
            between_turn
        "#]],
    );
}

#[test]
fn a_mirrored_session_is_stopped_when_its_turn_ends() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]).with_mirrored_run(),
        turn_lost(InterruptCause::User),
        expect![[r#"
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=4 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 1, mirrored run 1 starting
        "#]],
    );
}

#[test]
fn a_mirrored_session_is_stopped_once_when_its_run_ends() {
    check(
        given([started(1), stop_at(StopLevel::Graceful)]).with_mirrored_run(),
        run_ended(1, InterruptCause::Crash),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=4 reason=interruption
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_mirrored_session_at_rest_is_stopped_when_its_run_ends() {
    check(
        given([started(1)]).with_mirrored_run().after_each([turn_finished(), stop()]),
        run_ended(1, InterruptCause::Crash),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_mirrored_run_is_counted_like_any_other() {
    story(
        in_state(StateName::Executing),
        [mirrored_run_started(1), complete(), run_ended(1, None)],
        expect![[r#"
            > run_started
            run.started agent=executor driver=acp mirrored=true number=1 run=run#1
            executing, mirrored run 1 starting
            > complete
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=3 reason=turn_end
            session.ended how=completed
            executing -> between_turn -> completed, mirrored run 1 starting
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            completed
        "#]],
    );
}

fn with_receipt(run: u128) -> Input {
    let (how, cause, reason) = (RunEnd::Signalled { signal: 9 }, None, None);
    Signal::RunEnded { run: run_id(run), how, cause, reason, receipt: receipt() }.into()
}

/// A conversation an agent could not take up again is lost, and the record says so.
#[test]
fn a_resume_that_failed_leaves_the_conversation_lost() {
    let ended = |code: &str| {
        let how = RunEnd::NotStarted { code: code.into() };
        let given =
            in_state(StateName::Executing).after(run_started(1)).after(run_ended_as(1, how, None, None));
        given.session.run.and_then(|run| run.continuity)
    };
    assert_eq!(ended("resume_lost"), Some(Continuity::Lost));
    assert_eq!(ended("resume_refused"), Some(Continuity::Lost));
    assert_eq!(ended("agent_program_missing"), None);
}
