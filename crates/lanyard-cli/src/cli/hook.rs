//! `lanyard hook`: what an agent's harness runs before and after its own tools, and putting it there.

use std::path::PathBuf;

use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::hook::{self, Harness, HookScope, HookState, Installed, Removed, Target};
use crate::render::table::{Column, table};
use crate::render::text::one_line;
use lanyard_api::agents::known::find;

const EXAMPLES: &str = "\
An agent's own tools (shell, edit, read) never pass an MCP server. With a hook they are asked about
too: a stop refuses them, guidance stands beside their answer. `install` edits the agent's settings
and keeps all else in them; `uninstall` gives the file back as it was.

Examples:
  lanyard hook install claude
  lanyard hook install --all
  lanyard hook install opencode --project
  lanyard hook status
  lanyard hook uninstall claude
  lanyard hook claude < event.json";

/// Reach an agent's own tools through its hooks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HookArgs {
    #[command(subcommand)]
    pub(super) verb: HookVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum HookVerb {
    /// Put the hook into an agent's settings
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(HookInstall),
    /// List the agents that are installed here, and how the hook is in their settings
    Status(HookStatus),
    /// Take the hook out of an agent's settings
    #[command(after_help = UNINSTALL_EXAMPLES)]
    Uninstall(HookPlace),
    /// Answer a hook of Claude Code: its JSON on stdin, the answer on stdout
    Claude,
    /// Answer a hook of Codex
    Codex,
    /// Answer a hook of Gemini CLI
    Gemini,
    /// Answer the `OpenCode` plugin
    Opencode,
}

const INSTALL_EXAMPLES: &str = "\
Claude Code: ~/.claude/settings.json, or .claude/settings.local.json with --project.
Codex: ~/.codex/hooks.json or .codex/hooks.json; the hook runs once
you trust it: start `codex` in a terminal, it asks.
Gemini CLI: ~/.gemini/settings.json or .gemini/settings.json.
OpenCode: ~/.config/opencode/plugin/lanyard.js or .opencode/plugin/lanyard.js. It installs its
plugin package from npm when it sees a plugin file for the first time.

Examples:
  lanyard hook install claude
  lanyard hook install --all
  lanyard hook install gemini --project";

const UNINSTALL_EXAMPLES: &str = "\
A file that was not changed since is restored byte for byte. From one that was changed only
what is Lanyard's is taken out.

Examples:
  lanyard hook uninstall claude
  lanyard hook uninstall gemini --project";

#[derive(Debug, clap::Args)]
pub(super) struct HookInstall {
    /// Whose settings
    #[arg(required_unless_present = "all")]
    agent: Option<Harness>,
    /// Of every agent whose program is on the PATH
    #[arg(long, conflicts_with = "agent")]
    all: bool,
    /// For the project in this folder
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// For all your projects (the default)
    #[arg(long)]
    user: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct HookStatus {
    /// In the settings of the project in this folder, not in those for all your projects
    #[arg(long)]
    project: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct HookPlace {
    /// Whose settings
    agent: Harness,
    /// For the project in this folder
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// For all your projects (the default)
    #[arg(long)]
    user: bool,
}

impl HookVerb {
    /// The harness whose hook this is; nothing for what people run.
    pub(super) fn harness(&self) -> Option<Harness> {
        match self {
            Self::Install(_) | Self::Uninstall(_) | Self::Status(_) => None,
            Self::Claude => Some(Harness::Claude),
            Self::Codex => Some(Harness::Codex),
            Self::Gemini => Some(Harness::Gemini),
            Self::Opencode => Some(Harness::Opencode),
        }
    }
}

impl HookArgs {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            HookVerb::Install(HookInstall { agent: Some(agent), project, user, .. }) => {
                install(context, &HookPlace { agent, project, user })
            }
            HookVerb::Install(HookInstall { agent: None, project, .. }) => install_all(context, project),
            HookVerb::Status(HookStatus { project }) => status(context, project),
            HookVerb::Uninstall(place) => uninstall(context, &place),
            // Answered before there is a context: they need none.
            HookVerb::Claude | HookVerb::Codex | HookVerb::Gemini | HookVerb::Opencode => Ok(()),
        }
    }
}

