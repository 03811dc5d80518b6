//! A journal that forgets everything when it is dropped. For tests, and the plainest telling of what a journal does:
//! the same suite runs on it and on the ones that keep their promises.

mod flows;
mod memories;
mod notifications;
mod purges;
mod tasks;
mod tokens;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lanyard_core::session::{Envelope, Lineage, OperatorState, StateName, TurnRow, TurnStep, replay};
use lanyard_core::{Address, Session, SessionId, Timestamp, TokenId, TurnId};

use crate::card::{ANCESTORS_MAX, Card, Kin, search_text, words};
use crate::error::{AppendError, StoreError};
use crate::journal::{
    Batch, Directory, EventPage, FIND_MAX, Families, Found, Journal, KeptOutcome, KeyHash, Loaded, Paper,
    Papers, Place, Put, Report, StoredEvent, StoredToken, TurnPage, Turns, Upkeep,
};
use crate::memory::flows::Conducted;
use crate::memory::memories::Remembered;
use crate::memory::notifications::{Board, Counts};
use crate::memory::tasks::Work;
use crate::purges::Tombstone;
use crate::query::{Cursor, Filter, Listing, Rank, Row, Sort};

#[derive(Debug, Default)]
pub struct MemoryJournal {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default, Clone)]
struct Kept {
    /// In order of creation.
    sessions: Vec<Stored>,
    places: HashMap<SessionId, usize>,
    outcomes: BTreeMap<KeyHash, KeptOutcome>,
    turns: BTreeMap<(SessionId, TurnId), TurnRow>,
    tokens: BTreeMap<TokenId, StoredToken>,
    papers: BTreeMap<Place, Paper>,
    work: Work,
    conducted: Conducted,
    counts: Counts,
    board: Board,
    remembered: Remembered,
    disk: Disk,
}

#[derive(Debug, Clone)]
struct Stored {
    /// As of the last batch that brought it.
    session: Session,
    /// Event `seq` is at `seq - 1`.
    log: Vec<(Timestamp, Bytes)>,
    /// What is left of it, once its purge has begun.
    stone: Option<Tombstone>,
}

/// How the disk this journal does not have is doing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Disk {
    #[default]
    Good,
    /// The next append finds it broken.
    Failing,
    /// An append found it broken, and nothing is written until the journal is recovered.
    Failed,
}

impl MemoryJournal {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next append, or writing of work or flows, fails as on a full disk, and all further ones until `recover`.
    pub fn fail_next_append(&self) {
        self.kept().disk = Disk::Failing;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn card(&self) -> Card {
        Card::of(&self.session)
    }

    fn head(&self) -> u64 {
        self.log.len() as u64
    }

    fn last_at(&self) -> Option<Timestamp> {
        self.log.last().map(|(at, _)| *at)
    }

    fn is_live(&self) -> bool {
        !self.session.deleted && !self.session.state.is_ended()
    }

    fn is_beside(&self, workspace: Option<&str>, plan: Option<&str>) -> bool {
        self.session.workspace.as_deref() == workspace && self.session.plan.as_deref() == plan
    }

    fn replayed(&self) -> Result<Session, StoreError> {
        let damaged = |what: String| StoreError::Damaged(format!("session {}: {what}", self.session.id));
        let log = self.log.iter().map(|(_, body)| serde_json::from_slice(body));
        let log: Vec<Envelope> = log.collect::<Result<_, _>>().map_err(|error| damaged(error.to_string()))?;
        let session = replay(&log).map_err(|error| damaged(error.to_string()))?;
        session.ok_or_else(|| damaged("no events".to_owned()))
    }
}

impl Kept {
    fn writable(&mut self) -> Result<(), AppendError> {
        if self.disk != Disk::Good {
            self.disk = Disk::Failed;
            return Err(AppendError::Unavailable(StoreError::Stopped("a failure was asked for".to_owned())));
        }
        Ok(())
    }

