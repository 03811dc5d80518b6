//! Resuming: the agent is wanted, without a prompt yet.

use super::*;

/// S4-21, S3-05: it goes on with the session that is there.
#[test]
fn a_session_without_a_process_wants_one() {
    check(
        in_state(StateName::BetweenTurn),
        resume(),
        expect![[r#"
            run.wanted
            do Revive { ways: [] }
            between_turn
        "#]],
    );
}

#[test]
fn the_ways_to_go_on_may_be_named() {
    check(
        in_state(StateName::Interrupted),
        Command::Resume { ways: vec![ResumeWay::Native, ResumeWay::Preamble], per_turn: false },
        expect![[r#"
            run.wanted ways=[native, preamble]
            do Revive { ways: [Native, Preamble] }
            interrupted
        "#]],
    );
}

#[test]
fn a_session_with_a_process_needs_none() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        resume(),
        expect![[r#"
            between_turn, run 1 ready
        "#]],
    );
}

#[test]
fn a_run_that_is_over_is_followed_by_another() {
    story(
        in_state(StateName::BetweenTurn).with_run().event(run_over(1)),
        [resume(), run_started(2), Signal::RunReady(Box::new(continued(2))).into()],
        expect![[r#"
            > resume
            run.wanted
            do Revive { ways: [] }
            between_turn
            > run_started
            run.started agent=executor driver=acp number=2 run=run#2
            between_turn, run 2 starting
            > run_ready
            run.ready capabilities=[cancel, load, permissions] continuity=native history=12 info={name=scripted protocol="acp 1" version=1.2.3} native=thread-7 run=run#2
            between_turn, run 2 ready
        "#]],
    );
}

#[test]
fn how_the_conversation_came_over_is_in_the_record() {
    let given = in_state(StateName::BetweenTurn).with_run().after_each([run_ended(1, None), run_started(2)]);
    let given = given.after(Signal::RunReady(Box::new(continued(2))));
    let run = given.session.run.unwrap();
    assert_eq!((run.number, run.continuity), (2, Some(Continuity::Native)));
}

/// S3-14: the agent is there already.
#[test]
fn a_busy_session_is_not_resumed() {
    check(
        in_state(StateName::Executing),
        resume(),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=resume state=executing
            executing
        "#]],
    );
}

/// S0-15.
#[test]
fn an_ended_session_is_not_resumed() {
    check(
        in_state(StateName::Completed),
        resume(),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=resume state=completed
            completed
        "#]],
    );
}

#[test]
fn an_archived_session_is_not_resumed() {
    check(
        given([archived()]),
        resume(),
        expect![[r#"
            refused session_archived: the session is archived; bring it back with `lanyard archive --undo`
            command.refused code=session_archived command=resume state=beginning
            beginning, archived
        "#]],
    );
}

/// A cancel or a stop cannot be undone by a racing resume.
#[test]
fn a_session_that_is_being_stopped_is_not_resumed() {
    check(
        given([stop_at(StopLevel::Graceful)]),
        resume(),
        expect![[r#"
            refused session_stopping: a stop is pending; withdraw the stop with `lanyard unstop`, or wait until it is confirmed
            command.refused code=session_stopping command=resume state=beginning
            beginning, stop 1
        "#]],
    );
}

/// S3-B09.
#[test]
fn a_deleted_session_is_not_resumed() {
    check(
        given([deleted()]),
        resume(),
        expect![[r#"
            refused session_deleted: the session was deleted; create a new session
            command.refused code=session_deleted command=resume state=beginning
            beginning, deleted
        "#]],
    );
}

fn continued(run: u128) -> RunReady {
    RunReady { continuity: Some(Continuity::Native), history: Some(12), ..greeting(run) }
}
