//! `lanyard agents search|add|update|remove`: agents from the registry, installed into Lanyard's own folder.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::ask::{agreed, can_ask};
use crate::cli::config::agent_entry;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry::install::install;
use crate::registry::{AgentRegistry, RegistryAgent};
use crate::render::table::{Column, table};
use crate::render::text::one_line;

/// The folder of the data folder that installed agents are in.
const FOLDER: &str = "agents";

const COLUMNS: [Column; 4] = [
    Column::whole("AGENT"),
    Column::whole("VERSION"),
    Column::elastic("PACKAGE", 20),
    Column::elastic("DESCRIPTION", 20),
];

/// Where the registry is, and whether to ask.
#[derive(Debug, clap::Args)]
pub(super) struct RegistryArgs {
    /// A registry file in the form of the ACP registry, in place of the pinned copy
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
}

/// Whether to ask before something is changed.
#[derive(Debug, clap::Args)]
pub(super) struct AgreedArgs {
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
}

impl AgreedArgs {
    /// Asks on a terminal; without one it has to be said before.
    fn agreed(&self, context: &Context, what: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !can_ask() {
            return Err(Failure::local("confirmation_needed", format!("{what} needs a yes"), "say --yes"));
        }
        agreed(context, &format!("{what}?"))
    }
}

pub(super) fn search(context: &Context, words: &[String], from: &RegistryArgs) -> Result<(), Failure> {
    let registry = AgentRegistry::open(from.registry.as_deref())?;
    let found = registry.search(words);
    if context.out.is_json() {
        return context.out.list(&found, None);
    }
    let cells: Vec<Vec<String>> = found.iter().map(|agent| row(agent)).collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))
}

fn row(agent: &RegistryAgent) -> Vec<String> {
    let package = agent.package().map(|(installer, package)| {
        let names = format!("{}: {}", installer.program(), package.spec);
        one_line(&names)
    });
    vec![
        agent.id.clone(),
        one_line(&agent.version),
        package.unwrap_or_else(|_| "not offered".to_owned()),
        one_line(&agent.description),
    ]
}

pub(super) async fn add(
    context: &Context,
    name: &str,
    from: &RegistryArgs,
    sure: &AgreedArgs,
) -> Result<(), Failure> {
    let registry = AgentRegistry::open(from.registry.as_deref())?;
    let agent = registry.named(name)?.clone();
    if agent_entry::command_of(context, name)?.is_some() {
        let title = format!("the config has an agent `{name}`");
        let advice =
            "update an agent that was added with `lanyard agents update`; rename your own entry otherwise";
        return Err(Failure::local("agent_exists", title, advice));
    }
    put(context, agent, None, sure).await
}

pub(super) async fn update(
    context: &Context,
    name: &str,
    from: &RegistryArgs,
    sure: &AgreedArgs,
) -> Result<(), Failure> {
    let registry = AgentRegistry::open(from.registry.as_deref())?;
    let agent = registry.named(name)?.clone();
    let folder = added_folder(context, name)?;
    if folder.file_name().and_then(|file| file.to_str()).is_some_and(|file| file.starts_with(&prefix(&agent)))
    {
        context.out.note(&format!("{name} {} is installed", agent.version));
        return Ok(());
    }
    put(context, agent, Some(&folder), sure).await
}

pub(super) fn remove(context: &Context, name: &str, sure: &AgreedArgs) -> Result<(), Failure> {
    let folder = added_folder(context, name)?;
    if !sure.agreed(context, &format!("Remove the agent `{name}` and {}", folder.display()))? {
        nothing(context);
        return Ok(());
    }
    // The config first: an entry without its program would be worse than a folder without an entry.
    agent_entry::remove(context, name)?;
    sweep(context, name, &[]);
    context.out.note(&format!("{name} is removed"));
    Ok(())
}

async fn put(
    context: &Context,
    agent: RegistryAgent,
    before: Option<&Path>,
    sure: &AgreedArgs,
) -> Result<(), Failure> {
    let (installer, package) = agent.package()?;
    let (tool, env) = (installer.program(), package.env.clone());
    let license = if agent.license.is_empty() { "unknown" } else { &agent.license };
    let verb = if before.is_some() { "Update to" } else { "Install" };
    let what = format!("{verb} {} with {tool} (license: {})", one_line(&package.spec), one_line(license));
    if !sure.agreed(context, &what)? {
        nothing(context);
        return Ok(());
    }
    let name = agent.id.clone();
    // A name of its own for each install: the config is what makes it the agent's.
    let unique = format!("{}{}", prefix(&agent), std::process::id());
    let folder = home_folder(context).join(unique);
    let _ = std::fs::remove_dir_all(&folder);
    let installing = tokio::task::spawn_blocking(move || install(&agent, &folder));
    let done = installing.await.map_err(|error| Failure::local("defect", error.to_string(), ""))??;
    if let Err(failure) = agent_entry::put(context, &name, &done.command, &env) {
        let _ = std::fs::remove_dir_all(&done.folder);
        return Err(failure);
    }
    // Agents that run may still read the version before.
    let kept: Vec<&Path> = before.into_iter().chain([done.folder.as_path()]).collect();
    sweep(context, &name, &kept);
    if context.out.is_json() {
        return context.out.json(&json!({ "agent": name, "command": done.command }));
    }
    context.out.note(&format!("{name} is in the config; try it with `lanyard agents check {name}`"));
    context.out.data(&done.command.join(" "))
}

fn nothing(context: &Context) {
    context.out.note("nothing was changed");
}

fn home_folder(context: &Context) -> PathBuf {
    context.home.dir.join(FOLDER)
}

/// The beginning of the folder's name of this version.
fn prefix(agent: &RegistryAgent) -> String {
    let version: String =
        agent.version.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect();
    format!("{}@{version}@", agent.id)
}

/// The folder of an agent that was added from the registry.
fn added_folder(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    let home = home_folder(context);
    let command = agent_entry::command_of(context, name)?.unwrap_or_default();
    let below = command.first().and_then(|program| Path::new(program).strip_prefix(&home).ok());
    let first = below.and_then(|below| below.components().next());
    match first {
        Some(first) if first.as_os_str().to_string_lossy().starts_with(&format!("{name}@")) => {
            Ok(home.join(first.as_os_str()))
        }
        _ => {
            let title = format!("`{name}` was not added from the registry");
            let advice = "change its entry with `lanyard config edit`; `lanyard agents add` adds one";
            Err(Failure::local("agent_not_added", title, advice))
        }
    }
}

/// Removes what else is installed of an agent: older versions, and what an install that was killed left behind.
fn sweep(context: &Context, name: &str, keep: &[&Path]) {
    let Ok(entries) = std::fs::read_dir(home_folder(context)) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.starts_with(&format!("{name}@"))
            && !keep.contains(&path.as_path())
            && let Err(error) = std::fs::remove_dir_all(&path)
        {
            context.out.warn(&format!("{} could not be removed: {error}", path.display()));
        }
    }
}
