//! Making a worktree. Each step finds out whether it was done before, so that a call after a crash goes on from there.
//!
//! The order matters: whose the branch will be is written first, then the branch is made, then the folder. A mark
//! without a branch is harmless; a branch without a mark would be somebody else's. The folder is made elsewhere and put
//! in its place when it is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::base::{FinishedWork, Start, holding, with_work};
use super::call::{ask, is_ancestor, maybe, text};
use super::error::failed;
use super::shared::{Shared, WorktreePlace, common_of, head_ref, real};
use crate::snapshot::git::describe;
use crate::snapshot::message::check_name;
use crate::snapshot::repo::{Repo, io_error};

/// Writing every file of a large repository. Stopped, it begins again from nothing.
const ADD_MAX: Duration = Duration::from_mins(15);

/// Whether a folder is in the worktree of a git repository.
#[must_use]
pub fn is_repository(folder: &Path) -> bool {
    Repo::find(folder).is_ok()
}

/// The top of the repository around a folder.
#[must_use]
pub fn top(folder: &Path) -> Option<PathBuf> {
    Repo::find(folder).ok().map(|repo| repo.top)
}

/// Git's folders that a commit in one of Lanyard's worktrees writes: the worktree's own entry, the objects, and the
/// folders of its branch and of that branch's log. Hooks and config, which others run, are not among them. Empty for any
/// other folder.
#[must_use]
pub fn commit_folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(repo) = Repo::find(folder) else { return Vec::new() };
    let (Ok(common), Ok(Some(head))) =
        (common_of(&repo.git), maybe(&repo.git, &["symbolic-ref", "--quiet", "HEAD"]))
    else {
        return Vec::new();
    };
    let (entry, branch) = (real(&repo.git_dir), PathBuf::from(head.trim()));
    let Some(refs) = branch.parent().filter(|refs| refs.starts_with("refs/heads/lanyard")) else {
        return Vec::new();
    };
    if entry == common {
        return Vec::new();
    }
    let logs = common.join("logs").join(refs);
    // Lanyard keeps no log of the branch and the agent's git does, in a folder that it cannot make in its sandbox.
    if let Err(error) = fs::create_dir_all(&logs) {
        tracing::warn!(folder = %logs.display(), %error, "an agent in a sandbox may not be able to commit");
    }
    let mut folders = vec![entry, common.join("objects"), common.join(refs), logs];
    folders.retain(|folder| folder.is_dir() && real(folder).starts_with(&common));
    folders
}

/// Whether a commit is new work: on the branch of the worktree around `folder`, and after the commit `after`. If not,
/// why.
pub fn is_new_work(folder: &Path, commit: &str, after: Option<&str>) -> Result<(), String> {
    let unreadable = |error: WorktreeError| error.to_string();
    let repo = Repo::find(folder).map_err(|error| error.to_string())?;
    let named = commit_named(&repo, commit)
        .map_err(|_| format!("there is no commit `{commit}` in the repository"))?;
    let head = commit_named(&repo, "HEAD").map_err(unreadable)?;
    if !is_ancestor(&repo.git, &named, &head).map_err(unreadable)? {
        return Err(format!("the commit `{commit}` is not on the branch of this worktree"));
    }
    let Some(after) = after else { return Ok(()) };
    let after = commit_named(&repo, after).map_err(unreadable)?;
    if named == after || !is_ancestor(&repo.git, &after, &named).map_err(unreadable)? {
        return Err(format!(
            "the commit `{commit}` is not new: the work began at `{after}`. Commit your work and name the new commit; \
             where there is nothing to change, use `git commit --allow-empty`. If git cannot write, say `needs_human`"
        ));
    }
    Ok(())
}

/// The worktree `root/<name>` of the repository around `folder`, made now or before. Its branch, `lanyard/<name>` unless
/// given, begins at `base`, or where `folder` stands. A branch that was made for this name earlier is gone on with.
pub fn create(
    root: &Path,
    folder: &Path,
    name: &str,
    branch: Option<&str>,
    base: Option<&str>,
) -> Result<Tree, WorktreeError> {
    create_after(root, folder, name, branch, base, &[])
}

