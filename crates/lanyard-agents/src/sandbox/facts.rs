//! What there is on this machine of the places that a sandbox is about. Blocks on the file system and on `git`.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lanyard_api::agents::known;
use lanyard_api::agents::settings::AgentSettings;
use lanyard_core::session::SandboxLevel;
use lanyard_git::worktree::git_places;

use super::places::{AGENTS, SECRETS, SHARED, SYSTEM, SYSTEM_SECRETS};
use super::plan::{Hide, MountRule, PathAccess, SandboxFacts, SandboxPlanError};

/// What a sandbox is made for.
#[derive(Debug, Clone)]
pub struct SandboxAsk<'a> {
    pub level: SandboxLevel,
    pub workspace: &'a Path,
    pub settings: &'a AgentSettings,
    /// Lanyard's data folder and config.
    pub lanyard: &'a [PathBuf],
    /// Folders in those that workspaces may lie in.
    pub worktrees: &'a [PathBuf],
    /// Folders in those that the run may read.
    pub shown: &'a [PathBuf],
    /// The workspace of the nearest session above that is in a sandbox: a child's has to lie in it.
    pub within: Option<&'a Path>,
}

/// What was found, with the links of `strict` and what cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    pub facts: SandboxFacts,
    /// Links of the system, with what they say.
    pub links: Vec<(PathBuf, PathBuf)>,
    pub weaker: Vec<String>,
}

/// Looks. The state folders of the agent are made where they are missing, so that it can write them.
pub fn look_around(ask: &SandboxAsk<'_>) -> Result<Surroundings, SandboxPlanError> {
    let workspace = real(ask.workspace);
    if let Some(within) = ask.within.map(real)
        && !workspace.starts_with(&within)
        && !ask.worktrees.iter().any(|folder| workspace.starts_with(real(folder)))
    {
        return Err(SandboxPlanError::WorkspaceOfAnother(workspace));
    }
    let variable = |name: &str| {
        let set = ask.settings.env.get(name).cloned();
        set.or_else(|| std::env::var(name).ok().filter(|_| !ask.settings.clear_env))
    };
    let home = ask.settings.env.get("HOME").cloned().or_else(|| std::env::var("HOME").ok());
    let home = real(Path::new(&home.unwrap_or_else(|| "/".to_owned())));
    let expand =
        |path: &PathBuf| path.strip_prefix("~").map_or_else(|_| path.clone(), |rest| home.join(rest));
    let (state, weaker) = state_of(&program_names(ask.settings), &home, &variable);
    let git = git_places(&workspace);
    for hooks in git.guard.iter().filter(|path| path.ends_with("hooks") && !path.exists()) {
        let _ = std::fs::create_dir(hooks);
    }
    let mut secrets: Vec<Hide> = SECRETS.iter().filter_map(|name| hide(&home.join(name))).collect();
    secrets.extend(SYSTEM_SECRETS.iter().filter_map(|path| hide(Path::new(path))));
    secrets.extend(host_keys());
    let (mut system, mut links): (Vec<PathBuf>, Vec<_>) = (Vec::new(), Vec::new());
    let mut read: Vec<PathBuf> =
        ask.settings.sandbox_folders.read.iter().filter_map(|path| there(&expand(path))).collect();
    // The system's resolver keeps its file among the sockets that are not shown.
    read.extend(there(Path::new("/etc/resolv.conf")).filter(|path| path.starts_with("/run")));
    if ask.level == SandboxLevel::Strict {
        for path in SYSTEM.map(Path::new) {
            match std::fs::read_link(path) {
                Ok(target) => links.push((path.to_owned(), target)),
                Err(_) => system.extend(there(path)),
            }
        }
        system.extend(search_path(ask.settings, &home));
    }
    system.extend(program_folders(ask.settings, &home));
    let facts = SandboxFacts {
        level: ask.level,
        workspace,
        git_write: present(&git.write),
        git_read: present(&git.read),
        guard: present(&git.guard),
        state,
        lanyard: ask.lanyard.iter().filter_map(|path| hide(path)).collect(),
        worktrees: ask.worktrees.iter().map(|path| real(path)).collect(),
        shown: present(ask.shown),
        secrets,
        shared: SHARED.iter().filter_map(|path| there(Path::new(path))).collect(),
        system,
        read,
        write: ask.settings.sandbox_folders.write.iter().filter_map(|path| there(&expand(path))).collect(),
        home,
    };
    Ok(Surroundings { facts, links, weaker })
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// A path without links; nothing when it does not exist, or cannot be named in an argument.
fn there(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok().filter(|path| path.to_str().is_some())
}

fn present(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| there(path)).collect()
}

