//! One client for both kinds of stream, and a daemon with a scripted agent.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::client;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use crate::support::{Answer, Caller, Daemon, PATIENCE, Setup, binary, head, read_head};

/// How a client is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Sse,
    Ws,
}

pub(super) const BOTH: [Wire; 2] = [Wire::Sse, Wire::Ws];

pub(super) enum Client {
    Sse(BufReader<UnixStream>),
    Ws(Box<WebSocket<UnixStream>>),
}

impl Client {
    /// Attaches as the operator; `query` without its question mark.
    pub(super) fn attach(daemon: &Daemon, session: &str, query: &str, wire: Wire) -> Self {
        Self::attach_as(&daemon.caller(), session, query, wire)
    }

    pub(super) fn attach_as(caller: &Caller, session: &str, query: &str, wire: Wire) -> Self {
        Self::open(caller, &format!("/api/v1/sessions/{session}/attach?{query}"), wire, &[])
            .unwrap_or_else(|refused| panic!("{query}: {}", refused.text()))
    }

    /// Opens a stream, or gives back how it was refused.
    pub(super) fn open(
        caller: &Caller,
        path: &str,
        wire: Wire,
        headers: &[(&str, &str)],
    ) -> Result<Self, Box<Answer>> {
        let stream = UnixStream::connect(&caller.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let bearer = format!("Bearer {}", caller.token);
        match wire {
            Wire::Sse => {
                let mut all = vec![("host", "localhost"), ("authorization", bearer.as_str())];
                all.extend_from_slice(headers);
                let mut stream = stream;
                stream.write_all(head("GET", path, &all, None).as_bytes()).unwrap();
                let mut reader = BufReader::new(stream);
                let answer = read_head(&mut reader).unwrap();
                if answer.status != 200 {
                    return Err(Box::new(refused(caller, path, headers)));
                }
                assert_eq!(answer.header("content-type"), Some("text/event-stream"));
                Ok(Self::Sse(reader))
            }
            Wire::Ws => {
                let mut request = upgrade(path).header("authorization", bearer);
                for (name, value) in headers {
                    request = request.header(*name, *value);
                }
                match client(request.body(()).unwrap(), stream) {
                    Ok((socket, _)) => Ok(Self::Ws(Box::new(socket))),
                    Err(_) => Err(Box::new(refused(caller, path, headers))),
                }
            }
        }
    }

    /// The next frame but heartbeats; none when the stream has ended.
    pub(super) fn next(&mut self) -> Option<Value> {
        loop {
            let frame = match self {
                Self::Sse(reader) => sse_frame(reader)?,
                Self::Ws(socket) => match socket.read() {
                    Ok(Message::Text(text)) => serde_json::from_str(&text).unwrap(),
                    Ok(Message::Close(_)) | Err(_) => return None,
                    Ok(_) => continue,
                },
            };
            if frame["type"] != "heartbeat" {
                return Some(frame);
            }
        }
    }

    /// The next frame of a type, whatever comes before it.
    pub(super) fn until(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().unwrap_or_else(|| panic!("the stream ended before a `{kind}`"));
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    pub(super) fn connected(&mut self) -> Value {
        let first = self.next().expect("a stream begins");
        assert_eq!(first["type"], "connected", "{first}");
        first
    }

    /// The next event of the log, whatever stands beside it.
    pub(super) fn event(&mut self) -> Option<Value> {
        loop {
            let frame = self.next()?;
            if frame.get("seq").is_some() {
                return Some(frame);
            }
        }
    }

    /// The positions of the next events.
    pub(super) fn take(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.event().expect("the stream goes on")["seq"].as_u64().unwrap()).collect()
    }

    pub(super) fn socket(&mut self) -> &mut WebSocket<UnixStream> {
        match self {
            Self::Ws(socket) => socket,
            Self::Sse(_) => panic!("not a WebSocket"),
        }
    }

    pub(super) fn send(&mut self, frame: &Value) {
        self.say(&frame.to_string());
    }

    pub(super) fn say(&mut self, text: &str) {
        self.socket().send(Message::text(text)).unwrap();
    }

    /// Asks for something and waits for its answer.
    pub(super) fn ask(&mut self, frame: &Value) -> Value {
        self.send(frame);
        self.until("reply")
    }

    /// Sends something that is no request, and waits for what is said of it.
    pub(super) fn fault(&mut self, text: &str) -> String {
        self.say(text);
        self.until("error")["code"].as_str().unwrap().to_owned()
    }

    /// How the server closed the connection, after everything else it sent.
    pub(super) fn closed(&mut self) -> Option<CloseFrame> {
        loop {
            match self.socket().read() {
                Ok(Message::Close(close)) => return close,
                Ok(_) => {}
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return None,
                Err(error) => panic!("closed without a word: {error}"),
            }
        }
    }
}

/// A request for a WebSocket, without a token.
pub(super) fn upgrade(path: &str) -> tokio_tungstenite::tungstenite::http::request::Builder {
    Request::builder()
        .uri(format!("ws://localhost{path}"))
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

/// The same request once more, over plain HTTP, to read how it is refused.
fn refused(caller: &Caller, path: &str, headers: &[(&str, &str)]) -> Answer {
    caller.try_request("GET", path, headers, None).unwrap()
}

/// Reads a frame and checks its form: events have a position and no name, all others a name and no position.
fn sse_frame(reader: &mut BufReader<UnixStream>) -> Option<Value> {
    let (mut id, mut name, mut line) = (None, None, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        // Chunk sizes, blank lines and comments are passed over.
        if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.trim().parse::<u64>().unwrap());
        } else if let Some(text) = line.strip_prefix("event: ") {
            name = Some(text.trim().to_owned());
        } else if let Some(text) = line.strip_prefix("data: ") {
            let frame: Value = serde_json::from_str(text).unwrap();
            match (id, name) {
                (Some(id), None) => assert_eq!(frame.get("position").unwrap_or(&frame["seq"]), id),
                (None, Some(name)) => assert_eq!(frame["type"], *name),
                other => panic!("a frame with {other:?}: {frame}"),
            }
            return Some(frame);
        }
    }
}

