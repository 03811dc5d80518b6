//! Sessions made with the real core, batches of them, and what a journal must then answer.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use lanyard_core::insight::{InsightStep, step};
use lanyard_core::journal::Row;
use lanyard_core::session::{
    ChangeEvent, Delivery, Ending, Envelope, Event, Hands, Lineage, NewSession, Opening, Role,
    TranscriptEvent, TurnEvent, TurnOutcome, TurnStep, create, replay,
};
use lanyard_core::{Actor, Limits, Outcome, Session, SessionId, Timestamp, TurnId};
use lanyard_store::{
    AppendError, Backups, Batch, Directory, EventEntry, Filter, FlowBatch, Flows, Insights, Journal,
    KeptOutcome, Lineages, Memories, MemoryUpkeep, NotificationBatch, Notifications, Papers, Purges,
    RecordBatch, SqliteJournal, SqliteOptions, Tallies, Tasks, TextSearch, Tokens, Turns, Upkeep, WorkBatch,
};

/// All a journal can be asked.
pub(crate) trait Store:
    Journal
    + Turns
    + Directory
    + Lineages
    + Upkeep
    + Tokens
    + Papers
    + Tasks
    + Flows
    + Memories
    + MemoryUpkeep
    + Tallies
    + Insights
    + Notifications
    + Purges
    + Backups
    + TextSearch
{
}

impl<T> Store for T where
    T: Journal
        + Turns
        + Directory
        + Lineages
        + Upkeep
        + Tokens
        + Papers
        + Tasks
        + Flows
        + Memories
        + MemoryUpkeep
        + Tallies
        + Insights
        + Notifications
        + Purges
        + Backups
        + TextSearch
{
}

/// Writes records of one kind in a batch of their own.
pub(crate) trait WriteRecords: Journal + Notifications {
    fn write_work(&self, batch: &WorkBatch) -> Result<(), AppendError> {
        self.write_records(batch.records().unwrap())
    }

    fn write_flows(&self, batch: &FlowBatch) -> Result<(), AppendError> {
        self.write_records(batch.records().unwrap())
    }

    fn write_notifications(&self, batch: &NotificationBatch) -> Result<(), AppendError> {
        self.write_records(self.notification_records(batch).unwrap())
    }

    fn write_records(&self, records: RecordBatch) -> Result<(), AppendError> {
        let refused = self.contradiction(&records).unwrap();
        let written = self.append(&Batch { records, ..Batch::default() });
        assert_eq!(refused.is_some(), matches!(written, Err(AppendError::Contradiction(_))), "{refused:?}");
        written
    }
}

impl<T: Journal + Notifications + ?Sized> WriteRecords for T {}

/// Runs each check on every backend: one module of tests per backend.
macro_rules! on_every_journal {
    ($($check:ident)*) => {
        mod sqlite {
            $(#[test]
            fn $check() {
                let folder = tempfile::tempdir().unwrap();
                super::$check(&crate::kit::open(&folder.path().join("journal.db")));
            })*
        }
    };
}
pub(crate) use on_every_journal;

pub(crate) fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::open(options(path)).unwrap()
}

pub(crate) fn options(path: &Path) -> SqliteOptions {
    SqliteOptions { readers: 2, ..SqliteOptions::at(path.to_owned()) }
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Tells stories: makes sessions and events as the engine would, and remembers all of them.
#[derive(Clone)]
pub(crate) struct Teller {
    pub(crate) now: i64,
    minted: u128,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) logs: BTreeMap<SessionId, Vec<Bytes>>,
    /// In order of creation.
    pub(crate) ids: Vec<SessionId>,
    entries: Vec<EventEntry>,
    turns: Vec<TurnStep>,
    insight: Vec<InsightStep>,
    /// Sessions with structural events in the batch to come.
    changed: Vec<SessionId>,
}

impl Default for Teller {
    fn default() -> Self {
        Self {
            now: 1_794_729_600_000,
            minted: 0,
            sessions: BTreeMap::new(),
            logs: BTreeMap::new(),
            ids: Vec::new(),
            entries: Vec::new(),
            turns: Vec::new(),
            insight: Vec::new(),
            changed: Vec::new(),
        }
    }
}

