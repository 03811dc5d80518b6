//! Memory in the file: closing, crashing, rows that are not as they were written, forgetting, and what was a paper before.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use lanyard_core::memory::{MemoryScope, Where};
use lanyard_core::session::NewSession;
use lanyard_core::{MemoryId, SessionId};
use lanyard_store::{
    Failpoints, Journal, Memories, MemoryFilter, PaperKey, Papers, SqliteJournal, SqliteOptions, StoreError,
    Upkeep, Writing,
};
use rusqlite::Connection;

use crate::kit::{Teller, at, open, options};
use crate::memories::{entry, of_session, put};
use crate::sqlite::crash_image;

fn any() -> MemoryFilter {
    MemoryFilter::default()
}

#[test]
fn memory_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    put(&open(&path), &[entry(1, "one"), of_session(2, 7, "two")]);
    let journal = open(&path);
    assert_eq!(journal.memories(&any(), None, 10).unwrap().len(), 2);
    assert_eq!(journal.search_memories(&any(), "two", 10).unwrap().len(), 1);
}

/// An entry and the words it is found by come together or not at all.
#[test]
fn a_crash_leaves_an_entry_with_its_words_or_nothing() {
    for (point, kept) in [("before_commit", 1), ("after_commit", 2)] {
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
        put(&journal, &[entry(1, "word")]);
        armed.store(true, Ordering::SeqCst);
        put(&journal, &[entry(2, "word")]);
        let image = open(left.lock().unwrap().as_ref().unwrap());
        assert_eq!(image.memories(&any(), None, 10).unwrap().len(), kept);
        assert_eq!(image.search_memories(&any(), "word", 10).unwrap().len(), kept);
        assert_eq!(image.check().unwrap().damage, []);
    }
}

#[test]
fn a_full_disk_stops_memory_as_well_until_the_journal_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("journal.db"));
    put(&journal, &[entry(1, "one")]);
    journal.fill_up().unwrap();
    let large = Writing { entry: entry(2, &"x".repeat(1 << 20)), from: 0 };
    assert!(matches!(journal.put_memories(std::slice::from_ref(&large)), Err(StoreError::Sqlite(_))));
    assert!(matches!(journal.put_memories(std::slice::from_ref(&large)), Err(StoreError::Stopped(_))));
    journal.recover().unwrap();
    journal.put_memories(&[large]).unwrap();
    assert_eq!(journal.memories(&any(), None, 10).unwrap().len(), 2);
}

/// Forgotten is forgotten: nothing of it is left in the file.
#[test]
fn what_is_forgotten_is_nowhere_in_the_file() {
    const SECRET: &str = "xyzzyplughfrobozz";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let holds = || {
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    };
    let journal = open(&path);
    put(&journal, &(1..50).map(|number| entry(number, "filler text of some length")).collect::<Vec<_>>());
    put(&journal, &[entry(77, &format!("{SECRET} and {}", "more ".repeat(3_000)))]);
    drop(journal);
    assert!(holds());
    let journal = open(&path);
    assert_eq!(journal.forget_memories(&[MemoryId::from_u128(77)]).unwrap(), 1);
    drop(journal);
    assert!(!holds());
}

fn damage(journal: &SqliteJournal) -> Vec<String> {
    journal.check().unwrap().damage.into_iter().map(|damage| damage.what).collect()
}

/// Two entries in a closed journal, changed behind its back.
fn tampered(sql: &str) -> (SqliteJournal, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    put(&open(&path), &[entry(1, "first word"), entry(2, "second word")]);
    let behind = Connection::open(&path).unwrap();
    behind.execute_batch(sql).unwrap();
    drop(behind);
    (open(&path), folder)
}

