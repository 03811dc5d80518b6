//! Where a workspace's repository is, and temporary indexes beside its own.
//!
//! The real index is only ever read here. A copy keeps the original's time: git takes an entry as unchanged when the
//! index is younger than the file, so a younger copy would hide an edit made in the same tick as the last `git add`.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use super::SnapshotError;
use super::changes::{GITLINK, on_disk};
use super::disarm::Disarmed;
use super::git::{Git, QUICK_MAX, WORK_MAX, failed, path_of, records};
use crate::workspace_files::{FileError, beneath};

/// Temporary files start with this; what a killed daemon left behind is found by it.
const TEMP_PREFIX: &str = "lanyard-tmp-";
/// Temporary files older than this are nobody's: every call is shorter.
const TEMP_AGE_MAX: Duration = Duration::from_hours(6);
/// Enough for a line with a path.
const LINE_MAX: usize = 64 * 1024;
/// Complaints taken over as notes.
const NOTES_MAX: usize = 20;
/// Repositories inside a worktree that are looked into for programs.
const INNER_MAX: usize = 1_000;
/// Files that git reads in passing; one that is a FIFO would hold it up until its deadline.
const OF_WORKTREE: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
const OF_GIT: [&str; 7] =
    ["HEAD", "config", "config.worktree", "index", "packed-refs", "info/attributes", "info/exclude"];

/// A repository with a worktree.
#[derive(Debug)]
pub(crate) struct Repo {
    /// Called in the worktree's top folder.
    pub(crate) git: Git,
    pub(crate) top: PathBuf,
    /// Git's folder of this worktree; in a linked worktree not the repository's own.
    pub(crate) git_dir: PathBuf,
    /// The real index, which may not exist.
    pub(crate) index: PathBuf,
}

/// A file or folder in git's folder that goes away with this value.
#[derive(Debug)]
pub(crate) struct Temp {
    pub(crate) path: PathBuf,
}

impl Repo {
    pub(crate) fn find(workspace: &Path) -> Result<Self, SnapshotError> {
        Self::find_with(&Git::new(workspace), workspace)
    }

    pub(crate) fn find_with(git: &Git, workspace: &Path) -> Result<Self, SnapshotError> {
        if !workspace.is_dir() {
            return Err(SnapshotError::Gone { folder: workspace.to_owned() });
        }
        check_special(workspace)?;
        let args = ["rev-parse", "--show-toplevel"];
        let output = git.run(&args, b"", LINE_MAX)?;
        if !output.status.success() {
            // Bare, inside git's own folder, or no repository at all.
            let stranger = output.stderr.contains("not a git repository");
            if stranger || output.stderr.contains("must be run in a work tree") {
                return Err(SnapshotError::NotGit { folder: workspace.to_owned() });
            }
            return Err(failed(&args, output.stderr));
        }
        let top = path_of(output.stdout);
        // Git takes any folder for the worktree that `core.worktree` names, such as the user's home.
        if fs::symlink_metadata(top.join(".git")).is_err() {
            return Err(SnapshotError::NotGit { folder: workspace.to_owned() });
        }
        let git = Git::new(&top);
        let path = git.read(&["rev-parse", "--path-format=absolute", "--git-path", "index"], b"")?;
        let index = path_of(path);
        let git_dir = index.parent().unwrap_or(&top).to_owned();
        Ok(Self { git, top, git_dir, index })
    }

