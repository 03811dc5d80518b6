//! Finding sessions: addresses, filters, families, timers.

use lanyard_core::naming::IdPart;
use lanyard_core::session::{
    Attention, ChangeEvent, ControlEvent, Ending, InterruptCause, Lifecycle, NewSession, StateName, Status,
    StopLevel, TurnEvent,
};
use lanyard_core::{Address, MemoryMode, SessionId};
use lanyard_store::{AppendError, Cursor, CursorError, FIND_MAX, Filter, Found, Sort};

use crate::kit::{Store, Teller, at, list_all, listed, on_every_journal};

on_every_journal! {
    a_session_is_found_by_its_id_and_by_its_triple
    an_alias_names_one_session_per_workspace_and_plan
    a_part_of_an_id_finds_the_sessions_that_begin_or_end_with_it
    an_alias_within_one_batch_is_given_once
    a_deleted_session_frees_its_aliases_and_stays_known
    an_alias_may_hold_anything
    an_ambiguous_address_is_answered_with_a_bounded_list
    each_filter_finds_what_it_names
    filters_combine
    words_are_found_in_any_case_and_are_never_syntax
    paging_is_stable_while_sessions_are_made
    a_cursor_belongs_to_its_filter
    a_row_shows_the_session_and_its_latest_activity
    lineages_levels_and_heights_follow_the_parents
    only_live_children_count
    candidates_for_timers_come_longest_first
    states_are_counted
    who_needs_a_person_comes_first
    the_latest_activity_comes_first_and_pages_follow
    moving_a_session_moves_it_in_every_listing
}

fn named(workspace: Option<&str>, plan: Option<&str>, alias: &str) -> NewSession {
    NewSession {
        workspace: workspace.map(str::to_owned),
        plan: plan.map(str::to_owned),
        aliases: vec![alias.to_owned()],
        ..NewSession::default()
    }
}

fn address(session: &str, workspace: Option<&str>, plan: Option<&str>) -> Address {
    let (workspace, plan) = (workspace.map(str::to_owned), plan.map(str::to_owned));
    Address { session: session.to_owned(), workspace, plan }
}

fn found(store: &dyn Store, address: &Address) -> Vec<SessionId> {
    store.find(address).unwrap().into_iter().map(|found| found.session).collect()
}

/// S0-01, S0-10, S0-11, S0-T2: the same session id in two workspaces or plans does not collide.
fn a_session_is_found_by_its_id_and_by_its_triple(store: &dyn Store) {
    let mut teller = Teller::default();
    let places = [
        (None, None),
        (Some("w1"), None),
        (Some("w1"), Some("p1")),
        (Some("w1"), Some("p2")),
        (Some("w2"), Some("p1")),
    ];
    let ids = places.map(|(workspace, plan)| teller.new_session(&named(workspace, plan, "chat-1")));
    teller.append(store);
    for (id, (workspace, plan)) in ids.iter().zip(places) {
        assert_eq!(found(store, &address(&id.to_string(), workspace, plan)), [*id]);
        assert_eq!(found(store, &Address::of(id.to_string())), [*id]);
        assert!(store.alias_taken("chat-1", workspace, plan).unwrap());
    }
    assert_eq!(found(store, &address("chat-1", Some("w1"), Some("p1"))), [ids[2]]);
    assert_eq!(found(store, &address("chat-1", Some("w2"), None)), [ids[4]]);
    assert_eq!(found(store, &address("chat-1", None, Some("p2"))), [ids[3]]);
    assert_eq!(found(store, &Address::of("chat-1")).len(), 5);
    assert_eq!(found(store, &address(&ids[2].to_string(), Some("w2"), None)), []);
    assert_eq!(found(store, &address("chat-1", Some("w3"), None)), []);
    assert_eq!(found(store, &Address::of("chat-2")), []);
    assert_eq!(found(store, &Address::of(SessionId::from_u128(5).to_string())), []);
    assert!(!store.alias_taken("chat-1", Some("w2"), None).unwrap());
}

