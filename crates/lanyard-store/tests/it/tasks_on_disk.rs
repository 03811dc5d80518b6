//! Tasks and mail in the file: closing, crashing, a disk that fails, rows that are not as they were written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lanyard_core::task::{MailTo, TaskEvent, TaskState};
use lanyard_core::{MailId, TaskId};
use lanyard_store::{
    AppendError, Failpoints, Journal, MailFilter, SqliteJournal, SqliteOptions, StoreError, TaskFilter,
    Tasks, Upkeep,
};
use rusqlite::Connection;

use crate::foreman::{Foreman, plain};
use crate::kit::{WriteRecords, open, options};
use crate::sqlite::crash_image;

/// Two tasks that were worked at, and mail for the first.
fn two_tasks(foreman: &mut Foreman) -> [TaskId; 2] {
    let tasks = [1, 2].map(|number| {
        let mut new = plain("a task");
        new.aliases = vec![format!("T-{number}"), format!("request:{number}")];
        let task = foreman.create(new);
        foreman.work_at(task, number);
        task
    });
    foreman.send(MailTo::Task(tasks[0]), "first");
    foreman.send(MailTo::Task(tasks[0]), "second");
    tasks
}

/// S4-B06.
#[test]
fn work_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut foreman = Foreman::default();
    let [one, two] = two_tasks(&mut foreman);
    foreman.write(&open(&path));
    let journal = open(&path);
    foreman.assert_kept(&journal);
    foreman.end(one, TaskState::Completed);
    foreman.push(two, TaskEvent::Started {});
    foreman.write(&journal);
    drop(journal);
    let journal = open(&path);
    foreman.assert_kept(&journal);
    assert_eq!(journal.check().unwrap().damage, []);
}

/// S4-B06: events, rows, names and mail come together or not at all, wherever the process ends.
#[test]
fn a_crash_leaves_all_of_a_batch_or_nothing() {
    for (point, kept) in [("before_commit", false), ("after_commit", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (path, image) = (folder.path().join("journal.db"), folder.path().join("image"));
        std::fs::create_dir(&image).unwrap();
        let armed = Arc::new(AtomicBool::new(false));
        let left: Arc<Mutex<Option<PathBuf>>> = Arc::default();
        let failpoint: Failpoints = {
            let (path, armed, left) = (path.clone(), Arc::clone(&armed), Arc::clone(&left));
            Arc::new(move |passed| {
                if passed == point && armed.swap(false, Ordering::SeqCst) {
                    *left.lock().unwrap() = Some(crash_image(&path, &image));
                }
            })
        };
        let journal =
            SqliteJournal::open(SqliteOptions { failpoint: Some(failpoint), ..options(&path) }).unwrap();
        let mut foreman = Foreman::default();
        let [one, _] = two_tasks(&mut foreman);
        foreman.write(&journal);
        let before = foreman.clone();
        foreman.deploy(one, 7, 8);
        foreman.create(plain("new"));
        foreman.send(MailTo::Task(one), "third");
        armed.store(true, Ordering::SeqCst);
        foreman.write(&journal);
        let image = open(left.lock().unwrap().as_ref().unwrap());
        if kept {
            foreman.assert_kept(&image);
        } else {
            before.assert_kept(&image);
        }
        assert_eq!(
            image.tasks_named(&lanyard_core::WorkerId::from_u128(7).to_string()).unwrap().len(),
            usize::from(kept)
        );
        assert_eq!(image.check().unwrap().damage, []);
    }
}

#[test]
fn a_full_disk_stops_work_as_well_until_the_journal_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut foreman = Foreman::default();
    let [one, _] = two_tasks(&mut foreman);
    foreman.write(&journal);
    journal.fill_up().unwrap();
    let kept = foreman.clone();
    foreman.send(MailTo::Task(one), &"x".repeat(1 << 20));
    let batch = foreman.batch();
    assert!(matches!(journal.write_work(&batch), Err(AppendError::Unavailable(StoreError::Sqlite(_)))));
    assert!(matches!(journal.write_work(&batch), Err(AppendError::Unavailable(StoreError::Stopped(_)))));
    kept.assert_kept(&journal);
    assert!(journal.failure().is_some(), "whoever can recover learns of it");
    journal.recover().unwrap();
    assert_eq!(journal.failure(), None);
    kept.assert_kept(&journal);
    journal.write_work(&batch).unwrap();
    foreman.assert_kept(&journal);
}

