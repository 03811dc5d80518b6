//! Work that goes in circles.

use super::*;

/// S1-36: the planner's issues.
#[test]
fn the_same_issue_three_times_in_a_row_is_a_stall_and_is_said_once() {
    story(
        in_state(StateName::Executing),
        [
            issue_seen("i", Some(0.5)),
            issue_seen("i", Some(0.5)),
            issue_seen("i", None),
            issue_seen("i", None),
        ],
        expect![[r#"
            > issue_seen
            context.issue_seen hash=i score=0.5
            executing
            > issue_seen
            context.issue_seen hash=i score=0.5
            executing
            > issue_seen
            context.issue_seen hash=i
            context.stalled hash=i kind=issue repeats=3
            executing
            > issue_seen
            context.issue_seen hash=i
            executing
        "#]],
    );
}

/// S1-36: the validator's errors.
#[test]
fn the_same_error_three_times_in_a_row_is_a_stall() {
    story(
        in_state(StateName::Executing),
        [error_seen("e"), error_seen("e"), error_seen("e")],
        expect![[r#"
            > error_seen
            context.error_seen hash=e
            executing
            > error_seen
            context.error_seen hash=e
            executing
            > error_seen
            context.error_seen hash=e
            context.stalled hash=e kind=error repeats=3
            executing
        "#]],
    );
}

#[test]
fn something_else_in_between_is_progress() {
    let given =
        in_state(StateName::Executing).after_each([error_seen("e"), error_seen("e"), error_seen("f")]);
    check(
        given,
        error_seen("e"),
        expect![[r#"
            context.error_seen hash=e
            executing
        "#]],
    );
}

#[test]
fn issues_and_errors_are_counted_apart() {
    let given =
        in_state(StateName::Executing).after_each([error_seen("x"), error_seen("x"), issue_seen("x", None)]);
    check(
        given,
        issue_seen("x", None),
        expect![[r#"
            context.issue_seen hash=x
            executing
        "#]],
    );
}

#[test]
fn a_session_can_stall_again() {
    let errors = ["e", "e", "e", "f", "e", "e", "e"].map(error_seen);
    let given = in_state(StateName::Executing).after_each(errors);
    assert_eq!(given.session.stall.stalls, 2);
}

#[test]
fn the_number_can_be_chosen_beyond_what_the_history_holds() {
    let given = in_state(StateName::Executing).rules(|rules| rules.limits.stall_repeats = 40);
    let given = given.after_each((0..60).map(|_| error_seen("e")));
    assert_eq!((given.session.stall.stalls, given.session.stall.error_repeats), (1, 60));
}

/// S1-36: score history, last score last.
#[test]
fn scores_are_kept_in_order() {
    let given = given([]).after_each([
        issue_seen("a", Some(0.25)),
        issue_seen("b", None),
        issue_seen("c", Some(0.75)),
    ]);
    assert_eq!(given.session.stall.scores, [0.25, 0.75]);
    assert_eq!(given.session.stall.issues, ["a", "b", "c"]);
}
