//! What is remembered: kept with where it came from, replaced only from the version one has seen, found by its words and
//! by nobody who may not see it, and gone when it was forgotten.

use lanyard_core::memory::{MemoryEntry, MemoryScope, Retention, Source, Tags, Where, tag};
use lanyard_core::{Actor, MemoryId, SessionId, TurnId};
use lanyard_store::{MemoryFilter, Put, Viewer, Writing};

use crate::kit::{Store, at, on_every_journal};

on_every_journal! {
    an_entry_is_there_as_it_was_written
    a_name_has_one_entry_and_a_version
    an_id_is_in_one_place
    entries_are_listed_newest_first_in_pages
    each_condition_holds_and_all_together
    words_find_entries_best_first_and_nothing_is_a_bad_query
    where_few_hits_match_all_are_looked_at
    a_viewer_sees_its_own_and_nothing_else
    what_is_forgotten_is_found_by_nothing
    what_is_due_is_told_by_its_tags_and_age
    sessions_with_memory_are_told_in_pages
    vectors_find_what_is_alike
    rebuilding_keeps_memory
}

pub(crate) fn tags(texts: &[&str]) -> Tags {
    tag::parse("tags", texts).unwrap()
}

pub(crate) fn entry(number: u128, text: &str) -> MemoryEntry {
    MemoryEntry {
        id: MemoryId::from_u128(number),
        store: Where::LongTerm,
        scope: MemoryScope::Workspace,
        workspace: "/w".to_owned(),
        owner: "ann".to_owned(),
        plan: None,
        name: None,
        text: text.to_owned(),
        tags: Tags::new(),
        by: Actor::operator("ann"),
        session: Some(SessionId::from_u128(1)),
        turn: Some(TurnId::from_u128(2)),
        source: Source::Api,
        request: None,
        at: at(i64::try_from(number).unwrap()),
        version: 1,
    }
}

pub(crate) fn of_session(number: u128, session: u128, text: &str) -> MemoryEntry {
    let session = Some(SessionId::from_u128(session));
    MemoryEntry { store: Where::Session, scope: MemoryScope::Session, session, ..entry(number, text) }
}

pub(crate) fn put(store: &dyn Store, entries: &[MemoryEntry]) {
    let writings: Vec<Writing> =
        entries.iter().map(|entry| Writing { entry: entry.clone(), from: entry.version - 1 }).collect();
    let kept: Vec<Put> = entries.iter().map(|entry| Put::Kept(entry.version)).collect();
    assert_eq!(store.put_memories(&writings).unwrap(), kept);
}

fn any() -> MemoryFilter {
    MemoryFilter::default()
}

fn found(store: &dyn Store, filter: &MemoryFilter, query: &str) -> Vec<u128> {
    let entries = store.search_memories(filter, query, 10).unwrap();
    entries.iter().map(|entry| entry.id.as_u128()).collect()
}

fn listed(store: &dyn Store, filter: &MemoryFilter) -> Vec<u128> {
    let entries = store.memories(filter, None, 100).unwrap();
    assert_eq!(store.count_memories(filter).unwrap(), entries.len() as u64);
    entries.iter().map(|entry| entry.id.as_u128()).collect()
}

/// S3-31: with all that is known of where it came from.
fn an_entry_is_there_as_it_was_written(store: &dyn Store) {
    let mut one = entry(1, "Über \"quotes\" and NUL-free text\nwith lines");
    one.name = Some("a name".to_owned());
    one.plan = Some("p".to_owned());
    one.scope = MemoryScope::Plan;
    one.tags = tags(&["api", "dev_test"]);
    put(store, std::slice::from_ref(&one));
    assert_eq!(store.memory(one.id).unwrap().as_ref(), Some(&one));
    assert_eq!(store.memory_at("/w", &one.key()).unwrap().as_ref(), Some(&one));
    assert_eq!(store.memory_at("/v", &one.key()).unwrap(), None);
    assert_eq!(store.memory(MemoryId::from_u128(9)).unwrap(), None);
    assert_eq!(store.check().unwrap().damage, []);
}

