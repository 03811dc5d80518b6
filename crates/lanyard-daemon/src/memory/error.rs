//! Why something about memory was not done.

use lanyard_core::memory::MemoryRefusal;
use lanyard_core::{MemoryId, SessionId, refusals};
use lanyard_store::StoreError;

use crate::refusal::refuses;
use lanyard_engine::engine::AskError;

refusals! {
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum MemoryError {
        SwitchedOff => "memory_switched_off", Conflict
            ("memory is switched off on this daemon")
            ("nothing is lost; set `mode` under `[memory]` in the config to \"on\" and restart");
        Full { what: &'static str, max: u64 } => "memory_full", Conflict
            ("{what} remembers at most {max} entries")
            ("forget what is no longer true with `lanyard memory forget`");
        NoEntry(it: MemoryId) => "memory_not_found", NotFound
            ("nothing is remembered as {0}")
            ("list what there is with `lanyard memory search`")
            agents ("list the names with action list, or name another scope");
        Moved { held: u64, asked: u64 } => "version_conflict", Conflict
            ("the entry has version {held} by now, not {asked}") ("read it again, and write what is true then");
        Busy => "memory_busy", Conflict ("others keep changing it at the same time") ("try again in a moment");
        NoSession(it: SessionId) => "session_not_found", NotFound
            ("there is no session {0}") ("list the sessions with `lanyard ls --all`");
        Deleted(it: SessionId) => "session_deleted", Gone
            ("session {0} was deleted")
            ("create a new one with `lanyard new`") agents ("list the sessions with `lanyard ls --all`");
        Store(#[from] it: StoreError) => "storage_unavailable", Unavailable
            ("the journal cannot be read or written: {}", lanyard_base::error_chain(.0))
            ("check the disk with `lanyard doctor`, then repeat it");
    }
    via { Refused(#[from] MemoryRefusal), Ask(#[from] AskError) }
}
refuses!(MemoryError);
