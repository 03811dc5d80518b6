//! `lanyard mcp`: the MCP servers between agents and their tools, with Lanyard in the way of each call.

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::NonEmptyStringValueParser;
use lanyard_api::home::Home;
use lanyard_api::types::{McpAddress, McpCheck, McpEntry, McpKind, McpList, McpState, NewMcpAddress};
use lanyard_client::Route;
use lanyard_client::names::A_SESSION;

use crate::context::Context;
use crate::failure::Failure;
use crate::operator_mcp;
use crate::render::table::{Column, table};
use crate::render::text::{count, one_line};
use crate::wrap;

const EXAMPLES: &str = "\
A stop or a word of guidance reaches an agent in the answer to its next tool call. Agents that
Lanyard runs get their MCP servers that way by themselves; for others, put `lanyard mcp wrap --` in
front of a server's command in mcp.json, or use the address `lanyard mcp url` prints.

Examples:
  lanyard mcp ls
  lanyard mcp check github
  lanyard mcp url github
  lanyard mcp wrap --name files -- npx -y @modelcontextprotocol/server-filesystem .";

/// List, check, address and wrap MCP servers, or be one for your own assistant
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    pub(super) verb: McpVerb,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum McpVerb {
    /// List the servers of the config, and how they are
    Ls,
    /// Print a server's address and header for one session; the header is a secret
    #[command(after_help = URL_EXAMPLES)]
    Url(Url),
    /// Run a server's command with Lanyard in between
    #[command(after_help = WRAP_EXAMPLES)]
    Wrap(McpWrapArgs),
    /// Serve Lanyard's sessions to a person's own assistant, as an MCP server on stdio
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(McpServeArgs),
    /// Connect to a server, greet it and count its tools
    Check {
        /// The server, as `lanyard mcp ls` shows it; all of them when left out
        server: Option<String>,
    },
}

const URL_EXAMPLES: &str = "\
The header authenticates as the session: every program that has it can act as the session. Store it
with other secrets.
Without --session an external session is made for the agent that will use the address.

Examples:
  lanyard mcp url github
  lanyard mcp url github --session fix-login
  lanyard mcp url github --json | jq -r .url";

#[derive(Debug, clap::Args)]
pub(super) struct Url {
    /// The server, as `lanyard mcp ls` shows it
    server: String,
    /// For this session: its id or one of its aliases
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// What the agent of a new session is called
    #[arg(long, value_name = "NAME", conflicts_with = "session")]
    agent: Option<String>,
}

const SERVE_EXAMPLES: &str = "\
For the assistant in your own terminal or editor, not for agents that Lanyard runs: inside of a
session the command is refused. An observer lists, finds and reads sessions; an operator also
starts, prompts, guides and stops them and answers approvals. The first call makes a token of that
role with the name of the assistant; `lanyard token ls` lists it and `lanyard token rm` revokes it.

Examples:
  claude mcp add lanyard -- lanyard mcp serve --role observer
  lanyard mcp serve --role operator --client my-assistant";

#[derive(Debug, clap::Args)]
pub(super) struct McpServeArgs {
    /// What the assistant may do: look only, or everything its tools offer
    #[arg(long, value_enum)]
    role: operator_mcp::ServedRole,
    /// The assistant's name, for its token and the audit [default: what it calls itself]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    client: Option<String>,
}

const WRAP_EXAMPLES: &str = "\
A drop-in for any mcp.json: the server's own command stands behind `--`. Lines pass byte for byte;
only tool calls are asked about. The agent shows up as an `external` session, which can be watched,
guided and stopped like any other. Without a daemon the server works as if it were not wrapped.

Examples:
  lanyard mcp wrap -- uvx mcp-server-git
  lanyard mcp wrap --name files -- npx -y @modelcontextprotocol/server-filesystem .