    fn get(&self, id: SessionId) -> Option<&Stored> {
        self.places.get(&id).and_then(|&at| self.sessions.get(at))
    }

    fn add(&mut self, batch: &Batch) -> Result<(), String> {
        let born: HashMap<SessionId, &Session> =
            batch.sessions.iter().map(|session| (session.id, session)).collect();
        for entry in &batch.entries {
            let id = entry.session;
            if !self.places.contains_key(&id) {
                let session =
                    *born.get(&id).ok_or_else(|| format!("a new session {id} without its record"))?;
                self.places.insert(id, self.sessions.len());
                self.sessions.push(Stored { session: session.clone(), log: Vec::new(), stone: None });
            }
            let stored = &mut self.sessions[self.places[&id]];
            if stored.stone.is_some() {
                return Err(format!("an event of {id}, which is purged"));
            }
            let log = &mut stored.log;
            if entry.seq != log.len() as u64 + 1 {
                return Err(format!("event {} of {id} after event {}", entry.seq, log.len()));
            }
            log.push((entry.at, entry.body.clone()));
        }
        for session in &batch.sessions {
            let id = session.id;
            let at = *self.places.get(&id).ok_or_else(|| format!("a record of {id}, which has no events"))?;
            let stored = &mut self.sessions[at];
            if session.seq != stored.head() {
                return Err(format!("a record of {id} as of {}, not {}", session.seq, stored.head()));
            }
            stored.session = session.clone();
        }
        self.outcomes.extend(batch.outcomes.iter().map(|kept| (kept.key, kept.clone())));
        for step in &batch.turns {
            self.step(step);
        }
        if let Some((at, tally)) = &batch.tally {
            self.counts.add(*at, tally);
        }
        self.check_aliases()
    }

    fn step(&mut self, step: &TurnStep) {
        let place = (step.session, step.turn);
        let before = self.turns.remove(&place);
        if let Some(row) = step.onto(before) {
            self.turns.insert(place, row);
        }
    }

    /// S0-01: within one workspace and plan an alias names one session that is not deleted.
    fn check_aliases(&self) -> Result<(), String> {
        let mut taken = HashSet::new();
        for Stored { session, .. } in self.sessions.iter().filter(|stored| !stored.session.deleted) {
            let aliases: HashSet<&String> = session.aliases.iter().collect();
            for alias in aliases {
                if !taken.insert((alias, &session.workspace, &session.plan)) {
                    return Err(format!("the alias `{alias}` is taken"));
                }
            }
        }
        Ok(())
    }

    fn lineage(&self, id: SessionId) -> Lineage {
        let mut ancestors = Vec::new();
        let mut parent = self.get(id).and_then(|stored| stored.session.parent);
        while let Some(id) = parent
            && ancestors.len() < ANCESTORS_MAX
        {
            ancestors.push(id);
            parent = self.get(id).and_then(|stored| stored.session.parent);
        }
        Lineage { ancestors }
    }

    fn row(&self, stored: &Stored, filter: &Filter) -> Row {
        let card = stored.card();
        let last_at = stored.last_at().unwrap_or(card.last_activity_at);
        card.into_row(self.kin(stored.session.id), (stored.head(), last_at), filter)
    }

    fn kin(&self, id: SessionId) -> Kin {
        Kin { level: self.lineage(id).level(), waits_below: self.waits_below(id) }
    }

    fn waits_below(&self, id: SessionId) -> bool {
        let mut asking = self.sessions.iter().filter(|stored| stored.card().asks());
        asking.any(|stored| self.lineage(stored.session.id).ancestors.contains(&id))
    }
}

impl Journal for MemoryJournal {
    fn append(&self, batch: &Batch) -> Result<(), AppendError> {
        let mut kept = self.kept();
        kept.writable()?;
        // On a copy, so that a batch is written whole or not at all.
        let mut next = kept.clone();
        next.add(batch).map_err(AppendError::Contradiction)?;
        *kept = next;
        Ok(())
    }

