//! All sessions in memory, a few words each: the end of each log, and the fields that filters use. The catalog shows
//! committed data only; the file holds the same, so that it can be read back.
//!
//! A filter is a pass over an array: any combination of conditions costs the same, and no index has to be kept on disk
//! for any of them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use lanyard_core::session::{Attention, Lineage, OperatorState, StateName};
use lanyard_core::{MemoryMode, SessionId, Timestamp};

use crate::card::{ANCESTORS_MAX, Card};
use crate::query::{Filter, Owed};
use crate::sqlite::rows::{Head, Sid};

/// Sessions looked at before the lock is given back, so that a long search does not hold up the writer.
pub(super) const CHUNK: usize = 16_384;

#[derive(Default)]
pub(super) struct Catalog {
    /// By `sid - 1`.
    facts: Vec<Facts>,
    sids: HashMap<SessionId, Sid, BuildHasherDefault<IdHasher>>,
    names: Names,
    /// Number of listed sessions in each state, kept so that frequent callers need not count.
    in_state: [u64; StateName::ALL.len()],
    /// The same by the operator's word.
    in_operator_state: [u64; OperatorState::ALL.len()],
    /// Sessions with an open gate: few at any time.
    asking: HashSet<SessionId>,
}

/// Facts about a session that need no read of its rows.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) id: SessionId,
    pub(super) head: Head,
    pub(super) parent: Option<SessionId>,
    pub(super) since: Timestamp,
    pub(super) text_sum: i64,
    owner: Name,
    source: Name,
    agent: Name,
    workspace: Name,
    plan: Name,
    pub(super) state: StateName,
    operator_state: OperatorState,
    memory_mode: MemoryMode,
    stopping: bool,
    archived: bool,
    presence: Presence,
    /// Why a person should look at it, whatever the time is.
    pressing: Option<Attention>,
    in_call: bool,
    /// By [`Owed`].
    owed: [bool; 2],
    /// The event its card is as of, and the activity that card knows of.
    as_of: u64,
    active_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// There is a log, and no card could be made of it.
    LogOnly,
    Listed,
    Deleted,
    /// The rows are removed, or being removed; a tombstone remains.
    Purged,
}

/// Texts that occur again and again, each kept once. `NONE` is the absent one.
#[derive(Default)]
struct Names {
    numbers: HashMap<Box<str>, Name>,
}