/// The same for a task that depends on others: its branch has their work before anybody works on it.
pub fn create_after(
    root: &Path,
    folder: &Path,
    name: &str,
    branch: Option<&str>,
    base: Option<&str>,
    work: &[FinishedWork],
) -> Result<Tree, WorktreeError> {
    let branch = branch.map_or_else(|| format!("lanyard/{name}"), str::to_owned);
    make(root, folder, &Wanted { name, branch: &branch, base, work, others: OthersBranch::Refused })
}

/// The same on a branch that a person named: a new one, or one that is there and checked out nowhere.
pub fn create_on(
    root: &Path,
    folder: &Path,
    name: &str,
    branch: &str,
    base: Option<&str>,
) -> Result<Tree, WorktreeError> {
    make(root, folder, &Wanted { name, branch, base, work: &[], others: OthersBranch::Used })
}

fn make(root: &Path, folder: &Path, wanted: &Wanted<'_>) -> Result<Tree, WorktreeError> {
    let (name, branch) = (wanted.name, wanted.branch.to_owned());
    check_name(name)?;
    let repo = Repo::find(folder)?;
    let shared = Shared::around(&repo)?;
    shared.check_branch(&branch)?;
    let path = room(root, name)?;
    match shared.place(&path)? {
        WorktreePlace::Taken => return Err(WorktreeError::FolderInUse { folder: path }),
        WorktreePlace::Worktree => {
            if !shared.is_signed(&path, name) && shared.tip(&head_ref(&branch))?.is_none() {
                return Err(WorktreeError::FolderInUse { folder: path });
            }
            // Where it stands now, should somebody have taken its branch away.
            let stands = Repo::find(&path)?.head()?;
            let base = settle(&shared, &repo, wanted, stands.as_deref())?;
            return tree(&shared, &path, &branch, base);
        }
        WorktreePlace::Free { listed: true } => shared.clear(&path)?,
        WorktreePlace::Free { listed: false } => shared.clear_attempts(&path)?,
    }
    shared.clear_stale_lock(&branch, name)?;
    let base = settle(&shared, &repo, wanted, None)?;
    if shared.checked_out(&branch)?.is_some() {
        return Err(WorktreeError::BranchInUse { branch });
    }
    let attempt = Shared::attempt(&path);
    add(&shared, &attempt, &branch)?;
    shared.put(&attempt, &path, name)?;
    tree(&shared, &path, &branch, base)
}

/// Whether a worktree of this name was begun to be made, to whatever end, and was not taken away.
#[must_use]
pub fn was_begun(root: &Path, name: &str) -> bool {
    let path = root.join(name);
    path.exists() || Shared::attempts(&path).next().is_some()
}

struct Wanted<'a> {
    name: &'a str,
    branch: &'a str,
    base: Option<&'a str>,
    work: &'a [FinishedWork],
    others: OthersBranch,
}

/// A branch of the wanted name that was not made for this worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OthersBranch {
    Refused,
    /// Checked out as it is. It does not become Lanyard's.
    Used,
}

/// Sees to it that the branch is there and ours, and answers where it began. A new one starts at `stands`, else at its
/// base.
fn settle(
    shared: &Shared,
    repo: &Repo,
    wanted: &Wanted<'_>,
    stands: Option<&str>,
) -> Result<String, WorktreeError> {
    let reference = head_ref(wanted.branch);
    if let Some(tip) = shared.tip(&reference)? {
        if shared.owner(wanted.branch)?.as_deref() != Some(wanted.name) {
            if wanted.others == OthersBranch::Used {
                return Ok(tip);
            }
            return Err(WorktreeError::BranchExists { branch: wanted.branch.to_owned() });
        }
        let base = shared.base(wanted.branch)?.unwrap_or_else(|| tip.clone());
        let is_free = stands.is_none() && shared.checked_out(wanted.branch)?.is_none();
        return if is_free { bring_up(shared, repo, wanted, base, &tip) } else { Ok(base) };
    }
    let base = if let Some(base) = wanted.base {
        with_work(shared, repo, Start::Fixed(&commit_named(repo, base)?), wanted.work)?
    } else {
        let head = repo.head()?.ok_or_else(|| WorktreeError::NoCommit { folder: repo.top.clone() })?;
        with_work(shared, repo, Start::Head(&head), wanted.work)?
    };
    let base = match stands {
        Some(stands) => maybe(&shared.git, &["merge-base", stands, &base])?.unwrap_or(base),
        None => base,
    };
    shared.mark(wanted.branch, wanted.name, &base)?;
    match shared.set_ref(&reference, Some(stands.unwrap_or(&base)), None) {
        // Somebody made one of the same name in between, or one whose name is a folder of this one.
        Err(WorktreeError::Git { .. }) => {
            shared.unmark(wanted.branch)?;
            Err(WorktreeError::BranchExists { branch: wanted.branch.to_owned() })
        }
        Err(error) => Err(error),
        Ok(()) => Ok(base),
    }
}

