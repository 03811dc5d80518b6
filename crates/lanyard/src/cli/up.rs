//! `lanyard up`: run the daemon, here or in the background.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::home::{Home, HomeError, Running};
use lanyard_api::types::NewSignInLink;
use lanyard_daemon::api::App;
use lanyard_daemon::reload::Overrides;
use lanyard_daemon::telemetry::Telemetry;
use lanyard_daemon::{BootError, Options};
use lanyard_store::{SqliteJournal, SqliteOptions};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{block_on, open};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::launch::{self, Launched};
use crate::out::Out;

const EXAMPLES: &str = "\
Commands that need the daemon start one by themselves unless LANYARD_NO_START=1 is set.
LANYARD_LOG says how much is logged, for example LANYARD_LOG=debug.
A missing journal in a folder that was used before is refused: `lanyard restore` brings one back, --new-journal starts with an empty one.
A person who starts it is also shown a link to the dashboard; `lanyard open` makes further ones.

Examples:
  lanyard up --detach
  lanyard up --listen 127.0.0.1:0
  LANYARD_LOG=lanyard_daemon=trace lanyard up";

/// 5 s in all.
const CLAIM: Duration = Duration::from_millis(20);
const CLAIMS_MAX: u32 = 250;
/// How long threads have that still work when the daemon has ended. What matters was waited for before.
const THREADS_WAIT: Duration = Duration::from_secs(1);

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
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        if self.new_journal {
            begin_journal(context)?;
        }
        if self.detach { block_on(self.detach(context)) } else { self.serve(context) }
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

    fn serve(self, context: &Context) -> Result<(), Failure> {
        if self.in_background {
            // Fails only for the leader of a process group, which has left the terminal's session already.
            let _ = rustix::process::setsid();
        }
        let mut config = context.config_file()?;
        // By value from here on: with each session, and never in the environment.
        let overrides = Overrides { memory_tags: self.memory_tags, memory_allow: self.memory_allow };
        config.config = overrides.onto(config.config);
        config.config.memory.policy().map_err(|what| Failure::usage(what, "see `lanyard up --help`"))?;
        let (out, in_background) = (context.out, self.in_background);
        let telemetry = log_to_stderr(out);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::local("runtime", format!("cannot start: {error}"), ""))?;
        let ended = runtime.block_on(serve_when_free(|| Options {
            home: context.home.dir.clone(),
            config: config.clone(),
            overrides: overrides.clone(),
            listen: self.listen,
            telemetry: telemetry.clone(),
            on_ready: Box::new(move |running, app| announce(out, in_background, running, app)),
        }));
        // A thread that waits for a file system that hangs would otherwise keep the process for ever.
        runtime.shutdown_timeout(THREADS_WAIT);
        ended.map_err(|error| not_booted(&error))
    }
}

/// Makes an empty journal, unless there is one. A folder that a daemon has used before is not begun anew unasked.
fn begin_journal(context: &Context) -> Result<(), Failure> {
    let home = Home::create(&context.home.dir).map_err(|error| {
        Failure::local("data_dir_unusable", chain(&error), "name another one with --data-dir")
    })?;
    if home.journal().exists() {
        context.out.note("the journal is there; it is used as it is");
        return Ok(());
    }
    let made = SqliteJournal::open(SqliteOptions::at(home.journal()));
    made.map(drop).map_err(|error| Failure::local("journal_unusable", chain(&error), "run `lanyard doctor`"))
}

/// Runs a daemon. Whoever holds the folder without saying who it is only looks (`lanyard doctor`) or has just started:
/// it is gone in a moment, or can then be named.
async fn serve_when_free(options: impl Fn() -> Options) -> Result<(), BootError> {
    for _ in 0..CLAIMS_MAX {
        match Box::pin(lanyard_daemon::run(options())).await {
            Err(BootError::Home(HomeError::Taken(None))) => tokio::time::sleep(CLAIM).await,
            ended => return ended,
        }
    }
    Box::pin(lanyard_daemon::run(options())).await
}

/// Says where it is. A link into the dashboard is for whoever asked for JSON or sits before a terminal: it does not
/// belong into a log.
fn announce(out: Out, in_background: bool, running: &Running, app: &App) {
    let link = || app.sign_in_link().ok();
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

/// The daemon's log on stderr, and to a collector where the environment names one.
fn log_to_stderr(out: Out) -> Option<Arc<Telemetry>> {
    let asked = std::env::var("LANYARD_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(&asked).unwrap_or_else(|error| {
        out.warn(&format!("LANYARD_LOG={asked} is not understood ({error}); logging `info`"));
        EnvFilter::new("info")
    });
    let telemetry = Telemetry::from_env().unwrap_or_else(|what| {
        out.warn(&format!("traces and logs are not collected: {what}"));
        None
    });
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let records = telemetry.as_ref().and_then(Telemetry::layer);
    // Fails only where a subscriber is set already, which then does the work.
    let _ = tracing_subscriber::registry().with(filter).with(lines).with(records).try_init();
    telemetry
}

fn not_booted(error: &BootError) -> Failure {
    let (code, advice) = if let BootError::Home(HomeError::Taken(_)) = error {
        ("daemon_already_runs", "use that one, end it with `lanyard down`, or name another --data-dir")
    } else if let BootError::Listen { .. } = error {
        ("address_unusable", "set another `listen` in the config, or `lanyard up --listen 127.0.0.1:0`")
    } else if let BootError::JournalMissing { .. } = error {
        (
            "journal_missing",
            "bring the file back, restore a backup with `lanyard restore FILE`, or start empty with `lanyard up --new-journal`",
        )
    } else {
        ("daemon_boot_failed", "run `lanyard doctor`")
    };
    Failure::local(code, chain(error), advice)
}
