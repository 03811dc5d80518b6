//! Runs: one incarnation of the agent after the other, and when a session lets go of one.

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
            turn.finished outcome=completed review=true turn=turn#1
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
            turn.finished outcome=completed review=true turn=turn#1
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
            do EndRun { answered: false }
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
            do EndRun { answered: false }
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
            do EndRun { answered: false }
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
            do EndRun { answered: false }
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
            do EndRun { answered: false }
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
            turn.finished outcome=completed review=true turn=turn#1
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
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1
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
            turn.finished outcome=failed reason="no credit" review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}
