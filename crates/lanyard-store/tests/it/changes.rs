//! Changes of records: one order for all kinds, by position.

use std::path::Path;
use std::sync::{Arc, Mutex};

use lanyard_core::task::{MailState, MailTo};
use lanyard_core::{FollowedKind, PlanId};
use lanyard_store::{
    ChangeFilter, ChangedBody, FollowedRef, NotificationBatch, PaperKey, Papers, RecordChange, RecordChanges,
    SqliteJournal, Upkeep,
};
use rusqlite::Connection;

use crate::conductor::{Conductor, plain};
use crate::foreman::{self, Foreman};
use crate::kit::{WriteRecords, at, open};
use crate::notifications::made;

const PLAN: PlanId = PlanId::from_u128(77);

fn plan() -> PaperKey {
    PaperKey { kind: "plan".to_owned(), workspace: "/w".to_owned(), key: PLAN.to_string() }
}

/// Everything that matches, a few at a time.
fn all(journal: &SqliteJournal, filter: &ChangeFilter) -> Vec<RecordChange> {
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = journal.record_changes(filter, after, 3).unwrap();
        assert!(page.changes.iter().all(|change| change.position > after && change.position <= page.through));
        assert!(page.through > after || !page.more, "a page gets on");
        after = page.through;
        found.extend(page.changes);
        if !page.more {
            assert_eq!(after, journal.last_change().unwrap());
            return found;
        }
    }
}

/// Kind, number and whether it is whole, in order.
fn told(changes: &[RecordChange]) -> Vec<(&'static str, u64, bool)> {
    assert!(changes.is_sorted_by(|one, two| one.position < two.position));
    let told = |change: &RecordChange| {
        (change.of.kind.as_str(), change.seq, matches!(change.body, ChangedBody::Whole(_)))
    };
    changes.iter().map(told).collect()
}

/// A task with two messages of which the first was settled, a flow, a notification, and a plan that was written twice.
fn story(path: &Path) -> (SqliteJournal, Foreman, Conductor) {
    let (mut foreman, mut conductor) = (Foreman::default(), Conductor::default());
    let journal = open(path);
    let task = foreman.create(lanyard_core::task::TaskCreated { plan: Some(PLAN), ..foreman::plain("one") });
    let first = foreman.send(MailTo::Task(task), "first");
    foreman.send(MailTo::Task(task), "second");
    foreman.write(&journal);
    journal.put_paper(&plan(), 0, at(1), r#"{"title":"a"}"#).unwrap();
    conductor.create(plain("/w/1.md"));
    conductor.write(&journal);
    foreman.settle(
        first,
        MailState::Acknowledged { session: None, acknowledged_at: at(9), how: "read".to_owned() },
    );
    foreman.work_at(task, 1);
    foreman.write(&journal);
    let notifications = vec![made(1, "a", 3)];
    journal.write_notifications(&NotificationBatch { notifications, ..Default::default() }).unwrap();
    journal.put_paper(&plan(), 1, at(2), r#"{"title":"b"}"#).unwrap();
    (journal, foreman, conductor)
}

#[test]
fn changes_of_all_kinds_have_one_order() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, foreman, _) = story(&folder.path().join("journal.db"));
    let log = foreman.logs.values().map(Vec::len).sum::<usize>() as u64;
    let changes = all(&journal, &ChangeFilter::default());
    let mut expected = vec![("task", 1, true), ("mail", 0, true), ("flow", 1, true)];
    expected.extend((2..=log).map(|seq| ("task", seq, true)));
    expected.extend([("mail", 0, true), ("notification", 0, true), ("plan", 0, true)]);
    assert_eq!(told(&changes), expected, "of a record without a log only the last change is kept");
    let last = changes.last().unwrap();
    assert_eq!(last.body, ChangedBody::Whole(br#"{"title":"b"}"#.to_vec()));
    assert_eq!(journal.check().unwrap().damage, []);

    let kinds = ChangeFilter { kinds: vec![FollowedKind::Flow, FollowedKind::Plan], ..Default::default() };
    assert_eq!(told(&all(&journal, &kinds)), [("flow", 1, true), ("plan", 0, true)]);
    let task = foreman.tasks.keys().next().unwrap();
    let of = FollowedRef { kind: FollowedKind::Task, id: task.as_u128() };
    assert_eq!(FollowedRef::parse(&of.to_string()), Some(of));
    let record = ChangeFilter { records: vec![of], ..Default::default() };
    assert_eq!(told(&all(&journal, &record)), (1..=log).map(|seq| ("task", seq, true)).collect::<Vec<_>>());
    let plan = ChangeFilter { plan: Some(PLAN), ..Default::default() };
    assert_eq!(all(&journal, &plan).len() as u64, log + 1, "the plan and its task");
    let other = ChangeFilter { plan: Some(PlanId::from_u128(78)), ..Default::default() };
    assert_eq!(all(&journal, &other), []);
}

#[test]
fn what_is_removed_is_a_change_and_no_position_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, ..) = story(&path);
    let before = journal.last_change().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    journal.tell_changes(Box::new(move |last| listener.lock().unwrap().push(last)));
    let removed = vec![made(1, "a", 3).id];
    journal.write_notifications(&NotificationBatch { removed, ..Default::default() }).unwrap();
    assert!(journal.remove_paper(&plan()).unwrap());
    assert!(!journal.remove_paper(&plan()).unwrap());
    assert_eq!(
        *heard.lock().unwrap(),
        [before + 1, before + 2],
        "told after each commit that changed something"
    );
    let kinds = vec![FollowedKind::Notification, FollowedKind::Plan];
    let changes = all(&journal, &ChangeFilter { kinds, ..Default::default() });
    assert_eq!(told(&changes), [("notification", 0, false), ("plan", 0, false)]);
    assert!(changes.iter().all(|change| change.body == ChangedBody::Removed));
    drop(journal);
    let journal = open(&path);
    assert_eq!(journal.last_change().unwrap(), before + 2);
    journal.put_paper(&plan(), 0, at(3), "{}").unwrap();
    assert_eq!(journal.last_change().unwrap(), before + 3);
    assert_eq!(journal.check().unwrap().damage, []);
}