fn a_name_has_one_entry_and_a_version(store: &dyn Store) {
    let mut one = entry(1, "first");
    one.name = Some("x".to_owned());
    put(store, std::slice::from_ref(&one));
    let late = Writing { entry: MemoryEntry { id: MemoryId::from_u128(2), ..one.clone() }, from: 0 };
    assert_eq!(store.put_memories(&[late]).unwrap(), [Put::Moved(1)]);
    let two = MemoryEntry { text: "second".to_owned(), version: 2, ..one.clone() };
    put(store, std::slice::from_ref(&two));
    assert_eq!(store.memory(one.id).unwrap(), Some(two));
    assert_eq!(found(store, &any(), "first"), []);
    assert_eq!(found(store, &any(), "second"), [1]);
    // Somebody else's of the same name is another.
    let bobs = MemoryEntry { id: MemoryId::from_u128(3), owner: "bob".to_owned(), ..one };
    put(store, &[bobs]);
    assert_eq!(listed(store, &any()), [3, 1]);
    assert_eq!(store.check().unwrap().damage, []);
}

fn an_id_is_in_one_place(store: &dyn Store) {
    put(store, &[entry(1, "here")]);
    let elsewhere = MemoryEntry { workspace: "/v".to_owned(), ..entry(1, "there") };
    let puts = store.put_memories(&[Writing { entry: elsewhere, from: 0 }]).unwrap();
    assert_eq!(puts, [Put::Moved(1)]);
    assert_eq!(store.memory(MemoryId::from_u128(1)).unwrap().unwrap().text, "here");
}

fn entries_are_listed_newest_first_in_pages(store: &dyn Store) {
    let all: Vec<MemoryEntry> = (1..=7).map(|number| entry(number, "text")).collect();
    put(store, &all);
    let page = |before: Option<u128>| -> Vec<u128> {
        let entries = store.memories(&any(), before.map(MemoryId::from_u128), 3).unwrap();
        entries.iter().map(|entry| entry.id.as_u128()).collect()
    };
    assert_eq!(page(None), [7, 6, 5]);
    assert_eq!(page(Some(5)), [4, 3, 2]);
    assert_eq!(page(Some(2)), [1]);
    assert!(page(Some(1)).is_empty());
}

fn each_condition_holds_and_all_together(store: &dyn Store) {
    let other = MemoryEntry { workspace: "/v".to_owned(), owner: "bob".to_owned(), ..entry(2, "word") };
    let tagged = MemoryEntry { tags: tags(&["a", "b"]), ..entry(3, "word") };
    let plan = MemoryEntry { scope: MemoryScope::Plan, plan: Some("p".to_owned()), ..entry(4, "word") };
    put(store, &[entry(1, "word"), other, tagged, plan, of_session(5, 7, "word")]);
    let check = |filter: MemoryFilter, wanted: &[u128]| {
        assert_eq!(listed(store, &filter), wanted, "{filter:?}");
        let mut hits = found(store, &filter, "word");
        hits.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(hits, wanted, "{filter:?}");
    };
    check(any(), &[5, 4, 3, 2, 1]);
    check(MemoryFilter { store: Some(Where::Session), ..any() }, &[5]);
    check(MemoryFilter { store: Some(Where::LongTerm), ..any() }, &[4, 3, 2, 1]);
    check(MemoryFilter { scope: Some(MemoryScope::Plan), ..any() }, &[4]);
    check(MemoryFilter { workspace: Some("/w".to_owned()), ..any() }, &[5, 4, 3, 1]);
    check(MemoryFilter { owner: Some("bob".to_owned()), ..any() }, &[2]);
    check(MemoryFilter { plan: Some("p".to_owned()), ..any() }, &[4]);
    check(MemoryFilter { session: Some(SessionId::from_u128(7)), ..any() }, &[5]);
    check(MemoryFilter { tags: tags(&["a"]), ..any() }, &[3]);
    check(MemoryFilter { tags: tags(&["a", "c"]), ..any() }, &[]);
    check(MemoryFilter { owner: Some("ann".to_owned()), tags: tags(&["b"]), ..any() }, &[3]);
}

