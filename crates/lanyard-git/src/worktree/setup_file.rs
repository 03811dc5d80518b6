//! The repository's own setup of new worktrees, `.lanyard/worktree.toml` of its main worktree: files to bring along and
//! commands to run.
//!
//! The file is content of a repository. This module reads it, names the content by a hash and copies files; whether the
//! content is allowed, and the running of its commands, is the caller's business. Blocks.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use lanyard_core::task::Tree;
use serde::Deserialize;

use super::WorktreeError;
use super::call::maybe;
use super::shared::Shared;
use crate::snapshot::repo::{Repo, io_error};
use crate::workspace_files::{FileError, beneath};

/// The file, below the top of the repository.
pub const SETUP_FILE: &str = ".lanyard/worktree.toml";
const FILE_BYTES_MAX: u64 = 64 * 1024;
const COMMANDS_MAX: usize = 16;
const COMMAND_BYTES_MAX: usize = 4 * 1024;
/// Entries of `copy` and `link` together.
const PATHS_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 1_024;
/// All files of `copy` together. What is larger is linked.
const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Written to git's folder of a worktree once it is set up.
const READY: &str = "lanyard-ready";
/// Git's list of ignored files that is in no commit.
const EXCLUDE: &str = "info/exclude";
const EXCLUDE_BYTES_MAX: u64 = 1024 * 1024;
/// Tries to have a link ignored while others write the same list.
const EXCLUDE_TRIES_MAX: usize = 5;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SetupContent {
    /// Shell commands, run in the new worktree one after another.
    pub setup: Vec<String>,
    /// Ignored files that are copied.
    pub copy: Vec<String>,
    /// Ignored files and folders that the worktree shares with the repository.
    pub link: Vec<String>,
}

/// The file as it was read, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFile {
    /// The top of the repository.
    pub repository: PathBuf,
    /// The hash of the file's bytes.
    pub hash: String,
    pub content: SetupContent,
}

/// The setup file of the repository around a folder. Nothing when there is none, or when it asks for nothing.
pub fn setup_file(folder: &Path) -> Result<Option<SetupFile>, WorktreeError> {
    let top = Shared::around(&Repo::find(folder)?)?.top;
    let bad = |why: String| WorktreeError::SetupBad { file: top.join(SETUP_FILE), why };
    let bytes = match beneath::read(&top, Path::new(SETUP_FILE), FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(FileError::Missing) => return Ok(None),
        Err(error) => return Err(bad(error.to_string())),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
    let content: SetupContent = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
    check(&content).map_err(bad)?;
    if content == SetupContent::default() {
        return Ok(None);
    }
    let hash = blake3::hash(&bytes).to_hex().to_string();
    Ok(Some(SetupFile { repository: top, hash, content }))
}

fn check(content: &SetupContent) -> Result<(), String> {
    if content.setup.len() > COMMANDS_MAX {
        return Err(format!("`setup` has more than {COMMANDS_MAX} commands"));
    }
    for command in &content.setup {
        if command.trim().is_empty() || command.len() > COMMAND_BYTES_MAX || command.contains('\0') {
            return Err(format!("a command of `setup` is empty or longer than {COMMAND_BYTES_MAX} bytes"));
        }
    }
    if content.copy.len() + content.link.len() > PATHS_MAX {
        return Err(format!("`copy` and `link` name more than {PATHS_MAX} paths"));
    }
    content.copy.iter().chain(&content.link).try_for_each(|path| check_path(path))
}

/// A path below the repository, in letters that mean the same to git's list of ignored files.
fn check_path(path: &str) -> Result<(), String> {
    let plain = !path.chars().any(|letter| letter.is_control() || "*?[]\\!#".contains(letter));
    let inside = Path::new(path).components().all(|part| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    });
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.trim() != path || !plain || !inside {
        return Err(format!("`{path}` is not a plain path inside the repository"));
    }
    Ok(())
}

