//! Where a flow works: its worktree, and what becomes of that in the end. Blocks.

use std::path::{Path, PathBuf};

use lanyard_core::flow::{Flow, FlowEvent, plan};
use lanyard_core::task::Tree;
use lanyard_git::workspace_files::{FileError, beneath};
use lanyard_git::worktree::{self, WorktreeError};

/// The flow's worktree, with the plan in it.
pub(super) fn make_tree(root: &Path, flow: &Flow) -> Result<Tree, WorktreeError> {
    let tree = worktree::create(root, Path::new(&flow.workspace), &flow.id.to_string(), None, None)?;
    let here = PathBuf::from(flow.plan_in(&tree));
    // A plan that is not committed yet goes along, so that its author can tick what is done.
    if here != Path::new(&flow.plan)
        && !here.exists()
        && let Err(error) = copy(Path::new(&flow.plan), Path::new(&tree.path), &here)
    {
        tracing::warn!(flow = %flow.id, %error, "the plan could not be put into the flow's worktree");
    }
    Ok(tree)
}

/// Copies a plan into a worktree.
fn copy(plan: &Path, tree: &Path, here: &Path) -> Result<(), FileError> {
    let folder = plan.parent().unwrap_or(plan);
    beneath::write(tree, here, &beneath::read(folder, plan, plan::BYTES_MAX as u64)?)
}

/// Commits what is not committed, and takes the worktree away; the branch stays.
pub(super) fn settle(flow: &Flow) -> FlowEvent {
    let none = FlowEvent::Settled { captured: None, tree_removed: false, failed: None };
    let Some(tree) = flow.tree.as_ref().filter(|tree| !tree.removed) else { return none };
    if !Path::new(&tree.path).exists() {
        let failed = worktree::remove(tree).err().map(|error| error.to_string());
        return FlowEvent::Settled { captured: None, tree_removed: true, failed };
    }
    let message = format!("{}\n\nWork of {} that was not committed, kept by Lanyard.", flow.title, flow.id);
    match worktree::capture(tree, &message) {
        Ok(captured) => match worktree::remove(tree) {
            Ok(()) => FlowEvent::Settled { captured, tree_removed: true, failed: None },
            Err(error) => {
                FlowEvent::Settled { captured, tree_removed: false, failed: Some(error.to_string()) }
            }
        },
        Err(error) => {
            FlowEvent::Settled { captured: None, tree_removed: false, failed: Some(error.to_string()) }
        }
    }
}