fn a_part_of_an_id_finds_the_sessions_that_begin_or_end_with_it(store: &dyn Store) {
    let mut teller = Teller::default();
    let ids: Vec<SessionId> = (0..3).map(|_| teller.new_session(&NewSession::default())).collect();
    teller.append(store);
    let like = |text: &str, limit| store.ids_like(&IdPart::parse(text).unwrap(), limit).unwrap();
    let one = ids[1].to_string();
    for part in [one.as_str(), &one[5..], &one[..30], &one[5..30]] {
        assert!(like(part, 10).contains(&ids[1]), "{part}");
    }
    assert_eq!(like(&one, 10), [ids[1]]);
    let by_end: Vec<SessionId> =
        ids.iter().rev().copied().filter(|id| id.to_string().ends_with(&one[25..])).collect();
    assert_eq!(like(&one[25..], 10), by_end, "newest first");
    assert_eq!(like(&one[25..], 1), by_end[..1], "as many as asked for");
    assert_eq!(like(&one.replace("sess_", "task_"), 10), [], "of another kind");
    teller.delete(ids[1]);
    teller.append(store);
    assert_eq!(like(&one, 10), [], "deleted ones are left out");
}

fn an_alias_names_one_session_per_workspace_and_plan(store: &dyn Store) {
    let mut teller = Teller::default();
    let first = teller.new_session(&named(Some("w"), Some("p"), "a"));
    let second = teller.new_session(&named(Some("w"), Some("p"), "b"));
    teller.append(store);
    let mut clash = teller.clone();
    clash.new_session(&named(Some("w"), Some("p"), "a"));
    assert!(matches!(store.append(&clash.batch()), Err(AppendError::Contradiction(_))));
    let mut clash = teller.clone();
    clash.alias(second, "a");
    assert!(matches!(store.append(&clash.batch()), Err(AppendError::Contradiction(_))));
    teller.assert_kept(store);
    teller.alias(second, "c");
    teller.append(store);
    assert_eq!(found(store, &Address::of("c")), [second]);
    assert_eq!(found(store, &Address::of("a")), [first]);
    teller.assert_kept(store);
}

fn an_alias_within_one_batch_is_given_once(store: &dyn Store) {
    let mut teller = Teller::default();
    teller.new_session(&named(Some("w"), None, "a"));
    teller.new_session(&named(Some("w"), None, "a"));
    assert!(matches!(store.append(&teller.batch()), Err(AppendError::Contradiction(_))));
    assert_eq!(found(store, &Address::of("a")), []);
}

fn a_deleted_session_frees_its_aliases_and_stays_known(store: &dyn Store) {
    let mut teller = Teller::default();
    let old = teller.new_session(&named(None, None, "a"));
    teller.append(store);
    teller.delete(old);
    teller.append(store);
    let tombstone = Found { session: old, deleted: true };
    assert_eq!(store.find(&Address::of("a")).unwrap(), [tombstone]);
    assert_eq!(store.find(&Address::of(old.to_string())).unwrap(), [tombstone]);
    assert!(!store.alias_taken("a", None, None).unwrap());
    let young = teller.new_session(&named(None, None, "a"));
    teller.append(store);
    assert_eq!(store.find(&Address::of("a")).unwrap(), [Found { session: young, deleted: false }]);
    assert_eq!(store.find(&Address::of(old.to_string())).unwrap(), [tombstone]);
    teller.delete(young);
    // Freed and taken within one batch.
    let third = teller.new_session(&named(None, None, "a"));
    teller.append(store);
    assert_eq!(store.find(&Address::of("a")).unwrap(), [Found { session: third, deleted: false }]);
    teller.delete(third);
    teller.append(store);
    assert_eq!(store.find(&Address::of("a")).unwrap(), [Found { session: third, deleted: true }]);
    teller.assert_kept(store);
}

/// S0-B09: `::` is text like any other.
fn an_alias_may_hold_anything(store: &dyn Store) {
    let mut teller = Teller::default();
    let aliases = ["w::p::s", "::", "a::b", "100%_'\"; DROP TABLE events; --", "日本 語", "*", "sess_short"];
    let ids: Vec<SessionId> =
        aliases.iter().map(|alias| teller.new_session(&named(Some("w::p"), None, alias))).collect();
    teller.append(store);
    for (id, alias) in ids.iter().zip(aliases) {
        assert_eq!(found(store, &address(alias, Some("w::p"), None)), [*id]);
        assert_eq!(found(store, &Address::of(alias)), [*id]);
    }
    assert_eq!(found(store, &address("s", Some("w"), Some("p"))), []);
}