    fn recover(&self) -> Result<(), StoreError> {
        self.kept().disk = Disk::Good;
        Ok(())
    }

    fn failure(&self) -> Option<String> {
        (self.kept().disk == Disk::Failed).then(|| "a failure was asked for".to_owned())
    }

    fn load(&self, session: SessionId) -> Result<Option<Loaded>, StoreError> {
        let kept = self.kept();
        let Some(stored) = kept.get(session).filter(|stored| stored.stone.is_none()) else { return Ok(None) };
        Ok(Some(Loaded { session: stored.replayed()?, lineage: kept.lineage(session), damage: Vec::new() }))
    }

    fn events(&self, session: SessionId, after: u64, limit: usize) -> Result<EventPage, StoreError> {
        let kept = self.kept();
        let Some(stored) = kept.get(session).filter(|stored| stored.stone.is_none()) else {
            return Ok(EventPage { events: Vec::new(), head: 0 });
        };
        let numbered = (1..).zip(&stored.log).filter(|(seq, _)| *seq > after).take(limit);
        let events = numbered.map(|(seq, (_, body))| StoredEvent { seq, body: Ok(body.clone()) }).collect();
        Ok(EventPage { events, head: stored.head() })
    }

    fn outcome(&self, key: &KeyHash) -> Result<Option<KeptOutcome>, StoreError> {
        Ok(self.kept().outcomes.get(key).cloned())
    }
}

impl Turns for MemoryJournal {
    fn turn(&self, session: SessionId, turn: TurnId) -> Result<Option<TurnRow>, StoreError> {
        Ok(self.kept().turns.get(&(session, turn)).cloned())
    }

    fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<TurnPage, StoreError> {
        let kept = self.kept();
        let of = kept.turns.iter().rev().filter(|((id, _), _)| *id == session);
        let mut older = of.filter(|((_, turn), _)| before.is_none_or(|before| *turn < before));
        let turns = older.by_ref().take(limit).map(|(_, row)| row.clone()).collect();
        Ok(TurnPage { turns, more: older.next().is_some() })
    }
}

impl Directory for MemoryJournal {
    fn find(&self, address: &Address) -> Result<Vec<Found>, StoreError> {
        let kept = self.kept();
        let (workspace, plan) = (address.workspace.as_deref(), address.plan.as_deref());
        let here = |stored: &&Stored| stored.card().is_in(workspace, plan);
        let found = |stored: &Stored| Found { session: stored.session.id, deleted: stored.session.deleted };
        if let Some(stored) = address.session.parse().ok().and_then(|id| kept.get(id)) {
            return Ok(Some(stored).filter(here).map(found).into_iter().collect());
        }
        let named =
            kept.sessions.iter().rev().filter(|stored| stored.session.aliases.contains(&address.session));
        let named: Vec<&Stored> = named.filter(here).collect();
        let live = named.iter().filter(|stored| !stored.session.deleted).map(|stored| found(stored));
        let live: Vec<Found> = live.take(FIND_MAX).collect();
        if !live.is_empty() {
            return Ok(live);
        }
        // Only tombstones: of those in one place, the last that had the alias.
        let mut places = HashSet::new();
        let last =
            named.iter().filter(|stored| places.insert((&stored.session.workspace, &stored.session.plan)));
        Ok(last.map(|stored| found(stored)).take(FIND_MAX).collect())
    }

    fn alias_taken(
        &self,
        alias: &str,
        workspace: Option<&str>,
        plan: Option<&str>,
    ) -> Result<bool, StoreError> {
        Ok(self.kept().sessions.iter().any(|stored| {
            let has = stored.session.aliases.iter().any(|held| held == alias);
            has && !stored.session.deleted && stored.is_beside(workspace, plan)
        }))
    }

