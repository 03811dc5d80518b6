//! A daemon with a scripted agent and a git repository to work in, both of which may die and come back.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

/// In the environment of everything a stage starts.
const MARK: &str = "LY_FAMILY_STAGE";

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
    config: String,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::with("")
    }

    /// These settings of the daemon, and one agent, `a`, that is scripted and says `noted` to words without steps.
    pub(super) fn with(settings: &str) -> Self {
        Self::with_agent(settings, "")
    }

    /// The same with further settings of the agent.
    pub(super) fn with_agent(settings: &str, of_agent: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let repo = folder.path().join("repo");
        std::fs::create_dir(&repo).unwrap();
        std::fs::write(repo.join("first.txt"), "first\n").unwrap();
        for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-qm", "first"]] {
            git(&repo, words);
        }
        let memory = folder.path().join("state").display().to_string();
        let program = binary().display().to_string();
        let command = [&program, "scripted-agent", "--state", &memory, "--otherwise", "/say noted"];
        let command = serde_json::to_string(&command).unwrap();
        let config = format!(
            "{settings}\n[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n{of_agent}\n"
        );
        let mut stage = Self { daemon: Daemon::prepare(Setup::default()), folder, config };
        stage.up();
        stage
    }

    fn setup(&self) -> Setup {
        Setup::default().config(&self.config).env(MARK, self.folder.path())
    }

    /// A daemon in place of the one that was, which is killed.
    pub(super) fn up(&mut self) {
        let setup = self.setup();
        self.daemon.restart_with(setup);
    }

    /// The same, at the address that agents were given.
    pub(super) fn up_where_it_was(&mut self) {
        let setup = self.setup().listen(&self.daemon.address());
        self.daemon.restart_with(setup);
    }

    /// A daemon that dies at a place, perhaps before it answers.
    pub(super) fn up_to(&mut self, place: &str) {
        let setup = self.setup().env("LANYARD_FAILPOINT", place);
        let _ = self.daemon.try_restart_with(setup);
    }

    /// Waits for a daemon that is to die.
    pub(super) fn dies(&self) {
        until("the daemon to die", || !self.daemon.is_alive());
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo").canonicalize().unwrap()
    }

    /// A file beside the repository, by which agents and tests tell each other that something happened.
    pub(super) fn sign(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.sign(name), "").unwrap();
    }

    pub(super) fn await_sign(&self, name: &str) {
        until(&format!("the file {name}"), || self.sign(name).exists());
    }

    /// Everything the agents keep of their conversations: what they were really told.
    pub(super) fn told(&self) -> String {
        let Ok(files) = std::fs::read_dir(self.folder.path().join("state")) else { return String::new() };
        files.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default()).collect()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn ok(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        answer.json()
    }

    /// The code of a refusal.
    pub(super) fn refused(&self, path: &str, body: &Value) -> String {
        let answer = self.post(path, body);
        assert!(answer.status >= 400, "{path}: {}", answer.text());
        let problem = answer.json();
        assert!(problem["title"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        assert!(problem["advice"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        answer.code()
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A task in the repository; `more` comes over what is usual. Answers its id.
    pub(super) fn task(&self, prompt: &str, more: &Value) -> String {
        let mut new =
            json!({ "title": "a task", "prompt": prompt, "workspace": self.repo(), "deploy": true });
        for (name, value) in more.as_object().into_iter().flatten() {
            new[name] = value.clone();
        }
        id(&self.ok("/tasks", &new), "id")
    }

    pub(super) fn show(&self, task: &str) -> Value {
        self.get(&format!("/tasks/{task}"))
    }

    /// Waits until the task is in this state, and shows it.
    pub(super) fn is(&self, task: &str, state: &str) -> Value {
        let mut seen = Value::Null;
        let since = Instant::now();
        loop {
            let path = format!("/api/v1/tasks/{task}");
            if let Ok(answer) = self.daemon.caller().try_request("GET", &path, &[], None) {
                seen = answer.json();
            }
            if seen["state"] == state {
                return seen;
            }
            let said = || self.daemon.stderr() + &self.log_of(&seen);
            assert!(since.elapsed() < PATIENCE, "{task} is not {state}: {seen}\n{}", said());
            // sleep: between two looks at a task.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The log of the session a task is worked at in, a line for each event.
    fn log_of(&self, task: &Value) -> String {
        let Some(session) = task["session"].as_str() else { return String::new() };
        let log = self.daemon.log_after(session, 0);
        let lines: Vec<String> =
            log.iter().map(|event| format!("{} {}", event["type"], event["data"])).collect();
        lines.join("\n")
    }

    /// Whether the task has ended; not when nobody answers.
    pub(super) fn has_ended(&self, task: &str) -> bool {
        let path = format!("/api/v1/tasks/{task}");
        let shown = self.daemon.caller().try_request("GET", &path, &[], None);
        shown.is_ok_and(|answer| {
            ["completed", "failed", "cancelled"].iter().any(|end| answer.json()["state"] == *end)
        })
    }

    /// A chat session of agent `a`.
    pub(super) fn chat(&self) -> String {
        id(&self.ok("/sessions", &json!({ "agent": "a", "workspace": self.repo() })), "session")
    }

    /// Waits until nothing of a session's agent is running a turn.
    pub(super) fn rests(&self, session: &str) {
        until("the session to rest", || self.get(&format!("/sessions/{session}"))["state"] != "executing");
    }

    /// All mail, settled or not.
    pub(super) fn all_mail(&self) -> Vec<Value> {
        let listed = |settled: bool| {
            let page = self.get(&format!("/mail?settled={settled}&limit=500"));
            page["mail"].as_array().unwrap().clone()
        };
        // What is settled between the two looks is in both.
        let open = listed(false);
        let mut mail = listed(true);
        mail.extend(
            open.into_iter()
                .filter(|one| !mail.iter().any(|other| other["id"] == one["id"]))
                .collect::<Vec<_>>(),
        );
        mail
    }

    pub(super) fn branch(&self, name: &str) -> bool {
        let found =
            Command::new("git").current_dir(self.repo()).args(["rev-parse", "--verify", "-q", name]).output();
        found.unwrap().status.success()
    }

    /// Worktrees of the repository, itself included.
    pub(super) fn worktrees(&self) -> usize {
        git(&self.repo(), &["worktree", "list", "--porcelain"]).matches("worktree ").count()
    }

    /// Processes that were started by daemons of this stage and live.
    pub(super) fn processes(&self) -> Vec<String> {
        self.marked().into_iter().map(|(_, line)| line).collect()
    }

    /// The same with their numbers.
    pub(super) fn marked(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environ = std::fs::read(path.join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
                && let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>()
                && Some(pid) != self.daemon.pid()
            {
                let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }
}

impl Stage {
    /// Ends the agent of a session as a crash would.
    pub(super) fn kill_agent(&self, session: &str) {
        let run = id(&self.get(&format!("/sessions/{session}"))["run"], "id");
        let (mark, mut killed) = (format!("LANYARD_RUN={run}"), 0);
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let holds = |file: &str, word: &str| {
                let text = std::fs::read(entry.path().join(file)).unwrap_or_default();
                text.split(|byte| *byte == 0).any(|one| one == word.as_bytes())
            };
            let its = holds("environ", &mark) && holds("cmdline", "scripted-agent");
            if its && !holds("cmdline", "shim") {
                let pid = entry.file_name().to_string_lossy().parse().unwrap();
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                killed += 1;
            }
        }
        assert_eq!(killed, 1, "agents of {run}");
    }
}

/// Everything is halted; what lives after that is a defect.
impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed leaves nothing either.
        if std::thread::panicking() {
            self.daemon.kill_9();
            for (pid, _) in self.marked() {
                kill_9(pid);
            }
            return;
        }
        if !self.daemon.is_alive() {
            self.up();
        }
        self.post("/halt", &json!({ "now": true }));
        let listed = self.daemon.request("GET", "/api/v1/sessions?limit=1000", &[], None).json();
        for row in listed["sessions"].as_array().unwrap_or(&Vec::new()) {
            let body = json!({ "now": true });
            self.post(&format!("/sessions/{}/stop", row["id"].as_str().unwrap()), &body);
        }
        let since = Instant::now();
        // The daemon itself starts git at times, so one look without any is the answer.
        let mut left = self.processes();
        while !left.is_empty() && since.elapsed() < PATIENCE {
            // sleep: between two looks at processes that end.
            std::thread::sleep(Duration::from_millis(10));
            left = self.processes();
        }
        assert_eq!(left, Vec::<String>::new(), "processes are left");
    }
}

pub(super) fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

pub(super) fn id(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

pub(super) fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn until(what: &str, met: impl Fn() -> bool) {
    let since = Instant::now();
    while !met() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        // sleep: between two looks.
        std::thread::sleep(Duration::from_millis(10));
    }
}
