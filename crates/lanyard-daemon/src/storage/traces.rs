//! What is kept of a session outside its log: its worktree, snapshots in git, attachments, folders of runs, recordings of terminals, introductions of MCP clients, session
//! memory, notifications, tokens. Each step can be repeated, and one that fails keeps no other from being made.

use std::path::PathBuf;
use std::sync::Arc;

use lanyard_core::SessionId;
use lanyard_core::memory::Where;
use lanyard_git::snapshot::{CheckpointStore, SnapshotError, old_refs};
use lanyard_store::{MemoryFilter, Store, StoreError};

use crate::memory::ledger;
use crate::notifications::NotificationHandle;
use crate::storage::StorageContext;
use lanyard_agents::runs::{KnownRun, Runs};
use lanyard_agents::terminal::TerminalArchive;
use lanyard_base::{error_chain, failpoint};

/// Entries of memory removed in one transaction.
const ENTRIES_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traces {
    Gone,
    /// A process of the session is still there; its folder is in use.
    Running,
}

pub(super) async fn remove(context: &Arc<StorageContext>, session: SessionId) -> Traces {
    let runs = context.agents.runs();
    let archive = TerminalArchive::beside(&runs);
    let running = tokio::task::spawn_blocking(move || remove_runs(&runs, session)).await;
    if running.is_ok_and(|running| running) {
        return Traces::Running;
    }
    context.gateway.forget_session(session).await;
    let (store, notifications) = (context.store.clone(), context.notifications.clone());
    let (checkpoints, trees) = (context.checkpoints.clone(), context.trees.clone());
    let attachments = context.attachments.clone();
    let revoked = tokio::task::spawn_blocking(move || {
        trees.put_away(session);
        if let Err(error) = archive.forget(session) {
            tracing::warn!(%session, %error, "recordings of a deleted session's terminal stay");
        }
        remove_checkpoints(&*store, &checkpoints, session);
        if let Err(error) = attachments.release(session) {
            tracing::warn!(%session, %error, "attachments of a deleted session stay; `lanyard gc` removes them");
        }
        failpoint::hit("after_attachment_release");
        let done = remove_rows(&*store, &notifications, session);
        done.unwrap_or_else(|error| {
            tracing::warn!(%session, error = error_chain(&error), "not all that is kept of a deleted session was removed");
            Vec::new()
        })
    });
    for token in revoked.await.unwrap_or_default() {
        context.tokens.revoke(token);
    }
    Traces::Gone
}

/// Removes the folders of the session's runs that are over. Answers whether one is not.
fn remove_runs(runs: &Runs, session: SessionId) -> bool {
    let known = runs.list().unwrap_or_default();
    let of_session = known.into_iter().filter(|known| session_of(known) == Some(session));
    let mut running = false;
    for known in of_session {
        if !runs.is_over(&known.run) {
            running = true;
        } else if let Err(error) = runs.forget(&known.run) {
            tracing::warn!(%session, run = known.run, %error, "the folder of a run could not be removed");
        }
    }
    running
}

/// The session a run was started for, as its folder says.
pub(super) fn session_of(known: &KnownRun) -> Option<SessionId> {
    known.about.as_ref()?.get("session")?.as_str()?.parse().ok()
}

/// Removes checkpoints from their store, and those of an older version from the workspace's repository. A repository that
/// is gone, or was never one, has none.
fn remove_checkpoints(store: &dyn Store, checkpoints: &CheckpointStore, session: SessionId) {
    let name = session.to_string();
    let stays = |error: SnapshotError| {
        tracing::warn!(%session, %error, "checkpoints of a deleted session stay; `lanyard gc` removes them");
    };
    if let Err(error) = checkpoints.remove_all(&name) {
        stays(error);
    }
    let workspace = match store.load(session) {
        Ok(Some(loaded)) => loaded.session.workspace.map(PathBuf::from),
        Ok(None) | Err(_) => None,
    };
    let Some(workspace) = workspace.filter(|path| path.is_absolute()) else { return };
    match old_refs::remove(&workspace, &name) {
        Ok(_) | Err(SnapshotError::NotGit { .. } | SnapshotError::Gone { .. } | SnapshotError::NoGit) => {}
        Err(error) => stays(error),
    }
}

fn remove_rows(
    store: &dyn Store,
    notifications: &NotificationHandle,
    session: SessionId,
) -> Result<Vec<lanyard_core::TokenId>, StoreError> {
    let own = MemoryFilter { store: Some(Where::Session), session: Some(session), ..MemoryFilter::default() };
    loop {
        let entries = store.memories(&own, None, ENTRIES_MAX)?;
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        if ids.is_empty() || store.forget_memories(&ids)? == 0 {
            break;
        }
    }
    store.remove_paper(&ledger::place(session))?;
    if let Err(error) = notifications.forget_session(session) {
        tracing::warn!(%session, %error, "notifications about a deleted session could not be removed");
    }
    let mut revoked = Vec::new();
    for token in store.tokens()?.into_iter().filter(|token| token.session == Some(session)) {
        store.revoke_token(token.id)?;
        revoked.push(token.id);
    }
    Ok(revoked)
}
