//! The end of a session's log. It knows nothing of what it is read for.

use lanyard_core::Session;
use lanyard_core::session::Envelope;
use lanyard_store::{Store, StoreError};

/// The last events, the oldest first. What is damaged is left out: who looks back does with what there is.
pub(crate) fn read(store: &dyn Store, session: &Session, most: u32) -> Result<Vec<Envelope>, StoreError> {
    let after = session.seq.saturating_sub(most.into());
    let page = store.events(session.id, after, most as usize)?;
    let bodies = page.events.into_iter().filter_map(|event| event.body.ok());
    Ok(bodies.filter_map(|body| serde_json::from_slice(&body).ok()).collect())
}
