//! An HTTP server that knows revision 2025-11-25 alone, and insists on its greeting and its connection's id.

use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::{Got, request};
use crate::support::PATIENCE;

pub(super) struct Strict {
    url: String,
    got: Receiver<Got>,
}

/// What all connections know.
#[derive(Default)]
struct Known {
    greetings: usize,
    /// Whether the last greeting still counts.
    forgotten: bool,
    /// Who waits for the client's answer.
    asker: Option<Sender<Value>>,
}

impl Strict {
    /// What it says to `server/discover` is up to the test.
    pub(super) fn start(refusal: (&'static str, &'static str)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (sender, got) = channel();
        let known = Arc::new(Mutex::new(Known::default()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, sender, known) = (stream.unwrap(), sender.clone(), known.clone());
                std::thread::spawn(move || serve(stream, &sender, &known, refusal));
            }
        });
        Self { url, got }
    }

    pub(super) fn config(&self, name: &str) -> String {
        format!("[mcp.{name}]\nurl = \"{}\"\n", self.url)
    }

    /// The next message with this method.
    pub(super) fn got(&self, method: &str) -> (String, Value) {
        loop {
            let (head, body) = self.got.recv_timeout(PATIENCE).unwrap();
            let message: Value = serde_json::from_str(&body).unwrap();
            if message["method"] == method {
                return (head, message);
            }
        }
    }

    /// How often this was said since.
    pub(super) fn count(&self, method: &str) -> usize {
        let all = self.got.try_iter().map(|(_, body)| serde_json::from_str::<Value>(&body).unwrap());
        all.filter(|message| message["method"] == method).count()
    }
}

fn serve(
    stream: TcpStream,
    sender: &Sender<Got>,
    known: &Mutex<Known>,
    refusal: (&'static str, &'static str),
) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = request(&mut reader) {
        let message: Value = serde_json::from_str(&body).unwrap();
        let _ = sender.send((head.clone(), body));
        let out = reader.get_mut();
        if message["params"]["name"] == "elicit" {
            return elicit(out, &message["id"], known);
        }
        let (status, answer) = answer(&head, &message, known, refusal);
        let greetings = known.lock().unwrap().greetings;
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: strict-{greetings}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        out.write_all((head + &answer).as_bytes()).unwrap();
    }
}

fn answer(
    head: &str,
    message: &Value,
    known: &Mutex<Known>,
    refusal: (&'static str, &'static str),
) -> (&'static str, String) {
    let mut known = known.lock().unwrap();
    let id = &message["id"];
    let result =
        |result: Value| ("200 OK", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    let method = message["method"].as_str().unwrap_or_default();
    if method == "server/discover" {
        return (refusal.0, refusal.1.replace("ID", &id.to_string()));
    }
    if method == "initialize" {
        known.greetings += 1;
        known.forgotten = false;
        return result(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "strict", "version": "1"},
            "instructions": "be kind",
        }));
    }
    if known.forgotten {
        return ("404 Not Found", "{}".to_owned());
    }
    if !head.contains(&format!("mcp-session-id: strict-{}\r\n", known.greetings)) {
        let error = json!({"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"});
        return ("400 Bad Request", json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string());
    }
    if method.is_empty() {
        if let Some(asker) = known.asker.take() {
            asker.send(message.clone()).unwrap();
        }
        return ("202 Accepted", String::new());
    }
    match (method, message["params"]["name"].as_str().unwrap_or_default()) {
        ("tools/list", _) => result(json!({"tools": []})),
        ("tools/call", "forget") => {
            known.forgotten = true;
            result(json!({"content": []}))
        }
        ("tools/call", _) => {
            result(json!({"content": [{"type": "text", "text": message["params"].to_string()}]}))
        }
        _ => ("202 Accepted", String::new()),
    }
}

/// Asks in the middle of a call, and answers with what it was told.
fn elicit(out: &mut TcpStream, id: &Value, known: &Mutex<Known>) {
    let (sender, answer) = channel();
    known.lock().unwrap().asker = Some(sender);
    out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut say = |message: &Value| write!(out, "data: {message}\n\n").unwrap();
    say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}));
    let params = json!({"message": "who?", "requestedSchema": {"type": "object"}});
    say(&json!({"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": params}));
    let Ok(told) = answer.recv_timeout(PATIENCE) else { return };
    let text = told.to_string();
    say(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}));
}
