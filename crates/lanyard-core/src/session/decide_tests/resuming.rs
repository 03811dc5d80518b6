//! Resuming: the agent is wanted, without a prompt yet.

use super::*;

/// S4-21, S3-05: it goes on with the session that is there.
#[test]
fn a_session_without_a_process_wants_one() {
    check(
        in_state(StateName::BetweenTurn),
        resume(),
        expect![[r#"
        "#]],
    );
}

#[test]
fn the_ways_to_go_on_may_be_named() {
    check(
        in_state(StateName::Interrupted),
        Command::Resume { ways: vec![ResumeWay::Native, ResumeWay::Preamble] },
        expect![[r#"
        "#]],
    );
}

#[test]
fn a_session_with_a_process_needs_none() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        resume(),
        expect![[r#"
        "#]],
    );
}

#[test]
fn a_run_that_is_over_is_followed_by_another() {
    story(
        in_state(StateName::BetweenTurn).with_run().event(run_over(1)),
        [resume(), run_started(2), Signal::RunReady(Box::new(continued(2))).into()],
        expect![[r#"
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
        "#]],
    );
}

#[test]
fn an_archived_session_is_not_resumed() {
    check(
        given([archived()]),
        resume(),
        expect![[r#"
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
        "#]],
    );
}

fn continued(run: u128) -> RunReady {
    RunReady { continuity: Some(Continuity::Native), history: Some(12), ..greeting(run) }
}
