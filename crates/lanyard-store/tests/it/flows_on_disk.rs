//! Flows in the file: closing, crashing, a disk that fails, rows that are not as they were written, an older file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lanyard_core::FlowId;
use lanyard_core::flow::Choice;
use lanyard_store::{
    AppendError, Failpoints, FlowFilter, Flows, Journal, SqliteJournal, SqliteOptions, StoreError, Upkeep,
};
use rusqlite::Connection;

use crate::conductor::{Conductor, plain};
use crate::kit::{WriteRecords, open, options};
use crate::sqlite::crash_image;

/// One flow that was worked at, and one that waits at a gate.
fn two_flows(conductor: &mut Conductor) -> [FlowId; 2] {
    let flows = [1, 2].map(|number| conductor.create(plain(&format!("/w/{number}.md"))));
    conductor.work_at(flows[0]);
    conductor.lease(flows[1]);
    conductor.ask(flows[1]);
    flows
}

/// S2-B01.
#[test]
fn a_gate_is_there_after_a_restart_and_can_be_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut conductor = Conductor::default();
    let [one, two] = two_flows(&mut conductor);
    conductor.write(&open(&path));
    let journal = open(&path);
    conductor.assert_kept(&journal);
    conductor.answer(two, Choice::ContinueSession);
    conductor.end(one);
    conductor.write(&journal);
    drop(journal);
    let journal = open(&path);
    conductor.assert_kept(&journal);
    assert_eq!(journal.check().unwrap().damage, []);
}

/// S2-B01, S2-B09: an answer and what follows from it come together or not at all, wherever the process ends.
#[test]
fn a_crash_leaves_all_of_a_batch_of_flows_or_nothing() {
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
        let mut conductor = Conductor::default();
        let [_, two] = two_flows(&mut conductor);
        conductor.write(&journal);
        let before = conductor.clone();
        conductor.answer(two, Choice::ContinueSession);
        conductor.create(plain("/w/new.md"));
        armed.store(true, Ordering::SeqCst);
        conductor.write(&journal);
        let image = open(left.lock().unwrap().as_ref().unwrap());
        if kept { &conductor } else { &before }.assert_kept(&image);
        assert_eq!(image.check().unwrap().damage, []);
    }
}

#[test]
fn a_full_disk_stops_flows_as_well_until_the_journal_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut conductor = Conductor::default();
    two_flows(&mut conductor);
    conductor.write(&journal);
    journal.fill_up().unwrap();
    let kept = conductor.clone();
    let mut new = plain("/w/long.md");
    new.phases[0].text = "x".repeat(1 << 20);
    conductor.create(new);
    let batch = conductor.batch();
    assert!(matches!(journal.write_flows(&batch), Err(AppendError::Unavailable(StoreError::Sqlite(_)))));
    assert!(matches!(journal.write_flows(&batch), Err(AppendError::Unavailable(StoreError::Stopped(_)))));
    kept.assert_kept(&journal);
    assert!(journal.failure().is_some(), "whoever can recover learns of it");
    journal.recover().unwrap();
    assert_eq!(journal.failure(), None);
    kept.assert_kept(&journal);
    journal.write_flows(&batch).unwrap();
    conductor.assert_kept(&journal);
}

/// Two flows in a closed journal, changed behind its back.
fn tampered(sql: &str) -> (Conductor, [FlowId; 2], SqliteJournal, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut conductor = Conductor::default();
    let flows = two_flows(&mut conductor);
    conductor.write(&open(&path));
    let behind = Connection::open(&path).unwrap();
    behind.execute_batch(sql).unwrap();
    assert!(behind.total_changes() > 0, "{sql}");
    drop(behind);
    (conductor, flows, open(&path), folder)
}

fn damage(journal: &SqliteJournal) -> Vec<String> {
    journal.check().unwrap().damage.into_iter().map(|damage| damage.what).collect()
}

const FIRST: &str = "(SELECT min(record) FROM record_events)";

