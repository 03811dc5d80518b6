//! A daemon with scripted agents, a workspace of its own, and nothing left at the end.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

pub(crate) struct Stage {
    pub(crate) daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&[], "")
    }

    /// `scripted` with these flags and these further settings is the only agent of the config.
    pub(crate) fn with(flags: &[&str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let program = binary().display().to_string();
        let mut command = vec![program, "scripted-agent".to_owned(), "--state".to_owned()];
        command.push(folder.path().join("state").display().to_string());
        command.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let command = serde_json::to_string(&command).unwrap();
        let config = format!(
            "[agents.scripted]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 500\n{settings}\n"
        );
        Self { daemon: Daemon::start(Setup::default().config(&config)), folder }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    /// Makes the workspace a repository with one file in it.
    pub(crate) fn git(&self) {
        std::fs::write(self.workspace().join("kept.txt"), "first\n").unwrap();
        for words in [
            &["init", "-q"][..],
            &["add", "."],
            &["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "first"],
        ] {
            let done = Command::new("git").args(words).current_dir(self.workspace()).status().unwrap();
            assert!(done.success(), "git {words:?}");
        }
    }

    /// How many commits `git log --all` shows.
    pub(super) fn log_all(&self) -> usize {
        let mut log = Command::new("git");
        log.args(["log", "--all", "--format=%H"]).current_dir(self.workspace());
        text(&log.output().unwrap().stdout).lines().count()
    }

    pub(crate) fn lanyard(&self, words: &[&str]) -> Output {
        self.daemon.lanyard(words)
    }

    /// `lanyard run` in the workspace.
    pub(super) fn run(&self, words: &[&str]) -> Output {
        let work = self.workspace().display().to_string();
        let all: Vec<&str> = ["run", "--cwd", &work].into_iter().chain(words.iter().copied()).collect();
        self.lanyard(&all)
    }

    /// Sets an agent to work and leaves it; the session's id.
    pub(crate) fn detached(&self, prompt: &str) -> String {
        let output = self.run(&["--detach", prompt]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    /// Waits until a session's record is as wanted.
    pub(crate) fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let shown = self.get(&format!("/sessions/{session}"));
            if wanted(&shown) {
                return shown;
            }
            assert!(since.elapsed() < PATIENCE, "still {shown:#}\n{:#?}", self.daemon.log_after(session, 0));
            // sleep: between two looks at an agent that works.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn until_at_rest(&self, session: &str) -> Value {
        self.until(session, |shown| shown["active_turn"].is_null())
    }

    /// Folders of runs: there is one for every agent's process.
    pub(super) fn runs(&self) -> usize {
        std::fs::read_dir(self.daemon.home().join("runs")).map_or(0, Iterator::count)
    }
}

/// Agents outlive a daemon that is killed: they are ended first.
impl Drop for Stage {
    fn drop(&mut self) {
        if !self.daemon.is_alive() {
            return;
        }
        let listed = self.daemon.request("GET", "/api/v1/sessions?limit=1000", &[], None);
        let ids: Vec<String> = listed.json()["sessions"]
            .as_array()
            .unwrap_or(&Vec::new())
            .iter()
            .filter_map(|row| row["id"].as_str().map(str::to_owned))
            .collect();
        for _ in 0..3 {
            for id in &ids {
                self.post(&format!("/sessions/{id}/stop"), &json!({}));
            }
        }
        let since = Instant::now();
        while self.runs() > 0 && since.elapsed() < PATIENCE {
            // sleep: between two looks at processes that end.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
