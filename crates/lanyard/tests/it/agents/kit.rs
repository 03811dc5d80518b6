//! A daemon with scripted agents, a reader of a session's log, and a look at the process table. A stage that is left
//! checks that no process of any of its runs lives.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary, head, read_head};

/// Graces that keep tests short; an agent's own settings come before them.
const DEFAULTS: [(&str, u64); 2] = [("cancel_grace_ms", 5_000), ("kill_grace_ms", 400)];

/// How long the next event may take to come.
const EVENT_WAIT: Duration = Duration::from_secs(20);

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    setup: Setup,
    folder: tempfile::TempDir,
}

impl Stage {
    /// One agent, `a`, that is scripted.
    pub(super) fn new() -> Self {
        Self::with(&[], "")
    }

    /// One agent, `a`, with these flags and settings.
    pub(super) fn with(flags: &[&str], settings: &str) -> Self {
        Self::of(&[("a", flags, settings)])
    }

    /// Scripted agents by their names, flags and settings. All keep their conversations in one folder.
    pub(super) fn of(agents: &[(&str, &[&str], &str)]) -> Self {
        Self::beside(agents, "")
    }

    /// The same, and what else the config has.
    pub(super) fn beside(agents: &[(&str, &[&str], &str)], more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let mut config = String::new();
        for (name, flags, settings) in agents {
            let mut command = vec![binary().display().to_string(), "scripted-agent".to_owned()];
            command.extend(["--state".to_owned(), folder.path().join("state").display().to_string()]);
            command.extend(flags.iter().map(|flag| (*flag).to_owned()));
            config.push_str(&entry(name, "acp", &command, settings));
        }
        config.push_str(more);
        Self::configured(folder, &config)
    }

    /// One agent, `a`, and a daemon whose clocks are set by hand.
    pub(super) fn timed(flags: &[&str], settings: &str, clock: &Path) -> Self {
        let mut stage = Self::with(flags, settings);
        stage.setup = stage.setup.clone().env("LANYARD_CLOCK_FILE", clock);
        stage.restart();
        stage
    }

    /// SIGKILL to the daemon, and a new one in its place that has this variable.
    pub(super) fn restart_in(&mut self, name: &str, value: &str) {
        self.setup = self.setup.clone().env(name, value);
        self.restart();
    }

    /// SIGKILL to the daemon, and a new one in its place that dies where it is told to.
    pub(super) fn restart_to_die(&mut self, place: &str) {
        self.daemon.restart_with(self.setup.clone().env("LANYARD_FAILPOINT", place));
    }

    fn configured(folder: tempfile::TempDir, config: &str) -> Self {
        let setup = Setup::default().config(config);
        Self { daemon: Daemon::start(setup.clone()), setup, folder }
    }

    /// One agent, `a`, that is run once per turn: a program of `sh`, with the arguments of the turn from `$1` on.
    pub(super) fn once(script: &str, settings: &str) -> Self {
        Self::shell("command", script, settings)
    }

    /// One agent, `a`, that a driver speaks with: a program of `sh`, with the driver's arguments from `$1` on.
    pub(super) fn shell(driver: &str, script: &str, settings: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let command = ["sh", "-c", script, "agent"].map(str::to_owned);
        Self::configured(folder, &entry("a", driver, &command, settings))
    }

    /// SIGKILL to the daemon, and a new one in its place.
    pub(super) fn restart(&mut self) {
        self.daemon.restart_with(self.setup.clone());
    }

