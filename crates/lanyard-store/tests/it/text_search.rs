//! Full-text search: what is found, in which order, and that the index follows the log through kills, purges and damage.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lanyard_core::search::{SearchKind, SearchQuery};
use lanyard_core::session::{ChangeEvent, NewSession, Role, TranscriptEvent};
use lanyard_core::{SessionId, Timestamp};
use lanyard_store::{
    CursorError, IndexState, PurgeStep, SearchStop, SqliteJournal, TextCursor, TextFound, TextHit, TextPage,
    TextQuery, TextSearch, Upkeep, WINDOW, WipeStep,
};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::{Store, Teller, at, on_every_journal, open, options};

on_every_journal! {
    a_text_is_found_by_its_words_wherever_it_stands
    names_in_code_and_scripts_without_spaces_are_found_by_their_parts
    pieces_of_a_message_are_one_text
    a_search_is_narrowed_by_session_agent_folder_kind_and_time
    pages_follow_each_other_without_gaps_or_repeats
    until_it_is_complete_the_index_says_so
    deleted_and_purged_sessions_are_not_found
    a_rebuild_makes_the_index_again
    a_search_that_is_told_to_stop_says_so
}

pub(crate) fn wanted(text: &str) -> TextQuery {
    let query = SearchQuery::parse(text, at(0)).unwrap();
    TextQuery { query, ..TextQuery::default() }
}

pub(crate) fn fill(store: &dyn Store) -> IndexState {
    for _ in 0..100_000 {
        let state = store.index_some(7).unwrap();
        if state.is_complete() {
            return state;
        }
    }
    panic!("the index is never complete")
}

fn page(store: &dyn Store, wanted: &TextQuery, from: Option<&TextCursor>, limit: usize) -> TextPage {
    match store.search_texts(wanted, from, limit, &SearchStop::default()).unwrap() {
        TextFound::Page(page) => page,
        TextFound::Stopped => panic!("nobody stopped it"),
    }
}

fn hits(store: &dyn Store, wanted: &TextQuery) -> Vec<TextHit> {
    fill(store);
    page(store, wanted, None, 100).hits
}

/// Sessions and numbers of what is found, sorted.
fn found(store: &dyn Store, text: &str) -> Vec<(SessionId, u64)> {
    let mut found: Vec<_> = hits(store, &wanted(text)).iter().map(|hit| (hit.session, hit.seq)).collect();
    found.sort_unstable();
    found
}

fn call(teller: &mut Teller, id: SessionId, tool: &str, command: &str, result: &str) {
    let (call, tool) = ("c1".to_owned(), tool.to_owned());
    teller.push(
        id,
        TranscriptEvent::ToolCalled { call: call.clone(), tool, arguments: json!({ "command": command }) },
    );
    let content = json!([{ "type": "text", "text": result }]);
    teller.push(id, TranscriptEvent::ToolReturned { call, is_error: false, content });
}

fn piece(teller: &mut Teller, id: SessionId, text: &str, message: &str) {
    let message_id = Some(message.to_owned());
    teller.push(
        id,
        TranscriptEvent::Message { role: Role::Agent, text: text.to_owned(), message_id, parts: Vec::new() },
    );
}

fn a_text_is_found_by_its_words_wherever_it_stands(store: &dyn Store) {
    let mut teller = Teller::default();
    let (one, two) = (teller.plain(), teller.plain());
    teller.say(one, "The login fails for Jürgen");
    teller.say(two, "the tests fail");
    call(&mut teller, two, "bash", "npm run login-check", "3 tests failed");
    teller.append(store);
    for (text, expected) in [
        ("login", vec![(one, 2), (two, 3)]),
        ("LOGIN fails", vec![(one, 2)]),
        ("\"fails login\"", vec![]),
        ("\"login fails\"", vec![(one, 2)]),
        ("jurgen", vec![(one, 2)]),
        ("JÜRGEN", vec![(one, 2)]),
        ("fail*", vec![(one, 2), (two, 2), (two, 4)]),
        ("login -npm", vec![(one, 2)]),
        ("tests -\"tests failed\"", vec![(two, 2)]),
        ("nowhere", vec![]),
        ("login nowhere", vec![]),
        ("facets", vec![]),
        ("s1", vec![]),
    ] {
        let mut expected: Vec<_> = expected;
        expected.sort_unstable();
        assert_eq!(found(store, text), expected, "{text}");
    }
    let hit = &hits(store, &wanted("login fails"))[0];
    assert_eq!((hit.snippet.text.as_str(), hit.kind), ("The login fails for Jürgen", SearchKind::Message));
    assert_eq!(hit.snippet.marks, [[4, 9], [10, 15]]);
    // A text with more of the words, nearer to each other, comes before a newer one.
    piece(&mut teller, one, &format!("login {} fails", "and then ".repeat(30)), "m2");
    teller.append(store);
    let order: Vec<u64> = hits(store, &wanted("login fails")).iter().map(|hit| hit.seq).collect();
    assert_eq!(order, [2, 3]);
}