/// Two tasks in a closed journal, changed behind its back.
fn tampered(sql: &str) -> (Foreman, [TaskId; 2], SqliteJournal, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut foreman = Foreman::default();
    let tasks = two_tasks(&mut foreman);
    foreman.write(&open(&path));
    let behind = Connection::open(&path).unwrap();
    behind.execute_batch(sql).unwrap();
    assert!(behind.total_changes() > 0, "{sql}");
    drop(behind);
    (foreman, tasks, open(&path), folder)
}

fn damage(journal: &SqliteJournal) -> Vec<String> {
    journal.check().unwrap().damage.into_iter().map(|damage| damage.what).collect()
}

const FIRST: &str = "(SELECT min(record) FROM record_events)";

#[test]
fn damaged_rows_and_names_are_made_again_from_the_log() {
    for (sql, read) in [
        ("UPDATE record_rows SET body = x'7b7d' WHERE id = FIRST", true),
        ("UPDATE record_rows SET body = 'text' WHERE id = FIRST", true),
        ("UPDATE record_rows SET crc = crc + 1 WHERE id = FIRST", true),
        ("UPDATE record_rows SET as_of = 'many' WHERE id = FIRST", true),
        ("UPDATE record_rows SET as_of = 3 WHERE kind = 'task'", true),
        ("DELETE FROM record_rows WHERE id = FIRST", false),
        ("UPDATE record_keys SET value = 'completed' WHERE key = 'state' AND id = FIRST", true),
        ("DELETE FROM record_keys WHERE key = 'worker' AND id = FIRST", true),
        ("DELETE FROM record_keys WHERE key = 'place'", true),
        ("DELETE FROM record_keys WHERE key = 'name'", false),
        ("DELETE FROM record_keys WHERE key = 'name' AND value = 'T-1'", false),
        // One that was never over has its keys.
        ("DELETE FROM record_keys WHERE key = 'name' AND value = 'request:1'", false),
        ("INSERT INTO record_keys (kind, key, value, id) VALUES ('task', 'name', 'T-3', FIRST)", false),
    ] {
        let sql = sql.replace("FIRST", FIRST);
        let (mut foreman, [one, _], journal, _folder) = tampered(&sql);
        // By id it is always found, and in listings while there is a row to stumble over.
        assert_eq!(journal.task(one).unwrap(), foreman.tasks.get(&one).cloned(), "{sql}");
        let listed = journal.tasks(&TaskFilter::default(), None, 10).unwrap();
        assert!(!read || listed.iter().eq(foreman.tasks.values()), "{sql}");
        assert!(!damage(&journal).is_empty(), "{sql}");
        journal.rebuild().unwrap();
        assert_eq!(damage(&journal), [""; 0], "{sql}");
        foreman.assert_kept(&journal);
        assert_eq!(journal.tasks_named("T-3").unwrap(), [], "{sql}");
        foreman.end(one, TaskState::Completed);
        foreman.write(&journal);
        foreman.assert_kept(&journal);
    }
}

#[test]
fn a_task_with_damaged_keys_is_not_found_by_a_state_it_never_had() {
    let (foreman, [one, two], journal, _folder) =
        tampered(&format!("UPDATE record_keys SET value = 1 WHERE key = 'ended' AND id = {FIRST}"));
    let ended = TaskFilter { ended: Some(true), ..TaskFilter::default() };
    assert_eq!(journal.tasks(&ended, None, 10).unwrap(), []);
    // Nor is it found by its right state, which is what `check` reports.
    let open = TaskFilter { ended: Some(false), ..TaskFilter::default() };
    assert!(journal.tasks(&open, None, 10).unwrap().iter().eq([&foreman.tasks[&two]]));
    assert_eq!(damage(&journal), [format!("the keys of {one} are not those of its record")]);
}

