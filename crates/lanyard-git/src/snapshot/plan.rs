//! What a restore may write and remove, decided before anything is written.
//!
//! The target is the snapshot's tree, except for what git could not bring back if it were overwritten: files ignored
//! then or now, and repositories inside the worktree. Those stay, and the notes say so.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::SnapshotError;
use super::changes::{Change, GITLINK, Look, against_tree, on_disk, remove_entry, set_entry};
use super::git::{Git, failed, records};
use super::repo::Repo;
use super::verbatim;

/// Notes of one kind; the rest is counted.
const NOTES_MAX: usize = 10;
const LIST_MAX: usize = 64 * 1024 * 1024;

/// The tree to check out, and what that does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tree: String,
    pub(super) changed: u32,
    pub(super) added: u32,
    pub(super) removed: u32,
    /// Paths git sees a difference in.
    pub(super) differing: BTreeSet<Vec<u8>>,
}

/// Sets what differs apart; the snapshot is the old side of a change, the worktree the new one.
#[derive(Debug, Default)]
struct Sorted<'a> {
    kept: Vec<&'a Change>,
    dropped: Vec<&'a Change>,
    changed: u32,
    added: u32,
    removed: u32,
}

pub(super) fn make(
    repo: &Repo,
    look: &Look,
    tree: &str,
    index_tree: &str,
    notes: &mut Vec<String>,
) -> Result<Plan, SnapshotError> {
    let changes = against_tree(repo, tree, &look.worktree)?;
    let spared = spared(repo, look, tree, index_tree, &changes, notes)?;
    let removed: BTreeSet<&[u8]> = changes
        .iter()
        .filter(|change| change.letter == b'A' && !spared.contains(&change.path))
        .map(|change| change.path.as_slice())
        .collect();
    let mut sorted = Sorted::default();
    for change in &changes {
        sort(repo, change, &spared, &removed, &mut sorted, notes)?;
    }
    let differing = changes.iter().map(|change| change.path.clone()).collect();
    let tree = target(repo, tree, &sorted)?;
    Ok(Plan { tree, changed: sorted.changed, added: sorted.added, removed: sorted.removed, differing })
}

fn sort<'a>(
    repo: &Repo,
    change: &'a Change,
    spared: &BTreeSet<Vec<u8>>,
    removed: &BTreeSet<&[u8]>,
    sorted: &mut Sorted<'a>,
    notes: &mut Vec<String>,
) -> Result<(), SnapshotError> {
    match change.letter {
        b'A' if spared.contains(&change.path) => sorted.kept.push(change),
        b'A' => sorted.removed += 1,
        b'D' => {
            if let Some(why) = obstacle(repo, change, spared, removed) {
                notes.push(format!("{} was not put back: {why}", change.display()));
                sorted.dropped.push(change);
            } else {
                save_ignored(repo, change, notes)?;
                sorted.added += 1;
            }
        }
        _ if change.new_mode == GITLINK => {
            notes.push(format!("{} is a repository of its own and was left as it is", change.display()));
            sorted.kept.push(change);
        }
        _ => sorted.changed += 1,
    }
    Ok(())
}

/// New paths that are not removed: inner repositories, and what was ignored when the snapshot was taken or is now.
fn spared(
    repo: &Repo,
    look: &Look,
    tree: &str,
    index_tree: &str,
    changes: &[Change],
    notes: &mut Vec<String>,
) -> Result<BTreeSet<Vec<u8>>, SnapshotError> {
    let new: Vec<&Change> = changes.iter().filter(|change| change.letter == b'A').collect();
    if new.is_empty() {
        return Ok(BTreeSet::new());
    }
    let links: Vec<&Change> =
        changes.iter().filter(|change| change.letter == b'D' && change.old_mode == GITLINK).collect();
    let inside = |path: &[u8]| links.iter().any(|link| is_under(path, &link.path));
    let mut spared: BTreeSet<Vec<u8>> = new
        .iter()
        .filter(|change| change.new_mode == GITLINK || inside(&change.path))
        .map(|change| change.path.clone())
        .collect();
    for path in spared.iter().take(NOTES_MAX) {
        notes.push(format!("{} belongs to an inner repository and was left", String::from_utf8_lossy(path)));
    }
    // What the index knew then was not ignored, whatever the rules say.
    let unknown: BTreeSet<Vec<u8>> = against_tree(repo, index_tree, &look.worktree)?
        .into_iter()
        .filter(|change| change.letter == b'A')
        .map(|change| change.path)
        .collect();
    let asked: Vec<Vec<u8>> =
        new.iter().map(|change| change.path.clone()).filter(|path| unknown.contains(path)).collect();
    let mut ignored = check_ignore(&repo.git, &asked)?;
    if changes.iter().any(|change| Path::new(&change.display()).file_name() == Some(".gitignore".as_ref())) {
        ignored.extend(ignored_by(repo, tree, &asked)?);
    }
    if !ignored.is_empty() {
        let first = ignored.iter().next().map(|path| String::from_utf8_lossy(path).into_owned());
        let count = ignored.len();
        let first = first.unwrap_or_default();
        notes.push(format!("{count} ignored files were left as they are, {first} among them"));
    }
    spared.extend(ignored);
    Ok(spared)
}

