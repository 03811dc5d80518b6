//! The helper in the sandbox. It prepares what the agent finds and becomes the agent; where connections have to be
//! carried out of a network of its own, it stays beside the agent, as its parent.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use signal_hook::consts::signal;

use super::bridge;

/// What shells answer for a program that cannot be started.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;
/// What shells add to the number of a signal.
const SIGNALLED: i32 = 128;
/// Sent to everything of a run. The agent ends by them, and the helper with it.
const LEFT_TO_THE_AGENT: [i32; 4] = [signal::SIGTERM, signal::SIGINT, signal::SIGHUP, signal::SIGQUIT];

/// What the helper does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InsideOrder {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bridges: Vec<PortBridge>,
}

/// A port on loopback in the sandbox, and the socket its connections are carried to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortBridge {
    pub port: u16,
    pub socket: PathBuf,
}

impl InsideOrder {
    /// As it stands in the command line. It holds no secret.
    pub(super) fn to_argument(&self) -> String {
        // A value of numbers and paths that are text can always be written.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// `lanyard inside ORDER PROGRAM ARGUMENTS…`. Does not return where the helper becomes the agent.
pub fn main(order: &OsString, program: &OsString, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = order.to_str().and_then(|text| serde_json::from_str::<InsideOrder>(text).ok());
    let Some(order) = order else { return fail(NOT_STARTED, "the order of the sandbox cannot be read") };
    let mut command = Command::new(program);
    command.args(arguments);
    if order.bridges.is_empty() {
        let error = command.exec();
        return not_started(program, &error);
    }
    for bridge in &order.bridges {
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, bridge.port))
            .and_then(|listener| bridge::carry_to_socket(listener, bridge.socket.clone()));
        if let Err(error) = listening {
            return fail(NOT_STARTED, &format!("no way out of the sandbox at port {}: {error}", bridge.port));
        }
    }
    beside(command, program)
}

/// Stays until the agent has ended, and ends as it did.
fn beside(mut command: Command, program: &OsString) -> ExitCode {
    let unheeded = Arc::new(AtomicBool::new(false));
    for signal in LEFT_TO_THE_AGENT {
        let _ = signal_hook::flag::register(signal, Arc::clone(&unheeded));
    }
    let ended = match command.spawn() {
        Ok(mut child) => child.wait(),
        Err(error) => return not_started(program, &error),
    };
    let code = match ended {
        Ok(status) => status.code().or_else(|| Some(SIGNALLED + status.signal()?)).unwrap_or_default(),
        Err(_) => i32::from(NOT_STARTED),
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn not_started(program: &OsString, error: &std::io::Error) -> ExitCode {
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    let code = if missing { NOT_FOUND } else { NOT_STARTED };
    fail(code, &format!("cannot start {} in the sandbox: {error}", program.display()))
}

/// The agent's stderr is kept with its run.
fn fail(code: u8, what: &str) -> ExitCode {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "lanyard: {what}");
    ExitCode::from(code)
}