/// Brings an earlier branch up to the work its task depends on, as that work is now. The branch's new base has all of it,
/// so that what the branch has after its base is its own. A branch without commits of its own begins there.
fn bring_up(
    shared: &Shared,
    repo: &Repo,
    wanted: &Wanted<'_>,
    base: String,
    tip: &str,
) -> Result<String, WorktreeError> {
    let mut with = with_work(shared, repo, Start::Fixed(tip), wanted.work)?;
    if with == tip {
        return Ok(base);
    }
    let base = match with_work(shared, repo, Start::Fixed(&base), wanted.work) {
        Ok(newer) => match holding(repo, tip, &with, &newer)? {
            Some(whole) => {
                with = whole;
                newer
            }
            None => base,
        },
        // The branch itself has resolved what the work alone cannot.
        Err(WorktreeError::BaseConflict { .. }) => base,
        Err(error) => return Err(error),
    };
    // The mark first: cut short here, the next call merges again from the same base.
    shared.mark(wanted.branch, wanted.name, &base)?;
    shared.set_ref(&head_ref(wanted.branch), Some(&with), Some(tip))?;
    Ok(base)
}

/// The commit a name stands for, as seen from `repo`.
fn commit_named(repo: &Repo, name: &str) -> Result<String, WorktreeError> {
    let unknown = || WorktreeError::UnknownBase { base: name.to_owned() };
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(unknown());
    }
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")];
    let output = ask(&repo.git, &args, b"")?;
    match output.status.code() {
        Some(0) => Ok(text(&output.stdout)),
        // 128: a range, or text that is no name at all.
        Some(1 | 128) if !output.stderr.contains("dubious ownership") => Err(unknown()),
        _ => Err(failed(describe(&args), output.stderr)),
    }
}

fn add(shared: &Shared, path: &Path, branch: &str) -> Result<(), WorktreeError> {
    let args = ["worktree".as_ref(), "add".as_ref(), "--quiet".as_ref(), path.as_os_str(), branch.as_ref()];
    let output = ask(&shared.git.with_time(ADD_MAX), &args, b"")?;
    if output.status.success() {
        return Ok(());
    }
    // Git takes its half-made worktree away itself, unless it was killed.
    let used = output.stderr.contains("already used by") || output.stderr.contains("already checked out");
    if used {
        return Err(WorktreeError::BranchInUse { branch: branch.to_owned() });
    }
    Err(failed(describe(&args), output.stderr))
}

/// The place of a worktree, in a folder that exists, without links: git writes it that way.
fn room(root: &Path, name: &str) -> Result<PathBuf, WorktreeError> {
    let made = || -> std::io::Result<PathBuf> {
        fs::create_dir_all(root)?;
        Ok(fs::canonicalize(root)?.join(name))
    };
    made().map_err(|source| io_error("make the folder of worktrees", source).into())
}

fn tree(shared: &Shared, path: &Path, branch: &str, base: String) -> Result<Tree, WorktreeError> {
    let utf8 = |path: &Path| match path.to_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(WorktreeError::BadName { name: path.to_string_lossy().into_owned() }),
    };
    Ok(Tree {
        path: utf8(path)?,
        branch: branch.to_owned(),
        base,
        repository: utf8(&shared.top)?,
        removed: false,
    })
}