    /// The commit HEAD names, unless there is none yet.
    pub(crate) fn head(&self) -> Result<Option<String>, SnapshotError> {
        let output = self.git.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], b"", LINE_MAX)?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !text.is_empty()).then_some(text))
    }

    /// The name of the tree with nothing in it, in the repository's kind of names.
    pub(crate) fn empty_tree(&self) -> Result<String, SnapshotError> {
        self.git.read_line(&["hash-object", "-w", "-t", "tree", "--stdin"], b"")
    }

    /// A name for a temporary file nobody else has; the file does not exist.
    pub(crate) fn temp(&self) -> Temp {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TEMP_PREFIX}{}-{count}-{:016x}", std::process::id(), fastrand::u64(..));
        Temp { path: self.git_dir.join(name) }
    }

    pub(crate) fn temp_folder(&self) -> Result<Temp, SnapshotError> {
        let temp = self.temp();
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&temp.path)
            .map_err(|source| io_error("make a temporary folder", source))?;
        Ok(temp)
    }

    /// A copy of an index with its time. Without an index there is no file, which git reads as an empty one.
    pub(crate) fn copy_index(&self, index: &Path) -> Result<Temp, SnapshotError> {
        let temp = self.temp();
        let mut from = match beneath::open_regular(index) {
            Ok(file) => file,
            Err(FileError::Missing) => return Ok(temp),
            Err(error) => return Err(file_error("read the index", error)),
        };
        let copied = || -> io::Result<()> {
            let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp.path)?;
            io::copy(&mut from, &mut to)?;
            to.set_modified(from.metadata()?.modified()?)
        }();
        copied.map_err(|source| io_error("copy the index", source))?;
        Ok(temp)
    }

    /// Brings an index to what the worktree is: changes, deletions and untracked files, not ignored ones.
    /// Whatever could not be read is left as it was and said in the notes.
    pub(crate) fn add_worktree(&self, index: &Temp, notes: &mut Vec<String>) -> Result<(), SnapshotError> {
        let git = self.git.with_index(&index.path).with_time(WORK_MAX);
        // Git looks for changes inside the repositories that the index names, with their own config.
        let git = git.with_inner(self.inner_programs(&git)?);
        // `--sparse`: files that are there although the sparse checkout leaves them out count too.
        let args = ["add", "--all", "--sparse", "--ignore-errors"];
        let output = git.run(&args, b"", LINE_MAX)?;
        // 1: all but some files; anything else: nothing was added.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(failed(&args, output.stderr));
        }
        let complaints = output.stderr.lines().filter_map(|line| line.strip_prefix("error: "));
        notes.extend(
            complaints.take(NOTES_MAX).map(|complaint| format!("not all could be read: {complaint}")),
        );
        Ok(())
    }

    /// Overrides for the programs of all repositories that an index names, and of those that they name.
    fn inner_programs(&self, git: &Git) -> Result<Vec<Disarmed>, SnapshotError> {
        let mut found = Vec::new();
        let mut waiting = VecDeque::from([(self.top.clone(), git.clone())]);
        while let Some((folder, git)) = waiting.pop_front() {
            let list = git.read(&["ls-files", "--stage", "-z"], b"")?;
            let links = records(&list).filter(|entry| entry.starts_with(GITLINK.as_bytes()));
            let paths = links.filter_map(|entry| entry.split(|byte| *byte == b'\t').nth(1));
            for inner in paths.map(|path| on_disk(&folder, path)) {
                if fs::symlink_metadata(inner.join(".git")).is_err() {
                    continue;
                }
                if found.len() >= INNER_MAX {
                    return Err(SnapshotError::TooLarge { what: "git ls-files".to_owned() });
                }
                check_special(&inner)?;
                let git = Git::new(&inner);
                found.push(git.disarmed()?.clone());
                waiting.push_back((inner, git));
            }
        }
        Ok(found)
    }

    pub(crate) fn write_tree(&self, index: &Temp) -> Result<String, SnapshotError> {
        self.git.with_index(&index.path).with_time(WORK_MAX).read_line(&["write-tree"], b"")
    }

    /// An index with nothing but a tree in it, for look-ups and edits.
    pub(crate) fn index_tree(&self, tree: &str) -> Result<Temp, SnapshotError> {
        let temp = self.temp();
        self.git.with_index(&temp.path).with_time(QUICK_MAX).read(&["read-tree", tree], b"")?;
        Ok(temp)
    }

    /// Removes what a daemon that was killed left behind. Told by the inode's time: a copied index has an old one.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.git_dir) else { return };
        for entry in entries.flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX);
            let age = || {
                let seconds = u64::try_from(entry.metadata().ok()?.ctime()).ok()?;
                (UNIX_EPOCH + Duration::from_secs(seconds)).elapsed().ok()
            };
            if ours && age().is_some_and(|age| age > TEMP_AGE_MAX) {
                Temp { path: entry.path() };
            }
        }
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        // Most of these do not exist; nothing can be done about those that stay.
        if fs::remove_file(&self.path).is_err() {
            fs::remove_dir_all(&self.path).ok();
        }
        let mut lock = self.path.clone().into_os_string();
        lock.push(".lock");
        fs::remove_file(lock).ok();
    }
}

/// Refuses a worktree whose files git would wait for. Those of folders further down are met by the deadline.
fn check_special(workspace: &Path) -> Result<(), SnapshotError> {
    let check = |path: PathBuf| match fs::metadata(&path) {
        Ok(data) if !data.is_file() && !data.is_dir() => Err(SnapshotError::Special { path }),
        Ok(_) | Err(_) => Ok(()),
    };
    let is_top = |folder: &&Path| fs::symlink_metadata(folder.join(".git")).is_ok();
    let Some(top) = workspace.ancestors().find(is_top) else { return Ok(()) };
    for folder in workspace.ancestors().take_while(|folder| folder.starts_with(top)) {
        OF_WORKTREE.iter().try_for_each(|name| check(folder.join(name)))?;
    }
    let git = top.join(".git");
    check(git.clone())?;
    OF_GIT.iter().try_for_each(|name| check(git.join(name)))
}

pub(crate) fn file_error(what: &str, error: FileError) -> SnapshotError {
    io_error(what, io::Error::other(error))
}

pub(crate) fn io_error(what: &str, source: io::Error) -> SnapshotError {
    SnapshotError::Io { what: what.to_owned(), source }
}
