//! A git worktree and branch of its own for a task, a flow or a session: made, looked at, merged and taken away.
//!
//! A worktree is the folder `<root>/<name>`, the name being its owner's id, with the branch `lanyard/<name>` checked out
//! unless another one is named. A branch is Lanyard's when the repository's config says so under `branch.<branch>.lanyard-task`; git moves and
//! drops that together with the branch. Where the branch began stands beside it.
//!
//! Every function can be called again after a crash at any place and then finishes what was begun. No function takes
//! away work that is in no commit: what could not be committed stays where it is, and the refusal says so. Commits that
//! are on no branch are kept under `refs/lanyard/captured/<name>/`, discarded branches under
//! `refs/lanyard/discarded/<name>/`.
//!
//! Not looked into: what is ignored, and files marked assume-unchanged or skip-worktree. A repository inside the
//! worktree is recorded by its commit alone, so a worktree that has one is not taken away.
//!
//! Knows nothing of tasks beyond their names, nor of sessions. Every function blocks on the `git` program within the
//! bounds of `snapshot::git`: call from a blocking thread, and for one worktree one at a time.

mod base;
mod call;
mod capture;
mod changes;
mod create;
mod error;
mod index;
mod merge;
mod places;
mod remove;
mod setup_file;
mod shared;
#[cfg(test)]
mod tests;

pub use base::{FinishedWork, is_part_of, own_commits};
pub use capture::{capture, uncommitted};
pub use changes::{changes, patch};
pub use create::{
    commit_folders, create, create_after, create_on, is_new_work, is_repository, top, was_begun,
};
pub use error::WorktreeError;
pub use merge::{MergeStanding, merge, pull, standing};
pub use places::{GitPlaces, git_places};
pub use remove::{discard, remove, undo};
pub use setup_file::{SETUP_FILE, SetupContent, SetupFile, bring_files, is_set_up, set_up, setup_file};
