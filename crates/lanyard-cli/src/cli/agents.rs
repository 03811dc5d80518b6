//! `lanyard agents`: which agents there are, and whether one works.

mod added;

use lanyard_api::types::{AgentCheck, AgentDetail, AgentList};
use lanyard_client::Route;
use lanyard_core::session::{AgentAbility, AgentLack, Capabilities};
use serde_json::json;

use self::added::{AgreedArgs, RegistryArgs};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::offer::offer_lines;
use crate::render::table::{Column, table};
use crate::render::text::one_line;

const COLUMNS: [Column; 6] = [
    Column::whole("AGENT"),
    Column::whole("DRIVER"),
    Column::whole("STATE"),
    Column::elastic("VERSION", 7),
    Column::elastic("CAN", 10),
    Column::elastic("COMMAND", 20),
];

const EXAMPLES: &str = "\
Lists the agents of the config, the built-in `demo`, and what else is installed where the daemon
looks for programs. `lanyard init` writes what it finds into a config.

`add` installs an agent of the ACP registry into the data folder, with npm or uv, and writes its
entry into the config. It asks first; without a terminal, say --yes. No script of a package runs.

Examples:
  lanyard agents
  lanyard agents --versions
  lanyard agents check opencode
  lanyard agents show opencode
  lanyard agents search claude
  lanyard agents add gemini --yes";

/// List agents, try one, or add one from the registry
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Agents {
    /// Ask each program for its version
    #[arg(long)]
    versions: bool,
    #[command(subcommand)]
    verb: Option<AgentsVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum AgentsVerb {
    /// Start an agent, greet it, say what it can do, and end it
    Check {
        /// The agent, as the config names it
        name: String,
    },
    /// Show an agent with the models, modes, effort levels and commands it last offered
    Show {
        /// The agent, as the config names it
        name: String,
    },
    /// List the agents of the registry
    Search {
        /// Words that each have to be in the name or the description
        words: Vec<String>,
        #[command(flatten)]
        from: RegistryArgs,
    },
    /// Install an agent of the registry and write its config entry
    Add {
        /// The agent, as the registry names it
        name: String,
        #[command(flatten)]
        from: RegistryArgs,
        #[command(flatten)]
        sure: AgreedArgs,
    },
    /// Install the registry's version of an agent that was added
    Update {
        /// The agent, as the config names it
        name: String,
        #[command(flatten)]
        from: RegistryArgs,
        #[command(flatten)]
        sure: AgreedArgs,
    },
    /// Remove an agent that was added, with its config entry
    Remove {
        /// The agent, as the config names it
        name: String,
        #[command(flatten)]
        sure: AgreedArgs,
    },
}

impl Agents {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            None => list(context, self.versions).await,
            Some(AgentsVerb::Check { name }) => check(context, &name).await,
            Some(AgentsVerb::Show { name }) => show(context, &name).await,
            Some(AgentsVerb::Search { words, from }) => added::search(context, &words, &from),
            Some(AgentsVerb::Add { name, from, sure }) => added::add(context, &name, &from, &sure).await,
            Some(AgentsVerb::Update { name, from, sure }) => {
                added::update(context, &name, &from, &sure).await
            }
            Some(AgentsVerb::Remove { name, sure }) => added::remove(context, &name, &sure),
        }
    }
}

async fn list(context: &Context, versions: bool) -> Result<(), Failure> {
    let route = Route::to(&["agents"]).with("versions", versions.then_some("true"));
    let list: AgentList = context.client().await?.get(&route).await?;
    if context.out.is_json() {
        return context.out.list_with(&list.agents, None, &json!({ "default": list.default }));
    }
    let cells: Vec<Vec<String>> = list
        .agents
        .iter()
        .map(|agent| {
            let state = match (agent.configured, &agent.found, &agent.checked) {
                (_, None, _) => "not found",
                (false, Some(_), _) => "installed, not configured",
                (true, Some(_), Some(check)) if !check.works => "does not work",
                (true, Some(_), Some(_)) => "works",
                (true, Some(_), None) => "configured",
            };
            let checked = agent.checked.as_ref();
            let told = checked.and_then(|check| check.info.as_ref()?.version.clone());
            let can = checked.and_then(|check| check.capabilities).map(able).unwrap_or_default();
            vec![
                one_line(&agent.name),
                agent.driver.as_str().to_owned(),
                if Some(&agent.name) == list.default.as_ref() {
                    format!("{state}, default")
                } else {
                    state.to_owned()
                },
                one_line(&agent.version.clone().or(told).unwrap_or_default()),
                can.join(", "),
                one_line(&agent.command.join(" ")),
            ]
        })
        .collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))
}

async fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let detail: AgentDetail = context.client().await?.get(&Route::to(&["agents", name])).await?;
    if context.out.is_json() {
        return context.out.json(&detail);
    }
    let agent = &detail.agent;
    let mut text = format!(
        "{}  driver {}, {}\n",
        one_line(&agent.name),
        agent.driver.as_str(),
        one_line(&agent.command.join(" "))
    );
    if let Some(offer) = &detail.offer {
        text.push_str(&offer_lines(offer));
    } else {
        text.push_str("\nnot asked yet what it offers; ask it with `lanyard agents check ");
        text.push_str(name);
        text.push_str("`\n");
    }
    text.push_str(&lack_lines(&detail.lacks));
    context.out.data(&text)
}

/// What it cannot do besides what the menus show already.
fn lack_lines(lacks: &[AgentLack]) -> String {
    let is_shown =
        |what: AgentAbility| matches!(what, AgentAbility::Model | AgentAbility::Mode | AgentAbility::Effort);
    let rest: Vec<&AgentLack> = lacks.iter().filter(|lack| !is_shown(lack.what)).collect();
    let line = |text: String, lack: &&AgentLack| {
        format!("{text}  {:<10}{}\n", lack.what.as_str(), one_line(&lack.to_string()))
    };
    let heading = if rest.is_empty() { String::new() } else { "\ncannot\n".to_owned() };
    rest.iter().fold(heading, line)
}

async fn check(context: &Context, name: &str) -> Result<(), Failure> {
    // An agent may take as long to greet as its settings allow.
    let route = Route::to(&["agents", name, "check"]);
    let check: AgentCheck = context.client().await?.post_patiently(&route, &serde_json::json!({})).await?;
    if context.out.is_json() {
        context.out.json(&check)?;
        return if check.works { Ok(()) } else { Err(Failure::Shown) };
    }
    if let Some(problem) = check.problem {
        let title = format!("{name} cannot be worked with: {}", problem.what);
        return Err(Failure::local(&problem.code, title, advice(&problem.code)));
    }
    let mut text = String::new();
    if let Some(info) = &check.info {
        let version = info.version.as_deref().map(|version| format!(" {}", one_line(version)));
        text = format!(
            "{}{}, speaks {}\n",
            one_line(&info.name),
            version.unwrap_or_default(),
            one_line(&info.protocol)
        );
    }
    for (name, can) in features(check.capabilities.unwrap_or_default()) {
        text.push_str(if can { "  yes  " } else { "  no   " });
        text.push_str(name);
        text.push('\n');
    }
    for warning in &check.warnings {
        context.out.note(&format!("warning: {}", one_line(warning)));
    }
    context.out.data(&text)
}

fn advice(code: &str) -> &'static str {
    match code {
        "agent_program_missing" | "agent_not_executable" => {
            "install it, or correct its `command` in the config; the daemon's PATH counts"
        }
        "handshake_timeout" => "start it by hand to see what it waits for, or raise `handshake_timeout_ms`",
        _ => "start its command by hand to see what it says, and correct it in the config",
    }
}

fn able(capabilities: Capabilities) -> Vec<&'static str> {
    features(capabilities).into_iter().filter(|(_, can)| *can).map(|(name, _)| name).collect()
}

/// Every capability by its name, in the order they matter.
fn features(can: Capabilities) -> [(&'static str, bool); 14] {
    [
        ("load", can.load),
        ("resume", can.resume),
        ("fork", can.fork),
        ("cancel", can.cancel),
        ("steer", can.steer),
        ("permissions", can.permissions),
        ("children", can.children),
        ("compact", can.compact),
        ("mcp http", can.mcp_http),
        ("mcp stdio", can.mcp_stdio),
        ("mcp sse", can.mcp_sse),
        ("images", can.images),
        ("list", can.list),
        ("close", can.close),
    ]
}