/// Brings the ignored files of the setup file into a new worktree. Paths that the repository does not have, and places
/// that are taken, are left out; a repeat does what is missing.
pub fn bring_files(file: &SetupFile, tree: &Tree) -> Result<(), WorktreeError> {
    let (top, here) = (file.repository.as_path(), Path::new(&tree.path));
    let shared = Shared::of(tree)?;
    let repo = Repo::find(here)?;
    let mut room = COPY_BYTES_MAX;
    for path in &file.content.copy {
        if let Some(mode) = wanted(&shared, top, here, path)? {
            let cannot = |error: FileError| cannot(top, format!("`{path}` cannot be copied: {error}"));
            let bytes = beneath::read(top, Path::new(path), room).map_err(cannot)?;
            room = room.saturating_sub(bytes.len() as u64);
            beneath::write(here, Path::new(path), &bytes).map_err(cannot)?;
            fs::set_permissions(here.join(path), fs::Permissions::from_mode(mode & 0o777))
                .map_err(|source| io_error("set the mode of a copied file", source))?;
        }
    }
    for path in &file.content.link {
        if wanted(&shared, top, here, path)?.is_some() {
            link(top, here, path)?;
            have_ignored(&shared, &repo, path)?;
        }
    }
    Ok(())
}

/// The mode of a file to be brought along, if there is one and its place is free.
fn wanted(shared: &Shared, top: &Path, here: &Path, path: &str) -> Result<Option<u32>, WorktreeError> {
    let Ok(about) = fs::metadata(top.join(path)) else { return Ok(None) };
    if fs::symlink_metadata(here.join(path)).is_ok() {
        return Ok(None);
    }
    // Otherwise the next commit of all that is in the worktree would have it.
    match maybe(&shared.git, &["check-ignore", "--quiet", "--", path]) {
        Ok(Some(_)) => Ok(Some(about.permissions().mode())),
        Ok(None) => Err(cannot(top, format!("`{path}` is not ignored by git"))),
        // Behind a link.
        Err(WorktreeError::Git { stderr, .. }) => Err(cannot(top, stderr)),
        Err(error) => Err(error),
    }
}

fn link(top: &Path, here: &Path, path: &str) -> Result<(), WorktreeError> {
    let io = |source| io_error("link a file into the worktree", source);
    let real = fs::canonicalize(top.join(path)).map_err(io)?;
    let inside = fs::canonicalize(top).map_err(io)?;
    let of_git = |rest: &Path| rest.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    if real.strip_prefix(&inside).map_or(true, of_git) {
        return Err(cannot(top, format!("`{path}` leads out of the repository")));
    }
    let place = here.join(path);
    if let Some(folder) = place.parent() {
        let rest = folder.strip_prefix(here).unwrap_or(folder);
        let mut at = here.to_owned();
        for name in rest.components() {
            at.push(name);
            if at.is_symlink() {
                return Err(cannot(top, format!("`{path}` leads out of the worktree")));
            }
        }
        fs::create_dir_all(folder).map_err(io)?;
    }
    Ok(symlink(real, place).map_err(io)?)
}

/// `folder/` in a list of ignored files means folders alone, so the link needs a line of its own. It goes to the list
/// that is in no commit.
fn have_ignored(shared: &Shared, repo: &Repo, path: &str) -> Result<(), WorktreeError> {
    for _ in 0..EXCLUDE_TRIES_MAX {
        if maybe(&repo.git, &["check-ignore", "--quiet", "--", path])?.is_some() {
            return Ok(());
        }
        let cannot = |error: FileError| cannot(&shared.top, format!("{EXCLUDE} cannot be changed: {error}"));
        let mut list = match beneath::read_regular(&shared.common.join(EXCLUDE), EXCLUDE_BYTES_MAX) {
            Err(FileError::Missing) => Vec::new(),
            read => read.map_err(cannot)?,
        };
        if list.last().is_some_and(|last| *last != b'\n') {
            list.push(b'\n');
        }
        list.extend(format!("/{path}\n").bytes());
        beneath::write(&shared.common, Path::new(EXCLUDE), &list).map_err(cannot)?;
    }
    Err(cannot(&shared.top, format!("the link `{path}` is not ignored by git")))
}

fn cannot(top: &Path, why: String) -> WorktreeError {
    WorktreeError::SetupBad { file: top.join(SETUP_FILE), why }
}

/// Whether a worktree was set up to the end.
pub fn is_set_up(tree: &Tree) -> Result<bool, WorktreeError> {
    let repo = Repo::find(Path::new(&tree.path))?;
    Ok(repo.git_dir.join(READY).exists())
}

/// Writes down that a worktree is set up. The note goes with the worktree.
pub fn set_up(tree: &Tree) -> Result<(), WorktreeError> {
    let repo = Repo::find(Path::new(&tree.path))?;
    let written = beneath::write(&repo.git_dir, Path::new(READY), b"");
    written.map_err(|error| io_error("note that the worktree is set up", std::io::Error::other(error)).into())
}
