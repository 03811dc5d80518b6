//! A daemon with a scripted agent, and editors: the official client crate over the pipes of a real `lanyard acp`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, InitializeResponse, LoadSessionRequest,
    NewSessionRequest, PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
};
use agent_client_protocol::v1::{ConnectionTo, Responder, SentRequest};
use agent_client_protocol::{Agent, Client, Error, JsonRpcRequest, JsonRpcResponse, Lines};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
    config: String,
}

impl Stage {
    /// A daemon with one agent, `a`, that is scripted.
    pub(super) fn new() -> Self {
        Self::with(&[])
    }

    /// The same, with these flags of the agent.
    pub(super) fn with(flags: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let memory = folder.path().join("state").display().to_string();
        let program = binary().display().to_string();
        let command: Vec<&str> = [&program, "scripted-agent", "--state", &memory]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        let command = serde_json::to_string(&command).unwrap();
        let config = format!(
            "[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\ncancel_grace_ms = 5000\n"
        );
        let mut stage = Self { daemon: Daemon::prepare(Setup::default()), folder, config };
        stage.up();
        stage
    }

    /// A daemon in place of the one that was, which is killed.
    pub(super) fn up(&mut self) {
        self.daemon.restart_with(Setup::default().config(&self.config));
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work").canonicalize().unwrap()
    }

    pub(super) fn touch(&self, name: &str) {
        std::fs::write(self.work().join(name), "").unwrap();
    }

