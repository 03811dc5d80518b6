//! A first start: which agents are there, a config for them, hooks, and the daemon. `lanyard init` does it without a
//! question, `lanyard` alone on a terminal asks (`init/guided.rs`); both carry out the same choices.

mod found;
mod glance;
mod guided;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum;
use lanyard_api::agents::known::Known;
use lanyard_api::config::{DEFAULT_LISTEN, TEMPLATE};
use serde::Serialize;

use self::found::FoundAgent;
use super::config::{Keep, write_file};
use super::hook;
use crate::context::Context;
use crate::failure::Failure;
use crate::hook::Harness;
use crate::launch::{self, Launched};

pub(super) use glance::glance;
pub(super) use guided::guided;

const EXAMPLES: &str = "\
Every setting is there with its default, commented out, and an entry for each agent that is
installed. The default agent is the first that is signed in, else the first; --default names another.
`lanyard` alone, on a terminal, asks instead. Nothing but the config is written unless you say so.

Examples:
  lanyard init
  lanyard init --default claude --hooks --start
  lanyard init --print | less";

/// Find agents, write a config for them, and print what was found
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// Overwrite a file that is there
    #[arg(long)]
    force: bool,
    /// Print the config instead of writing it
    #[arg(long, conflicts_with_all = ["hooks", "start"])]
    print: bool,
    /// The default agent, one of those that are found
    #[arg(long, value_name = "AGENT")]
    default: Option<String>,
    #[command(flatten)]
    also: Also,
}

/// What is done besides writing the config.
#[derive(Debug, clap::Args)]
struct Also {
    /// Install Lanyard's hooks for the agents that are found
    #[arg(long)]
    hooks: bool,
    /// Start the daemon
    #[arg(long)]
    start: bool,
}

/// What a first start does.
#[derive(Debug)]
struct StartChoices {
    keep: Keep,
    default: Option<String>,
    hooks: Vec<Harness>,
    start: bool,
}

/// What a first start did.
#[derive(Debug, Serialize)]
struct StartReport {
    config: PathBuf,
    /// Names of the agents in the config.
    agents: Vec<&'static str>,
    default_agent: Option<String>,
    found: Vec<FoundAgent>,
    /// Settings files that have a hook now.
    hooks: Vec<PathBuf>,
    /// Where the daemon is, if it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<String>,
}

impl Init {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        let found = found::agents();
        let default = match self.default {
            Some(name) => Some(found::named(&found, &name)?),
            None => found::suggested(&found).map(str::to_owned),
        };
        if self.print {
            let agents = found.iter().map(|agent| &agent.known);
            return context.out.data(&text(agents, default.as_deref(), port_is_taken()));
        }
        let keep = if self.force { Keep::Nothing } else { Keep::Existing };
        let hooks = if self.also.hooks { found.iter().filter_map(harness).collect() } else { Vec::new() };
        let done =
            carry_out(context, found, StartChoices { keep, default, hooks, start: self.also.start }).await?;
        if context.out.is_json() {
            return context.out.json(&done);
        }
        context.out.note(&found::table(&done.found));
        context.out.note(&told(&done));
        context.out.data(&done.config.display().to_string())
    }
}

/// Writes the config, then the hooks, then starts the daemon. Each step is whole or not at all.
async fn carry_out(
    context: &Context,
    found: Vec<FoundAgent>,
    choices: StartChoices,
) -> Result<StartReport, Failure> {
    // A daemon that runs here has the port rightly.
    let taken = port_is_taken() && launch::answering(context).await?.is_none();
    if taken {
        context
            .out
            .note(&format!("{DEFAULT_LISTEN} is in use; the config has the daemon take any free port"));
    }
    let text = text(found.iter().map(|agent| &agent.known), choices.default.as_deref(), taken);
    let config = write_file(&context.config_path, &text, choices.keep)?;
    let mut hooks = Vec::new();
    for harness in choices.hooks {
        let (path, step) = hook::put(context, &hook::HookPlace::of_user(harness))?;
        hooks.push(path);
        if let Some(step) = step {
            context.out.note(step);
        }
    }
    let daemon = if choices.start { Some(started(context).await?) } else { None };
    let agents = found.iter().map(|agent| agent.known.name).collect();
    Ok(StartReport { config, agents, default_agent: choices.default, found, hooks, daemon })
}

