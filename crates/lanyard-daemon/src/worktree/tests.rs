//! Worktrees of real repositories in temporary folders.
