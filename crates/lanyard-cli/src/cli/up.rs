//! `lanyard up`: run the daemon, here or in the background.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use lanyard_api::home::{Home, Running};
use lanyard_api::types::NewSignInLink;

use super::{block_on, open};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::host::{DaemonHost, ServeOptions};
use crate::launch::{self, Launched};
use crate::out::{Out, warn};

const EXAMPLES: &str = "\
Commands that need the daemon start one by themselves unless LANYARD_NO_START=1 is set.
LANYARD_LOG says how much is logged, for example LANYARD_LOG=debug.
A missing journal in a folder that was used before is refused: `lanyard restore` brings one back, --new-journal starts with an empty one.
A person who starts it is also shown a link to the dashboard; `lanyard open` makes further ones.

Examples:
  lanyard up --detach
  lanyard up --listen 127.0.0.1:0
  LANYARD_LOG=lanyard_engine=trace,lanyard_agents=trace lanyard up";

/// Run the daemon and print its address
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Up {
    /// Run in the background; return once it answers
    #[arg(long, short)]
    detach: bool,
    /// Where the HTTP API listens; port 0 takes a free one [default: from the config, 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// A tag put on everything sessions write that begin while it runs; may be given more than once
    #[arg(long = "memory-tag", value_name = "TAG")]
    memory_tags: Vec<String>,
    /// Their allow-list for long-term memory in the mode selective; may be given more than once
    #[arg(long = "memory-allow", value_name = "TAG")]
    memory_allow: Vec<String>,
    /// Begin a new journal where the old one is missing; its sessions are lost
    #[arg(long)]
    new_journal: bool,
    /// Set for the process `--detach` starts: leave the terminal's session, whose end must not be this one's.
    #[arg(long, hide = true, conflicts_with = "detach")]
    in_background: bool,
}

impl Up {
    pub(super) fn run(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        if self.new_journal {
            begin_journal(context, host)?;
        }
        if self.detach { block_on(self.detach(context)) } else { self.serve(context, host) }
    }

    async fn detach(self, context: &Context) -> Result<(), Failure> {
        let memory = (self.memory_tags.as_slice(), self.memory_allow.as_slice());
        let launched = match launch::answering(context).await? {
            Some(daemon) => Launched::Elsewhere(daemon),
            None => launch::detached(context, self.listen, memory).await?,
        };
        let (daemon, sentence) = match launched {
            Launched::Here(daemon) => (daemon, "a daemon was started"),
            Launched::Elsewhere(daemon) => (daemon, "a daemon already runs"),
        };
        context.out.note(&format!("{sentence} (pid {}, version {})", daemon.pid, daemon.version));
        let sign_in = sign_in(context).await;
        if context.out.is_json() {
            return context.out.json(&serde_json::json!({
                "pid": daemon.pid,
                "address": daemon.address,
                "version": daemon.version,
                "sign_in": sign_in,
            }));
        }
        if let Some(url) = sign_in {
            context.out.note(&dashboard(&url));
        }
        context.out.data(&daemon.url())
    }

    fn serve(self, context: &Context, host: &DaemonHost) -> Result<(), Failure> {
        if self.in_background {
            // Fails only for the leader of a process group, which has left the terminal's session already.
            let _ = rustix::process::setsid();
        }
        let (out, in_background) = (context.out, self.in_background);
        let options = ServeOptions {
            home: context.home.dir.clone(),
            config: context.config_file()?,
            memory_tags: self.memory_tags,
            memory_allow: self.memory_allow,
            listen: self.listen,
            on_ready: Arc::new(move |running, link| announce(out, in_background, running, link)),
            warn,
        };
        Ok((host.serve)(options)?)
    }
}

/// Makes an empty journal, unless there is one. A folder that a daemon has used before is not begun anew unasked.
fn begin_journal(context: &Context, host: &DaemonHost) -> Result<(), Failure> {
    let home = Home::create(&context.home.dir).map_err(|error| {
        Failure::local("data_dir_unusable", chain(&error), "name another one with --data-dir")
    })?;
    if home.journal().exists() {
        context.out.note("the journal is there; it is used as it is");
        return Ok(());
    }
    Ok((host.begin_journal)(&home.journal())?)
}

/// Says where it is. A link into the dashboard is for JSON and for terminals: it does not
/// belong into a log.
fn announce(out: Out, in_background: bool, running: &Running, link: &dyn Fn() -> Option<String>) {
    // A reader of the address that has gone away is no reason not to serve.
    let _ = if out.is_json() {
        let sign_in = if in_background { None } else { link() };
        out.json(&Ready { running, sign_in })
    } else {
        out.data(&format!("http://{}", running.address))
    };
    if !out.is_json()
        && !in_background
        && std::io::stderr().is_terminal()
        && let Some(url) = link()
    {
        out.note(&dashboard(&url));
    }
}

/// What a program is told of the daemon it runs.
#[derive(Debug, serde::Serialize)]
struct Ready<'a> {
    #[serde(flatten)]
    running: &'a Running,
    /// A link that signs a browser in, once.
    sign_in: Option<String>,
}

/// A link from the daemon that runs; none from one that does not know of them yet.
async fn sign_in(context: &Context) -> Option<String> {
    let mut client = context.client_if_running().await.ok()??;
    open::link(&mut client, &NewSignInLink::default()).await.ok().map(|link| link.url)
}

fn dashboard(url: &str) -> String {
    format!("dashboard: {url} (good once, for ten minutes)")
}
