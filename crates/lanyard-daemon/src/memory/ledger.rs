//! What is counted of a session's memory, kept as a paper: writes that were refused, by rule, and whether its summary was
//! made. A count outlives the daemon.

use std::collections::BTreeMap;

use lanyard_core::memory::Rule;
use lanyard_core::{Session, SessionId, Timestamp};
use lanyard_store::{PaperKey, Put, Store, StoreError};
use serde::{Deserialize, Serialize};

/// How often a count is tried against others.
const TRIES_MAX: u32 = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    #[serde(default)]
    pub(crate) refused: BTreeMap<Rule, u64>,
    #[serde(default)]
    pub(crate) summarised: bool,
    /// The end the summary was made for: a session that was resumed after a stop ends again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summarised_end: Option<Timestamp>,
}

impl Ledger {
    /// Whether the summary of this end was made.
    pub(crate) fn is_summarised(&self, session: &Session) -> bool {
        match self.summarised_end {
            Some(end) => end == session.since,
            None => self.summarised && session.stopped_runs.is_empty(),
        }
    }
}

pub(crate) fn place(session: SessionId) -> PaperKey {
    PaperKey { kind: "memory_ledger".to_owned(), workspace: String::new(), key: session.to_string() }
}

pub(crate) fn ledger(store: &dyn Store, session: SessionId) -> Result<Ledger, StoreError> {
    let paper = store.paper(&place(session))?;
    Ok(paper.and_then(|paper| serde_json::from_str(&paper.body).ok()).unwrap_or_default())
}

pub(super) fn amend(
    store: &dyn Store,
    session: SessionId,
    now: Timestamp,
    change: impl Fn(&mut Ledger),
) -> Result<(), StoreError> {
    let here = place(session);
    for _ in 0..TRIES_MAX {
        let paper = store.paper(&here)?;
        let version = paper.as_ref().map_or(0, |paper| paper.version);
        let mut ledger: Ledger =
            paper.and_then(|paper| serde_json::from_str(&paper.body).ok()).unwrap_or_default();
        change(&mut ledger);
        let body = serde_json::to_string(&ledger).unwrap_or_default();
        if let Put::Kept(_) = store.put_paper(&here, version, now, &body)? {
            return Ok(());
        }
    }
    tracing::warn!(%session, "a count of memory was lost among others");
    Ok(())
}
