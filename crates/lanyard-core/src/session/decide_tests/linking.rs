//! Linking a session to a parent.

use super::*;

/// S1-25, S1-34, S1-B03: one event for the child, one for the parent.
#[test]
fn a_session_is_linked_to_a_parent() {
    check_linked(
        link(&numbered(2, &NewSession::default()), &given([]).session, &chain(0), 1),
        expect![[r#"
            child: session.linked parent=sess#1
            parent: session.child_linked child=sess#2
        "#]],
    );
}

/// S1-25: a third event for the parent it leaves.
#[test]
fn a_session_is_linked_to_another_parent() {
    let mut child = numbered(2, &NewSession::default());
    child.parent = Some(session_id(3));
    check_linked(
        link(&child, &given([]).session, &chain(0), 1),
        expect![[r#"
            child: session.linked parent=sess#1 previous=sess#3
            parent: session.child_linked child=sess#2
            former sess#3: session.child_unlinked child=sess#2
        "#]],
    );
}

/// S1-34: the parent learns which agent its child is.
#[test]
fn the_parent_learns_the_childs_agent() {
    let child = numbered(2, &NewSession { agent: Some("reviewer".into()), ..NewSession::default() });
    check_linked(
        link(&child, &given([]).session, &chain(0), 1),
        expect![[r#"
            child: session.linked parent=sess#1
            parent: session.child_linked agent=reviewer child=sess#2
        "#]],
    );
}

#[test]
fn a_session_is_not_its_own_parent() {
    let session = given([]).session;
    check_linked(
        link(&session, &session, &chain(0), 1),
        expect![[r#"
            refused link_cycle: sess#1 is the session itself or one of its descendants; choose a parent outside the session's own family below it
        "#]],
    );
}

#[test]
fn a_descendant_is_no_parent() {
    let child = numbered(100, &NewSession::default());
    check_linked(
        link(&child, &given([]).session, &chain(2), 1),
        expect![[r#"
            refused link_cycle: sess#1 is the session itself or one of its descendants; choose a parent outside the session's own family below it
        "#]],
    );
}

#[test]
fn the_same_parent_again_is_refused_and_nothing_changes() {
    let mut child = numbered(2, &NewSession::default());
    child.parent = Some(session_id(1));
    check_linked(
        link(&child, &given([]).session, &chain(0), 1),
        expect![[r#"
            refused already_linked: the session is already a child of sess#1; there is nothing to change
        "#]],
    );
}

/// S1-31, X-07: the whole family that moves must fit.
#[test]
fn a_family_that_would_be_too_deep_is_not_linked() {
    let child = numbered(2, &NewSession::default());
    assert!(link(&child, &given([]).session, &chain(0), 2).is_ok());
    assert!(link(&child, &given([]).session, &chain(1), 1).is_ok());
    check_linked(
        link(&child, &given([]).session, &chain(0), 3),
        expect![[r#"
            refused depth_exceeded: the family would be 4 deep and the limit is 3; delegate from a session higher up, or raise `limits.depth`
        "#]],
    );
    check_linked(
        link(&child, &given([]).session, &chain(2), 1),
        expect![[r#"
            refused depth_exceeded: the family would be 4 deep and the limit is 3; delegate from a session higher up, or raise `limits.depth`
        "#]],
    );
    check_linked(
        link(&child, &given([]).session, &chain(0), u32::MAX),
        expect![[r#"
            refused depth_exceeded: the family would be 4294967295 deep and the limit is 3; delegate from a session higher up, or raise `limits.depth`
        "#]],
    );
}

#[test]
fn nothing_is_linked_to_a_leaf() {
    let leaf = born(&NewSession { leaf: true, ..NewSession::default() }).session;
    check_linked(
        link(&numbered(2, &NewSession::default()), &leaf, &chain(0), 1),
        expect![[r#"
            refused leaf_cannot_delegate: parent sess#1 is a leaf and cannot delegate; create the session under the leaf's parent instead
        "#]],
    );
}

#[test]
fn nothing_is_linked_to_an_ended_parent() {
    let parent = in_state(StateName::Completed).session;
    check_linked(
        link(&numbered(2, &NewSession::default()), &parent, &chain(0), 1),
        expect![[r#"
            refused parent_ended: parent sess#1 has ended; choose a parent that is still alive
        "#]],
    );
}

#[test]
fn an_ended_session_is_not_linked() {
    let mut child = in_state(StateName::Completed).session;
    child.id = session_id(2);
    check_linked(
        link(&child, &given([]).session, &chain(0), 1),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
        "#]],
    );
}

#[test]
fn a_deleted_session_is_not_linked() {
    let mut child = given([deleted()]).session;
    child.id = session_id(2);
    check_linked(
        link(&child, &given([]).session, &chain(0), 1),
        expect![[r#"
            refused session_deleted: the session was deleted; create a new session
        "#]],
    );
}

/// DESIGN: policy is fixed at spawn and never widened by a child, not by way of a link either.
#[test]
fn a_session_is_not_linked_under_a_tighter_policy() {
    let tight = born(&NewSession { depth_limit: Some(2), ..NewSession::default() }).session;
    check_linked(
        link(&numbered(2, &NewSession::default()), &tight, &chain(0), 1),
        expect![[r#"
            refused policy_wider: the session's policy is wider than that of parent sess#1; policy is fixed at birth; create a new session under that parent
        "#]],
    );
    let forgetful = born(&NewSession { memory_mode: Some(MemoryMode::Off), ..NewSession::default() }).session;
    check_linked(
        link(&numbered(2, &NewSession::default()), &forgetful, &chain(0), 1),
        expect![[r#"
            refused policy_wider: the session's policy is wider than that of parent sess#1; policy is fixed at birth; create a new session under that parent
        "#]],
    );
}

/// S1-35, S0-B18: an orphan is adopted while it runs.
#[test]
fn a_running_session_can_be_linked() {
    let mut child = in_state(StateName::Executing).session;
    child.id = session_id(2);
    assert!(link(&child, &given([]).session, &chain(0), 1).is_ok());
}

#[test]
fn a_linked_session_knows_its_parent() {
    let given = given([]).event(ChangeEvent::Linked { parent: session_id(5), previous: None });
    let given = given.event(ChangeEvent::Linked { parent: session_id(6), previous: Some(session_id(5)) });
    assert_eq!(given.session.parent, Some(session_id(6)));
}

fn numbered(number: u128, new: &NewSession) -> Session {
    let mut session = born(new).session;
    session.id = session_id(number);
    session
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "reads like `check`")]
fn check_linked(linked: Result<LinkEvents, Refusal>, expect: Expect) {
    let text = match linked {
        Ok((child, parent, former)) => {
            let former = former.map(|(id, event)| format!("former {id}: {}\n", event_line(&event)));
            let (child, parent) = (event_line(&child), event_line(&parent));
            format!("child: {child}\nparent: {parent}\n{}", former.unwrap_or_default())
        }
        Err(refusal) => refused(&refusal),
    };
    expect.assert_eq(&short_ids(&text));
}
