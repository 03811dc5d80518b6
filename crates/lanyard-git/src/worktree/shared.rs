//! What all worktrees of a repository share: its refs, its config and the list of the worktrees themselves.
//!
//! Git's own folder of a worktree, its entry, is read and changed here as far as git has no command that can be stopped
//! anywhere and called again.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::call::{ask, maybe, read};
use super::error::failed;
use crate::snapshot::git::{Git, describe, path_of};
use crate::snapshot::message::check_name;
use crate::snapshot::repo::{Repo, io_error};
use crate::workspace_files::beneath;

/// Worktrees are made in this folder beside their places.
const MAKING: &str = ".making";
/// A folder on its way out has this before its name.
const GOING_PREFIX: &str = ".going-";
/// Enough to tell the commits kept for one task apart.
const KEPT_HASH_CHARS: usize = 16;
/// A branch is a file with this name and `.lock` behind it.
const BRANCH_BYTES_MAX: usize = 200;
/// The age from which the lock of a branch counts as left behind. Git holds one for milliseconds.
const LOCK_AGE_MIN: Duration = Duration::from_secs(10);
/// Git's notes on a worktree hold a path or a name.
const NOTE_BYTES_MAX: u64 = 64 * 1024;
const TASK: &str = "lanyard-task";
const BASE: &str = "lanyard-base";

/// Called at the top of the repository, which may be bare: only what needs no worktree.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) git: Git,
    /// The top of the main worktree, or the bare repository.
    pub(super) top: PathBuf,
    /// Git's folder that all worktrees share.
    pub(super) common: PathBuf,
}

/// How the place of a worktree stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WorktreePlace {
    /// There is nothing; git may still list it.
    Free { listed: bool },
    /// A worktree of this repository.
    Worktree,
    /// Something else.
    Taken,
}

impl Shared {
    /// The repository a folder's worktree belongs to.
    pub(super) fn around(repo: &Repo) -> Result<Self, WorktreeError> {
        let common = common_of(&repo.git)?;
        if real(&repo.git_dir) == common {
            return Ok(Self { git: repo.git.clone(), top: repo.top.clone(), common });
        }
        // A linked worktree: the main one is the first of the list.
        let list = read(&repo.git, &["worktree", "list", "--porcelain", "-z"], b"")?;
        let first = list.split(|byte| *byte == 0).next().unwrap_or_default();
        let top = path_of(first.strip_prefix(b"worktree ").unwrap_or_default().to_owned());
        Ok(Self { git: Git::new(&top), top, common })
    }

    /// The repository a tree was made from.
    pub(super) fn of(tree: &Tree) -> Result<Self, WorktreeError> {
        let top = PathBuf::from(&tree.repository);
        if !top.is_dir() {
            return Err(WorktreeError::Gone { folder: top });
        }
        let git = Git::new(&top);
        let common = common_of(&git)?;
        Ok(Self { git, top, common })
    }

    /// The tree's worktree, if its folder is there.
    pub(super) fn worktree(&self, tree: &Tree) -> Result<Option<Repo>, WorktreeError> {
        let path = Path::new(&tree.path);
        let broken = || WorktreeError::Broken { folder: path.to_owned() };
        match fs::symlink_metadata(path) {
            Ok(data) if data.is_dir() => {}
            // A link would lead to files that are not the task's.
            Ok(_) => return Err(broken()),
            Err(_) => return Ok(None),
        }
        let repo = match Repo::find(path).map_err(WorktreeError::from) {
            Ok(repo) => repo,
            Err(WorktreeError::NotARepository { .. } | WorktreeError::Git { .. }) => return Err(broken()),
            Err(error) => return Err(error),
        };
        // Without its own link to git, the folder would pass for a part of whatever is around it.
        if real(&repo.top) != real(path) || common_of(&repo.git)? != self.common {
            return Err(broken());
        }
        Ok(Some(repo))
    }

