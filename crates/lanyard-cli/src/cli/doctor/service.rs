//! The config, the daemon and its port.

use std::io::ErrorKind;
use std::net::TcpListener;

use lanyard_api::config::{Config, ConfigFile};
use lanyard_api::home::{Claim, HomeError};
use lanyard_api::types::{ConfigState, DaemonStatus, StorageState};
use lanyard_client::{DaemonAddress, SIGN_OF_LIFE_TIMEOUT};

use super::Finding;
use crate::cli::reload::RESTART;
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Who has the data folder.
pub(super) enum Running {
    /// A daemon that answers, the config it uses, and its process.
    Answers(Box<ConfigState>, u32),
    /// A daemon that does not.
    Mute,
    /// No daemon; the lock is held here until the doctor is done, so that none starts meanwhile.
    Nobody { _held: Option<Claim> },
}

pub(super) fn config(context: &Context) -> (Option<Config>, Finding) {
    const NAME: &str = "config";
    let shown = context.config_path.display();
    match Config::load(&context.config_path) {
        Ok(config) if context.config_path.exists() => {
            (Some(config), Finding::ok(NAME, format!("{shown} is understood")))
        }
        Ok(config) => {
            let what = format!("{shown} is not there; every setting has its default");
            (Some(config), Finding::ok(NAME, what))
        }
        Err(error) => {
            let fix =
                "correct it with `lanyard config edit`, or see what it can hold with `lanyard init --print`";
            (None, Finding::fail(NAME, chain(&error), fix))
        }
    }
}

