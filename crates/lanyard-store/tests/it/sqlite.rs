//! What only the journal on disk can be asked: opening, closing, crashing, growing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lanyard_store::{
    Batch, Directory, Durability, Filter, Journal, OpenError, SqliteJournal, SqliteOptions, Turns, Upkeep,
};
use rusqlite::Connection;

use crate::kit::{Teller, open, options};

/// Copies a journal as a crash would leave it: the files as they are, nothing closed.
pub(crate) fn crash_image(path: &Path, to: &Path) -> PathBuf {
    let copy = to.join("journal.db");
    for suffix in ["", "-wal"] {
        let (from, to) = (beside(path, suffix), beside(&copy, suffix));
        if from.exists() {
            std::fs::copy(from, to).unwrap();
        }
    }
    copy
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn populated(path: &Path) -> Teller {
    let journal = open(path);
    let mut teller = Teller::default();
    for _ in 0..3 {
        let id = teller.plain();
        teller.say(id, "kept");
        teller.append(&journal);
    }
    teller
}

/// S0-23, S0-T3: closed and opened again it is the same.
#[test]
fn a_closed_journal_is_one_file_and_opens_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = populated(&path);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "journal.db" || name == "journal.db-lock"), "{names:?}");
    let journal = open(&path);
    teller.assert_kept(&journal);
    let id = teller.plain();
    teller.say(id, "and on");
    teller.append(&journal);
    teller.assert_kept(&journal);
}

/// What was acknowledged is there after a crash at any commit, however far the heads were behind (S0-23, S4-B06).
#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    let mut rng = fastrand::Rng::with_seed(11);
    // More sessions than one commit writes heads for.
    let ids: Vec<_> = (0..500).map(|_| teller.plain()).collect();
    teller.append(&journal);
    for round in 0..60 {
        for _ in 0..rng.usize(1..200) {
            let id = ids[rng.usize(0..ids.len())];
            teller.say(id, "said in time");
        }
        let durability = if rng.bool() { Durability::Written } else { Durability::Synced };
        journal.append(&Batch { durability, ..teller.batch() }).unwrap();
        if round % 6 == 0 {
            let other = tempfile::tempdir().unwrap();
            let copy = open(&crash_image(&path, other.path()));
            teller.assert_kept(&copy);
            let report = copy.check().unwrap();
            assert_eq!((report.structure, report.damage), (vec![], vec![]));
        }
    }
    let report = journal.check().unwrap();
    assert_eq!((report.structure, report.damage), (vec![], vec![]));
}

/// The write-ahead log stays bounded while it is written to without a pause.
#[test]
fn the_write_ahead_log_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    let id = teller.plain();
    let text = "x".repeat(1 << 20);
    let mut largest = 0;
    for _ in 0..200 {
        teller.say(id, &text);
        teller.append(&journal);
        largest = largest.max(std::fs::metadata(beside(&path, "-wal")).unwrap().len());
    }
    assert!(largest < 80 << 20, "{largest} bytes");
    assert_eq!(journal.events(id, 0, 300).unwrap().head, 201);
}

/// Small commits without a pause leave the thread behind by a few pages each time; the log begins anew all the same,
/// and is written in place.
#[test]
fn the_write_ahead_log_is_used_again_under_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(SqliteOptions { checkpoint_pages: 64, ..options(&path) }).unwrap();
    let mut teller = Teller::default();
    let id = teller.plain();
    let (mut largest, commits) = (0, 4_000);
    for _ in 0..commits {
        teller.say(id, "one line");
        teller.append(&journal);
        largest = largest.max(std::fs::metadata(beside(&path, "-wal")).unwrap().len());
    }
    // Each of them wrote a page at least.
    let written = commits * 4_096;
    assert!(largest < written / 2, "{largest} bytes of {written}");
    drop(journal);
    teller.assert_kept(&open(&path));
}

#[test]
fn only_the_owner_may_read_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    teller.plain();
    teller.append(&journal);
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let mode = std::fs::metadata(beside(&path, suffix)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
}

/// S0-08, S4-B06: an unknown version is not loaded as data, and not discarded either.
#[test]
fn a_newer_journal_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    populated(&path);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(SqliteJournal::open(options(&path)), Err(OpenError::Newer { found: 99, known: 13 })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// The same when the newer version is only in the write-ahead log so far.
#[test]
fn a_newer_journal_is_refused_when_only_its_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    populated(&path);
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = crash_image(&path, elsewhere.path());
    let before = (std::fs::read(&copy).unwrap(), std::fs::read(beside(&copy, "-wal")).unwrap());
    assert!(matches!(SqliteJournal::open(options(&copy)), Err(OpenError::Newer { found: 99, known: 13 })));
    assert_eq!((std::fs::read(&copy).unwrap(), std::fs::read(beside(&copy, "-wal")).unwrap()), before);
}

