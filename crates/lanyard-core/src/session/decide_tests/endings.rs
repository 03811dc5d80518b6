//! The end of a session, and what comes after it.

use super::*;

/// S0-15, S0-T7.
#[test]
fn a_session_at_rest_completes() {
    check(
        in_state(StateName::BetweenTurn),
        complete(),
        expect![[r#"
            session.ended how=completed
            between_turn -> completed
        "#]],
    );
}

#[test]
fn a_session_at_rest_fails() {
    check(
        in_state(StateName::Interrupted),
        fail(),
        expect![[r#"
            session.ended how=failed
            interrupted -> failed
        "#]],
    );
}

/// S1-30: created, executing, completed; the turn is closed on the way.
#[test]
fn completing_ends_the_running_turn_first() {
    check(
        in_state(StateName::Executing),
        complete(),
        expect![[r#"
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=2 reason=turn_end
            session.ended how=completed
            executing -> between_turn -> completed
        "#]],
    );
}

#[test]
fn failing_ends_the_running_turn_first() {
    check(
        in_state(StateName::Executing),
        fail(),
        expect![[r#"
            turn.finished outcome=failed review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            session.ended how=failed
            executing -> between_turn -> failed
        "#]],
    );
}

#[test]
fn an_end_says_why() {
    let given = given([]).after(Command::Complete { reason: Some("all done".into()) });
    assert_eq!(given.session.end_reason.as_deref(), Some("all done"));
}

#[test]
fn a_session_ends_once() {
    check(
        in_state(StateName::Completed),
        fail(),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=fail state=completed
            completed
        "#]],
    );
}

#[test]
fn the_reason_of_an_end_is_bounded() {
    let reason = Some("é".repeat(NAME_CHARS_MAX + 1));
    check(
        given([]),
        Command::Complete { reason },
        expect![[r#"
            refused field_too_long: reason is longer than 1000 characters; shorten it; put long content into a file the agent can read
            beginning
        "#]],
    );
}

#[test]
fn what_is_said_after_the_end_is_unexpected() {
    check(
        in_state(StateName::Completed),
        said("one more thing"),
        expect![[r#"
            signal.unexpected signal=said state=completed
            completed
        "#]],
    );
}

/// S0-B06, S0-42: a call after the end changes nothing but is on record.
#[test]
fn a_tool_call_after_the_end_is_unexpected() {
    check(
        in_state(StateName::Stopped),
        tool_called("c", "bash"),
        expect![[r#"
            signal.unexpected signal=tool_called state=stopped
            stopped, stop 1
        "#]],
    );
}

#[test]
fn work_that_ends_after_the_end_says_nothing_new() {
    check(
        in_state(StateName::Completed),
        work_ended(),
        expect![[r#"
            completed
        "#]],
    );
}