pub(super) async fn daemon(context: &Context) -> (Running, Vec<Finding>) {
    const NAME: &str = "daemon";
    let answer = match DaemonAddress::of(&context.home).connect().await {
        Ok(Some(mut connection)) => connection.status(SIGN_OF_LIFE_TIMEOUT).await,
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    match answer {
        Ok(Some(status)) => {
            let findings = healthy(&status);
            (Running::Answers(Box::new(status.config), status.pid), findings)
        }
        Ok(None) => silent(context),
        Err(error) => {
            let (what, fix) = match Failure::from(error) {
                Failure::Told { problem, .. } => (problem.title, problem.advice),
                Failure::Shown | Failure::Ended(_) | Failure::ClosedPipe => (String::new(), String::new()),
            };
            let what = format!("it does not answer: {what}");
            let fix = if fix.contains("doctor") {
                format!("look at {}", context.home.log().display())
            } else {
                fix
            };
            (Running::Mute, vec![Finding::fail(NAME, what, fix)])
        }
    }
}

fn healthy(status: &DaemonStatus) -> Vec<Finding> {
    let ours = env!("CARGO_PKG_VERSION");
    let running = format!("pid {} at http://{}, version {}", status.pid, status.address, status.version);
    let daemon = if status.version == ours {
        Finding::ok("daemon", running)
    } else {
        let what = format!("{running}, but this program is {ours}");
        Finding::warn("daemon", what, "restart it: `lanyard down && lanyard up --detach`")
    };
    let storage = match status.storage {
        StorageState::Ok => Finding::ok("storage", "changes are written and acknowledged"),
        StorageState::Unavailable => {
            let why = status.storage_error.clone().unwrap_or_default();
            let fix = "make room on the disk or mend it; the daemon tries again by itself";
            Finding::fail("storage", format!("nothing is acknowledged: {why}"), fix)
        }
    };
    vec![daemon, storage]
}

/// No listener: either no daemon runs, or the one that holds the folder hangs.
fn silent(context: &Context) -> (Running, Vec<Finding>) {
    const NAME: &str = "daemon";
    let none = || Finding::ok(NAME, "none is running; commands start one when they need it");
    if !context.home.lock().exists() {
        return (Running::Nobody { _held: None }, vec![none()]);
    }
    match context.home.claim() {
        Ok(claim) => (Running::Nobody { _held: Some(claim) }, vec![none()]),
        Err(HomeError::Taken(who)) => {
            let who = who.map_or_else(String::new, |running| format!(" (pid {})", running.pid));
            let fix = format!("wait a moment; if it stays so, look at {}", context.home.log().display());
            let what = format!("one{who} holds the data folder and does not answer");
            (Running::Mute, vec![Finding::fail(NAME, what, fix)])
        }
        Err(error @ HomeError::Io { .. }) => {
            (Running::Mute, vec![Finding::fail(NAME, chain(&error), "check who owns the data folder")])
        }
    }
}

/// A config that is not in use as it is: changed since it was read, refused, another file, or waiting for a restart.
pub(super) fn edited(context: &Context, running: &Running) -> Vec<Finding> {
    let Running::Answers(state, _) = running else { return Vec::new() };
    let digest = ConfigFile::read(&context.config_path).ok().map(|file| file.digest);
    unused(state, &context.config_path.display().to_string(), digest.as_deref())
}

/// What is not in use of the file at a path with this digest; a file that is not valid has none.
fn unused(state: &ConfigState, path: &str, digest: Option<&str>) -> Vec<Finding> {
    const NAME: &str = "config";
    let mut findings = Vec::new();
    // A daemon of an older version says nothing of its config.
    if state.path.is_empty() {
        return findings;
    }
    if state.path != path {
        let what = format!("the daemon uses {}, this command {path}", state.path);
        findings.push(Finding::warn(NAME, what, "start both with the same --config or LANYARD_CONFIG"));
        return findings;
    }
    if let Some(error) = &state.error {
        let what = format!("the file is not used, and the settings read before are: {error}");
        findings.push(Finding::fail(NAME, what, "correct it with `lanyard config edit`"));
    } else if digest.is_some_and(|digest| digest != state.digest) {
        let what = format!("{} was changed after the daemon read it", state.path);
        findings.push(Finding::warn(NAME, what, "have it read again with `lanyard reload`"));
    }
    if !state.needs_restart.is_empty() {
        let keys: Vec<&str> = state.needs_restart.iter().map(|change| change.key.as_str()).collect();
        let what = format!("these settings need a restart of the daemon: {}", keys.join(", "));
        findings.push(Finding::warn(NAME, what, format!("restart it: `{RESTART}`; agents keep running")));
    }
    findings
}

/// Whether the next daemon can listen where it should.
pub(super) fn port(config: Option<&Config>, running: &Running) -> Vec<Finding> {
    const NAME: &str = "port";
    let (Some(config), Running::Nobody { .. }) = (config, running) else { return Vec::new() };
    let address = config.daemon.listen;
    let free = match TcpListener::bind(address) {
        Ok(_) => Finding::ok(NAME, format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let fix =
                "end that program, or set another address: `listen` in the config, or `lanyard up --listen`";
            Finding::fail(NAME, format!("another program listens on {address}"), fix)
        }
        Err(error) => Finding::fail(
            NAME,
            format!("cannot listen on {address}: {error}"),
            "set another `listen` in the config",
        ),
    };
    let exposed = (!address.ip().is_loopback()).then(|| {
        let what = format!("{address} can be reached from other machines");
        Finding::warn(NAME, what, "use 127.0.0.1 unless you mean it; every request needs a token either way")
    });
    [Some(free), exposed].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use lanyard_api::config::{ConfigChange, ConfigChangeKind};

    use super::super::FindingLevel;
    use super::*;

    /// FND-N10: a file that is not in use as it is, for whatever reason.
    #[test]
    fn fnd_n10_a_config_that_is_not_in_use_is_found() {
        let used = ConfigState { path: "/c".into(), digest: "d1".into(), ..ConfigState::default() };
        let levels = |state: &ConfigState, path: &str, digest| -> Vec<FindingLevel> {
            unused(state, path, digest).iter().map(|finding| finding.level).collect()
        };
        assert_eq!(levels(&used, "/c", Some("d1")), []);
        assert_eq!(levels(&used, "/c", Some("d2")), [FindingLevel::Warn], "changed since");
        assert_eq!(levels(&used, "/other", Some("d1")), [FindingLevel::Warn], "another file");
        let key = ConfigChange { key: "daemon.listen".into(), change: ConfigChangeKind::Changed };
        let waits = ConfigState { needs_restart: vec![key], ..used.clone() };
        assert_eq!(levels(&waits, "/c", Some("d1")), [FindingLevel::Warn]);
        let refused = ConfigState { error: Some("line 3".into()), ..used };
        assert_eq!(levels(&refused, "/c", None), [FindingLevel::Fail]);
        assert_eq!(levels(&ConfigState::default(), "/c", Some("d1")), [], "an older daemon");
    }
}
