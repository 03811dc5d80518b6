//! Purges, garbage collection and backups.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use lanyard_api::types::{BackupReceipt, GcReport, JournalStatus, NewBackup, NewGc, PurgeView};
use lanyard_core::journal::PurgeStage;
use lanyard_store::Store;

use crate::api::App;
use crate::api::context::{Change, Target, on_disk};
use crate::problem::Problem;
use crate::storage;
use crate::storage::retention::{self, PRUNE_MAX, Prune};

type Shared = State<Arc<App>>;

/// Progress of a purge, for clients that wait for it.
pub(super) async fn purge(State(app): Shared, target: Target) -> Result<Json<PurgeView>, Problem> {
    let id = target.0;
    let (tombstone, deleted) = on_disk(&app, move |store| {
        let tombstone = store.tombstone(id)?;
        let deleted = match &tombstone {
            Some(_) => Some(true),
            None => store.load(id)?.map(|loaded| loaded.session.deleted),
        };
        Ok((tombstone, deleted))
    })
    .await?;
    match deleted {
        None => Err(Problem::not_found(id)),
        Some(false) => Err(Problem::new(
            StatusCode::CONFLICT,
            "session_not_deleted",
            format!("session {id} is not deleted"),
            "delete it with `lanyard rm`",
        )),
        Some(true) => {
            let stage = tombstone.as_ref().map(|stone| stone.stage);
            Ok(Json(PurgeView { session: id, complete: stage == Some(PurgeStage::Wiped), stage, tombstone }))
        }
    }
}

pub(super) async fn gc(State(app): Shared, change: Change<NewGc>) -> Result<Json<GcReport>, Problem> {
    let (shared, wanted) = (app.storage.clone(), change.body);
    let ended = match wanted.ended_after_ms {
        None => 0,
        Some(after_ms) if wanted.dry_run => {
            retention::count(&app.storage, after_ms).await.map_err(|why| pruning(&why))?
        }
        Some(ended_after_ms) => {
            let reason = format!("it ended more than {} minutes ago", ended_after_ms / 60_000);
            let prune = Prune { ended_after_ms, actor: change.actor, reason, max: PRUNE_MAX };
            retention::prune(&app.storage, prune).await.map_err(|why| pruning(&why))?
        }
    };
    let report = on_disk(&app, move |_| storage::collect(&shared, &wanted)).await?;
    Ok(Json(GcReport { ended, ..report }))
}

fn pruning(why: &str) -> Problem {
    let title = format!("sessions that ended could not be deleted: {why}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "retention_failed", title, "run `lanyard doctor`")
}

pub(super) async fn backup(
    State(app): Shared,
    change: Change<NewBackup>,
) -> Result<Json<BackupReceipt>, Problem> {
    let NewBackup { path, force } = change.body;
    let attachments = app.storage.attachments.clone();
    let copied =
        on_disk(&app, move |store| Ok(storage::back_up((store, &attachments), &PathBuf::from(path), force)));
    let made = copied.await?;
    Ok(Json(made?))
}

/// For `status`.
pub(super) fn status(app: &App, store: &dyn Store) -> Result<JournalStatus, lanyard_store::StoreError> {
    let (tombstones, purging) = store.tombstones()?;
    Ok(JournalStatus {
        size: store.size()?,
        alarm_bytes: app.config.storage().storage.alarm_bytes,
        attachment_bytes: app.storage.attachments.total(),
        attachment_bytes_max: app.config.storage().storage.attachments_bytes,
        tombstones,
        purging,
        notices: store.notices(),
    })
}