    pub(super) fn await_file(&self, name: &str) {
        until(&format!("the file {name}"), || self.work().join(name).exists());
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A session as it is shown, once it is as wanted.
    pub(super) fn session(&self, id: &SessionId, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut shown = Value::Null;
        until("the session to be as wanted", || {
            shown = self.get(&format!("/sessions/{id}"));
            wanted(&shown)
        });
        shown
    }

    /// A session without a turn.
    pub(super) fn at_rest(&self, id: &SessionId) -> Value {
        self.session(id, |shown| shown["active_turn"].is_null())
    }

    /// The first question that waits.
    pub(super) fn question(&self, id: &SessionId) -> String {
        let shown = self.session(id, |shown| shown["gates"][0]["status"]["name"] == "open");
        shown["gates"][0]["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn answer(&self, id: &SessionId, gate: &str, option: &str) -> Answer {
        self.post(&format!("/sessions/{id}/gates/{gate}"), &json!({"option": option}))
    }

    pub(super) fn log(&self, id: &SessionId) -> Vec<Value> {
        self.daemon.log_after(&id.to_string(), 0)
    }

    /// `lanyard acp` for this daemon, with nothing connected yet.
    pub(super) fn acp(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("acp")
            .args(words)
            .env("LANYARD_DATA_DIR", self.daemon.home())
            .env("LANYARD_CONFIG", self.daemon.config())
            .env("LANYARD_NO_START", "1")
            .env_remove("LANYARD_FAILPOINT")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    pub(super) fn editor(&self) -> Editor {
        self.editor_with(&["--agent", "a"])
    }

    pub(super) fn editor_with(&self, words: &[&str]) -> Editor {
        Editor::start(self.acp(words))
    }
}

/// A test that fails leaves no agent behind either.
impl Drop for Stage {
    fn drop(&mut self) {
        if !self.daemon.is_alive() && !std::thread::panicking() {
            self.up();
        }
        let Ok(listed) = self.daemon.caller().try_request("GET", "/api/v1/sessions?limit=1000", &[], None)
        else {
            return;
        };
        for row in listed.json()["sessions"].as_array().into_iter().flatten() {
            let path = format!("/api/v1/sessions/{}/stop", row["id"].as_str().unwrap_or_default());
            for _ in 0..3 {
                let _ = self.daemon.caller().try_request("POST", &path, &[], Some("{}"));
            }
        }
        let idle = || {
            let answer = self.daemon.caller().try_request("GET", "/api/v1/sessions?limit=1000", &[], None);
            let ended = |row: &Value| row["lifecycle"] == "terminal";
            answer.is_ok_and(|answer| {
                answer.json()["sessions"].as_array().is_none_or(|rows| rows.iter().all(ended))
            })
        };
        let since = Instant::now();
        while !idle() && since.elapsed() < PATIENCE {
            // sleep: between two looks at agents that end.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A question the editor was asked, and the way to answer it.
pub(super) struct Asked {
    pub(super) request: RequestPermissionRequest,
    responder: Responder<RequestPermissionResponse>,
}

impl Asked {
    pub(super) fn choose(self, option: &str) {
        let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.to_owned()));
        self.responder.respond(RequestPermissionResponse::new(outcome)).unwrap();
    }

    pub(super) fn give_up(self) {
        let outcome = RequestPermissionOutcome::Cancelled;
        self.responder.respond(RequestPermissionResponse::new(outcome)).unwrap();
    }

    /// Waits until the agent does not want an answer any more.
    pub(super) fn until_taken_back(&self) {
        let cancellation = self.responder.cancellation();
        until("the question to be taken back", || cancellation.is_cancelled());
    }
}

/// What the editor has been told, in order.
type Seen = Arc<Mutex<Vec<SessionNotification>>>;

pub(super) struct Editor {
    child: Child,
    connection: ConnectionTo<Agent>,
    seen: Seen,
    asked: mpsc::Receiver<Asked>,
    /// Its end closes the pipes.
    _open: tokio::sync::oneshot::Sender<()>,
    pub(super) greeting: InitializeResponse,
}

impl Editor {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let seen = Seen::default();
        let (ask, asked) = mpsc::channel();
        let (connected, connection) = mpsc::channel();
        let (open, closed) = tokio::sync::oneshot::channel::<()>();
        let told = Arc::clone(&seen);
        std::thread::spawn(move || {
            let work = serve(stdin, stdout, told, ask, connected, closed);
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
        });
        let connection: ConnectionTo<Agent> = connection.recv_timeout(PATIENCE).unwrap();
        let greeting =
            wait(connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task()).unwrap();
        Self { child, connection, seen, asked, _open: open, greeting }
    }

    /// Asks and waits for the answer.
    pub(super) fn request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, Error>
    where
        R::Response: Send + 'static,
    {
        wait(self.connection.send_request(request).block_task())
    }

    pub(super) fn new_session(&self, stage: &Stage) -> SessionId {
        self.request(NewSessionRequest::new(stage.work())).unwrap().session_id
    }

    /// Sends a prompt, whose answer can be waited for.
    pub(super) fn send(&self, session: &SessionId, prompt: &str) -> Pending<PromptResponse> {
        let blocks = vec![ContentBlock::from(prompt)];
        Pending(self.connection.send_request(PromptRequest::new(session.clone(), blocks)))
    }

    pub(super) fn prompt(&self, session: &SessionId, prompt: &str) -> Result<PromptResponse, Error> {
        self.send(session, prompt).wait()
    }

    pub(super) fn cancel(&self, session: &SessionId) {
        self.connection.send_notification(CancelNotification::new(session.clone())).unwrap();
    }

    pub(super) fn load(&self, stage: &Stage, session: &SessionId) -> Result<(), Error> {
        self.request(LoadSessionRequest::new(session.clone(), stage.work())).map(drop)
    }

    /// The next question.
    pub(super) fn asked(&self) -> Asked {
        self.asked.recv_timeout(PATIENCE).expect("a question")
    }

    pub(super) fn is_asked_nothing(&self) -> bool {
        self.asked.try_recv().is_err()
    }

    /// Updates of a session so far.
    pub(super) fn updates(&self, session: &SessionId) -> Vec<SessionUpdate> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|told| told.session_id == *session).map(|told| told.update.clone()).collect()
    }

    /// Forgets what was told so far.
    pub(super) fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    /// Waits until what was told of a session is as wanted.
    pub(super) fn until(&self, session: &SessionId, what: &str, wanted: impl Fn(&str) -> bool) {
        let since = Instant::now();
        loop {
            let told = story(&self.updates(session));
            if wanted(&told) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "no sign of {what} in:\n{told}");
            // sleep: between two looks at what comes over a pipe.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// How the program ended.
    pub(super) fn ended(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        until("the end of lanyard acp", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Closes the pipes, as an editor that is closed.
    pub(super) fn close(self) -> std::process::ExitStatus {
        let Self { mut child, connection, _open: open, .. } = self;
        drop((connection, open));
        let mut status = None;
        until("the end of lanyard acp", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

async fn serve(
    stdin: std::process::ChildStdin,
    stdout: std::process::ChildStdout,
    told: Seen,
    ask: mpsc::Sender<Asked>,
    connected: mpsc::Sender<ConnectionTo<Agent>>,
    closed: tokio::sync::oneshot::Receiver<()>,
) {
    let stdin = tokio::process::ChildStdin::from_std(stdin).unwrap();
    let stdout = BufReader::new(tokio::process::ChildStdout::from_std(stdout).unwrap()).lines();
    let outgoing = futures_util::sink::unfold(stdin, async |mut stdin, line: String| {
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        stdin.flush().await?;
        Ok::<_, std::io::Error>(stdin)
    });
    let incoming = futures_util::stream::unfold(stdout, async |mut lines| {
        let line = lines.next_line().await.transpose()?;
        Some((line, lines))
    });
    // It ends with an error when the program is killed, which is what some tests are about.
    let _ = Client
        .v1()
        .name("test-editor")
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                told.lock().unwrap().push(notification);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                // A test that is over asks nothing.
                let _ = ask.send(Asked { request, responder });
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(Lines::new(outgoing, incoming), async move |connection: ConnectionTo<Agent>| {
            let _ = connected.send(connection);
            let _ = closed.await;
            Ok(())
        })
        .await;
}

/// An answer that is still to come.
pub(super) struct Pending<T: JsonRpcResponse + Send + 'static>(SentRequest<T>);

impl<T: JsonRpcResponse + Send + 'static> Pending<T> {
    pub(super) fn wait(self) -> Result<T, Error> {
        wait(self.0.block_task())
    }

    /// Asks that it be given up.
    pub(super) fn take_back(&self) {
        self.0.cancel().unwrap();
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("an answer in time") })
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        // sleep: between two looks at something that happens elsewhere.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Updates as lines, chunks of one message joined: what an editor would show, however it was cut.
pub(super) fn story(updates: &[SessionUpdate]) -> String {
    let mut story = String::new();
    for Piece { kind, id, text } in pieces(updates) {
        writeln!(story, "{}: {text}", format!("{kind} {id}").trim_end()).unwrap();
    }
    story
}

/// The same without the ids of messages and turns.
pub(super) fn plain(updates: &[SessionUpdate]) -> String {
    let mut story = String::new();
    for Piece { kind, text, .. } in pieces(updates) {
        writeln!(story, "{kind}: {text}").unwrap();
    }
    story
}

struct Piece {
    kind: String,
    /// Of the message it belongs to.
    id: String,
    text: String,
}

fn pieces(updates: &[SessionUpdate]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for update in updates {
        let value = serde_json::to_value(update).unwrap();
        let kind = value["sessionUpdate"].as_str().unwrap().trim_end_matches("_chunk").to_owned();
        let word = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let text = if let SessionUpdate::Plan(plan) = update {
            let shown = plan.entries.iter().map(|entry| {
                let status = serde_json::to_value(&entry.status).unwrap();
                format!("{} ({})", entry.content, status.as_str().unwrap())
            });
            shown.collect::<Vec<_>>().join(", ")
        } else if let Some(text) = value["content"]["text"].as_str() {
            text.to_owned()
        } else {
            let text = value["content"][0]["content"]["text"].as_str().unwrap_or_default();
            let words = [word("toolCallId"), word("title"), word("status"), text.to_owned()];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let piece = Piece { kind, id: word("messageId"), text };
        match pieces.last_mut() {
            Some(last) if !piece.id.is_empty() && (&last.kind, &last.id) == (&piece.kind, &piece.id) => {
                last.text.push_str(&piece.text);
            }
            _ => pieces.push(piece),
        }
    }
    pieces
}