    /// One agent, `a`, that is any program, and a scripted one, `b`.
    pub(super) fn program(command: &[&str], settings: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let state = folder.path().join("state").display().to_string();
        let scripted =
            [binary().display().to_string(), "scripted-agent".to_owned(), "--state".to_owned(), state];
        let config = entry("a", "acp", &command, settings) + &entry("b", "acp", &scripted, "");
        Self::configured(folder, &config)
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.file(name), "").unwrap();
    }

    /// Waits for a file an agent makes.
    pub(super) fn await_file(&self, name: &str) {
        until(&format!("the file {name}"), || self.file(name).exists());
    }

    /// Everything the agents keep of their conversations: what they were really told.
    pub(super) fn memory(&self) -> String {
        let files = std::fs::read_dir(self.folder.path().join("state")).unwrap();
        files.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A new session of agent `a`.
    pub(super) fn talk(&self) -> Talk<'_> {
        self.talk_with("a")
    }

    pub(super) fn talk_with(&self, agent: &str) -> Talk<'_> {
        self.talk_of(&json!({"agent": agent, "workspace": self.work()}))
    }

    pub(super) fn talk_of(&self, new: &Value) -> Talk<'_> {
        let answer = self.post("/sessions", new);
        assert_eq!(answer.status, 201, "{}", answer.text());
        self.follow(answer.json()["session"].as_str().unwrap())
    }

    /// Reads an existing session's log from its beginning.
    pub(super) fn follow(&self, session: &str) -> Talk<'_> {
        let caller = self.daemon.caller();
        let bearer = format!("Bearer {}", caller.token);
        let headers =
            [("host", "localhost"), ("authorization", bearer.as_str()), ("accept", "text/event-stream")];
        let mut stream = UnixStream::connect(&caller.socket).unwrap();
        stream.set_read_timeout(Some(EVENT_WAIT)).unwrap();
        let path = format!("/api/v1/sessions/{session}/events?after=0");
        stream.write_all(head("GET", &path, &headers, None).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).unwrap().status, 200);
        Talk { stage: self, id: session.to_owned(), reader, seen: Vec::new() }
    }

    /// A session of agent `b` works: the daemon took no harm.
    pub(super) fn is_unharmed(&self) {
        let mut talk = self.talk_with("b");
        assert_eq!(talk.ask("/say all is well")["type"], "turn.finished");
        assert_eq!(talk.said(), "all is well");
    }

    pub(super) fn run_folder(&self, run: &str) -> PathBuf {
        self.daemon.home().join("runs").join(run)
    }

    /// Waits until a run's folder and its supervisor are gone, and sees that nothing bears its mark.
    pub(super) fn is_gone(&self, run: &str) {
        assert_eq!(marked(run), Vec::<String>::new(), "processes of an ended run");
        until("the folder of an ended run to go", || !self.run_folder(run).exists());
        until("the supervisor of an ended run to go", || supervisors(run).is_empty());
    }

    fn runs(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.daemon.home().join("runs")) else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}

fn entry(name: &str, driver: &str, command: &[String], settings: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    let mut text = format!("[agents.{name}]\ndriver = \"{driver}\"\ncommand = {command}\n");
    for (key, value) in DEFAULTS {
        if !settings.contains(key) {
            writeln!(text, "{key} = {value}").unwrap();
        }
    }
    text + settings + "\n"
}

/// Agents outlive a daemon that is killed, so all of them are stopped first. What lives after that is a defect.
impl Drop for Stage {
    fn drop(&mut self) {
        if !self.daemon.is_alive() {
            return;
        }
        let listed = self.daemon.request("GET", "/api/v1/sessions?limit=1000", &[], None).json();
        let runs = self.runs();
        for row in listed["sessions"].as_array().unwrap_or(&Vec::new()) {
            for _ in 0..3 {
                self.post(&format!("/sessions/{}/stop", row["id"].as_str().unwrap()), &json!({}));
            }
        }
        if std::thread::panicking() {
            let since = Instant::now();
            while !self.runs().is_empty() && since.elapsed() < PATIENCE {
                // sleep: between two looks at processes that end.
                std::thread::sleep(Duration::from_millis(5));
            }
            return;
        }
        until("the last runs to end", || self.runs().is_empty());
        for run in runs {
            assert_eq!(marked(&run), Vec::<String>::new(), "processes of {run}");
        }
    }
}

/// A session, and a reader of its log that has come to some place in it.
pub(super) struct Talk<'a> {
    stage: &'a Stage,
    pub(super) id: String,
    reader: BufReader<UnixStream>,
    pub(super) seen: Vec<Value>,
}

