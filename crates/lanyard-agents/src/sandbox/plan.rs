//! What a sandbox shows of the file system, as one rule for each path. Pure: what there is comes in as facts.
//!
//! A rule holds for a path and all below it, until a rule for a deeper path. So a hidden folder in a workspace stays
//! hidden, and a worktree in a hidden folder is seen.

use std::path::{Path, PathBuf};

use lanyard_core::session::SandboxLevel;
use serde::{Deserialize, Serialize};

/// What may be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathAccess {
    Read,
    Write,
    /// An empty folder of the sandbox's own, which ends with it.
    Private,
    /// An empty folder that cannot be changed.
    Hidden,
    /// A file that cannot be read.
    HiddenFile,
}

/// One path and what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRule {
    pub path: PathBuf,
    pub access: PathAccess,
}

/// A path that is to be hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hide {
    pub path: PathBuf,
    pub folder: bool,
}

/// What there is. All paths are absolute, without links, and exist unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxFacts {
    pub level: SandboxLevel,
    pub workspace: PathBuf,
    pub home: PathBuf,
    /// Git's folders that the workspace's commits write.
    pub git_write: Vec<PathBuf>,
    pub git_read: Vec<PathBuf>,
    /// Not to be changed or replaced, wherever they lie.
    pub guard: Vec<PathBuf>,
    /// The agent's own state.
    pub state: Vec<MountRule>,
    /// Lanyard's own files.
    pub lanyard: Vec<Hide>,
    /// Folders in Lanyard's own that workspaces may lie in.
    pub worktrees: Vec<PathBuf>,
    /// Folders in Lanyard's own that the run may read: what was attached to the session's messages.
    pub shown: Vec<PathBuf>,
    /// Keys, histories and the like, and what other agents keep.
    pub secrets: Vec<Hide>,
    /// Folders that everybody shares, such as `/tmp`.
    pub shared: Vec<PathBuf>,
    /// The folder of the agent's program, and what `strict` shows of the system.
    pub system: Vec<PathBuf>,
    /// As the settings say.
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
}

/// Why no sandbox can be made of the facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxPlanError {
    #[error("the workspace {0} is the whole file system")]
    WorkspaceIsRoot(PathBuf),
    #[error("the workspace {0} lies in Lanyard's own files")]
    WorkspaceIsLanyards(PathBuf),
    #[error("`sandbox_folders` names {0}, which lies in Lanyard's own files")]
    FolderIsLanyards(PathBuf),
    #[error("the workspace {0} of a child lies outside of its parent's")]
    WorkspaceOfAnother(PathBuf),
}

/// The rules, parents before what is in them.
pub fn rules(facts: &SandboxFacts) -> Result<Vec<MountRule>, SandboxPlanError> {
    check(facts)?;
    let mut rules: Vec<MountRule> = Vec::new();
    // The first rule for a path is the one that holds.
    let mut add = |path: &PathBuf, access: PathAccess| {
        if rules.iter().all(|rule| rule.path != *path) {
            rules.push(MountRule { path: path.clone(), access });
        }
    };
    let hidden = |hide: &Hide| if hide.folder { PathAccess::Hidden } else { PathAccess::HiddenFile };
    facts.guard.iter().for_each(|path| add(path, PathAccess::Read));
    facts.lanyard.iter().for_each(|hide| add(&hide.path, hidden(hide)));
    facts.shown.iter().for_each(|path| add(path, PathAccess::Read));
    add(&facts.workspace, PathAccess::Write);
    facts.git_write.iter().chain(&facts.write).for_each(|path| add(path, PathAccess::Write));
    facts.state.iter().for_each(|rule| add(&rule.path, rule.access));
    facts.read.iter().for_each(|path| add(path, PathAccess::Read));
    facts.secrets.iter().for_each(|hide| add(&hide.path, hidden(hide)));
    facts.git_read.iter().for_each(|path| add(path, PathAccess::Read));
    facts.shared.iter().for_each(|path| add(path, PathAccess::Private));
    if facts.level == SandboxLevel::Strict {
        add(&facts.home, PathAccess::Private);
    }
    facts.system.iter().for_each(|path| add(path, PathAccess::Read));
    rules.sort_by_key(|rule| rule.path.components().count());
    Ok(needed(rules, facts.level))
}

fn check(facts: &SandboxFacts) -> Result<(), SandboxPlanError> {
    let workspace = &facts.workspace;
    if workspace.parent().is_none() {
        return Err(SandboxPlanError::WorkspaceIsRoot(workspace.clone()));
    }
    let is_lanyards = |path: &Path| {
        let inside = facts.lanyard.iter().any(|hide| path.starts_with(&hide.path));
        let allowed = |folder: &PathBuf| path.starts_with(folder) && path != folder;
        inside && !facts.worktrees.iter().any(allowed)
    };
    if is_lanyards(workspace) {
        return Err(SandboxPlanError::WorkspaceIsLanyards(workspace.clone()));
    }
    match facts.write.iter().chain(&facts.read).find(|path| is_lanyards(path)) {
        Some(path) => Err(SandboxPlanError::FolderIsLanyards(path.clone())),
        None => Ok(()),
    }
}

/// Without rules that say what holds anyway.
fn needed(rules: Vec<MountRule>, level: SandboxLevel) -> Vec<MountRule> {
    let mut kept: Vec<MountRule> = Vec::new();
    for rule in rules {
        let above = kept.iter().rfind(|held| rule.path.starts_with(&held.path)).map(|held| held.access);
        let nothing = match above {
            Some(PathAccess::Private | PathAccess::Hidden | PathAccess::HiddenFile) => true,
            Some(PathAccess::Read | PathAccess::Write) => false,
            None => level == SandboxLevel::Strict,
        };
        let readable = match above {
            Some(access) => access == PathAccess::Read,
            None => level != SandboxLevel::Strict,
        };
        let holds_anyway = match rule.access {
            PathAccess::Hidden | PathAccess::HiddenFile => nothing,
            PathAccess::Private => above == Some(PathAccess::Private),
            PathAccess::Read => readable,
            PathAccess::Write => above == Some(PathAccess::Write) && !guards_by_being_there(&rule.path),
        };
        if !holds_anyway {
            kept.push(rule);
        }
    }
    kept
}

/// A place where something is mounted cannot be renamed, which is what keeps a `.git` folder and what is guarded in it
/// together.
fn guards_by_being_there(path: &Path) -> bool {
    path.ends_with(".git")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod plan_tests;
