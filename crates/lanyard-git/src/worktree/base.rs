//! Where the branch of a task begins that depends on others: at a commit that has the work of all of them.
//!
//! Merges are made as objects, beside every worktree and ref, and run nothing of the repository's. A conflict leaves
//! nothing behind but those objects, which git drops by itself.

use lanyard_core::task::Tree;

use super::WorktreeError;
use super::call::{is_ancestor, maybe};
use super::capture::commit;
use super::merge::{Unjoined, join};
use super::shared::{Shared, head_ref};
use crate::snapshot::repo::Repo;

/// What a completed task left in git.
#[derive(Debug, Clone)]
pub struct FinishedWork {
    pub tree: Tree,
    /// The commit in which Lanyard kept what its agent had not committed. Usually the tip of its branch.
    pub captured: Option<String>,
    /// The commit it was merged with. It has the work when the branch was deleted since.
    pub merged: Option<String>,
}

/// The commit a branch begins at when no other work is needed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    /// A person named it, or the branch is there already: it is part of the result.
    Fixed(&'a str),
    /// Where the workspace stands. Work that does not build on each other's result may begin elsewhere.
    Head(&'a str),
}

impl Start<'_> {
    const fn commit(&self) -> &str {
        match self {
            Self::Fixed(commit) | Self::Head(commit) => commit,
        }
    }
}

/// A commit that is not part of the start, with the branch it is known by.
struct Outstanding {
    branch: String,
    commit: String,
}

/// A commit that has all of this work. Work that is part of the start already adds nothing. A single piece of work is
/// begun at its own tip; several are merged in the order they are given.
pub(super) fn with_work(
    shared: &Shared,
    repo: &Repo,
    start: Start<'_>,
    work: &[FinishedWork],
) -> Result<String, WorktreeError> {
    let mut outstanding = Vec::new();
    let mut all_outstanding = !work.is_empty();
    for piece in work {
        let found = commits_of(shared, repo, piece)?;
        let mut is_outstanding = false;
        for commit in found {
            if !is_ancestor(&repo.git, &commit, start.commit())? {
                is_outstanding = true;
                outstanding.push(Outstanding { branch: piece.tree.branch.clone(), commit });
            }
        }
        all_outstanding &= is_outstanding;
    }
    let mut rest = outstanding.into_iter();
    let (mut at, mut names) = match start {
        Start::Head(_) if all_outstanding => match rest.next() {
            Some(first) => (first.commit, vec![first.branch]),
            None => return Ok(start.commit().to_owned()),
        },
        Start::Head(head) => (head.to_owned(), vec!["HEAD".to_owned()]),
        Start::Fixed(fixed) => (fixed.to_owned(), vec![fixed.get(..12).unwrap_or(fixed).to_owned()]),
    };
    for next in rest {
        at = merged(repo, at, &next, &names)?;
        if !names.contains(&next.branch) {
            names.push(next.branch);
        }
    }
    Ok(at)
}

/// The commits that hold a task's work: none when it has no commits of its own, is of another repository, or its branch
/// was deleted and Lanyard did not merge it. Whoever deletes a branch has brought its work elsewhere, or does not want it.
fn commits_of(shared: &Shared, repo: &Repo, work: &FinishedWork) -> Result<Vec<String>, WorktreeError> {
    let same = Shared::of(&work.tree).is_ok_and(|other| other.common == shared.common);
    if !same {
        return Ok(Vec::new());
    }
    let mut found: Vec<String> = shared.tip(&head_ref(&work.tree.branch))?.into_iter().collect();
    for kept in [&work.captured, &work.merged].into_iter().flatten() {
        let named = format!("{kept}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &named];
        found.extend(maybe(&repo.git, &args)?.filter(|commit| !found.contains(commit)));
    }
    found.retain(|commit| *commit != work.tree.base);
    Ok(found)
}

fn merged(repo: &Repo, at: String, next: &Outstanding, names: &[String]) -> Result<String, WorktreeError> {
    if is_ancestor(&repo.git, &next.commit, &at)? {
        return Ok(at);
    }
    if is_ancestor(&repo.git, &at, &next.commit)? {
        return Ok(next.commit.clone());
    }
    let files = join(repo, &at, &next.commit).map_err(|error| match error {
        Unjoined::Conflict(files) => {
            WorktreeError::BaseConflict { branch: next.branch.clone(), with: names.to_vec(), files }
        }
        Unjoined::Error(error) => error,
    })?;
    commit(repo, &files, [&at, &next.commit], &format!("Merge branch '{}'", next.branch))
}

/// What a branch becomes whose base moves to `base`: `with`, which has its `tip` and the same work, or a merge that has the
/// base itself too. Nothing when that merge conflicts.
pub(super) fn holding(
    repo: &Repo,
    tip: &str,
    with: &str,
    base: &str,
) -> Result<Option<String>, WorktreeError> {
    if is_ancestor(&repo.git, base, with)? {
        return Ok(Some(with.to_owned()));
    }
    let next = Outstanding { branch: "its prerequisites".to_owned(), commit: base.to_owned() };
    match merged(repo, tip.to_owned(), &next, &[]) {
        Ok(whole) => Ok(Some(whole)),
        Err(WorktreeError::BaseConflict { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Commits a tree's branch has of its own. Nothing when the branch is gone.
pub fn own_commits(tree: &Tree) -> Result<Option<u32>, WorktreeError> {
    let shared = Shared::of(tree)?;
    let Some(tip) = shared.tip(&head_ref(&tree.branch))? else { return Ok(None) };
    let count = maybe(&shared.git, &["rev-list", "--count", &format!("{}..{tip}", tree.base)])?;
    Ok(count.and_then(|count| count.trim().parse().ok()))
}

/// Whether all commits of a tree's branch are part of a commit of the same repository.
pub fn is_part_of(tree: &Tree, commit: &str) -> Result<bool, WorktreeError> {
    let shared = Shared::of(tree)?;
    match shared.tip(&head_ref(&tree.branch))? {
        Some(tip) => is_ancestor(&shared.git, &tip, commit),
        None => Ok(false),
    }
}
