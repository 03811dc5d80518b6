//! Runs: one incarnation of the agent after the other, and what their ends settle.

use super::*;

/// S4-B01: a run is written before its process is started, and is counted.
#[test]
fn the_first_run_of_a_turn() {
    story(
        in_state(StateName::Executing),
        [run_started(1), run_ready(1), turn_finished()],
        expect![[r#"
            > run_started
            run.started agent=executor driver=acp number=1 run=run#1
            executing, run 1 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#1
            executing, run 1 ready
            > turn_finished
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=4 reason=turn_end
            executing -> between_turn, run 1 ready
        "#]],
    );
}

/// S4-B01: each run is a numbered incarnation.
#[test]
fn a_second_run_is_number_two() {
    story(
        in_state(StateName::BetweenTurn).with_run(),
        [run_ended(1, None), run_started(2), run_ready(2)],
        expect![[r#"
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            between_turn
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            between_turn, run 2 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#2
            between_turn, run 2 ready
        "#]],
    );
}

#[test]
fn a_run_while_one_is_live_is_unexpected() {
    check(
        in_state(StateName::Executing).with_run(),
        run_started(2),
        expect![[r#"
            signal.unexpected signal=run_started state=executing
            executing, run 1 ready
        "#]],
    );
}

/// After a crash the same may be told twice.
#[test]
fn a_run_told_of_twice_is_one_run() {
    story(
        in_state(StateName::Executing),
        [run_started(1), run_started(1), run_ready(1), run_ready(1)],
        expect![[r#"
            > run_started
            run.started agent=executor driver=acp number=1 run=run#1
            executing, run 1 starting
            > run_started
            executing, run 1 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#1
            executing, run 1 ready
            > run_ready
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn a_run_that_was_over_does_not_start_again() {
    check(
        in_state(StateName::Executing).with_run().event(run_over(1)),
        run_started(1),
        expect![[r#"
            executing
        "#]],
    );
}

/// S4-B01: a late message of an old incarnation is recognised.
#[test]
fn the_greeting_of_another_run_is_unexpected() {
    story(
        in_state(StateName::Executing).with_run(),
        [run_ready(2), run_adopted(2)],
        expect![[r#"
            > run_ready
            signal.unexpected signal=run_ready state=executing
            executing, run 1 ready
            > run_adopted
            signal.unexpected signal=run_adopted state=executing
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn the_greeting_of_a_run_that_is_over_is_unexpected() {
    story(
        in_state(StateName::BetweenTurn).with_run().event(run_over(1)),
        [run_ready(1), run_adopted(1)],
        expect![[r#"
            > run_ready
            signal.unexpected signal=run_ready state=between_turn
            between_turn
            > run_adopted
            signal.unexpected signal=run_adopted state=between_turn
            between_turn
        "#]],
    );
}

/// S4-B07: a daemon that came back goes on with what lives.
#[test]
fn an_adopted_run_goes_on_exactly() {
    story(
        in_state(StateName::Executing).with_run(),
        [run_adopted(1), turn_finished()],
        expect![[r#"
            > run_adopted
            run.adopted run=run#1
            executing, run 1 ready
            > turn_finished
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=5 reason=turn_end
            executing -> between_turn, run 1 ready
        "#]],
    );
}

#[test]
fn an_adopted_run_says_so_in_the_record() {
    let given = in_state(StateName::Executing).with_run().after(run_adopted(1));
    assert_eq!(given.session.run.unwrap().continuity, Some(Continuity::Exact));
}

#[test]
fn the_agents_own_id_of_the_conversation_outlives_its_run() {
    let given = in_state(StateName::BetweenTurn).with_run().after(run_ended(1, None));
    assert_eq!(given.session.native.as_deref(), Some("thread-7"));
    assert_eq!(given.clone().after(migrate_to_owner("bob")).session.native.as_deref(), Some("thread-7"));
    // Another agent knows nothing of it, and neither does a conversation that starts over.
    assert_eq!(given.clone().after(migrate_to_agent("reviewer")).session.native, None);
    assert_eq!(given.after(reset()).session.native, None);
}

/// The record keeps what an agent says of itself, and an agent may say anything.
#[test]
fn an_agents_words_about_itself_are_bounded() {
    let mut ready = greeting(1);
    ready.native = "n".repeat(NAME_CHARS_MAX + 1);
    ready.info.name = "i".repeat(NAME_CHARS_MAX + 1);
    let given = given([started(1), run_began(1)]).after(Signal::RunReady(Box::new(ready)));
    let info = given.session.run.unwrap().info.unwrap();
    assert_eq!(given.session.native.unwrap().len(), NAME_CHARS_MAX);
    assert_eq!(info.name.len(), NAME_CHARS_MAX);
}

/// S0-B11, S3-B10: nothing but the end of the process confirms the stop.
#[test]
fn a_stop_with_a_live_run_waits_for_its_end() {
    story(
        given([started(1), stop_at(StopLevel::Graceful)]).with_run(),
        [turn_finished(), work_ended(), run_ended(1, None)],
        expect![[r#"
            > turn_finished
            turn.finished outcome=completed turn=turn#1
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
            do StopWork { level: Graceful, executing: false }
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
            turn.interrupted cause=crash turn=turn#1
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
            turn.interrupted cause=crash reason="its supervisor died" turn=turn#1
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
            turn.interrupted cause=timeout reason="10 min" turn=turn#1
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
            turn.interrupted cause=host_lost reason="the machine was started anew" turn=turn#1
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
            turn.finished outcome=completed turn=turn#1
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
            turn.interrupted cause=crash turn=turn#1
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
            run.ended how={kind=signalled signal=9} receipt={processes=[{by=KILL name=agent pid=4711}, {name=sleep pid=4712}] tried=[{after_ms=0 channel=agent}, {after_ms=5000 channel=term}, {after_ms=7000 channel=kill}]} run=run#1
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

/// The session has no more use for the process, and its end is still worth knowing.
#[test]
fn an_ended_session_records_the_end_of_its_run() {
    story(
        in_state(StateName::Executing).with_run(),
        [complete(), killed(1, InterruptCause::Crash)],
        expect![[r#"
            > complete
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=4 reason=turn_end
            session.ended how=completed
            do EndRun
            executing -> between_turn -> completed, run 1 ready
            > run_ended
            run.ended how={kind=signalled signal=9} reason="it did not heed TERM" receipt={} run=run#1
            completed
        "#]],
    );
}

#[test]
fn an_ended_session_starts_no_run() {
    story(
        in_state(StateName::Completed),
        [run_started(1), run_ready(1), run_adopted(1)],
        expect![[r#"
            > run_started
            signal.unexpected signal=run_started state=completed
            completed
            > run_ready
            signal.unexpected signal=run_ready state=completed
            completed
            > run_adopted
            signal.unexpected signal=run_adopted state=completed
            completed
        "#]],
    );
}

#[test]
fn a_deleted_session_says_nothing_of_its_run() {
    story(
        in_state(StateName::BetweenTurn).with_run(),
        [delete(0), run_ended(1, None), run_started(2)],
        expect![[r#"
            > delete
            session.deleted
            do EndRun
            between_turn, run 1 ready, deleted
            > run_ended
            between_turn, run 1 ready, deleted
            > run_started
            signal.unexpected signal=run_started state=between_turn
            between_turn, run 1 ready, deleted
        "#]],
    );
}

#[test]
fn a_session_put_away_lets_go_of_its_process() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        archive(),
        expect![[r#"
            session.archived
            do EndRun
            between_turn, run 1 ready, archived
        "#]],
    );
}

#[test]
fn a_session_that_starts_over_lets_go_of_its_process() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        reset(),
        expect![[r#"
            session.reset
            do EndRun
            between_turn -> beginning, run 1 ready
        "#]],
    );
}

#[test]
fn another_agent_needs_another_process() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        migrate_to_agent("reviewer"),
        expect![[r#"
            session.migrated from={owner=ann} reason="better at it" to={agent=reviewer owner=ann}
            do EndRun
            between_turn, run 1 ready
        "#]],
    );
}

/// A new owner can take over in mid-turn; the agent does not notice.
#[test]
fn another_owner_keeps_the_process() {
    check(
        in_state(StateName::Executing).with_run(),
        migrate_to_owner("bob"),
        expect![[r#"
            session.migrated from={owner=ann} reason="end of shift" to={owner=bob}
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn without_a_process_there_is_none_to_let_go_of() {
    story(
        in_state(StateName::BetweenTurn).with_run().event(run_over(1)),
        [archive(), unarchive(), reset(), complete()],
        expect![[r#"
            > archive
            session.archived
            between_turn, archived
            > unarchive
            session.unarchived
            between_turn
            > reset
            session.reset
            between_turn -> beginning
            > complete
            session.ended how=completed
            beginning -> completed
        "#]],
    );
}

/// S0-B10: a running agent may be able to take them at once.
#[test]
fn words_into_a_running_turn_are_passed_on() {
    story(
        in_state(StateName::Executing).with_run(),
        [guide(1, "left"), turn_finished(), guide(2, "right")],
        expect![[r#"
            > guide
            guidance.queued note=note#1 text=left
            do Steer { note: note#1 }
            executing, run 1 ready
            > turn_finished
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=5 reason=turn_end
            executing -> between_turn, run 1 ready
            > guide
            guidance.queued note=note#2 text=right
            between_turn, run 1 ready
        "#]],
    );
}

/// S1-B07, S4-B07: what the daemon did not find alive is over.
#[test]
fn a_restart_that_finds_no_process_ends_the_run() {
    story(
        in_state(StateName::Executing).with_run(),
        [daemon_restarted(), daemon_restarted(), run_started(2)],
        expect![[r#"
            > daemon_restarted
            run.ended how={kind=lost} reason="the daemon restarted and the turn's work was gone" receipt={} run=run#1
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" turn=turn#1
            context.checkpoint position=4 reason=interruption
            executing -> interrupted
            > daemon_restarted
            interrupted
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            interrupted, run 2 starting
        "#]],
    );
}

#[test]
fn a_restart_that_finds_no_process_confirms_a_stop() {
    check(
        in_state(StateName::BetweenTurn).with_run().after(stop()),
        daemon_restarted(),
        expect![[r#"
            run.ended how={kind=lost} reason="the daemon restarted and the turn's work was gone" receipt={} run=run#1
            session.ended how=stopped
            between_turn -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_plan_and_a_changed_file_are_part_of_the_transcript() {
    story(
        in_state(StateName::Executing).with_run(),
        [planned(&["look", "leap"]), file_changed("src/lib.rs")],
        expect![[r#"
            > planned
            plan.updated entries=[{status=in_progress text=look}, {status=in_progress text=leap}]
            executing, run 1 ready
            > file_changed
            file.changed added=3 path=src/lib.rs
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn a_plan_and_its_lines_are_bounded() {
    let long = "x".repeat(NAME_CHARS_MAX + 1);
    let lines: Vec<&str> = (0..300).map(|_| long.as_str()).collect();
    let given = in_state(StateName::Executing).after(planned(&lines));
    let text = serde_json::to_value(&given.log.last().unwrap().event).unwrap();
    let entries = text["data"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 256);
    assert_eq!(entries[0]["text"].as_str().unwrap().len(), NAME_CHARS_MAX);
}

#[test]
fn a_failed_turn_has_the_agents_words() {
    check(
        in_state(StateName::Executing),
        Signal::TurnFinished { turn: None, outcome: TurnOutcome::Failed, reason: Some("no credit".into()) },
        expect![[r#"
            turn.finished outcome=failed reason="no credit" turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

fn killed(run: u128, cause: InterruptCause) -> Input {
    run_ended_as(run, RunEnd::Signalled { signal: 9 }, cause, Some("it did not heed TERM"))
}

fn with_receipt(run: u128) -> Input {
    let (how, cause, reason) = (RunEnd::Signalled { signal: 9 }, None, None);
    Signal::RunEnded { run: run_id(run), how, cause, reason, receipt: receipt() }.into()
}