    pub(super) fn place(&self, path: &Path) -> Result<WorktreePlace, WorktreeError> {
        let entry = self.entry(path);
        if path.is_symlink() {
            return Ok(WorktreePlace::Taken);
        }
        let mut inside = match fs::read_dir(path) {
            Ok(inside) => inside,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(WorktreePlace::Free { listed: entry.is_some() });
            }
            Err(_) => return Ok(WorktreePlace::Taken),
        };
        if inside.next().is_none() {
            return Ok(WorktreePlace::Free { listed: entry.is_some() });
        }
        let found = Repo::find(path).ok().filter(|repo| real(&repo.top) == real(path));
        let ours = match found {
            Some(repo) => common_of(&repo.git)? == self.common && entry.is_some(),
            None => false,
        };
        Ok(if ours { WorktreePlace::Worktree } else { WorktreePlace::Taken })
    }

    /// Git's folder of the worktree at `path`.
    fn entry(&self, path: &Path) -> Option<PathBuf> {
        let link = real_parent(&path.join(".git"));
        let entries = fs::read_dir(self.common.join("worktrees")).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|entry| {
            let Ok(written) = beneath::read_regular(&entry.join("gitdir"), NOTE_BYTES_MAX) else {
                return false;
            };
            real_parent(&entry.join(path_of(written))) == link
        })
    }

    /// Where a worktree is made before it is put in its place. Git may outlive the daemon that called it, and takes
    /// away what it could not finish: under a name that is used once, that is never a later try.
    pub(super) fn attempt(path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(MAKING).join(format!("{name}.{:016x}", fastrand::u64(..)))
    }

    /// Puts a worktree that is whole in its place. Git is told first: stopped in between, it lists what is not there.
    pub(super) fn put(&self, attempt: &Path, path: &Path, name: &str) -> Result<(), WorktreeError> {
        let Some(entry) = self.entry(attempt) else {
            return Err(WorktreeError::Interrupted);
        };
        let write = |entry: &Path, name: &str, bytes: &[u8]| {
            beneath::write(entry, Path::new(name), bytes).map_err(io::Error::other)
        };
        let done = || -> io::Result<()> {
            let (link, next) = (path.join(".git"), entry.join("gitdir.new"));
            write(&entry, TASK, name.as_bytes())?;
            write(&entry, "gitdir.new", &[link.as_os_str().as_bytes(), b"\n"].concat())?;
            fs::rename(next, entry.join("gitdir"))?;
            fs::rename(attempt, path)
        };
        done().map_err(|source| io_error("put the worktree in its place", source).into())
    }

    /// Takes away what earlier tries to make a worktree left. Nobody has worked in it.
    pub(super) fn clear_attempts(&self, path: &Path) -> Result<(), WorktreeError> {
        for attempt in Self::attempts(path) {
            if let Some(name) = attempt.file_name() {
                // Git names its entry as the folder.
                absent(fs::remove_dir_all(self.common.join("worktrees").join(name))).map_err(not_gone)?;
                absent(fs::remove_dir_all(&attempt)).map_err(not_gone)?;
            }
        }
        Ok(())
    }

    /// Removes the lock that a killed git left on a branch of ours: git itself never does, and refuses every later change.
    /// The branch is this worktree's alone, and the worktree is not there, so no other git has a reason to hold it.
    pub(super) fn clear_stale_lock(&self, branch: &str, name: &str) -> Result<(), WorktreeError> {
        let lock = self.common.join(format!("{}.lock", head_ref(branch)));
        let Ok(data) = fs::symlink_metadata(&lock) else { return Ok(()) };
        let age = data.modified().ok().and_then(|at| at.elapsed().ok());
        let stale = data.is_file() && age.is_some_and(|age| age > LOCK_AGE_MIN);
        if stale && self.owner(branch)?.as_deref() == Some(name) {
            absent(fs::remove_file(&lock)).map_err(not_gone)?;
        }
        Ok(())
    }

    /// What tries to make the worktree at `path` left.
    pub(super) fn attempts(path: &Path) -> impl Iterator<Item = PathBuf> {
        let of_path = |attempt: &PathBuf| {
            let name = attempt.file_name().and_then(OsStr::to_str);
            let of = name.and_then(|name| name.rsplit_once('.')).map(|(of, _)| of);
            of.map(OsStr::new) == path.file_name()
        };
        let all = fs::read_dir(path.with_file_name(MAKING)).into_iter().flatten().flatten();
        all.map(|attempt| attempt.path()).filter(of_path)
    }

    pub(super) fn is_signed(&self, path: &Path, name: &str) -> bool {
        let read = |entry: PathBuf| beneath::read_regular(&entry.join(TASK), NOTE_BYTES_MAX).ok();
        self.entry(path).and_then(read).as_deref() == Some(name.as_bytes())
    }

    /// Takes away a worktree's folder and git's entry for it, however much of it there is. The folder goes out of the
    /// way in one step, so that one that is half gone is never taken for work.
    pub(super) fn clear(&self, path: &Path) -> Result<(), WorktreeError> {
        let going = going(path);
        absent(fs::remove_dir_all(&going)).map_err(not_gone)?;
        absent(fs::rename(path, &going)).map_err(not_gone)?;
        if let Some(entry) = self.entry(path) {
            // What `git worktree remove` does, which refuses an entry that is not whole.
            absent(fs::remove_dir_all(entry)).map_err(not_gone)?;
        }
        absent(fs::remove_dir_all(&going)).map_err(not_gone)?;
        self.clear_attempts(path)
    }

    /// The commit a ref names.
    pub(super) fn tip(&self, reference: &str) -> Result<Option<String>, WorktreeError> {
        maybe(&self.git, &["rev-parse", "--verify", "--quiet", &format!("{reference}^{{commit}}")])
    }

    /// The worktree a branch is checked out in.
    pub(super) fn checked_out(&self, branch: &str) -> Result<Option<PathBuf>, WorktreeError> {
        let args = ["for-each-ref", "--format=%(worktreepath)", &head_ref(branch)];
        let path = path_of(read(&self.git, &args, b"")?);
        Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
    }

    /// Makes a ref, moves it or takes it away, if it still is at `old`.
    pub(super) fn set_ref(
        &self,
        reference: &str,
        new: Option<&str>,
        old: Option<&str>,
    ) -> Result<(), WorktreeError> {
        let change = match (new, old) {
            (Some(new), Some(old)) => format!("update {reference} {new} {old}\n"),
            (Some(new), None) => format!("create {reference} {new}\n"),
            (None, Some(old)) => format!("delete {reference} {old}\n"),
            (None, None) => return Ok(()),
        };
        read(&self.git, &["update-ref", "--no-deref", "--stdin"], change.as_bytes())?;
        Ok(())
    }

    /// Keeps a commit under a private name. The same commit has the same name.
    pub(super) fn keep(&self, under: &str, commit: &str) -> Result<String, WorktreeError> {
        let short = commit.get(..KEPT_HASH_CHARS).unwrap_or(commit);
        let reference = format!("{under}{short}");
        read(&self.git, &["update-ref", "--no-deref", &reference, commit], b"")?;
        Ok(reference)
    }

    /// The name of the worktree a branch was made for.
    pub(super) fn owner(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        maybe(&self.git, &["config", "--local", "--get", &format!("branch.{branch}.{TASK}")])
    }

    /// The commit a branch of ours began at.
    pub(super) fn base(&self, branch: &str) -> Result<Option<String>, WorktreeError> {
        maybe(&self.git, &["config", "--local", "--get", &format!("branch.{branch}.{BASE}")])
    }

    /// Says whose a branch is. The base first: a branch with an owner has one.
    pub(super) fn mark(&self, branch: &str, name: &str, base: &str) -> Result<(), WorktreeError> {
        for (key, value) in [(BASE, base), (TASK, name)] {
            let key = format!("branch.{branch}.{key}");
            read(&self.git, &["config", "--local", "--replace-all", &key, value], b"")?;
        }
        Ok(())
    }

    pub(super) fn unmark(&self, branch: &str) -> Result<(), WorktreeError> {
        for key in [TASK, BASE] {
            let key = format!("branch.{branch}.{key}");
            match read(&self.git, &["config", "--local", "--unset-all", &key], b"") {
                Ok(_) => {}
                // It was not there.
                Err(WorktreeError::Git { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn check_branch(&self, branch: &str) -> Result<(), WorktreeError> {
        let bad = || WorktreeError::BadName { name: branch.to_owned() };
        if branch.starts_with('-') || branch == "HEAD" || branch.len() > BRANCH_BYTES_MAX {
            return Err(bad());
        }
        maybe(&self.git, &["check-ref-format", &head_ref(branch)])?.map(|_| ()).ok_or_else(bad)
    }
}

/// What a tree is called: the folder's name.
pub(super) fn name_of(tree: &Tree) -> Result<&str, WorktreeError> {
    let name = Path::new(&tree.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    check_name(name)?;
    Ok(name)
}

pub(super) fn head_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

pub(super) fn common_of(git: &Git) -> Result<PathBuf, WorktreeError> {
    let args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let output = ask(git, &args, b"")?;
    if output.status.success() {
        return Ok(real(&path_of(output.stdout)));
    }
    if output.stderr.contains("not a git repository") {
        return Err(WorktreeError::NotARepository { folder: git.folder().to_owned() });
    }
    Err(failed(describe(&args), output.stderr))
}

/// A path without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The same for a file that may be gone together with its folder.
fn real_parent(path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    match (fs::canonicalize(folder), folder.parent(), folder.file_name()) {
        (Ok(folder), _, _) => folder.join(name),
        (Err(_), Some(above), Some(folder)) => real(above).join(folder).join(name),
        (Err(_), _, _) => path.to_owned(),
    }
}

fn going(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{GOING_PREFIX}{name}"))
}

/// What is not there need not be taken away.
fn absent(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn not_gone(source: io::Error) -> WorktreeError {
    // Somebody still writes into it.
    if source.kind() == io::ErrorKind::DirectoryNotEmpty {
        return WorktreeError::Interrupted;
    }
    io_error("take the worktree's folder away", source).into()
}