/// Ids are random where it counts, so mixing their halves is all the hashing they need.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn write_u128(&mut self, id: u128) {
        let [low, high] = [id, id >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
        self.0 = (low ^ high.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

type Name = u32;
const NONE: Name = 0;

impl Names {
    fn get(&self, text: &str) -> Option<Name> {
        self.numbers.get(text).copied()
    }

    fn intern(&mut self, text: Option<&str>) -> Name {
        let Some(text) = text else { return NONE };
        if let Some(name) = self.get(text) {
            return name;
        }
        let name = Name::try_from(self.numbers.len() + 1).unwrap_or(Name::MAX);
        self.numbers.insert(text.into(), name);
        name
    }
}

/// Names of agents and of folders; none for any.
struct NamedPlace {
    agents: Option<HashSet<Name>>,
    folders: Option<HashSet<Name>>,
}

impl Names {
    fn place(&self, agent: Option<&str>, folder: Option<&str>) -> NamedPlace {
        let named = |fits: &dyn Fn(&str) -> bool| {
            self.numbers.iter().filter(|(text, _)| fits(text)).map(|(_, name)| *name).collect()
        };
        NamedPlace {
            agents: agent.map(|agent| named(&|text| text.eq_ignore_ascii_case(agent))),
            folders: folder.map(|folder| named(&|text| is_below(text, folder))),
        }
    }
}

impl NamedPlace {
    fn has(&self, facts: &Facts) -> bool {
        let is =
            |names: &Option<HashSet<Name>>, name| names.as_ref().is_none_or(|names| names.contains(&name));
        is(&self.agents, facts.agent) && is(&self.folders, facts.workspace)
    }
}

/// Whether a path is a folder or below it. A folder without its beginning stands for each that ends with it.
fn is_below(path: &str, folder: &str) -> bool {
    let whole = folder.starts_with('/');
    let folder = folder.trim_matches('/');
    let path = format!("{}/", path.trim_matches('/'));
    let wanted = format!("{folder}/");
    path.starts_with(&wanted) || (!whole && path.contains(&format!("/{wanted}")))
}

impl Facts {
    fn unknown(id: SessionId) -> Self {
        Self {
            id,
            head: Head::default(),
            parent: None,
            since: Timestamp::from_millis(0),
            // No text has this sum, so the first card brings its texts along.
            text_sum: -1,
            owner: NONE,
            source: NONE,
            agent: NONE,
            workspace: NONE,
            plan: NONE,
            state: StateName::Beginning,
            operator_state: OperatorState::Idle,
            memory_mode: MemoryMode::Off,
            stopping: false,
            archived: false,
            presence: Presence::LogOnly,
            pressing: None,
            in_call: false,
            owed: [false; 2],
            as_of: 0,
            active_at: Timestamp::from_millis(0),
        }
    }

    pub(super) fn is_carded(&self) -> bool {
        self.presence != Presence::LogOnly
    }

    pub(super) fn is_deleted(&self) -> bool {
        matches!(self.presence, Presence::Deleted | Presence::Purged)
    }

    pub(super) fn is_purged(&self) -> bool {
        self.presence == Presence::Purged
    }

    pub(super) fn is_listed(&self) -> bool {
        self.presence == Presence::Listed
    }

    /// Time of the last activity, as `Card::active_at` returns it.
    pub(super) fn active_at(&self) -> Timestamp {
        let head_at = Timestamp::from_millis(self.head.at);
        if self.head.seq > self.as_of { self.active_at.max(head_at) } else { self.active_at }
    }

    /// Workspace and plan, as numbers for comparison.
    pub(super) fn place(&self) -> (u32, u32) {
        (self.workspace, self.plan)
    }
}

impl Catalog {
    pub(super) fn sid_of(&self, id: SessionId) -> Option<Sid> {
        self.sids.get(&id).copied()
    }

    pub(super) fn facts(&self, sid: Sid) -> Option<&Facts> {
        usize::try_from(sid.checked_sub(1)?).ok().and_then(|at| self.facts.get(at))
    }

    pub(super) fn of(&self, id: SessionId) -> Option<(Sid, &Facts)> {
        let sid = self.sid_of(id)?;
        Some((sid, self.facts(sid)?))
    }

    /// Number of sessions without purged ones.
    pub(super) fn len(&self) -> usize {
        self.facts.iter().filter(|facts| !facts.is_purged()).count()
    }

    pub(super) fn last_sid(&self) -> Sid {
        Sid::try_from(self.facts.len()).unwrap_or(Sid::MAX)
    }

    /// Makes room for so many.
    pub(super) fn expect_sessions(&mut self, count: Sid) {
        // A damaged file may say anything; a wrong guess only costs time.
        let count = usize::try_from(count).unwrap_or(0).min(1 << 20);
        self.facts.reserve(count);
        self.sids.reserve(count);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Sid, &Facts)> {
        (1..).zip(&self.facts)
    }

    pub(super) fn latest_at(&self) -> Option<Timestamp> {
        let heads = self.facts.iter().filter(|facts| facts.head.seq > 0);
        heads.map(|facts| facts.head.at).max().map(Timestamp::from_millis)
    }

    /// The session's slot, made when it is new. `None` for a number no session can have.
    fn slot(&mut self, sid: Sid) -> Option<&mut Facts> {
        let at = usize::try_from(sid.checked_sub(1)?).ok()?;
        if at >= self.facts.len() {
            self.facts.resize(at + 1, Facts::unknown(SessionId::from_u128(0)));
        }
        self.facts.get_mut(at)
    }

    pub(super) fn put_head(&mut self, sid: Sid, head: Head) {
        if let Some(facts) = self.slot(sid) {
            facts.head = head;
        }
    }

    pub(super) fn put_id(&mut self, sid: Sid, id: SessionId) {
        if let Some(facts) = self.slot(sid) {
            facts.id = id;
            self.sids.insert(id, sid);
        }
    }

    /// A tombstone is all there is of it.
    pub(super) fn put_purged(&mut self, sid: Sid, id: SessionId, parent: Option<SessionId>) {
        self.put_id(sid, id);
        if let Some(facts) = self.slot(sid) {
            *facts = Facts { parent, presence: Presence::Purged, ..Facts::unknown(id) };
        }
    }

    pub(super) fn put_card<T: AsRef<str>>(&mut self, sid: Sid, card: &Card<T>) {
        self.put_id(sid, card.id);
        if card.asks() {
            self.asking.insert(card.id);
        } else {
            self.asking.remove(&card.id);
        }
        let mut intern = |text: Option<&T>| self.names.intern(text.map(T::as_ref));
        let (owner, source) = (intern(Some(&card.owner)), intern(Some(&card.source)));
        let (agent, workspace, plan) =
            (intern(card.agent.as_ref()), intern(card.workspace.as_ref()), intern(card.plan.as_ref()));
        let before = self.facts(sid).filter(|facts| facts.is_listed());
        let before = before.map(|facts| (facts.state, facts.operator_state));
        let after = (!card.deleted).then_some((card.state, card.operator_state()));
        if let Some(facts) = self.slot(sid) {
            *facts = Facts {
                id: card.id,
                head: facts.head,
                parent: card.parent,
                since: card.since,
                text_sum: card.text_sum,
                owner,
                source,
                agent,
                workspace,
                plan,
                state: card.state,
                operator_state: card.operator_state(),
                memory_mode: card.memory_mode,
                stopping: card.stopping,
                archived: card.archived,
                presence: if card.deleted { Presence::Deleted } else { Presence::Listed },
                pressing: card.pending.attention(card.state, card.cause, false).first().copied(),
                in_call: card.pending.in_call || card.pending.gates > 0 || card.pending.limited,
                owed: Owed::ALL.map(|owed| owed.is_in(&card.pending)),
                as_of: card.as_of,
                active_at: card.last_activity_at,
            };
            if let Some((state, word)) = before {
                let counts = (&mut self.in_state[state as usize], &mut self.in_operator_state[word as usize]);
                (*counts.0, *counts.1) = (counts.0.saturating_sub(1), counts.1.saturating_sub(1));
            }
            if let Some((state, word)) = after {
                self.in_state[state as usize] += 1;
                self.in_operator_state[word as usize] += 1;
            }
        }
    }

    /// Number of listed sessions in each state.
    pub(super) fn states(&self) -> impl Iterator<Item = (StateName, u64)> {
        StateName::ALL.into_iter().map(|state| (state, self.in_state[state as usize]))
    }

    /// Whether a session below this one has an open gate.
    pub(super) fn waits_below(&self, id: SessionId) -> bool {
        self.asking.iter().any(|asking| self.lineage(*asking).ancestors.contains(&id))
    }

    /// The same by the operator's word.
    pub(super) fn operator_states(&self) -> impl Iterator<Item = (OperatorState, u64)> {
        OperatorState::ALL.into_iter().map(|word| (word, self.in_operator_state[word as usize]))
    }

    pub(super) fn lineage(&self, id: SessionId) -> Lineage {
        let mut ancestors = Vec::new();
        let mut parent = self.of(id).and_then(|(_, facts)| facts.parent);
        while let Some(id) = parent
            && ancestors.len() < ANCESTORS_MAX
        {
            ancestors.push(id);
            parent = self.of(id).and_then(|(_, facts)| facts.parent);
        }
        Lineage { ancestors }
    }

    /// Whether a session belongs where an address says to look.
    pub(super) fn is_in(&self, facts: &Facts, workspace: Option<&str>, plan: Option<&str>) -> bool {
        let is =
            |wanted: Option<&str>, found: Name| wanted.is_none_or(|text| self.names.get(text) == Some(found));
        is(workspace, facts.workspace) && is(plan, facts.plan)
    }

    /// Whether a session is in exactly this workspace and plan, or in none: there an alias names one session.
    pub(super) fn is_beside(&self, facts: &Facts, workspace: Option<&str>, plan: Option<&str>) -> bool {
        let same = |text: Option<&str>, found: Name| match text {
            Some(text) => self.names.get(text) == Some(found),
            None => found == NONE,
        };
        same(workspace, facts.workspace) && same(plan, facts.plan)
    }

    /// Whether a session is one of an agent, and in a folder or below it. A folder is named by its path or its last parts.
    pub(super) fn is_at(&self, sid: Sid, agent: Option<&str>, folder: Option<&str>) -> bool {
        let place = self.names.place(agent, folder);
        self.facts(sid).is_some_and(|facts| facts.is_listed() && place.has(facts))
    }

    /// The sessions of an agent, in a folder and below it; in order.
    pub(super) fn sids_at(&self, agent: Option<&str>, folder: Option<&str>) -> Vec<Sid> {
        let place = self.names.place(agent, folder);
        self.all().filter(|(_, facts)| facts.is_listed() && place.has(facts)).map(|(sid, _)| sid).collect()
    }

    /// Up to `CHUNK` sessions with a number below `below`, newest first, and where to go on.
    pub(super) fn before(&self, below: Sid) -> (impl Iterator<Item = (Sid, &Facts)>, Option<Sid>) {
        let end = usize::try_from(below.saturating_sub(1).max(0)).unwrap_or(usize::MAX).min(self.facts.len());
        let start = end.saturating_sub(CHUNK);
        let numbers = (start..end).map(|at| Sid::try_from(at + 1).unwrap_or(Sid::MAX));
        let next = (start > 0).then(|| Sid::try_from(start + 1).unwrap_or(Sid::MAX));
        (numbers.zip(&self.facts[start..end]).rev(), next)
    }
}

/// A filter in the catalog's own terms; `None` from `compile` when nothing can match.
pub(super) struct Wanted<'a> {
    filter: &'a Filter,
    source: Option<Name>,
    owner: Option<Name>,
    agent: Option<Name>,
    workspace: Option<Name>,
    /// The words for the plan that is asked for, each with the workspace it counts in; none for any plan.
    plans: Vec<KnownPlan>,
    /// Sessions above one with an open gate: their silence has a reason.
    waiting: HashSet<SessionId>,
}

/// A word for a plan, and the workspace it counts in.
type KnownPlan = (Name, Option<Name>);

/// The words for the plan in the catalog's own terms, none for any plan; `None` when no session has ever had one of them.
fn plans(catalog: &Catalog, filter: &Filter) -> Option<Vec<KnownPlan>> {
    let Some(plan) = &filter.plan else { return Some(Vec::new()) };
    let named = catalog.names.get(plan).map(|plan| (plan, None));
    let also = filter.plan_also.as_ref().and_then(|also| {
        let workspace = match &also.workspace {
            Some(workspace) => Some(catalog.names.get(workspace)?),
            None => None,
        };
        Some((catalog.names.get(&also.plan)?, workspace))
    });
    let words: Vec<KnownPlan> = [named, also].into_iter().flatten().collect();
    (!words.is_empty()).then_some(words)
}

impl<'a> Wanted<'a> {
    pub(super) fn compile(catalog: &Catalog, filter: &'a Filter) -> Option<Self> {
        // A text no session has ever had: no need to look.
        let name = |text: &Option<String>| match text {
            Some(text) => catalog.names.get(text).map(Some),
            None => Some(None),
        };
        Some(Self {
            filter,
            source: name(&filter.source)?,
            owner: name(&filter.owner)?,
            agent: name(&filter.agent)?,
            workspace: name(&filter.workspace)?,
            plans: plans(catalog, filter)?,
            waiting: catalog.asking.iter().flat_map(|id| catalog.lineage(*id).ancestors).collect(),
        })
    }

    /// Why a person should look at a session first, as `Card::attention` tells.
    pub(super) fn pressing(&self, facts: &Facts) -> Option<Attention> {
        let silent = self.filter.silent_since.is_some_and(|since| facts.active_at() <= since);
        let waits = facts.in_call || self.waiting.contains(&facts.id);
        let lost = silent && facts.state == StateName::Executing && !waits;
        let reasons = [facts.pressing, lost.then_some(Attention::SuspectedOrphan)];
        reasons.into_iter().flatten().min().filter(|_| !facts.archived)
    }

    /// The same test as `Card::matches`, on the facts.
    pub(super) fn matches(&self, facts: &Facts) -> bool {
        let is = |wanted: Option<Name>, found: Name| wanted.is_none_or(|wanted| wanted == found);
        let filter = self.filter;
        facts.is_listed()
            && is(self.owner, facts.owner)
            && is(self.source, facts.source)
            && is(self.agent, facts.agent)
            && is(self.workspace, facts.workspace)
            && (self.plans.is_empty()
                || self
                    .plans
                    .iter()
                    .any(|(plan, workspace)| *plan == facts.plan && is(*workspace, facts.workspace)))
            && filter.state.is_none_or(|wanted| facts.state == wanted)
            && filter.operator_state.is_none_or(|wanted| facts.operator_state == wanted)
            && filter.status.is_none_or(|wanted| facts.state.status(facts.stopping) == wanted)
            && filter.lifecycle.is_none_or(|wanted| facts.state.lifecycle() == wanted)
            && filter.parent.is_none_or(|wanted| facts.parent == Some(wanted))
            && filter.memory_mode.is_none_or(|wanted| facts.memory_mode == wanted)
            && filter.archived.is_none_or(|wanted| facts.archived == wanted)
            && filter.owed.is_none_or(|owed| facts.owed[owed as usize])
            && filter.live_since.is_none_or(|since| !facts.state.is_ended() || facts.since >= since)
            && (!filter.attention || self.pressing(facts).is_some())
    }
}