impl Teller {
    fn mint(&mut self) -> u128 {
        self.minted += 1;
        self.minted.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    pub(crate) fn new_session(&mut self, new: &NewSession) -> SessionId {
        self.new_child(new, None)
    }

    pub(crate) fn new_child(&mut self, new: &NewSession, parent: Option<SessionId>) -> SessionId {
        let id = SessionId::mint(at(self.now), self.mint());
        let parent = parent.map(|parent| (self.sessions[&parent].clone(), self.lineage(parent)));
        let limits = Limits { depth: 64, ..Limits::default() };
        let made = create(new, "alex", parent.as_ref().map(|(session, lineage)| (session, lineage)), &limits);
        let envelope = self.envelope(id, 1, made.unwrap().into());
        let session = Session::born(&envelope).unwrap();
        self.ids.push(id);
        self.sessions.insert(id, session);
        self.logs.insert(id, Vec::new());
        self.record(&envelope);
        id
    }

    pub(crate) fn plain(&mut self) -> SessionId {
        self.new_session(&NewSession::default())
    }

    pub(crate) fn lineage(&self, id: SessionId) -> Lineage {
        let mut ancestors = Vec::new();
        let mut parent = self.sessions[&id].parent;
        while let Some(id) = parent {
            ancestors.push(id);
            parent = self.sessions[&id].parent;
        }
        Lineage { ancestors }
    }

    fn envelope(&mut self, session: SessionId, seq: u64, event: Event) -> Envelope {
        self.now += 1;
        Envelope { seq, session, at: at(self.now), actor: Actor::operator("alex"), cause: None, event }
    }

    fn record(&mut self, envelope: &Envelope) {
        let body = Bytes::from(serde_json::to_vec(envelope).unwrap());
        self.logs.get_mut(&envelope.session).unwrap().push(body.clone());
        let (session, seq, at) = (envelope.session, envelope.seq, envelope.at);
        self.entries.push(EventEntry { session, seq, at, body });
        self.turns.extend(TurnStep::of(envelope));
        if envelope.event.is_structural() && !self.changed.contains(&session) {
            self.changed.push(session);
        }
    }

    pub(crate) fn push(&mut self, id: SessionId, event: impl Into<Event>) {
        let seq = self.sessions[&id].seq + 1;
        let envelope = self.envelope(id, seq, event.into());
        self.insight.extend(step(self.sessions.get(&id), &envelope));
        self.sessions.get_mut(&id).unwrap().apply(&envelope).unwrap();
        self.record(&envelope);
    }

    /// The event, if it can happen to the session as it is.
    pub(crate) fn attempt(&mut self, id: SessionId, event: impl Into<Event>) {
        let seq = self.sessions[&id].seq + 1;
        let envelope = self.envelope(id, seq, event.into());
        let mut session = self.sessions[&id].clone();
        if session.apply(&envelope).is_ok() {
            self.insight.extend(step(self.sessions.get(&id), &envelope));
            self.sessions.insert(id, session);
            self.record(&envelope);
        }
    }

    pub(crate) fn say(&mut self, id: SessionId, text: &str) {
        self.push(
            id,
            TranscriptEvent::Message {
                role: Role::Agent,
                text: text.to_owned(),
                message_id: None,
                parts: Vec::new(),
            },
        );
    }

    pub(crate) fn started(&mut self) -> TurnEvent {
        let turn = TurnId::from_u128(self.mint());
        let (client_turn_id, prompt, anchors) = (None, "go on".to_owned(), Vec::new());
        let (prompt_hash, opening) = ("0".to_owned(), Opening::Continued);
        let (delivery, queued, by) = (Delivery::Reject, false, None);
        TurnEvent::Started {
            turn,
            client_turn_id,
            prompt,
            parts: Vec::new(),
            prompt_hash,
            opening,
            anchors,
            governance: false,
            delivery,
            queued,
            by,
            memory: None,
            choice: lanyard_core::session::AgentChoice::default(),
            forced: false,
        }
    }

    pub(crate) fn start_turn(&mut self, id: SessionId) {
        let started = self.started();
        self.push(id, started);
    }

    pub(crate) fn finish_turn(&mut self, id: SessionId) {
        let turn = self.sessions[&id].turn.as_ref().unwrap().id;
        self.push(
            id,
            TurnEvent::Finished { turn, outcome: TurnOutcome::Completed, reason: None, review: false },
        );
    }

    pub(crate) fn end(&mut self, id: SessionId, how: Ending) {
        self.push(id, ChangeEvent::Ended { how, reason: None });
    }

    pub(crate) fn delete(&mut self, id: SessionId) {
        self.push(id, ChangeEvent::Deleted { reason: None });
    }

    pub(crate) fn alias(&mut self, id: SessionId, alias: &str) {
        self.push(id, ChangeEvent::AliasAdded { alias: alias.to_owned() });
    }

    pub(crate) fn hand_to(&mut self, id: SessionId, owner: &str) {
        let from = self.sessions[&id].hands.clone();
        let to = Hands { owner: owner.to_owned(), ..from.clone() };
        self.push(
            id,
            ChangeEvent::Migrated { from, to, reason: "shift change".to_owned(), continuity: None },
        );
    }

    /// Everything that happened since the last batch.
    pub(crate) fn batch(&mut self) -> Batch {
        let sessions = std::mem::take(&mut self.changed).iter().map(|id| self.sessions[id].clone()).collect();
        let (entries, turns) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.turns));
        let insight = std::mem::take(&mut self.insight);
        Batch { entries, sessions, turns, insight, ..Batch::default() }
    }

    pub(crate) fn append(&mut self, store: &dyn Store) {
        store.append(&self.batch()).unwrap();
    }

    /// The journal answers for every session with exactly what was told.
    pub(crate) fn assert_kept(&self, store: &dyn Store) {
        for (id, log) in &self.logs {
            let page = store.events(*id, 0, usize::MAX).unwrap();
            let bodies: Vec<&Bytes> = page.events.iter().map(|event| event.body.as_ref().unwrap()).collect();
            assert_eq!(bodies, log.iter().collect::<Vec<_>>(), "{id}");
            assert!(page.events.iter().map(|event| event.seq).eq(1..=log.len() as u64), "{id}");
            assert_eq!(page.head, log.len() as u64, "{id}");
            let loaded = store.load(*id).unwrap().unwrap();
            let envelopes: Vec<Envelope> =
                log.iter().map(|body| serde_json::from_slice(body).unwrap()).collect();
            assert_eq!(loaded.session, replay(&envelopes).unwrap().unwrap(), "{id}");
            assert_eq!(loaded.session, self.sessions[id], "{id}");
            assert_eq!(loaded.lineage, self.lineage(*id), "{id}");
            assert_eq!(loaded.damage, [], "{id}");
        }
    }
}

