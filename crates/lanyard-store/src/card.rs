//! A session as the directory holds it: the fields that listings show and filters use. Every journal uses the same
//! type, so that a filter means the same everywhere. It knows no database.

use lanyard_core::journal::Row;
use lanyard_core::session::{Attention, DrivenBy, InterruptCause, OperatorState, Pending, State, StateName};
use lanyard_core::{MemoryMode, Session, SessionId, Timestamp};

use crate::query::{Filter, PlanWord};

/// Longest chain of parents that is followed. Families are a few levels deep; this only ends a walk through a
/// damaged chain that bites its own tail.
pub(crate) const ANCESTORS_MAX: usize = 64;

/// A session's card. Its texts may be borrowed from the buffer that it is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card<T = String> {
    pub(crate) id: SessionId,
    /// The event the card is as of.
    pub(crate) as_of: u64,
    pub(crate) title: Option<T>,
    pub(crate) agent: Option<T>,
    pub(crate) owner: T,
    pub(crate) source: T,
    pub(crate) workspace: Option<T>,
    pub(crate) plan: Option<T>,
    pub(crate) parent: Option<SessionId>,
    pub(crate) state: StateName,
    pub(crate) cause: Option<InterruptCause>,
    pub(crate) stopping: bool,
    pub(crate) memory_mode: MemoryMode,
    pub(crate) archived: bool,
    pub(crate) deleted: bool,
    pub(crate) turns: u64,
    pub(crate) since: Timestamp,
    pub(crate) created_at: Timestamp,
    pub(crate) last_activity_at: Timestamp,
    /// Changes when what a text filter or an alias would find changes.
    pub(crate) text_sum: i64,
    pub(crate) pending: Pending,
    /// The party that runs the agent; absent on older cards.
    pub(crate) driven_by: Option<DrivenBy>,
}

impl Card<&str> {
    pub(crate) fn into_owned(self) -> Card {
        Card {
            id: self.id,
            as_of: self.as_of,
            title: self.title.map(str::to_owned),
            agent: self.agent.map(str::to_owned),
            owner: self.owner.to_owned(),
            source: self.source.to_owned(),
            workspace: self.workspace.map(str::to_owned),
            plan: self.plan.map(str::to_owned),
            parent: self.parent,
            state: self.state,
            cause: self.cause,
            stopping: self.stopping,
            memory_mode: self.memory_mode,
            archived: self.archived,
            deleted: self.deleted,
            turns: self.turns,
            since: self.since,
            created_at: self.created_at,
            last_activity_at: self.last_activity_at,
            text_sum: self.text_sum,
            pending: self.pending,
            driven_by: self.driven_by,
        }
    }
}

impl Card {
    pub(crate) fn of(session: &Session) -> Self {
        let cause = match session.state {
            State::Interrupted { cause } => Some(cause),
            State::Beginning
            | State::Custom
            | State::Executing
            | State::BetweenTurn
            | State::Compacted
            | State::Idle
            | State::Stale
            | State::Completed
            | State::Failed
            | State::Stopped => None,
        };
        Self {
            id: session.id,
            as_of: session.seq,
            title: session.title.clone(),
            agent: session.hands.agent.clone(),
            owner: session.hands.owner.clone(),
            source: session.source.clone(),
            workspace: session.workspace.clone(),
            plan: session.plan.clone(),
            parent: session.parent,
            state: session.state.name(),
            cause,
            stopping: session.stop.is_some(),
            memory_mode: session.policy.memory.mode,
            archived: session.archived,
            deleted: session.deleted,
            turns: session.turns,
            since: session.since,
            created_at: session.created_at,
            last_activity_at: session.last_activity_at,
            text_sum: text_sum(&search_text(session)),
            pending: Pending::of(session),
            driven_by: Some(session.driver()),
        }
    }

