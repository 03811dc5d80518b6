//! A wrapped server and a client that speaks lines with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Daemon, PATIENCE, binary};

pub(crate) struct Wrapped {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    folder: tempfile::TempDir,
}

/// How a server is wrapped.
pub(crate) struct Wrapping<'a> {
    pub(crate) home: &'a Path,
    pub(crate) options: &'a [&'a str],
    pub(crate) env: &'a [(&'a str, &'a str)],
}

impl Wrapped {
    /// Around `lanyard scripted-mcp`.
    pub(crate) fn start(wrapping: &Wrapping<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let heard = folder.path().join("heard").display().to_string();
        let command = [binary().to_str().unwrap(), "scripted-mcp", "--heard", &heard];
        Self::around(wrapping, &command, folder)
    }

    pub(crate) fn around(wrapping: &Wrapping<'_>, command: &[&str], folder: tempfile::TempDir) -> Self {
        let stderr = std::fs::File::create(folder.path().join("stderr")).unwrap();
        let mut child = Command::new(binary())
            .arg("--data-dir")
            .arg(wrapping.home)
            .args(["mcp", "wrap"])
            .args(wrapping.options)
            .arg("--")
            .args(command)
            .env_remove("CLAUDE_CODE_SESSION_ID")
            .env_remove("LANYARD_SESSION")
            .envs(wrapping.env.iter().copied())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 0, folder }
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line came: {}", self.stderr()))
    }

    /// Sends a request; its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let answer: Value = serde_json::from_str(&self.line()).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn greet(&mut self, client: &str) {
        let answer = self.request(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": client, "version": "1" } }),
        );
        assert_eq!(answer["result"]["serverInfo"]["name"], "lanyard-scripted-mcp");
    }

    /// Calls a tool; the result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    /// Everything the server got.
    pub(crate) fn heard(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("heard")).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "it does not end: {}", self.stderr());
            // sleep: between two looks at a process that ends.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All a wrapped command writes for an input.
pub(crate) fn piped(home: &Path, command: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(binary())
        .arg("--data-dir")
        .arg(home)
        .args(["mcp", "wrap", "--"])
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let mut out = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    out
}

/// The one session that a wrapped server's client has, once it is there.
pub(crate) fn only_session(daemon: &Daemon) -> Value {
    let since = Instant::now();
    loop {
        let page = daemon.request("GET", "/api/v1/sessions?source=external", &[], None).json();
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() < 2, "{page}");
        if let Some(session) = sessions.first() {
            return session.clone();
        }
        assert!(since.elapsed() < PATIENCE, "no session was made");
        // sleep: between two looks at what another process does.
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn post(daemon: &Daemon, path: &str, body: &Value) -> Value {
    let answer = daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()));
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.json()
}
