//! Whatever happens, in whatever batches: projections made along the way are the ones the log adds up to.

use lanyard_core::journal::Row;
use lanyard_core::session::{
    ChangeEvent, ControlEvent, Ending, Event, Hands, NewSession, StateName, StopLevel, TranscriptEvent,
    TurnEvent, TurnOutcome,
};
use lanyard_core::{Address, Session, SessionId};
use lanyard_store::{Filter, Found, Loaded, Upkeep};
use proptest::prelude::*;

use crate::kit::{Store, Teller, list_all, open};

/// One thing that happens to one of the sessions, or the end of a batch.
#[derive(Debug, Clone)]
enum Step {
    Create { alias: u8, place: u8, parent: Option<u8> },
    Say(u8),
    Turn(u8),
    Stop(u8),
    Alias(u8, u8),
    HandOver(u8, u8),
    Archive(u8),
    End(u8),
    Delete(u8),
    Commit,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (any::<u8>(), 0..4_u8, proptest::option::of(any::<u8>()))
            .prop_map(|(alias, place, parent)| Step::Create { alias, place, parent }),
        8 => any::<u8>().prop_map(Step::Say),
        4 => any::<u8>().prop_map(Step::Turn),
        1 => any::<u8>().prop_map(Step::Stop),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(who, alias)| Step::Alias(who, alias)),
        1 => (any::<u8>(), 0..3_u8).prop_map(|(who, owner)| Step::HandOver(who, owner)),
        1 => any::<u8>().prop_map(Step::Archive),
        1 => any::<u8>().prop_map(Step::End),
        1 => any::<u8>().prop_map(Step::Delete),
        4 => Just(Step::Commit),
    ]
}

/// Does the step, if it can happen to the session it picks.
fn take(teller: &mut Teller, step: &Step, store: &dyn Store) {
    let pick = |who: u8| teller.ids.get(usize::from(who) % teller.ids.len().max(1)).copied();
    let event: (Option<SessionId>, Event) = match *step {
        Step::Create { alias, place, parent } => {
            let new = NewSession {
                title: Some(format!("title {alias}")),
                workspace: (place & 1 > 0).then(|| "w".to_owned()),
                plan: (place & 2 > 0).then(|| "p".to_owned()),
                // Aliases that may clash are the contract suite's business.
                aliases: vec![format!("alias-{}-{alias}", teller.ids.len())],
                ..NewSession::default()
            };
            let alive =
                |id: &SessionId| !teller.sessions[id].state.is_ended() && !teller.sessions[id].deleted;
            let parent = parent.and_then(pick).filter(alive);
            teller.new_child(&new, parent);
            return;
        }
        Step::Commit => {
            teller.append(store);
            return;
        }
        Step::Say(who) => (pick(who), TranscriptEvent::Thought { text: "hm".to_owned() }.into()),
        Step::Turn(who) => {
            let id = pick(who);
            let turn = id.and_then(|id| teller.sessions[&id].turn.as_ref()).map(|turn| turn.id);
            let event = match turn {
                Some(turn) => {
                    TurnEvent::Finished { turn, outcome: TurnOutcome::Completed, reason: None, review: true }
                }
                None => teller.started(),
            };
            (id, event.into())
        }
        Step::Stop(who) => (pick(who), stop_requested().into()),
        Step::Alias(who, alias) => {
            (pick(who), ChangeEvent::AliasAdded { alias: format!("later-{}-{alias}", teller.now) }.into())
        }
        Step::HandOver(who, owner) => {
            let id = pick(who);
            let Some(from) = id.map(|id| teller.sessions[&id].hands.clone()) else { return };
            let to = Hands { owner: format!("owner-{owner}"), ..from.clone() };
            (id, ChangeEvent::Migrated { from, to, reason: "shift".to_owned(), continuity: None }.into())
        }
        Step::Archive(who) => (pick(who), ChangeEvent::Archived {}.into()),
        Step::End(who) => (pick(who), ChangeEvent::Ended { how: Ending::Stopped, reason: None }.into()),
        Step::Delete(who) => (pick(who), ChangeEvent::Deleted { reason: None }.into()),
    };
    if let (Some(id), event) = event {
        teller.attempt(id, event);
    }
}

/// The part of a listing's row that follows from the session alone.
#[derive(Debug, PartialEq)]
struct Line {
    id: SessionId,
    owner: String,
    state: StateName,
    level: u32,
    archived: bool,
    turns: u64,
    last_seq: u64,
}

/// Answers of a journal about its sessions.
#[derive(Debug, PartialEq)]
struct Answers {
    rows: Vec<Line>,
    texts: Vec<SessionId>,
    finds: Vec<Vec<Found>>,
    loads: Vec<Option<Loaded>>,
    events: Vec<Vec<Vec<u8>>>,
    heights: Vec<u32>,
    executing: Vec<SessionId>,
    states: Vec<(StateName, u64)>,
}

