//! `lanyard opencode-bridge` in front of a server that misbehaves on demand: the process is a shell script, and the
//! HTTP is spoken by the test itself.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{PATIENCE, binary};

const MAIN: &str = "ses_main";
const TURN: &str = "turn_1";

/// A request as it arrived.
#[derive(Debug, Clone)]
struct Asked {
    path: String,
    authorization: String,
    body: Value,
}

#[derive(Debug, Default)]
struct State {
    asked: Vec<Asked>,
    answers: BTreeMap<String, (u16, Value)>,
    /// Requests for health that are taken and never answered.
    deaf: u32,
    held: Vec<TcpStream>,
    streams: Vec<TcpStream>,
}

#[derive(Debug, Clone)]
struct FakeServer {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl FakeServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        server.answer("/global/health", json!({"healthy": true, "version": "1.18.33"}));
        server.answer("/session", json!({"id": MAIN}));
        server.answer("/session/status", json!({}));
        for path in ["/permission", "/question"] {
            server.answer(path, json!([]));
        }
        for path in ["children", "message", "todo"] {
            server.answer(&format!("/session/{MAIN}/{path}"), json!([]));
        }
        let shared = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let server = shared.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    fn answer(&self, path: &str, value: Value) {
        self.refuse(path, 200, value);
    }

    fn refuse(&self, path: &str, status: u16, value: Value) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), (status, value));
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let asked = read_request(&stream)?;
        let path = asked.path.clone();
        let mut state = self.state.lock().unwrap();
        state.asked.push(asked);
        if path == "/event" {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .ok()?;
            stream.write_all(b"data: {\"type\":\"server.connected\",\"properties\":{}}\n\n").ok()?;
            state.streams.push(stream);
            return None;
        }
        if path == "/global/health" && state.deaf > 0 {
            state.deaf -= 1;
            state.held.push(stream);
            return None;
        }
        let (status, value) = state.answers.get(&path).cloned().unwrap_or((200, json!(true)));
        drop(state);
        let body = value.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()
    }

    fn push(&self, kind: &str, properties: &Value) {
        let event = json!({"id": "evt_1", "type": kind, "properties": properties});
        let mut state = self.state.lock().unwrap();
        let text = format!("data: {event}\n\n");
        state.streams.retain_mut(|stream| stream.write_all(text.as_bytes()).is_ok());
    }

    fn break_streams(&self) {
        for stream in self.state.lock().unwrap().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn wait_for(&self, path: &str, times: usize) -> Asked {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let state = self.state.lock().unwrap();
            if let Some(asked) = state.asked.iter().filter(|asked| asked.path == path).nth(times - 1) {
                return asked.clone();
            }
            drop(state);
            assert!(Instant::now() < deadline, "{path} was not asked for");
            // sleep: another process makes the request
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, authorization, body: serde_json::from_slice(&body).unwrap_or_default() })
}

