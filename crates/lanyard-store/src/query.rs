//! Listing sessions: filters, rows and cursors.

use lanyard_core::session::{InterruptCause, Lifecycle, StateName, Status};
use lanyard_core::{MemoryMode, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Filter {
    pub status: Option<Status>,
    pub lifecycle: Option<Lifecycle>,
    pub state: Option<StateName>,
    pub source: Option<String>,
    pub owner: Option<String>,
    pub agent: Option<String>,
    pub workspace: Option<String>,
    pub plan: Option<String>,
    pub parent: Option<SessionId>,
    pub memory_mode: Option<MemoryMode>,
    pub archived: Option<bool>,
    /// Sessions that have not ended, or ended at this time or later.
    pub live_since: Option<Timestamp>,
    /// Words that must all occur in the title, purpose, agent or an alias, in any case.
    pub text: Option<String>,
}

/// What a listing shows of a session. Activity is as fresh as the log; the rest as of its last structural event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    pub id: SessionId,
    pub title: Option<String>,
    pub agent: Option<String>,
    pub owner: String,
    pub source: String,
    pub workspace: Option<String>,
    pub plan: Option<String>,
    pub parent: Option<SessionId>,
    pub state: StateName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<InterruptCause>,
    pub status: Status,
    pub lifecycle: Lifecycle,
    pub level: u32,
    pub memory_mode: MemoryMode,
    pub archived: bool,
    pub turns: u64,
    pub since: Timestamp,
    pub created_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub last_seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub rows: Vec<Row>,
    /// Where the next page begins; none when this was the last.
    pub next: Option<Cursor>,
}

/// A place in a listing. It belongs to one filter: with another it is refused, not silently wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) key: i64,
    pub(crate) filter: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    #[error("the cursor cannot be read")]
    Unreadable,
    #[error("the cursor belongs to another filter")]
    OtherFilter,
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
    /// A fingerprint of the conditions. `live_since` moves with the clock, so only its presence counts.
    pub(crate) fn mark(&self) -> u32 {
        let mut steady = self.clone();
        steady.live_since = steady.live_since.map(|_| Timestamp::from_millis(0));
        crc32fast::hash(format!("{steady:?}").as_bytes())
    }
}
