//! Notifications on the desktop of the daemon's user, with the program desktops have for it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lanyard_core::notification::{Notification, RetryRules, Severity};
use tokio::process::Command;

const PROGRAM: &str = "notify-send";
/// A desktop that does not answer is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// What says that there is a desktop to show it on.
const SIGNS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];

pub(super) const RETRY: RetryRules =
    RetryRules { attempts_max: 3, first_pause_ms: 5_000, pause_ms_max: 60_000 };

/// The program, where it and a desktop are there.
pub(super) fn program() -> Option<PathBuf> {
    SIGNS.iter().find(|sign| std::env::var_os(sign).is_some_and(|value| !value.is_empty()))?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|place| place.is_file())
}

pub(super) async fn show(program: &PathBuf, held: &Notification) -> Result<(), String> {
    let urgency = match held.severity {
        Severity::Info => "low",
        Severity::Warning => "normal",
        Severity::Critical => "critical",
    };
    let mut command = Command::new(program);
    lanyard_agents::runs::withhold(command.as_std_mut());
    command
        .args(["--app-name", "Lanyard", "--urgency", urgency, "--"])
        .args([&held.title, &held.text])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("{PROGRAM} ended with {status}")),
        Ok(Err(error)) => Err(format!("{PROGRAM} cannot be started: {error}")),
        Err(_) => Err(format!("{PROGRAM} did not end within {} s", PATIENCE.as_secs())),
    }
}
