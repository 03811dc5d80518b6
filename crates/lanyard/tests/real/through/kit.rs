//! A daemon with one agent of its own, a workspace and a model, and nothing left at the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cases::Case;
use super::processes;
use super::tally;
use crate::agents::{self, Rights};
use crate::model::{Exchange, Model, Outcome, Step, marker};
use crate::peer::PATIENCE;
use crate::support::{Daemon, Setup, binary};

/// What the model says in the script `greet`.
pub(super) const GREETING: &str = "Hello from the script.";
/// What the model says in the script `hold`; it waits after the first word.
pub(super) const HELD: &str = "First second third, and the last word of all.";
/// What the model says in the script `after`.
pub(super) const AFTER: &str = "Still here.";
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Kit<'a> {
    pub(super) case: &'a Case,
    pub(super) model: Model,
    pub(super) daemon: Daemon,
    pub(super) work: PathBuf,
    setup: Setup,
    agent: &'static str,
    folder: tempfile::TempDir,
    /// Held for its drop.
    _home: tempfile::TempDir,
}

/// How a daemon goes, and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    Killed,
    Down,
    /// Killed; the next one is another program.
    Upgraded,
}

impl<'a> Kit<'a> {
    pub(super) fn new(case: &'a Case, rights: Rights) -> Kit<'a> {
        Kit::with(case, rights, |_| String::new())
    }

    /// With more in the config than the agent: `more` is told the agent's home, which is ready by then.
    pub(super) fn with(case: &'a Case, rights: Rights, more: impl FnOnce(&Path) -> String) -> Kit<'a> {
        let model = Model::start();
        model.script("greet", [Step::text(GREETING)]);
        model.script("hold", [Step::text(HELD).held()]);
        model.script("after", [Step::text(AFTER)]);
        let folder = tempfile::tempdir().unwrap();
        let (home, work) = (agents::home(), folder.path().join("work"));
        std::fs::create_dir(&work).unwrap();
        let agent = (case.make)(home.path(), &model, rights);
        let setup = Setup::default().config(&(agent.config() + &more(home.path())));
        let daemon = Daemon::start(setup.clone());
        Kit { case, model, daemon, work, setup, agent: agent.name, folder, _home: home }
    }

    /// The agent's name in the config.
    pub(super) fn agent(&self) -> &'static str {
        self.agent
    }

    /// Puts a word into the table that is shown at the end.
    pub(super) fn say(&self, capability: &str, word: &str) {
        tally::tell(self.case.name, self.case.package, capability, word);
    }

    pub(super) fn ok(&self, capability: &str) {
        self.say(capability, "ok");
    }

    pub(super) fn not_offered(&self, capability: &str) {
        self.say(capability, "not offered");
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        let path = format!("/api/v1{path}");
        let answer = self.daemon.request("POST", &path, &[], Some(&body.to_string()));
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        answer.json()
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// The reason of the daemon why a session's agent cannot do something.
    pub(super) fn lack(&self, session: &str, what: &str) -> Option<String> {
        let lacks = self.get(&format!("/sessions/{session}"))["lacks"].clone();
        let found = lacks.as_array()?.iter().find(|lack| lack["what"] == what)?.clone();
        found["why"].as_str().map(str::to_owned)
    }

    /// `lanyard hook install`, as the agent's user.
    pub(super) fn install_hook(&self, harness: &str) {
        let output = std::process::Command::new(binary())
            .arg("--data-dir")
            .arg(self.daemon.home())
            .args(["hook", "install", harness])
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .current_dir(&self.work)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(super) fn session(&self) -> String {
        let new = json!({ "agent": self.agent, "workspace": self.work });
        self.post("/sessions", &new)["session"].as_str().unwrap().to_owned()
    }

    /// Starts a turn that follows a script, and does not wait for it.
    pub(super) fn begin(&self, session: &str, script: &str) -> String {
        let prompt = json!({ "prompt": format!("go {}", marker(script)) });
        self.post(&format!("/sessions/{session}/turns"), &prompt)["turn"].as_str().unwrap().to_owned()
    }

    /// A whole turn that completes; what the agent said in it.
    pub(super) fn turn(&self, session: &str, script: &str) -> String {
        let turn = self.begin(session, script);
        self.completed(session, &turn)
    }

    /// Waits for the end of a turn, which must be a good one; what the agent said in it.
    pub(super) fn completed(&self, session: &str, turn: &str) -> String {
        let end = self.ended(session, turn);
        assert_eq!(end["data"]["outcome"], "completed", "{end}\n{}", self.told(session));
        let log = self.log(session);
        let begin = log.iter().position(|event| is_of(event, "turn.started", turn)).unwrap();
        said(&log[begin..])
    }

    /// The event that ended a turn, as soon as there is one.
    pub(super) fn ended(&self, session: &str, turn: &str) -> Value {
        self.event(session, "the end of the turn", |event| {
            is_of(event, "turn.finished", turn) || is_of(event, "turn.interrupted", turn)
        })
    }

    pub(super) fn log(&self, session: &str) -> Vec<Value> {
        self.daemon.log_after(session, 0)
    }

    /// The first event that fits, as soon as there is one.
    pub(super) fn event(&self, session: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let found = || self.log(session).into_iter().find(|event| fits(event));
        self.wait(what, session, found)
    }

    /// All events of a type.
    pub(super) fn events(&self, session: &str, kind: &str) -> Vec<Value> {
        self.log(session).into_iter().filter(|event| event["type"] == kind).collect()
    }

    pub(super) fn wait<T>(&self, what: &str, session: &str, look: impl Fn() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(since.elapsed() < PATIENCE, "no sign of {what}\n{}", self.told(session));
            // sleep: between two looks at an agent that works.
            std::thread::sleep(LOOK);
        }
    }

    /// The log in a form to read, and what the model was asked.
    pub(super) fn told(&self, session: &str) -> String {
        let line = |event: &Value| format!("{} {} {}", event["seq"], event["type"], event["data"]);
        let log: Vec<String> = self.log(session).iter().map(line).collect();
        let asked = |one: &Exchange| format!("{} {}[{}] {:?}", one.path, one.script, one.step, one.outcome);
        let asked: Vec<String> = self.model.log().iter().map(asked).collect();
        format!("the log:\n{}\nthe model was asked:\n{}", log.join("\n"), asked.join("\n"))
    }

    /// The run that is or was the newest.
    pub(super) fn run(&self, session: &str) -> String {
        let started = self.events(session, "run.started");
        started.last().unwrap()["data"]["run"].as_str().unwrap().to_owned()
    }

    /// The newest greeting.
    pub(super) fn ready(&self, session: &str) -> Value {
        self.events(session, "run.ready").last().unwrap()["data"].clone()
    }

    /// Waits until the model holds its answer to a script.
    pub(super) fn is_held(&self, script: &str) {
        self.model.wait(script, PATIENCE, |asked| asked.is(script, 0) && asked.outcome == Outcome::Open);
    }

    /// Waits until the model has answered a step, and shows what it was asked.
    pub(super) fn answered(&self, script: &str, step: usize) -> Exchange {
        let fits = |asked: &Exchange| asked.is(script, step) && asked.outcome == Outcome::Answered;
        self.model.wait(script, PATIENCE, fits)
    }

    pub(super) fn daemon_goes(&self, how: Goes) {
        match how {
            Goes::Killed | Goes::Upgraded => self.daemon.kill_9(),
            Goes::Down => assert!(self.daemon.terminate().success(), "it was taken down"),
        }
    }

    /// Another daemon, on another port; after an upgrade of another file.
    pub(super) fn daemon_returns(&mut self, after: Goes) {
        let mut setup = self.setup.clone();
        if after == Goes::Upgraded {
            let copy = self.folder.path().join("upgraded");
            std::fs::copy(binary(), &copy).unwrap();
            setup = setup.program(&copy);
        }
        self.daemon.restart_with(setup);
    }

    /// SIGKILL to the daemon, and a new one in its place.
    pub(super) fn restart_daemon(&mut self) {
        self.daemon.restart_with(self.setup.clone());
    }

    /// Waits until no process of a run lives.
    pub(super) fn nothing_left(&self, session: &str, run: &str) {
        self.wait("the end of every process", session, || processes::marked(run).is_empty().then_some(()));
    }
}

fn is_of(event: &Value, kind: &str, turn: &str) -> bool {
    event["type"] == kind && event["data"]["turn"] == turn
}

/// What the agent said, all in one.
pub(super) fn said(log: &[Value]) -> String {
    let spoken = log.iter().filter(|event| event["type"] == "message" && event["data"]["role"] == "agent");
    spoken.filter_map(|event| event["data"]["text"].as_str()).collect()
}

/// Agents outlive a daemon that is killed: whatever is left of their runs is ended here.
impl Drop for Kit<'_> {
    fn drop(&mut self) {
        let runs = self.daemon.home().join("runs");
        self.daemon.kill_9();
        let names = std::fs::read_dir(runs).into_iter().flatten().flatten();
        for run in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            processes::end_all(&run);
        }
    }
}
