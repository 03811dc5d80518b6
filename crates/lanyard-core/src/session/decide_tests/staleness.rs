//! Time without activity, exactly at the limits.

use super::*;

/// S1-15, X-03: exactly at the limit, and not a millisecond before it.
/// S1-04.
#[test]
fn a_session_between_turns_goes_idle_after_an_hour() {
    check(
        in_state(StateName::BetweenTurn),
        quiet(HOUR - 1),
        expect![[r#"
            between_turn
        "#]],
    );
    check(
        in_state(StateName::BetweenTurn),
        quiet(HOUR),
        expect![[r#"
            session.idle quiet_ms=3600000
            between_turn -> idle
        "#]],
    );
}

#[test]
fn an_idle_session_goes_stale_after_two_days() {
    check(
        in_state(StateName::Idle),
        quiet(48 * HOUR - 1),
        expect![[r#"
            idle
        "#]],
    );
    check(
        in_state(StateName::Idle),
        quiet(48 * HOUR),
        expect![[r#"
            session.stale quiet_ms=172800000
            idle -> stale
        "#]],
    );
}

/// S1-15: without passing through idle, as after a daemon that was off for days.
#[test]
fn a_compacted_session_goes_idle_or_stale() {
    check(
        in_state(StateName::Compacted),
        quiet(HOUR - 1),
        expect![[r#"
            compacted
        "#]],
    );
    check(
        in_state(StateName::Compacted),
        quiet(HOUR),
        expect![[r#"
            session.idle quiet_ms=3600000
            compacted -> idle
        "#]],
    );
    check(
        in_state(StateName::Compacted),
        quiet(48 * HOUR - 1),
        expect![[r#"
            session.idle quiet_ms=172799999
            compacted -> idle
        "#]],
    );
    check(
        in_state(StateName::Compacted),
        quiet(48 * HOUR),
        expect![[r#"
            session.stale quiet_ms=172800000
            compacted -> stale
        "#]],
    );
}

#[test]
fn an_interrupted_session_goes_idle_or_stale() {
    check(
        in_state(StateName::Interrupted),
        quiet(HOUR - 1),
        expect![[r#"
            interrupted
        "#]],
    );
    check(
        in_state(StateName::Interrupted),
        quiet(HOUR),
        expect![[r#"
            session.idle quiet_ms=3600000
            interrupted -> idle
        "#]],
    );
    check(
        in_state(StateName::Interrupted),
        quiet(48 * HOUR - 1),
        expect![[r#"
            session.idle quiet_ms=172799999
            interrupted -> idle
        "#]],
    );
    check(
        in_state(StateName::Interrupted),
        quiet(48 * HOUR),
        expect![[r#"
            session.stale quiet_ms=172800000
            interrupted -> stale
        "#]],
    );
}

/// DESIGN: `between_turn` goes stale by way of `idle`.
#[test]
fn a_session_between_turns_goes_idle_first_however_long_it_was_quiet() {
    story(
        in_state(StateName::BetweenTurn),
        [quiet(200 * HOUR), quiet(200 * HOUR), quiet(200 * HOUR)],
        expect![[r#"
            > quiet
            session.idle quiet_ms=720000000
            between_turn -> idle
            > quiet
            session.stale quiet_ms=720000000
            idle -> stale
            > quiet
            stale
        "#]],
    );
}

/// S0-B13: a turn that is quiet is not at rest; and what never began cannot go stale.
#[test]
fn neither_running_nor_new_nor_ended_sessions_go_stale() {
    for state in StateName::ALL {
        let rests = matches!(
            state,
            StateName::BetweenTurn | StateName::Compacted | StateName::Interrupted | StateName::Idle
        );
        let answer = in_state(state).put(&quiet(1_000 * HOUR));
        assert_eq!(answer.events.len(), usize::from(rests), "{state}");
    }
}

/// S0-B15, X-03: one table of numbers, all of them policy.
#[test]
fn the_limits_can_be_chosen() {
    let hasty = |given: Given| {
        given.rules(|rules| {
            rules.staleness = Staleness { idle_after_ms: 10, stale_after_ms: 20, ..Staleness::default() };
        })
    };
    check(
        hasty(in_state(StateName::BetweenTurn)),
        quiet(10),
        expect![[r#"
            session.idle quiet_ms=10
            between_turn -> idle
        "#]],
    );
    check(
        hasty(in_state(StateName::Idle)),
        quiet(20),
        expect![[r#"
            session.stale quiet_ms=20
            idle -> stale
        "#]],
    );
    check(
        hasty(in_state(StateName::Idle)),
        quiet(19),
        expect![[r#"
            idle
        "#]],
    );
}

/// S0-B12, S1-B10: going idle is no activity, so that the time until stale counts from the last real one.
#[test]
fn going_idle_is_no_activity() {
    let given = in_state(StateName::BetweenTurn);
    let before = given.session.last_activity_at;
    let given = given.later(HOUR).after_each([quiet(HOUR), quiet(48 * HOUR)]);
    assert_eq!(given.session.state.name(), StateName::Stale);
    assert_eq!(given.session.last_activity_at, before);
}

#[test]
fn quiet_for_no_time_means_nothing() {
    check(
        in_state(StateName::BetweenTurn),
        quiet(0),
        expect![[r#"
            between_turn
        "#]],
    );
    check(
        in_state(StateName::BetweenTurn),
        quiet(10 * MINUTE),
        expect![[r#"
            between_turn
        "#]],
    );
}