fn names_in_code_and_scripts_without_spaces_are_found_by_their_parts(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    for text in [
        "call parse_config(path)",
        "let fooBar = HTTPServer::new()",
        "全文検索の設定configを直す",
        "검색 엔진",
    ] {
        call(&mut teller, id, "edit", text, "");
    }
    teller.append(store);
    for (text, seq) in [
        ("parse_config", 2),
        ("config path", 2),
        ("foobar", 4),
        ("bar", 4),
        ("fooBar", 4),
        ("server", 4),
        ("検索", 6),
        ("検索の設定", 6),
        ("直", 6),
        ("設定config", 6),
        ("색", 8),
    ] {
        assert_eq!(found(store, text), [(id, seq)], "{text}");
    }
    assert_eq!(found(store, "索検"), []);
}

fn pieces_of_a_message_are_one_text(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    let pieces = ["The sea", "rch index ", "grows behind ", "the log"];
    for piece_of in pieces {
        piece(&mut teller, id, piece_of, "m1");
        teller.append(store);
        // Each piece is indexed before the next one is there.
        fill(store);
    }
    piece(&mut teller, id, " apart", "m2");
    teller.append(store);
    let hits = hits(store, &wanted("search log"));
    assert_eq!(hits.iter().map(|hit| (hit.seq, hit.last_seq)).collect::<Vec<_>>(), [(2, 5)]);
    assert_eq!(hits[0].snippet.text, "The search index grows behind the log");
    assert_eq!(found(store, "sea"), [], "what was half a word is none");
    assert_eq!(found(store, "apart"), [(id, 6)]);
    assert_eq!(found(store, "log apart"), []);
}

fn a_search_is_narrowed_by_session_agent_folder_kind_and_time(store: &dyn Store) {
    let mut teller = Teller::default();
    let mut session = |agent: &str, workspace: &str| {
        teller.new_session(&NewSession {
            agent: Some(agent.to_owned()),
            workspace: Some(workspace.to_owned()),
            ..NewSession::default()
        })
    };
    let one = session("claude", "/srv/shop");
    let two = session("codex", "/srv/shop/web");
    let three = session("claude", "/srv/shopping");
    for id in [one, two, three] {
        teller.say(id, "fix the login");
        call(&mut teller, id, "bash", "grep login", "login.rs");
    }
    teller.append(store);
    let all = wanted("login");
    let of = |narrowed: TextQuery| {
        let mut found: Vec<_> = hits(store, &narrowed).iter().map(|hit| (hit.session, hit.kind)).collect();
        found.sort_by_key(|(session, kind)| (*session, kind.as_str()));
        found.dedup();
        found
    };
    let sessions = |narrowed: TextQuery| {
        let mut found: Vec<SessionId> = of(narrowed).into_iter().map(|(session, _)| session).collect();
        found.dedup();
        found
    };
    let sorted = |mut ids: Vec<SessionId>| {
        ids.sort_unstable();
        ids
    };
    assert_eq!(sessions(all.clone()), sorted(vec![one, two, three]));
    assert_eq!(sessions(TextQuery { session: Some(two), ..all.clone() }), [two]);
    assert_eq!(sessions(TextQuery { session: Some(SessionId::from_u128(9)), ..all.clone() }), []);
    assert_eq!(
        sessions(TextQuery { agent: Some("Claude".to_owned()), ..all.clone() }),
        sorted(vec![one, three])
    );
    assert_eq!(sessions(TextQuery { agent: Some("nobody".to_owned()), ..all.clone() }), []);
    for (folder, expected) in [
        ("/srv/shop", vec![one, two]),
        ("/srv/shop/", vec![one, two]),
        ("shop", vec![one, two]),
        ("shop/web", vec![two]),
        ("/shop", vec![]),
        ("/srv/shopping", vec![three]),
    ] {
        let narrowed = TextQuery { folder: Some(folder.to_owned()), ..all.clone() };
        assert_eq!(sessions(narrowed), sorted(expected), "{folder}");
    }
    for kind in SearchKind::ALL {
        let found = of(TextQuery { kind: Some(kind), session: Some(one), ..all.clone() });
        assert_eq!(found, [(one, kind)]);
    }
    let last = hits(store, &all).iter().map(|hit| hit.at).max().unwrap();
    let since = |since| hits(store, &TextQuery { since: Some(since), ..all.clone() }).len();
    assert_eq!((since(last), since(at(0)), since(last.plus_millis(1))), (1, 9, 0));
}

