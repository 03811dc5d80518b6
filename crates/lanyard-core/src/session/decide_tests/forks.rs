//! Sessions that go on from a place in another's log.

use super::*;

/// S2-B06: a new session that goes on from another's log, with its own life.
#[test]
fn a_fork_goes_on_from_the_end_of_the_log() {
    let source = NewSession {
        title: Some("Fix".into()),
        agent: Some("executor".into()),
        workspace: Some("/a".into()),
        plan: Some("p".into()),
        phase: Some("execute".into()),
        purpose: Some("fix".into()),
        aliases: texts(&["chat-7"]),
        anchors: texts(&["never push"]),
        memory_mode: Some(MemoryMode::Off),
        depth_limit: Some(2),
        ..NewSession::default()
    };
    let source = born(&source).event(started(1)).session;
    check_made(
        fork(&source, None, None).map(Event::from),
        expect![[r#"
            session.created agent=executor anchors=["never push"] driven_by=lanyard forked_from={seq=2 session=sess#1} owner=ann phase=execute plan=p policy={depth_limit=2 leaf=false memory_mode=off} purpose=fork source=api state=custom title=Fix workspace=/a
        "#]],
    );
}

#[test]
fn a_fork_goes_on_from_a_place_in_the_log() {
    check_made(
        fork(&in_state(StateName::Stale).session, Some(2), Some("again".into())).map(Event::from),
        expect![[r#"
            session.created driven_by=nobody forked_from={seq=2 session=sess#1} owner=ann policy={depth_limit=3 leaf=false memory_mode=session_only} purpose=fork source=api state=custom title=again
        "#]],
    );
}

/// The way on from an ended session.
#[test]
fn an_ended_session_is_forked() {
    assert!(fork(&in_state(StateName::Stopped).session, None, None).is_ok());
}

#[test]
fn a_fork_cannot_run_ahead_of_the_log() {
    let source = given([]).session;
    assert!(fork(&source, Some(1), None).is_ok());
    check_made(
        fork(&source, Some(2), None).map(Event::from),
        expect![[r#"
            refused fork_ahead_of_log: the log ends at 1; fork at a position that exists, or leave the position out
        "#]],
    );
}

#[test]
fn positions_begin_at_one() {
    check_made(
        fork(&given([]).session, Some(0), None).map(Event::from),
        expect![[r#"
            refused fork_ahead_of_log: the log ends at 1; fork at a position that exists, or leave the position out
        "#]],
    );
}

#[test]
fn the_title_of_a_fork_is_checked() {
    check_made(
        fork(&given([]).session, None, Some(String::new())).map(Event::from),
        expect![[r#"
            refused field_empty: title is empty; give at least one visible character
        "#]],
    );
}

#[test]
fn a_deleted_session_is_not_forked() {
    check_made(
        fork(&given([deleted()]).session, None, None).map(Event::from),
        expect![[r#"
            refused session_deleted: the session was deleted; create a new session
        "#]],
    );
}

/// A fork of a child is a root: it was not spawned by anyone.
#[test]
fn a_fork_of_a_child_has_no_parent() {
    let child = given_created(created_under(&given([]).session, &NewSession::default())).session;
    assert!(child.parent.is_some());
    let forked = given_created(fork(&child, None, None).unwrap().into()).session;
    assert_eq!((forked.parent, forked.forked_from.unwrap().session), (None, child.id));
}
