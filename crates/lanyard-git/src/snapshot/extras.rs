//! What trees cannot say: conflicts in the index, files that are only intended to be added, verbatim bytes.
//!
//! Kept as a tree of its own, so that git keeps its blobs and people can look: `unmerged` and `intent-to-add` are
//! lists in git's own formats, `stage-1/…` to `stage-3/…` hold a conflict's sides, `verbatim/…` files as they were.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use super::SnapshotError;
use super::changes::{self, Look, on_disk, remove_entry, set_entry};
use super::git::records;
use super::repo::{Repo, Temp, file_error, io_error};
use super::verbatim;

const UNMERGED: &str = "unmerged";
const INTENT: &str = "intent-to-add";
const VERBATIM: &str = "verbatim/";

/// What a snapshot keeps of the index and of bytes.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// As `ls-files --unmerged -z` prints them and `update-index --index-info` takes them.
    pub(super) unmerged: Vec<u8>,
    /// In the same form; the object says nothing.
    pub(super) intent: Vec<u8>,
    /// Path, mode and blob.
    pub(super) verbatim: Vec<(Vec<u8>, String, String)>,
}

/// One line of a list of index entries.
#[derive(Debug)]
pub(super) struct IndexEntry<'a> {
    pub(super) mode: &'a str,
    pub(super) object: &'a str,
    pub(super) stage: &'a str,
    pub(super) path: &'a [u8],
}

impl Extras {
    /// Looks at the index; gives its tree too. A conflict's path holds "ours" there, or else "theirs".
    pub(super) fn gather(repo: &Repo, look: &Look) -> Result<(String, Self), SnapshotError> {
        let git = repo.git.with_index(&look.index.path);
        let unmerged = git.read(&["ls-files", "--unmerged", "-z", "--full-name"], b"")?;
        if !unmerged.is_empty() {
            git.read(&["update-index", "-z", "--index-info"], &settled(&unmerged))?;
        }
        let tree = repo.write_tree(&look.index)?;
        // Its own tree leaves out just these, so they are all that differs.
        let args = ["diff-index", "--cached", "--ita-visible-in-index", "--raw", "-z", "--no-renames", &tree];
        let mut intent = Vec::new();
        for change in changes::parse(&git.read(&args, b"")?) {
            set_entry(&mut intent, &change.new_mode, &change.new, &change.path);
        }
        let mut extras = Self { unmerged, intent, verbatim: Vec::new() };
        extras.keep_bytes(repo, look)?;
        Ok((tree, extras))
    }

    fn keep_bytes(&mut self, repo: &Repo, look: &Look) -> Result<(), SnapshotError> {
        for path in verbatim::find(repo, &look.worktree, &look.touched)? {
            let bytes = verbatim::read(&repo.top, &path);
            let bytes = bytes.map_err(|error| file_error("read a file of the worktree", error))?;
            let blob = repo.git.read_line(&["hash-object", "-w", "--stdin"], &bytes)?;
            self.verbatim.push((path, "100644".to_owned(), blob));
        }
        Ok(())
    }

    /// The tree that holds all of it; nothing when there is nothing.
    pub(super) fn write(&self, repo: &Repo) -> Result<Option<String>, SnapshotError> {
        if self.unmerged.is_empty() && self.intent.is_empty() && self.verbatim.is_empty() {
            return Ok(None);
        }
        let mut info = Vec::new();
        for (name, list) in [(UNMERGED, &self.unmerged), (INTENT, &self.intent)] {
            if !list.is_empty() {
                let blob = repo.git.read_line(&["hash-object", "-w", "--stdin"], list)?;
                set_entry(&mut info, "100644", &blob, name.as_bytes());
            }
        }
        for entry in entries(&self.unmerged) {
            let path = [b"stage-", entry.stage.as_bytes(), b"/", entry.path].concat();
            set_entry(&mut info, entry.mode, entry.object, &path);
        }
        for (path, mode, blob) in &self.verbatim {
            set_entry(&mut info, mode, blob, &[VERBATIM.as_bytes(), path].concat());
        }
        let index = repo.temp();
        repo.git.with_index(&index.path).read(&["update-index", "-z", "--index-info"], &info)?;
        repo.write_tree(&index).map(Some)
    }

