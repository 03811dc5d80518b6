//! A daemon with an author, a reviewer and a git repository with a plan. What the agents do is written into files before,
//! one for each prompt, so that a prompt that came twice would be seen.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

/// In the environment of everything a stage starts.
const MARK: &str = "LY_FLOW_STAGE";

/// A verdict that lets it pass.
pub(super) const READY: &str = r#"{"readiness":"ready"}"#;
/// What an author says that is done. The commit's hash is put there when the work is committed.
pub(super) const DONE: &str = r#"{"status":"complete","commit":"COMMIT"}"#;
/// What an author says that needs a person.
pub(super) const HELP: &str =
    r#"{"status":"needs_human","reason":"Which greeting?","notes":"there are two"}"#;

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
    config: String,
    /// Scripts so far: a script's name is its number.
    written: AtomicUsize,
}

impl Stage {
    /// Phases that are ready do not wait for a person.
    pub(super) fn new() -> Self {
        Self::with("rules.phase_gate = \"auto\"")
    }

    /// With these settings of flows. `SIGNS` in them is the folder of signs.
    pub(super) fn with(settings: &str) -> Self {
        Self::with_agents(settings, "")
    }

    /// The same with further settings of both agents.
    pub(super) fn with_agents(settings: &str, of_agents: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["repo", "signs", "author", "reviewer", "runtime"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let mut config = format!(
            "[flow]\nauthor.agent = \"author\"\nreviewer.agent = \"reviewer\"\n{}\n",
            settings.replace("SIGNS", &path("signs"))
        );
        for role in ["author", "reviewer"] {
            let program = binary().display().to_string();
            let (state, scripts) = (path(&format!("{role}-state")), path(role));
            let command = [
                &program,
                "scripted-agent",
                "--state",
                &state,
                "--scripts",
                &scripts,
                "--otherwise",
                "/error -32000 no script is left",
            ];
            let command = serde_json::to_string(&command).unwrap();
            write!(
                config,
                "[agents.{role}]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n{of_agents}\n"
            )
            .unwrap();
        }
        let written = AtomicUsize::new(0);
        let mut stage = Self { daemon: Daemon::prepare(Setup::default()), folder, config, written };
        stage.plan(&["Greet"]);
        let repo = stage.repo();
        for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-qm", "first"]] {
            git(&repo, words);
        }
        stage.up();
        stage
    }

    pub(super) fn setup(&self) -> Setup {
        // Where the locks of plans are.
        let runtime = self.folder.path().join("runtime");
        Setup::default()
            .config(&self.config)
            .env(MARK, self.folder.path())
            .env("XDG_RUNTIME_DIR", runtime)
            .env("LANYARD_LOG", "info,lanyard_daemon::flow=debug")
    }

    /// A daemon in place of the one that was, which is killed.
    pub(super) fn up(&mut self) {
        let setup = self.setup();
        self.daemon.restart_with(setup);
    }

    /// A daemon that dies at a place, perhaps before it answers.
    pub(super) fn up_to(&mut self, place: &str) {
        let setup = self.setup().env("LANYARD_FAILPOINT", place);
        let _ = self.daemon.try_restart_with(setup);
    }

    /// The daemon and all it started are gone at once, as in a power cut.
    pub(super) fn lose_everything(&self) {
        self.daemon.kill_9();
        until("all processes to end", || {
            let left = self.marked();
            for (pid, _) in &left {
                kill_9(*pid);
            }
            left.is_empty()
        });
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo").canonicalize().unwrap()
    }

    /// Writes the plan: phases with these titles.
    pub(super) fn plan(&self, phases: &[&str]) {
        let mut text = "# A polite program\n\nWhy we do this.\n".to_owned();
        for (number, title) in (1..).zip(phases) {
            write!(text, "\n## Phase {number}: {title}\n\n- [ ] {title} somebody\n").unwrap();
        }
        self.write_plan(&text);
    }

    pub(super) fn write_plan(&self, text: &str) {
        std::fs::write(self.repo().join("PLAN.md"), text).unwrap();
    }