impl HookPlace {
    /// The settings of one agent for all projects of the user.
    pub(super) fn of_user(agent: Harness) -> Self {
        Self { agent, project: false, user: true }
    }
}

/// The settings file a hook goes into.
pub(super) fn settings_file(context: &Context, place: &HookPlace) -> Result<PathBuf, Failure> {
    target(context, place).map(|target| target.path())
}

/// Puts the hook in; answers the file, and what a person still has to do.
pub(super) fn put(context: &Context, place: &HookPlace) -> Result<(PathBuf, Option<&'static str>), Failure> {
    let target = target(context, place)?;
    hook::install(&target, &context.home.dir).map_err(|error| unusable(&error))?;
    Ok((target.path(), next_step(target.harness)))
}

fn install(context: &Context, place: &HookPlace) -> Result<(), Failure> {
    let target = target(context, place)?;
    let path = target.path().display().to_string();
    let done = hook::install(&target, &context.home.dir).map_err(|error| unusable(&error))?;
    let changed = done == Installed::Now;
    if context.out.is_json() {
        return context
            .out
            .json(&json!({
                "agent": target.harness.as_str(), "path": path, "changed": changed, "next": next_step(target.harness),
            }));
    }
    context.out.note(match done {
        Installed::Now => "Hook installed. Restart agents that are already running.",
        Installed::Already => "The hook was installed already; nothing changed.",
    });
    if let Some(step) = next_step(target.harness) {
        context.out.note(step);
    }
    context.out.data(&path)
}

/// The agents whose programs are on the PATH of this process.
fn found() -> Vec<Harness> {
    let path = std::env::var("PATH").unwrap_or_default();
    let all = [Harness::Claude, Harness::Codex, Harness::Gemini, Harness::Opencode];
    all.into_iter().filter(|harness| find(harness.as_str(), &path).is_some()).collect()
}

/// Installs the hook for every agent that is found. One whose settings cannot be used does not keep the others from it.
fn install_all(context: &Context, project: bool) -> Result<(), Failure> {
    let agents = found();
    if agents.is_empty() {
        let title = "none of claude, codex, gemini and opencode is on the PATH";
        return Err(Failure::usage(title, "install one of them, or name the agent"));
    }
    let (mut done, mut failed) = (Vec::new(), false);
    for agent in agents {
        let target = target(context, &HookPlace { agent, project, user: !project })?;
        let path = target.path().display().to_string();
        let row = match hook::install(&target, &context.home.dir) {
            Ok(installed) => {
                let changed = installed == Installed::Now;
                if !context.out.is_json() {
                    let what = if changed { "hook installed" } else { "the hook was installed already" };
                    context.out.note(&format!("{}: {what}", agent.as_str()));
                    if let Some(step) = next_step(agent) {
                        context.out.note(step);
                    }
                    context.out.data(&path)?;
                }
                json!({ "agent": agent.as_str(), "path": path, "changed": changed, "next": next_step(agent) })
            }
            Err(error) => {
                failed = true;
                let why = chain(&error);
                if !context.out.is_json() {
                    context.out.warn(&format!("{}: {why}", agent.as_str()));
                }
                json!({ "agent": agent.as_str(), "path": path, "changed": false, "error": why })
            }
        };
        done.push(row);
    }
    if context.out.is_json() {
        context.out.list(&done, None)?;
    } else {
        context.out.note("Restart agents that are already running.");
    }
    if failed { Err(Failure::Shown) } else { Ok(()) }
}

const STATUS_COLUMNS: [Column; 4] =
    [Column::whole("AGENT"), Column::whole("PROGRAM"), Column::whole("HOOK"), Column::elastic("FILE", 20)];