/// S0-24.
#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "dear diary, today I did not become a journal").unwrap();
    let short = folder.path().join("short");
    std::fs::write(&short, "SQLite format 3\0").unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let database = folder.path().join("other.db");
    Connection::open(&database)
        .unwrap()
        .execute_batch("CREATE TABLE other (x); INSERT INTO other VALUES (1)")
        .unwrap();
    for (path, damaged) in [(&text, false), (&database, false), (&short, true), (&empty, true)] {
        let before = std::fs::read(path).unwrap();
        let refused = SqliteJournal::open(options(path)).unwrap_err();
        assert_eq!(matches!(refused, OpenError::Foreign { .. }), !damaged, "{refused:?}");
        assert_eq!(matches!(refused, OpenError::Damaged { .. }), damaged, "{refused:?}");
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
    let orphan = folder.path().join("orphan.db");
    std::fs::write(beside(&orphan, "-wal"), "frames without a file").unwrap();
    assert!(matches!(SqliteJournal::open(options(&orphan)), Err(OpenError::Damaged { .. })));
    assert!(!orphan.exists());
}

#[test]
fn a_journal_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    assert!(matches!(SqliteJournal::open(options(&path)), Err(OpenError::InUse { .. })));
    drop(journal);
    open(&path);
}

#[test]
fn a_missing_folder_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteJournal::open(options(&folder.path().join("nowhere/journal.db"))).unwrap_err();
    assert!(matches!(refused, OpenError::Store(_)), "{refused:?}");
}

/// A journal of schema 1 becomes one of the newest, with its sessions in the search index and a place for papers,
/// tasks and flows.
#[test]
fn an_older_journal_is_brought_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    {
        let journal = open(&path);
        let id = teller.plain();
        teller.alias(id, "old-timer");
        teller.start_turn(id);
        teller.finish_turn(id);
        teller.append(&journal);
    }
    let older = Connection::open(&path).unwrap();
    older
        .execute_batch(
            "DROP TABLE search; DROP TABLE papers; DROP TABLE turns; DROP TABLE record_events; \
             DROP TABLE record_rows; DROP TABLE record_keys; DROP TABLE tallies; DROP TABLE memory_words; DROP TABLE memories; \
             DROP TABLE memory_vectors; DROP TABLE tombstones; DROP TABLE insight; PRAGMA user_version = 1",
        )
        .unwrap();
    drop(older);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_there = Arc::clone(&seen);
    let failpoint: lanyard_store::Failpoints = Arc::new(move |point| seen_there.lock().unwrap().push(point));
    let journal =
        SqliteJournal::open(SqliteOptions { failpoint: Some(failpoint), ..options(&path) }).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["migration"; 24]);
    teller.assert_kept(&journal);
    let found =
        journal.list(&Filter { text: Some("TIMER".to_owned()), ..Filter::default() }, None, 10).unwrap();
    assert_eq!(found.rows.len(), 1);
    let report = journal.check().unwrap();
    assert_eq!((report.schema, report.damage), (13, Vec::new()));
    assert_eq!(journal.turns(teller.ids[0], None, 10).unwrap().turns.len(), 1, "read from the older log");
}

/// The points at which the crash suite ends the process.
#[test]
fn failpoints_are_passed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_there = Arc::clone(&seen);
    let failpoint: lanyard_store::Failpoints = Arc::new(move |point| seen_there.lock().unwrap().push(point));
    let journal =
        SqliteJournal::open(SqliteOptions { failpoint: Some(failpoint), ..options(&path) }).unwrap();
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(&journal);
    // Two for each step that leads to the schema, then the batch's own.
    let points = [["migration"; 26].as_slice(), &["before_commit", "after_commit"]].concat();
    assert_eq!(*seen.lock().unwrap(), points);
    // Enough to be worth a checkpoint.
    for _ in 0..8 {
        teller.say(id, &"x".repeat(1 << 20));
        teller.append(&journal);
    }
    drop(journal);
    assert!(seen.lock().unwrap().contains(&"checkpoint"));
}

/// Readers and the writer do not wait for each other, and a page is never torn.
#[test]
fn readers_see_whole_batches_while_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("journal.db"));
    let mut teller = Teller::default();
    let ids: Vec<_> = (0..4).map(|_| teller.plain()).collect();
    teller.append(&journal);
    std::thread::scope(|scope| {
        let (journal, ids) = (&journal, &ids);
        for id in &ids[..3] {
            scope.spawn(move || {
                let mut last = 0;
                while last < 601 {
                    let page = journal.events(*id, 0, usize::MAX).unwrap();
                    assert!(page.events.iter().map(|event| event.seq).eq(1..=page.head));
                    assert!(page.head >= last && (page.head - 1).is_multiple_of(3), "{}", page.head);
                    last = page.head;
                    assert_eq!(journal.load(*id).unwrap().unwrap().damage, []);
                    assert_eq!(journal.list(&Filter::default(), None, 9).unwrap().rows.len(), 4);
                }
            });
        }
        for _ in 0..200 {
            for id in ids {
                for _ in 0..3 {
                    teller.say(*id, "word");
                }
            }
            teller.append(journal);
        }
    });
    teller.assert_kept(&journal);
}