/// A row that is good stands for a log that is not; what the log says is reported where it is read.
#[test]
fn a_damaged_log_is_reported_and_the_row_goes_on() {
    for sql in [
        "UPDATE record_events SET body = x'00' WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET crc = 0 WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET body = (SELECT body FROM record_events WHERE seq = 4) WHERE seq = 3 AND record = FIRST",
        "DELETE FROM record_events WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET body = x'00' WHERE seq = 1 AND record = FIRST",
    ] {
        let sql = sql.replace("FIRST", FIRST);
        let (mut foreman, [one, two], journal, _folder) = tampered(&sql);
        for _ in 0..2 {
            assert_eq!(journal.task(one).unwrap(), foreman.tasks.get(&one).cloned(), "{sql}");
            assert_eq!(journal.task_events(two, 0, 100).unwrap(), foreman.logs[&two]);
            assert!(!damage(&journal).is_empty(), "{sql}");
            // Once more after the projections were made again: the row is all there is, so it is kept.
            journal.rebuild().unwrap();
        }
        if !sql.starts_with("DELETE") {
            assert!(matches!(journal.task_events(one, 0, 100), Err(StoreError::Damaged(_))), "{sql}");
            assert_eq!(journal.task_events(one, 3, 100).unwrap(), foreman.logs[&one][3..], "{sql}");
        }
        foreman.end(one, TaskState::Completed);
        foreman.write(&journal);
        assert_eq!(journal.task(one).unwrap(), foreman.tasks.get(&one).cloned(), "{sql}");
    }
}

/// Of a task whose row and log are both damaged nothing is made up; the others are as they were.
#[test]
fn a_task_that_cannot_be_made_is_an_error_not_a_blank() {
    let sql = "UPDATE record_rows SET crc = 0 WHERE id = FIRST; \
               UPDATE record_events SET crc = 0 WHERE seq = 3 AND record = FIRST"
        .replace("FIRST", FIRST);
    let (foreman, [one, two], journal, _folder) = tampered(&sql);
    let error = journal.task(one).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    let second = std::slice::from_ref(&foreman.tasks[&two]);
    assert_eq!(
        journal.tasks(&TaskFilter::default(), None, 1).unwrap(),
        second,
        "the page is full all the same"
    );
    assert_eq!(damage(&journal).len(), 2);
    // Rebuilding keeps what can be read, as of the last event, and still says what cannot.
    journal.rebuild().unwrap();
    assert_eq!(journal.task(one).unwrap().unwrap().seq, foreman.tasks[&one].seq);
    assert_eq!(damage(&journal).len(), 1);
}

#[test]
fn damaged_mail_is_reported_and_does_not_hide_the_rest() {
    for sql in [
        "UPDATE record_rows SET body = x'00' WHERE id = FIRST",
        "UPDATE record_rows SET crc = 0 WHERE id = FIRST",
        "UPDATE record_rows SET as_of = 1 WHERE id = FIRST",
        "UPDATE record_rows SET body = (SELECT body FROM record_rows WHERE kind = 'mail' AND id > FIRST) WHERE id = FIRST",
    ] {
        let sql = sql.replace("FIRST", "(SELECT min(id) FROM record_rows WHERE kind = 'mail')");
        let (foreman, _, journal, _folder) = tampered(&sql);
        let ids: Vec<MailId> = foreman.mail.keys().copied().collect();
        assert!(matches!(journal.mail(ids[0]), Err(StoreError::Damaged(_))), "{sql}");
        assert_eq!(journal.mail(ids[1]).unwrap(), foreman.mail.get(&ids[1]).cloned());
        let read = journal.mails(&MailFilter::default(), None, 1).unwrap();
        assert!(read.iter().map(|mail| mail.id).eq([ids[1]]), "{sql}: the page is full all the same");
        assert_eq!(damage(&journal), ["a kept mail is damaged"], "{sql}");
    }
}
