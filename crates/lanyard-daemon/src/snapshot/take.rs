//! Taking, listing and removing snapshots.

use std::path::Path;

use super::changes::Look;
use super::extras::{self, Extras};
use super::git::failed;
use super::message::{self, Facts, check_name};
use super::repo::Repo;
use super::{Snapshot, SnapshotError};

const ROOT: &str = "refs/lanyard";
const LINE_MAX: usize = 4 * 1024;

/// Keeps the workspace's repository as it is under `refs/lanyard/<session>/<name>`.
pub fn take(workspace: &Path, session: &str, name: &str, words: &str) -> Result<Snapshot, SnapshotError> {
    check_name(session)?;
    check_name(name)?;
    take_in(&Repo::find(workspace)?, session, name, words)
}

fn take_in(repo: &Repo, session: &str, name: &str, words: &str) -> Result<Snapshot, SnapshotError> {
    let look = Look::at(repo)?;
    let tree = repo.write_tree(&look.worktree)?;
    let (index_tree, kept) = Extras::gather(repo, &look)?;
    let mut notes = look.notes.clone();
    notes.extend(extras::inner_repositories(repo, &look));

    let head = look.head.as_deref();
    let about_index = format!("Index of checkpoint {name}\n");
    let index = commit(repo, &index_tree, &Vec::from_iter(head), &about_index)?;
    let extras = match kept.write(repo)? {
        Some(tree) => Some(commit(repo, &tree, &[], &format!("Extras of checkpoint {name}\n"))?),
        None => None,
    };
    let mut parents = Vec::from_iter(head);
    parents.push(&index);
    parents.extend(extras.as_deref());
    let facts = Facts {
        name: name.to_owned(),
        head: look.head.clone(),
        index: index.clone(),
        extras: extras.clone(),
        files_changed: u32::try_from(look.changes.len()).unwrap_or(u32::MAX),
        notes,
    };
    let text = message::write(words, &facts);
    let commit = commit(repo, &tree, &parents, &text)?;
    let reference = format!("{ROOT}/{session}/{name}");
    create(repo, &reference, &commit)?;
    let (words, facts) = message::read(&text).unwrap_or_else(|| (words.to_owned(), facts));
    Ok(Snapshot::new(commit, reference, tree, words, facts))
}

fn commit(repo: &Repo, tree: &str, parents: &[&str], text: &str) -> Result<String, SnapshotError> {
    let mut args = vec!["commit-tree", "--no-gpg-sign", tree];
    for parent in parents {
        args.extend(["-p", parent]);
    }
    repo.git.read_line(&args, text.as_bytes())
}

/// Git makes the ref or finds it there in one step, whoever else tries.
fn create(repo: &Repo, reference: &str, commit: &str) -> Result<(), SnapshotError> {
    let args = ["update-ref", "--no-deref", "--stdin"];
    let output = repo.git.run(&args, format!("create {reference} {commit}\n").as_bytes(), LINE_MAX)?;
    if output.status.success() {
        return Ok(());
    }
    if output.stderr.contains("already exists") {
        return Err(SnapshotError::Exists { reference: reference.to_owned() });
    }
    Err(failed(&args, output.stderr))
}

/// A session's snapshots, oldest first; those of the same second by name.
pub fn list(workspace: &Path, session: &str) -> Result<Vec<Snapshot>, SnapshotError> {
    check_name(session)?;
    list_in(&Repo::find(workspace)?, session)
}

fn list_in(repo: &Repo, session: &str) -> Result<Vec<Snapshot>, SnapshotError> {
    let under = format!("{ROOT}/{session}/");
    let args = [
        "for-each-ref",
        "--sort=refname",
        "--sort=creatordate",
        "--format=%(refname)%00%(objectname)%00%(tree)%00%(contents)%00",
        &under,
    ];
    let text = repo.git.read(&args, b"")?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.split('\0');
    let mut snapshots = Vec::new();
    while let (Some(reference), Some(commit), Some(tree), Some(text)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    {
        // Somebody may put other things under the session's refs; they are not ours to show.
        let Some((words, facts)) = message::read(text) else { continue };
        let reference = reference.trim_start().to_owned();
        snapshots.push(Snapshot::new(commit.to_owned(), reference, tree.to_owned(), words, facts));
    }
    Ok(snapshots)
}

/// The names under which the repository holds snapshots of sessions.
pub fn sessions(workspace: &Path) -> Result<Vec<String>, SnapshotError> {
    let repo = Repo::find(workspace)?;
    let text = repo.git.read(&["for-each-ref", "--format=%(refname)", &format!("{ROOT}/")], b"")?;
    let text = String::from_utf8_lossy(&text);
    let under = text.lines().filter_map(|line| line.strip_prefix(ROOT)?.strip_prefix('/')?.split_once('/'));
    let mut names: Vec<String> = under.map(|(session, _)| session.to_owned()).collect();
    names.dedup();
    Ok(names)
}

/// Forgets a session's snapshots; git drops their objects in its own time. Says how many there were.
pub fn remove_all(workspace: &Path, session: &str) -> Result<u32, SnapshotError> {
    check_name(session)?;
    let repo = Repo::find(workspace)?;
    let snapshots = list_in(&repo, session)?;
    // Named with what they hold, so that one made meanwhile is not lost by its name.
    let lines: Vec<String> = snapshots
        .iter()
        .map(|snapshot| format!("delete {} {}\n", snapshot.reference, snapshot.commit))
        .collect();
    if !lines.is_empty() {
        repo.git.read(&["update-ref", "--no-deref", "--stdin"], lines.concat().as_bytes())?;
    }
    Ok(u32::try_from(lines.len()).unwrap_or(u32::MAX))
}
