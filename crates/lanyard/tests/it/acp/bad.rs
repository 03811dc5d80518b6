//! Lines no editor should send. Each is answered with the right error, and the next one is taken as if nothing had
//! been.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc;

use serde_json::{Value, json};

use super::kit::Stage;
use crate::support::PATIENCE;

/// `lanyard acp` by hand.
struct Hand {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Hand {
    fn new(stage: &Stage, words: &[&str]) -> Self {
        let mut child = stage.acp(words).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    fn say(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()).unwrap();
    }

    /// The next line, which is JSON: nothing else is ever written.
    fn hear(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.say(message.to_string().as_bytes());
        self.hear()
    }

    fn greet(&mut self) {
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": 1}});
        assert_eq!(self.ask(&hello)["result"]["protocolVersion"], 1);
    }

    fn close(mut self) -> std::process::ExitStatus {
        drop(self.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn nonsense_is_answered_with_the_right_error() {
    let stage = Stage::new();
    let mut hand = Hand::new(&stage, &["--agent", "a"]);
    let early =
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}});
    let refused = hand.ask(&early);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(0), &json!(-32600)), "before initialize");
    let no_version = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    assert_eq!(hand.ask(&no_version)["error"]["code"], -32602);
    hand.greet();
    let deep = "[".repeat(100_000);
    let long = "x".repeat(9 << 20);
    let request = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
    };
    let here = json!(stage.work());
    let sound = json!([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]);
    let table: Vec<(String, Value, i32)> = vec![
        ("{\"jsonrpc\": \"2.0\", \"id\": 7, ".to_owned(), Value::Null, -32700),
        ("hello?".to_owned(), Value::Null, -32700),
        (deep, Value::Null, -32700),
        (long, Value::Null, -32700),
        ("[]".to_owned(), Value::Null, -32600),
        ("null".to_owned(), Value::Null, -32600),
        (json!({"jsonrpc": "2.0", "id": {}, "method": "session/list"}).to_string(), Value::Null, -32600),
        (json!({"jsonrpc": "2.0", "id": 7}).to_string(), json!(7), -32600),
        (json!({"id": 7, "method": "session/list"}).to_string(), json!(7), -32600),
        (json!({"jsonrpc": "2.0", "id": 7, "method": {}}).to_string(), json!(7), -32600),
        (request("session/fly", json!({})), json!(7), -32601),
        (request("session/set_mode", json!({"sessionId": "x", "modeId": "y"})), json!(7), -32002),
        (request("session/set_mode", json!({"sessionId": "x"})), json!(7), -32602),
        (request("session/set_model", json!({"sessionId": "x", "modelId": "y"})), json!(7), -32601),
        (request("session/delete", json!({"sessionId": "x"})), json!(7), -32601),
        (request("authenticate", json!({"methodId": "x"})), json!(7), -32601),
        (request("session/new", json!({})), json!(7), -32602),
        (request("session/new", json!([1])), json!(7), -32602),
        (request("session/new", Value::Null), json!(7), -32602),
        (request("session/new", json!({"cwd": "relative", "mcpServers": []})), json!(7), -32602),
        (request("session/new", json!({"cwd": "/no/such/folder", "mcpServers": []})), json!(7), -32602),
        (request("session/list", json!({"cwd": "relative"})), json!(7), -32602),
        (request("session/list", json!({"cwd": here, "cursor": "?"})), json!(7), -32602),
        (request("session/load", json!({"sessionId": 7, "cwd": here, "mcpServers": []})), json!(7), -32602),
        (request("session/load", json!({"sessionId": "x", "cwd": here, "mcpServers": []})), json!(7), -32002),
        (request("session/prompt", json!({"sessionId": "x"})), json!(7), -32602),
        (request("session/prompt", json!({"sessionId": "x", "prompt": []})), json!(7), -32602),
        (request("session/prompt", json!({"sessionId": "x", "prompt": sound})), json!(7), -32602),
        (request("session/close", json!({"sessionId": "x"})), json!(7), -32002),
    ];
    for (line, id, code) in table {
        hand.say(line.as_bytes());
        let answer = hand.hear();
        let shown = &line[..line.len().min(200)];
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{shown}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{shown}");
    }
    // Not UTF-8, and things that are never answered.
    hand.say(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\xfe\"}");
    assert_eq!(hand.hear()["error"]["code"], -32700);
    for quiet in [
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "x"}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel"}),
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 99}}),
        json!({"jsonrpc": "2.0", "method": "nobody/knows", "params": [1, 2]}),
        json!({"jsonrpc": "2.0", "id": 12345, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "what", "error": {"code": 1, "message": "x"}}),
    ] {
        hand.say(quiet.to_string().as_bytes());
    }
    hand.say(b"\r\n   ");
    let listed = hand.ask(&json!({"jsonrpc": "2.0", "id": 8, "method": "session/list", "params": {}}));
    assert_eq!((&listed["id"], &listed["result"]["sessions"]), (&json!(8), &json!([])), "it still works");
    assert!(hand.close().success());
}

#[test]
fn an_agent_nobody_knows_is_named() {
    let stage = Stage::new();
    let mut hand = Hand::new(&stage, &["--agent", "nobody"]);
    hand.greet();
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": stage.work(), "mcpServers": []}});
    let refused = hand.ask(&new);
    assert_eq!(refused["error"]["data"]["code"], "agent_unknown", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("nobody"), "{refused}");
}

#[test]
fn ids_come_back_as_they_were_and_one_is_used_once_at_a_time() {
    let stage = Stage::new();
    let mut hand = Hand::new(&stage, &["--agent", "a"]);
    hand.greet();
    for id in [json!("a string"), json!(-7), json!(9_007_199_254_740_993_i64), Value::Null] {
        let answer = hand.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}));
        assert_eq!(answer["id"], id);
    }
    let made = hand.ask(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": stage.work(), "mcpServers": []}}),
    );
    let session = made["result"]["sessionId"].clone();
    let prompt = |text: &str| {
        let blocks = json!([{"type": "text", "text": text}]);
        json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": {"sessionId": session, "prompt": blocks}})
    };
    hand.say(prompt("/wait-file go").to_string().as_bytes());
    assert_eq!(hand.ask(&prompt("/say twice"))["error"]["code"], -32600);
    stage.touch("go");
    assert_eq!(hand.hear()["result"]["stopReason"], "end_turn");
    // Afterwards the same id is a new prompt.
    let told = hand.ask(&prompt("/say! once more"));
    assert_eq!(told["params"]["update"]["content"]["text"], "once more");
    assert_eq!(hand.hear()["result"]["stopReason"], "end_turn");
}

#[test]
fn what_was_asked_before_the_end_of_input_is_still_done() {
    let stage = Stage::new();
    let mut hand = Hand::new(&stage, &["--agent", "a"]);
    hand.greet();
    let made = hand.ask(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": stage.work(), "mcpServers": []}}),
    );
    let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
    let blocks = json!([{"type": "text", "text": "/touch done"}]);
    let prompt = json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": session, "prompt": blocks}});
    hand.say(prompt.to_string().as_bytes());
    assert!(hand.close().success());
    stage.await_file("done");
}
