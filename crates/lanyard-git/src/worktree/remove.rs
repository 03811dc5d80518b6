//! Taking a worktree away: the folder alone, or the branch with it.

use std::path::Path;

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::call::{line, read, text};
use super::capture::{capture, uncaptured};
use super::index::path_in;
use super::shared::{Shared, WorktreePlace, head_ref, name_of, real};
use crate::snapshot::changes::GITLINK;
use crate::snapshot::git::records;
use crate::snapshot::message::check_name;
use crate::snapshot::repo::Repo;

/// Takes a worktree's folder away. Its branch stays. Refused while it has work that is in no commit.
pub fn remove(tree: &Tree) -> Result<(), WorktreeError> {
    let shared = Shared::of(tree)?;
    // A tree that names no worktree is not a folder to be deleted.
    name_of(tree)?;
    if let Some(repo) = shared.worktree(tree)? {
        let folder = || repo.top.clone();
        let files = uncaptured(&shared, &repo, tree)?;
        if !files.is_empty() {
            return Err(WorktreeError::DirtyWorktree { folder: folder(), files });
        }
        let files = nested(&repo)?;
        if !files.is_empty() {
            return Err(WorktreeError::Nested { folder: folder(), files });
        }
    }
    shared.clear(Path::new(&tree.path))
}

/// Takes a worktree and its branch away. What it held is kept under the ref that is answered.
pub fn discard(tree: &Tree) -> Result<String, WorktreeError> {
    let shared = Shared::of(tree)?;
    let under = format!("refs/lanyard/discarded/{}/", name_of(tree)?);
    let reference = head_ref(&tree.branch);
    if shared.tip(&reference)?.is_some() && shared.owner(&tree.branch)?.as_deref() != Some(name_of(tree)?) {
        return Err(WorktreeError::BranchExists { branch: tree.branch.clone() });
    }
    capture(tree, "Work in progress when the branch was discarded")?;
    let Some(tip) = shared.tip(&reference)? else {
        // It was discarded before, and perhaps not to the end.
        remove(tree)?;
        shared.unmark(&tree.branch)?;
        let args = ["for-each-ref", "--sort=-creatordate", "--count=1", "--format=%(refname)", &under];
        let kept = line(&shared.git, &args, b"")?;
        return match kept.as_str() {
            "" => Err(WorktreeError::BranchGone { branch: tree.branch.clone() }),
            kept => Ok(kept.to_owned()),
        };
    };
    let kept = shared.keep(&under, &tip)?;
    remove(tree)?;
    if shared.checked_out(&tree.branch)?.is_some() {
        return Err(WorktreeError::BranchInUse { branch: tree.branch.clone() });
    }
    shared.set_ref(&reference, None, Some(&tip))?;
    shared.unmark(&tree.branch)?;
    Ok(kept)
}

/// Takes away a worktree that was begun for `name`, however much of it there is, and in which nobody has worked. A branch
/// that was made for it goes too, unless it has commits of its own.
pub fn undo(root: &Path, folder: &Path, name: &str, branch: &str) -> Result<(), WorktreeError> {
    check_name(name)?;
    let shared = Shared::around(&Repo::find(folder)?)?;
    let path = real(root).join(name);
    if shared.place(&path)? != WorktreePlace::Taken {
        shared.clear(&path)?;
    }
    if shared.owner(branch)?.as_deref() != Some(name) {
        return Ok(());
    }
    let reference = head_ref(branch);
    if let Some(tip) = shared.tip(&reference)? {
        if shared.base(branch)?.as_ref() != Some(&tip) {
            return Ok(());
        }
        shared.set_ref(&reference, None, Some(&tip))?;
    }
    shared.unmark(branch)
}

/// Repositories inside the worktree, which its commits name and do not hold.
fn nested(repo: &Repo) -> Result<Vec<String>, WorktreeError> {
    let list = read(&repo.git, &["ls-files", "--stage", "-z"], b"")?;
    let links = records(&list).filter(|entry| entry.starts_with(GITLINK.as_bytes()));
    let paths = links.map(|entry| text(path_in(entry)));
    Ok(paths.filter(|path| repo.top.join(path).join(".git").exists()).collect())
}