fn an_ambiguous_address_is_answered_with_a_bounded_list(store: &dyn Store) {
    let mut teller = Teller::default();
    for count in 0..=FIND_MAX {
        teller.new_session(&named(Some(&format!("w{count}")), None, "a"));
    }
    teller.append(store);
    assert_eq!(found(store, &Address::of("a")).len(), FIND_MAX);
}

/// One of each kind.
fn menagerie(teller: &mut Teller) -> [SessionId; 6] {
    let new = |agent: &str, source: &str, memory_mode| NewSession {
        title: Some(format!("Fix the {agent} bug")),
        agent: Some(agent.to_owned()),
        source: Some(source.to_owned()),
        owner: Some(format!("owner-{source}")),
        workspace: Some(format!("w-{agent}")),
        plan: Some(format!("p-{agent}")),
        memory_mode,
        ..NewSession::default()
    };
    let busy = teller.new_session(&new("coder", "chat", Some(MemoryMode::Full)));
    let stopping = teller.new_session(&new("reviewer", "telegram", None));
    let child = teller.new_child(&new("tester", "chat", None), Some(busy));
    let done = teller.new_session(&new("coder", "api", Some(MemoryMode::Off)));
    let crashed = teller.new_session(&new("coder", "chat", Some(MemoryMode::Full)));
    let archived = teller.plain();
    let gone = teller.new_session(&new("coder", "chat", Some(MemoryMode::Full)));
    teller.start_turn(busy);
    teller.start_turn(stopping);
    teller.finish_turn(stopping);
    teller.push(stopping, stop_requested());
    teller.end(done, Ending::Completed);
    teller.start_turn(crashed);
    let turn = teller.sessions[&crashed].turn.as_ref().unwrap().id;
    teller.push(
        crashed,
        TurnEvent::Interrupted {
            turn,
            cause: InterruptCause::Crash,
            reason: None,
            uncertain: false,
            receipt: lanyard_core::session::Receipt::default(),
            review: false,
        },
    );
    teller.push(archived, ChangeEvent::Archived {});
    teller.delete(gone);
    [busy, stopping, child, done, crashed, archived]
}

/// S0-12, S0-13, S0-T7, S3-20, S3-T6.
fn each_filter_finds_what_it_names(store: &dyn Store) {
    let mut teller = Teller::default();
    let all = menagerie(&mut teller);
    teller.append(store);
    let [busy, stopping, child, done, crashed, archived] = all;
    let check = |filter: Filter, wanted: &[SessionId]| {
        let newest_first: Vec<SessionId> = wanted.iter().rev().copied().collect();
        assert_eq!(listed(store, &filter), newest_first, "{filter:?}");
    };
    let any = Filter::default;
    let text = |text: &str| Some(text.to_owned());
    check(any(), &all);
    check(Filter { status: Some(Status::Active), ..any() }, &[busy, child, crashed, archived]);
    check(Filter { status: Some(Status::Stopping), ..any() }, &[stopping]);
    check(Filter { status: Some(Status::Completed), ..any() }, &[done]);
    check(Filter { status: Some(Status::Stopped), ..any() }, &[]);
    check(Filter { lifecycle: Some(Lifecycle::Running), ..any() }, &[busy]);
    check(Filter { lifecycle: Some(Lifecycle::Idle), ..any() }, &[stopping, child, crashed, archived]);
    check(Filter { lifecycle: Some(Lifecycle::Terminal), ..any() }, &[done]);
    check(Filter { state: Some(StateName::Interrupted), ..any() }, &[crashed]);
    check(Filter { state: Some(StateName::Custom), ..any() }, &[child]);
    check(Filter { source: text("chat"), ..any() }, &[busy, child, crashed]);
    check(Filter { owner: text("owner-telegram"), ..any() }, &[stopping]);
    check(Filter { owner: text("alex"), ..any() }, &[archived]);
    check(Filter { agent: text("coder"), ..any() }, &[busy, done, crashed]);
    check(Filter { workspace: text("w-tester"), ..any() }, &[child]);
    check(Filter { plan: text("p-coder"), ..any() }, &[busy, done, crashed]);
    check(Filter { plan: text("nobody's"), ..any() }, &[]);
    check(Filter { parent: Some(busy), ..any() }, &[child]);
    // A child inherits what its parent may remember.
    check(Filter { memory_mode: Some(MemoryMode::Full), ..any() }, &[busy, child, crashed]);
    check(Filter { archived: Some(true), ..any() }, &[archived]);
    check(Filter { archived: Some(false), ..any() }, &[busy, stopping, child, done, crashed]);
    // S0-21, S0-22, S0-T8, S0-B12: only what has ended leaves, by the time of its end and never by that of its start.
    let ended = teller.sessions[&done].since.as_millis();
    check(Filter { live_since: Some(at(ended)), ..any() }, &all);
    check(Filter { live_since: Some(at(ended + 1)), ..any() }, &[busy, stopping, child, crashed, archived]);
}

