//! Worktrees that the daemon makes for tasks, flows and sessions: set up as their repository asks for, once an operator
//! has allowed that. Those of sessions are made before the session and go when it is purged.
//!
//! Knows nothing of tasks and flows, which write down themselves where their worktrees are.

mod begun;
mod setup;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanyard_core::journal::Row;
use lanyard_core::task::Tree;
use lanyard_core::{Actor, SessionId};
use lanyard_git::worktree::{self, SetupFile, WorktreeError};
use lanyard_store::{Filter, PaperKey, Store, StoreError};

use lanyard_agents::runs::Runs;
use lanyard_base::clock::Clock;
use lanyard_engine::redaction::Redaction;

pub(crate) use begun::SessionTree;

/// Papers that say which content of a setup file is allowed. Their workspace is the repository, their key the hash.
const TRUST: &str = "worktree_trust";

#[derive(Clone)]
pub(crate) struct OwnTrees {
    /// The folder of all worktrees.
    root: PathBuf,
    store: Arc<dyn Store>,
    clock: Arc<Clock>,
    /// The runs of setup commands.
    setups: Runs,
    redaction: Arc<Redaction>,
}

impl std::fmt::Debug for OwnTrees {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnTrees").field("root", &self.root).finish_non_exhaustive()
    }
}

impl OwnTrees {
    /// In a data folder; `program` supervises setup commands.
    pub(crate) fn new(
        (data, program): (&Path, PathBuf),
        store: &Arc<dyn Store>,
        clock: &Arc<Clock>,
        redaction: &Arc<Redaction>,
    ) -> Self {
        Self {
            root: data.join("trees"),
            store: store.clone(),
            clock: clock.clone(),
            setups: Runs::new(data.join("tree-setups"), program),
            redaction: redaction.clone(),
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.clone()
    }

    /// Whether an operator allowed this content for this repository. Blocks.
    pub(crate) fn is_trusted(&self, file: &SetupFile) -> Result<bool, StoreError> {
        Ok(self.store.paper(&trust(file))?.is_some())
    }

    /// Allows this content for this repository. Blocks.
    pub(crate) fn allow(&self, file: &SetupFile, by: &Actor) -> Result<(), StoreError> {
        if !self.is_trusted(file)? {
            let body = serde_json::json!({ "by": by.name }).to_string();
            self.store.put_paper(&trust(file), 0, self.clock.now(), &body)?;
        }
        Ok(())
    }

    /// Takes that back. Blocks.
    pub(crate) fn disallow(&self, file: &SetupFile) -> Result<(), StoreError> {
        self.store.remove_paper(&trust(file)).map(drop)
    }

    fn check_trust(&self, file: &SetupFile) -> Result<(), WorktreeError> {
        match self.is_trusted(file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(WorktreeError::SetupUntrusted {
                repository: file.repository.clone(),
                asks: setup::asks(&file.content),
            }),
            Err(_) => Err(WorktreeError::Interrupted),
        }
    }

    /// Takes away the worktree of a session that is to be purged, unless another session works there. What is in no
    /// commit is committed to its branch first, and the branch stays; what cannot be committed stays with the folder.
    /// Blocks.
    pub(crate) fn put_away(&self, session: SessionId) {
        let tree = match self.store.load(session) {
            Ok(Some(loaded)) => loaded.session.tree.map(|tree| (tree, loaded.session.workspace)),
            Ok(None) | Err(_) => None,
        };
        let Some((tree, workspace)) = tree else { return };
        if !Path::new(&tree.path).exists() || self.is_shared(session, workspace) {
            return;
        }
        let message = format!("Work of {session} that was not committed, kept by Lanyard.");
        let done = worktree::capture(&tree, &message).and_then(|_| worktree::remove(&tree));
        if let Err(error) = done {
            let folder = tree.path;
            tracing::warn!(%session, folder, %error, "the worktree of a deleted session stays");
        }
    }

    /// Whether another session works in the same folder. A journal that cannot be read says nothing against it.
    fn is_shared(&self, session: SessionId, workspace: Option<String>) -> bool {
        let there = Filter { workspace, ..Filter::default() };
        match self.store.list(&there, None, 2) {
            Ok(list) => list.rows.iter().any(|row| row.id != session),
            Err(_) => true,
        }
    }

    /// The branch of each session that works in a worktree of its own. Blocks.
    pub(crate) fn branches(&self, rows: &[Row]) -> Result<Vec<Option<String>>, StoreError> {
        let root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        let branch = |row: &Row| {
            let there = row.workspace.as_deref().is_some_and(|folder| Path::new(folder).starts_with(&root));
            let loaded = if there { self.store.load(row.id)? } else { None };
            Ok(loaded.and_then(|loaded| loaded.session.tree).map(|tree| tree.branch))
        };
        rows.iter().map(branch).collect()
    }

    /// Worktrees that stayed when their session was purged. Blocks.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let of_nobody = |name: &String| {
            let Ok(session) = name.parse::<SessionId>() else { return false };
            let begun = self.store.paper(&begun::place(session));
            matches!(self.store.load(session), Ok(None)) && matches!(begun, Ok(None))
        };
        let names = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(of_nobody);
        names
            .map(|name| {
                let folder = self.root.join(name);
                format!("{}: the session is gone; this worktree could not be committed", folder.display())
            })
            .collect()
    }
}

fn trust(file: &SetupFile) -> PaperKey {
    let workspace = file.repository.to_string_lossy().into_owned();
    PaperKey { kind: TRUST.to_owned(), workspace, key: file.hash.clone() }
}

/// Runs git on a blocking thread.
async fn with_git<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorktreeError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(WorktreeError::Interrupted))
}

/// The name of a worktree: the id of its owner.
fn name_of(tree: &Tree) -> &str {
    Path::new(&tree.path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
