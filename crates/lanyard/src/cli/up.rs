//! `lanyard up`: run the daemon, here or in the background.

use std::io::IsTerminal;
use std::net::SocketAddr;

use lanyard_daemon::home::{HomeError, Running};
use lanyard_daemon::{BootError, Options};
use tracing_subscriber::EnvFilter;

use super::block_on;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::launch::{self, Launched};

const EXAMPLES: &str = "\
Commands that need the daemon start one by themselves unless LANYARD_NO_START=1 is set.
LANYARD_LOG says how much is logged, for example LANYARD_LOG=debug.

Examples:
  lanyard up --detach
  lanyard up --listen 127.0.0.1:0
  LANYARD_LOG=lanyard_daemon=trace lanyard up";

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
    /// Set for the process `--detach` starts: leave the terminal's session, whose end must not be this one's.
    #[arg(long, hide = true, conflicts_with = "detach")]
    in_background: bool,
}

impl Up {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.detach { block_on(self.detach(context)) } else { self.serve(context) }
    }

    async fn detach(self, context: &Context) -> Result<(), Failure> {
        let launched = match launch::answering(context).await? {
            Some(daemon) => Launched::Elsewhere(daemon),
            None => launch::detached(context, self.listen).await?,
        };
        let (daemon, sentence) = match launched {
            Launched::Here(daemon) => (daemon, "a daemon was started"),
            Launched::Elsewhere(daemon) => (daemon, "a daemon already runs"),
        };
        context.out.note(&format!("{sentence} (pid {}, version {})", daemon.pid, daemon.version));
        if context.out.is_json() {
            return context.out.json(&serde_json::json!({
                "pid": daemon.pid,
                "address": daemon.address,
                "version": daemon.version,
            }));
        }
        context.out.data(&daemon.url())
    }

    fn serve(self, context: &Context) -> Result<(), Failure> {
        if self.in_background {
            // Fails only for the leader of a process group, which has left the terminal's session already.
            let _ = rustix::process::setsid();
        }
        let config = context.config()?;
        log_to_stderr();
        let out = context.out;
        let on_ready = Box::new(move |running: &Running| {
            // A reader of the address that has gone away is no reason not to serve.
            let _ = if out.is_json() {
                out.json(running)
            } else {
                out.data(&format!("http://{}", running.address))
            };
        });
        let options = Options { home: context.home.dir.clone(), config, listen: self.listen, on_ready };
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::local("runtime", format!("cannot start: {error}"), ""))?
            .block_on(lanyard_daemon::run(options))
            .map_err(|error| not_booted(&error))
    }
}

fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("LANYARD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // Fails only where a subscriber is set already, which then does the work.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

fn not_booted(error: &BootError) -> Failure {
    let (code, advice) = if let BootError::Home(HomeError::Taken(_)) = error {
        ("daemon_already_runs", "use that one, end it with `lanyard down`, or name another --data-dir")
    } else if let BootError::Listen { .. } = error {
        ("address_unusable", "set another `listen` in the config, or `lanyard up --listen 127.0.0.1:0`")
    } else {
        ("daemon_boot_failed", "run `lanyard doctor`")
    };
    Failure::local(code, chain(error), advice)
}
