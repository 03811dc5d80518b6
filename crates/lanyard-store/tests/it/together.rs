//! Events of sessions and records in one batch: one transaction, one order of changes, all of it or nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lanyard_core::task::{MailTo, TaskEvent};
use lanyard_store::{AppendError, Batch, Failpoints, SqliteJournal, SqliteOptions, Upkeep};

use crate::conductor::{self, Conductor};
use crate::foreman::{Foreman, plain};
use crate::kit::{Store, Teller, at, on_every_journal, open, options};
use crate::notifications::made;
use crate::sqlite::crash_image;

on_every_journal! {
    records_are_there_with_the_events_of_their_batch
    a_contradiction_in_either_part_drops_both
}

/// Tells of sessions, tasks, mail and flows.
#[derive(Clone, Default)]
struct House {
    teller: Teller,
    foreman: Foreman,
    conductor: Conductor,
}

impl House {
    /// A session, a task and a flow, in one batch.
    fn built(store: &dyn Store) -> Self {
        let mut house = Self::default();
        house.teller.plain();
        house.foreman.create(plain("one"));
        house.conductor.create(conductor::plain("/w/one.md"));
        store.append(&house.batch()).unwrap();
        house
    }

    /// Something new of each.
    fn go_on(&mut self) {
        let (session, task) = (self.teller.ids[0], *self.foreman.tasks.keys().next().unwrap());
        let flow = *self.conductor.flows.keys().next().unwrap();
        self.teller.start_turn(session);
        self.teller.say(session, "at work");
        self.foreman.deploy(task, 7, 8);
        self.foreman.push(task, TaskEvent::Started {});
        self.foreman.send(MailTo::Session(session), "begun");
        self.conductor.lease(flow);
    }

    fn batch(&mut self) -> Batch {
        let mut batch = self.teller.batch();
        batch.records = self.foreman.batch().records().unwrap();
        batch.records.append(self.conductor.batch().records().unwrap());
        batch
    }

    fn assert_kept(&self, store: &dyn Store) {
        self.teller.assert_kept(store);
        self.foreman.assert_kept(store);
        self.conductor.assert_kept(store);
    }
}

/// S4-B06: a session's event and what becomes of a task with it are one commit.
fn records_are_there_with_the_events_of_their_batch(store: &dyn Store) {
    let mut house = House::built(store);
    house.assert_kept(store);
    house.go_on();
    let batch = house.batch();
    assert_eq!(store.contradiction(&batch.records).unwrap(), None);
    store.append(&batch).unwrap();
    house.assert_kept(store);
    assert!(store.contradiction(&batch.records).unwrap().is_some(), "they are written already");
    assert_eq!(store.check().unwrap().damage, []);
}

/// S4-B06.
fn a_contradiction_in_either_part_drops_both(store: &dyn Store) {
    let mut house = House::built(store);
    let kept = house.clone();
    house.go_on();
    let good = house.clone().batch();
    let refuse = |batch: &Batch, what: &str| {
        let refused = store.append(batch);
        assert!(matches!(refused, Err(AppendError::Contradiction(_))), "{what}: {refused:?}");
        kept.assert_kept(store);
    };
    let mut gap = house.clone().batch();
    gap.records.entries.remove(0);
    refuse(&gap, "a gap in the log of a task");
    let mut unborn = house.clone().batch();
    unborn.records.rows.clear();
    refuse(&unborn, "events without their row");
    let mut early = house.clone().batch();
    early.entries.remove(0);
    refuse(&early, "a gap in the log of a session");
    let told = lanyard_store::NotificationBatch {
        notifications: vec![made(1, "a", 1), made(2, "a", 2)],
        ..Default::default()
    };
    let mut twice = house.clone().batch();
    twice.records.append(store.notification_records(&told).unwrap());
    refuse(&twice, "two notifications of one key");
    assert_eq!(store.last_notification_change().unwrap(), 0);
    store.append(&good).unwrap();
    house.assert_kept(store);
    assert_eq!(store.latest_at().unwrap(), Some(at(house.teller.now)));
}

/// S4-B06: the events of sessions and the records are on disk together or not at all, wherever the process ends.
#[test]
fn a_crash_leaves_both_parts_of_a_batch_or_neither() {
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
        let mut house = House::built(&journal);
        let before = house.clone();
        house.go_on();
        armed.store(true, Ordering::SeqCst);
        lanyard_store::Journal::append(&journal, &house.batch()).unwrap();
        let image = open(left.lock().unwrap().as_ref().unwrap());
        let there = if kept { &house } else { &before };
        there.assert_kept(&image);
        assert_eq!(image.check().unwrap().damage, []);
        house.assert_kept(&journal);
    }
}