fn filters_combine(store: &dyn Store) {
    let mut teller = Teller::default();
    let all = menagerie(&mut teller);
    teller.append(store);
    let mut rng = fastrand::Rng::with_seed(20);
    let mut pick = |some: Vec<Option<&str>>| rng.choice(some).unwrap().map(str::to_owned);
    let every = list_all(store, &Filter::default(), 100);
    for _ in 0..300 {
        let filter = Filter {
            source: pick(vec![None, None, Some("chat"), Some("api")]),
            agent: pick(vec![None, None, Some("coder"), Some("tester")]),
            text: pick(vec![None, None, Some("bug coder"), Some("TESTER"), Some("x")]),
            state: pick(vec![None, None, Some("e"), Some("i")])
                .map(|name| if name == "e" { StateName::Executing } else { StateName::Interrupted }),
            status: pick(vec![None, None, Some("a")]).map(|_| Status::Active),
            archived: pick(vec![None, Some("no")]).map(|_| false),
            ..Filter::default()
        };
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        let wanted: Vec<SessionId> = every
            .iter()
            .filter(|row| is(&filter.source, Some(&row.source)) && is(&filter.agent, row.agent.as_deref()))
            .filter(|row| filter.state.is_none_or(|state| row.state == state))
            .filter(|row| filter.status.is_none_or(|status| row.status == status))
            .filter(|row| filter.archived.is_none_or(|archived| row.archived == archived))
            .filter(|row| {
                let text = format!("{:?} {:?}", row.title, row.agent).to_lowercase();
                filter
                    .text
                    .iter()
                    .flat_map(|text| text.split(' '))
                    .all(|word| text.contains(&word.to_lowercase()))
            })
            .map(|row| row.id)
            .collect();
        assert_eq!(listed(store, &filter), wanted, "{filter:?}");
    }
    assert_eq!(every.len(), all.len());
}

fn words_are_found_in_any_case_and_are_never_syntax(store: &dyn Store) {
    let mut teller = Teller::default();
    let titles =
        ["Größe ändern", "NEAR AND OR NOT", "say \"hi\"", "c*", "a-b_c%d", "zwei\u{1f600}smile", "ab"];
    let ids: Vec<SessionId> = titles
        .iter()
        .map(|title| {
            teller.new_session(&NewSession { title: Some((*title).to_owned()), ..NewSession::default() })
        })
        .collect();
    let purposed =
        teller.new_session(&NewSession { purpose: Some("Refactoring".to_owned()), ..NewSession::default() });
    teller.append(store);
    let find = |text: &str| listed(store, &Filter { text: Some(text.to_owned()), ..Filter::default() });
    assert_eq!(find("GRÖSSE"), []);
    assert_eq!(find("größe ÄND"), [ids[0]]);
    assert_eq!(find("ndern"), [ids[0]]);
    assert_eq!(find("near"), [ids[1]]);
    assert_eq!(find("or"), [purposed, ids[1]]);
    assert_eq!(find("NEAR \"AND\""), []);
    assert_eq!(find("\"hi\""), [ids[2]]);
    assert_eq!(find("\""), [ids[2]]);
    assert_eq!(find("c*"), [ids[3]]);
    assert_eq!(find("%"), [ids[4]]);
    assert_eq!(find("a-b_c%d"), [ids[4]]);
    assert_eq!(find("a_b"), []);
    assert_eq!(find("\u{1f600}"), [ids[5]]);
    assert_eq!(find("i\u{1f600}s"), [ids[5]]);
    assert_eq!(find("ab"), [ids[6]]);
    assert_eq!(find("factor"), [purposed]);
    assert_eq!(find("text:near OR {x}"), []);
    assert_eq!(find("nul\0l"), []);
    assert_eq!(find("   ").len(), 8);
    assert_eq!(find("sagt"), []);
    // An alias that comes later is found too, and what was deleted is not.
    teller.alias(ids[6], "sagt-nichts");
    teller.delete(ids[0]);
    teller.append(store);
    assert_eq!(find("sagt"), [ids[6]]);
    assert_eq!(find("größe"), []);
}