    /// A file by which agents, commands and tests tell each other that something happened.
    pub(super) fn sign(&self, name: &str) -> PathBuf {
        self.signs().join(name)
    }

    fn signs(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("signs")
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.sign(name), "").unwrap();
    }

    pub(super) fn await_sign(&self, name: &str) {
        until(&format!("the file {name}"), || self.sign(name).exists());
    }

    /// Waits for a whole line of a sign. The file is there before its first line is.
    pub(super) fn await_line(&self, name: &str) {
        until(&format!("a line of the file {name}"), || {
            std::fs::read_to_string(self.sign(name)).is_ok_and(|text| text.ends_with('\n'))
        });
    }

    /// The lines of a sign: what happened, in order.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.sign(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What an agent does on its next prompt that has no script yet. `SIGNS` in it is the folder of signs.
    pub(super) fn script(&self, role: &str, text: &str) {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let author = self.folder.path().join("author").display().to_string();
        let text = text.replace("SIGNS", &self.signs().display().to_string()).replace("AUTHOR", &author);
        // Whole at once: an agent may look at any time.
        let whole = self.folder.path().join("script");
        std::fs::write(&whole, text).unwrap();
        std::fs::rename(whole, self.folder.path().join(role).join(format!("{number:04}"))).unwrap();
    }

    /// The author's next piece of work, done and committed, and what it says of it.
    pub(super) fn author(&self, word: &str, says: &str) {
        self.script("author", &work(word));
        self.script("author", &format!("/say! {says}"));
    }

    /// The reviewer's next look, and its verdict.
    pub(super) fn reviewer(&self, word: &str, says: &str) {
        self.script("reviewer", &format!("/run echo {word} >> SIGNS/turns"));
        self.script("reviewer", &format!("/say! {says}"));
    }

    /// Scripts that nobody has run yet.
    pub(super) fn scripts_left(&self) -> usize {
        let files = |role: &str| std::fs::read_dir(self.folder.path().join(role)).unwrap();
        let left = |role| files(role).filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
        left("author") + left("reviewer")
    }

    /// Everything the agents of a role keep of their conversations, a text for each: what they were really told.
    pub(super) fn told(&self, role: &str) -> Vec<String> {
        let Ok(files) = std::fs::read_dir(self.folder.path().join(format!("{role}-state"))) else {
            return Vec::new();
        };
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

    /// Status and code of a refusal, which says what happened and what to do.
    pub(super) fn no(&self, path: &str, body: &Value) -> (u16, String) {
        let answer = self.post(path, body);
        assert!(answer.status >= 400, "{path} {body}: {}", answer.text());
        let problem = answer.json();
        for field in ["title", "advice"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{path}: {problem}");
        }
        (answer.status, answer.code())
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// What a flow of the plan is begun with; `more` comes over what is usual.
    pub(super) fn new_flow(&self, more: &Value) -> Value {
        let mut new = json!({ "kind": "phases", "plan": self.repo().join("PLAN.md") });
        for (name, value) in more.as_object().into_iter().flatten() {
            new[name] = value.clone();
        }
        new
    }

    /// Begins a flow. Answers its id.
    pub(super) fn begin(&self, more: &Value) -> String {
        id(&self.ok("/flows", &self.new_flow(more)), "id")
    }

    pub(super) fn show(&self, flow: &str) -> Value {
        self.get(&format!("/flows/{flow}"))
    }

    /// The flow, if a daemon answers.
    pub(super) fn glimpse(&self, flow: &str) -> Option<Value> {
        let path = format!("/api/v1/flows/{flow}");
        let answer = self.daemon.caller().try_request("GET", &path, &[], None).ok()?;
        (answer.status == 200).then(|| answer.json())
    }

    pub(super) fn log(&self, flow: &str) -> Vec<Value> {
        self.get(&format!("/flows/{flow}/events?limit=500"))["events"].as_array().unwrap().clone()
    }

    /// The events of a type, what they carry only.
    pub(super) fn events(&self, flow: &str, name: &str) -> Vec<Value> {
        let log = self.log(flow);
        log.into_iter().filter(|event| event["type"] == name).map(|event| event["data"].clone()).collect()
    }

    /// Waits until the flow is as it should be, and shows it.
    pub(super) fn until(&self, flow: &str, what: &str, met: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        let mut seen = Value::Null;
        loop {
            seen = self.glimpse(flow).unwrap_or(seen);
            if met(&seen) {
                return seen;
            }
            let told = || {
                let lines: Vec<String> = self
                    .log(flow)
                    .iter()
                    .map(|event| format!("{} {}", event["type"], event["data"]))
                    .collect();
                lines.join("\n")
            };
            assert!(since.elapsed() < PATIENCE, "{flow} is not {what}: {seen}\n{}", told());
            // sleep: between two looks at a flow.
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the flow's end and until its folder is in order.
    pub(super) fn settled(&self, flow: &str, state: &str) -> Value {
        self.until(flow, state, |seen| seen["state"] == state && seen["settled"] == true)
    }

    /// Waits until the flow asks a person for this reason, by its code, and shows the gate.
    pub(super) fn gate(&self, flow: &str, code: &str) -> Value {
        let asks = |seen: &Value| seen["gate"]["code"] == code && seen["gate"]["answered"].is_null();
        self.until(flow, &format!("asking: {code}"), asks)["gate"].clone()
    }

    /// The gates of flows that wait.
    pub(super) fn asking(&self) -> Vec<Value> {
        self.get("/gates")["flows"].as_array().cloned().unwrap_or_default()
    }

    /// Answers the gate that waits.
    pub(super) fn answer(&self, flow: &str, gate: &Value, choice: &str, guidance: Option<&str>) -> Value {
        let body = json!({ "choice": choice, "guidance": guidance });
        self.ok(&format!("/flows/{flow}/gates/{}", id(gate, "id")), &body)
    }

    /// Living processes that were started by daemons of this stage, with their numbers.
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

    /// Those of them whose command line has this in it.
    pub(super) fn running(&self, words: &str) -> usize {
        self.marked().iter().filter(|(_, line)| line.contains(words)).count()
    }
}

/// All flows and sessions are ended; what lives after that is a defect.
impl Drop for Stage {
    fn drop(&mut self) {
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
        for flow in self.get("/flows?open=true&limit=500")["flows"].as_array().unwrap() {
            let flow = id(flow, "id");
            self.ok(&format!("/flows/{flow}/cancel"), &json!({}));
            self.settled(&flow, "aborted");
        }
        for row in self.get("/sessions?limit=1000")["sessions"].as_array().unwrap() {
            self.post(&format!("/sessions/{}/stop", id(row, "id")), &json!({ "now": true }));
        }
        let since = Instant::now();
        let mut left = self.marked();
        while !left.is_empty() && since.elapsed() < PATIENCE {
            // sleep: between two looks at processes that end.
            std::thread::sleep(Duration::from_millis(10));
            left = self.marked();
        }
        assert_eq!(left, Vec::new(), "processes are left");
    }
}

/// Steps that do a piece of work, tell that they did, commit it, and put its hash into what the author says next.
pub(super) fn work(word: &str) -> String {
    let who = "-c user.name=a -c user.email=a@localhost -c commit.gpgsign=false";
    let next = "$(ls AUTHOR | grep -v done | head -2)";
    format!(
        "/run set -e; echo {word} >> SIGNS/turns; echo {word} >> work.txt; git add -A; git {who} commit -qm {word}; \
         for next in {next}; do sed -i \"/^.say/s/COMMIT/$(git rev-parse HEAD)/\" AUTHOR/$next; done"
    )
}

/// A verdict with one thing to be done.
pub(super) fn corrections(title: &str, action: &str) -> String {
    let item = json!({ "id": "R1", "title": title, "action": action, "priority": "P1" });
    json!({ "readiness": "ready_with_corrections", "score": 60, "items": [item] }).to_string()
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
