//! What the agents of a task, a plan or a flow wait to be allowed: the open gates of their sessions, as `GET /gates` lists
//! them.

use std::collections::BTreeSet;

use lanyard_api::types::GateEntry;
use lanyard_core::SessionId;
use lanyard_core::session::{Gate, GateStatus, Session};
use lanyard_core::task::TASK_SOURCE;
use lanyard_store::{Filter, Store, StoreError};

/// Sessions below one that are looked at.
const BELOW_MAX: usize = 100;

/// Open gates of these sessions and of the subagents below them, oldest first.
pub(crate) fn open(
    store: &dyn Store,
    sessions: impl IntoIterator<Item = SessionId>,
) -> Result<Vec<GateEntry>, StoreError> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<SessionId> = BTreeSet::new();
    let mut next: Vec<SessionId> = sessions.into_iter().collect();
    while let Some(id) = next.pop() {
        if seen.len() > BELOW_MAX || !seen.insert(id) {
            continue;
        }
        let Some(loaded) = store.load(id)? else { continue };
        found.extend(entries(&loaded.session, |gate| gate.status == GateStatus::Open));
        if store.live_children(id)? > 0 {
            let filter = Filter { parent: Some(id), ..Filter::default() };
            let below = store.list(&filter, None, BELOW_MAX)?.rows;
            // A task's own session answers for itself.
            next.extend(below.into_iter().filter(|row| row.source != TASK_SOURCE).map(|row| row.id));
        }
    }
    found.sort_by_key(|entry| entry.gate.opened_at);
    Ok(found)
}

/// The gates of a session that are wanted, as the API lists them.
pub(crate) fn entries(session: &Session, wanted: impl Fn(&Gate) -> bool) -> Vec<GateEntry> {
    let gates = session.gates.iter().filter(|gate| wanted(gate)).cloned();
    let entry = |gate| GateEntry {
        session: session.id,
        session_title: session.title.clone(),
        agent: session.hands.agent.clone(),
        workspace: session.workspace.clone(),
        gate,
    };
    gates.map(entry).collect()
}
