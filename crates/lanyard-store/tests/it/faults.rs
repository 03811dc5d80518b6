//! A disk that fails, and what it takes to go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lanyard_store::{
    AppendError, Failpoints, Journal, SqliteJournal, SqliteOptions, StoreError, Tokens, Upkeep,
};

use crate::kit::{Teller, at, open, options};

/// After a failure nothing is written, readers go on, and nothing is retried behind anyone's back (S0-23).
#[test]
fn a_full_disk_stops_the_journal_until_it_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.say(id, "kept");
    teller.append(&journal);
    journal.fill_up().unwrap();
    let kept = teller.clone();
    teller.say(id, &"x".repeat(1 << 20));
    let batch = teller.batch();
    let refused = journal.append(&batch).unwrap_err();
    assert!(matches!(refused, AppendError::Unavailable(StoreError::Sqlite(_))), "{refused:?}");
    // Even what would fit is refused at once.
    let mut small = kept.clone();
    small.say(id, "small");
    let refused = journal.append(&small.batch()).unwrap_err();
    assert!(matches!(refused, AppendError::Unavailable(StoreError::Stopped(_))), "{refused:?}");
    assert!(matches!(journal.sweep(at(0), 1), Err(StoreError::Stopped(_))));
    assert!(matches!(journal.revoke_token(lanyard_core::TokenId::from_u128(1)), Err(StoreError::Stopped(_))));
    kept.assert_kept(&journal);
    journal.recover().unwrap();
    kept.assert_kept(&journal);
    journal.append(&batch).unwrap();
    teller.assert_kept(&journal);
    drop(journal);
    teller.assert_kept(&open(&path));
}

/// Failing again and again changes nothing, and a journal dropped while it had failed has all that was acknowledged.
#[test]
fn a_failed_journal_keeps_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let ids: Vec<_> = (0..200).map(|_| teller.plain()).collect();
    let journal = open(&path);
    teller.append(&journal);
    for round in 0..5 {
        for id in &ids {
            teller.say(*id, "kept");
        }
        teller.append(&journal);
        journal.fill_up().unwrap();
        let mut lost = teller.clone();
        lost.plain();
        lost.say(ids[round], &"x".repeat(1 << 16));
        assert!(matches!(journal.append(&lost.batch()), Err(AppendError::Unavailable(_))));
        teller.assert_kept(&journal);
        if round < 4 {
            journal.recover().unwrap();
        }
    }
    drop(journal);
    let journal = open(&path);
    teller.assert_kept(&journal);
    let report = journal.check().unwrap();
    assert_eq!((report.structure, report.damage), (vec![], vec![]));
}

/// The file cannot be written at all, and then can again.
#[test]
fn a_journal_recovers_when_its_folder_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (home, away) = (folder.path().join("home"), folder.path().join("away"));
    std::fs::create_dir(&home).unwrap();
    let journal = open(&home.join("journal.db"));
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(&journal);
    journal.fill_up().unwrap();
    let mut lost = teller.clone();
    lost.say(id, &"x".repeat(1 << 20));
    assert!(journal.append(&lost.batch()).is_err());
    // A folder that is gone cannot be recovered from; as root, permissions alone would not stop anything.
    std::fs::rename(&home, &away).unwrap();
    assert!(journal.recover().is_err());
    assert!(matches!(journal.append(&lost.batch()), Err(AppendError::Unavailable(StoreError::Stopped(_)))));
    std::fs::rename(&away, &home).unwrap();
    journal.recover().unwrap();
    teller.assert_kept(&journal);
    teller.say(id, "back");
    teller.append(&journal);
    teller.assert_kept(&journal);
}

/// A panic in the middle of a write leaves the journal stopped, and recoverable to exactly what is on disk.
#[test]
fn a_panic_while_writing_stops_the_journal() {
    for (point, kept) in [("before_commit", false), ("after_commit", true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let armed = Arc::new(AtomicBool::new(false));
        let trigger = Arc::clone(&armed);
        let failpoint: Failpoints = Arc::new(move |passed| {
            assert!(passed != point || !trigger.swap(false, Ordering::SeqCst), "asked for");
        });
        let journal =
            SqliteJournal::open(SqliteOptions { failpoint: Some(failpoint), ..options(&path) }).unwrap();
        let mut teller = Teller::default();
        let id = teller.plain();
        teller.append(&journal);
        let before = teller.clone();
        teller.say(id, "perhaps");
        let batch = teller.batch();
        armed.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            assert!(scope.spawn(|| journal.append(&batch)).join().is_err());
        });
        // Not acknowledged, so not visible, whether or not it is on disk.
        before.assert_kept(&journal);
        assert!(matches!(journal.append(&batch), Err(AppendError::Unavailable(StoreError::Stopped(_)))));
        journal.recover().unwrap();
        if kept {
            assert!(matches!(journal.append(&batch), Err(AppendError::Contradiction(_))));
        } else {
            journal.append(&batch).unwrap();
        }
        teller.assert_kept(&journal);
    }
}

/// Recovering a journal that never failed is allowed and changes nothing.
#[test]
fn recovering_a_good_journal_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("journal.db"));
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(&journal);
    journal.recover().unwrap();
    teller.say(id, "still here");
    teller.append(&journal);
    teller.assert_kept(&journal);
}
