//! Lanyard as a gateway: a daemon whose config names the server, and a session for each caller.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::load::{PATH, Target, Way};
use crate::http::{Caller, Client};
use crate::process::Daemon;

/// The server's name in the config.
const SERVER: &str = "echo";

/// When a call is recorded in its session's log.
#[derive(Debug, Clone, Copy)]
pub(super) enum Record {
    /// After its answer went out, without being waited for.
    After,
    /// Before it, in the write-ahead log (`synchronous=NORMAL`).
    Written,
    /// Before it, on disk (`synchronous=FULL`).
    Synced,
}

pub(super) fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The config of a server on HTTP.
pub(super) fn http_server(port: u16) -> String {
    format!("[mcp.{SERVER}]\nurl = \"http://{}{PATH}\"\n", local(port))
}

/// The config of a server on stdio: this program, one process for all sessions.
pub(super) fn stdio_server() -> Result<String> {
    let words: Vec<Value> = stdio_command()?.into_iter().map(Value::from).collect();
    Ok(format!("[mcp.{SERVER}]\ncommand = {}\nshare = true\n", Value::from(words)))
}

pub(super) fn stdio_command() -> Result<Vec<String>> {
    let program = std::env::current_exe()?;
    let program = program.to_str().context("a program whose path is no text")?;
    Ok([program, "--bench", "--role", "mcp-stdio"].map(str::to_owned).to_vec())
}

pub(super) struct Lanyard {
    pub(super) daemon: Daemon,
}

impl Lanyard {
    pub(super) fn start(home: &Path, record: Record, server: &str) -> Result<Self> {
        let word = match record {
            Record::After => "after",
            Record::Written => "written",
            Record::Synced => "synced",
        };
        std::fs::create_dir_all(home)?;
        std::fs::write(home.join("config.toml"), format!("[gateway]\nrecord = \"{word}\"\n{server}"))?;
        let daemon = Daemon::start(home);
        let daemon = daemon.with_context(|| {
            let said = std::fs::read_to_string(home.join("bench.log")).unwrap_or_default();
            format!("the daemon said: {}", said.trim())
        });
        Ok(Self { daemon: daemon? })
    }

    /// So many callers, each with a session and a token of its own.
    pub(super) fn target(&self, name: &str, callers: usize) -> Result<Target> {
        let mut client = Client::connect(&self.daemon)?;
        let body = json!({ "agent": "bench", "workspace": "/" }).to_string();
        let request = Caller::of(&self.daemon).post(&format!("/mcp/{SERVER}/address"), None, &body);
        let mut ways = Vec::new();
        for _ in 0..callers {
            let given: Value = serde_json::from_slice(&client.ask(&request)?)?;
            ways.push(way(&given).with_context(|| format!("no address: {given}"))?);
        }
        Target::join(name, self.daemon.address, self.daemon.pid(), &ways)
    }

    pub(super) fn stop(self) -> Result<()> {
        self.daemon.stop()
    }
}

/// The path and the headers of an address.
fn way(given: &Value) -> Option<Way> {
    let (_, after) = given["url"].as_str()?.split_once("://")?;
    let path = after.find('/').map(|at| after[at..].to_owned())?;
    let mut headers = String::new();
    for (name, value) in given["headers"].as_object()? {
        headers = format!("{headers}{name}: {}\r\n", value.as_str()?);
    }
    Some(Way { path, headers })
}