fn paging_is_stable_while_sessions_are_made(store: &dyn Store) {
    let mut teller = Teller::default();
    for _ in 0..25 {
        teller.plain();
    }
    teller.append(store);
    let mut wanted: Vec<SessionId> = teller.ids.iter().rev().copied().collect();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let listing = store.list(&Filter::default(), cursor.as_ref(), 4).unwrap();
        seen.extend(listing.rows.iter().map(|row| row.id));
        let Some(next) = listing.next else { break };
        // As a client would send it back.
        cursor = Some(Cursor::parse(&next.to_string(), &Filter::default()).unwrap());
        teller.plain();
        if seen.len() == 8 {
            let next_one = wanted.remove(8);
            teller.delete(next_one);
        }
        teller.append(store);
    }
    assert_eq!(seen, wanted);
    let exact = store.list(&Filter::default(), None, listed(store, &Filter::default()).len()).unwrap();
    assert_eq!(exact.next, None);
    assert_eq!(store.list(&Filter::default(), None, 0).unwrap().rows, []);
}

fn a_cursor_belongs_to_its_filter(store: &dyn Store) {
    let mut teller = Teller::default();
    teller.plain();
    teller.plain();
    teller.append(store);
    let live = |since| Filter { live_since: Some(at(since)), ..Filter::default() };
    let cursor = store.list(&live(1), None, 1).unwrap().next.unwrap().to_string();
    assert!(Cursor::parse(&cursor, &live(2)).is_ok());
    assert_eq!(Cursor::parse(&cursor, &Filter::default()), Err(CursorError::OtherFilter));
    assert_eq!(Cursor::parse("x", &live(1)), Err(CursorError::Unreadable));
}

/// S3-21.
fn a_row_shows_the_session_and_its_latest_activity(store: &dyn Store) {
    let mut teller = Teller::default();
    let all = menagerie(&mut teller);
    teller.append(store);
    let busy = all[0];
    teller.say(busy, "at work");
    teller.append(store);
    for row in list_all(store, &Filter::default(), 100) {
        let session = &teller.sessions[&row.id];
        assert_eq!(row.title, session.title);
        assert_eq!((&row.owner, &row.source), (&session.hands.owner, &session.source));
        assert_eq!((row.state, row.status), (session.state.name(), session.status()));
        assert_eq!((row.turns, row.since), (session.turns, session.since));
        assert_eq!((row.last_seq, row.last_activity_at), (session.seq, session.last_activity_at));
        assert_eq!(row.level, teller.lineage(row.id).level());
        assert_eq!(row.cause.is_some(), row.state == StateName::Interrupted);
    }
    let crashed = list_all(store, &Filter { state: Some(StateName::Interrupted), ..Filter::default() }, 1);
    assert_eq!(crashed[0].cause, Some(InterruptCause::Crash));
    // A timer moves the state and is no activity.
    let quiet = all[4];
    let before = teller.sessions[&quiet].last_activity_at;
    teller.push(quiet, ChangeEvent::WentIdle { quiet_ms: 9 });
    teller.append(store);
    let rows = list_all(store, &Filter { state: Some(StateName::Idle), ..Filter::default() }, 9);
    assert_eq!((rows[0].id, rows[0].last_activity_at), (quiet, before));
}

