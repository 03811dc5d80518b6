//! Archiving, starting over, deleting.

use super::*;

/// S3-22: archiving is a flag.
#[test]
fn a_session_at_rest_is_archived() {
    check(
        in_state(StateName::BetweenTurn),
        archive(),
        expect![[r#"
            session.archived
            between_turn, archived
        "#]],
    );
}

#[test]
fn an_ended_session_is_archived() {
    check(
        in_state(StateName::Completed),
        archive(),
        expect![[r#"
            session.archived
            completed, archived
        "#]],
    );
}

/// S3-B14.
#[test]
fn a_running_session_is_not_archived() {
    check(
        in_state(StateName::Executing),
        archive(),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=archive state=executing
            executing
        "#]],
    );
}

#[test]
fn archiving_twice_changes_nothing() {
    check(
        given([archived()]),
        archive(),
        expect![[r#"
            beginning, archived
        "#]],
    );
}

#[test]
fn an_archived_session_comes_back() {
    check(
        given([archived()]),
        unarchive(),
        expect![[r#"
            session.unarchived
            beginning
        "#]],
    );
}

#[test]
fn what_is_not_archived_does_not_come_back() {
    check(
        given([]),
        unarchive(),
        expect![[r#"
            refused session_not_archived: the session is not archived; there is nothing to undo
            command.refused code=session_not_archived command=unarchive state=beginning
            beginning
        "#]],
    );
}

/// S3-24: the conversation starts over, the log goes on.
#[test]
fn a_reset_starts_over() {
    check(
        in_state(StateName::Stale),
        reset(),
        expect![[r#"
            session.reset
            stale -> beginning
        "#]],
    );
}

#[test]
fn a_reset_says_why() {
    check(
        in_state(StateName::BetweenTurn),
        Command::Reset { reason: Some("lost".into()) },
        expect![[r#"
            session.reset reason=lost
            between_turn -> beginning
        "#]],
    );
}

#[test]
fn a_running_session_is_not_reset() {
    check(
        in_state(StateName::Executing),
        reset(),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=reset state=executing
            executing
        "#]],
    );
}

#[test]
fn an_ended_session_is_not_reset() {
    check(
        in_state(StateName::Stopped),
        reset(),
        expect![[r#"
            refused session_ended: the session was stopped; resume it with `lanyard resume sess#1`, or fork it with `lanyard fork`
            command.refused code=session_ended command=reset state=stopped
            stopped, stop 1
        "#]],
    );
}

/// S1-18: after a reset the next turn opens a new conversation, with all anchors.
#[test]
fn the_first_turn_after_a_reset_is_the_first_of_a_conversation() {
    let given = in_state(StateName::BetweenTurn).after_each([set_anchors(&["a"]), reset()]);
    check(
        given,
        start_turn(2),
        expect![[r#"
            turn.started anchors=[a] memory={mode=session_only} opening={kind=new} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            beginning -> executing
        "#]],
    );
}

#[test]
fn a_session_at_rest_is_deleted() {
    check(
        in_state(StateName::Idle),
        delete(0),
        expect![[r#"
            session.deleted
            idle, deleted
        "#]],
    );
}

#[test]
fn an_ended_session_is_deleted() {
    check(
        in_state(StateName::Completed),
        delete(0),
        expect![[r#"
            session.deleted
            completed, deleted
        "#]],
    );
}

#[test]
fn a_running_session_is_not_deleted() {
    check(
        in_state(StateName::Executing),
        delete(0),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=delete state=executing
            executing
        "#]],
    );
}

/// S1-35: nobody is orphaned by a deletion.
#[test]
fn a_session_with_live_children_is_not_deleted() {
    check(
        in_state(StateName::Completed),
        delete(2),
        expect![[r#"
            refused has_children: 2 live sessions are its children; link the children to another parent, or end or delete them first
            command.refused code=has_children command=delete state=completed
            completed
        "#]],
    );
}

#[test]
fn a_deleted_session_is_deleted_once() {
    check(
        given([deleted()]),
        delete(0),
        expect![[r#"
            refused session_deleted: the session was deleted; create a new session
            command.refused code=session_deleted command=delete state=beginning
            beginning, deleted
        "#]],
    );
}

#[test]
fn what_is_seen_of_a_deleted_session_is_unexpected() {
    check(
        given([deleted()]),
        tool_called("c", "bash"),
        expect![[r#"
            signal.unexpected signal=tool_called state=beginning
            beginning, deleted
        "#]],
    );
}

#[test]
fn a_deleted_session_neither_rests_nor_restarts() {
    let deleted = || in_state(StateName::BetweenTurn).event(stop_at(StopLevel::Graceful)).event(deleted());
    check(
        deleted(),
        quiet(HOUR),
        expect![[r#"
            between_turn, stop 1, deleted
        "#]],
    );
    check(
        deleted(),
        daemon_restarted(),
        expect![[r#"
            between_turn, stop 1, deleted
        "#]],
    );
    check(
        deleted(),
        work_ended(),
        expect![[r#"
            between_turn, stop 1, deleted
        "#]],
    );
}
