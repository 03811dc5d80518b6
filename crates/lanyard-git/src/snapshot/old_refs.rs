//! Checkpoints that older versions kept as refs of the user's repository, and moving them to the store.
//!
//! A commit's first parent was HEAD there, which would bring the whole history along. It is written anew without it; its
//! files, index, date and name stay. A ref is removed from the repository after the store has its checkpoint, so that a
//! kill at any point repeats work and loses nothing.

use std::collections::BTreeSet;
use std::path::Path;

use super::git::{Git, WORK_MAX};
use super::message;
use super::own_store::{CheckpointStore, Hold, OpenedStore, ROOT};
use super::repo::Repo;
use super::take::create;
use super::{SnapshotError, transfer};

/// Refs moved at a time; the next call goes on.
const REFS_MAX: usize = 2_000;

/// The sessions that have checkpoints among the repository's refs.
pub fn sessions(workspace: &Path) -> Result<BTreeSet<String>, SnapshotError> {
    let repo = Repo::find(workspace)?;
    let text = repo.git.read(&["for-each-ref", "--format=%(refname)", &format!("{ROOT}/")], b"")?;
    let text = String::from_utf8_lossy(&text);
    let under = text.lines().filter_map(|line| line.strip_prefix(ROOT)?.strip_prefix('/')?.split_once('/'));
    Ok(under.map(|(session, _)| session.to_owned()).collect())
}

/// Removes a session's refs from a repository without keeping them. Answers how many there were.
pub fn remove(workspace: &Path, session: &str) -> Result<u32, SnapshotError> {
    message::check_name(session)?;
    let git = Repo::find(workspace)?.git;
    let refs = refs(&git, session)?;
    remove_refs(&git, &refs)?;
    Ok(u32::try_from(refs.len()).unwrap_or(u32::MAX))
}

/// How many refs a session has in a repository.
pub fn count(workspace: &Path, session: &str) -> Result<u32, SnapshotError> {
    message::check_name(session)?;
    let refs = refs(&Repo::find(workspace)?.git, session)?;
    Ok(u32::try_from(refs.len()).unwrap_or(u32::MAX))
}

/// Moves a session's checkpoints from the repository of a workspace to its store.
pub fn migrate(store: &CheckpointStore, workspace: &Path, session: &str) -> Result<(), SnapshotError> {
    store.place(workspace, None, Hold::Shared).and_then(|place| move_session(&place, session))
}