/// S1-28, S1-34.
fn lineages_levels_and_heights_follow_the_parents(store: &dyn Store) {
    let mut teller = Teller::default();
    let mut chain = vec![teller.plain()];
    for _ in 0..5 {
        let child = teller.new_child(&NewSession::default(), chain.last().copied());
        chain.push(child);
    }
    let single = teller.plain();
    teller.append(store);
    let lineages = store.lineages(&[chain[5], single, chain[2], SessionId::from_u128(1)]).unwrap();
    let up: Vec<SessionId> = chain[..5].iter().rev().copied().collect();
    assert_eq!(lineages[0].ancestors, up);
    assert_eq!(lineages[1].ancestors, []);
    assert_eq!(lineages[2].ancestors, [chain[1], chain[0]]);
    assert_eq!(lineages[3].ancestors, []);
    let heights: Vec<u32> = chain.iter().map(|id| store.height(*id, 64).unwrap()).collect();
    assert_eq!(heights, [6, 5, 4, 3, 2, 1]);
    assert_eq!(store.height(chain[0], 3).unwrap(), 3);
    assert_eq!(store.height(single, 3).unwrap(), 1);
    let levels: Vec<u32> = list_all(store, &Filter::default(), 2).iter().rev().map(|row| row.level).collect();
    assert_eq!(levels, [1, 2, 3, 3, 3, 3, 1]);
    // Linked under another parent, with its family.
    teller.push(chain[3], ChangeEvent::Linked { parent: single, previous: Some(chain[2]) });
    teller.push(single, ChangeEvent::ChildLinked { child: chain[3], agent: None });
    teller.append(store);
    assert_eq!(store.height(single, 64).unwrap(), 4);
    assert_eq!(store.height(chain[0], 64).unwrap(), 3);
    assert_eq!(store.lineages(&[chain[5]]).unwrap()[0].ancestors, [chain[4], chain[3], single]);
    // A deleted leaf takes no room.
    teller.delete(chain[5]);
    teller.append(store);
    assert_eq!(store.height(single, 64).unwrap(), 3);
    teller.assert_kept(store);
}

fn only_live_children_count(store: &dyn Store) {
    let mut teller = Teller::default();
    let parent = teller.plain();
    let children: Vec<SessionId> =
        (0..4).map(|_| teller.new_child(&NewSession::default(), Some(parent))).collect();
    teller.append(store);
    assert_eq!(store.live_children(parent).unwrap(), 4);
    teller.end(children[0], Ending::Failed);
    teller.delete(children[1]);
    teller.append(store);
    assert_eq!(store.live_children(parent).unwrap(), 2);
    assert_eq!(store.live_children(children[2]).unwrap(), 0);
}

fn candidates_for_timers_come_longest_first(store: &dyn Store) {
    let mut teller = Teller::default();
    let ids: Vec<SessionId> = (0..6).map(|_| teller.plain()).collect();
    for index in [3, 0, 4, 1, 5] {
        teller.start_turn(ids[index]);
    }
    teller.append(store);
    teller.finish_turn(ids[4]);
    teller.end(ids[2], Ending::Completed);
    teller.append(store);
    let since = |id: &SessionId| teller.sessions[id].since;
    let running = |before, limit| store.in_state_since(StateName::Executing, before, limit).unwrap();
    assert_eq!(running(at(teller.now), 10), [ids[3], ids[0], ids[1], ids[5]]);
    assert_eq!(running(at(teller.now), 2), [ids[3], ids[0]]);
    assert_eq!(running(since(&ids[1]), 10), [ids[3], ids[0], ids[1]]);
    assert_eq!(running(at(since(&ids[3]).as_millis() - 1), 10), []);
    assert_eq!(store.in_state_since(StateName::BetweenTurn, at(teller.now), 10).unwrap(), [ids[4]]);
}

fn states_are_counted(store: &dyn Store) {
    let mut teller = Teller::default();
    menagerie(&mut teller);
    teller.append(store);
    let counts = store.states().unwrap();
    let wanted = StateName::ALL.map(|state| {
        let alive = teller.sessions.values().filter(|session| !session.deleted);
        (state, alive.filter(|session| session.state.name() == state).count() as u64)
    });
    assert_eq!(counts, wanted);
}

