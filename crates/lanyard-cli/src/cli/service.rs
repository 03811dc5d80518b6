//! `lanyard service`: the daemon as a service of the user's systemd.

mod systemd;
mod unit;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use self::systemd::{UNIT, UnitState};
use self::unit::UnitValues;
use super::{base_folder, down};
use crate::context::Context;
use crate::failure::Failure;
use crate::launch;

const POLL: Duration = Duration::from_millis(50);
/// 30 s, as long as `lanyard up --detach` waits for an answer.
const POLLS_MAX: u32 = 600;

const EXAMPLES: &str = "\
The service starts the daemon at login and starts it again after a crash. Agents keep running
while it restarts; the new daemon takes them over.

At logout systemd ends all services of a user, and agents with them. Lingering keeps them
running, and starts the daemon at boot: `loginctl enable-linger`.

Examples:
  lanyard service install
  lanyard service status --json
  systemctl --user restart lanyard
  lanyard service uninstall";

/// Run the daemon as a service of your systemd
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Service {
    #[command(subcommand)]
    verb: ServiceVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceVerb {
    /// Write the unit, enable it and start the daemon with it
    #[command(after_help = "\
The unit holds the paths of this program, the data folder and the config, and the PATH of this shell,
where the daemon finds agents. Install again after one of them has changed.
A daemon that runs already is replaced; its agents keep running.

Examples:
  lanyard service install
  lanyard service install --print")]
    Install {
        /// Print the unit instead of installing it
        #[arg(long)]
        print: bool,
    },
    /// Stop the daemon, disable the unit and remove it; sessions and agents stay
    #[command(after_help = "Examples:\n  lanyard service uninstall")]
    Uninstall,
    /// Show whether the service is installed, enabled and running
    #[command(after_help = "Examples:\n  lanyard service status\n  lanyard service status --json")]
    Status,
}

/// The service as `status` shows it.
#[derive(Debug, Serialize)]
struct ServiceStatus {
    /// The unit's file; none where no service is installed.
    unit: Option<PathBuf>,
    enabled: bool,
    /// systemd's word: `active`, `inactive`, `failed` or a step between them.
    state: String,
    pid: Option<u32>,
    /// Whether it runs without a login; none where that cannot be found out.
    linger: Option<bool>,
    /// Whether the unit is what `install` would write here.
    up_to_date: bool,
}

impl Service {
    pub(super) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            ServiceVerb::Install { print: true } => context.out.data(&text(context)?),
            ServiceVerb::Install { print: false } => install(context).await,
            ServiceVerb::Uninstall => uninstall(context).await,
            ServiceVerb::Status => status(context).await,
        }
    }
}

/// Why the daemon cannot be installed as a service here; nothing where it can.
pub(super) async fn obstacle() -> Option<String> {
    match systemd::unit().await {
        Ok(_) => None,
        Err(Failure::Told { problem, .. }) => Some(problem.title),
        Err(Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe) => {
            Some("systemd does not answer".to_owned())
        }
    }
}

pub(super) async fn install(context: &Context) -> Result<(), Failure> {
    let before = systemd::unit().await?;
    let (text, file) = (text(context)?, file()?);
    let changed = std::fs::read_to_string(&file).ok().as_deref() != Some(text.as_str());
    if changed {
        write(&file, &text)?;
        systemd::order(&["daemon-reload"]).await?;
    }
    systemd::order(&["enable", UNIT]).await?;
    let running = launch::answering(context).await?;
    if running.is_some_and(|daemon| Some(daemon.pid) != before.pid) {
        // Started by hand: it holds the data folder.
        down::end(context).await?;
    }
    systemd::order(&[if changed { "restart" } else { "start" }, UNIT]).await?;
    answered(context).await?;
    report(context, &look(context, systemd::unit().await?))
}

/// Waits until the daemon of the service answers.
async fn answered(context: &Context) -> Result<(), Failure> {
    for _ in 0..POLLS_MAX {
        if launch::answering(context).await?.is_some() {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    let title = "the service was started, and its daemon has not answered for 30 s";
    Err(Failure::unreachable(
        "daemon_silent",
        title,
        format!("see why with `journalctl --user --unit {UNIT}`"),
    ))
}

async fn uninstall(context: &Context) -> Result<(), Failure> {
    let state = systemd::unit().await?;
    let file = file()?;
    if state.file.is_some() {
        systemd::order(&["disable", "--now", UNIT]).await?;
    }
    let removed = match std::fs::remove_file(&file) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(unwritable(&file, &error)),
    };
    systemd::order(&["daemon-reload"]).await?;
    let left = systemd::unit().await?;
    if context.out.is_json() {
        return context.out.json(&look(context, left));
    }
    context.out.note(match (state.file.is_some(), &left.file) {
        (false, _) if !removed => "no service is installed",
        (_, Some(_)) => "The service is disabled and stopped. Its unit belongs to a package and stays.",
        _ => "The service is removed. Agents keep running; `lanyard up --detach` starts a daemon for them.",
    });
    Ok(())
}

async fn status(context: &Context) -> Result<(), Failure> {
    report(context, &look(context, systemd::unit().await?))
}

fn look(context: &Context, state: UnitState) -> ServiceStatus {
    let held = state.file.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
    let up_to_date = held.is_some_and(|held| text(context).is_ok_and(|text| text == held));
    ServiceStatus {
        unit: state.file,
        enabled: state.enabled,
        state: state.active,
        pid: state.pid,
        linger: systemd::lingers(),
        up_to_date,
    }
}

fn report(context: &Context, status: &ServiceStatus) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.json(status);
    }
    let Some(unit) = &status.unit else {
        context.out.note("install it with `lanyard service install`");
        return context.out.data("not installed");
    };
    let pid = status.pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let enabled = if status.enabled { "starts at login" } else { "does not start at login" };
    context.out.data(&format!("{}{pid}, {enabled}\nunit  {}", status.state, unit.display()))?;
    if !status.up_to_date {
        context.out.note("the unit differs from what `lanyard service install` writes in this shell");
    }
    context.out.note(match status.linger {
        Some(true) => "Lingering is on: the daemon and its agents run without a login.",
        Some(false) | None => {
            "At logout systemd ends the daemon and its agents. To keep them running: `loginctl enable-linger`"
        }
    });
    Ok(())
}

/// The unit for this program, folder and shell.
fn text(context: &Context) -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        let title = format!("cannot find out where this program is: {error}");
        Failure::local("service_path_unusable", title, "run it by its whole path")
    })?;
    if program.components().any(|part| part.as_os_str() == "_npx") {
        context.out.warn("npx may clean up the folder this program is in; use `npm install --global lanyard` for a service");
    }
    let path = std::env::var_os("PATH");
    let values = UnitValues {
        program: &program,
        data_dir: &context.home.dir,
        config: &context.config_path,
        path: path.as_deref(),
    };
    values.text()
}

/// The user's own unit, which comes before that of a package.
fn file() -> Result<PathBuf, Failure> {
    Ok(base_folder("XDG_CONFIG_HOME", ".config", "XDG_CONFIG_HOME")?.join("systemd/user").join(UNIT))
}

/// Writes the unit whole or not at all.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let put = || {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let new = file.with_extension("service.new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, file)
    };
    put().map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    let title = format!("cannot write {}: {error}", file.display());
    Failure::local("service_unwritable", title, "make the folder writable, or set XDG_CONFIG_HOME")
}