impl Talk<'_> {
    pub(super) fn post(&self, what: &str, body: &Value) -> Answer {
        self.stage.post(&format!("/sessions/{}/{what}", self.id), body)
    }

    pub(super) fn try_turn(&self, prompt: &str) -> Answer {
        self.post("turns", &json!({"prompt": prompt}))
    }

    /// Sends a prompt; the turn's id.
    pub(super) fn turn(&self, prompt: &str) -> String {
        let answer = self.try_turn(prompt);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["turn"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and reads on to the end of its turn.
    pub(super) fn ask(&mut self, prompt: &str) -> Value {
        self.turn(prompt);
        self.over()
    }

    pub(super) fn cancel(&self) {
        let answer = self.post("cancel", &json!({}));
        assert_eq!(answer.status, 202, "{}", answer.text());
    }

    pub(super) fn stop(&self) {
        let answer = self.post("stop", &json!({}));
        assert_eq!(answer.status, 202, "{}", answer.text());
    }

    /// The next event, whenever it comes.
    pub(super) fn next(&mut self) -> Value {
        let (mut line, since) = (String::new(), Instant::now());
        loop {
            line.clear();
            // Heartbeats come also where nothing else does.
            assert!(since.elapsed() < EVENT_WAIT, "no further event: {:#?}", self.seen);
            let read = self.reader.read_line(&mut line);
            let read = read.unwrap_or_else(|error| panic!("no further event: {error}\n{:#?}", self.seen));
            assert_ne!(read, 0, "the stream ended: {:#?}", self.seen);
            if let Some(text) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(text).unwrap();
                self.seen.push(event.clone());
                return event;
            }
        }
    }

    /// Reads on to the next event of a kind.
    pub(super) fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Reads on to the end of the running turn.
    pub(super) fn over(&mut self) -> Value {
        loop {
            let event = self.next();
            if event["type"] == "turn.finished" || event["type"] == "turn.interrupted" {
                return event;
            }
        }
    }

    /// Reads everything that is in the log by now.
    pub(super) fn catch_up(&mut self) {
        let head = self.stage.get(&format!("/sessions/{}/events?limit=1", self.id))["head"].as_u64().unwrap();
        while self.seen.last().is_none_or(|event| event["seq"].as_u64() < Some(head)) {
            self.next();
        }
    }

    pub(super) fn all<'s>(&'s self, kind: &str) -> Vec<&'s Value> {
        self.seen.iter().filter(|event| event["type"] == kind).collect()
    }

    /// What the agent said so far, in one piece.
    pub(super) fn said(&self) -> String {
        let texts = self.all("message");
        texts.into_iter().filter(|event| event["data"]["role"] == "agent").map(text_of).collect()
    }

    /// What the agent says to one prompt, whose turn ends well.
    pub(super) fn answer_to(&mut self, prompt: &str) -> String {
        let before = self.said().len();
        let end = self.ask(prompt);
        assert_eq!((&end["type"], &end["data"]["outcome"]), (&json!("turn.finished"), &json!("completed")));
        self.said().split_off(before)
    }

    /// The newest run that was seen.
    pub(super) fn run(&self) -> String {
        let started = self.all("run.started");
        started.last().unwrap()["data"]["run"].as_str().unwrap().to_owned()
    }

    /// How many runs there were.
    pub(super) fn runs(&self) -> usize {
        self.all("run.started").len()
    }

    /// Reads on to the end of the newest run, and sees that nothing of it lives at that moment.
    pub(super) fn run_over(&mut self) -> Value {
        let ended = self.until("run.ended");
        self.stage.is_gone(ended["data"]["run"].as_str().unwrap());
        ended
    }

    pub(super) fn record(&self) -> Value {
        self.stage.get(&format!("/sessions/{}", self.id))
    }
}

fn text_of(event: &Value) -> String {
    event["data"]["text"].as_str().unwrap().to_owned()
}

/// That a turn was interrupted, and why; its reason.
pub(super) fn interrupted(end: &Value, cause: &str) -> String {
    assert_eq!(end["type"], "turn.interrupted", "{end:#}");
    assert_eq!(end["data"]["cause"], cause, "{end:#}");
    end["data"]["reason"].as_str().unwrap_or_default().to_owned()
}

/// The channels a receipt lists.
pub(super) fn tried(ended: &Value) -> Vec<&str> {
    let tried = ended["data"]["receipt"]["tried"].as_array();
    tried.into_iter().flatten().map(|attempt| attempt["channel"].as_str().unwrap()).collect()
}

/// The processes a receipt lists, with the signal each was sent last.
pub(super) fn ended_by(ended: &Value) -> Vec<(&str, &str)> {
    let processes = ended["data"]["receipt"]["processes"].as_array();
    processes
        .into_iter()
        .flatten()
        .map(|process| (process["name"].as_str().unwrap(), process["by"].as_str().unwrap()))
        .collect()
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        // sleep: between two looks at something that happens elsewhere.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Living processes with a run's mark in their environment, except its supervisor, by number and command line.
pub(super) fn marked(run: &str) -> Vec<String> {
    let mark = format!("LANYARD_RUN={run}");
    processes(|folder| {
        let environ = std::fs::read(folder.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) && !supervises(folder, run)
    })
}

/// The numbers of processes with a run's mark and this name.
pub(super) fn pids_of(run: &str, name: &str) -> Vec<i32> {
    let named = |line: &String| line.split(' ').nth(1).is_some_and(|program| program.ends_with(name));
    marked(run).iter().filter(|line| named(line)).map(|line| number(line)).collect()
}

/// The supervisors of a run: it stands in their command line.
pub(super) fn supervisors(run: &str) -> Vec<i32> {
    processes(|folder| supervises(folder, run)).iter().map(|line| number(line)).collect()
}

fn supervises(folder: &Path, run: &str) -> bool {
    let line = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    line.contains("\0shim\0") && line.contains(run)
}

fn number(line: &str) -> i32 {
    line.split(' ').next().unwrap().parse().unwrap()
}

fn processes(wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.bytes().all(|byte| byte.is_ascii_digit()) && wanted(&entry.path()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("{name} {}", line.trim()));
        }
    }
    found
}
