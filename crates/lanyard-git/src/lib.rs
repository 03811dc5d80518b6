//! Git and the files of a workspace: checkpoints of a folder, worktrees, and reads that stay inside a folder.
//!
//! Knows nothing of sessions, tasks or the daemon beyond the names it is given. Every function blocks on a file or on
//! the `git` program: call from a blocking thread.

pub mod publish;
pub mod snapshot;
pub mod workspace_files;
pub mod workspace_path;
pub mod worktree;