pub(crate) fn outcome(key: u8, session: SessionId, millis: i64) -> KeptOutcome {
    let outcome = Outcome {
        session,
        seq: 1,
        events: 1,
        state: lanyard_core::session::StateName::Beginning,
        turn: None,
        comment: None,
        note: None,
        delivery: None,
        continuity: None,
        stop_level: None,
        warnings: vec!["cut at 500".to_owned()],
    };
    KeptOutcome { key: [key; 16], request: [key.wrapping_add(1); 16], at: at(millis), outcome }
}

/// All pages of a listing.
pub(crate) fn list_all(store: &dyn Store, filter: &Filter, page: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut cursor = None;
    loop {
        let listing = store.list(filter, cursor.as_ref(), page).unwrap();
        assert!(listing.rows.len() <= page);
        rows.extend(listing.rows);
        match listing.next {
            Some(next) => cursor = Some(next),
            None => return rows,
        }
    }
}

/// What a listing finds. Asked by name, the same sessions match.
pub(crate) fn listed(store: &dyn Store, filter: &Filter) -> Vec<SessionId> {
    let found = list_all(store, filter, 3);
    let all: Vec<SessionId> = list_all(store, &Filter::default(), 100).iter().map(|row| row.id).collect();
    let mut named = store.rows(&all, filter).unwrap();
    named.sort_by_key(|row| found.iter().position(|other| other.id == row.id));
    assert_eq!(named, found, "{filter:?}");
    found.into_iter().map(|row| row.id).collect()
}
