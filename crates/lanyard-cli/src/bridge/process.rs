//! The server's process: started, waited for until it answers, ended.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::BridgeError;
use super::http::OpenCodeHttp;

/// The name OpenCode's server wants with its password.
const USER: &str = "opencode";
/// From its start to its line about listening.
const LISTEN_TIMEOUT: Duration = Duration::from_mins(1);
/// A request that comes between listening and being ready is never answered, so each is given up soon.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
const PROBE_PAUSE: Duration = Duration::from_millis(50);
const PROBES_MAX: u32 = 60;
/// Between asking it to end and ending it.
const END_GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    pub(super) http: OpenCodeHttp,
    pub(super) version: Option<String>,
}

impl Server {
    /// Starts the command in a folder and waits until it answers.
    pub(super) async fn start(command: &[OsString], folder: &Path) -> Result<Self, BridgeError> {
        let password = password()?;
        let (program, arguments) =
            command.split_first().ok_or_else(|| BridgeError::Server("no command was given".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--port", "0", "--hostname", "127.0.0.1"])
            .env("OPENCODE_SERVER_PASSWORD", &password)
            .env_remove("OPENCODE_SERVER_USERNAME")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                BridgeError::Server(format!("cannot start {}: {error}", program.to_string_lossy()))
            })?;
        let output = child.stdout.take().ok_or_else(|| BridgeError::Server("it has no output".to_owned()))?;
        let mut lines = BufReader::new(output).lines();
        let address = tokio::time::timeout(LISTEN_TIMEOUT, listening(&mut lines)).await.map_err(|_| {
            BridgeError::Server(format!("OpenCode did not listen within {} s", LISTEN_TIMEOUT.as_secs()))
        })?;
        let Some(address) = address else { return Err(ended(&child.wait().await)) };
        drain(lines);
        let http = OpenCodeHttp { address, authorization: basic(USER, &password) };
        let mut server = Self { child, http, version: None };
        server.version = server.probe().await?;
        Ok(server)
    }

    /// Waits for an end that was not asked for.
    pub(super) async fn died(&mut self) -> BridgeError {
        ended(&self.child.wait().await)
    }

    /// Asks it to end, and ends it.
    pub(super) async fn end(mut self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself, which is what is wanted.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(END_GRACE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    async fn probe(&mut self) -> Result<Option<String>, BridgeError> {
        let mut last = String::new();
        for _ in 0..PROBES_MAX {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(ended(&Ok(status)));
            }
            match self.http.ask(Method::GET, "/global/health", None, PROBE_TIMEOUT).await {
                Ok(health) => return Ok(health["version"].as_str().map(str::to_owned)),
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        Err(BridgeError::Server(format!("OpenCode listens and does not answer: {last}")))
    }
}

/// Reads up to the line that says where it listens; nothing when the output ends before.
async fn listening(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<SocketAddr> {
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(address) = address_in(&line) {
            return Some(address);
        }
    }
    None
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on http://")?;
    rest.split(|c: char| c == '/' || c.is_whitespace()).next()?.parse().ok()
}

/// What else it prints is of no use, and must not fill its pipe.
fn drain(mut lines: Lines<BufReader<ChildStdout>>) {
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
}

fn ended(status: &std::io::Result<ExitStatus>) -> BridgeError {
    BridgeError::Server(match status {
        Ok(status) => format!("OpenCode's server ended: {status}"),
        Err(error) => format!("OpenCode's server is lost: {error}"),
    })
}

fn password() -> Result<String, BridgeError> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| BridgeError::Server(format!("cannot make a password: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}

/// Basic authentication, as RFC 7617 has it.
fn basic(user: &str, password: &str) -> String {
    use base64::Engine as _;
    let pair = format!("{user}:{password}");
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_the_line() {
        let line = "opencode server listening on http://127.0.0.1:4096";
        assert_eq!(address_in(line), "127.0.0.1:4096".parse().ok());
        assert_eq!(address_in("listening on http://127.0.0.1:1/ now"), "127.0.0.1:1".parse().ok());
        assert_eq!(address_in("Warning: OPENCODE_SERVER_PASSWORD is not set"), None);
        assert_eq!(address_in("listening on http://nowhere"), None);
    }

    #[test]
    fn the_password_goes_in_the_header() {
        assert_eq!(basic("opencode", "s3cret"), "Basic b3BlbmNvZGU6czNjcmV0");
    }
}
