//! An agent in a home of its own with Lanyard's hooks in it, a daemon that knows nothing of it, and a model.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cases::Case;
use crate::agents::{self, Agent, Rights};
use crate::model::{Conversation, Model, Step, marker};
use crate::peer::{PATIENCE, end_group};
use crate::support::{Daemon, Setup, binary};
use crate::through::tally;

/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Kit<'a> {
    pub(super) case: &'a Case,
    pub(super) model: Model,
    pub(super) daemon: Daemon,
    pub(super) home: PathBuf,
    pub(super) work: PathBuf,
    agent: Agent,
    /// Held for its drop.
    _folders: [tempfile::TempDir; 2],
}

impl<'a> Kit<'a> {
    /// With the hooks in place.
    pub(super) fn new(case: &'a Case) -> Kit<'a> {
        let kit = Kit::without_hooks(case);
        kit.hook("install");
        kit
    }

    /// With the hooks in place, and a daemon whose config has an agent of the same name.
    pub(super) fn named(case: &'a Case) -> Kit<'a> {
        let entry = format!("[agents.{}]\ndriver = \"acp\"\ncommand = [\"true\"]\n", case.harness);
        let kit = Kit::under(case, Setup::default().config(&entry));
        kit.hook("install");
        kit
    }

    pub(super) fn without_hooks(case: &'a Case) -> Kit<'a> {
        Kit::under(case, Setup::default())
    }

    fn under(case: &'a Case, setup: Setup) -> Kit<'a> {
        let model = Model::start();
        let folder = tempfile::tempdir().unwrap();
        let (own_home, work) = (agents::home(), folder.path().join("work"));
        let home = own_home.path().to_owned();
        fs::create_dir(&work).unwrap();
        let agent = (case.make)(&home, &model, Rights::All);
        let daemon = Daemon::start(setup);
        Kit { case, model, daemon, home, work, agent, _folders: [folder, own_home] }
    }

    /// `lanyard hook install` or `uninstall`, as the agent's user.
    pub(super) fn hook(&self, verb: &str) -> String {
        let output = Command::new(binary())
            .arg("--data-dir")
            .arg(self.daemon.home())
            .args(["hook", verb, self.case.harness])
            .env_clear()
            .env("HOME", &self.home)
            .current_dir(&self.work)
            .output()
            .unwrap();
        assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The file its hooks are in.
    pub(super) fn file(&self) -> PathBuf {
        self.home.join(self.case.file)
    }

    /// Starts the agent with a prompt that follows a script. With an id the conversation goes on.
    pub(super) fn start(&self, script: &str, go_on: Option<&str>) -> Running {
        let stderr = self.home.join("stderr.txt");
        let mut process = self.agent.process(&self.work);
        process.args(self.case.always);
        process.args(go_on.map(self.case.go_on).unwrap_or_default());
        process.args(self.case.flag).arg(format!("go {}", marker(script)));
        process.stdin(Stdio::null()).stderr(File::create(&stderr).unwrap());
        Running::of(process.process_group(0).spawn().unwrap(), stderr)
    }

    /// A call of the shell that waits for `release` in the middle, and then prints the name.
    pub(super) fn held(&self, name: &str) -> Step {
        // What is printed is not in the command, where it would be seen anyway.
        let command =
            format!("touch at-{name}; until [ -e go-{name} ]; do sleep 0.05; done; printf DONE-%s {name}");
        (self.case.shell)(&command)
    }

    /// A call of the shell that shows that it ran, and prints the name.
    pub(super) fn plain(&self, name: &str) -> Step {
        (self.case.shell)(&format!("touch at-{name}; printf DONE-%s {name}"))
    }

    pub(super) fn has_run(&self, name: &str) -> bool {
        self.work.join(format!("at-{name}")).exists()
    }

    /// Waits until a held call is being carried out.
    pub(super) fn is_held(&self, name: &str, running: &Running) {
        wait(&format!("the call {name}"), || self.has_run(name).then_some(()), || running.shown());
    }

    pub(super) fn release(&self, name: &str) {
        fs::write(self.work.join(format!("go-{name}")), "").unwrap();
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

    /// All sessions Lanyard knows of.
    pub(super) fn sessions(&self) -> Vec<Value> {
        self.get("/sessions")["sessions"].as_array().cloned().unwrap_or_default()
    }

    /// The session that the agent's hooks have made, as soon as there is one.
    pub(super) fn session(&self, running: &Running) -> String {
        let found = || self.sessions().first().map(|found| found["id"].as_str().unwrap().to_owned());
        wait("a session", found, || running.shown())
    }

    /// The tools that Lanyard was asked about in a session.
    pub(super) fn relayed(&self, session: &str) -> Vec<String> {
        let log = self.daemon.log_after(session, 0);
        let relayed = log.iter().filter(|event| event["type"] == "tool.relayed");
        relayed.filter_map(|event| event["data"]["tool"].as_str().map(str::to_owned)).collect()
    }

    pub(super) fn guide(&self, session: &str, words: &str) {
        self.post(&format!("/sessions/{session}/guidance"), &json!({ "text": words }));
    }

    /// What the model was asked in a step of a script.
    pub(super) fn asked(&self, script: &str, step: usize) -> Conversation {
        self.model.wait(script, PATIENCE, |asked| asked.is(script, step)).asked
    }

    /// Whether the model was ever asked for a step.
    pub(super) fn was_asked(&self, script: &str, step: usize) -> bool {
        self.model.asked(script).iter().any(|asked| asked.step == step)
    }

    /// Puts a word into the table that is shown at the end.
    pub(super) fn say(&self, capability: &str, is_offered: bool) {
        let word = if is_offered { "ok" } else { "not offered" };
        tally::tell(self.case.name, self.case.package, capability, word);
    }
}

/// Waits for something, with a bound.
fn wait<T>(what: &str, look: impl Fn() -> Option<T>, shown: impl Fn() -> String) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "no sign of {what}\n{}", shown());
        // sleep: between two looks
        thread::sleep(LOOK);
    }
}

/// An agent at work. Dropped, it ends, and all it started with it.
pub(super) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
    stderr: PathBuf,
}

impl Running {
    fn of(mut child: Child, stderr: PathBuf) -> Running {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let reader = thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        Running { child, lines, reader: Some(reader), stderr }
    }

    /// Waits for its end; all it said.
    pub(super) fn ended(&mut self) -> String {
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it does not end\n{}", self.shown());
            // sleep: between two looks
            thread::sleep(LOOK);
        }
        end_group(&mut self.child);
        let _ = self.reader.take().map(JoinHandle::join);
        self.lines.lock().unwrap().join("\n")
    }

    /// The agent's own id of the conversation, once it has said it.
    pub(super) fn native(&self, key: &str) -> String {
        let said = || {
            let lines = self.lines.lock().unwrap();
            let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            values.into_iter().find_map(|value| value[key].as_str().map(str::to_owned))
        };
        wait("the agent's own id", said, || self.shown())
    }

    pub(super) fn shown(&self) -> String {
        let lines = self.lines.lock().unwrap().join("\n");
        format!("it said:\n{lines}\nand:\n{}", read(&self.stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

/// A file's text; empty when there is none.
pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// All that a model was told after its last own words.
pub(super) fn latest(asked: &Conversation) -> String {
    let after = asked.messages.iter().rposition(|message| !message.calls.is_empty()).map_or(0, |at| at + 1);
    asked.messages[after..].iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n")
}