/// Asks the ignore files of a tree instead of those in the worktree.
fn ignored_by(repo: &Repo, tree: &str, paths: &[Vec<u8>]) -> Result<BTreeSet<Vec<u8>>, SnapshotError> {
    let index = repo.index_tree(tree)?;
    let list = repo.git.with_index(&index.path).read(&["ls-files", "-z", "--cached"], b"")?;
    let rules: Vec<Vec<u8>> = records(&list)
        .filter(|path| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore"))
        .map(<[u8]>::to_owned)
        .collect();
    let folder = repo.temp_folder()?;
    verbatim::write_out(repo, &index, &rules, &folder)?;
    check_ignore(&repo.git.with_worktree(&repo.git_dir, &folder.path), paths)
}

fn check_ignore(git: &Git, paths: &[Vec<u8>]) -> Result<BTreeSet<Vec<u8>>, SnapshotError> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let args = ["check-ignore", "-z", "--stdin", "--no-index"];
    // A file may be called `:(top)*`, which alone would be more than a name.
    let dotted: Vec<Vec<u8>> = paths.iter().map(|path| [b"./", path.as_slice()].concat()).collect();
    let output = git.run(&args, &verbatim::joined(&dotted), LIST_MAX)?;
    match output.status.code() {
        // 1: none of them.
        Some(0 | 1) if !output.cut => {
            let name = |path: &[u8]| path.strip_prefix(b"./").unwrap_or(path).to_owned();
            Ok(records(&output.stdout).map(name).collect())
        }
        _ => Err(failed(&args, output.stderr)),
    }
}

/// What stands where a missing file belongs, unless the restore itself takes it away.
fn obstacle(
    repo: &Repo,
    change: &Change,
    spared: &BTreeSet<Vec<u8>>,
    removed: &BTreeSet<&[u8]>,
) -> Option<String> {
    let path = change.path.as_slice();
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for parent in slashes.filter_map(|at| path.get(..at)) {
        let name = || String::from_utf8_lossy(parent).into_owned();
        if spared.contains(parent) {
            return Some(format!("{} is in its place and stays", name()));
        }
        match fs::symlink_metadata(on_disk(&repo.top, parent)) {
            Err(_) => return None,
            Ok(data) if data.is_dir() => {}
            Ok(_) if removed.contains(parent) => return None,
            Ok(_) => return Some(format!("the ignored file {} is in its place", name())),
        }
    }
    let data = fs::symlink_metadata(on_disk(&repo.top, path)).ok()?;
    if !data.is_dir() {
        return None;
    }
    if change.old_mode == GITLINK {
        return Some("it was an inner repository, and its folder is still there".to_owned());
    }
    let stays = first_staying(&repo.top, path, removed)?;
    Some(format!("the folder in its place holds {}, which stays", String::from_utf8_lossy(&stays)))
}

/// The first file below a folder that the restore does not remove.
fn first_staying(top: &Path, folder: &[u8], removed: &BTreeSet<&[u8]>) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        // A folder that cannot be read may hold anything.
        let Ok(entries) = fs::read_dir(on_disk(top, &folder)) else { return Some(folder) };
        for entry in entries.flatten() {
            let path = [folder.as_slice(), b"/", entry.file_name().as_bytes()].concat();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if !removed.contains(path.as_slice()) {
                return Some(path);
            }
        }
    }
    None
}

/// A file that was part of the snapshot and is ignored by now is overwritten; its bytes are kept as a loose object.
fn save_ignored(repo: &Repo, change: &Change, notes: &mut Vec<String>) -> Result<(), SnapshotError> {
    let path = on_disk(&repo.top, &change.path);
    if !fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
        return Ok(());
    }
    let args =
        ["hash-object".as_ref(), "-w".as_ref(), "--no-filters".as_ref(), "--".as_ref(), path.as_os_str()];
    // Into the repository itself, where the user finds it.
    let blob = repo.git.own_objects().read_line(&args, b"")?;
    if blob != change.old {
        let path = change.display();
        notes.push(format!(
            "{path} is ignored by now and was put back; `git cat-file blob {blob}` has what it held"
        ));
    }
    Ok(())
}

/// The snapshot's tree with the exceptions worked in.
fn target(repo: &Repo, tree: &str, sorted: &Sorted<'_>) -> Result<String, SnapshotError> {
    if sorted.kept.is_empty() && sorted.dropped.is_empty() {
        return Ok(tree.to_owned());
    }
    let mut info = Vec::new();
    for change in &sorted.dropped {
        remove_entry(&mut info, &change.old, &change.path);
    }
    for change in &sorted.kept {
        set_entry(&mut info, &change.new_mode, &change.new, &change.path);
    }
    let index = repo.index_tree(tree)?;
    repo.git.with_index(&index.path).read(&["update-index", "-z", "--index-info"], &info)?;
    repo.write_tree(&index)
}

fn is_under(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}
