//! A daemon with MCP servers, and a client that shows every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, head, read_head};

pub(crate) struct Stage {
    pub(crate) daemon: Daemon,
}

impl Stage {
    pub(crate) fn new(config: &str) -> Self {
        Self { daemon: Daemon::start(Setup::default().config(config)) }
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    pub(crate) fn session(&self, new: &Value) -> String {
        let made = self.post("/sessions", new);
        assert_eq!(made.status, 201, "{}", made.text());
        made.json()["session"].as_str().unwrap().to_owned()
    }

    /// The row of a server in the list.
    pub(crate) fn entry(&self, name: &str) -> Value {
        let listed = self.daemon.request("GET", "/api/v1/mcp", &[], None).json();
        let found = listed["servers"].as_array().unwrap().iter().find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {listed}")).clone()
    }

    /// A client without a session.
    pub(crate) fn nobody(&self, server: &str) -> Client {
        let path = format!("/mcp/-/{server}");
        Client { address: self.daemon.address(), path, token: self.daemon.token(), link: None }
    }

    /// A client with its session's own address and token.
    pub(crate) fn client(&self, session: &str, server: &str) -> Client {
        Client::of(&self.daemon, session, server)
    }
}

/// An MCP client of one address.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: String,
    pub(crate) path: String,
    pub(crate) token: String,
    /// The `Mcp-Session-Id` it was given.
    pub(crate) link: Option<String>,
}

impl Client {
    /// With its session's own address and token.
    pub(crate) fn of(daemon: &Daemon, session: &str, server: &str) -> Self {
        let body = json!({ "session": session }).to_string();
        let answer = daemon.request("POST", &format!("/api/v1/mcp/{server}/address"), &[], Some(&body));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let address = daemon.address();
        let path =
            answer["url"].as_str().unwrap().strip_prefix(&format!("http://{address}")).unwrap().to_owned();
        let token =
            answer["headers"]["Authorization"].as_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
        Self { address, path, token, link: None }
    }

    pub(crate) fn open(&self, method: &str, more: &[(&str, &str)], body: Option<&str>) -> Stream {
        self.try_open(method, more, body).unwrap()
    }

    /// Sends these bytes to one who may never answer.
    pub(crate) fn try_raw(&self, body: &str) -> Option<Said> {
        self.try_open("POST", &[], Some(body)).ok().map(Stream::whole)
    }

    fn try_open(&self, method: &str, more: &[(&str, &str)], body: Option<&str>) -> std::io::Result<Stream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![
            ("host", self.address.as_str()),
            ("authorization", bearer.as_str()),
            ("accept", "application/json, text/event-stream"),
        ];
        headers.extend(self.link.as_deref().map(|link| ("mcp-session-id", link)));
        headers.extend_from_slice(more);
        stream.write_all(head(method, &self.path, &headers, body).as_bytes())?;
        if let Some(body) = body {
            // A server that has refused a body need not read it.
            let _ = stream.write_all(body.as_bytes());
        }
        let mut reader = BufReader::new(stream);
        let answer = read_head(&mut reader)?;
        let chunked = answer.header("transfer-encoding") == Some("chunked");
        let length = answer.header("content-length").map(|length| length.parse().unwrap());
        Ok(Stream { answer, reader, chunked, length, held: Vec::new() })
    }

    /// Sends these bytes and reads the whole answer.
    pub(crate) fn raw(&self, body: &str) -> Said {
        self.open("POST", &[], Some(body)).whole()
    }

    pub(crate) fn request(&self, id: u64, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let said = self.raw(&body.to_string());
        said.messages()
            .into_iter()
            .find(|message| message["id"] == id && message.get("method").is_none())
            .unwrap_or_else(|| panic!("no answer to {method}: {} {}", said.status, said.text))
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.request(7, "tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The text of a call's result.
    pub(crate) fn said(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) fn tell(&self, message: &Value) -> Said {
        self.raw(&message.to_string())
    }

    /// Greets, and remembers the connection's name.
    pub(crate) fn greet(&mut self, name: &str) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": name, "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let said = self.raw(&body.to_string());
        assert_eq!(said.status, 200, "{}", said.text);
        self.link.clone_from(&said.link);
        let told = self.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.status, 202, "{}", told.text);
        said.messages().remove(0)
    }
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) link: Option<String>,
    pub(crate) text: String,
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text))
    }

    /// The messages, whether it is a stream or not.
    pub(crate) fn messages(&self) -> Vec<Value> {
        if self.kind.starts_with("text/event-stream") {
            let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
            return data.map(|data| serde_json::from_str(data).unwrap()).collect();
        }
        vec![self.json()]
    }
}

/// An answer as it comes.
pub(crate) struct Stream {
    pub(crate) answer: Answer,
    reader: BufReader<TcpStream>,
    chunked: bool,
    length: Option<usize>,
    held: Vec<u8>,
}

impl Stream {
    /// The next piece; nothing at the end.
    fn piece(&mut self) -> Option<Vec<u8>> {
        if !self.chunked {
            let mut all = Vec::new();
            match self.length.take() {
                Some(length) => {
                    all.resize(length, 0);
                    self.reader.read_exact(&mut all).unwrap();
                }
                None => {
                    self.reader.read_to_end(&mut all).unwrap();
                }
            }
            return Some(all).filter(|all| !all.is_empty());
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).ok().filter(|length| *length > 0)?;
        let mut piece = vec![0; length + 2];
        self.reader.read_exact(&mut piece).unwrap();
        piece.truncate(length);
        Some(piece)
    }

    pub(crate) fn whole(mut self) -> Said {
        let mut text = Vec::new();
        // 202 and 204 have no body, and nothing that says so.
        while !matches!(self.answer.status, 202 | 204) {
            match self.piece() {
                Some(piece) => text.extend(piece),
                None => break,
            }
        }
        Said {
            status: self.answer.status,
            kind: self.answer.header("content-type").unwrap_or_default().to_owned(),
            link: self.answer.header("mcp-session-id").map(str::to_owned),
            text: String::from_utf8(text).unwrap(),
        }
    }

    /// The next message of an event stream.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.held.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = self.held.drain(..end + 2).collect();
                let frame = String::from_utf8(frame).unwrap();
                if let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return serde_json::from_str(data).unwrap();
                }
                continue;
            }
            let piece = self.piece().expect("the stream ended");
            self.held.extend(piece);
        }
    }
}

/// Waits for something that takes its time.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "still waiting for {what}");
        // sleep: between two looks.
        std::thread::sleep(Duration::from_millis(5));
    }
}