pub(super) fn create(daemon: &Daemon) -> String {
    daemon.request("POST", "/api/v1/sessions", &[], Some("{}")).json()["session"].as_str().unwrap().to_owned()
}

pub(super) fn say(daemon: &Daemon, session: &str, text: &str) {
    let body = json!({"type": "said", "role": "agent", "text": text}).to_string();
    let answer = daemon.request("POST", &format!("/api/v1/sessions/{session}/signals"), &[], Some(&body));
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// A token of a role, and its caller.
pub(super) fn with_role(daemon: &Daemon, role: &str) -> Caller {
    let body = json!({"role": role, "name": role}).to_string();
    let made = daemon.request("POST", "/api/v1/tokens", &[], Some(&body)).json();
    Caller { token: made["token"].as_str().unwrap().to_owned(), ..daemon.caller() }
}

pub(super) fn sessions(daemon: &Daemon) -> Vec<Value> {
    let listed = daemon.request("GET", "/api/v1/sessions?limit=1000", &[], None).json();
    listed["sessions"].as_array().unwrap().clone()
}

pub(super) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        // sleep: between two looks at something that happens elsewhere.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A daemon whose agent `a` is scripted. Its agents end with it.
pub(super) struct Stage {
    pub(super) daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let state = folder.path().join("state").display().to_string();
        let command = json!([binary(), "scripted-agent", "--state", state]);
        let config = format!("[agents.a]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n");
        Self { daemon: Daemon::start(Setup::default().config(&config)), folder }
    }

    pub(super) fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub(super) fn talk(&self) -> String {
        let new = json!({"agent": "a", "workspace": self.folder.path().join("work")}).to_string();
        let made = self.daemon.request("POST", "/api/v1/sessions", &[], Some(&new));
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    pub(super) fn turn(&self, session: &str, prompt: &str) -> String {
        let path = format!("/api/v1/sessions/{session}/turns");
        let answer = self.daemon.request("POST", &path, &[], Some(&json!({"prompt": prompt}).to_string()));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["turn"].as_str().unwrap().to_owned()
    }

    pub(super) fn detail(&self, session: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.daemon.is_alive() {
            return;
        }
        for row in sessions(&self.daemon) {
            let path = format!("/api/v1/sessions/{}/stop", row["id"].as_str().unwrap());
            for _ in 0..3 {
                self.daemon.request("POST", &path, &[], Some("{}"));
            }
        }
        let runs = self.daemon.home().join("runs");
        let since = Instant::now();
        while std::fs::read_dir(&runs).is_ok_and(|mut entries| entries.next().is_some())
            && since.elapsed() < PATIENCE
        {
            // sleep: between two looks at processes that end.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
