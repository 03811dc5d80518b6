//! What differs between a base and the workspace of a session. All git work is done aside.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use lanyard_api::types::{ChangedFile, FileChange, WorkspaceDiff};
use lanyard_core::session::{BaseKind, ReviewBase, Session, SnapshotReason};
use lanyard_git::snapshot::{DiffStatus, DiffTo, FileDiff};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Target, load, query};
use crate::api::snapshots::{Known, aside, find, known, newest, none, workspace_of};
use crate::problem::Problem;

type Shared = State<Arc<App>>;

/// Words for a base beside the names of checkpoints.
const TURN: &str = "turn";
const SESSION: &str = "session";
const BRANCH: &str = "branch";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiffQuery {
    from: Option<String>,
    to: Option<String>,
}

pub(super) async fn get(
    State(app): Shared,
    target: Target,
    uri: Uri,
) -> Result<Json<WorkspaceDiff>, Problem> {
    let query: DiffQuery = query(&uri)?;
    let session = load(&app, target.0).await?.session;
    let base = base_of(&app, &session, query.from.as_deref()).await?;
    let to = match query.to {
        Some(named) => Some(find(&known(&app, &session).await?, &named)?),
        None => None,
    };
    let workspace = workspace_of(&session)?;
    let (old, new) = (base.commit.clone(), to.as_ref().map(|to| to.commit.clone()));
    let checkpoints = app.checkpoints.clone();
    let diff = aside(move || {
        checkpoints.diff(&workspace, &old, new.as_deref().map_or(DiffTo::Worktree, DiffTo::Commit))
    });
    let diff = diff.await??;
    Ok(Json(WorkspaceDiff {
        from: base.name.clone(),
        to: to.map(|to| to.name),
        base,
        files: diff.files.into_iter().map(|file| changed(&session, file)).collect(),
        text: diff.text,
        truncated: diff.truncated,
    }))
}

fn changed(session: &Session, file: FileDiff) -> ChangedFile {
    ChangedFile {
        viewed: session.review.is_viewed(&file.path, &file.hash),
        path: file.path,
        old_path: file.old_path,
        change: match file.status {
            DiffStatus::Added => FileChange::Added,
            DiffStatus::Modified => FileChange::Modified,
            DiffStatus::Deleted => FileChange::Deleted,
            DiffStatus::Renamed => FileChange::Renamed,
            DiffStatus::TypeChanged => FileChange::TypeChanged,
        },
        added: file.added,
        removed: file.removed,
        binary: file.binary,
        hash: file.hash,
    }
}

/// The base that a name stands for: `turn`, `session`, `branch`, or a checkpoint. Without a name the newest checkpoint that
/// is not the end of a turn.
pub(super) async fn base_of(
    app: &Arc<App>,
    session: &Session,
    named: Option<&str>,
) -> Result<ReviewBase, Problem> {
    if named == Some(BRANCH) {
        let (workspace, checkpoints) = (workspace_of(session)?, app.checkpoints.clone());
        let begun = session.tree.as_ref().map(|tree| tree.base.clone());
        let base = aside(move || checkpoints.branch_base(&workspace, begun.as_deref())).await??;
        return Ok(ReviewBase { kind: BaseKind::Branch, name: base.name, commit: base.commit });
    }
    let taken = known(app, session).await?;
    let starts = |known: &&Known| known.reason() == Some(SnapshotReason::TurnStart);
    let (kind, snapshot) = match named {
        Some(SESSION) => (BaseKind::SessionStart, taken.first().map(Known::snapshot).ok_or_else(none)?),
        Some(TURN) => {
            let start = taken.iter().rev().find(starts).map(Known::snapshot);
            (BaseKind::TurnStart, start.map_or_else(|| newest(&taken), Ok)?)
        }
        Some(name) => (BaseKind::Checkpoint, find(&taken, name)?),
        None => {
            let snapshot = newest(&taken)?;
            let is_start = taken.iter().filter(starts).any(|known| known.snapshot().name == snapshot.name);
            (if is_start { BaseKind::TurnStart } else { BaseKind::Checkpoint }, snapshot)
        }
    };
    Ok(ReviewBase { kind, name: snapshot.name, commit: snapshot.commit })
}