pub(super) fn move_session(place: &OpenedStore, session: &str) -> Result<(), SnapshotError> {
    let git = place.repo.git.own_objects();
    let mut refs = refs(&git, session)?;
    refs.truncate(REFS_MAX);
    let mut olds = Vec::new();
    for (name, commit) in &refs {
        let text = git.read(&["cat-file", "commit", commit], b"")?;
        // Something else that somebody put there is left alone.
        if let Some(old) = Old::read(name, &String::from_utf8_lossy(&text)) {
            olds.push(old);
        }
    }
    if olds.is_empty() {
        return Ok(());
    }
    copy(place, &git, &olds)?;
    for old in &olds {
        let index = git.read(&["cat-file", "commit", &old.index], b"")?;
        let index = write(&place.own, &without_parents(&String::from_utf8_lossy(&index)))?;
        let commit = write(&place.own, &old.rewritten(&index))?;
        match create(&place.own, &old.name, &commit) {
            Ok(()) | Err(SnapshotError::Exists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let names: BTreeSet<&str> = olds.iter().map(|old| old.name.as_str()).collect();
    refs.retain(|(name, _)| names.contains(name.as_str()));
    remove_refs(&git, &refs)
}

/// Names of refs and what they hold.
fn refs(git: &Git, session: &str) -> Result<Vec<(String, String)>, SnapshotError> {
    let args = ["for-each-ref", "--format=%(refname) %(objectname)", &format!("{ROOT}/{session}/")];
    let text = git.read(&args, b"")?;
    let text = String::from_utf8_lossy(&text);
    let split = text.lines().filter_map(|line| line.split_once(' '));
    Ok(split.map(|(name, commit)| (name.to_owned(), commit.to_owned())).collect())
}

/// Named with what they hold, so that one that was made meanwhile is not lost.
fn remove_refs(git: &Git, refs: &[(String, String)]) -> Result<(), SnapshotError> {
    if refs.is_empty() {
        return Ok(());
    }
    let lines: String =
        refs.iter().flat_map(|(name, commit)| ["delete ", name.as_str(), " ", commit, "\n"]).collect();
    git.read(&["update-ref", "--no-deref", "--stdin"], lines.as_bytes())?;
    Ok(())
}

/// Copies all files of old checkpoints in one step.
fn copy(place: &OpenedStore, git: &Git, olds: &[Old]) -> Result<(), SnapshotError> {
    let mut trees = String::new();
    for commit in olds.iter().flat_map(|old| [&old.commit_tree, &old.index].into_iter().chain(&old.extras)) {
        trees.extend([commit, "^{tree}\n"]);
    }
    let args = ["rev-list", "--objects", "--no-object-names", "--stdin"];
    let list = git.with_time(WORK_MAX).read(&args, trees.as_bytes())?;
    let mut names: BTreeSet<String> = String::from_utf8_lossy(&list).lines().map(str::to_owned).collect();
    names.extend(olds.iter().filter_map(|old| old.extras.clone()));
    transfer::copy(&place.repo.git, &place.own, &place.store.join("objects"), &names)
}

fn write(own: &Git, text: &str) -> Result<String, SnapshotError> {
    own.read_line(&["hash-object", "-w", "-t", "commit", "--stdin"], text.as_bytes())
}

/// A checkpoint as it was.
struct Old {
    /// Of the ref.
    name: String,
    /// The commit's text as git keeps it.
    text: String,
    commit_tree: String,
    index: String,
    extras: Option<String>,
}

impl Old {
    fn read(name: &str, text: &str) -> Option<Self> {
        let (head, message) = text.split_once("\n\n")?;
        let (_, facts) = message::read(message)?;
        let commit_tree = head.lines().next()?.strip_prefix("tree ")?.to_owned();
        let (name, text) = (name.to_owned(), text.to_owned());
        Some(Self { name, text, commit_tree, index: facts.index, extras: facts.extras })
    }

    /// The same commit on nothing but its index and its extras.
    fn rewritten(&self, index: &str) -> String {
        let bare = without_parents(&self.text);
        let parents = [index].into_iter().chain(self.extras.as_deref());
        let parents: String = parents.flat_map(|parent| ["parent ", parent, "\n"]).collect();
        let (tree, rest) = bare.split_once('\n').unwrap_or((&bare, ""));
        let fact = |index: &str| format!("\nLanyard-Index: {index}\n");
        format!("{tree}\n{parents}{}", rest.replace(&fact(&self.index), &fact(index)))
    }
}

fn without_parents(text: &str) -> String {
    let (head, message) = text.split_once("\n\n").unwrap_or((text, ""));
    let lines = head.lines().filter(|line| !line.starts_with("parent "));
    let head: Vec<&str> = lines.collect();
    format!("{}\n\n{message}", head.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_rewritten_without_its_history() {
        let (head, index, extras) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let facts = format!(
            "Lanyard-Checkpoint: t1\nLanyard-Head: {head}\nLanyard-Index: {index}\nLanyard-Extras: {extras}\nLanyard-Files-Changed: 1"
        );
        let tree = "d".repeat(40);
        let text = format!(
            "tree {tree}\nparent {head}\nparent {index}\nparent {extras}\nauthor a <a> 1 +0000\n\nWhy\nparent x\n\n{facts}\n"
        );
        let old = Old::read("refs/lanyard/s/t1", &text).unwrap();
        let new = "e".repeat(40);
        let facts = facts.replace(&index, &new);
        assert_eq!(
            old.rewritten(&new),
            format!(
                "tree {tree}\nparent {new}\nparent {extras}\nauthor a <a> 1 +0000\n\nWhy\nparent x\n\n{facts}\n"
            )
        );
        assert!(Old::read("refs/lanyard/s/t1", "tree x\n\nno checkpoint\n").is_none());
    }
}
