//! `opencode serve` alone: it says where it listens, is healthy, and makes a session that talks.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc;

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::Ground;
use crate::agents::{self, Rights};
use crate::model::{Outcome, Step, marker};
use crate::peer::{PATIENCE, end_group};

/// What `opencode serve` prints when it takes requests; before that it may never answer one.
const LISTENING: &str = "opencode server listening on http://";

#[test]
fn opencode_serve_listens_on_a_free_port_and_makes_a_session() {
    let ground = Ground::new();
    ground.model.script("greet", [Step::text("Hello from the script.").usage(1200, 34)]);
    let agent = agents::opencode_serve(&ground.home, &ground.model, Rights::Ask);
    let mut process = agent.process(&ground.work);
    let stderr = std::fs::File::create(ground.home.join("stderr.txt")).unwrap();
    let child = process.stdin(Stdio::null()).stderr(stderr).process_group(0).spawn().unwrap();
    let mut server = Ended(child);
    let address = listening(&mut server.0);
    let health = call(&address, "GET", "/global/health", &Value::Null);
    assert_eq!(health["healthy"], true, "{health}");
    let session = call(&address, "POST", "/session", &json!({ "title": "smoke" }));
    let id = session["id"].as_str().unwrap();
    let text = format!("go {}", marker("greet"));
    let parts = json!({ "parts": [{ "type": "text", "text": text }] });
    let message = call(&address, "POST", &format!("/session/{id}/message"), &parts);
    assert!(message.to_string().contains("Hello from the script."), "{message}");
    let exchange = ground
        .model
        .wait("a text turn", PATIENCE, |asked| asked.is("greet", 0) && asked.outcome == Outcome::Answered);
    assert_eq!(exchange.headers.get("x-session-id").map(String::as_str), Some(id));
}

/// A server that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        end_group(&mut self.0);
    }
}

fn listening(child: &mut Child) -> String {
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (send, found) = mpsc::sync_channel(1);
    // Reads to the end, or the server would block once the pipe is full.
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            if let Some((_, address)) = line.split_once(LISTENING) {
                let _ = send.try_send(address.trim().to_owned());
            }
        }
    });
    found.recv_timeout(PATIENCE).expect("the server says where it listens")
}

fn call(address: &str, method: &str, path: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{method} {path}: {answer}");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{method} {path}: {error}: {answer}"))
}
