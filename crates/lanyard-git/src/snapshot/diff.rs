//! What differs between a snapshot and another, or the worktree as it is.

use std::collections::HashMap;
use std::path::Path;

use super::SnapshotError;
use super::changes::Look;
use super::git::{Git, Output, WORK_MAX, failed, records};
use super::message::check_commit;
use super::own_store::{CheckpointStore, Hold};
use super::repo::Repo;

/// The text is cut after this many bytes, at a line's end.
const TEXT_MAX: usize = 1024 * 1024;
/// The list of files is cut after this many.
const FILES_MAX: usize = 2_000;
const LIST_MAX: usize = 8 * 1024 * 1024;
const LINE_MAX: usize = 4 * 1024;
/// Renames are looked for among this many files; comparing all with all grows with the square.
const RENAMES: &str = "-l400";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffTo<'a> {
    Commit(&'a str),
    /// As it is now, untracked files included.
    Worktree,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// A unified diff. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The text or the list ends early.
    pub truncated: bool,
    pub files: Vec<FileDiff>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The name before, of a renamed file.
    pub old_path: Option<String>,
    pub status: DiffStatus,
    /// Lines; nothing in binary files.
    pub added: u32,
    pub removed: u32,
    pub binary: bool,
    /// Name of the content after the change; only zeros for a deleted file.
    pub hash: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffStatus {
    Added,
    /// Content or mode.
    Modified,
    Deleted,
    Renamed,
    /// A file became a link or a repository, or the other way.
    TypeChanged,
}

impl CheckpointStore {
    /// How `to` differs from the commit `from`.
    pub fn diff(&self, workspace: &Path, from: &str, to: DiffTo<'_>) -> Result<Diff, SnapshotError> {
        let place = self.place(workspace, None, Hold::Shared)?;
        let repo = &place.repo;
        check_exists(repo, from)?;
        match to {
            DiffTo::Commit(to) => {
                check_exists(repo, to)?;
                ask(&repo.git, &["diff-tree", "-r"], &[from, to])
            }
            DiffTo::Worktree => {
                let look = Look::at(repo)?;
                ask(&repo.git.with_index(&look.worktree.path), &["diff-index", "--cached"], &[from])
            }
        }
    }
}

/// A commit of this repository, named by its hash.
pub(super) fn check_exists(repo: &Repo, commit: &str) -> Result<(), SnapshotError> {
    check_commit(commit)?;
    let named = format!("{commit}^{{commit}}");
    let output = repo.git.run(&["rev-parse", "--verify", "--quiet", &named], b"", LINE_MAX)?;
    if output.status.success() {
        return Ok(());
    }
    Err(SnapshotError::NoCommit { commit: commit.to_owned() })
}

fn ask(git: &Git, command: &[&str], commits: &[&str]) -> Result<Diff, SnapshotError> {
    let (files, more) = files(git, command, commits)?;
    let (text, cut) = patch(git, command, commits)?;
    Ok(Diff { text, truncated: more || cut, files })
}

/// The files that differ, and whether the list ends early.
pub(crate) fn files(
    git: &Git,
    command: &[&str],
    commits: &[&str],
) -> Result<(Vec<FileDiff>, bool), SnapshotError> {
    let list = call(git, command, &["--raw", "--no-abbrev", "--numstat", "-z"], commits, LIST_MAX)?;
    let mut files = parse(&list.stdout);
    let more = list.cut || files.len() > FILES_MAX;
    files.truncate(FILES_MAX);
    Ok((files, more))
}

/// The differences as a unified diff, and whether it ends early.
pub(crate) fn patch(git: &Git, command: &[&str], commits: &[&str]) -> Result<(String, bool), SnapshotError> {
    let format = ["--patch", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];
    let patch = call(git, command, &format, commits, TEXT_MAX)?;
    let mut bytes = patch.stdout;
    if patch.cut {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), patch.cut))
}

fn call(
    git: &Git,
    command: &[&str],
    format: &[&str],
    commits: &[&str],
    max: usize,
) -> Result<Output, SnapshotError> {
    let args = [command, &["-M", RENAMES, "--no-ext-diff", "--no-textconv"], format, commits].concat();
    let output = git.with_time(WORK_MAX).run(&args, b"", max)?;
    if output.status.success() || output.cut { Ok(output) } else { Err(failed(&args, output.stderr)) }
}

/// Reads the raw list, then the list of line counts, as `--raw --numstat -z` prints them one after the other.
fn parse(list: &[u8]) -> Vec<FileDiff> {
    let mut files = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    let mut rest = records(list);
    while let Some(head) = rest.next() {
        if head.first() == Some(&b':') {
            let letter = head.iter().rposition(|byte| *byte == b' ').and_then(|at| head.get(at + 1));
            let Some(status) = letter.and_then(|letter| status(*letter)) else { continue };
            let Some(first) = rest.next() else { break };
            let second = if status == DiffStatus::Renamed { rest.next() } else { None };
            let path = second.unwrap_or(first);
            let old_path = second.map(|_| text(first));
            places.insert(path, files.len());
            // `:oldmode newmode old new letter`.
            let hash = head.split(|byte| *byte == b' ').nth(3).map(text).unwrap_or_default();
            let path = text(path);
            files.push(FileDiff { path, old_path, status, added: 0, removed: 0, binary: false, hash });
            continue;
        }
        // `added<tab>removed<tab>path`; of a renamed file the path is empty, and old and new name follow.
        let mut fields = head.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            break;
        };
        let path = if path.is_empty() { rest.next().and_then(|_| rest.next()).unwrap_or(b"") } else { path };
        if let Some(file) = places.get(path).and_then(|place| files.get_mut(*place)) {
            file.binary = added == b"-";
            file.added = number(added);
            file.removed = number(removed);
        }
    }
    files
}

fn status(letter: u8) -> Option<DiffStatus> {
    match letter {
        b'A' => Some(DiffStatus::Added),
        b'M' => Some(DiffStatus::Modified),
        b'D' => Some(DiffStatus::Deleted),
        b'R' => Some(DiffStatus::Renamed),
        b'T' => Some(DiffStatus::TypeChanged),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(bytes: &[u8]) -> u32 {
    std::str::from_utf8(bytes).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
