//! A daemon with MCP servers in its config, and the ways to them.

use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::servers;
use crate::support::{Daemon, Setup, binary};

/// How long a client may take for all it does, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// A daemon that stands before servers.
pub(super) struct Gateway {
    pub(super) daemon: Daemon,
}

/// A way to a server, with the session that is used.
pub(super) struct Way {
    pub(super) session: String,
    pub(super) target: Value,
}

impl Gateway {
    pub(super) fn start(config: &str) -> Gateway {
        Gateway { daemon: Daemon::start(Setup::default().config(config)) }
    }

    /// Before one server on HTTP, by the name `it`.
    pub(super) fn before(server: &servers::Server) -> Gateway {
        Gateway::start(&format!("[mcp.it]\nurl = \"{}\"\n", server.url))
    }

    /// Before one server on stdio, by the name `it`.
    pub(super) fn before_stdio(command: &[String]) -> Gateway {
        let path = format!("{}:/usr/bin:/bin", servers::node_dir().display());
        Gateway::start(&format!(
            "[mcp.it]\ncommand = {}\nenv = {{ PATH = \"{path}\" }}\n",
            Value::from(command.to_vec())
        ))
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        let path = format!("/api/v1{path}");
        let answer = self.daemon.request("POST", &path, &[], Some(&body.to_string()));
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        answer.json()
    }

    /// The address of a session that nobody knew before.
    pub(super) fn way(&self) -> Way {
        let given = self.post("/mcp/it/address", &json!({ "agent": "suite", "workspace": "/tmp" }));
        let session = given["session"].as_str().unwrap().to_owned();
        Way { session, target: json!({ "url": given["url"], "headers": given["headers"] }) }
    }

    /// The address without a session.
    pub(super) fn plain_target(&self) -> Value {
        let url = format!("http://{}/mcp/-/it", self.daemon.address());
        let bearer = format!("Bearer {}", self.daemon.token());
        json!({ "url": url, "headers": { "Authorization": bearer } })
    }

    /// A stdio server behind `lanyard mcp wrap`, as a client starts it, for a session that is there.
    pub(super) fn wrapped(&self, command: &[String]) -> Way {
        let way = self.way();
        let bearer = way.target["headers"]["Authorization"].as_str().unwrap();
        let url = format!("http://{}", self.daemon.address());
        let mut words = vec![
            format!("LANYARD_SESSION={}", way.session),
            format!("LANYARD_TOKEN={}", bearer.trim_start_matches("Bearer ")),
            format!("LANYARD_URL={url}"),
            format!("LANYARD_DATA_DIR={}", self.daemon.home().display()),
            format!("LANYARD_CONFIG={}", self.daemon.config().display()),
            "LANYARD_NO_START=1".to_owned(),
            binary().display().to_string(),
        ];
        words.extend(["mcp", "wrap", "--"].map(str::to_owned));
        words.extend_from_slice(command);
        Way { target: json!({ "command": "/usr/bin/env", "args": words }), ..way }
    }

    pub(super) fn guide(&self, session: &str, words: &str) {
        self.post(&format!("/sessions/{session}/guidance"), &json!({ "text": words }));
    }
}

/// The reference server as a command.
pub(crate) fn everything_command() -> Vec<String> {
    let node = servers::node_dir().join("node").display().to_string();
    vec![node, servers::everything().display().to_string(), "stdio".to_owned()]
}

/// Runs a program to its end; it is killed when it takes too long.
pub(super) fn run(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (send, done) = mpsc::sync_channel(1);
    thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = done.recv_timeout(PATIENCE) else {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("it does not come to an end: {command:?}");
    };
    output.unwrap()
}

/// The last line a program wrote, which is JSON.
pub(super) fn told(command: &mut Command) -> Value {
    let output = run(command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let line = out.trim().lines().next_back().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{command:?} said:\n{out}\n{err}"))
}
