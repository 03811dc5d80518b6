//! Deleting sessions that ended long ago, where the config wants it. By the engine's own command, so that each deletion
//! is in the log with who did it and why, and whatever forbids it for a person forbids it here.

use std::sync::Arc;

use lanyard_core::session::{Command, StateName};
use lanyard_core::{Actor, Cause, SessionId};
use lanyard_store::{Filter, StoreError};

use crate::api::App;
use crate::engine::{Ask, AskError, Request, Store, error_chain};

/// Sessions of each end that are looked at in one sweep, the longest ended first.
const SWEEP_MAX: usize = 256;

pub(super) async fn sweep(app: &Arc<App>) {
    let Some(after_ms) = app.storage.retention.after_ms() else { return };
    let before = app.clock.now().minus_millis(after_ms);
    let (store, archived) = (app.store.clone(), app.storage.retention.archived);
    let due = tokio::task::spawn_blocking(move || due(&*store, before, archived)).await;
    let due = match due {
        Ok(Ok(due)) => due,
        Ok(Err(error)) => return tracing::warn!(error = error_chain(&error), "retention could not look"),
        Err(_) => return,
    };
    let days = app.storage.retention.ended_after_days;
    for session in due {
        let reason = Some(format!("it ended more than {days} days ago"));
        let request = Request {
            ask: Ask::Do { session, command: Command::Delete { reason, children: 0 } },
            actor: Actor::system("retention"),
            cause: Some(Cause::Signal("retention".to_owned())),
            keys: Vec::new(),
        };
        match app.engine.ask(request).await {
            Ok(_) => tracing::info!(%session, days, "retention deleted a session"),
            // One with children that live, or that changed meanwhile, is looked at again.
            Err(AskError::Refused(_) | AskError::Unknown(_) | AskError::Deleted(_)) => {}
            Err(error) => return tracing::warn!(%session, %error, "retention could not delete a session"),
        }
    }
}

fn due(
    store: &dyn Store,
    before: lanyard_core::Timestamp,
    archived: bool,
) -> Result<Vec<SessionId>, StoreError> {
    let mut due = Vec::new();
    for state in [StateName::Completed, StateName::Failed, StateName::Stopped] {
        due.extend(store.in_state_since(state, before, SWEEP_MAX)?);
    }
    if !archived {
        let filter = Filter { archived: Some(false), ..Filter::default() };
        due = store.rows(&due, &filter)?.into_iter().map(|row| row.id).collect();
    }
    Ok(due)
}