fn words_find_entries_best_first_and_nothing_is_a_bad_query(store: &dyn Store) {
    let named = MemoryEntry { name: Some("deploy".to_owned()), ..entry(3, "how the server is brought up") };
    put(
        store,
        &[
            entry(1, "The server listens on port 8080"),
            entry(2, "Tests need a database; the port does not matter, nor does the server"),
            named,
            MemoryEntry { tags: tags(&["api-design"]), ..entry(4, "Straße Ωmega") },
        ],
    );
    assert_eq!(found(store, &any(), "8080"), [1]);
    assert_eq!(found(store, &any(), "DEPLOY"), [3]);
    assert_eq!(found(store, &any(), "design"), [4]);
    assert_eq!(found(store, &any(), "straße"), [4]);
    assert_eq!(found(store, &any(), "api-design"), [4]);
    let mut both = found(store, &any(), "server port");
    both.sort_unstable();
    assert_eq!(both, [1, 2], "all words");
    assert_eq!(found(store, &any(), "database nowhere"), [2], "any word, where nothing has all");
    for odd in [
        "", "  ", "\"", "'", "*", "a AND", "NOT", "(", "text:", "{a b}: x", "-", "^x", "\u{0}", "🎈",
        "NEAR(a b",
    ] {
        store.search_memories(&any(), odd, 10).unwrap_or_else(|error| panic!("{odd:?}: {error}"));
    }
    assert!(found(store, &any(), "*").is_empty());
    let long = "x ".repeat(100_000);
    assert!(found(store, &any(), &long).is_empty());
    assert!(store.search_memories(&any(), "server", 0).unwrap().is_empty());
}

fn where_few_hits_match_all_are_looked_at(store: &dyn Store) {
    let mut entries: Vec<MemoryEntry> = (1..=300).map(|number| entry(number, "common")).collect();
    for (at, entry) in entries.iter_mut().enumerate() {
        let owner = if at % 100 == 99 { "rare" } else { "ann" };
        owner.clone_into(&mut entry.owner);
    }
    put(store, &entries);
    let rare = MemoryFilter { owner: Some("rare".to_owned()), ..any() };
    let mut hits = found(store, &rare, "common");
    hits.sort_unstable();
    assert_eq!(hits, [100, 200, 300]);
}

/// Scoped by workspace and owner; session memory by session.
fn a_viewer_sees_its_own_and_nothing_else(store: &dyn Store) {
    let bobs = MemoryEntry { owner: "bob".to_owned(), ..entry(2, "word") };
    let elsewhere = MemoryEntry { workspace: "/v".to_owned(), ..entry(3, "word") };
    let plan = |number, plan: &str| MemoryEntry {
        scope: MemoryScope::Plan,
        plan: Some(plan.to_owned()),
        ..entry(number, "word")
    };
    put(
        store,
        &[
            entry(1, "word"),
            bobs,
            elsewhere,
            plan(4, "p"),
            plan(5, "q"),
            of_session(6, 7, "word"),
            of_session(7, 8, "word"),
        ],
    );
    let viewer = Viewer {
        workspace: "/w".to_owned(),
        owner: "ann".to_owned(),
        plan: Some("p".to_owned()),
        sessions: vec![SessionId::from_u128(7)],
        long_term: true,
    };
    let sees = |viewer: &Viewer| {
        let filter = MemoryFilter { seen_by: Some(viewer.clone()), ..any() };
        let mut hits = found(store, &filter, "word");
        hits.sort_unstable();
        let mut all: Vec<u128> =
            store.memories(&filter, None, 100).unwrap().iter().map(|entry| entry.id.as_u128()).collect();
        all.sort_unstable();
        assert_eq!(hits, all);
        all
    };
    assert_eq!(sees(&viewer), [1, 4, 6]);
    assert_eq!(sees(&Viewer { plan: None, ..viewer.clone() }), [1, 6]);
    assert_eq!(sees(&Viewer { long_term: false, ..viewer.clone() }), [6]);
    assert!(sees(&Viewer { long_term: false, sessions: Vec::new(), ..viewer }).is_empty());
}

fn what_is_forgotten_is_found_by_nothing(store: &dyn Store) {
    put(store, &[entry(1, "keep this"), entry(2, "forget this")]);
    store.put_vectors("m", &[(MemoryId::from_u128(2), 1, vec![1.0, 0.0])]).unwrap();
    let ids = [2, 9].map(MemoryId::from_u128);
    assert_eq!(store.forget_memories(&ids).unwrap(), 1);
    assert_eq!(store.forget_memories(&ids).unwrap(), 0);
    assert_eq!(found(store, &any(), "forget"), []);
    assert_eq!(found(store, &any(), "this"), [1]);
    assert_eq!(listed(store, &any()), [1]);
    assert!(store.nearest_memories(&any(), ("m", &[1.0, 0.0]), 10, 10).unwrap().is_empty());
    assert_eq!(store.check().unwrap().damage, []);
    // Its place is free.
    put(store, &[entry(2, "another")]);
    assert_eq!(found(store, &any(), "another"), [2]);
}

