//! MCP servers as the agent reaches them: a process, and an address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::client::{Agent, Place, wait_for_file};
use crate::support::PATIENCE;

/// A server of a few lines: greets, echoes what it is called with, and never comes back from `hang`.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18"}}';;
    *'"name":"hang"'*) echo hanging > hanging;;
    *'"method":"tools/call"'*)
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"'$WHO' was called"}]}}';;
    *'notifications/cancelled'*) echo cancelled > told;;
  esac
done
"#;

#[test]
fn a_tool_of_a_stdio_server_is_called_and_given_up() {
    let mut agent = Agent::start(&Place::new(), &[]);
    let server = json!({"name": "s", "command": "sh", "args": ["-c", SERVER], "env": [{"name": "WHO", "value": "sh"}]});
    let session = agent.new_session(&json!([server]));
    agent.turn(&session, "/mcp s echo {\"a\": 1}\n/mcp s echo\n/mcp other echo");
    for at in 0..2 {
        let (call, update) = agent.tool(&session, at);
        assert_eq!((&call["title"], &update["status"]), (&json!("s: echo"), &json!("completed")));
        assert_eq!(update["content"][0]["content"]["text"], "sh was called");
    }
    assert_eq!(agent.tool(&session, 2).1["status"], "failed");
    let id = agent.prompt(&session, "/mcp s hang");
    wait_for_file(&agent.place.file("hanging"));
    agent.cancel(&session);
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "cancelled");
    assert_eq!(agent.tool(&session, 3).1["status"], "failed");
}

/// What came over HTTP: the headers, and the message.
type Posted = (String, Value);

#[test]
fn a_tool_of_an_http_server_is_called_again_after_it_forgot() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp/A?x=1", listener.local_addr().unwrap());
    let (sender, posted) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let mut agent = Agent::start(&Place::new(), &[]);
    let headers = json!([{"name": "x-token", "value": "secret"}]);
    let session = agent.new_session(&json!([{"type": "http", "name": "h", "url": url, "headers": headers}]));
    agent.turn(&session, "/mcp h echo {\"a\": 1}");
    let (_, update) = agent.tool(&session, 0);
    assert_eq!(update["status"], "completed", "{update}");
    assert_eq!(update["content"][0]["content"]["text"], "called over http");
    let methods = ["initialize", "notifications/initialized", "tools/call"];
    // The first connection is forgotten at the first call, so everything comes twice.
    for method in methods.iter().chain(&methods) {
        let (head, message) = next(&posted);
        assert_eq!(message["method"], *method);
        assert!(head.starts_with("POST /mcp/A?x=1 "), "{head}");
        assert!(head.contains("x-token: secret"), "{head}");
        assert_eq!(head.contains("mcp-session-id: "), *method != "initialize", "{head}");
    }
}

fn next(posted: &Receiver<Posted>) -> Posted {
    posted.recv_timeout(PATIENCE).unwrap()
}

/// Answers one request per connection. The connection named 1 is forgotten before its first call.
fn serve(listener: &TcpListener, sender: &Sender<Posted>) {
    let mut named = 0;
    while let Ok((mut stream, _)) = listener.accept() {
        let (head, message) = read(&stream);
        let id = &message["id"];
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        let (status, kind, body) = match message["method"].as_str().unwrap() {
            "initialize" => {
                named += 1;
                ("200 OK", "application/json", result(json!({"protocolVersion": "2025-06-18"})))
            }
            "tools/call" if head.contains("mcp-session-id: 1") => {
                ("404 Not Found", "text/plain", String::new())
            }
            "tools/call" => {
                let answer = result(json!({"content": [{"type": "text", "text": "called over http"}]}));
                let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
                (
                    "200 OK",
                    "text/event-stream",
                    format!("data: {progress}\n\nevent: message\ndata: {answer}\n\n"),
                )
            }
            _ => ("202 Accepted", "text/plain", String::new()),
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nmcp-session-id: {named}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        sender.send((head, message)).unwrap();
    }
}

fn read(stream: &TcpStream) -> Posted {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}