    /// Whether all conditions hold but the one on text, which is asked of [`search_text`].
    pub(crate) fn matches(&self, filter: &Filter) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        !self.deleted
            && filter.status.is_none_or(|wanted| self.state.status(self.stopping) == wanted)
            && filter.lifecycle.is_none_or(|wanted| self.state.lifecycle() == wanted)
            && filter.state.is_none_or(|wanted| self.state == wanted)
            && filter.operator_state.is_none_or(|wanted| self.operator_state() == wanted)
            && is(&filter.source, Some(&self.source))
            && is(&filter.owner, Some(&self.owner))
            && is(&filter.agent, self.agent.as_deref())
            && is(&filter.workspace, self.workspace.as_deref())
            && (is(&filter.plan, self.plan.as_deref())
                || filter.plan_also.as_ref().is_some_and(|also| self.is_at(also)))
            && filter.parent.is_none_or(|wanted| self.parent == Some(wanted))
            && filter.memory_mode.is_none_or(|wanted| self.memory_mode == wanted)
            && filter.archived.is_none_or(|wanted| self.archived == wanted)
            && filter.owed.is_none_or(|owed| owed.is_in(&self.pending))
            && filter.live_since.is_none_or(|since| !self.state.is_ended() || self.since >= since)
    }

    fn is_at(&self, word: &PlanWord) -> bool {
        self.is_in(word.workspace.as_deref(), Some(&word.plan))
    }

    /// Whether the card belongs where an address says to look.
    pub(crate) fn is_in(&self, workspace: Option<&str>, plan: Option<&str>) -> bool {
        workspace.is_none_or(|wanted| self.workspace.as_deref() == Some(wanted))
            && plan.is_none_or(|wanted| self.plan.as_deref() == Some(wanted))
    }

    /// The line of a listing. `head` is the log's last event: its number and time.
    pub(crate) fn into_row(self, kin: Kin, head: (u64, Timestamp), filter: &Filter) -> Row {
        let (last_seq, level) = (head.0, kin.level);
        let last_activity_at = self.active_at(head);
        let attention = self.attention(kin, head, filter);
        let operator_state = self.operator_state();
        Row {
            id: self.id,
            title: self.title,
            agent: self.agent,
            owner: self.owner,
            source: self.source,
            driven_by: self.driven_by,
            workspace: self.workspace,
            plan: self.plan,
            parent: self.parent,
            state: self.state,
            cause: self.cause,
            status: self.state.status(self.stopping),
            lifecycle: self.state.lifecycle(),
            operator_state,
            unread: self.pending.unread,
            level,
            memory_mode: self.memory_mode,
            archived: self.archived,
            turns: self.turns,
            since: self.since,
            created_at: self.created_at,
            last_activity_at,
            last_seq: last_seq.max(self.as_of),
            pending: self.pending,
            attention,
        }
    }

    /// The reasons why a person should look; none for an archived session.
    pub(crate) fn attention(&self, kin: Kin, head: (u64, Timestamp), filter: &Filter) -> Vec<Attention> {
        if self.archived {
            return Vec::new();
        }
        let quiet = filter.silent_since.is_some_and(|since| self.active_at(head) <= since);
        let silent = quiet && !kin.waits_below;
        self.pending.attention(self.state, self.cause, silent)
    }
}

/// Facts about a session's family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kin {
    pub(crate) level: u32,
    /// A session below it has an open gate: its silence has a reason.
    pub(crate) waits_below: bool,
}

impl<T> Card<T> {
    /// Time of the last activity, given the number and time of the log's last event. Events after the card are
    /// transcript events, all of them activity.
    pub(crate) fn active_at(&self, (seq, at): (u64, Timestamp)) -> Timestamp {
        if seq > self.as_of { self.last_activity_at.max(at) } else { self.last_activity_at }
    }

    /// Whether it has an open question that a person can answer.
    pub(crate) fn asks(&self) -> bool {
        self.pending.gates > 0 && !self.deleted && !self.state.is_ended()
    }

    pub(crate) fn operator_state(&self) -> OperatorState {
        self.pending.operator_state(self.state, self.cause, self.archived)
    }
}

/// The text that a text filter searches, in lower case. One field per line: words hold no line breaks, so none can
/// match across two fields.
pub(crate) fn search_text(session: &Session) -> String {
    let fields = [session.title.as_deref(), session.purpose.as_deref(), session.hands.agent.as_deref()];
    let fields = fields.into_iter().flatten().chain(session.aliases.iter().map(String::as_str));
    fields.collect::<Vec<_>>().join("\n").to_lowercase()
}

/// Length and checksum: an added alias always changes the one, an edited title practically always the other.
fn text_sum(text: &str) -> i64 {
    let length = i64::from(i32::try_from(text.len()).unwrap_or(i32::MAX));
    (length << 32) | i64::from(crc32fast::hash(text.as_bytes()))
}

/// The words of a text filter, in lower case.
pub(crate) fn words(filter: &Filter) -> Vec<String> {
    filter.text.iter().flat_map(|text| text.split_whitespace()).map(str::to_lowercase).collect()
}
