//! Snapshots of the workspace: real ones, and why there is none.

use super::*;

/// S1-B06: every turn boundary and every stop has a real snapshot.
#[test]
fn a_snapshot_is_named_and_counted() {
    story(
        in_state(StateName::Executing),
        [snapshot_taken("turn-2"), snapshot_taken("turn-3")],
        expect![[r#"
            > snapshot_taken
            context.snapshot commit=9fceb02 files_changed=2 name=turn-2 position=2 reason=turn_start
            executing
            > snapshot_taken
            context.snapshot commit=9fceb02 files_changed=2 name=turn-3 position=3 reason=turn_start
            executing
        "#]],
    );
}

#[test]
fn snapshots_are_counted_in_the_record() {
    let given =
        in_state(StateName::Executing).after_each([snapshot_taken("turn-2"), snapshot_taken("stop-9")]);
    assert_eq!(given.session.snapshots, 2);
}

/// S1-B06: a stop is worth a place to come back to, also when it was quicker.
#[test]
fn a_snapshot_of_an_ended_session_is_taken() {
    story(
        in_state(StateName::Stopped),
        [stop_snapshot_taken(), snapshot_skipped("no_git")],
        expect![[r#"
            > snapshot_taken
            context.snapshot commit=9fceb02 files_changed=0 name=stop-3 position=3 reason=stop
            stopped, stop 1
            > snapshot_skipped
            context.snapshot_skipped code=no_git why="the workspace cannot be kept"
            stopped, stop 1
        "#]],
    );
}

#[test]
fn a_deleted_session_has_no_snapshots() {
    story(
        given([deleted()]),
        [snapshot_taken("turn-2"), snapshot_skipped("no_git")],
        expect![[r#"
            > snapshot_taken
            beginning, deleted
            > snapshot_skipped
            beginning, deleted
        "#]],
    );
}

/// Outside git it says so, and does not say it with every turn.
#[test]
fn a_skipped_snapshot_is_said_once_per_code() {
    story(
        in_state(StateName::Executing),
        [
            snapshot_skipped("no_git"),
            snapshot_skipped("no_git"),
            snapshot_skipped("too_large"),
            snapshot_skipped("too_large"),
        ],
        expect![[r#"
            > snapshot_skipped
            context.snapshot_skipped code=no_git why="the workspace cannot be kept"
            executing
            > snapshot_skipped
            executing
            > snapshot_skipped
            context.snapshot_skipped code=too_large why="the workspace cannot be kept"
            executing
            > snapshot_skipped
            executing
        "#]],
    );
}

#[test]
fn a_skipped_snapshot_after_one_that_was_taken_is_said_again() {
    story(
        in_state(StateName::Executing),
        [snapshot_skipped("no_git"), snapshot_taken("turn-2"), snapshot_skipped("no_git")],
        expect![[r#"
            > snapshot_skipped
            context.snapshot_skipped code=no_git why="the workspace cannot be kept"
            executing
            > snapshot_taken
            context.snapshot commit=9fceb02 files_changed=2 name=turn-2 position=3 reason=turn_start
            executing
            > snapshot_skipped
            context.snapshot_skipped code=no_git why="the workspace cannot be kept"
            executing
        "#]],
    );
}

#[test]
fn a_code_too_long_to_keep_is_said_once_too() {
    let code = "x".repeat(NAME_CHARS_MAX + 1);
    let given = in_state(StateName::Executing).after_each([snapshot_skipped(&code), snapshot_skipped(&code)]);
    let skipped = given.log.iter().filter(|envelope| event_line(&envelope.event).contains("skipped")).count();
    assert_eq!(skipped, 1);
}

/// S0-B13: what Lanyard does by itself changes no state.
#[test]
fn a_snapshot_changes_no_state() {
    check(
        in_state(StateName::Idle),
        snapshot_taken("asked-4"),
        expect![[r#"
            context.snapshot commit=9fceb02 files_changed=2 name=asked-4 position=4 reason=turn_start
            idle
        "#]],
    );
}

fn stop_snapshot_taken() -> Input {
    let (name, commit, reason) = ("stop-3".into(), "9fceb02".into(), SnapshotReason::Stop);
    Signal::SnapshotTaken { name, commit, reason, files_changed: 0 }.into()
}
