//! Purging deleted sessions: nothing of them is left but a tombstone, and nothing of anybody else is missing.

use std::path::Path;
use std::sync::Arc;

use lanyard_core::journal::PurgeStage;
use lanyard_core::session::{ChangeEvent, NewSession};
use lanyard_core::{Actor, Address, SessionId};
use lanyard_store::{
    AppendError, Batch, EventEntry, Filter, PurgeStep, Purges, SqliteJournal, Upkeep, WipeStep,
};

use crate::kit::{Store, Teller, at, listed, on_every_journal, open, options};
use crate::sqlite::crash_image;

on_every_journal! {
    fnd_k9_a_purged_session_leaves_a_tombstone_and_nothing_else
    fnd_k9_a_session_that_is_not_deleted_is_not_purged
    fnd_k9_others_are_whole_while_a_session_is_purged_and_after
    fnd_k9_a_rebuild_knows_what_was_purged
}

const SECRET: &str = "correct-horse-battery-staple";

/// Purges to the end, so many events at a time.
fn purge(store: &dyn Store, session: SessionId, limit: usize) -> u32 {
    for steps in 1..100_000 {
        match store.purge(session, limit).unwrap() {
            PurgeStep::Going { .. } => {}
            PurgeStep::Done => return steps,
            other @ (PurgeStep::Unknown | PurgeStep::NotDeleted) => panic!("{other:?}"),
        }
    }
    panic!("the purge does not come to an end")
}

fn wipe(store: &dyn Store) {
    for _ in 0..10_000 {
        if store.wipe().unwrap() == WipeStep::Done {
            return;
        }
    }
    panic!("the wiping does not come to an end")
}

/// A session with a secret in everything that is kept of it, deleted.
fn with_secrets(teller: &mut Teller, store: &dyn Store) -> SessionId {
    let new = NewSession {
        title: Some(format!("title {SECRET}")),
        purpose: Some(format!("purpose {SECRET}")),
        aliases: vec![format!("alias-{SECRET}")],
        ..NewSession::default()
    };
    let id = teller.new_session(&new);
    teller.append(store);
    for round in 0..40 {
        teller.start_turn(id);
        teller.say(id, &format!("{SECRET} {}", "long ".repeat(round * 40)));
        teller.append(store);
        teller.finish_turn(id);
        teller.append(store);
    }
    teller.push(id, ChangeEvent::Deleted { reason: Some("made by mistake".to_owned()) });
    teller.append(store);
    id
}

/// FND-K9.
fn fnd_k9_a_purged_session_leaves_a_tombstone_and_nothing_else(store: &dyn Store) {
    let mut teller = Teller::default();
    teller.plain();
    let id = with_secrets(&mut teller, store);
    let log = teller.logs.remove(&id).unwrap();
    assert_eq!(store.unpurged(10).unwrap(), [id]);
    assert_eq!(store.tombstone(id).unwrap(), None);
    purge(store, id, 7);
    assert_eq!(store.unpurged(10).unwrap(), []);
    let left = store.tombstone(id).unwrap().unwrap();
    assert_eq!((left.session, left.events, left.stage), (id, log.len() as u64, PurgeStage::Purged));
    assert_eq!((left.deleted_by, left.reason.as_deref()), (Actor::operator("alex"), Some("made by mistake")));
    wipe(store);
    assert_eq!(store.tombstone(id).unwrap().unwrap().stage, PurgeStage::Wiped);
    assert_eq!(store.tombstones().unwrap(), (1, 0));
    assert!(store.load(id).unwrap().is_none());
    let page = store.events(id, 0, 100).unwrap();
    assert!(page.events.is_empty() && page.head == 0);
    assert!(store.turns(id, None, 10).unwrap().turns.is_empty());
    let found = store.find(&Address::of(id.to_string())).unwrap();
    assert!(found.len() == 1 && found[0].deleted, "an id tells a deleted session from an unknown one");
    assert!(store.find(&Address::of(format!("alias-{SECRET}"))).unwrap().is_empty());
    assert!(!listed(store, &Filter::default()).contains(&id));
    assert_eq!(store.purge(id, 7).unwrap(), PurgeStep::Done, "it can be repeated");
    let entry = EventEntry { session: id, seq: 1, at: at(1), body: log[0].clone() };
    let batch = Batch { entries: vec![entry], ..Batch::default() };
    assert!(matches!(store.append(&batch), Err(AppendError::Contradiction(_))), "nothing follows a purge");
    let report = store.check().unwrap();
    assert_eq!((report.damage, report.structure, report.sessions), (Vec::new(), Vec::new(), 1));
}