    fn list(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Result<Listing, StoreError> {
        let kept = self.kept();
        let words = words(filter);
        let numbered = (1_i64..).zip(&kept.sessions).collect::<Vec<_>>();
        let pressing = |stored: &Stored| {
            let last_at = stored.last_at().unwrap_or(stored.session.last_activity_at);
            let (card, head) = (stored.card(), (stored.head(), last_at));
            let kin = kept.kin(stored.session.id);
            (card.attention(kin, head, filter).first().copied(), card.active_at(head))
        };
        let hits = numbered.into_iter().rev().filter(|(_, stored)| {
            let text = search_text(&stored.session);
            stored.card().matches(filter)
                && words.iter().all(|word| text.contains(word))
                && (!filter.attention || pressing(stored).0.is_some())
        });
        let mut hits: Vec<_> = hits.collect();
        if filter.is_ordered() {
            // Stable: of those that are equal, the newest first.
            hits.sort_by_key(|(_, stored)| {
                let (pressing, last_at) = pressing(stored);
                Rank::new(pressing.filter(|_| filter.sort == Sort::Attention), last_at)
            });
            hits = (1_i64..).zip(hits).map(|(place, (_, stored))| (place, stored)).collect();
        }
        let after = after.map(|cursor| cursor.key);
        let mut hits = hits.into_iter().filter(|(key, _)| {
            after.is_none_or(|after| if filter.is_ordered() { *key > after } else { *key < after })
        });
        let page: Vec<_> = hits.by_ref().take(limit).collect();
        let last = page.last().map(|(key, _)| *key);
        let next = last.filter(|_| hits.next().is_some()).map(|key| Cursor { key, filter: filter.mark() });
        Ok(Listing { rows: page.into_iter().map(|(_, stored)| kept.row(stored, filter)).collect(), next })
    }

    fn rows(&self, sessions: &[SessionId], filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let listing = self.list(filter, None, usize::MAX)?;
        Ok(listing.rows.into_iter().filter(|row| sessions.contains(&row.id)).collect())
    }

    fn in_state_since(
        &self,
        state: StateName,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        let kept = self.kept();
        let in_state =
            kept.sessions.iter().map(|stored| &stored.session).filter(|session| {
                !session.deleted && session.state.name() == state && session.since <= before
            });
        let mut longest: Vec<_> = in_state.collect();
        // Stable: of those that entered together, the one made first comes first.
        longest.sort_by_key(|session| session.since);
        Ok(longest.into_iter().take(limit).map(|session| session.id).collect())
    }

    fn states(&self) -> Result<Vec<(StateName, u64)>, StoreError> {
        let kept = self.kept();
        let names: Vec<StateName> = kept
            .sessions
            .iter()
            .filter(|stored| !stored.session.deleted)
            .map(|stored| stored.session.state.name())
            .collect();
        let count = |state| names.iter().filter(|name| **name == state).count() as u64;
        Ok(StateName::ALL.into_iter().map(|state| (state, count(state))).collect())
    }

    fn waits_below(&self, session: SessionId) -> Result<bool, StoreError> {
        Ok(self.kept().waits_below(session))
    }

    fn operator_states(&self) -> Result<Vec<(OperatorState, u64)>, StoreError> {
        let kept = self.kept();
        let listed = kept.sessions.iter().filter(|stored| !stored.session.deleted);
        let words: Vec<OperatorState> = listed.map(|stored| stored.card().operator_state()).collect();
        let count = |word| words.iter().filter(|held| **held == word).count() as u64;
        Ok(OperatorState::ALL.into_iter().map(|word| (word, count(word))).collect())
    }

    fn latest_at(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.kept().sessions.iter().filter_map(Stored::last_at).max())
    }
}

impl Families for MemoryJournal {
    fn lineages(&self, sessions: &[SessionId]) -> Result<Vec<Lineage>, StoreError> {
        let kept = self.kept();
        Ok(sessions.iter().map(|&id| kept.lineage(id)).collect())
    }