fn pages_follow_each_other_without_gaps_or_repeats(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    for nth in 0..WINDOW as u64 * 2 + 50 {
        call(&mut teller, id, "edit", &format!("word {nth}"), "");
    }
    teller.append(store);
    fill(store);
    let all = wanted("word");
    let (mut seen, mut cursor): (Vec<u64>, Option<TextCursor>) = (Vec::new(), None);
    for _ in 0..100 {
        let page = page(store, &all, cursor.as_ref(), 30);
        seen.extend(page.hits.iter().map(|hit| hit.seq));
        // What is added meanwhile is newer than the first page.
        teller.say(id, "word");
        teller.append(store);
        fill(store);
        let Some(next) = page.next else {
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!((seen.len(), count), (WINDOW * 2 + 50, WINDOW * 2 + 50));
            return;
        };
        cursor = Some(TextCursor::parse(&next.to_string(), &all).unwrap());
        assert_eq!(TextCursor::parse(&next.to_string(), &wanted("other")), Err(CursorError::OtherFilter));
    }
    panic!("the pages do not come to an end")
}

fn until_it_is_complete_the_index_says_so(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.say(id, "old words");
    teller.say(id, "new words");
    teller.append(store);
    assert!(!store.index_state().unwrap().is_complete());
    assert_eq!(page(store, &wanted("words"), None, 10).hits.len(), 0);
    let state = store.index_some(2).unwrap();
    assert_eq!((state.indexed, state.end), (2, 3));
    let first = page(store, &wanted("words"), None, 10);
    assert_eq!((first.hits.len(), first.state.is_complete()), (1, false));
    assert!(fill(store).is_complete());
    let whole = page(store, &wanted("words"), None, 10);
    assert!(whole.state.is_complete());
    assert_eq!(store.index_some(10).unwrap(), whole.state, "there is nothing left to do");
}

