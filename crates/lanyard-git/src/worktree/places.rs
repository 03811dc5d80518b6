//! Which of git's folders an agent in a sandbox has to write, and which files in them others run or follow.
//!
//! An agent can write what lies in its workspace, a `.git` file or link included. What such a file points to is only
//! believed where the other end names this worktree as its own.

use std::path::{Path, PathBuf};

use super::create::commit_folders;
use super::shared::{common_of, real};
use crate::snapshot::repo::Repo;
use crate::workspace_files::beneath;

/// Files of a repository by which git runs programs or finds other folders.
const GUARDED: [&str; 5] = ["config", "config.worktree", "hooks", "commondir", "gitdir"];

/// Bytes of a file that holds one path.
const PATH_BYTES_MAX: u64 = 8 * 1024;

/// Git's places around a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitPlaces {
    /// What a commit writes.
    pub write: Vec<PathBuf>,
    /// Folders that git reads.
    pub read: Vec<PathBuf>,
    /// Must not be changed, moved or replaced. Those that end in `hooks` may be missing.
    pub guard: Vec<PathBuf>,
}

/// The places of the repository around `folder`; none where there is no repository, or where its worktree is not its own.
#[must_use]
pub fn git_places(folder: &Path) -> GitPlaces {
    let Ok(repo) = Repo::find(folder) else { return GitPlaces::default() };
    let Ok(common) = common_of(&repo.git) else { return GitPlaces::default() };
    let (top, entry) = (real(&repo.top), real(&repo.git_dir));
    let dot_git = top.join(".git");
    if entry == common {
        // Not a link to a repository that lies elsewhere.
        if entry != dot_git {
            return GitPlaces::default();
        }
        return GitPlaces { write: vec![entry.clone()], read: Vec::new(), guard: guarded(&entry) };
    }
    let named = beneath::read(&entry, Path::new("gitdir"), PATH_BYTES_MAX).unwrap_or_default();
    let named = String::from_utf8_lossy(&named).into_owned();
    let mutual = real(Path::new(named.trim())) == dot_git;
    if !mutual || entry.parent() != Some(&common.join("worktrees")) {
        return GitPlaces::default();
    }
    let own = commit_folders(folder);
    let mut guard = vec![dot_git];
    guard.extend(guarded(&entry).into_iter().filter(|path| path.exists()));
    if own.is_empty() {
        // The whole of it, but for the other worktrees.
        guard.extend(guarded(&common));
        guard.push(common.join("worktrees"));
        return GitPlaces { write: vec![common, entry], read: Vec::new(), guard };
    }
    GitPlaces { write: own, read: vec![common], guard }
}

fn guarded(folder: &Path) -> Vec<PathBuf> {
    let there = |path: &PathBuf| path.exists() || path.ends_with("hooks");
    GUARDED.iter().map(|name| folder.join(name)).filter(there).collect()
}