fn fnd_k9_a_session_that_is_not_deleted_is_not_purged(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.append(store);
    assert_eq!(store.purge(id, 10).unwrap(), PurgeStep::NotDeleted);
    assert_eq!(store.purge(SessionId::from_u128(7), 10).unwrap(), PurgeStep::Unknown);
    assert_eq!(store.wipe().unwrap(), WipeStep::Done);
    teller.assert_kept(store);
}

/// FND-K9. The logs of others are read and written between the steps.
fn fnd_k9_others_are_whole_while_a_session_is_purged_and_after(store: &dyn Store) {
    let mut teller = Teller::default();
    let mut rng = fastrand::Rng::with_seed(9);
    let ids: Vec<SessionId> = (0..12).map(|_| teller.plain()).collect();
    teller.append(store);
    for _ in 0..60 {
        for _ in 0..rng.usize(1..40) {
            teller.say(ids[rng.usize(0..12)], &"words ".repeat(rng.usize(1..400)));
        }
        teller.append(store);
    }
    for &id in &ids[..6] {
        teller.delete(id);
        teller.append(store);
        teller.logs.remove(&id);
        while store.purge(id, 50).unwrap() != PurgeStep::Done {
            teller.say(ids[6 + rng.usize(0..6)], "said meanwhile");
            teller.append(store);
        }
        let report = store.check().unwrap();
        assert_eq!((report.damage, report.structure), (Vec::new(), Vec::new()));
        teller.assert_kept(store);
    }
    wipe(store);
    teller.assert_kept(store);
    let last = teller.plain();
    teller.say(last, "after all of it");
    teller.append(store);
    teller.assert_kept(store);
    assert_eq!(store.check().unwrap().damage, []);
}

/// FND-K9.
fn fnd_k9_a_rebuild_knows_what_was_purged(store: &dyn Store) {
    let mut teller = Teller::default();
    let kept = teller.plain();
    let gone = with_secrets(&mut teller, store);
    let part = with_part(&mut teller, store);
    purge(store, gone, 10);
    assert!(matches!(store.purge(part, 5).unwrap(), PurgeStep::Going { .. }));
    assert!(matches!(store.purge(part, 5).unwrap(), PurgeStep::Going { .. }));
    teller.logs.retain(|id, _| *id == kept);
    assert_eq!(store.rebuild().unwrap(), 1);
    teller.assert_kept(store);
    assert!(store.tombstone(gone).unwrap().is_some());
    assert_eq!(store.unpurged(10).unwrap(), [part]);
    purge(store, part, 5);
    let report = store.check().unwrap();
    assert_eq!((report.damage, report.structure), (Vec::new(), Vec::new()));
    teller.assert_kept(store);
}

/// A deleted session of which part is purged later.
fn with_part(teller: &mut Teller, store: &dyn Store) -> SessionId {
    let id = teller.plain();
    for _ in 0..200 {
        teller.say(id, "something");
    }
    teller.delete(id);
    teller.append(store);
    id
}

fn holds(path: &Path, text: &str) -> bool {
    let finder = memchr::memmem::Finder::new(text);
    ["", "-wal"].iter().any(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        std::fs::read(&name).is_ok_and(|bytes| finder.find(&bytes).is_some())
    })
}

