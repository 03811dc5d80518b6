//! How a worker is judged and what is done about it (S4-22). Silence alone is never a fault.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use expect_test::expect;

use crate::task::health::{Condition, HealthRules, Remedy, Vitals, judge, remedy};
use crate::task::record::Remedies;
use crate::task::testing::{aligned, at};

const MINUTE: u64 = 60_000;

fn rules() -> HealthRules {
    HealthRules::default()
}

fn executing(quiet_ms: u64) -> Vitals {
    Vitals { executing: true, quiet_ms, ..Vitals::default() }
}

fn between_turns(quiet_ms: u64) -> Vitals {
    Vitals { quiet_ms, ..Vitals::default() }
}

#[test]
fn a_worker_is_judged_by_what_is_known_of_it() {
    let stuck = executing(30 * MINUTE);
    let table = [
        ("executing, 29 minutes quiet", executing(30 * MINUTE - 1)),
        ("executing, 30 minutes quiet", stuck),
        ("executing, a call runs", Vitals { open_calls: 1, ..executing(48 * 60 * MINUTE) }),
        ("executing, a person is asked", Vitals { asks: true, ..stuck }),
        ("between turns, 9 minutes quiet", between_turns(10 * MINUTE - 1)),
        ("between turns, 10 minutes quiet", between_turns(10 * MINUTE)),
        ("the same call 7 times", Vitals { same_calls: 7, ..executing(0) }),
        ("the same call 8 times", Vitals { same_calls: 8, ..executing(0) }),
        ("7 errors", Vitals { errors: 7, ..executing(0) }),
        ("8 errors", Vitals { errors: 8, ..executing(0) }),
        ("loops into errors", Vitals { errors: 8, same_calls: 8, ..stuck }),
        ("asked to wait, and stuck", Vitals { rate_limited: true, errors: 9, ..stuck }),
    ];
    let rows =
        table.map(|(name, vitals)| vec![name.to_owned(), judge(&vitals, &rules()).as_str().to_owned()]);
    expect![[r#"
        executing, 29 minutes quiet      well
        executing, 30 minutes quiet      stuck
        executing, a call runs           well
        executing, a person is asked     well
        between turns, 9 minutes quiet   well
        between turns, 10 minutes quiet  idle
        the same call 7 times            well
        the same call 8 times            looping
        7 errors                         well
        8 errors                         error_streak
        loops into errors                looping
        asked to wait, and stuck         rate_limited
    "#]]
    .assert_eq(&aligned(&rows));
}

/// Nudges, then a new run, then a person; who only waits for work is not started again.
#[test]
fn remedies_grow_stronger_and_end_with_a_person() {
    let conditions = [
        Condition::Well,
        Condition::Idle,
        Condition::Stuck,
        Condition::Looping,
        Condition::ErrorStreak,
        Condition::RateLimited,
    ];
    let done = |nudges, restarts, escalations| Remedies { nudges, restarts, escalations, last_at: None };
    let mut rows = vec![vec!["DONE SO FAR".to_owned()]];
    rows[0].extend(conditions.map(|condition| condition.as_str().to_owned()));
    for (name, done) in [
        ("nothing", done(0, 0, 0)),
        ("1 nudge", done(1, 0, 0)),
        ("2 nudges", done(2, 0, 0)),
        ("2 nudges, 1 restart", done(2, 1, 0)),
        ("2 nudges, 2 restarts", done(2, 2, 0)),
        ("all, and a person was asked", done(2, 2, 1)),
    ] {
        let mut row = vec![name.to_owned()];
        row.extend(conditions.map(|condition| {
            let found = remedy(condition, &executing(0), &done, at(0), &rules());
            found.map_or("·".to_owned(), |remedy| format!("{remedy:?}").to_lowercase())
        }));
        rows.push(row);
    }
    expect![[r#"
        DONE SO FAR                  well  idle      stuck     looping   error_streak  rate_limited
        nothing                      ·     nudge     nudge     nudge     nudge         ·
        1 nudge                      ·     nudge     nudge     nudge     nudge         ·
        2 nudges                     ·     escalate  restart   restart   restart       ·
        2 nudges, 1 restart          ·     escalate  restart   restart   restart       ·
        2 nudges, 2 restarts         ·     escalate  escalate  escalate  escalate      ·
        all, and a person was asked  ·     ·         ·         ·         ·             ·
    "#]]
    .assert_eq(&aligned(&rows));
}

#[test]
fn a_fresh_word_or_a_call_that_runs_suspends_all_remedies() {
    let patience = rules().patience_ms;
    let vitals = executing(60 * MINUTE);
    let no = Remedies::default();
    let last = Remedies { nudges: 1, last_at: Some(at(0)), ..no };
    let after = |millis: u64| at(0).plus_millis(millis);
    for (name, vitals, done, now, suspended) in [
        ("nothing in the way", vitals, no, at(0), false),
        ("steered just now", Vitals { steered_ms: Some(0), ..vitals }, no, at(0), true),
        ("steered within patience", Vitals { steered_ms: Some(patience - 1), ..vitals }, no, at(0), true),
        ("steered longer ago", Vitals { steered_ms: Some(patience), ..vitals }, no, at(0), false),
        ("a call runs", Vitals { open_calls: 1, ..vitals }, no, at(0), true),
        ("a person is asked", Vitals { asks: true, ..vitals }, no, at(0), true),
        ("a remedy within patience", vitals, last, after(patience - 1), true),
        ("a remedy longer ago", vitals, last, after(patience), false),
        ("the clock was set back", vitals, last, at(-60), true),
    ] {
        for condition in [Condition::Idle, Condition::Stuck, Condition::Looping, Condition::ErrorStreak] {
            let found = remedy(condition, &vitals, &done, now, &rules());
            assert_eq!(found, (!suspended).then_some(Remedy::Nudge), "{name}, {}", condition.as_str());
        }
    }
}
