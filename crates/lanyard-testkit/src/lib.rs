//! A real daemon in a folder of its own, and simple clients for it. Everything it starts ends with it. The suites of processes
//! share it; no part of the product depends on it.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "helpers of tests fail as tests do"
)]
#![allow(clippy::disallowed_methods, reason = "real processes are waited for in real time")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a daemon may take to start, and a request to be answered. Generous: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the condition came true before patience ran out.
pub fn until(mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if done() {
            return true;
        }
        // sleep: what is waited for happens in another process.
        std::thread::sleep(Duration::from_millis(25));
    }
    false
}

/// In the environment of every daemon, and of what it starts: the folder of the test. `cargo xtask test` looks for it.
pub const MARK: &str = "LY_TEST_FOLDER";

/// How a daemon is started.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    env: BTreeMap<OsString, OsString>,
    config: Option<String>,
    program: Option<PathBuf>,
    listen: Option<String>,
    new_journal: bool,
    user: Option<u32>,
}

impl Setup {
    /// Another program than the one that was built.
    #[must_use]
    pub fn program(mut self, path: &Path) -> Self {
        self.program = Some(path.to_owned());
        self
    }

    /// A journal of its own, where the one before is gone.
    #[must_use]
    pub fn new_journal(mut self) -> Self {
        self.new_journal = true;
        self
    }

    /// Another user, where the tests are run by root.
    #[must_use]
    pub fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// An address of its own, for agents that hold the one of the daemon before.
    #[must_use]
    pub fn listen(mut self, address: &str) -> Self {
        self.listen = Some(address.to_owned());
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    #[must_use]
    pub fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }
}

#[derive(Debug)]
pub struct Daemon {
    folder: tempfile::TempDir,
    setup: Setup,
    child: Mutex<Option<Child>>,
}

impl Daemon {
    /// A folder and no daemon yet.
    pub fn prepare(setup: Setup) -> Self {
        // In /tmp, since a socket's path must be short.
        Self::prepare_in("/tmp", setup)
    }

