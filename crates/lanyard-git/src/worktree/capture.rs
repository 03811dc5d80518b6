//! Committing what nobody committed.
//!
//! Where the tree's branch is checked out, the commit goes there and the index follows; a merge in progress, and what
//! is in conflict, stays as it is for whoever works on. Anywhere else (no branch, another branch, a rebase) HEAD and
//! the index are left alone: the commit goes onto the branch where that is a step forward, else under a private ref.

use std::path::Path;

use lanyard_core::task::{Captured, Tree};

use super::WorktreeError;
use super::call::{is_ancestor, line, maybe, read};
use super::index::{install, path_in};
use super::shared::{Shared, head_ref, name_of, real};
use crate::snapshot::changes::{Change, against_tree};
use crate::snapshot::git::records;
use crate::snapshot::repo::{Repo, Temp};

/// Files the answer names; it says how many there are.
const FILES_MAX: usize = 200;

/// Captures in a row that are looked back on.
const CAPTURES_MAX: usize = 1_000;
/// Says in a commit where it was captured.
const TRAILER: &str = "Captured-in";

/// Commits all that is not committed in a tree's worktree. Nothing when there is nothing, or the folder is gone.
pub fn capture(tree: &Tree, message: &str) -> Result<Option<Captured>, WorktreeError> {
    let shared = Shared::of(tree)?;
    let Some(repo) = shared.worktree(tree)? else { return Ok(None) };
    let stand = Stand::of(&shared, &repo, tree)?;
    let seen = Seen::at(&repo)?;
    if stand.has(&seen.tree)? {
        stand.keep_head()?;
        return Ok(None);
    }
    let (lands, parent) = stand.lands()?;
    let changes = seen.changes(&repo, parent.as_deref())?;
    let unmerged = read(&repo.git, &["ls-files", "--unmerged", "-z"], b"")?;
    let message = message_of(message, &unmerged, name_of(tree)?);
    let commit = commit(&repo, &seen.tree, parent.as_deref(), &message)?;
    match lands {
        Lands::Checkout => {
            // The index first: stopped in between, it is as if somebody had staged everything.
            install(&repo, &seen.index, &unmerged)?;
            shared.set_ref(&head_ref(&tree.branch), Some(&commit), parent.as_deref())?;
        }
        Lands::Branch => {
            stand.advance(&commit)?;
        }
        Lands::Aside => {
            shared.keep(&captured_refs(tree)?, &commit)?;
        }
    }
    let files = changes.iter().take(FILES_MAX).map(Change::display).collect();
    let files_changed = u32::try_from(changes.len()).unwrap_or(u32::MAX);
    Ok(Some(Captured { commit, files, files_changed }))
}

/// What a worktree holds that is in no commit; empty when all is kept. Commits on no branch are kept on the way.
pub(super) fn uncaptured(shared: &Shared, repo: &Repo, tree: &Tree) -> Result<Vec<String>, WorktreeError> {
    let stand = Stand::of(shared, repo, tree)?;
    let loose = loose(&stand, repo)?;
    if loose.is_empty() {
        stand.keep_head()?;
    }
    Ok(loose)
}

/// The files of a worktree that are in no commit; none where its folder is missing. Changes nothing.
pub fn uncommitted(tree: &Tree) -> Result<Vec<String>, WorktreeError> {
    let shared = Shared::of(tree)?;
    let Some(repo) = shared.worktree(tree)? else { return Ok(Vec::new()) };
    loose(&Stand::of(&shared, &repo, tree)?, &repo)
}

fn loose(stand: &Stand<'_>, repo: &Repo) -> Result<Vec<String>, WorktreeError> {
    let seen = Seen::at(repo)?;
    if !seen.notes.is_empty() {
        return Ok(seen.notes);
    }
    if stand.has(&seen.tree)? {
        return Ok(Vec::new());
    }
    let (_, parent) = stand.lands()?;
    Ok(seen.changes(repo, parent.as_deref())?.iter().map(Change::display).collect())
}

/// Where a worktree stands towards its branch.
struct Stand<'a> {
    shared: &'a Shared,
    repo: &'a Repo,
    tree: &'a Tree,
    head: Option<String>,
    /// The tree's branch is what is checked out.
    on_branch: bool,
    tip: Option<String>,
}

/// Where a commit goes.
enum Lands {
    /// Onto the branch, which is checked out.
    Checkout,
    /// Onto the branch, which is not.
    Branch,
    /// Under a private ref.
    Aside,
}

impl<'a> Stand<'a> {
    fn of(shared: &'a Shared, repo: &'a Repo, tree: &'a Tree) -> Result<Self, WorktreeError> {
        let reference = head_ref(&tree.branch);
        let checked_out = maybe(&repo.git, &["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(Self {
            shared,
            repo,
            tree,
            head: repo.head()?,
            on_branch: checked_out.as_ref() == Some(&reference),
            tip: shared.tip(&reference)?,
        })
    }

    /// Where a commit made now goes, and what it follows.
    fn lands(&self) -> Result<(Lands, Option<String>), WorktreeError> {
        if self.on_branch {
            return Ok((Lands::Checkout, self.head.clone()));
        }
        let aside = (Lands::Aside, self.head.clone());
        // A rebase moves the branch itself when it ends, from where it was.
        let rebasing =
            ["rebase-merge", "rebase-apply"].iter().any(|name| self.repo.git_dir.join(name).exists());
        if rebasing || self.shared.checked_out(&self.tree.branch)?.is_some_and(|at| !self.is_here(&at)) {
            return Ok(aside);
        }
        let (Some(head), Some(tip)) = (&self.head, &self.tip) else {
            return Ok(match &self.tip {
                // Nothing came before it here, but the branch has commits.
                Some(_) => aside,
                None => (Lands::Branch, self.head.clone()),
            });
        };
        if is_ancestor(&self.shared.git, head, tip)? {
            // On top of other commits, files that stand further back would undo them.
            let next = self.only_captures(head, tip)?;
            return Ok(if next { (Lands::Branch, Some(tip.clone())) } else { aside });
        }
        Ok(if is_ancestor(&self.shared.git, tip, head)? {
            (Lands::Branch, Some(head.clone()))
        } else {
            aside
        })
    }

