//! Rates, thresholds, minimum attempts and hysteresis, as a table and as a history.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect;

use crate::Timestamp;
use crate::continuity::{
    AlertKind, ContinuityRules, ContinuityStatus, Counter, Tally, Window, assess, rates, status,
};

fn attaches(succeeded: u64, failed: u64) -> Tally {
    [(Counter::AttachSucceeded, succeeded), (Counter::AttachFailed, failed)].into_iter().collect()
}

fn rules() -> ContinuityRules {
    ContinuityRules::default()
}

/// S3-37, S3-B11: minimum attempts, the limit itself, and the margin on the way back.
#[test]
fn an_alert_begins_and_ends_by_this_table() {
    let mut table = String::new();
    for (good, bad) in [(0, 0), (0, 9), (9, 1), (18, 2), (19, 1), (95, 5), (97, 3), (98, 2), (5, 1), (5, 0)] {
        let held = |before: bool| {
            let before: BTreeSet<_> = before.then_some(AlertKind::AttachSuccessRate).into_iter().collect();
            let alerts = assess(&attaches(good, bad), &rules(), &before);
            if status(&alerts) == ContinuityStatus::Degraded { "degraded" } else { "ok" }
        };
        writeln!(table, "{good} good {bad} bad: from ok {:<8} from degraded {}", held(false), held(true))
            .unwrap();
    }
    expect![[r"
        0 good 0 bad: from ok ok       from degraded ok
        0 good 9 bad: from ok ok       from degraded degraded
        9 good 1 bad: from ok degraded from degraded degraded
        18 good 2 bad: from ok degraded from degraded degraded
        19 good 1 bad: from ok ok       from degraded degraded
        95 good 5 bad: from ok ok       from degraded degraded
        97 good 3 bad: from ok ok       from degraded degraded
        98 good 2 bad: from ok ok       from degraded ok
        5 good 1 bad: from ok ok       from degraded degraded
        5 good 0 bad: from ok ok       from degraded ok
    "]]
    .assert_eq(&table);
}

/// S3-35, S3-36.
#[test]
fn rates_are_shares_and_without_attempts_no_number() {
    let none = rates(&Tally::default());
    assert_eq!((none.attach_success_rate, none.resume_success_rate), (None, None));
    let mut tally = attaches(3, 1);
    tally.add(Counter::ResumeSucceeded, 1);
    tally.add(Counter::SessionsCreated, 8);
    tally.add(Counter::AccidentalNewSessions, 2);
    tally.add(Counter::DuplicateTurns, 4);
    tally.add(Counter::DuplicateRequests, 9);
    let rates = rates(&tally);
    assert_eq!(rates.attach_success_rate, Some(0.75));
    assert_eq!(rates.resume_success_rate, Some(1.0));
    assert_eq!(rates.accidental_new_session_rate, Some(0.25));
    assert_eq!(rates.duplicate_turn_prevention_count, 4);
}

/// S3-37: an alert says what is and what should be.
#[test]
fn an_alert_has_the_actual_rate_and_its_threshold() {
    let alerts = assess(&attaches(6, 4), &rules(), &BTreeSet::new());
    let [alert] = alerts.as_slice() else { panic!("{alerts:?}") };
    assert_eq!((alert.actual, alert.threshold, alert.attempts, alert.failed), (0.6, 0.95, 10, 4));
    assert!((alert.clears_at - 0.98).abs() < 1e-9);
    assert_eq!(alert.text, "4 of 10 attaches failed in the last 60 minutes");
    let mut accidents = Tally::default();
    accidents.add(Counter::SessionsCreated, 10);
    accidents.add(Counter::AccidentalNewSessions, 2);
    let alerts = assess(&accidents, &rules(), &BTreeSet::new());
    assert_eq!((alerts[0].code, alerts[0].actual), (AlertKind::AccidentalNewSessionRate, 0.2));
}

/// S3-38, S3-B11: a rate that keeps crossing its limit is one alert, and ends once when what failed has left the window.
#[test]
fn flapping_is_one_alert_and_one_recovery() {
    let (mut window, mut held, mut told) = (Window::default(), BTreeSet::new(), Vec::new());
    let mut minute = 1_000;
    let mut pass = |tally: Tally, window: &mut Window| {
        minute += 1;
        let now = Timestamp::from_millis(minute * 60_000);
        window.add(now, &tally);
        let alerts = assess(&window.sum(now, rules().window_ms), &rules(), &held);
        let holds: BTreeSet<_> = alerts.iter().map(|alert| alert.code).collect();
        if holds != held {
            told.push((minute - 1_000, holds.len()));
            held = holds;
        }
    };
    // Good and bad minutes in turn, around the limit: 94 % and 96 %.
    for minute in 0..30 {
        pass(if minute % 2 == 0 { attaches(17, 2) } else { attaches(20, 0) }, &mut window);
    }
    // Then hardly anybody comes: too few attempts to say anything, until the last failure is an hour old.
    for _ in 0..100 {
        pass(attaches(0, 0), &mut window);
    }
    assert_eq!(told, [(1, 1), (89, 0)]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    assert_eq!(rules().check(), Ok(()));
    let wrong = |change: fn(&mut ContinuityRules)| {
        let mut rules = rules();
        change(&mut rules);
        rules.check().unwrap_err()
    };
    assert!(wrong(|rules| rules.window_ms = 5).contains("window_ms"));
    assert!(wrong(|rules| rules.min_attempts = 0).contains("min_attempts"));
    assert!(wrong(|rules| rules.attach_success_min = 95.0).contains("attach_success_min"));
    assert!(wrong(|rules| rules.recovery_margin = f64::NAN).contains("recovery_margin"));
}

/// FND-M12, S3-37: numbers of failures alert beside rates, begin above the limit and end at half of it.
#[test]
fn fnd_m12_too_many_failures_alert_whatever_their_share() {
    let held = |good, bad, before: bool| {
        let before: BTreeSet<_> = before.then_some(AlertKind::AttachFailures).into_iter().collect();
        let alerts = assess(&attaches(good, bad), &rules(), &before);
        alerts.into_iter().find(|alert| alert.code == AlertKind::AttachFailures)
    };
    assert_eq!(held(10_000, 50, false), None, "at the limit");
    let alert = held(10_000, 51, false).unwrap();
    assert_eq!((alert.actual, alert.threshold, alert.clears_at), (51.0, 50.0, 25.0));
    assert_eq!((alert.attempts, alert.failed), (10_051, 51));
    assert!(held(10_000, 26, true).is_some() && held(10_000, 26, false).is_none(), "in between it holds");
    assert_eq!(held(10_000, 25, true), None);
    let off = ContinuityRules { attach_failures_max: 0, ..rules() };
    assert!(
        assess(&attaches(10_000, 9_000_000), &off, &BTreeSet::new())
            .iter()
            .all(|alert| { alert.code != AlertKind::AttachFailures })
    );
}
