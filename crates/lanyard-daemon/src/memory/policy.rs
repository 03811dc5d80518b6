//! Looking at and changing what a session may remember.

use std::sync::Arc;

use lanyard_core::memory::{MemoryAsk, MemoryPolicy};
use lanyard_core::session::Command;
use lanyard_core::{Actor, Cause, Outcome, SessionId};
use lanyard_store::Store;

use crate::memory::ledger::{Ledger, ledger};
use crate::memory::standing::{self, family, standing};
use crate::memory::{MemoryContext, MemoryError, Standing};
use lanyard_engine::engine::{Ask, Key, Request};

/// A session's policy, as it is and as it counts.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) standing: Standing,
    /// What all above it may together.
    pub(crate) above: Option<MemoryPolicy>,
    pub(crate) ledger: Ledger,
}

pub(crate) fn look_up(store: &dyn Store, id: SessionId) -> Result<Judged, MemoryError> {
    let standing = standing(store, id)?;
    let (above, _) = standing::above(store, &standing.lineage)?;
    Ok(Judged { ledger: ledger(store, id)?, standing, above })
}

/// Changes a session's policy, and tightens those below it that would be wider then. Once this has answered, no write
/// goes through that was judged by what was true before.
pub(crate) async fn set_policy(
    context: &Arc<MemoryContext>,
    id: SessionId,
    ask: MemoryAsk,
    (actor, cause, keys): (Actor, Option<Cause>, Vec<Key>),
) -> Result<Outcome, MemoryError> {
    let _nobody_writes = context.memory.gate.write().await;
    let (above, below) = on_disk(context, move |store| {
        let standing = standing(store, id)?;
        let mut below = family(store, id)?;
        below.retain(|session| *session != id);
        Ok((standing::above(store, &standing.lineage)?.0, below))
    })
    .await?;
    let command = Command::SetMemory { ask, above: above.map(Box::new) };
    let request =
        Request { ask: Ask::Do { session: id, command }, actor: actor.clone(), cause: cause.clone(), keys };
    let outcome = context.engine.ask(request).await?.outcome;
    for session in below {
        // Judged by all above it in any case; this makes it visible, and part of its next turn.
        let narrowed = on_disk(context, move |store| {
            let standing = standing(store, session)?;
            let own = standing.session.policy.memory;
            let (above, _) = standing::above(store, &standing.lineage)?;
            Ok(above.filter(|above| own.is_wider_than(above)).map(|above| own.under(&above)))
        })
        .await;
        let Ok(Some(narrowed)) = narrowed else { continue };
        let command = Command::SetMemory { ask: MemoryAsk::of(&narrowed), above: None };
        let ask = Ask::Do { session, command };
        let request = Request { ask, actor: actor.clone(), cause: cause.clone(), keys: Vec::new() };
        if let Err(error) = context.engine.ask(request).await {
            tracing::warn!(%session, %error, "a memory policy could not be tightened with the one above it");
        }
    }
    Ok(outcome)
}

/// Works with the store without holding up the runtime's threads.
pub(super) async fn on_disk<T: Send + 'static>(
    context: &Arc<MemoryContext>,
    work: impl FnOnce(&dyn Store) -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, MemoryError> {
    let store = context.store.clone();
    let done = tokio::task::spawn_blocking(move || work(&*store)).await;
    done.map_err(|_| MemoryError::Busy)?
}