struct Bridge {
    server: FakeServer,
    folder: tempfile::TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Bridge {
    fn start(server: &FakeServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "echo $$ > {}/pid; echo $OPENCODE_SERVER_PASSWORD > {0}/password; echo \"$@\" > {0}/arguments\n\
             echo opencode server listening on http://127.0.0.1:{}; exec sleep 600",
            folder.path().display(),
            server.port,
        );
        let mut child = Command::new(binary())
            .args(["opencode-bridge", "--", "sh", "-c", &script, "sh"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let stdin = child.stdin.take();
        Self { server: server.clone(), folder, child, stdin, lines }
    }

    fn open(server: &FakeServer) -> Self {
        let mut bridge = Self::start(server);
        bridge.order(&json!({"id": "open", "op": "open", "directory": bridge.folder.path()}));
        let opened = bridge.line();
        assert_eq!(opened["ok"], json!({"native": MAIN, "version": "1.18.33", "history": null}), "{opened}");
        bridge
    }

    /// Open, with a prompt the server has begun to work on.
    fn at_work(server: &FakeServer) -> Self {
        let mut bridge = Self::open(server);
        bridge.order(&json!({"id": "p", "op": "prompt", "turn": TURN, "text": "hi"}));
        let asked = server.wait_for(&format!("/session/{MAIN}/prompt_async"), 1);
        assert_eq!(asked.body, json!({"parts": [{"type": "text", "text": "hi"}]}));
        assert_eq!(bridge.line(), json!({"re": "p", "ok": {}}));
        bridge.status("busy");
        server.push("message.updated", &json!({"sessionID": MAIN, "info": message()}));
        bridge
    }

    fn order(&mut self, order: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{order}").unwrap();
    }

    fn line(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn status(&self, kind: &str) {
        self.server.push("session.status", &json!({"sessionID": MAIN, "status": {"type": kind}}));
    }

    fn delta(&self, delta: &str) {
        let place = json!({"sessionID": MAIN, "messageID": "msg_1", "partID": "prt_1", "field": "text", "delta": delta});
        self.server.push("message.part.delta", &place);
    }

    fn part(&self, text: &str, ended: bool) {
        self.server.push("message.part.updated", &json!({"sessionID": MAIN, "part": part(text, ended)}));
    }

    /// The words of the next line, and where they stand.
    fn words(&self) -> (String, u64) {
        let line = self.line();
        let delta = &line["event"]["properties"]["delta"];
        (delta.as_str().unwrap_or_else(|| panic!("{line}")).to_owned(), line["note"]["at"].as_u64().unwrap())
    }

    fn server_pid(&self) -> i32 {
        std::fs::read_to_string(self.folder.path().join("pid")).unwrap().trim().parse().unwrap()
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the bridge does not end");
            // sleep: another process ends
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), i32::try_from(self.child.id())) {
            signal(pid, rustix::process::Signal::TERM);
            let _ = self.child.wait();
        }
        self.server.break_streams();
    }
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn message() -> Value {
    json!({"id": "msg_1", "role": "assistant", "sessionID": MAIN})
}

fn part(text: &str, ended: bool) -> Value {
    let time = if ended { json!({"start": 1, "end": 2}) } else { json!({"start": 1}) };
    json!({"id": "prt_1", "messageID": "msg_1", "sessionID": MAIN, "type": "text", "text": text, "time": time})
}

#[test]
fn a_prompt_is_handed_over_and_its_words_and_end_come_back() {
    let server = FakeServer::start();
    // A request between listening and being ready is never answered by the real one.
    server.state.lock().unwrap().deaf = 1;
    let bridge = Bridge::at_work(&server);
    let password = std::fs::read_to_string(bridge.folder.path().join("password")).unwrap();
    let arguments = std::fs::read_to_string(bridge.folder.path().join("arguments")).unwrap();
    assert_eq!(arguments.trim(), "--port 0 --hostname 127.0.0.1");
    assert_eq!(password.trim().len(), 32);
    let authorization = server.wait_for("/session", 1).authorization;
    assert!(authorization.starts_with("Basic b3BlbmNvZGU6"), "the user is opencode: {authorization}");

    bridge.part("", false);
    bridge.delta("Hello ");
    bridge.delta("you.");
    bridge.part("Hello you.", true);
    bridge.status("idle");
    assert_eq!(bridge.words(), ("Hello ".to_owned(), 0));
    assert_eq!(bridge.words(), ("you.".to_owned(), 6));
    let end = bridge.line();
    assert_eq!(end["event"]["type"], "session.idle");
    assert_eq!(end["note"], json!({"turn": TURN, "error": null, "aborted": false}));
}

#[test]
fn a_broken_stream_loses_and_repeats_nothing() {
    let server = FakeServer::start();
    let bridge = Bridge::at_work(&server);
    bridge.part("", false);
    bridge.delta("one ");
    assert_eq!(bridge.words(), ("one ".to_owned(), 0));
    // Half of the text falls into the gap, and a question too.
    server.answer(
        &format!("/session/{MAIN}/message"),
        json!([{"info": message(), "parts": [part("", false)]}]),
    );
    server.answer("/session/status", json!({MAIN: {"type": "busy"}}));
    server.answer("/permission", json!([{"id": "per_1", "sessionID": MAIN, "permission": "bash"}]));
    server.break_streams();
    server.wait_for("/event", 2);
    assert_eq!(bridge.line(), json!({"gap": {"number": 1}}));
    let asked = bridge.line();
    assert_eq!(asked["event"]["type"], "permission.asked", "{asked}");
    bridge.delta("three");
    bridge.part("one two three", true);
    assert_eq!(bridge.words(), ("two three".to_owned(), 4));
    bridge.status("idle");
    assert_eq!(bridge.line()["event"]["properties"]["reply"], "void");
    assert_eq!(bridge.line()["note"]["turn"], TURN);
}

#[test]
fn an_end_that_fell_into_a_gap_is_found() {
    let server = FakeServer::start();
    let bridge = Bridge::at_work(&server);
    let whole = json!([{"info": message(), "parts": [part("all of it", true)]}]);
    server.answer(&format!("/session/{MAIN}/message"), whole);
    server.break_streams();
    assert_eq!(bridge.line(), json!({"gap": {"number": 1}}));
    assert_eq!(bridge.words(), ("all of it".to_owned(), 0));
    assert_eq!(bridge.line()["note"], json!({"turn": TURN, "error": null, "aborted": false}));
}

#[test]
fn the_death_of_the_server_is_the_last_line() {
    let server = FakeServer::start();
    let mut bridge = Bridge::at_work(&server);
    signal(bridge.server_pid(), rustix::process::Signal::KILL);
    assert_eq!(bridge.line(), json!({"down": {"what": "OpenCode's server ended: signal: 9 (SIGKILL)"}}));
    assert_eq!(bridge.ended().code(), Some(1));
}

#[test]
fn a_daemon_that_is_away_does_not_stop_the_work_and_a_signal_ends_it() {
    let server = FakeServer::start();
    let mut bridge = Bridge::at_work(&server);
    bridge.stdin = None;
    bridge.part("still here", true);
    assert_eq!(bridge.words(), ("still here".to_owned(), 0));
    let pid = bridge.server_pid();
    signal(i32::try_from(bridge.child.id()).unwrap(), rustix::process::Signal::TERM);
    assert_eq!(bridge.line(), json!({"down": {"what": "told to end"}}));
    assert_eq!(bridge.ended().code(), Some(0));
    let alive = std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(!alive, "the server outlived the bridge");
}

#[test]
fn a_goodbye_ends_the_server_too() {
    let server = FakeServer::start();
    let mut bridge = Bridge::open(&server);
    let pid = bridge.server_pid();
    bridge.order(&json!({"id": "end", "op": "end"}));
    assert_eq!(bridge.line(), json!({"down": {"what": "told to end"}}));
    assert_eq!(bridge.ended().code(), Some(0));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the server outlived the bridge");
}

#[test]
fn an_unknown_conversation_is_not_taken_up() {
    let server = FakeServer::start();
    server.refuse("/session/ses_old", 404, json!({"data": {"message": "Session not found: ses_old"}}));
    let mut bridge = Bridge::start(&server);
    bridge.order(&json!({"id": "early", "op": "compact"}));
    assert_eq!(bridge.line()["re"], "early");
    bridge
        .order(&json!({"id": "open", "op": "open", "directory": bridge.folder.path(), "native": "ses_old"}));
    let refused = bridge.line();
    assert_eq!(refused["error"]["code"], "unknown", "{refused}");
    assert_eq!(bridge.ended().code(), Some(1));
}

#[test]
fn a_server_that_cannot_start_is_named() {
    let mut child = Command::new(binary())
        .args(["opencode-bridge", "--", "/nonexistent/opencode"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", json!({"id": "open", "op": "open", "directory": "/"}))
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("cannot start /nonexistent/opencode"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
