//! The user's systemd, as `systemctl` reaches it. Every call is bounded, and a missing manager is a refusal that says so.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::failure::Failure;

pub(super) const UNIT: &str = "lanyard.service";
/// Longest wait for one call: the manager waits up to 90 s for a service that does not end.
const CALL_MAX: Duration = Duration::from_secs(100);
/// Users whose services run without a login.
const LINGERING: &str = "/var/lib/systemd/linger";
const WITHOUT: &str =
    "start the daemon with `lanyard up --detach`; `lanyard service install --print` shows the unit";

/// The unit's state in the manager.
#[derive(Debug, Default)]
pub(super) struct UnitState {
    /// The file the manager read; none where there is no unit.
    pub(super) file: Option<PathBuf>,
    pub(super) enabled: bool,
    pub(super) active: String,
    pub(super) pid: Option<u32>,
}

/// Asks for the unit. Fails where no manager answers.
pub(super) async fn unit() -> Result<UnitState, Failure> {
    let properties = "--property=LoadState,FragmentPath,UnitFileState,ActiveState,MainPID";
    let called = call(&["show", UNIT, properties]).await?;
    if !called.ok {
        let title = format!("the systemd of this user does not answer: {}", called.said);
        let advice = format!("log in as this user instead of using `su` or `sudo`, or {WITHOUT}");
        return Err(Failure::local("service_manager_unreachable", title, advice));
    }
    Ok(read(&called.text))
}

fn read(text: &str) -> UnitState {
    let values: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let value = |key| values.get(key).copied().unwrap_or_default();
    UnitState {
        file: Some(value("FragmentPath")).filter(|path| !path.is_empty()).map(PathBuf::from),
        enabled: value("UnitFileState") == "enabled",
        active: value("ActiveState").to_owned(),
        pid: value("MainPID").parse().ok().filter(|pid| *pid != 0),
    }
}

/// Has the manager do something.
pub(super) async fn order(words: &[&str]) -> Result<(), Failure> {
    let called = call(words).await?;
    if called.ok {
        return Ok(());
    }
    let title = format!("`systemctl --user {}` failed: {}", words.join(" "), called.said);
    Err(Failure::local("service_failed", title, format!("see why with `journalctl --user --unit {UNIT}`")))
}

/// Whether this user's services run without a login; nothing where the user's name is not known.
pub(super) fn lingers() -> Option<bool> {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let user = user.filter(|user| !user.is_empty() && !user.contains('/'))?;
    Some(PathBuf::from(LINGERING).join(user).exists())
}

/// How a call ended.
struct Called {
    ok: bool,
    text: String,
    /// The first line it wrote to stderr.
    said: String,
}

async fn call(words: &[&str]) -> Result<Called, Failure> {
    let mut command = Command::new("systemctl");
    command.arg("--user").arg("--no-pager").args(words).stdin(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(CALL_MAX, command.output()).await.map_err(|_| {
        let title = format!("`systemctl --user {}` has not ended for 100 s", words.join(" "));
        Failure::local("service_manager_unreachable", title, WITHOUT)
    })?;
    let output = done.map_err(|error| {
        let title = if error.kind() == ErrorKind::NotFound {
            "this machine has no systemd: `systemctl` is not on the PATH".to_owned()
        } else {
            format!("cannot run `systemctl`: {error}")
        };
        Failure::local("service_manager_missing", title, WITHOUT)
    })?;
    let said =
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("it gave no reason").to_owned();
    Ok(Called {
        ok: output.status.success(),
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        said,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_managers_answer_is_read_by_its_keys() {
        let state = read(
            "LoadState=loaded\nFragmentPath=/a=b\nUnitFileState=enabled\nActiveState=active\nMainPID=7\n",
        );
        assert_eq!((state.file, state.enabled, state.pid), (Some(PathBuf::from("/a=b")), true, Some(7)));
        assert_eq!(state.active, "active");
        let none =
            read("LoadState=not-found\nFragmentPath=\nUnitFileState=\nActiveState=inactive\nMainPID=0\n");
        assert_eq!((none.file, none.enabled, none.pid), (None, false, None));
    }
}
