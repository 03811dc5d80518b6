//! Sums of usage: written with the events they come from, made again from the log, and left without names by a purge.

use lanyard_core::insight::{InsightCounts, InsightKey, Quarter, quarter_of};
use lanyard_core::session::{ChangeEvent, NewSession, TranscriptEvent, TurnEvent, TurnOutcome};
use lanyard_core::{SessionId, TurnId};
use lanyard_store::{PurgeStep, Upkeep};
use rusqlite::Connection;

use crate::kit::{Store, Teller, at, on_every_journal, open};

on_every_journal! {
    what_a_batch_counts_for_is_there_with_it_and_a_rebuild_makes_the_same
    a_range_has_what_lies_in_it
    a_family_is_its_root_and_all_below
    a_purge_leaves_sums_without_session_and_folder
}

fn used(teller: &mut Teller, id: SessionId, cost_micros: u64) {
    teller.push(
        id,
        TranscriptEvent::UsageReported {
            input_tokens: 10,
            output_tokens: 2,
            context_tokens: None,
            cost_micros,
        },
    );
}

fn worker(folder: &str) -> NewSession {
    NewSession { agent: Some("claude".into()), workspace: Some(folder.into()), ..NewSession::default() }
}

/// A turn that costs so much.
fn turn(teller: &mut Teller, id: SessionId, cost_micros: u64) {
    let started = teller.started();
    let TurnEvent::Started { turn, .. } = started else { panic!("a turn starts") };
    teller.push(id, started);
    used(teller, id, cost_micros);
    finish(teller, id, turn);
}

fn finish(teller: &mut Teller, id: SessionId, turn: TurnId) {
    let (outcome, reason, review) = (TurnOutcome::Completed, None, false);
    teller.push(id, TurnEvent::Finished { turn, outcome, reason, review });
}

fn all(store: &dyn Store) -> Vec<(Quarter, InsightKey, InsightCounts)> {
    between(store, 0, Quarter::MAX / 2)
}

fn between(store: &dyn Store, from: Quarter, to: Quarter) -> Vec<(Quarter, InsightKey, InsightCounts)> {
    let mut found = Vec::new();
    store.insight(from, to, &mut |quarter, key, counts| found.push((quarter, key, counts))).unwrap();
    found
}

fn what_a_batch_counts_for_is_there_with_it_and_a_rebuild_makes_the_same(store: &dyn Store) {
    let mut teller = Teller::default();
    let (one, two) = (teller.new_session(&worker("/w/one")), teller.new_session(&worker("/w/two")));
    for id in [one, two, one] {
        turn(&mut teller, id, 5_000);
        teller.append(store);
    }
    let found = all(store);
    let costs: Vec<_> =
        found.iter().map(|(_, key, sums)| (key.folder.as_str(), sums.cost_micros, sums.turns)).collect();
    assert_eq!(costs, [("/w/one", 10_000, 2), ("/w/two", 5_000, 1)]);
    assert_eq!((found[0].1.agent.as_str(), found[0].2.input_tokens), ("claude", 20));
    assert_eq!(store.check().unwrap().damage, []);
    store.rebuild().unwrap();
    assert_eq!(all(store), found);
    assert_eq!(store.spent_since(found[0].0).unwrap(), 15_000);
    assert_eq!(store.spent_since(found[0].0 + 1).unwrap(), 0);
}

fn a_range_has_what_lies_in_it(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.new_session(&worker("/w"));
    let first = quarter_of(at(teller.now));
    for cost in [1, 2, 3] {
        used(&mut teller, id, cost);
        teller.append(store);
        teller.now += 15 * 60_000;
    }
    let cost =
        |from, to| between(store, from, to).iter().map(|(_, _, sums)| sums.cost_micros).collect::<Vec<_>>();
    assert_eq!(cost(first, first + 3), [1, 2, 3]);
    assert_eq!(cost(first + 1, first + 2), [2]);
    assert_eq!(cost(first + 3, first + 9), [] as [u64; 0]);
    assert_eq!(store.spent_since(first + 1).unwrap(), 5);
}

fn a_family_is_its_root_and_all_below(store: &dyn Store) {
    let mut teller = Teller::default();
    let root = teller.new_session(&worker("/w"));
    let child = teller.new_child(&worker("/w"), Some(root));
    let grandchild = teller.new_child(&worker("/w"), Some(child));
    let other = teller.new_session(&worker("/w"));
    for (id, cost) in [(root, 1), (child, 20), (grandchild, 300), (other, 4_000)] {
        used(&mut teller, id, cost);
    }
    teller.append(store);
    let spent = |id| store.spent_by_family(id).unwrap();
    assert_eq!([spent(root), spent(child), spent(grandchild), spent(other)], [321, 320, 300, 4_000]);
    assert_eq!(spent(SessionId::from_u128(7)), 0);
}

fn a_purge_leaves_sums_without_session_and_folder(store: &dyn Store) {
    let mut teller = Teller::default();
    let (gone, kept) = (teller.new_session(&worker("/w/secret")), teller.new_session(&worker("/w/kept")));
    turn(&mut teller, gone, 70);
    turn(&mut teller, kept, 5);
    teller.push(gone, ChangeEvent::Deleted { reason: None });
    teller.append(store);
    while !matches!(store.purge(gone, 100).unwrap(), PurgeStep::Done) {}
    let check = || {
        let found = all(store);
        let mut sums: Vec<_> =
            found.iter().map(|(_, key, sums)| (key.folder.as_str(), sums.cost_micros, sums.turns)).collect();
        sums.sort_unstable();
        assert_eq!(sums, [("", 70, 1), ("/w/kept", 5, 1)]);
        assert_eq!(store.check().unwrap().damage, []);
    };
    check();
    store.rebuild().unwrap();
    check();
    assert_eq!(store.spent_by_family(gone).unwrap(), 0);
}

/// A journal of the schema before has its sums made from its logs.
#[test]
fn an_older_journal_gets_its_sums_from_its_logs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    {
        let journal = open(&path);
        let id = teller.new_session(&worker("/w"));
        turn(&mut teller, id, 9);
        teller.append(&journal);
    }
    let older = Connection::open(&path).unwrap();
    older.execute_batch("DROP TABLE insight; PRAGMA user_version = 12").unwrap();
    drop(older);
    let journal = open(&path);
    assert_eq!(all(&journal).iter().map(|(_, _, sums)| sums.cost_micros).collect::<Vec<_>>(), [9]);
    assert_eq!(journal.check().unwrap().damage, []);
}

/// A wrong number is found, and not shown.
#[test]
fn a_damaged_sum_is_reported_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    {
        let journal = open(&path);
        let id = teller.new_session(&worker("/w"));
        turn(&mut teller, id, 9);
        teller.append(&journal);
    }
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE insight SET cost = 1000", []).unwrap();
    drop(conn);
    let journal = open(&path);
    assert_eq!(all(&journal), []);
    let damage: Vec<String> = journal.check().unwrap().damage.into_iter().map(|one| one.what).collect();
    assert!(damage.iter().any(|what| what.contains("a sum of usage is damaged")), "{damage:?}");
    journal.rebuild().unwrap();
    assert_eq!(all(&journal).len(), 1);
    assert_eq!(journal.check().unwrap().damage, []);
}
