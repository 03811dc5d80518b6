//! Taking and listing snapshots.

use std::path::Path;

use super::changes::Look;
use super::extras::{self, Extras};
use super::git::{Git, failed};
use super::message::{self, Facts, check_name};
use super::own_store::{CheckpointStore, Hold, OpenedStore, ROOT};
use super::repo::Repo;
use super::{Snapshot, SnapshotError, transfer};

const LINE_MAX: usize = 4 * 1024;
/// How many of a session's snapshots are compared with what is to be kept.
const RECENT: &str = "--count=8";

/// The trees of a snapshot. Two with the same trees are the same.
#[derive(Debug, PartialEq, Eq)]
struct Trees {
    worktree: String,
    index: String,
    extras: Option<String>,
}

impl CheckpointStore {
    /// Keeps the workspace's repository as it is under `refs/lanyard/<session>/<name>` of its store. A workspace that is
    /// as the session's last snapshot has it gets another ref for the same commit.
    pub fn take(
        &self,
        workspace: &Path,
        session: &str,
        name: &str,
        words: &str,
    ) -> Result<Snapshot, SnapshotError> {
        check_name(session)?;
        check_name(name)?;
        let place = self.place(workspace, Some(session), Hold::Shared)?;
        take_in(&place, session, name, words)
    }
}

fn take_in(place: &OpenedStore, session: &str, name: &str, words: &str) -> Result<Snapshot, SnapshotError> {
    let repo = &place.repo;
    let look = Look::at(repo)?;
    let worktree = repo.write_tree(&look.worktree)?;
    let (index, kept) = Extras::gather(repo, &look)?;
    let trees = Trees { worktree, index, extras: kept.write(repo)? };
    let mut notes = look.notes.clone();
    notes.extend(extras::inner_repositories(repo, &look));
    let facts = Facts {
        name: name.to_owned(),
        head: look.head.clone(),
        files_changed: u32::try_from(look.changes.len()).unwrap_or(u32::MAX),
        notes,
        ..Facts::default()
    };
    let reference = format!("{ROOT}/{session}/{name}");
    // Dates are whole seconds, so the last one is among the last few.
    let mut recent = newest(&place.own, &format!("{ROOT}/{session}/"), RECENT)?;
    for last in &recent {
        if is_same(place, last, &trees, &facts)? {
            create(&place.own, &reference, &last.commit)?;
            return Ok(Snapshot::new(
                last.commit.clone(),
                reference,
                trees.worktree,
                words.to_owned(),
                facts,
            ));
        }
    }
    if recent.is_empty() {
        recent = newest(&place.own, ROOT, "--count=1")?;
    }
    complete(place, recent.into_iter().next().map(|base| base.tree), &trees)?;
    let (commit, text) = write(repo, &trees, words, facts.clone())?;
    create(&place.own, &reference, &commit)?;
    let (words, facts) = message::read(&text).unwrap_or_else(|| (words.to_owned(), facts));
    Ok(Snapshot::new(commit, reference, trees.worktree, words, facts))
}

/// Whether a snapshot holds the same, and says the same of it.
fn is_same(
    place: &OpenedStore,
    last: &Snapshot,
    trees: &Trees,
    facts: &Facts,
) -> Result<bool, SnapshotError> {
    let same = last.tree == trees.worktree
        && last.head == facts.head
        && last.notes == facts.notes
        && last.files_changed == facts.files_changed;
    if !same {
        return Ok(false);
    }
    // The parents are the index and, if there are any, the extras.
    let tree = |parent: u8| -> Result<Option<String>, SnapshotError> {
        let named = format!("{}^{parent}^{{tree}}", last.commit);
        let output = place.own.run(&["rev-parse", "--verify", "--quiet", &named], b"", LINE_MAX)?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(output.status.success().then_some(text))
    };
    Ok(tree(1)?.as_ref() == Some(&trees.index) && tree(2)? == trees.extras)
}

/// Copies what the store lacks, so that it does not depend on the repository.
fn complete(place: &OpenedStore, base: Option<String>, trees: &Trees) -> Result<(), SnapshotError> {
    let git = &place.repo.git;
    let empty = place.repo.empty_tree()?;
    let base = base.unwrap_or_else(|| empty.clone());
    let mut names = transfer::new_objects(git, &base, &trees.worktree)?;
    names.extend(transfer::new_objects(git, &trees.worktree, &trees.index)?);
    if let Some(extras) = &trees.extras {
        names.extend(transfer::new_objects(git, &empty, extras)?);
    }
    transfer::copy(git, &place.own, &place.store.join("objects"), &names)
}

/// Writes the commits. HEAD is named in the message only: as a parent it would bring the history along.
fn write(repo: &Repo, trees: &Trees, words: &str, facts: Facts) -> Result<(String, String), SnapshotError> {
    let name = &facts.name;
    let index = commit(repo, &trees.index, &[], &format!("Index of checkpoint {name}\n"))?;
    let extras = match &trees.extras {
        Some(tree) => Some(commit(repo, tree, &[], &format!("Extras of checkpoint {name}\n"))?),
        None => None,
    };
    let parents: Vec<&str> = [index.as_str()].into_iter().chain(extras.as_deref()).collect();
    let facts = Facts { index: index.clone(), extras: extras.clone(), ..facts };
    let text = message::write(words, &facts);
    Ok((commit(repo, &trees.worktree, &parents, &text)?, text))
}

fn commit(repo: &Repo, tree: &str, parents: &[&str], text: &str) -> Result<String, SnapshotError> {
    let mut args = vec!["commit-tree", "--no-gpg-sign", tree];
    for parent in parents {
        args.extend(["-p", parent]);
    }
    repo.git.read_line(&args, text.as_bytes())
}

/// Git makes the ref or finds it there in one step, whoever else tries.
pub(super) fn create(git: &Git, reference: &str, commit: &str) -> Result<(), SnapshotError> {
    let args = ["update-ref", "--no-deref", "--stdin"];
    let output = git.run(&args, format!("create {reference} {commit}\n").as_bytes(), LINE_MAX)?;
    if output.status.success() {
        return Ok(());
    }
    if output.stderr.contains("already exists") {
        return Err(SnapshotError::Exists { reference: reference.to_owned() });
    }
    Err(failed(&args, output.stderr))
}

pub(super) fn list_in(own: &Git, session: &str) -> Result<Vec<Snapshot>, SnapshotError> {
    read(own, &["--sort=refname", "--sort=creatordate", &format!("{ROOT}/{session}/")])
}

/// The snapshots that were taken last of those under a ref, the newest first.
fn newest(own: &Git, under: &str, count: &str) -> Result<Vec<Snapshot>, SnapshotError> {
    read(own, &["--sort=-creatordate", count, under])
}

fn read(own: &Git, which: &[&str]) -> Result<Vec<Snapshot>, SnapshotError> {
    let format = "--format=%(refname)%00%(objectname)%00%(tree)%00%(contents)%00";
    let text = own.read(&[&["for-each-ref", format], which].concat(), b"")?;
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
