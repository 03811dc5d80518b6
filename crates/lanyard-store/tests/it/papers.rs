//! Papers: kept with a version, changed only from the version one has seen, listed by kind and workspace.

use lanyard_store::{PaperKey, Papers, Put, Upkeep};

use crate::kit::{Store, at, on_every_journal, open};

on_every_journal! {
    a_paper_is_kept_with_its_version
    a_write_from_an_older_version_changes_nothing
    papers_are_listed_by_kind_and_workspace_in_pages
    a_removed_paper_is_gone
    parts_of_a_place_are_never_joined
}

fn place(kind: &str, workspace: &str, key: &str) -> PaperKey {
    PaperKey { kind: kind.to_owned(), workspace: workspace.to_owned(), key: key.to_owned() }
}

/// S0-23, S0-64.
fn a_paper_is_kept_with_its_version(store: &dyn Store) {
    let here = place("plan", "/w", "one");
    assert_eq!(store.paper(&here).unwrap(), None);
    assert_eq!(store.put_paper(&here, 0, at(7), r#"{"a":"é"}"#).unwrap(), Put::Kept(1));
    let kept = store.paper(&here).unwrap().unwrap();
    assert_eq!((kept.version, kept.at, kept.body.as_str()), (1, at(7), r#"{"a":"é"}"#));
    assert_eq!(store.put_paper(&here, 1, at(8), "{}").unwrap(), Put::Kept(2));
    let kept = store.paper(&here).unwrap().unwrap();
    assert_eq!((kept.place, kept.version, kept.at, kept.body), (here, 2, at(8), "{}".to_owned()));
    assert_eq!(store.check().unwrap().damage, []);
}

/// S0-B16: compare and set.
fn a_write_from_an_older_version_changes_nothing(store: &dyn Store) {
    let here = place("plan", "", "one");
    assert_eq!(store.put_paper(&here, 3, at(1), "x").unwrap(), Put::Moved(0));
    assert_eq!(store.put_paper(&here, 0, at(1), "first").unwrap(), Put::Kept(1));
    assert_eq!(store.put_paper(&here, 0, at(2), "second").unwrap(), Put::Moved(1));
    assert_eq!(store.put_paper(&here, 1, at(3), "third").unwrap(), Put::Kept(2));
    assert_eq!(store.put_paper(&here, 1, at(4), "fourth").unwrap(), Put::Moved(2));
    assert_eq!(store.paper(&here).unwrap().unwrap().body, "third");
}

fn papers_are_listed_by_kind_and_workspace_in_pages(store: &dyn Store) {
    for key in ["d", "b", "a", "c"] {
        store.put_paper(&place("plan", "/w", key), 0, at(1), key).unwrap();
    }
    store.put_paper(&place("context", "/w", "a"), 0, at(1), "other kind").unwrap();
    store.put_paper(&place("plan", "/v", "a"), 0, at(1), "other workspace").unwrap();
    let keys = |after: Option<&str>, limit| -> Vec<String> {
        let papers = store.papers("plan", "/w", after, limit).unwrap();
        papers.into_iter().map(|paper| paper.body).collect()
    };
    assert_eq!(keys(None, 10), ["a", "b", "c", "d"]);
    assert_eq!(keys(None, 2), ["a", "b"]);
    assert_eq!(keys(Some("b"), 2), ["c", "d"]);
    assert!(keys(Some("d"), 2).is_empty() && keys(None, 0).is_empty());
}

fn a_removed_paper_is_gone(store: &dyn Store) {
    let here = place("context", "/w", "one");
    assert!(!store.remove_paper(&here).unwrap());
    store.put_paper(&here, 0, at(1), "x").unwrap();
    assert!(store.remove_paper(&here).unwrap());
    assert_eq!(store.paper(&here).unwrap(), None);
    assert_eq!(store.put_paper(&here, 1, at(2), "y").unwrap(), Put::Moved(0));
}

/// S0-B09.
fn parts_of_a_place_are_never_joined(store: &dyn Store) {
    store.put_paper(&place("plan", "a::b", "c"), 0, at(1), "one").unwrap();
    store.put_paper(&place("plan", "a", "b::c"), 0, at(1), "two").unwrap();
    assert_eq!(store.paper(&place("plan", "a::b", "c")).unwrap().unwrap().body, "one");
    assert_eq!(store.paper(&place("plan", "a", "b::c")).unwrap().unwrap().body, "two");
}

#[test]
fn papers_are_there_after_a_restart_and_a_damaged_one_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let (good, bad) = (place("plan", "/w", "good"), place("plan", "/w", "bad"));
    {
        let journal = open(&path);
        journal.put_paper(&good, 0, at(1), "good").unwrap();
        journal.put_paper(&bad, 0, at(1), "bad").unwrap();
    }
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE papers SET body = 'worse' WHERE key = 'bad'", []).unwrap();
    drop(conn);
    let journal = open(&path);
    assert_eq!(journal.paper(&good).unwrap().unwrap().body, "good");
    assert!(journal.paper(&bad).is_err());
    assert_eq!(journal.papers("plan", "/w", None, 10).unwrap().len(), 1);
    let damage = journal.check().unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].what, "a kept paper is damaged");
    journal.rebuild().unwrap();
    assert_eq!(journal.paper(&good).unwrap().unwrap().body, "good");
}
