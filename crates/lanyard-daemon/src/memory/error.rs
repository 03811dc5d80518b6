//! Why something about memory was not done.

use lanyard_core::memory::Refusal;
use lanyard_core::{MemoryId, SessionId};
use lanyard_store::StoreError;

use crate::engine::AskError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("memory is switched off on this daemon")]
    SwitchedOff,
    #[error("{what} remembers at most {max} entries")]
    Full { what: &'static str, max: u64 },
    #[error("nothing is remembered as {0}")]
    NoEntry(MemoryId),
    #[error("the entry has version {held} by now, not {asked}")]
    Moved { held: u64, asked: u64 },
    #[error("others keep changing it at the same time")]
    Busy,
    #[error("there is no session {0}")]
    NoSession(SessionId),
    #[error("session {0} was deleted")]
    Deleted(SessionId),
    #[error("{0}")]
    Ask(#[from] AskError),
    #[error("the journal cannot be read or written: {}", crate::engine::error_chain(.0))]
    Store(#[from] StoreError),
}

impl MemoryError {
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::SwitchedOff => "memory_switched_off",
            Self::Full { .. } => "memory_full",
            Self::NoEntry(_) => "memory_not_found",
            Self::Moved { .. } => "version_conflict",
            Self::Busy => "memory_busy",
            Self::NoSession(_) => "session_not_found",
            Self::Deleted(_) => "session_deleted",
            // Told by what it is made into.
            Self::Ask(_) => "defect",
            Self::Store(_) => "storage_unavailable",
        }
    }

    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.advice(),
            Self::SwitchedOff => {
                "nothing is lost; set `mode` under `[memory]` in the config to \"on\" and restart".to_owned()
            }
            Self::Full { .. } => "forget what is no longer true with `lanyard memory forget`".to_owned(),
            Self::NoEntry(_) => "list what there is with `lanyard memory search`".to_owned(),
            Self::Moved { .. } => "read it again, and write what is true then".to_owned(),
            Self::Busy => "try again in a moment".to_owned(),
            Self::NoSession(_) | Self::Deleted(_) => "list the sessions with `lanyard ls --all`".to_owned(),
            Self::Ask(_) => "nothing was changed; please report this with the daemon's log".to_owned(),
            Self::Store(_) => "check the disk with `lanyard doctor`, then repeat it".to_owned(),
        }
    }
}
