//! The config, the daemon and its port.

use std::io::ErrorKind;
use std::net::TcpListener;

use lanyard_api::config::Config;
use lanyard_api::home::{Claim, HomeError};
use lanyard_api::types::{DaemonStatus, StorageState};

use super::Finding;
use crate::client::{SIGN_OF_LIFE_TIMEOUT, Wire};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Who has the data folder.
pub(super) enum Running {
    /// A daemon that answers.
    Answers,
    /// A daemon that does not.
    Mute,
    /// Nobody; it is held here until the doctor is done, so that no daemon starts in the middle of it.
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
            (Some(config), Finding::ok(NAME, format!("{shown} is not there; everything has its default")))
        }
        Err(error) => {
            let fix = "correct it, or see what it can hold with `lanyard init --print`";
            (None, Finding::fail(NAME, chain(&error), fix))
        }
    }
}

pub(super) async fn daemon(context: &Context) -> (Running, Vec<Finding>) {
    const NAME: &str = "daemon";
    let answer = match Wire::dial(&context.home).await {
        Ok(Some(mut wire)) => wire.status(SIGN_OF_LIFE_TIMEOUT).await,
        Ok(None) => Ok(None),
        Err(failure) => Err(failure),
    };
    match answer {
        Ok(Some(status)) => (Running::Answers, healthy(&status)),
        Ok(None) => silent(context),
        Err(failure) => {
            let (what, fix) = match failure {
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

/// Nobody listens: either nobody is there, or whoever holds the folder hangs.
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

/// A config that was changed after the daemon had read it. The lock file is written when a daemon starts.
pub(super) fn edited(context: &Context, running: &Running) -> Option<Finding> {
    let Running::Answers = running else { return None };
    let changed = |path: &std::path::Path| path.metadata().and_then(|found| found.modified()).ok();
    let (config, start) = (changed(&context.config_path)?, changed(&context.home.lock())?);
    (config > start).then(|| {
        let what = format!("{} was changed after the daemon started", context.config_path.display());
        let fix = "restart the daemon to use it: `lanyard down && lanyard up --detach`; agents keep running";
        Finding::warn("config", what, fix)
    })
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