    /// Whether nothing came between two commits but what was captured here.
    fn only_captures(&self, since: &str, tip: &str) -> Result<bool, WorktreeError> {
        let by = format!("by {}", name_of(self.tree)?);
        let format = format!("--format=by %(trailers:key={TRAILER},valueonly,separator=%x20)");
        let count = format!("--max-count={CAPTURES_MAX}");
        let args = ["log", "--no-show-signature", &format, &count, &format!("{since}..{tip}"), "--"];
        let list = line(&self.shared.git, &args, b"")?;
        Ok(list.lines().count() < CAPTURES_MAX && list.lines().all(|line| line == by))
    }

    /// Moves the branch, which is not checked out here, or makes it again.
    fn advance(&self, commit: &str) -> Result<(), WorktreeError> {
        if self.tip.is_none() {
            self.shared.mark(&self.tree.branch, name_of(self.tree)?, &self.tree.base)?;
        }
        self.shared.set_ref(&head_ref(&self.tree.branch), Some(commit), self.tip.as_deref())
    }

    fn is_here(&self, worktree: &Path) -> bool {
        real(worktree) == real(&self.repo.top)
    }

    /// Whether a tree with these files is in a commit that will be found.
    fn has(&self, files: &str) -> Result<bool, WorktreeError> {
        let head = match &self.head {
            Some(head) => line(&self.repo.git, &["rev-parse", &format!("{head}^{{tree}}")], b"")?,
            None => self.repo.empty_tree()?,
        };
        if head == files || self.on_branch {
            return Ok(head == files);
        }
        let (branch, captured) = (head_ref(&self.tree.branch), captured_refs(self.tree)?);
        let args = ["for-each-ref", "--format=%(tree)", &branch, &captured];
        Ok(line(&self.shared.git, &args, b"")?.lines().any(|tree| tree == files))
    }

    /// Sees to it that the commits made here are found when the worktree is gone.
    fn keep_head(&self) -> Result<(), WorktreeError> {
        let Some(head) = self.head.as_deref().filter(|_| !self.on_branch) else { return Ok(()) };
        match self.lands()? {
            (Lands::Branch, Some(parent)) if self.head.as_ref() == Some(&parent) => {
                if self.tip.as_deref() == Some(head) {
                    return Ok(());
                }
                self.advance(head)
            }
            (Lands::Checkout | Lands::Branch | Lands::Aside, _) => {
                let args = ["for-each-ref", "--count=1", "--format=%(refname)", "--contains", head];
                if line(&self.shared.git, &args, b"")?.is_empty() {
                    self.shared.keep(&captured_refs(self.tree)?, head)?;
                }
                Ok(())
            }
        }
    }
}

/// The worktree as it is at this moment.
struct Seen {
    /// An index that holds it.
    index: Temp,
    tree: String,
    /// What could not be read.
    notes: Vec<String>,
}

impl Seen {
    fn at(repo: &Repo) -> Result<Self, WorktreeError> {
        repo.sweep();
        let mut notes = Vec::new();
        let index = repo.copy_index(&repo.index)?;
        repo.add_worktree(&index, &mut notes)?;
        let tree = repo.write_tree(&index)?;
        Ok(Self { index, tree, notes })
    }

    fn changes(&self, repo: &Repo, since: Option<&str>) -> Result<Vec<Change>, WorktreeError> {
        let base = match since {
            Some(commit) => commit.to_owned(),
            None => repo.empty_tree()?,
        };
        Ok(against_tree(repo, &base, &self.index)?)
    }
}

/// The files of a worktree as a tree.
pub(super) fn files_of(repo: &Repo) -> Result<String, WorktreeError> {
    Ok(Seen::at(repo)?.tree)
}

/// Where commits of a tree are kept that are on no branch.
pub(super) fn captured_refs(tree: &Tree) -> Result<String, WorktreeError> {
    Ok(format!("refs/lanyard/captured/{}/", name_of(tree)?))
}

pub(super) fn commit(
    repo: &Repo,
    tree: &str,
    parents: impl IntoIterator<Item = impl AsRef<str>>,
    message: &str,
) -> Result<String, WorktreeError> {
    let mut args = vec!["commit-tree".to_owned(), "--no-gpg-sign".to_owned(), tree.to_owned()];
    for parent in parents {
        args.extend(["-p".to_owned(), parent.as_ref().to_owned()]);
    }
    line(&repo.git, &args, message.replace('\0', "").as_bytes())
}

/// The message, which files are as a merge left them, and where it was.
fn message_of(message: &str, unmerged: &[u8], name: &str) -> String {
    let mut names: Vec<String> = records(unmerged).map(|entry| shown(path_in(entry))).collect();
    names.dedup();
    let mut text = format!("{}\n", message.trim_end());
    if !names.is_empty() {
        text.push_str("\nIn conflict, as the merge left them:\n");
    }
    for name in names.iter().take(FILES_MAX) {
        text.extend(["- ", name, "\n"]);
    }
    text.extend(["\n", TRAILER, ": ", name, "\n"]);
    text
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
