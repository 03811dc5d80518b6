//! A small JSON-RPC client over an agent's pipes: ACP, and Codex's dialect of it.
//!
//! Every id it chooses is a string, as Lanyard's are, so that an agent that takes only numbers is found
//! out here.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents::Agent;

/// A cold start of a large agent on a busy machine. Conditions are waited for, so a quiet machine takes no longer for it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
/// Lines read ahead of the test.
const LINES_MAX: usize = 10_000;
/// Names a folder for transcripts, one file per agent, for whoever studies a protocol.
const TRACE: &str = "LANYARD_REAL_TRACE";

#[derive(Debug)]
pub(crate) struct Peer {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Everything in both directions, in order.
    transcript: Vec<String>,
    /// The agent's notifications and requests, in order.
    pub(crate) heard: Vec<Value>,
    answer: Answer,
    dialect: Dialect,
}

/// How the agent's own requests are answered.
pub(crate) type Answer = fn(&Value) -> Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    JsonRpc2,
    /// Without the `jsonrpc` member.
    Codex,
}

impl Peer {
    pub(crate) fn start(agent: &Agent, cwd: &Path, dialect: Dialect, answer: Answer) -> Peer {
        let stderr = File::create(agent.home.join("stderr.txt")).unwrap();
        let mut process = agent.process(cwd);
        // A group of its own, so that whatever it starts can be ended with it.
        let mut child = process.stderr(stderr).process_group(0).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = sync_channel(LINES_MAX);
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let name = thread::current().name().unwrap_or(agent.name).replace("::", ".");
        Peer { name, child, stdin, lines, transcript: Vec::new(), heard: Vec::new(), answer, dialect }
    }

    /// Sends a request and waits for its result, answering what the agent asks meanwhile.
    pub(crate) fn request(&mut self, id: &str, method: &str, params: &Value) -> Value {
        self.send(json!({ "id": id, "method": method, "params": params }));
        let response = self.until(&format!("the answer to {method}"), |message| {
            message["id"] == id && message["method"].is_null()
        });
        assert!(response["error"].is_null(), "{method} was refused: {response}\n{}", self.shown());
        response["result"].clone()
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(json!({ "method": method, "params": params }));
    }

    /// Waits for a message that fits; requests on the way are answered.
    pub(crate) fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let message = match self.lines.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("no sign of {what}\n{}", self.shown()),
                Err(RecvTimeoutError::Disconnected) => panic!("gone before {what}\n{}", self.shown()),
            };
            self.transcript.push(format!("<- {message}"));
            let asks = !message["id"].is_null() && !message["method"].is_null();
            if asks {
                let result = (self.answer)(&message);
                self.send(json!({ "id": message["id"], "result": result }));
            }
            if !message["method"].is_null() {
                self.heard.push(message.clone());
            }
            if fits(&message) {
                return message;
            }
        }
    }

    fn send(&mut self, mut message: Value) {
        if self.dialect == Dialect::JsonRpc2 {
            message["jsonrpc"] = json!("2.0");
        }
        self.transcript.push(format!("-> {message}"));
        let written = self.stdin.as_mut().map(|stdin| stdin.write_all(format!("{message}\n").as_bytes()));
        assert!(matches!(written, Some(Ok(()))), "the agent does not read: {written:?}\n{}", self.shown());
    }

    /// The methods of what the agent asked of us.
    pub(crate) fn asked(&self) -> Vec<&str> {
        let asks = self.heard.iter().filter(|message| !message["id"].is_null());
        asks.filter_map(|message| message["method"].as_str()).collect()
    }

    fn shown(&self) -> String {
        self.transcript.join("\n")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(dir) = std::env::var_os(TRACE) {
            let _ = fs::write(Path::new(&dir).join(format!("{}.txt", self.name)), self.shown());
        }
        end_group(&mut self.child);
    }
}

/// Ends a process that leads its group, and the group with it.
pub(crate) fn end_group(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}
