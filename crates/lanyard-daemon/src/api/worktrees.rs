//! The setup file of a repository, and an operator's word that its content may be applied.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use lanyard_api::types::{TrustSetup, WorktreeSetup};
use lanyard_git::workspace_path;
use lanyard_git::worktree::{self, SetupFile};
use serde::Deserialize;

use crate::api::App;
use crate::api::context::{Change, on_disk, query};
use crate::api::tasks::with_git;
use crate::problem::Problem;

type Shared = State<Arc<App>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetupQuery {
    workspace: String,
}

pub(super) async fn get(State(app): Shared, uri: Uri) -> Result<Json<WorktreeSetup>, Problem> {
    let SetupQuery { workspace } = query(&uri)?;
    let (top, file) = read(workspace).await?;
    view(&app, top, file).await
}

pub(super) async fn trust(
    State(app): Shared,
    change: Change<TrustSetup>,
) -> Result<Json<WorktreeSetup>, Problem> {
    let TrustSetup { workspace, hash, revoke, .. } = change.body;
    let (top, file) = read(workspace).await?;
    let Some(file) = file.filter(|file| file.hash == hash) else {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "worktree_setup_changed",
            format!("{}/{} is not the file that was read", top.display(), worktree::SETUP_FILE),
            "read it again with `lanyard worktree show`",
        ));
    };
    let (trees, wanted, by) = (app.trees.clone(), file.clone(), change.actor);
    on_disk(&app, move |_| if revoke { trees.disallow(&wanted) } else { trees.allow(&wanted, &by) }).await?;
    view(&app, top, Some(file)).await
}

/// The repository around a folder, and its setup file.
async fn read(workspace: String) -> Result<(PathBuf, Option<SetupFile>), Problem> {
    let folder = workspace_path::expanded(&workspace);
    workspace_path::check(&folder).await?;
    with_git(move || {
        let folder = Path::new(&folder);
        let file = worktree::setup_file(folder)?;
        let top = file.as_ref().map(|file| file.repository.clone());
        Ok((top.or_else(|| worktree::top(folder)).unwrap_or_else(|| folder.to_owned()), file))
    })
    .await
}

async fn view(app: &Arc<App>, top: PathBuf, file: Option<SetupFile>) -> Result<Json<WorktreeSetup>, Problem> {
    let repository = top.display().to_string();
    let Some(file) = file else {
        let (setup, copy, link) = (Vec::new(), Vec::new(), Vec::new());
        return Ok(Json(WorktreeSetup { repository, hash: None, setup, copy, link, trusted: false }));
    };
    let (trees, asked) = (app.trees.clone(), file.clone());
    let trusted = on_disk(app, move |_| trees.is_trusted(&asked)).await?;
    let SetupFile { hash, content, .. } = file;
    Ok(Json(WorktreeSetup {
        repository,
        hash: Some(hash),
        setup: content.setup,
        copy: content.copy,
        link: content.link,
        trusted,
    }))
}