    /// The same in another place.
    pub fn prepare_in(base: &str, setup: Setup) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in(base).unwrap();
        Self { folder, setup, child: Mutex::new(None) }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A variable that is known only once there is a folder.
    pub fn add_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.setup = std::mem::take(&mut self.setup).env(name, value);
    }

    pub fn start(setup: Setup) -> Self {
        let mut daemon = Self::prepare(setup);
        daemon.must_start();
        daemon
    }

    fn must_start(&mut self) {
        if let Err(error) = self.try_start() {
            panic!("the daemon did not start: {error}");
        }
    }

    /// Starts the daemon and waits until it answers. An error is what it said before it ended.
    pub fn try_start(&mut self) -> Result<(), String> {
        if let Some(config) = &self.setup.config {
            std::fs::write(self.config(), config).unwrap();
        }
        let log = std::fs::File::options().create(true).append(true).open(self.stderr_path()).unwrap();
        let mut command = Command::new(self.setup.program.as_deref().unwrap_or(binary()));
        command
            .args(["up", "--listen", self.setup.listen.as_deref().unwrap_or("127.0.0.1:0"), "--data-dir"])
            .arg(self.home())
            .arg("--config")
            .arg(self.config())
            .args(self.setup.new_journal.then_some("--new-journal"))
            .env_remove("LANYARD_SESSION")
            .env_remove("LANYARD_FAILPOINT")
            .env("LANYARD_LOG", "info")
            .env(MARK, self.folder.path())
            .envs(&self.setup.env)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(user) = self.setup.user {
            command.uid(user).gid(user);
        }
        *self.child.lock().unwrap() = Some(command.spawn().unwrap());
        let since = Instant::now();
        while !self.caller().answers() {
            if !self.is_alive() {
                return Err(self.stderr());
            }
            assert!(since.elapsed() < PATIENCE, "the daemon does not answer: {}", self.stderr());
            // sleep: between two looks at a process that starts.
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub fn restart_with(&mut self, setup: Setup) {
        if let Err(error) = self.try_restart_with(setup) {
            panic!("the daemon did not start: {error}");
        }
    }

    pub fn try_restart_with(&mut self, setup: Setup) -> Result<(), String> {
        self.kill_9();
        self.setup = setup;
        self.try_start()
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.lock().unwrap().as_ref().map(Child::id)
    }

    pub fn is_alive(&self) -> bool {
        match &mut *self.child.lock().unwrap() {
            Some(child) => child.try_wait().unwrap().is_none(),
            None => false,
        }
    }

    pub fn kill_9(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM, and how it ended.
    pub fn terminate(&self) -> std::process::ExitStatus {
        let pid = self.child.lock().unwrap().as_ref().map(rustix::process::Pid::from_child).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.wait()
    }

    /// How it ended, once it has.
    pub fn wait(&self) -> std::process::ExitStatus {
        let mut child = self.child.lock().unwrap().take().unwrap();
        child.wait().unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn stderr_path(&self) -> PathBuf {
        self.folder.path().join("stderr")
    }

    /// What all daemons in this folder have said so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.stderr_path()).unwrap_or_default()
    }

    pub fn token(&self) -> String {
        std::fs::read_to_string(self.home().join("token")).unwrap_or_default().trim().to_owned()
    }

    /// Where it listens on TCP.
    pub fn address(&self) -> String {
        let text = std::fs::read_to_string(self.home().join("daemon.lock")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["address"].as_str().unwrap().to_owned()
    }

    /// Runs the command line against this daemon.
    pub fn lanyard(&self, words: &[&str]) -> Output {
        Command::new(binary())
            .args(words)
            .env("LANYARD_DATA_DIR", self.home())
            .env("LANYARD_CONFIG", self.config())
            .env("LANYARD_NO_START", "1")
            .env("COLUMNS", "140")
            .env_remove("LANYARD_SESSION")
            .env_remove("LANYARD_FAILPOINT")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    pub fn caller(&self) -> Caller {
        Caller { socket: self.home().join("lanyard.sock"), token: self.token() }
    }

    /// A request with the operator's token, over the socket.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        self.caller()
            .try_request(method, path, headers, body)
            .unwrap_or_else(|error| panic!("{method} {path}: {error}\n{}", self.stderr()))
    }

    /// A session's events after a position, to the end of its log.
    pub fn log_after(&self, session: &str, after: u64) -> Vec<Value> {
        let mut log = Vec::new();
        let mut cursor = after;
        loop {
            let path = format!("/api/v1/sessions/{session}/events?limit=1000&after={cursor}");
            let page = self.request("GET", &path, &[], None);
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            let page = page.json();
            let events = page["events"].as_array().unwrap();
            log.extend(events.iter().cloned());
            cursor = log.last().map_or(after, |event| event["seq"].as_u64().unwrap());
            if cursor >= page["head"].as_u64().unwrap() {
                return log;
            }
        }
    }
}

/// Everything that daemons of a test's folder have started and that lives, by number and command line.
fn processes(folder: &Path, home: &Path) -> Vec<(rustix::process::Pid, String)> {
    let mut marks = vec![format!("{MARK}={}", folder.display())];
    // An agent may be started without the daemon's environment; its run always stands in it.
    let runs = std::fs::read_dir(home.join("runs")).into_iter().flatten().flatten();
    marks.extend(runs.map(|run| format!("LANYARD_RUN={}", run.file_name().display())));
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) else { continue };
        // The environment of a zombie, and of another user's process, cannot be read.
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let marked = |held: &[u8]| marks.iter().any(|mark| mark.as_bytes() == held);
        if environ.split(|byte| *byte == 0).any(marked) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

/// Kills all processes of a test's folder. Returns those that outlive it.
pub fn end_processes(folder: &Path, home: &Path) -> Vec<(rustix::process::Pid, String)> {
    let since = Instant::now();
    let mut left = processes(folder, home);
    while !left.is_empty() && since.elapsed() < PATIENCE {
        for (pid, _) in &left {
            let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
        }
        // sleep: between two looks at processes that end.
        std::thread::sleep(Duration::from_millis(2));
        left = processes(folder, home);
    }
    left
}

/// Agents outlive a daemon that is killed. A test leaves none behind.
impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill_9();
        if std::thread::panicking() {
            eprintln!("the daemon said:\n{}", self.stderr());
        }
        let left = end_processes(self.folder.path(), &self.home());
        let lost = !left.is_empty() && !std::thread::panicking();
        assert!(!lost, "processes are left behind: {left:?}");
    }
}

/// A client of one daemon, for use in any thread.
#[derive(Debug, Clone)]
pub struct Caller {
    pub socket: PathBuf,
    pub token: String,
}

impl Caller {
    fn answers(&self) -> bool {
        self.try_request("GET", "/api/v1/status", &[], None).is_ok_and(|answer| answer.status == 200)
    }

    pub fn try_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> std::io::Result<Answer> {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("host", "localhost"), ("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        exchange(UnixStream::connect(&self.socket)?, method, path, &all, body)
    }
}

/// Sends one request on a connection of its own and reads the whole answer.
pub fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> std::io::Result<Answer> {
    stream.write_all(head(method, path, headers, body).as_bytes())?;
    if let Some(body) = body {
        // A server that has refused a body need not read it.
        let _ = stream.write_all(body.as_bytes());
    }
    let mut reader = BufReader::new(stream);
    let mut answer = read_head(&mut reader)?;
    match answer.header("content-length").map(|length| length.parse().unwrap()) {
        Some(length) => {
            answer.body = vec![0; length];
            reader.read_exact(&mut answer.body)?;
        }
        None => {
            reader.read_to_end(&mut answer.body)?;
        }
    }
    Ok(answer)
}

pub fn head(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> String {
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), "connection: close".to_owned()];
    if let Some(body) = body {
        lines.push(format!("content-length: {}", body.len()));
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            lines.push("content-type: application/json".to_owned());
        }
    }
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.join("\r\n") + "\r\n\r\n"
}

pub fn read_head(reader: &mut impl BufRead) -> std::io::Result<Answer> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no answer: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => return Ok(Answer { status, headers, body: Vec::new() }),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The stable code of a refusal.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// The program that is tested: cargo puts it into the folder above that of the tests.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("lanyard"))
}