fn purge(store: &dyn Store, session: SessionId) {
    for _ in 0..10_000 {
        match store.purge(session, 3).unwrap() {
            PurgeStep::Going { .. } => {}
            PurgeStep::Done => return,
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

fn deleted_and_purged_sessions_are_not_found(store: &dyn Store) {
    let mut teller = Teller::default();
    let (kept, gone) = (teller.plain(), teller.plain());
    for _ in 0..20 {
        teller.say(gone, "a secret word");
        call(&mut teller, gone, "bash", "echo word", "another word");
        call(&mut teller, kept, "edit", "a plain word", "");
    }
    teller.append(store);
    assert_eq!(found(store, "word -plain").len(), 60);
    teller.push(gone, ChangeEvent::Deleted { reason: None });
    teller.append(store);
    assert_eq!(found(store, "word -plain"), [], "before the purge begins");
    purge(store, gone);
    wipe(store);
    assert_eq!(found(store, "secret"), []);
    assert_eq!(found(store, "word").len(), 20);
    store.rebuild().unwrap();
    assert_eq!(found(store, "word").len(), 20);
}

fn a_rebuild_makes_the_index_again(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.say(id, "hello");
    teller.append(store);
    assert_eq!(found(store, "hello"), [(id, 2)]);
    store.rebuild().unwrap();
    assert!(!store.index_state().unwrap().is_complete());
    assert_eq!(found(store, "hello"), [(id, 2)]);
}

fn a_search_that_is_told_to_stop_says_so(store: &dyn Store) {
    let mut teller = Teller::default();
    let id = teller.plain();
    teller.say(id, "hello");
    teller.append(store);
    fill(store);
    let stop = SearchStop::default();
    stop.stop();
    assert_eq!(store.search_texts(&wanted("hello"), None, 10, &stop).unwrap(), TextFound::Stopped);
    assert_eq!(found(store, "hello"), [(id, 2)], "the next one is not stopped");
}

fn search_file(journal: &Path) -> std::path::PathBuf {
    journal.with_file_name("journal.db-search")
}

/// Nothing of a purged session's words is in the files of the index.
#[test]
fn words_of_a_purged_session_are_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let store = open(&path);
    let mut teller = Teller::default();
    let (kept, gone) = (teller.plain(), teller.plain());
    for round in 0..200 {
        teller.say(kept, &format!("plain words of round {round}"));
        teller.say(gone, &format!("xylophone-quartz number {round}"));
    }
    teller.append(&store);
    assert!(!found(&store, "xylophone quartz").is_empty());
    let holds = |word: &[u8]| {
        ["", "-wal"].iter().any(|suffix| {
            let mut name = search_file(&path).into_os_string();
            name.push(suffix);
            let bytes = std::fs::read(name).unwrap_or_default();
            memchr::memmem::find(&bytes, word).is_some()
        })
    };
    assert!(holds(b"xylophone") && holds(b"quartz"));
    teller.push(gone, ChangeEvent::Deleted { reason: None });
    teller.append(&store);
    purge(&store, gone);
    wipe(&store);
    assert!(!holds(b"xylophone") && !holds(b"quartz"), "a word of a purged session is left");
    assert!(!found(&store, "plain").is_empty());
}

#[test]
fn an_index_that_is_damaged_removed_or_of_another_log_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let id = {
        let store = open(&path);
        let id = teller.plain();
        teller.say(id, "hello");
        teller.append(&store);
        assert_eq!(found(&store, "hello"), [(id, 2)]);
        id
    };
    let file = search_file(&path);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    for harm in ["removed", "not a database", "damaged"] {
        match harm {
            "removed" => std::fs::remove_file(&file).unwrap(),
            "not a database" => std::fs::write(&file, "nothing of the kind".repeat(500)).unwrap(),
            _ => {
                let mut bytes = std::fs::read(&file).unwrap();
                bytes[4_096..].fill(0xA5);
                std::fs::write(&file, bytes).unwrap();
            }
        }
        let store = open(&path);
        // The call that meets the damage may fail; the one after it has a new index.
        let _ = store.index_some(10);
        let _ = store.search_texts(&wanted("hello"), None, 10, &SearchStop::default());
        assert_eq!(found(&store, "hello"), [(id, 2)], "{harm}");
        assert!(store.check().unwrap().structure.is_empty(), "{harm}");
    }
    // The index of one log beside another.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let elsewhere = other.join("journal.db");
    let mut others = Teller::default();
    let store = open(&elsewhere);
    let stranger = others.plain();
    for _ in 0..5 {
        others.say(stranger, "something else");
    }
    others.append(&store);
    std::fs::copy(&file, search_file(&elsewhere)).unwrap();
    assert_eq!(found(&store, "hello"), []);
    assert_eq!(found(&store, "else").len(), 1);
}

/// A kill in a step leaves the index at the step before, and no text is there twice.
#[test]
fn a_step_that_is_cut_short_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let mut teller = Teller::default();
    let id = teller.plain();
    for nth in 0..30 {
        call(&mut teller, id, "edit", &format!("word{nth}"), "common");
    }
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let store = SqliteJournal::open(lanyard_store::SqliteOptions {
        failpoint: Some(Arc::new(move |point| {
            let third = point == "index" && counted.fetch_add(1, Ordering::SeqCst) == 2;
            assert!(!third, "cut short");
        })),
        ..options(&path)
    })
    .unwrap();
    teller.append(&store);
    let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fill(&store)));
    assert!(cut.is_err());
    drop(store);
    let store = open(&path);
    let state = store.index_state().unwrap();
    assert!(state.indexed == 14 && !state.is_complete(), "{state:?}");
    assert_eq!(found(&store, "common").len(), 30);
    assert_eq!(found(&store, "word17"), [(id, 36)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No query is an error of the database.
    #[test]
    fn every_query_is_answered(queries in proptest::collection::vec("\\PC{1,40}|[a-c\"*:(){}^+-]{1,20}", 8)) {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("journal.db"));
        let mut teller = Teller::default();
        let id = teller.plain();
        teller.say(id, "a b c NEAR OR 日本語 ü");
        teller.append(&store);
        fill(&store);
        for text in &queries {
            if let Ok(query) = SearchQuery::parse(text, Timestamp::from_millis(0)) {
                let wanted = TextQuery { query, ..TextQuery::default() };
                prop_assert!(store.search_texts(&wanted, None, 10, &SearchStop::default()).is_ok(), "{}", text);
            }
        }
    }
}