fn status(context: &Context, project: bool) -> Result<(), Failure> {
    let on_path = found();
    let mut rows = Vec::new();
    for agent in [Harness::Claude, Harness::Codex, Harness::Gemini, Harness::Opencode] {
        let target = target(context, &HookPlace { agent, project, user: !project })?;
        let (state, error) = match hook::state(&target) {
            Ok(HookState::Installed) => ("installed", None),
            Ok(HookState::Outdated) => ("outdated", None),
            Ok(HookState::Absent) => ("absent", None),
            Err(error) => ("unreadable", Some(chain(&error))),
        };
        let path = target.path().display().to_string();
        rows.push((agent.as_str(), on_path.contains(&agent), state, path, error));
    }
    if context.out.is_json() {
        let items = rows.iter().map(|(agent, found, hook, path, error)| {
            json!({ "agent": agent, "found": found, "hook": hook, "path": path, "error": error })
        });
        return context.out.list(&items.collect::<Vec<_>>(), None);
    }
    let cells = rows.iter().map(|(agent, found, hook, path, error)| {
        let found = if *found { "found" } else { "not found" };
        let shown = error.as_ref().unwrap_or(path);
        vec![(*agent).to_owned(), found.to_owned(), (*hook).to_owned(), one_line(shown)]
    });
    context.out.data(&table(&STATUS_COLUMNS, &cells.collect::<Vec<_>>(), context.out.columns))?;
    if rows.iter().any(|(_, found, hook, ..)| *found && matches!(*hook, "absent" | "outdated")) {
        context.out.note("install what is missing with `lanyard hook install --all`");
    }
    Ok(())
}

/// What a person still has to do before the hook runs.
fn next_step(harness: Harness) -> Option<&'static str> {
    match harness {
        Harness::Codex => Some(
            "Codex runs no hook that is not trusted: start `codex` in a terminal and trust the hook when it asks. Until \
             then `codex exec` needs --dangerously-bypass-hook-trust.",
        ),
        Harness::Claude | Harness::Gemini | Harness::Opencode => None,
    }
}

fn uninstall(context: &Context, place: &HookPlace) -> Result<(), Failure> {
    let target = target(context, place)?;
    let path = target.path().display().to_string();
    let done = hook::uninstall(&target, &context.home.dir).map_err(|error| unusable(&error))?;
    let (how, sentence) = match done {
        Removed::Restored => ("restored", "the file is what it was before"),
        Removed::TakenOut => ("taken_out", "the file was changed since; only the hook was taken out"),
        Removed::Nothing => ("nothing", "there was no hook; nothing to change"),
    };
    if context.out.is_json() {
        return context.out.json(&json!({ "agent": target.harness.as_str(), "path": path, "done": how }));
    }
    context.out.note(sentence);
    context.out.data(&path)
}

fn target(context: &Context, place: &HookPlace) -> Result<Target, Failure> {
    let lost = |what: &str, error: std::io::Error| {
        Failure::local("hook_install_failed", format!("cannot tell {what}: {error}"), "")
    };
    let project = std::env::current_dir().map_err(|error| lost("which folder this is", error))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| {
        Failure::usage("there is no home folder: HOME is not set", "set HOME, or use --project")
    })?;
    let program = std::env::current_exe().map_err(|error| lost("where this program is", error))?;
    let mut words = vec![word(program)?];
    // Where the data is has to be said when it is not where everybody looks.
    if super::user_folder("XDG_DATA_HOME", ".local/share", "--data-dir")? != context.home.dir {
        words.extend(["--data-dir".to_owned(), word(context.home.dir.clone())?]);
    }
    let scope = if place.project { HookScope::Project } else { HookScope::User };
    Ok(Target { harness: place.agent, scope, home, project, program: words })
}

fn word(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        let title = format!("the path {} cannot be written into settings", path.display());
        Failure::local("hook_install_failed", title, "use a path of UTF-8 characters")
    })
}

fn unusable(error: &dyn std::error::Error) -> Failure {
    Failure::local("hook_install_failed", chain(error), "nothing was changed; mend the file and run it again")
}