    pub(super) fn read(repo: &Repo, commit: &str) -> Result<Self, SnapshotError> {
        let mut extras = Self::default();
        let list = repo.git.read(&["ls-tree", "-r", "-z", commit], b"")?;
        // `mode type object<tab>path`
        for record in records(&list) {
            let Some(entry) = entry(record) else { continue };
            let (mode, blob) = (entry.mode, entry.stage);
            if entry.path == UNMERGED.as_bytes() {
                extras.unmerged = repo.git.read(&["cat-file", "blob", blob], b"")?;
            } else if entry.path == INTENT.as_bytes() {
                extras.intent = repo.git.read(&["cat-file", "blob", blob], b"")?;
            } else if let Some(path) = entry.path.strip_prefix(VERBATIM.as_bytes()) {
                extras.verbatim.push((path.to_owned(), mode.to_owned(), blob.to_owned()));
            }
        }
        Ok(extras)
    }

    /// Puts conflicts and intentions back into an index that holds the snapshot's index tree.
    pub(super) fn apply(
        &self,
        repo: &Repo,
        index: &Temp,
        notes: &mut Vec<String>,
    ) -> Result<(), SnapshotError> {
        let git = repo.git.with_index(&index.path);
        if !self.unmerged.is_empty() {
            let mut info = Vec::new();
            for entry in entries(&self.unmerged) {
                remove_entry(&mut info, entry.object, entry.path);
            }
            info.extend_from_slice(&self.unmerged);
            git.read(&["update-index", "-z", "--index-info"], &info)?;
            notes.push(
                "the conflicts are back in the index; a merge, rebase or cherry-pick under way then is not part \
                 of a checkpoint"
                    .to_owned(),
            );
        }
        self.apply_intent(repo, index)
    }

    /// Git takes these only from files, of which it looks at the mode: empty ones in another worktree do, also for
    /// those that have no file any more.
    fn apply_intent(&self, repo: &Repo, index: &Temp) -> Result<(), SnapshotError> {
        if self.intent.is_empty() {
            return Ok(());
        }
        let folder = repo.temp_folder()?;
        let mut paths = Vec::new();
        for entry in entries(&self.intent) {
            stand_in(&on_disk(&folder.path, entry.path), entry.mode)
                .map_err(|source| io_error("make a temporary file", source))?;
            paths.push(entry.path.to_owned());
        }
        let args = [
            "--literal-pathspecs",
            "add",
            "--intent-to-add",
            "--force",
            "--sparse",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ];
        let git = repo.git.with_index(&index.path).with_worktree(&repo.git_dir, &folder.path);
        git.read(&args, &verbatim::joined(&paths))?;
        Ok(())
    }
}

/// An empty file, or a link, with the mode git gives it.
fn stand_in(path: &Path, mode: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match mode {
        "120000" => symlink("x", path),
        "100755" => OpenOptions::new().write(true).create_new(true).mode(0o755).open(path).map(drop),
        _ => OpenOptions::new().write(true).create_new(true).mode(0o644).open(path).map(drop),
    }
}

/// The lines that leave one side of each conflict.
fn settled(unmerged: &[u8]) -> Vec<u8> {
    let mut info = Vec::new();
    for entry in entries(unmerged) {
        remove_entry(&mut info, entry.object, entry.path);
    }
    // A path's stages come in order; of the last two the first wins, so they are set from behind.
    let mut all: Vec<IndexEntry<'_>> = entries(unmerged).collect();
    all.retain(|entry| entry.stage != "1");
    for entry in all.iter().rev() {
        set_entry(&mut info, entry.mode, entry.object, entry.path);
    }
    info
}

fn entries(list: &[u8]) -> impl Iterator<Item = IndexEntry<'_>> {
    records(list).filter_map(entry)
}

/// Three words and, after a tab, a path.
fn entry(record: &[u8]) -> Option<IndexEntry<'_>> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = (record.get(..tab)?, record.get(tab + 1..)?);
    let mut words = std::str::from_utf8(head).ok()?.split(' ');
    Some(IndexEntry { mode: words.next()?, object: words.next()?, stage: words.next()?, path })
}

/// Notes on repositories inside the worktree, of which only the commit is kept.
pub(super) fn inner_repositories(repo: &Repo, look: &Look) -> Vec<String> {
    let mut notes = Vec::new();
    if repo.top.join(".gitmodules").is_file() {
        notes.push("submodules are recorded by their commit; changes inside them are not kept".to_owned());
    }
    for change in look.changes.iter().filter(|change| change.new_mode == changes::GITLINK).take(INNER_MAX) {
        let path = change.display();
        notes.push(format!("{path} is a repository of its own: its commit is recorded, its files are not"));
    }
    notes
}

/// Inner repositories named in notes.
const INNER_MAX: usize = 10;
