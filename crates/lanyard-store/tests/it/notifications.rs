//! Counts and notifications: kept by the minute and by key, in one transaction with what they tell of.

use lanyard_core::continuity::{Counter, Tally, slot_of};
use lanyard_core::notification::{
    DeliveryState, NewNotification, Notification, NotificationDelivery, NotificationKind, NotificationStatus,
    Severity,
};
use lanyard_core::{DeliveryId, NotificationId, SessionId};
use lanyard_store::{
    AppendError, Batch, DeliveryFilter, Durability, NotificationBatch, NotificationFilter, NotificationOrder,
    Notifications, Tallies, Upkeep,
};

use crate::kit::{Store, Teller, WriteRecords, at, on_every_journal, open};

on_every_journal! {
    counts_are_added_up_by_the_minute_and_for_all_time
    what_a_batch_counts_for_is_written_with_it_or_not_at_all
    a_notification_is_kept_as_it_is_and_found_by_its_key_while_it_lasts
    of_one_key_one_notification_lasts
    notifications_are_listed_by_age_and_by_change
    deliveries_are_found_when_they_are_due
    what_is_removed_takes_its_deliveries_and_not_the_number_of_its_change
}

const NOW: i64 = 1_794_729_600_000;

fn tally(counter: Counter, times: u64) -> Tally {
    [(counter, times)].into_iter().collect()
}

pub(crate) fn made(number: u128, key: &str, change: u64) -> Notification {
    let new = NewNotification {
        kind: NotificationKind::GateWaiting,
        severity: Severity::Warning,
        key: key.to_owned(),
        title: format!("number {number}"),
        text: "é".to_owned(),
        session: Some(SessionId::from_u128(number % 2)),
        subject: None,
        lasts: true,
    };
    new.made(NotificationId::from_u128(number), at(NOW), change)
}

fn batch(notifications: Vec<Notification>) -> NotificationBatch {
    NotificationBatch { notifications, ..NotificationBatch::default() }
}

/// S3-34, S3-B11.
fn counts_are_added_up_by_the_minute_and_for_all_time(store: &dyn Store) {
    let (first, later) = (at(NOW), at(NOW + 60_000));
    store.add_tally(first, &tally(Counter::AttachFailed, 2), Durability::Written).unwrap();
    store.add_tally(first, &tally(Counter::AttachFailed, 1), Durability::Synced).unwrap();
    store.add_tally(later, &tally(Counter::AttachFailed, 4), Durability::Written).unwrap();
    let slot = slot_of(first);
    let mut expected = vec![
        (0, Counter::AttachFailed, 7),
        (slot, Counter::AttachFailed, 3),
        (slot + 1, Counter::AttachFailed, 4),
    ];
    assert_eq!(store.tallies().unwrap(), expected);
    assert_eq!(store.forget_tallies(slot + 1).unwrap(), 1);
    expected.remove(1);
    assert_eq!(store.tallies().unwrap(), expected);
    assert_eq!(store.check().unwrap().damage, []);
}

/// Things that have an event in a log are counted exactly.
fn what_a_batch_counts_for_is_written_with_it_or_not_at_all(store: &dyn Store) {
    let mut teller = Teller::default();
    teller.plain();
    let counted = Some((at(NOW), tally(Counter::SessionsCreated, 1)));
    let good = Batch { tally: counted, ..teller.batch() };
    store.append(&good).unwrap();
    assert!(store.append(&good).is_err(), "the same numbers again");
    assert_eq!(store.tallies().unwrap()[0], (0, Counter::SessionsCreated, 1));
    store.rebuild().unwrap();
    assert_eq!(store.tallies().unwrap()[0], (0, Counter::SessionsCreated, 1));
}

/// S3-B12.
fn a_notification_is_kept_as_it_is_and_found_by_its_key_while_it_lasts(store: &dyn Store) {
    let held = made(1, "gate:1", 1);
    assert_eq!(store.lasting("gate:1").unwrap(), None);
    store.write_notifications(&batch(vec![held.clone()])).unwrap();
    assert_eq!(store.notification(held.id).unwrap(), Some(held.clone()));
    assert_eq!(store.lasting("gate:1").unwrap(), Some(held.clone()));
    let over = Notification { over_at: Some(at(NOW + 1)), change: 2, ..held };
    store.write_notifications(&batch(vec![over.clone()])).unwrap();
    assert_eq!(store.lasting("gate:1").unwrap(), None);
    assert_eq!(store.notification(over.id).unwrap(), Some(over));
    let counts = store.notification_counts().unwrap();
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 1);
    assert_eq!(counts[0], (NotificationStatus::New, 1));
    assert_eq!(store.check().unwrap().damage, []);
}

/// S3-38: an active alert is not repeated.
fn of_one_key_one_notification_lasts(store: &dyn Store) {
    store.write_notifications(&batch(vec![made(1, "a", 1)])).unwrap();
    let twice = store.write_notifications(&batch(vec![made(2, "a", 2)]));
    assert!(matches!(twice, Err(AppendError::Contradiction(_))));
    let both = store.write_notifications(&batch(vec![made(3, "b", 2), made(4, "b", 3)]));
    assert!(matches!(both, Err(AppendError::Contradiction(_))));
    assert_eq!(store.lasting("b").unwrap(), None, "nothing of it is written");
    // What ends makes room for what begins, in one batch.
    let over = Notification { over_at: Some(at(NOW)), ..made(1, "a", 2) };
    store.write_notifications(&batch(vec![made(2, "a", 3), over])).unwrap();
    assert_eq!(store.lasting("a").unwrap().unwrap().id, NotificationId::from_u128(2));
    assert_eq!(store.failure(), None);
}