/// FND-K9: neither the file nor its write-ahead log has a byte of it.
#[test]
fn fnd_k9_no_byte_of_a_purged_session_is_left_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    for _ in 0..30 {
        let id = teller.new_session(&NewSession { title: Some("x".repeat(300)), ..NewSession::default() });
        teller.say(id, "kept");
        teller.append(&journal);
    }
    let gone: Vec<SessionId> = (0..5)
        .map(|_| {
            // Each has the alias once the one before it is deleted.
            with_secrets(&mut teller, &journal)
        })
        .collect();
    assert!(holds(&path, SECRET));
    let before = journal.size().unwrap().total();
    for id in gone {
        purge(&journal, id, 64);
        teller.logs.remove(&id);
    }
    wipe(&journal);
    assert!(!holds(&path, SECRET), "the open files hold it");
    assert!(journal.size().unwrap().total() < before, "the files did not shrink");
    teller.assert_kept(&journal);
    drop(journal);
    assert!(!holds(&path, SECRET), "the closed file holds it");
    let journal = open(&path);
    teller.assert_kept(&journal);
    assert_eq!(journal.check().unwrap().damage, []);
}

/// FND-K9: the file as it is after any step opens, is whole, and the purge goes on there.
#[test]
fn fnd_k9_a_purge_goes_on_after_a_crash_at_any_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let mut teller = Teller::default();
    let kept = teller.plain();
    let gone = with_secrets(&mut teller, &journal);
    teller.logs.remove(&gone);
    // The last positions of the log are the purged session's: none of them may be given again.
    for step in 0.. {
        let other = tempfile::tempdir().unwrap();
        let copy = crash_image(&path, other.path());
        let image = open(&copy);
        let mut teller = teller.clone();
        assert_eq!(image.unpurged(10).unwrap(), [gone], "step {step}");
        teller.say(kept, "after the crash");
        teller.append(&image);
        teller.assert_kept(&image);
        assert_eq!(image.check().unwrap().damage, [], "step {step}");
        purge(&image, gone, 11);
        wipe(&image);
        assert!(!holds(&copy, SECRET), "step {step}");
        drop(image);
        let image = open(&copy);
        teller.assert_kept(&image);
        assert_eq!(image.check().unwrap().damage, [], "step {step}");
        if journal.purge(gone, 11).unwrap() == PurgeStep::Done {
            break;
        }
    }
}

/// FND-K9: a broken chain does not keep events in the file.
#[test]
fn fnd_k9_events_off_the_chain_are_purged_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let journal = open(&path);
    let kept = teller.plain();
    let gone = with_secrets(&mut teller, &journal);
    teller.say(kept, "kept");
    teller.append(&journal);
    drop(journal);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("UPDATE events SET prev = 1 WHERE sid = 2 AND seq = 30", []).unwrap();
    drop(raw);
    let journal = open(&path);
    purge(&journal, gone, 10);
    wipe(&journal);
    assert!(!holds(&path, SECRET));
    teller.logs.remove(&gone);
    teller.assert_kept(&journal);
    let report = journal.check().unwrap();
    assert_eq!((report.damage, report.structure), (Vec::new(), Vec::new()));
}

/// FND-K9: a lost row is damage, whatever was purged beside it.
#[test]
fn fnd_k9_a_lost_row_is_told_from_a_purged_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let journal = open(&path);
    let kept = teller.plain();
    let gone = with_secrets(&mut teller, &journal);
    for _ in 0..10 {
        teller.say(kept, "kept");
    }
    teller.append(&journal);
    purge(&journal, gone, 100);
    assert_eq!(journal.check().unwrap().damage, []);
    drop(journal);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("DELETE FROM events WHERE sid = 1 AND seq = 5", []).unwrap();
    drop(raw);
    let report = open(&path).check().unwrap();
    assert!(report.damage.iter().any(|damage| damage.what.contains("nothing from position")), "{report:?}");
}

/// FND-K9: the steps of a purge can be ended anywhere by the crash suite.
#[test]
fn fnd_k9_a_purge_passes_its_failpoint_at_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let hits = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = hits.clone();
    let mut with = options(&path);
    with.failpoint = Some(Arc::new(move |point| {
        if point == "purge" {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    let journal = SqliteJournal::open(with).unwrap();
    let gone = with_secrets(&mut Teller::default(), &journal);
    let steps = purge(&journal, gone, 20);
    assert_eq!(hits.load(std::sync::atomic::Ordering::Relaxed), steps as usize);
}