/// S3-31, FND-M12: an entry tagged `retain` is never due.
fn what_is_due_is_told_by_its_tags_and_age(store: &dyn Store) {
    let tagged = |number, texts: &[&str]| MemoryEntry { tags: tags(texts), ..entry(number, "x") };
    put(
        store,
        &[
            tagged(1, &["discard"]),
            tagged(2, &["dev_test"]),
            tagged(3, &["retain"]),
            tagged(4, &[]),
            tagged(5, &["discard", "retain"]),
            tagged(6, &["discard", "dev_test"]),
        ],
    );
    let due = |retention, before| -> Vec<u128> {
        let due = store.expired_memories(retention, at(before), 10).unwrap();
        due.iter().map(|id| id.as_u128()).collect()
    };
    assert_eq!(due(Retention::Discard, 100), [1, 6]);
    assert_eq!(due(Retention::Discard, 5), [1]);
    assert_eq!(due(Retention::DevTest, 100), [2]);
    assert_eq!(due(Retention::DevTest, 2), []);
    assert_eq!(due(Retention::Usual, 100), [4]);
    assert_eq!(store.expired_memories(Retention::Discard, at(100), 1).unwrap().len(), 1);
}

fn sessions_with_memory_are_told_in_pages(store: &dyn Store) {
    let entries: Vec<MemoryEntry> = (1..=5).map(|number| of_session(number, 10 + number % 3, "x")).collect();
    put(store, &entries);
    put(store, &[entry(9, "long term")]);
    let sessions = store.memory_sessions(None, 2).unwrap();
    assert_eq!(sessions, [10, 11].map(SessionId::from_u128));
    assert_eq!(store.memory_sessions(Some(sessions[1]), 2).unwrap(), [SessionId::from_u128(12)]);
}

fn vectors_find_what_is_alike(store: &dyn Store) {
    put(store, &[entry(1, "cat"), entry(2, "dog"), entry(3, "car"), of_session(4, 7, "kitten")]);
    let bare = |model| store.without_vector(model, 10).unwrap().len();
    assert_eq!(bare("m"), 4);
    let vectors = [(1, vec![1.0, 0.1]), (2, vec![0.8, 0.6]), (3, vec![0.0, 1.0]), (4, vec![1.0, 0.0])]
        .map(|(id, vector)| (MemoryId::from_u128(id), 1, vector));
    store.put_vectors("m", &vectors).unwrap();
    assert_eq!((bare("m"), bare("other")), (0, 4));
    let near = |filter: &MemoryFilter, vector: &[f32]| -> Vec<u128> {
        let near = store.nearest_memories(filter, ("m", vector), 100, 2).unwrap();
        near.iter().map(|entry| entry.id.as_u128()).collect()
    };
    assert_eq!(near(&any(), &[1.0, 0.0]), [4, 1]);
    let long_term = MemoryFilter { store: Some(Where::LongTerm), ..any() };
    assert_eq!(near(&long_term, &[1.0, 0.0]), [1, 2]);
    assert!(near(&any(), &[1.0, 0.0, 0.0]).is_empty(), "of another length");
    // A vector of what an entry said before is of no use.
    put(store, &[MemoryEntry { text: "train".to_owned(), version: 2, ..entry(1, "") }]);
    assert_eq!(bare("m"), 1);
    store.put_vectors("m", &[(MemoryId::from_u128(1), 1, vec![1.0, 0.0])]).unwrap();
    assert_eq!(bare("m"), 1);
    assert_eq!(store.check().unwrap().damage, []);
}

fn rebuilding_keeps_memory(store: &dyn Store) {
    put(store, &[entry(1, "one"), of_session(2, 7, "two")]);
    store.put_vectors("m", &[(MemoryId::from_u128(1), 1, vec![1.0])]).unwrap();
    store.rebuild().unwrap();
    assert_eq!(listed(store, &any()), [2, 1]);
    assert_eq!(found(store, &any(), "two"), [2]);
    assert_eq!(store.nearest_memories(&any(), ("m", &[1.0]), 10, 10).unwrap().len(), 1);
    assert_eq!(store.check().unwrap().damage, []);
}
