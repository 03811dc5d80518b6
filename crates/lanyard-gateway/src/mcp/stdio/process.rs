//! One process of a server: its pipes, who waits for which answer, and its end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use lanyard_api::agents::settings::McpStdio;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant};

use super::link::Link;
use super::route;
use crate::http_endpoint::Trouble;
use crate::mcp::server::ANSWER_BYTES_MAX;
use lanyard_base::environment;

/// Messages that wait for a server that reads slowly.
const INPUT_MAX: usize = 64;
/// Bytes from which on they are not collected any more before they are written.
const TOGETHER_BYTES: usize = 64 * 1024;
/// How long one may wait.
const INPUT_PATIENCE: Duration = Duration::from_secs(10);
/// Messages for one call that wait for its client, beside the answer; beyond that they are left out.
const OTHERS_MAX: usize = 256;
/// How long a server has after its input was closed, and after SIGTERM.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long what it said last may take to be read, once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Bytes of its stderr that are shown when it fails.
const STDERR_BYTES_MAX: usize = 2 * 1024;

/// Somebody waits for an answer.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    answer: oneshot::Sender<Result<Bytes, Trouble>>,
    pub(super) others: mpsc::Sender<Bytes>,
    pub(super) link: Weak<Link>,
    /// The client's own id, where the server was given another.
    pub(super) id: Option<String>,
    /// The client's own progress token.
    pub(super) token: Option<String>,
    pub(super) order: u64,
}

/// A process that runs, or ran.
#[derive(Debug)]
pub(super) struct Process {
    input: mpsc::Sender<Bytes>,
    pub(super) pending: Mutex<HashMap<String, PendingAnswer>>,
    /// What the server asked its clients, and whom.
    pub(super) asked: Mutex<HashMap<String, Weak<Link>>>,
    next: AtomicU64,
    alive: AtomicBool,
    over: Notify,
    end: Notify,
    why: Mutex<String>,
    said: Mutex<Vec<u8>>,
    pub(super) started: Instant,
    pub(super) ended_at: OnceLock<Instant>,
    /// What it answered to the greeting.
    pub(super) greeting: OnceLock<String>,
    /// Clients with one process in common get ids of Lanyard's own.
    pub(super) is_shared: bool,
    pub(super) links: Mutex<Vec<Weak<Link>>>,
}

impl Process {
    pub(super) fn start(
        settings: &McpStdio,
        marker: &str,
        cwd: Option<&Path>,
        is_shared: bool,
    ) -> Result<Arc<Self>, Trouble> {
        let [program, arguments @ ..] = settings.command.as_slice() else {
            return Err(Trouble::NotStarted("its command is empty".to_owned()));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment::inherited(settings.clear_env))
            .envs(&settings.env)
            .env(lanyard_api::names::MARKER, marker)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let mut child =
            command.spawn().map_err(|error| Trouble::NotStarted(format!("{program}: {error}")))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Trouble::NotStarted("it has no pipes".to_owned()));
        };
        let (input, lines) = mpsc::channel(INPUT_MAX);
        let process = Arc::new(Self {
            input,
            pending: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            alive: AtomicBool::new(true),
            over: Notify::new(),
            end: Notify::new(),
            why: Mutex::default(),
            said: Mutex::default(),
            started: Instant::now(),
            ended_at: OnceLock::new(),
            greeting: OnceLock::new(),
            is_shared,
            links: Mutex::default(),
        });
        let writing = tokio::spawn(write(stdin, lines));
        let reading = tokio::spawn(read(stdout, process.clone()));
        tokio::spawn(listen(stderr, process.clone()));
        tokio::spawn(keep(child, process.clone(), writing, reading));
        Ok(process)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// A number nobody else has; also the order in which calls were made.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a message. It must not hold a newline.
    pub(super) async fn send(&self, line: Bytes) -> Result<(), Trouble> {
        match tokio::time::timeout(INPUT_PATIENCE, self.input.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.trouble()),
            Err(_) => Err(Trouble::Slow(INPUT_PATIENCE)),
        }
    }

    /// Writes a message if there is room for it.
    pub(super) fn try_send(&self, line: Bytes) {
        if self.input.try_send(line).is_err() {
            tracing::debug!("an MCP server does not read; a message for it is left out");
        }
    }

    /// Waits for the answer to a request that is about to be sent. `id` is the client's own where `key` is not.
    pub(super) fn expect(
        self: &Arc<Self>,
        key: String,
        id: Option<String>,
        link: &Weak<Link>,
        token: Option<String>,
    ) -> Result<InFlight, Trouble> {
        let (answer, answered) = oneshot::channel();
        let (others, received) = mpsc::channel(OTHERS_MAX);
        let order = self.number();
        let pending = PendingAnswer { answer, others, link: link.clone(), id, token, order };
        self.pending.lock().insert(key.clone(), pending);
        // Checked after it was put there: whoever ends the process takes out what is there.
        if !self.is_alive() {
            self.pending.lock().remove(&key);
            return Err(self.trouble());
        }
        Ok(InFlight { process: self.clone(), key, order, answer: answered, others: received, done: false })
    }

    pub(super) fn answered(&self, key: &str, line: Bytes) {
        let pending = self.pending.lock().remove(key);
        let Some(pending) = pending else {
            tracing::debug!(id = key, "an MCP server answered what nobody waits for");
            return;
        };
        let line = match &pending.id {
            Some(id) => route::with_id(&line, id).unwrap_or(line),
            None => line,
        };
        let _ = pending.answer.send(Ok(line));
    }

    /// Asks it to end. It has ended when `over` says so.
    pub(super) fn end(&self) {
        self.end.notify_one();
    }

    pub(super) async fn over(&self) {
        let over = self.over.notified();
        if self.is_alive() {
            over.await;
        }
    }

    fn broke(&self, why: &str) {
        let mut held = self.why.lock();
        if held.is_empty() {
            why.clone_into(&mut held);
        }
        drop(held);
        self.end();
    }

    pub(super) fn trouble(&self) -> Trouble {
        let why = self.why.lock().clone();
        Trouble::Died(why)
    }

    fn died(&self, status: Option<ExitStatus>) {
        let said = String::from_utf8_lossy(&self.said.lock()).into_owned();
        let mut why = self.why.lock();
        let how = match (why.is_empty(), status) {
            (false, _) => format!(" ({why})"),
            (true, Some(status)) => format!(" ({status})"),
            (true, None) => String::new(),
        };
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        *why = how + &last.map_or_else(String::new, |line| format!(", having said `{}`", line.trim()));
        drop(why);
        let _ = self.ended_at.set(Instant::now());
        self.alive.store(false, Ordering::Release);
        let pending = std::mem::take(&mut *self.pending.lock());
        for (_, waiting) in pending {
            let _ = waiting.answer.send(Err(self.trouble()));
        }
        self.over.notify_waiters();
    }
}