/// A journal of schema 11 has no positions: all records get theirs when it is opened, events in their order.
#[test]
fn a_journal_of_schema_11_is_brought_forward() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, foreman, conductor) = story(&path);
    let before = all(&journal, &ChangeFilter::default());
    drop(journal);
    let older = Connection::open(&path).unwrap();
    older.execute_batch("DROP TABLE record_changes; PRAGMA user_version = 11").unwrap();
    drop(older);
    let report = SqliteJournal::verify(&path).unwrap();
    assert_eq!((report.schema, report.damage), (11, vec![]), "a backup is checked before it is restored");
    let journal = open(&path);
    let report = journal.check().unwrap();
    assert_eq!((report.schema, report.structure, report.damage), (13, vec![], vec![]));
    foreman.assert_kept(&journal);
    conductor.assert_kept(&journal);
    let after = all(&journal, &ChangeFilter::default());
    let sorted = |changes: &[RecordChange]| {
        let mut told = told(changes);
        told.sort_unstable();
        told
    };
    assert_eq!(sorted(&after), sorted(&before));
    let events = |changes: &[RecordChange]| -> Vec<(&'static str, u64, bool)> {
        told(changes).into_iter().filter(|(_, seq, _)| *seq > 0).collect()
    };
    assert_eq!(events(&after), events(&before), "events keep the order in which they came");
}

#[test]
fn lost_positions_are_reported_and_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, ..) = story(&path);
    let count = all(&journal, &ChangeFilter::default()).len();
    drop(journal);
    let lost = "DELETE FROM record_changes WHERE kind IN ('plan', 'mail', 'flow')";
    Connection::open(&path).unwrap().execute_batch(lost).unwrap();
    let journal = open(&path);
    let damage = journal.check().unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].what, "4 changes of records have no position");
    journal.rebuild().unwrap();
    assert_eq!(journal.check().unwrap().damage, []);
    assert_eq!(all(&journal, &ChangeFilter::default()).len(), count);
}

#[test]
fn a_damaged_event_is_shown_as_one_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, ..) = story(&path);
    drop(journal);
    let damage = "UPDATE record_events SET crc = 0 WHERE kind = 'task' AND seq = 2; \
                  UPDATE record_rows SET crc = 0 WHERE kind = 'notification'";
    Connection::open(&path).unwrap().execute_batch(damage).unwrap();
    let changes = all(&open(&path), &ChangeFilter::default());
    let damaged: Vec<_> = changes.iter().filter(|change| change.body == ChangedBody::Damaged).collect();
    assert_eq!(damaged.len(), 2);
    assert_eq!((damaged[0].of.kind, damaged[0].seq), (FollowedKind::Task, 2));
    assert_eq!(damaged[1].of.kind, FollowedKind::Notification);
    assert!(changes.len() > 6);
}

/// A filter that matches little reads the table a piece at a time.
#[test]
fn a_page_looks_at_a_bounded_piece_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (journal, ..) = story(&path);
    drop(journal);
    let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25000) \
                INSERT INTO record_changes (kind, id, seq) SELECT 'mail', zeroblob(16), 0 FROM n";
    Connection::open(&path).unwrap().execute_batch(many).unwrap();
    let journal = open(&path);
    let plans = ChangeFilter { kinds: vec![FollowedKind::Plan], ..Default::default() };
    let page = journal.record_changes(&plans, 0, 100).unwrap();
    assert_eq!((page.changes.len(), page.through, page.more), (1, 10_000, true));
    assert_eq!(all(&journal, &plans).len(), 1);
}