    fn height(&self, session: SessionId, max: u32) -> Result<u32, StoreError> {
        let kept = self.kept();
        if kept.get(session).is_none() {
            return Ok(0);
        }
        let below = kept.sessions.iter().filter(|stored| !stored.session.deleted).filter_map(|stored| {
            let up = kept.lineage(stored.session.id).ancestors.into_iter().position(|id| id == session)?;
            u32::try_from(up + 2).ok()
        });
        Ok(below.max().unwrap_or(1).min(max))
    }

    fn live_children(&self, session: SessionId) -> Result<u64, StoreError> {
        let kept = self.kept();
        let children = kept.sessions.iter().filter(|stored| stored.session.parent == Some(session));
        Ok(children.filter(|stored| stored.is_live()).count() as u64)
    }
}

impl Upkeep for MemoryJournal {
    fn check(&self) -> Result<Report, StoreError> {
        let kept = self.kept();
        let events = kept.logs().map(Stored::head).sum();
        let bodies = kept.logs().flat_map(|stored| &stored.log);
        let bytes = bodies.map(|(_, body)| body.len() as u64).sum();
        Ok(Report { sessions: kept.logs().count() as u64, events, bytes, ..Report::default() })
    }

    fn rebuild(&self) -> Result<u64, StoreError> {
        let mut kept = self.kept();
        for stored in kept.sessions.iter_mut().filter(|stored| stored.stone.is_none()) {
            stored.session = stored.replayed()?;
        }
        let logs = kept.logs().flat_map(|stored| &stored.log);
        let log = logs.filter_map(|(_, body)| serde_json::from_slice::<Envelope>(body).ok());
        let steps: Vec<TurnStep> = log.filter_map(|envelope| TurnStep::of(&envelope)).collect();
        kept.turns.clear();
        for step in &steps {
            kept.step(step);
        }
        kept.work.rebuild()?;
        kept.conducted.rebuild()?;
        Ok(kept.logs().count() as u64)
    }

    fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut kept = self.kept();
        let mut old: Vec<_> =
            kept.outcomes.values().filter(|kept| kept.at < before).map(|kept| (kept.at, kept.key)).collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, key) in &old {
            kept.outcomes.remove(key);
        }
        Ok(old.len())
    }

    fn forget_keys(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.kept().work.forget_keys(before, limit))
    }
}

impl Papers for MemoryJournal {
    fn paper(&self, place: &Place) -> Result<Option<Paper>, StoreError> {
        Ok(self.kept().papers.get(place).cloned())
    }

    fn papers(
        &self,
        kind: &str,
        workspace: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Paper>, StoreError> {
        let kept = self.kept();
        let there = |place: &Place| place.kind == kind && place.workspace == workspace;
        let papers = kept.papers.values().filter(|paper| there(&paper.place));
        let papers = papers.filter(|paper| after.is_none_or(|after| paper.place.key.as_str() > after));
        Ok(papers.take(limit).cloned().collect())
    }

    fn papers_named(&self, kind: &str, key: Option<&str>, limit: usize) -> Result<Vec<Paper>, StoreError> {
        let kept = self.kept();
        let there = |place: &Place| place.kind == kind && key.is_none_or(|key| place.key == key);
        let mut papers: Vec<Paper> =
            kept.papers.values().filter(|paper| there(&paper.place)).cloned().collect();
        papers.sort_by(|one, other| one.place.key.cmp(&other.place.key));
        papers.truncate(limit);
        Ok(papers)
    }

    fn put_paper(&self, place: &Place, from: u64, at: Timestamp, body: &str) -> Result<Put, StoreError> {
        let mut kept = self.kept();
        let found = kept.papers.get(place).map_or(0, |paper| paper.version);
        if found != from {
            return Ok(Put::Moved(found));
        }
        let paper = Paper { place: place.clone(), version: from + 1, at, body: body.to_owned() };
        kept.papers.insert(place.clone(), paper);
        Ok(Put::Kept(from + 1))
    }

    fn remove_paper(&self, place: &Place) -> Result<bool, StoreError> {
        Ok(self.kept().papers.remove(place).is_some())
    }
}
