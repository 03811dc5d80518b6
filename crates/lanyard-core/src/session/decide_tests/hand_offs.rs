//! Handing a session to another agent, worker or owner.

use super::*;

/// S1-26, S0-63.
#[test]
fn a_session_is_handed_to_another_agent() {
    check(
        in_state(StateName::BetweenTurn),
        migrate_to_agent("reviewer"),
        expect![[r#"
            session.migrated from={owner=ann} reason="better at it" to={agent=reviewer owner=ann}
            between_turn
        "#]],
    );
}

#[test]
fn a_session_is_handed_to_another_worker() {
    let worker = Some(WorkerId::from_u128(7));
    let migrate =
        Command::Migrate { agent: None, worker, owner: None, reason: "redeployed".into(), continuity: None };
    check(
        in_state(StateName::Interrupted),
        migrate,
        expect![[r#"
            session.migrated from={owner=ann} reason=redeployed to={owner=ann worker=worker#7}
            interrupted
        "#]],
    );
}

/// The hands that do the work cannot change under it; who answers for it can.
#[test]
fn a_running_session_changes_its_owner_only() {
    check(
        in_state(StateName::Executing),
        migrate_to_owner("bob"),
        expect![[r#"
            session.migrated from={owner=ann} reason="end of shift" to={owner=bob}
            executing
        "#]],
    );
    check(
        in_state(StateName::Executing),
        migrate_to_agent("reviewer"),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=migrate state=executing
            executing
        "#]],
    );
}

#[test]
fn a_running_session_changes_no_owner_together_with_its_agent() {
    let migrate = Command::Migrate {
        agent: Some("reviewer".into()),
        worker: None,
        owner: Some("bob".into()),
        reason: "both".into(),
        continuity: None,
    };
    check(
        in_state(StateName::Executing),
        migrate,
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=migrate state=executing
            executing
        "#]],
    );
}

/// S0-63: Coordinator to Coordinator.
#[test]
fn an_agent_may_hand_off_to_itself() {
    let given = born(&NewSession { agent: Some("coordinator".into()), ..NewSession::default() });
    check(
        given,
        migrate_to_agent("coordinator"),
        expect![[r#"
            session.migrated from={agent=coordinator owner=ann} reason="better at it" to={agent=coordinator owner=ann}
            beginning
        "#]],
    );
}

/// S0-63: ordered entries of when, from, to and why.
#[test]
fn hand_offs_are_kept_in_order() {
    let given = given([]).after_each([migrate_to_agent("a"), migrate_to_agent("b"), migrate_to_owner("bob")]);
    let lines: Vec<String> = given
        .session
        .handoffs
        .iter()
        .map(|h| {
            format!(
                "{} {:?}/{} -> {:?}/{}: {}",
                h.at, h.from.agent, h.from.owner, h.to.agent, h.to.owner, h.reason
            )
        })
        .collect();
    expect![[r#"
        2026-11-15T08:00:01.000Z None/ann -> Some("a")/ann: better at it
        2026-11-15T08:00:02.000Z Some("a")/ann -> Some("b")/ann: better at it
        2026-11-15T08:00:03.000Z Some("b")/ann -> Some("b")/bob: end of shift"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_hand_off_names_someone() {
    let migrate = Command::Migrate {
        agent: None,
        worker: None,
        owner: None,
        reason: "why not".into(),
        continuity: None,
    };
    check(
        given([]),
        migrate,
        expect![[r#"
            refused nothing_to_migrate: nothing was named to hand over to; name an agent, a worker or an owner
            beginning
        "#]],
    );
}

#[test]
fn a_hand_off_says_why() {
    let migrate = Command::Migrate {
        agent: Some("a".into()),
        worker: None,
        owner: None,
        reason: String::new(),
        continuity: None,
    };
    check(
        given([]),
        migrate,
        expect![[r#"
            refused field_empty: reason is empty; give at least one visible character
            beginning
        "#]],
    );
}

#[test]
fn nobody_is_not_an_owner() {
    check(
        given([]),
        migrate_to_owner(" "),
        expect![[r#"
            refused field_empty: owner is empty; give at least one visible character
            beginning
        "#]],
    );
}

#[test]
fn an_ended_session_is_not_handed_on() {
    check(
        in_state(StateName::Completed),
        migrate_to_owner("bob"),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=migrate state=completed
            completed
        "#]],
    );
}