#[test]
fn damaged_rows_of_flows_are_made_again_from_the_log() {
    for (sql, read) in [
        ("UPDATE record_rows SET body = x'7b7d' WHERE id = FIRST", true),
        ("UPDATE record_rows SET body = 'text' WHERE id = FIRST", true),
        ("UPDATE record_rows SET crc = crc + 1 WHERE id = FIRST", true),
        ("UPDATE record_rows SET as_of = 'many' WHERE id = FIRST", true),
        ("UPDATE record_rows SET as_of = 3", true),
        (
            "UPDATE record_rows SET body = (SELECT body FROM record_rows WHERE id > FIRST) WHERE id = FIRST",
            true,
        ),
        ("DELETE FROM record_rows WHERE id = FIRST", false),
        ("INSERT INTO record_rows SELECT kind, x'00', as_of, body, crc FROM record_rows LIMIT 1", true),
        ("DELETE FROM record_keys WHERE id = FIRST", true),
        ("DELETE FROM record_keys WHERE id = FIRST AND key = 'plan'", true),
        ("UPDATE record_keys SET value = '/w/2.md' WHERE id = FIRST AND key = 'plan'", true),
        ("UPDATE record_keys SET value = x'00' WHERE id = FIRST AND key = 'plan'", true),
        ("INSERT INTO record_keys SELECT kind, 'plan', 'other', id FROM record_rows LIMIT 1", true),
        ("INSERT INTO record_keys SELECT kind, 'plan', 'other', x'00' FROM record_rows LIMIT 1", true),
    ] {
        let sql = sql.replace("FIRST", FIRST);
        let (mut conductor, [one, _], journal, _folder) = tampered(&sql);
        // By id it is always found, and in listings while there is a row to stumble over.
        assert_eq!(journal.flow(one).unwrap(), conductor.flows.get(&one).cloned(), "{sql}");
        let listed = journal.flows(&FlowFilter::default(), None, 10).unwrap();
        assert!(!read || listed.iter().eq(conductor.flows.values().rev()), "{sql}");
        assert!(!damage(&journal).is_empty(), "{sql}");
        journal.rebuild().unwrap();
        assert_eq!(damage(&journal), [""; 0], "{sql}");
        conductor.assert_kept(&journal);
        conductor.end(one);
        conductor.write(&journal);
        conductor.assert_kept(&journal);
    }
}

#[test]
fn a_flow_with_damaged_keys_is_not_found_by_a_state_it_never_had() {
    let (conductor, [one, two], journal, _folder) = tampered(&format!(
        "UPDATE record_keys SET value = 1 WHERE key IN ('ended', 'settled') AND id = {FIRST}"
    ));
    let ended = FlowFilter { ended: Some(true), ..FlowFilter::default() };
    assert_eq!(journal.flows(&ended, None, 10).unwrap(), []);
    // Nor is it found by its right state, which is what `check` reports.
    let open = FlowFilter { ended: Some(false), ..FlowFilter::default() };
    assert!(journal.flows(&open, None, 10).unwrap().iter().eq([&conductor.flows[&two]]));
    assert_eq!(damage(&journal), [format!("the keys of {one} are not those of its record")]);
}

/// A row that is good stands for a log that is not; what the log says is reported where it is read.
#[test]
fn a_damaged_log_of_a_flow_is_reported_and_the_row_goes_on() {
    for sql in [
        "UPDATE record_events SET body = x'00' WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET crc = 0 WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET body = (SELECT body FROM record_events WHERE seq = 4) WHERE seq = 3 AND record = FIRST",
        "DELETE FROM record_events WHERE seq = 3 AND record = FIRST",
        "UPDATE record_events SET body = x'00' WHERE seq = 1 AND record = FIRST",
    ] {
        let sql = sql.replace("FIRST", FIRST);
        let (mut conductor, [one, two], journal, _folder) = tampered(&sql);
        for _ in 0..2 {
            assert_eq!(journal.flow(one).unwrap(), conductor.flows.get(&one).cloned(), "{sql}");
            assert_eq!(journal.flow_events(two, 0, 100).unwrap(), conductor.logs[&two]);
            assert!(!damage(&journal).is_empty(), "{sql}");
            // Once more after the projections were made again: the row is all there is, so it is kept.
            journal.rebuild().unwrap();
        }
        if !sql.starts_with("DELETE") {
            assert!(matches!(journal.flow_events(one, 0, 100), Err(StoreError::Damaged(_))), "{sql}");
            assert_eq!(journal.flow_events(one, 3, 100).unwrap(), conductor.logs[&one][3..], "{sql}");
        }
        conductor.end(one);
        conductor.write(&journal);
        assert_eq!(journal.flow(one).unwrap(), conductor.flows.get(&one).cloned(), "{sql}");
    }
}

/// Of a flow whose row and log are both damaged nothing is made up; the others are as they were.
#[test]
fn a_flow_that_cannot_be_made_is_an_error_not_a_blank() {
    let sql = "UPDATE record_rows SET crc = 0 WHERE id = LAST; \
               UPDATE record_events SET crc = 0 WHERE seq = 2 AND record = LAST"
        .replace("LAST", "(SELECT max(record) FROM record_events)");
    let (conductor, [one, two], journal, _folder) = tampered(&sql);
    let error = journal.flow(two).unwrap_err();
    assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    let first = std::slice::from_ref(&conductor.flows[&one]);
    let page = journal.flows(&FlowFilter::default(), None, 1).unwrap();
    assert_eq!(page, first, "the page is full all the same");
    assert_eq!(damage(&journal).len(), 2);
    // Rebuilding keeps what can be read, as of the last event, and still says what cannot.
    journal.rebuild().unwrap();
    assert_eq!(journal.flow(two).unwrap().unwrap().seq, conductor.flows[&two].seq);
    assert_eq!(damage(&journal).len(), 1);
}