In mcp.json:
  { \"mcpServers\": { \"git\": { \"command\": \"lanyard\",
    \"args\": [\"mcp\", \"wrap\", \"--name\", \"git\", \"--\", \"uvx\", \"mcp-server-git\"] } } }";

#[derive(Debug, clap::Args)]
pub(super) struct McpWrapArgs {
    /// The server's name, as in mcp.json [default: the command's]
    #[arg(long)]
    name: Option<String>,
    /// The session the calls belong to [default: the agent's own, made when it is new]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// The server's command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl McpWrapArgs {
    /// Wherever it is started: without a home there is no daemon either.
    pub(super) async fn run(self, home: Option<Home>) -> Result<(), Failure> {
        let Self { name, session, command } = self;
        match wrap::run(wrap::Options { name, session, command, home }).await? {
            0 => Ok(()),
            code => Err(Failure::Ended(code)),
        }
    }
}

const COLUMNS: [Column; 8] = [
    Column::whole("SERVER"),
    Column::elastic("AGENT", 5),
    Column::whole("KIND"),
    Column::whole("SHARE"),
    Column::whole("STATE"),
    Column::whole("CALLS"),
    Column::whole("RESTARTS"),
    Column::elastic("LAST ERROR", 10),
];

impl McpArgs {
    /// What needs no daemon, or itself back.
    pub(super) fn into_wrap(self) -> Result<McpWrapArgs, Self> {
        match self.verb {
            McpVerb::Wrap(wrap) => Ok(wrap),
            verb @ (McpVerb::Ls | McpVerb::Url(_) | McpVerb::Serve(_) | McpVerb::Check { .. }) => {
                Err(Self { verb })
            }
        }
    }

    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            McpVerb::Ls => list(context).await,
            McpVerb::Url(url) => url.run(context).await,
            McpVerb::Serve(serve) => operator_mcp::run(context, serve.role, serve.client).await,
            McpVerb::Check { server } => check(context, server).await,
            McpVerb::Wrap(wrap) => wrap.run(Some(context.home.clone())).await,
        }
    }
}

async fn list(context: &Context) -> Result<(), Failure> {
    let list: McpList = context.client().await?.get(&Route::to(&["mcp"])).await?;
    if context.out.is_json() {
        return context.out.list(&list.servers, None);
    }
    if list.servers.is_empty() {
        context.out.note("no MCP servers; add [mcp.NAME] to the config, `lanyard init --print` shows how");
        return Ok(());
    }
    let cells: Vec<Vec<String>> = list.servers.iter().map(cells).collect();
    context.out.data(&table(&COLUMNS, &cells, context.out.columns))
}

fn cells(server: &McpEntry) -> Vec<String> {
    let kind = match server.kind {
        McpKind::Stdio => "stdio",
        McpKind::Http => "http",
        McpKind::BuiltIn => "built in",
    };
    let state = match server.state {
        McpState::Up => "up",
        McpState::Down => "down",
        McpState::NotStarted => "not started",
    };
    vec![
        one_line(&server.name),
        server.agent.as_deref().map(one_line).unwrap_or_default(),
        kind.to_owned(),
        if server.share { "shared" } else { "per session" }.to_owned(),
        state.to_owned(),
        server.calls.to_string(),
        if server.restarts == 0 { String::new() } else { server.restarts.to_string() },
        server.last_error.as_deref().map(one_line).unwrap_or_default(),
    ]
}

impl Url {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let here = std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
        let workspace = if self.session.is_some() { None } else { here };
        let mut client = context.client().await?;
        let session = client.id_if(A_SESSION, self.session).await?;
        let body = NewMcpAddress { session, agent: self.agent, workspace, alias: None };
        let route = Route::to(&["mcp", &self.server, "address"]);
        let address: McpAddress = client.post(&route, &body).await?;
        if context.out.is_json() {
            return context.out.json(&address);
        }
        let mut text = format!("{}\n", one_line(&address.url));
        for (name, value) in &address.headers {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}: {}", one_line(name), one_line(value));
        }
        context.out.note(&format!("for {}; the header is a secret", address.session));
        context.out.data(&text)
    }
}

async fn check(context: &Context, server: Option<String>) -> Result<(), Failure> {
    let mut client = context.client().await?;
    let names = if let Some(server) = server {
        vec![server]
    } else {
        let list: McpList = client.get(&Route::to(&["mcp"])).await?;
        list.servers.into_iter().map(|server| server.name).collect()
    };
    let mut checked: Vec<McpCheck> = Vec::new();
    for name in &names {
        let route = Route::to(&["mcp", name, "check"]);
        checked.push(client.post_part(name, &route, &serde_json::json!({})).await?);
    }
    if context.out.is_json() {
        context.out.json(&checked)?;
    } else {
        context.out.data(&checked.iter().map(verdict).collect::<String>())?;
    }
    if checked.iter().all(|one| one.ok) { Ok(()) } else { Err(Failure::Shown) }
}

fn verdict(checked: &McpCheck) -> String {
    let name = one_line(&checked.name);
    if let Some(error) = checked.error.as_ref().filter(|_| !checked.ok) {
        return format!("{name}: {}\n", one_line(error));
    }
    let said = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
    let who = format!("{} {}", said(&checked.server), said(&checked.version));
    let parts = [
        if checked.ok { "ok".to_owned() } else { "failed".to_owned() },
        who.trim().to_owned(),
        checked
            .protocol
            .as_ref()
            .map(|protocol| format!("protocol {}", one_line(protocol)))
            .unwrap_or_default(),
        checked.tools.map(|tools| count(tools, "tool")).unwrap_or_default(),
    ];
    let said: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{name}: {}\n", said.join(", "))
}