fn notifications_are_listed_by_age_and_by_change(store: &dyn Store) {
    let mut all: Vec<_> = (1..=5).map(|n| made(n, &format!("k{n}"), n as u64)).collect();
    all[1] = Notification { status: NotificationStatus::Dismissed, change: 6, ..all[1].clone() };
    all[3].severity = Severity::Critical;
    store.write_notifications(&batch(all)).unwrap();
    let list = |filter: NotificationFilter, order, limit| -> Vec<u128> {
        let found = store.notifications(&filter, order, limit).unwrap();
        found.iter().map(|held| held.id.as_u128()).collect()
    };
    let newest = NotificationOrder::Newest { before: None };
    let any = NotificationFilter::default;
    assert_eq!(list(any(), newest, 9), [5, 4, 3, 2, 1]);
    assert_eq!(
        list(any(), NotificationOrder::Newest { before: Some(NotificationId::from_u128(4)) }, 2),
        [3, 2]
    );
    assert_eq!(list(any(), NotificationOrder::Changed { after: 3 }, 9), [4, 5, 2]);
    assert_eq!(list(NotificationFilter { open: Some(true), ..any() }, newest, 9), [5, 4, 3, 1]);
    assert_eq!(list(NotificationFilter { severity: Some(Severity::Critical), ..any() }, newest, 9), [4]);
    let session = Some(SessionId::from_u128(0));
    assert_eq!(list(NotificationFilter { session, ..any() }, newest, 9), [4, 2]);
    assert_eq!(list(NotificationFilter { key: Some("k3".into()), ..any() }, newest, 9), [3]);
    assert_eq!(store.last_notification_change().unwrap(), 6);
}

fn deliveries_are_found_when_they_are_due(store: &dyn Store) {
    let held = made(1, "a", 1);
    let delivery = |number, to: &str, due| {
        let new = NotificationDelivery::new(DeliveryId::from_u128(number), held.id, to.to_owned(), at(NOW));
        new.put_off(at(due))
    };
    let first = delivery(1, "x", NOW + 10);
    let deliveries = vec![first.clone(), delivery(2, "y", NOW + 20), delivery(3, "x", NOW + 30)];
    let batch = NotificationBatch { deliveries, ..batch(vec![held.clone()]) };
    store.write_notifications(&batch).unwrap();
    let due = |by, to: Option<&str>| {
        let filter =
            DeliveryFilter { due_by: Some(at(by)), to: to.map(Into::into), ..DeliveryFilter::default() };
        store.deliveries(&filter, 9).unwrap().iter().map(|held| held.id.as_u128()).collect::<Vec<_>>()
    };
    assert_eq!(due(NOW, None), [0_u128; 0]);
    assert_eq!(due(NOW + 20, None), [1, 2]);
    assert_eq!(due(NOW + 99, Some("x")), [1, 3]);
    let done = first.succeeded(at(NOW + 11));
    assert_eq!(done.state, DeliveryState::Delivered { at: at(NOW + 11) });
    let settled = NotificationBatch { deliveries: vec![done.clone()], ..NotificationBatch::default() };
    store.write_notifications(&settled).unwrap();
    assert_eq!(due(NOW + 99, Some("x")), [3]);
    assert_eq!(store.delivery_counts().unwrap(), (2, 0));
    let of = DeliveryFilter { notification: Some(held.id), ..DeliveryFilter::default() };
    assert_eq!(store.deliveries(&of, 9).unwrap()[0], done);
}

fn what_is_removed_takes_its_deliveries_and_not_the_number_of_its_change(store: &dyn Store) {
    let held = made(1, "a", 7);
    let delivery = NotificationDelivery::new(DeliveryId::from_u128(1), held.id, "x".to_owned(), at(NOW));
    let both = NotificationBatch { deliveries: vec![delivery], ..batch(vec![held.clone()]) };
    store.write_notifications(&both).unwrap();
    let gone = NotificationBatch { removed: vec![held.id], ..NotificationBatch::default() };
    store.write_notifications(&gone).unwrap();
    assert_eq!(store.notification(held.id).unwrap(), None);
    assert_eq!(store.delivery_counts().unwrap(), (0, 0));
    assert_eq!(store.last_notification_change().unwrap(), 7);
}

#[test]
fn they_are_there_after_a_restart_and_damage_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (good, bad) = (made(1, "good", 1), made(2, "bad", 2));
    {
        let journal = open(&path);
        journal.write_notifications(&batch(vec![good.clone(), bad.clone()])).unwrap();
        journal.add_tally(at(NOW), &tally(Counter::BusyRejections, 3), Durability::Written).unwrap();
    }
    let conn = rusqlite::Connection::open(&path).unwrap();
    let bad_row = "UPDATE record_rows SET as_of = 1 WHERE id = (SELECT max(id) FROM record_rows)";
    conn.execute(bad_row, []).unwrap();
    conn.execute("UPDATE tallies SET times = 99 WHERE slot > 0", []).unwrap();
    drop(conn);
    let journal = open(&path);
    assert_eq!(journal.notification(good.id).unwrap(), Some(good));
    assert!(journal.notification(bad.id).is_err());
    let listed =
        journal.notifications(&NotificationFilter::default(), NotificationOrder::Newest { before: None }, 9);
    assert_eq!(listed.unwrap().len(), 1);
    assert_eq!(journal.tallies().unwrap(), [(0, Counter::BusyRejections, 3)]);
    let damage = journal.check().unwrap().damage;
    let what: Vec<&str> = damage.iter().map(|damage| damage.what.as_str()).collect();
    assert_eq!(what, ["a kept count is damaged", "a kept notification is damaged"]);
}