/// The address of the daemon, started where none runs.
async fn started(context: &Context) -> Result<String, Failure> {
    let launched = match launch::answering(context).await? {
        Some(daemon) => Launched::Elsewhere(daemon),
        None => launch::detached(context, None, (&[], &[])).await?,
    };
    match launched {
        Launched::Here(daemon) | Launched::Elsewhere(daemon) => Ok(daemon.url()),
    }
}

/// The harness whose hook an agent runs; none for those that are run through an adapter.
fn harness(agent: &FoundAgent) -> Option<Harness> {
    Harness::value_variants().iter().copied().find(|harness| harness.as_str() == agent.known.name)
}

/// What was done, in one line each.
fn told(done: &StartReport) -> String {
    let mut lines = Vec::new();
    match &done.default_agent {
        Some(default) => lines.push(format!("the default agent is {default}")),
        None => lines.push("no agent is configured; `lanyard demo` works without one".to_owned()),
    }
    lines.extend(done.hooks.iter().map(|path| format!("hook installed in {}", path.display())));
    lines.extend(done.daemon.iter().map(|url| format!("the daemon runs at {url}")));
    lines.join("\n")
}

/// Whether another program has the port that a daemon takes by default.
fn port_is_taken() -> bool {
    let tried = std::net::TcpListener::bind(DEFAULT_LISTEN);
    tried.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

/// The template, with a table for each agent that is installed here, one of them as the default, and any free port if
/// the usual one is taken.
fn text<'a>(found: impl Iterator<Item = &'a Known>, default: Option<&str>, taken: bool) -> String {
    let mut text = TEMPLATE.to_owned();
    if taken {
        let usual = format!("# listen = \"{DEFAULT_LISTEN}\"\n");
        text = text.replacen(&usual, &format!("{usual}listen = \"127.0.0.1:0\"\n"), 1);
    }
    if let Some(default) = default {
        let set = format!("default_agent = \"{default}\"\n");
        text = text.replacen("# default_agent = \"example\"\n", &set, 1);
    }
    for known in found {
        text.push_str(&entry(known));
    }
    text
}

fn entry(known: &Known) -> String {
    let settings = known.settings();
    // A list of strings reads the same in JSON and in TOML.
    let list = |words: &[String]| serde_json::to_string(words).unwrap_or_default();
    let mut text = format!(
        "\n[agents.{}]\ndriver = \"{}\"\ncommand = {}\n",
        known.name,
        settings.driver.as_str(),
        list(&settings.command)
    );
    if let Some(files) = settings.client_files {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "client_files = \"{}\"", files.as_str());
    }
    text.push_str("# turn_timeout_ms = 0\n# abort_on_timeout = false\n");
    for line in known.reason().unwrap_or_default().lines() {
        let _ = writeln!(text, "# {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use lanyard_api::agents::known::KNOWN;
    use lanyard_api::config::Config;

    use super::*;

    /// FND-N4.
    #[test]
    fn fnd_n4_the_agents_that_are_found_are_configured_and_one_is_the_default() {
        let read = |found: &[Known], default: Option<&str>| {
            Config::parse(std::path::Path::new("c"), &text(found.iter(), default, true)).unwrap()
        };
        assert_eq!(read(&[], None).daemon.listen.port(), 0, "the usual port is taken");
        assert_eq!(read(&[], None).default_agent(), None);
        let several = read(&KNOWN, Some("codex"));
        assert_eq!(several.default_agent().as_deref(), Some("codex"));
        assert_eq!(several.agents.len(), KNOWN.len());
    }

    #[test]
    fn an_entry_is_read_back_as_the_settings_it_was_made_from() {
        for known in KNOWN {
            let text = TEMPLATE.to_owned() + &entry(&known);
            let config = Config::parse(std::path::Path::new("c"), &text).unwrap();
            assert_eq!(config.agents.get(known.name), Some(&known.settings()));
        }
    }
}
