//! Where a flow works: its plan's lock, its worktree, and what becomes of that in the end. Blocks.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lanyard_core::FlowId;
use lanyard_core::flow::{Flow, FlowEvent};
use lanyard_core::task::Tree;
use lanyard_core::text::content_hash;

use crate::flow::{FlowError, bad};
use crate::worktree::{self, WorktreeError};

/// Bytes of a lock file that are read.
const LOCK_BYTES_MAX: u64 = 4 * 1024;

/// A plan that no other daemon of this user works at. Held by the system, so that it is free when the daemon is gone,
/// however it went.
pub(super) struct PlanLock {
    _held: File,
}

impl PlanLock {
    pub(super) fn take(plan: &str, flow: FlowId, holder: &str) -> Result<Self, FlowError> {
        let failed = |error: std::io::Error| FlowError::Unavailable(format!("the plan's lock: {error}"));
        let folder = folder();
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let path = folder.join(format!("{}.lock", content_hash(plan.as_bytes())));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        if let Err(error) = file.try_lock() {
            let mut who = String::new();
            let _ = (&mut file).take(LOCK_BYTES_MAX).read_to_string(&mut who);
            let who = if who.is_empty() { "another daemon".to_owned() } else { who };
            return match error {
                std::fs::TryLockError::WouldBlock => Err(bad(
                    "plan_locked",
                    format!("the plan is being worked at by {}", who.trim()),
                    "end that flow first, or wait for its end",
                )),
                std::fs::TryLockError::Error(error) => Err(failed(error)),
            };
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{flow} of daemon {holder}\n").as_bytes()));
        written.map_err(failed)?;
        Ok(Self { _held: file })
    }
}

/// The same for all daemons of a user.
fn folder() -> PathBuf {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_dir());
    let user = rustix::process::getuid().as_raw();
    of_user.unwrap_or_else(|| std::env::temp_dir().join(format!("lanyard-{user}"))).join("lanyard-plans")
}

/// The flow's worktree, with the plan in it.
pub(super) fn make_tree(root: &Path, flow: &Flow) -> Result<Tree, WorktreeError> {
    let tree = worktree::create(root, Path::new(&flow.workspace), &flow.id.to_string(), None, None)?;
    let here = PathBuf::from(flow.plan_in(&tree));
    // A plan that is not committed yet goes along, so that its author can tick what is done.
    if here != Path::new(&flow.plan) && !here.exists() {
        let copied = here.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = copied.and_then(|()| std::fs::copy(&flow.plan, &here).map(drop)) {
            tracing::warn!(flow = %flow.id, %error, "the plan could not be put into the flow's worktree");
        }
    }
    Ok(tree)
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