fn hide(path: &Path) -> Option<Hide> {
    let path = there(path)?;
    let folder = path.is_dir();
    Some(Hide { path, folder })
}

/// The keys of this machine, which root can read.
fn host_keys() -> Vec<Hide> {
    let Ok(entries) = std::fs::read_dir("/etc/ssh") else { return Vec::new() };
    let is_key = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("ssh_host_") && name.ends_with("_key")
    };
    entries.flatten().map(|entry| entry.path()).filter(is_key).filter_map(|path| hide(&path)).collect()
}

/// The names an agent's program goes by. Lanyard's own bridge stands before OpenCode's.
fn program_names(settings: &AgentSettings) -> Vec<String> {
    let name = |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    settings.command.iter().filter_map(name).collect()
}

/// The state of an agent, and what of it cannot be guarded.
fn state_of(
    names: &[String],
    home: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Vec<MountRule>, Vec<String>) {
    let (mut rules, mut weaker) = (Vec::new(), Vec::new());
    let known =
        AGENTS.iter().filter(|agent| names.iter().any(|name| agent.programs.contains(&name.as_str())));
    for agent in known {
        for place in agent.folders {
            let chosen =
                place.variable.and_then(|(name, rest)| Some(PathBuf::from(variable(name)?).join(rest)));
            let folder = chosen.unwrap_or_else(|| home.join(place.folder));
            if place.writes {
                let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            }
            let Some(folder) = there(&folder) else { continue };
            for name in place.guard {
                match there(&folder.join(name)) {
                    Some(path) => rules.push(MountRule { path, access: PathAccess::Read }),
                    None if name.contains('.') => weaker.push(format!(
                        "{} is missing; the agent can create it, and its runs outside of a sandbox follow it",
                        folder.join(name).display()
                    )),
                    None => {}
                }
            }
            let access = if place.writes { PathAccess::Write } else { PathAccess::Read };
            rules.push(MountRule { path: folder, access });
        }
        let files = agent.files.iter().filter_map(|name| there(&home.join(name)));
        rules.extend(files.map(|path| MountRule { path, access: PathAccess::Write }));
    }
    (rules, weaker)
}

/// The folders that programs are looked for in.
fn search_path(settings: &AgentSettings, home: &Path) -> Vec<PathBuf> {
    let path = known::path_of(settings);
    std::env::split_paths(&path).filter_map(|folder| folder_of_programs(&folder, home)).collect()
}

/// Where the agent's program and its libraries are, which may be in a folder that is not shown otherwise.
fn program_folders(settings: &AgentSettings, home: &Path) -> Vec<PathBuf> {
    let Some(program) = known::place(settings) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        program.parent().and_then(|folder| folder_of_programs(folder, home)).into_iter().collect();
    if let Some(real) = there(&program) {
        let package = real.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
        folders.extend(package.or(real.parent()).map(Path::to_owned));
    }
    folders
}

/// A folder of programs: with its `lib` beside it where it is the `bin` of a whole installation.
fn folder_of_programs(folder: &Path, home: &Path) -> Option<PathBuf> {
    let folder = there(folder)?;
    let prefix = folder.parent().filter(|_| folder.ends_with("bin"));
    let is_whole =
        |prefix: &&Path| *prefix != home && !prefix.ends_with(".local") && prefix.join("lib").is_dir();
    let whole = prefix.filter(is_whole);
    Some(whole.map_or_else(|| folder.clone(), Path::to_owned))
}
