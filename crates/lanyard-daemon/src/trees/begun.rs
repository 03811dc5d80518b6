//! Worktrees of sessions that are on their way: a note is written before anything is made, and removed when the session is
//! there. A daemon that starts takes back what has a note and no session.

use std::path::{Path, PathBuf};

use lanyard_core::SessionId;
use lanyard_core::session::NewWorktree;
use lanyard_core::task::Tree;
use lanyard_core::tree::{SetupStep, session_branch};
use lanyard_git::worktree::{self, WorktreeError};
use lanyard_store::{PaperKey, Put};
use serde::{Deserialize, Serialize};

use super::{OwnTrees, with_git};
use lanyard_base::failpoint;

/// The notes. Their key is the session's id.
const BEGUN: &str = "worktree_begun";
/// Notes a start looks at; as many requests can hardly have been under way.
const NOTES_MAX: usize = 1_000;

/// A worktree that is ready for its session.
#[derive(Debug)]
pub(crate) struct SessionTree {
    pub(crate) tree: Tree,
    pub(crate) setup: Vec<SetupStep>,
    /// The folder in the worktree that the request named in the repository.
    pub(crate) workspace: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BegunTree {
    folder: PathBuf,
    branch: String,
}

pub(super) fn place(session: SessionId) -> PaperKey {
    PaperKey { kind: BEGUN.to_owned(), workspace: String::new(), key: session.to_string() }
}

impl OwnTrees {
    /// Makes and sets up the worktree of a session that is to be created. After a refusal nothing of it is left.
    pub(crate) async fn begin(
        &self,
        session: SessionId,
        folder: &Path,
        title: Option<&str>,
        wanted: &NewWorktree,
    ) -> Result<SessionTree, WorktreeError> {
        let branch = wanted.branch.clone().unwrap_or_else(|| session_branch(title, session));
        let note = BegunTree { folder: folder.to_owned(), branch };
        let (trees, noted, base) = (self.clone(), note.clone(), wanted.base.clone());
        let made = with_git(move || {
            // Before anything is made: what may not be set up is not begun.
            if let Some(file) = worktree::setup_file(&noted.folder)? {
                trees.check_trust(&file)?;
            }
            trees.note(session, &noted)?;
            failpoint::hit("trees_after_note");
            let name = session.to_string();
            worktree::create_on(&trees.root, &noted.folder, &name, &noted.branch, base.as_deref())
        });
        let ready = match made.await {
            Ok(tree) => self.prepare(&tree).await.map(|setup| (tree, setup)),
            Err(error) => Err(error),
        };
        match ready {
            Ok((tree, setup)) => {
                failpoint::hit("trees_after_make");
                let workspace = inside(&tree, folder);
                Ok(SessionTree { tree, setup, workspace })
            }
            Err(error) => {
                self.take_back(session).await;
                Err(error)
            }
        }
    }

    /// The session is there, and its record knows its worktree.
    pub(crate) async fn keep(&self, session: SessionId) {
        failpoint::hit("trees_after_create");
        let trees = self.clone();
        let kept = tokio::task::spawn_blocking(move || trees.store.remove_paper(&place(session)));
        // A note that stays is removed at the next start.
        if let Ok(Err(error)) = kept.await {
            tracing::warn!(%session, %error, "the note of a session's worktree stays");
        }
    }

    /// The session was not created: its worktree goes.
    pub(crate) async fn take_back(&self, session: SessionId) {
        let trees = self.clone();
        let _ = tokio::task::spawn_blocking(move || trees.settle(session)).await;
    }

    /// Takes back what an earlier daemon began and did not finish.
    pub(crate) async fn recover(&self) {
        self.end_setups().await;
        let trees = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let notes = trees.store.papers_named(BEGUN, None, NOTES_MAX).unwrap_or_default();
            for session in notes.iter().filter_map(|note| note.place.key.parse().ok()) {
                trees.settle(session);
            }
        });
        let _ = done.await;
    }

    /// Decides a note: a session that is there keeps its worktree, without one it goes. What fails is tried again at the
    /// next start.
    fn settle(&self, session: SessionId) {
        let settled = match self.store.load(session) {
            Ok(Some(_)) => {
                self.store.remove_paper(&place(session)).map(drop).map_err(|_| WorktreeError::Interrupted)
            }
            Ok(None) => self.undo(session),
            Err(_) => Err(WorktreeError::Interrupted),
        };
        if let Err(error) = settled {
            tracing::warn!(%session, %error, "a worktree without a session stays until the next start");
        }
    }

    fn note(&self, session: SessionId, note: &BegunTree) -> Result<(), WorktreeError> {
        let body = serde_json::to_string(note).map_err(|_| WorktreeError::Interrupted)?;
        match self.store.put_paper(&place(session), 0, self.clock.now(), &body) {
            Ok(Put::Kept(_)) => Ok(()),
            Ok(Put::Moved(_)) | Err(_) => Err(WorktreeError::Interrupted),
        }
    }

    /// Takes away all there is of a worktree that was noted, then the note. Without a note nothing was made.
    fn undo(&self, session: SessionId) -> Result<(), WorktreeError> {
        let interrupted = |_| WorktreeError::Interrupted;
        let Some(paper) = self.store.paper(&place(session)).map_err(interrupted)? else { return Ok(()) };
        if let Ok(note) = serde_json::from_str::<BegunTree>(&paper.body) {
            match worktree::undo(&self.root, &note.folder, &session.to_string(), &note.branch) {
                // Without its repository the folder is nothing.
                Err(WorktreeError::NotARepository { .. } | WorktreeError::Gone { .. }) => {
                    let _ = std::fs::remove_dir_all(self.root.join(session.to_string()));
                }
                done => done?,
            }
        }
        self.store.remove_paper(&place(session)).map(drop).map_err(interrupted)
    }
}

/// The folder of a worktree that is to it what `folder` is to its own worktree; the top where there is no such folder.
fn inside(tree: &Tree, folder: &Path) -> String {
    let rest = || {
        let top = worktree::top(folder)?.canonicalize().ok()?;
        let rest = folder.canonicalize().ok()?.strip_prefix(top).ok()?.to_owned();
        let there = Path::new(&tree.path).join(rest);
        there.is_dir().then(|| there.components().as_path().to_str().map(str::to_owned)).flatten()
    };
    rest().unwrap_or_else(|| tree.path.clone())
}