#[test]
fn a_damaged_entry_hides_no_other_and_is_reported() {
    for sql in [
        "UPDATE memories SET text = 'first lie' WHERE pos = 1",
        "UPDATE memories SET crc = crc + 1 WHERE pos = 1",
        "UPDATE memories SET owner = 'bob' WHERE pos = 1",
        "UPDATE memories SET store = 'session' WHERE pos = 1",
        "UPDATE memories SET rest = x'00' WHERE pos = 1",
    ] {
        let (journal, _folder) = tampered(sql);
        let one = MemoryId::from_u128(1);
        assert!(matches!(journal.memory(one), Err(StoreError::Damaged(_))), "{sql}");
        assert_eq!(journal.memories(&any(), None, 10).unwrap().len(), 1, "{sql}");
        assert_eq!(journal.search_memories(&any(), "word", 10).unwrap().len(), 1, "{sql}");
        assert_eq!(damage(&journal), ["an entry of memory is damaged"], "{sql}");
        // It can be forgotten, and what it said is found no more.
        assert_eq!(journal.forget_memories(&[one]).unwrap(), 1, "{sql}");
        assert_eq!(damage(&journal), [""; 0], "{sql}");
        assert!(journal.search_memories(&any(), "first", 10).unwrap().is_empty(), "{sql}");
    }
}

#[test]
fn a_lost_index_is_reported_and_made_again() {
    let (journal, _folder) = tampered("INSERT INTO memory_words (memory_words) VALUES ('delete-all')");
    assert_eq!(damage(&journal), ["the index of memory's words is not what its entries say"]);
    journal.rebuild().unwrap();
    assert_eq!(damage(&journal), [""; 0]);
    assert_eq!(journal.search_memories(&any(), "word", 10).unwrap().len(), 2);
}

/// Pieces of context that agents left before there was memory are there afterwards, whole, and who they belong to.
#[test]
fn pieces_of_context_become_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let owned = |owner: &str| NewSession { owner: Some(owner.to_owned()), ..NewSession::default() };
    let hub = teller.new_session(&owned("ann"));
    let child = teller.new_child(&owned("families"), Some(hub));
    let journal = open(&path);
    teller.append(&journal);
    let paper = |scope: &str, whose: Option<SessionId>, by: SessionId| {
        serde_json::json!({
            "name": "port", "scope": scope, "owner": whose, "text": "The server listens on 8080",
            "tags": ["API design", "🎈"], "by": { "kind": "agent", "name": by }, "session": by, "at": at(7),
        })
        .to_string()
    };
    let place =
        |key: &str| PaperKey { kind: "context".to_owned(), workspace: "/w".to_owned(), key: key.to_owned() };
    journal.put_paper(&place("1"), 0, at(7), &paper("workspace", None, child)).unwrap();
    journal.put_paper(&place("2"), 0, at(7), &paper("session", Some(child), child)).unwrap();
    journal.put_paper(&place("3"), 0, at(7), "torn").unwrap();
    drop(journal);
    let behind = Connection::open(&path).unwrap();
    behind
        .execute_batch("DROP TABLE memory_words; DROP TABLE memories; DROP TABLE memory_vectors; DROP TABLE tombstones; PRAGMA user_version = 7")
        .unwrap();
    drop(behind);
    let journal = open(&path);
    let entries = journal.search_memories(&any(), "8080", 10).unwrap();
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        assert_eq!((entry.owner.as_str(), entry.workspace.as_str()), ("ann", "/w"));
        assert_eq!((entry.session, entry.at), (Some(child), at(7)));
        assert_eq!(entry.tags.iter().map(ToString::to_string).collect::<Vec<_>>(), ["api-design"]);
        entry.check().unwrap();
    }
    let stores: Vec<(MemoryScope, Where)> = entries.iter().map(|entry| (entry.scope, entry.store)).collect();
    assert!(stores.contains(&(MemoryScope::Workspace, Where::LongTerm)), "{stores:?}");
    assert!(stores.contains(&(MemoryScope::Session, Where::Session)), "{stores:?}");
    let left = journal.papers("context", "/w", None, 10).unwrap();
    assert_eq!(left.len(), 1, "what cannot be read stays where it is");
    assert_eq!(damage(&journal), [""; 0]);
}
