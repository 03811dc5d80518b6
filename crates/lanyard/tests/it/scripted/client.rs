//! A client as small as can be: it sends, and keeps everything it hears in order.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{PATIENCE, binary};

/// A folder to work in and one for conversations; both outlive a process.
pub(super) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Rc::new(Self { folder })
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }
}

/// One process of the agent. Killed when it is dropped.
pub(super) struct Agent {
    pub(super) place: Rc<Place>,
    pub(super) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything heard so far that was JSON.
    pub(super) heard: Vec<Value>,
    /// Everything that was not.
    pub(super) noise: Vec<String>,
    sent: usize,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    pub(super) fn spawn(place: &Rc<Place>, flags: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .arg("scripted-agent")
            .arg("--state")
            .arg(place.folder.path().join("state"))
            .args(flags)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let place = Rc::clone(place);
        Self { place, child, input, lines, heard: Vec::new(), noise: Vec::new(), sent: 0 }
    }

    /// A process that has been greeted, with all a client can offer.
    pub(super) fn start(place: &Rc<Place>, flags: &[&str]) -> Self {
        let mut agent = Self::spawn(place, flags);
        let can = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        agent.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": can}));
        agent
    }

    /// A greeted process and a new session.
    pub(super) fn session(flags: &[&str]) -> (Self, String) {
        let mut agent = Self::start(&Place::new(), flags);
        let session = agent.new_session(&json!([]));
        (agent, session)
    }

    pub(super) fn new_session(&mut self, servers: &Value) -> String {
        let made = self.call("session/new", &json!({"cwd": self.place.work(), "mcpServers": servers}));
        made["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(super) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and gives its id, a string.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> String {
        self.sent += 1;
        let id = format!("q{}", self.sent);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    pub(super) fn prompt(&mut self, session: &str, text: &str) -> String {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Prompts and waits for the answer.
    pub(super) fn turn(&mut self, session: &str, text: &str) -> Value {
        let id = self.prompt(session, text);
        self.answer(&id)
    }

    pub(super) fn cancel(&mut self, session: &str) {
        let params = json!({"sessionId": session});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    }

    /// Answers a question of the agent.
    pub(super) fn tell(&mut self, question: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    }

    pub(super) fn allow(&mut self, question: &Value, option: &str) {
        self.tell(question, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    pub(super) fn answer(&mut self, id: &str) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for the next question of this kind.
    pub(super) fn question(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method)
    }

    /// Waits until these words were said in this session.
    pub(super) fn hears(&mut self, session: &str, words: &str) {
        while !self.said(session).contains(words) {
            self.next();
        }
    }

    /// The first message from here on that fits.
    pub(super) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next();
            if fits(&message) {
                return message;
            }
        }
    }

    /// The next message that is JSON.
    fn next(&mut self) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{error}; heard: {:#?}", self.heard));
            if let Some(message) = self.keep(line) {
                return message;
            }
        }
    }

    fn keep(&mut self, line: String) -> Option<Value> {
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            self.heard.push(message.clone());
            return Some(message);
        }
        self.noise.push(line);
        None
    }

    pub(super) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Hears everything until the agent has closed its output.
    pub(super) fn hear_out(&mut self) {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.keep(line);
        }
    }

    pub(super) fn exit(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "the agent does not end");
            pause();
        }
    }

    /// All updates of a session, in order.
    pub(super) fn updates(&self, session: &str) -> Vec<&Value> {
        let of_session = |message: &&Value| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        };
        self.heard.iter().filter(of_session).map(|message| &message["params"]["update"]).collect()
    }

    pub(super) fn of_kind(&self, session: &str, kind: &str) -> Vec<&Value> {
        let updates = self.updates(session).into_iter();
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// All the agent's words in a session.
    pub(super) fn said(&self, session: &str) -> String {
        let chunks = self.of_kind(session, "agent_message_chunk").into_iter();
        chunks.map(|chunk| chunk["content"]["text"].as_str().unwrap()).collect()
    }

    pub(super) fn answers(&self, id: &str) -> usize {
        self.heard.iter().filter(|message| message["id"] == id && message.get("method").is_none()).count()
    }

    /// The last state told of a tool call.
    pub(super) fn tool(&self, session: &str, at: usize) -> (&Value, &Value) {
        let call = self.of_kind(session, "tool_call")[at];
        let fits = |update: &&&Value| update["toolCallId"] == call["toolCallId"];
        let updates = self.of_kind(session, "tool_call_update");
        (call, updates.iter().rfind(fits).copied().unwrap_or(&Value::Null))
    }
}

pub(super) fn wait_for_file(path: &Path) -> String {
    let since = Instant::now();
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(since.elapsed() < PATIENCE, "{} never came", path.display()),
        }
        pause();
    }
}

pub(super) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        pause();
    }
}

pub(super) fn pause() {
    // sleep: between two looks at a file or a process.
    std::thread::sleep(Duration::from_millis(2));
}

/// The state, parent and session of a process; `None` when it is gone.
pub(super) fn process(pid: &str) -> Option<(String, String, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |at: usize| fields[at].to_owned();
    (fields[0] != "Z").then(|| (field(0), field(1), field(3)))
}