/// A request on its way. Dropped before its answer came, the server is told that nobody waits any more.
#[derive(Debug)]
pub(super) struct InFlight {
    process: Arc<Process>,
    key: String,
    order: u64,
    pub(super) answer: oneshot::Receiver<Result<Bytes, Trouble>>,
    pub(super) others: mpsc::Receiver<Bytes>,
    pub(super) done: bool,
}

impl InFlight {
    /// What came out of it; the process may have been dropped whole.
    pub(super) fn outcome(
        &mut self,
        answer: Result<Result<Bytes, Trouble>, oneshot::error::RecvError>,
    ) -> Result<Bytes, Trouble> {
        self.done = true;
        answer.unwrap_or_else(|_| Err(self.process.trouble()))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut pending = self.process.pending.lock();
        // The same id may be in use again by another request.
        if pending.get(&self.key).is_none_or(|held| held.order != self.order) {
            return;
        }
        pending.remove(&self.key);
        drop(pending);
        let key = &self.key;
        self.process.try_send(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{key},"reason":"the client does not wait any more"}}}}"#
        )));
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Bytes>) {
    let mut together = Vec::new();
    while let Some(line) = lines.recv().await {
        // What waits goes out with one write: the server wakes once.
        let mut next = Some(line);
        while let Some(line) = next {
            together.extend_from_slice(&line);
            together.push(b'\n');
            next = if together.len() < TOGETHER_BYTES { lines.try_recv().ok() } else { None };
        }
        if stdin.write_all(&together).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        together.clear();
        together.shrink_to(TOGETHER_BYTES);
    }
}

async fn read(stdout: ChildStdout, process: Arc<Process>) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line: Vec<u8> = Vec::new();
    loop {
        let room = (ANSWER_BYTES_MAX + 1).saturating_sub(line.len()) as u64;
        match (&mut reader).take(room).read_until(b'\n', &mut line).await {
            Ok(0) => return process.broke(""),
            Err(error) => return process.broke(&error.to_string()),
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            if line.len() > ANSWER_BYTES_MAX {
                return process.broke(&format!("it said more than {ANSWER_BYTES_MAX} bytes in one line"));
            }
            continue;
        }
        let message = Bytes::copy_from_slice(line.trim_ascii());
        // One huge line should not be paid for ever after.
        if line.capacity() > 1 << 20 {
            line = Vec::new();
        }
        line.clear();
        if !message.is_empty() {
            route::dispatch(&process, &message);
        }
    }
}

async fn listen(stderr: ChildStderr, process: Arc<Process>) {
    let mut reader = BufReader::new(stderr);
    let mut piece = [0; 1024];
    while let Ok(len @ 1..) = reader.read(&mut piece).await {
        let mut said = process.said.lock();
        said.extend_from_slice(&piece[..len]);
        let over = said.len().saturating_sub(STDERR_BYTES_MAX);
        said.drain(..over);
    }
}

/// Stays with the child to its end.
async fn keep(mut child: Child, process: Arc<Process>, writing: JoinHandle<()>, reading: JoinHandle<()>) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        () = process.end.notified() => {
            // A server whose input ends has no more to do.
            writing.abort();
            end(&mut child, group).await
        }
    };
    writing.abort();
    // What it said last is still in the pipe; a child of its own may hold it open for ever.
    let mut reading = reading;
    if tokio::time::timeout(LAST_WORDS, &mut reading).await.is_err() {
        reading.abort();
    }
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    process.died(status);
}

async fn end(child: &mut Child, group: Option<Pid>) -> Option<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(CLOSE_GRACE, child.wait()).await {
        return status.ok();
    }
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::TERM);
    }
    if let Ok(status) = tokio::time::timeout(TERM_GRACE, child.wait()).await {
        return status.ok();
    }
    let _ = child.start_kill();
    child.wait().await.ok()
}