fn ask(store: &dyn Store, teller: &Teller) -> Answers {
    let ids = &teller.ids;
    let aliases = teller.sessions.values().flat_map(|session| &session.aliases);
    let now = lanyard_core::Timestamp::from_millis(teller.now);
    let bodies = |id: &SessionId| {
        let page = store.events(*id, 0, usize::MAX).unwrap();
        page.events.into_iter().map(|event| event.body.unwrap().to_vec()).collect()
    };
    let line = |row: Row| Line {
        id: row.id,
        owner: row.owner,
        state: row.state,
        level: row.level,
        archived: row.archived,
        turns: row.turns,
        last_seq: row.last_seq,
    };
    let titled = Filter { text: Some("TITLE 1".to_owned()), ..Filter::default() };
    Answers {
        rows: list_all(store, &Filter::default(), 7).into_iter().map(line).collect(),
        texts: list_all(store, &titled, 7).into_iter().map(|row| row.id).collect(),
        finds: aliases.map(|alias| store.find(&Address::of(alias.clone())).unwrap()).collect(),
        loads: ids.iter().map(|id| store.load(*id).unwrap()).collect(),
        events: ids.iter().map(bodies).collect(),
        heights: ids.iter().map(|id| store.height(*id, 64).unwrap()).collect(),
        executing: store.in_state_since(StateName::Executing, now, 5).unwrap(),
        states: store.states().unwrap(),
    }
}

/// The model: the same answers from the sessions and logs as they were made, without a journal.
fn model(teller: &Teller) -> Answers {
    let ids = &teller.ids;
    let session = |id: &SessionId| &teller.sessions[id];
    let live: Vec<&Session> = ids.iter().map(session).filter(|session| !session.deleted).collect();
    let shown = |session: &&Session| Line {
        id: session.id,
        owner: session.hands.owner.clone(),
        state: session.state.name(),
        level: teller.lineage(session.id).level(),
        archived: session.archived,
        turns: session.turns,
        last_seq: session.seq,
    };
    let has_text = |session: &&&Session| {
        let title = session.title.clone().unwrap_or_default();
        let text = [&[title], session.aliases.as_slice()].concat().join("\n");
        text.contains("title") && text.contains('1')
    };
    let found = |session: &Session| {
        let found = Found { session: session.id, deleted: session.deleted };
        session.aliases.iter().map(|_| vec![found]).collect::<Vec<_>>()
    };
    let load = |id: &SessionId| Loaded {
        session: session(id).clone(),
        lineage: teller.lineage(*id),
        damage: Vec::new(),
    };
    let height = |id: &SessionId| {
        let up = |session: &&Session| {
            teller.lineage(session.id).ancestors.iter().position(|ancestor| ancestor == id)
        };
        live.iter().filter_map(up).max().map_or(1, |up| up as u32 + 2)
    };
    let mut executing: Vec<&&Session> =
        live.iter().filter(|session| session.state.name() == StateName::Executing).collect();
    executing.sort_by_key(|session| session.since);
    let count = |state| live.iter().filter(|session| session.state.name() == state).count() as u64;
    Answers {
        rows: live.iter().rev().map(shown).collect(),
        texts: live.iter().rev().filter(has_text).map(|session| session.id).collect(),
        finds: teller.sessions.values().flat_map(found).collect(),
        loads: ids.iter().map(|id| Some(load(id))).collect(),
        events: ids.iter().map(|id| teller.logs[id].iter().map(|body| body.to_vec()).collect()).collect(),
        heights: ids.iter().map(height).collect(),
        executing: executing.into_iter().take(5).map(|session| session.id).collect(),
        states: StateName::ALL.into_iter().map(|state| (state, count(state))).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// S0-B16, S0-T3: the file answers as the model does, a reopened file is the same, and so is one whose projections
    /// were made again from the log.
    #[test]
    fn projections_are_what_the_log_adds_up_to(steps in proptest::collection::vec(step(), 1..250)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        let sqlite = open(&path);
        let mut teller = Teller::default();
        for step in steps.iter().chain([&Step::Commit]) {
            take(&mut teller, step, &sqlite);
        }
        let wanted = model(&teller);
        prop_assert_eq!(&ask(&sqlite, &teller), &wanted);
        let report = sqlite.check().unwrap();
        prop_assert_eq!((report.structure, report.damage), (vec![], vec![]));
        drop(sqlite);
        let sqlite = open(&path);
        prop_assert_eq!(&ask(&sqlite, &teller), &wanted);
        prop_assert_eq!(sqlite.rebuild().unwrap(), teller.ids.len() as u64);
        prop_assert_eq!(&ask(&sqlite, &teller), &wanted);
        let report = sqlite.check().unwrap();
        prop_assert_eq!((report.structure, report.damage), (vec![], vec![]));
        drop(sqlite);
        prop_assert_eq!(&ask(&open(&path), &teller), &wanted);
    }
}

fn stop_requested() -> ControlEvent {
    let (level, scope) = (StopLevel::Graceful, lanyard_core::session::StopScope::Session);
    ControlEvent::StopRequested { level, scope, reason: None, inherited: None }
}
