//! The daemon and its journal, as the commands ask for them. The only file that names both and the commands.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lanyard_api::home::{Home, HomeError};
use lanyard_api::types::BackupReceipt;
use lanyard_cli::{DaemonHost, HostError, JournalCheck, ServeOptions};
use lanyard_core::journal::Report;
use lanyard_daemon::reload::Overrides;
use lanyard_daemon::telemetry::Telemetry;
use lanyard_daemon::{BootError, Options};
use lanyard_store::{Attachments, OpenError, SqliteJournal, SqliteOptions, Upkeep};
use serde_json::Value;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// 5 s in all.
const CLAIM: Duration = Duration::from_millis(20);
const CLAIMS_MAX: u32 = 250;
/// How long threads have that still work when the daemon has ended. What matters was waited for before.
const THREADS_WAIT: Duration = Duration::from_secs(1);
const COPY: &str = "copy the data folder before anything else, then check the disk it is on";

pub(crate) const HOST: DaemonHost = DaemonHost {
    serve,
    openapi,
    sandbox,
    bounds: lanyard_agents::runs::bounds::bounds_here,
    begin_journal,
    back_up,
    verify_backup,
    take_attachments,
    check_journal,
};

fn openapi() -> Value {
    lanyard_daemon::openapi()
}

/// What this machine gives, in a sentence.
fn sandbox() -> Result<String, String> {
    lanyard_agents::sandbox::machine().in_words()
}

fn serve(asked: ServeOptions) -> Result<(), HostError> {
    let ServeOptions { home, mut config, memory_tags, memory_allow, listen, on_ready, warn } = asked;
    // By value from here on: with each session, and never in the environment.
    let overrides = Overrides { memory_tags, memory_allow };
    config.config = overrides.onto(config.config);
    config
        .config
        .memory
        .policy()
        .map_err(|title| HostError::Usage { title, advice: "see `lanyard up --help`" })?;
    let telemetry = log_to_stderr(warn);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| HostError::failed("runtime", format!("cannot start: {error}"), ""))?;
    let ended = runtime.block_on(serve_when_free(|| {
        let on_ready = Arc::clone(&on_ready);
        Options {
            home: home.clone(),
            config: config.clone(),
            overrides: overrides.clone(),
            listen,
            telemetry: telemetry.clone(),
            on_ready: Box::new(move |running, app| on_ready(running, &|| app.sign_in_link().ok())),
        }
    }));
    // A thread that waits for a file system that hangs would otherwise keep the process for ever.
    runtime.shutdown_timeout(THREADS_WAIT);
    ended.map_err(|error| not_booted(&error))
}

/// Runs a daemon. A process that holds the folder without saying who it is only looks (`lanyard doctor`) or has just
/// started: it ends in a moment, or can then be named.
async fn serve_when_free(options: impl Fn() -> Options) -> Result<(), BootError> {
    for _ in 0..CLAIMS_MAX {
        match Box::pin(lanyard_daemon::run(options())).await {
            Err(BootError::Home(HomeError::Taken(None))) => tokio::time::sleep(CLAIM).await,
            ended => return ended,
        }
    }
    Box::pin(lanyard_daemon::run(options())).await
}

/// The daemon's log on stderr, and to a collector where the environment names one.
fn log_to_stderr(warn: fn(&str)) -> Option<Arc<Telemetry>> {
    let asked = std::env::var("LANYARD_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(&asked).unwrap_or_else(|error| {
        warn(&format!("LANYARD_LOG={asked} is not understood ({error}); logging `info`"));
        EnvFilter::new("info")
    });
    let telemetry = Telemetry::from_env().unwrap_or_else(|what| {
        warn(&format!("traces and logs are not collected: {what}"));
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

fn not_booted(error: &BootError) -> HostError {
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
    HostError::failed(code, lanyard_cli::chain(error), advice)
}

fn open(journal: &Path) -> Result<SqliteJournal, OpenError> {
    SqliteJournal::open(SqliteOptions::at(journal.to_owned()))
}

fn unusable(error: &OpenError) -> HostError {
    HostError::failed("journal_unusable", lanyard_cli::chain(error), "run `lanyard doctor`")
}

fn begin_journal(journal: &Path) -> Result<(), HostError> {
    open(journal).map(drop).map_err(|error| unusable(&error))
}

fn back_up(journal: &Path, to: &Path, force: bool) -> Result<BackupReceipt, HostError> {
    let attachments = attachments(journal)?;
    let journal = open(journal).map_err(|error| unusable(&error))?;
    lanyard_daemon::back_up((&journal, &attachments), to, force)
        .map_err(|refusal| HostError::failed(refusal.code, refusal.title, refusal.advice))
}

fn verify_backup(file: &Path) -> Result<Report, String> {
    SqliteJournal::verify(file).map_err(|error| lanyard_cli::chain(&error))
}

fn take_attachments(file: &Path, attachments: &Path) -> Result<u64, String> {
    lanyard_store::take_copied(file, attachments).map_err(|error| lanyard_cli::chain(&error))
}

/// The attachments beside a journal that no daemon has open.
fn attachments(journal: &Path) -> Result<Attachments, HostError> {
    let folder = journal.parent().unwrap_or(Path::new(".")).to_owned();
    let attachments = Attachments::open(Home { dir: folder }.attachments());
    attachments.map_err(|error| HostError::failed("attachments_unusable", lanyard_cli::chain(&error), COPY))
}

fn check_journal(journal: &Path, anew: bool) -> Result<JournalCheck, HostError> {
    let attachments = attachments(journal)?;
    let journal = open(journal).map_err(|error| {
        HostError::failed("journal_unusable", lanyard_cli::chain(&error), advice_on(&error))
    })?;
    let rebuilt = anew.then(|| journal.rebuild().map_err(|error| lanyard_cli::chain(&error)));
    let checked = journal.check().map(|mut report| {
        attachments.verify(&mut report);
        report
    });
    Ok(JournalCheck { rebuilt, report: checked.map_err(|error| lanyard_cli::chain(&error)) })
}

fn advice_on(error: &OpenError) -> &'static str {
    match error {
        OpenError::Newer { .. } => "use the newer Lanyard, or another --data-dir",
        OpenError::Foreign { .. } => "move that file away, or name another --data-dir",
        OpenError::InUse { .. } => "end the process that has it open",
        OpenError::Damaged { .. } | OpenError::Store(_) => COPY,
    }
}
