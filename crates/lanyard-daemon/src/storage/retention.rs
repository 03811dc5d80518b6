//! Deleting sessions that ended long ago, where the config wants it. By the engine's own command, so that each deletion
//! is in the log with who did it and why, and whatever forbids it for a person forbids it here.

use std::sync::Arc;

use lanyard_core::session::{Command, StateName};
use lanyard_core::{Actor, Cause, SessionId};
use lanyard_store::{Filter, Store, StoreError};

use crate::storage::StorageContext;
use lanyard_base::error_chain;
use lanyard_engine::engine::{Ask, AskError, Request};

/// Sessions of each end that are looked at in one sweep, the longest ended first.
const SWEEP_MAX: usize = 256;
/// The same for a request.
pub(crate) const PRUNE_MAX: usize = 100_000;

/// Deletes what the config wants deleted.
pub(super) async fn sweep(context: &Arc<StorageContext>) {
    let Some(after_ms) = context.config.storage().retention.after_ms() else { return };
    let days = context.config.storage().retention.ended_after_days;
    let wanted = Prune {
        ended_after_ms: after_ms,
        actor: Actor::system("retention"),
        reason: format!("it ended more than {days} days ago"),
        max: SWEEP_MAX,
    };
    if let Err(error) = prune(context, wanted).await {
        tracing::warn!(error, "retention could not delete sessions");
    }
}

/// Which ended sessions are deleted, by whom and why.
#[derive(Debug)]
pub(crate) struct Prune {
    pub(crate) ended_after_ms: u64,
    pub(crate) actor: Actor,
    pub(crate) reason: String,
    /// Sessions of each kind of end, the longest ended first.
    pub(crate) max: usize,
}

/// How many sessions have been over for that long.
pub(crate) async fn count(context: &Arc<StorageContext>, ended_after_ms: u64) -> Result<u64, String> {
    Ok(ended(context, ended_after_ms, PRUNE_MAX).await?.len() as u64)
}

/// Deletes sessions that have been over for that long, and answers how many. A session with children that live is
/// left.
pub(crate) async fn prune(context: &Arc<StorageContext>, wanted: Prune) -> Result<u64, String> {
    let mut deleted = 0;
    for session in ended(context, wanted.ended_after_ms, wanted.max).await? {
        let reason = Some(wanted.reason.clone());
        let request = Request {
            ask: Ask::Do { session, command: Command::Delete { reason, children: 0 } },
            actor: wanted.actor.clone(),
            cause: Some(Cause::Signal("retention".to_owned())),
            keys: Vec::new(),
        };
        match context.engine.ask(request).await {
            Ok(_) => {
                tracing::info!(%session, reason = wanted.reason, "a session that ended was deleted");
                deleted += 1;
            }
            // One with children that live, or that changed meanwhile, is looked at again.
            Err(AskError::Refused(_) | AskError::Unknown(_) | AskError::Deleted(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(deleted)
}

async fn ended(context: &Arc<StorageContext>, after_ms: u64, max: usize) -> Result<Vec<SessionId>, String> {
    let before = context.clock.now().minus_millis(after_ms);
    let (store, archived) = (context.store.clone(), context.config.storage().retention.archived);
    let due = tokio::task::spawn_blocking(move || due(&*store, before, archived, max)).await;
    due.map_err(|error| error.to_string())?.map_err(|error| error_chain(&error))
}

fn due(
    store: &dyn Store,
    before: lanyard_core::Timestamp,
    archived: bool,
    max: usize,
) -> Result<Vec<SessionId>, StoreError> {
    let mut due = Vec::new();
    for state in [StateName::Completed, StateName::Failed, StateName::Stopped] {
        due.extend(store.in_state_since(state, before, max)?);
    }
    if !archived {
        let filter = Filter { archived: Some(false), ..Filter::default() };
        due = store.rows(&due, &filter)?.into_iter().map(|row| row.id).collect();
    }
    Ok(due)
}
