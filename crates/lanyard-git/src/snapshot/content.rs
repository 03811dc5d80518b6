//! Files of a commit, and the commit at which a branch left its base branch: what a review compares with.

use std::path::{Path, PathBuf};

use super::SnapshotError;
use super::diff::check_exists;
use super::git::Git;
use super::own_store::{CheckpointStore, Hold};
use super::repo::Repo;

const LINE_MAX: usize = 4 * 1024;
/// Refs a branch may have left, the likeliest first.
const BASES: [&str; 4] =
    ["refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/heads/main", "refs/heads/master"];

/// The commit at which the work of a branch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchBase {
    /// The base branch, or the commit where none is known.
    pub name: String,
    pub commit: String,
}

impl CheckpointStore {
    /// The content of a file in a commit, at most `max` bytes. Nothing where the commit has no such file, or it is larger.
    pub fn file_at(
        &self,
        workspace: &Path,
        commit: &str,
        path: &str,
        max: usize,
    ) -> Result<Option<Vec<u8>>, SnapshotError> {
        let place = self.place(workspace, None, Hold::Shared)?;
        check_exists(&place.repo, commit)?;
        // With a full object name and a path from the top, `cat-file` takes the rest as it is.
        let output = place.repo.git.run(&["cat-file", "blob", &format!("{commit}:{path}")], b"", max)?;
        Ok((output.status.success() && !output.cut).then_some(output.stdout))
    }

    /// Where the work on the checked out branch begins. `begun` is the commit of a worktree's own branch, where it has one.
    pub fn branch_base(&self, workspace: &Path, begun: Option<&str>) -> Result<BranchBase, SnapshotError> {
        let repo = Repo::find(workspace)?;
        let own = line(&repo.git, &["symbolic-ref", "--quiet", "HEAD"])?;
        for base in BASES.into_iter().filter(|base| own.as_deref() != Some(*base)) {
            let Some(tip) =
                line(&repo.git, &["rev-parse", "--verify", "--quiet", &format!("{base}^{{commit}}")])?
            else {
                continue;
            };
            if let Some(commit) = line(&repo.git, &["merge-base", "HEAD", &tip])? {
                let short = line(&repo.git, &["rev-parse", "--abbrev-ref", base])?;
                return Ok(BranchBase { name: short.unwrap_or_else(|| base.to_owned()), commit });
            }
        }
        match begun {
            Some(begun) => {
                check_exists(&repo, begun)?;
                Ok(BranchBase { name: begun.get(..12).unwrap_or(begun).to_owned(), commit: begun.to_owned() })
            }
            None => Err(SnapshotError::NoBaseBranch { folder: repo.top }),
        }
    }
}

/// The top folder of the worktree a workspace is in; paths of diffs are below it.
pub fn top_of(workspace: &Path) -> Result<PathBuf, SnapshotError> {
    Ok(Repo::find(workspace)?.top)
}

/// The line of a call that says by its status that there is none.
fn line(git: &Git, args: &[&str]) -> Result<Option<String>, SnapshotError> {
    let output = git.run(args, b"", LINE_MAX)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((output.status.success() && !text.is_empty()).then_some(text))
}
