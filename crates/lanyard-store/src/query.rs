//! Listing sessions: filters, rows and cursors.

use lanyard_core::journal::Row;
use lanyard_core::session::{Attention, Lifecycle, OperatorState, Pending, StateName, Status};
use lanyard_core::{MemoryMode, SessionId, Timestamp, refusals};
use serde::{Deserialize, Serialize};

/// A filter over sessions. All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Filter {
    pub status: Option<Status>,
    pub lifecycle: Option<Lifecycle>,
    pub state: Option<StateName>,
    pub operator_state: Option<OperatorState>,
    pub source: Option<String>,
    pub owner: Option<String>,
    pub agent: Option<String>,
    pub workspace: Option<String>,
    pub plan: Option<String>,
    /// Another word for the plan in `plan`; sessions of either match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_also: Option<PlanWord>,
    pub parent: Option<SessionId>,
    pub memory_mode: Option<MemoryMode>,
    pub archived: Option<bool>,
    /// Sessions for which this is still to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<Owed>,
    /// Sessions that have not ended, or ended at this time or later.
    pub live_since: Option<Timestamp>,
    /// Words that must all occur in the title, purpose, agent or an alias, in any case.
    pub text: Option<String>,
    /// Only those a person should look at.
    pub attention: bool,
    /// An executing session that was not heard of since then counts as silent.
    pub silent_since: Option<Timestamp>,
    pub sort: Sort,
}

/// Work that a killed daemon may have left to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owed {
    /// A run that was asked for.
    Run,
    /// Word to the parent of a session that was stopped or resumed.
    Notice,
}

impl Owed {
    pub(crate) const ALL: [Self; 2] = [Self::Run, Self::Notice];

    pub(crate) const fn is_in(self, pending: &Pending) -> bool {
        match self {
            Self::Run => pending.run_wanted,
            Self::Notice => pending.notice_due,
        }
    }
}

/// A plan's id, or its name in one workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanWord {
    pub plan: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

/// Position of a session in a listing by attention: sessions that need a person first, the most urgent first, then the
/// latest activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    calm: bool,
    pressing: Option<Attention>,
    active: std::cmp::Reverse<Timestamp>,
}

impl Rank {
    pub(crate) fn new(pressing: Option<Attention>, active: Timestamp) -> Self {
        Self { calm: pressing.is_none(), pressing, active: std::cmp::Reverse(active) }
    }
}

/// The order of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// The newest first. Pages hold still while sessions are made.
    #[default]
    Created,
    /// The latest activity first.
    Activity,
    /// By attention: sessions that need a person first, then the latest activity.
    Attention,
}

impl Filter {
    /// A listing in another order than that of birth is a place in that order as it was, not one in the sessions.
    pub(crate) fn is_ordered(&self) -> bool {
        self.sort != Sort::Created
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub rows: Vec<Row>,
    /// Start of the next page; none after the last page.
    pub next: Option<Cursor>,
}

/// A place in a listing. It belongs to one filter: with another it is refused, not silently wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) key: i64,
    pub(crate) filter: u32,
}

refusals! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum CursorError {
        Unreadable => "cursor_unreadable", Malformed
            ("the cursor cannot be read") ("start again without a cursor");
        OtherFilter => "cursor_other_filter", Malformed
            ("the cursor belongs to another filter") ("start again without a cursor");
    }
}

impl Cursor {
    /// Reads a cursor a client sent back.
    pub fn parse(text: &str, filter: &Filter) -> Result<Self, CursorError> {
        let (key, mark) = text.split_once('.').ok_or(CursorError::Unreadable)?;
        let key = i64::from_str_radix(key, 16).map_err(|_| CursorError::Unreadable)?;
        let mark = u32::from_str_radix(mark, 16).map_err(|_| CursorError::Unreadable)?;
        if mark != filter.mark() {
            return Err(CursorError::OtherFilter);
        }
        Ok(Self { key, filter: mark })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}.{:08x}", self.key, self.filter)
    }
}

impl Filter {
    /// A fingerprint of the conditions. `live_since` moves with the clock, so only its presence counts; `silent_since`
    /// is not a condition of its own.
    pub(crate) fn mark(&self) -> u32 {
        let mut steady = self.clone();
        let presence = |time: Option<Timestamp>| time.map(|_| Timestamp::from_millis(0));
        (steady.live_since, steady.silent_since) = (presence(steady.live_since), None);
        crc32fast::hash(format!("{steady:?}").as_bytes())
    }
}
