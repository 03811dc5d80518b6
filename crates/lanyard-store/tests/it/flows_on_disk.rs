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
use crate::foreman::{self, Foreman};
use crate::kit::{Teller, open, options};
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

const FIRST: &str = "(SELECT min(flow) FROM flow_events)";

#[test]
fn damaged_rows_of_flows_are_made_again_from_the_log() {
    for (sql, read) in [
        ("UPDATE flows SET body = x'7b7d' WHERE id = FIRST", true),
        ("UPDATE flows SET body = 'text' WHERE id = FIRST", true),
        ("UPDATE flows SET crc = crc + 1 WHERE id = FIRST", true),
        ("UPDATE flows SET state = 'completed' WHERE id = FIRST", true),
        ("UPDATE flows SET plan = '/w/2.md' WHERE id = FIRST", true),
        ("UPDATE flows SET seq = 'many' WHERE id = FIRST", true),
        ("UPDATE flows SET workspace = '', seq = 3, ended = 1, settled = 1", true),
        ("UPDATE flows SET body = (SELECT body FROM flows WHERE id > FIRST) WHERE id = FIRST", true),
        ("DELETE FROM flows WHERE id = FIRST", false),
        (
            "INSERT INTO flows SELECT x'00', plan, workspace, state, ended, settled, seq, body, crc FROM flows LIMIT 1",
            true,
        ),
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
fn a_damaged_row_of_a_flow_is_not_found_by_what_it_never_was() {
    let (conductor, [one, two], journal, _folder) =
        tampered(&format!("UPDATE flows SET ended = 1, settled = 1 WHERE id = {FIRST}"));
    let ended = FlowFilter { ended: Some(true), ..FlowFilter::default() };
    assert_eq!(journal.flows(&ended, None, 10).unwrap(), []);
    // What it was is not found by its row either, which is what `check` reports.
    let open = FlowFilter { ended: Some(false), ..FlowFilter::default() };
    assert!(journal.flows(&open, None, 10).unwrap().iter().eq([&conductor.flows[&two]]));
    assert_eq!(damage(&journal), [format!("the row of {one} is damaged: it is not as it was written")]);
}

/// A row that is good stands for a log that is not; what the log says is reported where it is read.
#[test]
fn a_damaged_log_of_a_flow_is_reported_and_the_row_goes_on() {
    for sql in [
        "UPDATE flow_events SET body = x'00' WHERE seq = 3 AND flow = FIRST",
        "UPDATE flow_events SET crc = 0 WHERE seq = 3 AND flow = FIRST",
        "UPDATE flow_events SET at = 0 WHERE seq = 3 AND flow = FIRST",
        "UPDATE flow_events SET body = (SELECT body FROM flow_events WHERE seq = 4) WHERE seq = 3 AND flow = FIRST",
        "DELETE FROM flow_events WHERE seq = 3 AND flow = FIRST",
        "UPDATE flow_events SET body = x'00' WHERE seq = 1 AND flow = FIRST",
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
    let sql = "UPDATE flows SET crc = 0 WHERE id = LAST; \
               UPDATE flow_events SET crc = 0 WHERE seq = 2 AND flow = LAST"
        .replace("LAST", "(SELECT max(flow) FROM flow_events)");
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

/// A journal from before there were flows gets a place for them, and keeps everything else.
#[test]
fn a_journal_of_schema_5_is_brought_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (mut teller, mut foreman) = (Teller::default(), Foreman::default());
    {
        let journal = open(&path);
        let id = teller.plain();
        teller.say(id, "kept");
        teller.append(&journal);
        let task = foreman.create(foreman::plain("one"));
        foreman.work_at(task, 1);
        foreman.write(&journal);
    }
    let older = Connection::open(&path).unwrap();
    older
        .execute_batch(
            "DROP TABLE flows; DROP TABLE flow_events; DROP TABLE memory_words; DROP TABLE memories; \
             DROP TABLE memory_vectors; DROP TABLE IF EXISTS tallies; DROP TABLE IF EXISTS notifications; \
             DROP TABLE IF EXISTS deliveries; DROP TABLE tombstones; PRAGMA user_version = 5",
        )
        .unwrap();
    drop(older);
    let journal = open(&path);
    teller.assert_kept(&journal);
    foreman.assert_kept(&journal);
    let mut conductor = Conductor::default();
    two_flows(&mut conductor);
    conductor.write(&journal);
    conductor.assert_kept(&journal);
    let report = journal.check().unwrap();
    assert_eq!((report.schema, report.damage), (10, Vec::new()));
}