fn moving_a_session_moves_it_in_every_listing(store: &dyn Store) {
    let mut teller = Teller::default();
    let (one, two) = (teller.plain(), teller.plain());
    teller.append(store);
    let owned = |owner: &str| listed(store, &Filter { owner: Some(owner.to_owned()), ..Filter::default() });
    assert_eq!(owned("alex"), [two, one]);
    teller.hand_to(one, "sam");
    teller.append(store);
    assert_eq!((owned("alex"), owned("sam")), (vec![two], vec![one]));
    teller.hand_to(one, "alex");
    teller.append(store);
    assert_eq!((owned("alex"), owned("sam")), (vec![two, one], vec![]));
}

fn stop_requested() -> ControlEvent {
    let (level, scope) = (StopLevel::Graceful, lanyard_core::session::StopScope::Session);
    ControlEvent::StopRequested { level, scope, reason: None, inherited: None }
}

/// S3-20, and the order of the overview: what needs a person, the most pressing first; then the latest activity.
fn who_needs_a_person_comes_first(store: &dyn Store) {
    let mut teller = Teller::default();
    let ids: Vec<SessionId> = (0..6).map(|_| teller.plain()).collect();
    // 0 calm, 1 failed, 2 at work and silent, 3 crashed, 4 stopping, 5 failed and put away.
    teller.end(ids[1], Ending::Failed);
    teller.start_turn(ids[2]);
    let TurnEvent::Started { turn, .. } = teller.started() else { panic!("a turn starts") };
    teller.start_turn(ids[3]);
    let turn = teller.sessions[&ids[3]].turn.as_ref().map_or(turn, |turn| turn.id);
    teller.push(
        ids[3],
        TurnEvent::Interrupted {
            turn,
            cause: InterruptCause::Crash,
            reason: None,
            uncertain: true,
            receipt: lanyard_core::session::Receipt::default(),
            review: false,
        },
    );
    let stop = ControlEvent::StopRequested {
        level: StopLevel::Graceful,
        scope: lanyard_core::session::StopScope::Session,
        reason: None,
        inherited: None,
    };
    teller.push(ids[4], stop);
    teller.end(ids[5], Ending::Failed);
    teller.push(ids[5], ChangeEvent::Archived {});
    teller.append(store);
    let filter = Filter { sort: Sort::Attention, silent_since: Some(at(teller.now)), ..Filter::default() };
    let order = listed(store, &filter);
    assert_eq!(order, [ids[2], ids[3], ids[1], ids[4], ids[5], ids[0]]);
    let pressing = Filter { attention: true, ..filter.clone() };
    assert_eq!(listed(store, &pressing), [ids[2], ids[3], ids[1], ids[4]]);
    let reasons: Vec<_> = list_all(store, &pressing, 3).into_iter().flat_map(|row| row.attention).collect();
    let expected = [Attention::SuspectedOrphan, Attention::Uncertain, Attention::Failed, Attention::Stopping];
    assert_eq!(reasons, expected);
    // Heard of lately: nobody has to look.
    let lately = Filter { silent_since: Some(at(0)), ..pressing };
    assert_eq!(listed(store, &lately), [ids[3], ids[1], ids[4]]);
}

fn the_latest_activity_comes_first_and_pages_follow(store: &dyn Store) {
    let mut teller = Teller::default();
    let ids: Vec<SessionId> = (0..7).map(|_| teller.plain()).collect();
    for index in [4, 1, 6] {
        teller.say(ids[index], "at work");
    }
    teller.append(store);
    let filter = Filter { sort: Sort::Activity, ..Filter::default() };
    let expected = [6, 1, 4, 5, 3, 2, 0].map(|index: usize| ids[index]);
    for page in 1..8 {
        let rows: Vec<SessionId> = list_all(store, &filter, page).into_iter().map(|row| row.id).collect();
        assert_eq!(rows, expected, "pages of {page}");
    }
    let cursor = store.list(&filter, None, 2).unwrap().next.unwrap().to_string();
    assert_eq!(Cursor::parse(&cursor, &Filter::default()), Err(CursorError::OtherFilter));
}
