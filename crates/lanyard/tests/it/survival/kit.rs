//! A daemon with a scripted agent that may die and come back, and a look at every process it ever started.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

/// In the environment of everything a stage starts.
const MARK: &str = "LY_SURVIVAL_STAGE";

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
    config: String,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::with("")
    }

    /// `scripted` with these further settings is the agent.
    pub(super) fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let memory = folder.path().join("state").display().to_string();
        let command = [&binary().display().to_string(), "scripted-agent", "--state", &memory];
        let command = serde_json::to_string(&command).unwrap();
        let config = format!(
            "[agents.scripted]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 500\n{settings}\n"
        );
        let mut stage = Self { daemon: Daemon::prepare(Setup::default()), folder, config };
        stage.up();
        stage
    }

    fn setup(&self) -> Setup {
        Setup::default().config(&self.config).env(MARK, self.folder.path())
    }

    /// Flags for the agent of the next daemon.
    pub(super) fn add_flags(&mut self, flags: &[&str]) {
        let more = format!(",\"{}\"]\nkill_grace", flags.join("\",\""));
        self.config = self.config.replacen("]\nkill_grace", &more, 1);
    }

    /// A further agent for the next daemon.
    pub(super) fn add_agent(&mut self, settings: &str) {
        self.config.push_str(settings);
    }

    /// A daemon in place of the one that was, if any.
    pub(super) fn up(&mut self) {
        let setup = self.setup();
        self.daemon.restart_with(setup);
    }

    /// A daemon that finds no journal, and is told to begin a new one.
    pub(super) fn up_anew(&mut self) {
        let setup = self.setup().new_journal();
        self.daemon.restart_with(setup);
    }

    /// A daemon that will die at a place, perhaps before it answers.
    pub(super) fn up_to(&mut self, place: &str) {
        let setup = self.setup().env("LANYARD_FAILPOINT", place);
        let _ = self.daemon.try_restart_with(setup);
    }

    /// A daemon of another program.
    pub(super) fn up_as(&mut self, program: &std::path::Path) {
        let setup = self.setup().program(program);
        self.daemon.restart_with(setup);
    }

    pub(super) fn work(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work").join(name)
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.work(name), "").unwrap();
    }

    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(super) fn session(&self) -> String {
        self.session_of("scripted")
    }

    pub(super) fn session_of(&self, agent: &str) -> String {
        let body = json!({"agent": agent, "workspace": self.work("")});
        let made = self.post("/sessions", &body);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    /// Sets the agent to work. The daemon may die of it.
    pub(super) fn prompt(&self, session: &str, prompt: &str) {
        let body = json!({"prompt": prompt, "client_turn_id": prompt.len().to_string()}).to_string();
        let path = format!("/api/v1/sessions/{session}/turns");
        if let Ok(answer) = self.daemon.caller().try_request("POST", &path, &[], Some(&body)) {
            assert_eq!(answer.status, 201, "{}", answer.text());
        }
    }

    pub(super) fn started(&self, prompt: &str) -> String {
        let session = self.session();
        self.prompt(&session, prompt);
        session
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    /// The daemon may die of it.
    pub(super) fn try_post(&self, path: &str, body: &Value) -> Option<Answer> {
        let path = format!("/api/v1{path}");
        self.daemon.caller().try_request("POST", &path, &[], Some(&body.to_string())).ok()
    }

    /// A session as it is shown; none while no daemon answers.
    pub(super) fn look(&self, session: &str) -> Option<Value> {
        let path = format!("/api/v1/sessions/{session}");
        let answer = self.daemon.caller().try_request("GET", &path, &[], None).ok()?;
        (answer.status == 200).then(|| answer.json())
    }

    /// Waits until a session's record is as wanted.
    pub(super) fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let met = wait(|| match self.look(session) {
            Some(shown) => {
                last = shown;
                wanted(&last)
            }
            None => false,
        });
        assert!(met, "still {last:#}\n{:#?}\n{:?}", self.log(session), self.processes());
        last
    }

    pub(super) fn until_at_rest(&self, session: &str) -> Value {
        self.until(session, |shown| shown["active_turn"].is_null())
    }

    pub(super) fn until_asked(&self, session: &str) -> String {
        let shown = self.until(session, |shown| shown["gates"][0]["status"]["name"] == "open");
        shown["gates"][0]["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn until_file(&self, name: &str) {
        assert!(
            wait(|| self.work(name).exists()),
            "the agent did not come to {name}: {}",
            self.daemon.stderr()
        );
    }

    pub(super) fn log(&self, session: &str) -> Vec<Value> {
        self.daemon.log_after(session, 0)
    }

    /// The events of one type.
    pub(super) fn events(&self, session: &str, kind: &str) -> Vec<Value> {
        self.log(session).into_iter().filter(|event| event["type"] == kind).collect()
    }

    pub(super) fn children(&self, session: &str) -> Vec<String> {
        let linked = self.events(session, "session.child_linked");
        linked.iter().map(|event| event["data"]["child"].as_str().unwrap().to_owned()).collect()
    }

    /// The numbers the script wrote into a file.
    pub(super) fn pids(&self, name: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.work(name)).unwrap_or_default();
        text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Everything this stage ever started and that lives, the daemon excepted.
    pub(super) fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let daemon = self.daemon.pid();
        let bears = |pid: u32, mark: &str| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
        };
        let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            (Some(pid) != daemon && bears(pid, &mark)).then_some(pid)
        });
        pids.map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()))
            .map(|(pid, line)| (pid, line.replace('\0', " ")))
            .collect()
    }

    /// The supervisor of the only run.
    pub(super) fn shim(&self) -> u32 {
        let shims: Vec<_> =
            self.processes().into_iter().filter(|(_, line)| line.contains(" shim ")).collect();
        assert_eq!(shims.len(), 1, "{shims:?}");
        shims[0].0
    }

    /// The agent of the only run.
    pub(super) fn agent(&self) -> u32 {
        let agents = self.processes().into_iter().filter(|(_, line)| line.contains(" scripted-agent "));
        let agents: Vec<_> = agents.collect();
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents[0].0
    }

    pub(super) fn run_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.daemon.home().join("runs"));
        entries.map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
    }

    /// Nothing of any run lives, and no folder of one is left.
    pub(super) fn nothing_is_left(&self) {
        assert!(
            wait(|| self.processes().is_empty()),
            "left: {:?}\n{}",
            self.processes(),
            self.daemon.stderr()
        );
        assert!(wait(|| self.run_folders().is_empty()), "left: {:?}", self.run_folders());
    }

    /// Ends every session, and looks that nothing of them is left.
    pub(super) fn end(mut self) {
        if !self.daemon.is_alive() {
            self.up();
        }
        self.stop_all();
        self.nothing_is_left();
    }

    fn stop_all(&self) {
        let listed = self.daemon.request("GET", "/api/v1/sessions?limit=1000", &[], None).json();
        for row in listed["sessions"].as_array().unwrap() {
            let path = format!("/sessions/{}/stop", row["id"].as_str().unwrap());
            for _ in 0..3 {
                let _ = self.try_post(&path, &json!({}));
            }
        }
    }
}

/// A test that fails leaves nothing either.
impl Drop for Stage {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            kill_9(pid);
        }
    }
}

pub(super) fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

pub(super) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// The state of a session as it is shown, with its cause.
pub(super) fn state(shown: &Value) -> String {
    let word = |name: &str| shown[name].as_str().unwrap_or_default();
    format!("{} {}", word("state"), word("cause")).trim_end().to_owned()
}

/// Whether it came true in time.
pub(super) fn wait(mut met: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !met() {
        if since.elapsed() > PATIENCE {
            return false;
        }
        // sleep: between two looks at processes that work.
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
