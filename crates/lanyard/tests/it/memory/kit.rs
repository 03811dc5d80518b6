//! A daemon with a scripted agent, and what tests of memory ask of it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

/// The settings, and one agent `a` that is scripted.
pub(super) fn config(settings: &str, folder: &Path) -> String {
    let state = folder.join("state").display().to_string();
    let program = binary().display().to_string();
    let command = [&program, "scripted-agent", "--state", &state, "--otherwise", "/say noted"];
    let command = serde_json::to_string(&command).unwrap();
    format!("{settings}\n[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n")
}

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    pub(super) folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn new(settings: &str) -> Self {
        Self::with(settings, |setup| setup)
    }

    pub(super) fn with(settings: &str, more: impl FnOnce(Setup) -> Setup) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let setup = more(Setup::default().config(&config(settings, folder.path())));
        Self { daemon: Daemon::start(setup), folder }
    }

    /// A daemon with other settings in place of the one that was.
    pub(super) fn restart(&mut self, settings: &str) {
        let setup = Setup::default().config(&config(settings, self.folder.path()));
        self.daemon.terminate();
        self.daemon.restart_with(setup);
    }

    pub(super) fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = Some(body.to_string()).filter(|_| method != "GET");
        self.daemon.request(method, &format!("/api/v1{path}"), &[], body.as_deref())
    }

    #[track_caller]
    pub(super) fn ok(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.ask(method, path, body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text());
        answer.json()
    }

    #[track_caller]
    pub(super) fn get(&self, path: &str) -> Value {
        self.ok("GET", path, &Value::Null)
    }

    #[track_caller]
    pub(super) fn refused(&self, method: &str, path: &str, body: &Value) -> String {
        let answer = self.ask(method, path, body);
        assert!(answer.status >= 400, "{method} {path}: {}", answer.text());
        answer.code()
    }

    pub(super) fn session(&self, memory: &Value) -> String {
        let workspace = self.folder.path().display().to_string();
        let body = json!({ "agent": "a", "workspace": workspace, "owner": "ann", "memory": memory });
        self.ok("POST", "/sessions", &body)["session"].as_str().unwrap().to_owned()
    }

    /// Runs a turn to its end and answers its row.
    pub(super) fn turn(&self, session: &str, body: &Value) -> Value {
        let sent = self.ok("POST", &format!("/sessions/{session}/turns"), body);
        let turn = sent["turn"].as_str().unwrap().to_owned();
        let mut row = Value::Null;
        until("the turn to end", || {
            row = self.get(&format!("/sessions/{session}/turns/{turn}"));
            row["ended_at"].is_string()
        });
        row
    }

    /// What an agent was told by its tools, from its session's log.
    pub(super) fn log(&self, session: &str) -> String {
        let events = self.daemon.log_after(session, 0);
        events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The texts of all entries that match.
    pub(super) fn texts(&self, query: &str) -> Vec<String> {
        let page = self.get(&format!("/memory?limit=500{query}"));
        let entries = page["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// The prompt with which an agent stores something.
pub(super) fn storing(scope: &str, name: &str, text: &str, tags: &[&str]) -> String {
    let arguments = json!({ "action": "store", "scope": scope, "name": name, "text": text, "tags": tags });
    format!("/mcp lanyard memory_context {arguments}")
}

#[track_caller]
pub(super) fn until(what: &str, mut met: impl FnMut() -> bool) {
    let since = Instant::now();
    while !met() {
        assert!(since.elapsed() < PATIENCE, "waited for {what}");
        // sleep: between two looks at another process.
        std::thread::sleep(Duration::from_millis(10));
    }
}
