//! The model by itself: four protocols, and every way to misbehave.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Model, Outcome, Role, Step, marker};

/// Generous, for a busy machine; nothing here should take a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same talk in one protocol.
struct Protocol {
    path: &'static str,
    /// The path when the answer is to be streamed.
    stream_path: &'static str,
    /// A request with a user text, and the tool `run` on offer.
    first: fn(&str) -> Value,
    /// The same, after the model has called `run` and got this answer.
    second: fn(&str, &str) -> Value,
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol {
        path: "/any/prefix/v1/chat/completions",
        stream_path: "/any/prefix/v1/chat/completions",
        first: |text| {
            json!({ "messages": [{ "role": "system", "content": "Be good." }, { "role": "user", "content": text }],
                "tools": [{ "type": "function", "function": { "name": "run" } }] })
        },
        second: |text, result| {
            let call =
                json!({ "id": "c", "type": "function", "function": { "name": "run", "arguments": "{}" } });
            json!({ "messages": [
                { "role": "user", "content": [{ "type": "text", "text": text }] },
                { "role": "assistant", "content": null, "tool_calls": [call] },
                { "role": "tool", "tool_call_id": "c", "content": result },
            ], "tools": [{ "type": "function", "function": { "name": "run" } }] })
        },
    },
    Protocol {
        path: "/v1/responses",
        stream_path: "/v1/responses",
        first: |text| {
            json!({ "instructions": "Be good.", "tools": [{ "type": "function", "name": "run" }],
                "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }] })
        },
        second: |text, result| {
            json!({ "tools": [{ "type": "function", "name": "run" }], "input": [
                { "type": "message", "role": "user", "content": text },
                { "type": "message", "role": "assistant", "content": "Working. " },
                { "type": "function_call", "call_id": "c", "name": "run", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c", "output": result },
            ] })
        },
    },
    Protocol {
        path: "/v1/messages",
        stream_path: "/v1/messages",
        first: |text| {
            json!({ "system": [{ "type": "text", "text": "Be good." }], "tools": [{ "name": "run" }],
                "messages": [{ "role": "user", "content": text }] })
        },
        second: |text, result| {
            json!({ "tools": [{ "name": "run" }], "messages": [
                { "role": "user", "content": [{ "type": "text", "text": text }] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "Working. " },
                    { "type": "tool_use", "id": "c", "name": "run", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "c", "content": [{ "type": "text", "text": result }] },
                ] },
            ] })
        },
    },
    Protocol {
        path: "/v1beta/models/any:generateContent",
        stream_path: "/v1beta/models/any:streamGenerateContent",
        first: |text| {
            json!({ "systemInstruction": { "parts": [{ "text": "Be good." }] },
                "tools": [{ "functionDeclarations": [{ "name": "run" }] }],
                "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
        },
        second: |text, result| {
            json!({ "tools": [{ "functionDeclarations": [{ "name": "run" }] }], "contents": [
                { "role": "user", "parts": [{ "text": text }] },
                { "role": "model", "parts": [{ "functionCall": { "name": "run", "args": {} } }] },
                { "role": "user", "parts": [{ "functionResponse": { "name": "run", "response": { "output": result } } }] },
            ] })
        },
    },
];

fn send(model: &Model, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(model.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.0\r\nhost: model\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream
}

fn ask(model: &Model, path: &str, body: &Value) -> String {
    let mut answer = String::new();
    send(model, path, body).read_to_string(&mut answer).unwrap();
    answer
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

#[test]
fn the_step_follows_from_the_history_in_every_protocol() {
    for protocol in PROTOCOLS {
        let model = Model::start();
        let call = Step::text("Working. ").and_tool("~ru", json!({ "say": "x{{last_tool_result}}x" }));
        model.script("talk", [call.clone(), call, Step::text("All done.")]);
        let text = format!("please {}", marker("talk"));
        for streams in [false, true] {
            let path = if streams { protocol.stream_path } else { protocol.path };
            let body = |body: Value| if streams { streamed(body) } else { body };
            let first = ask(&model, path, &body((protocol.first)(&text)));
            assert!(first.contains("Working. ") && first.contains("\"run\""), "{path}: {first}");
            assert!(first.contains("xx"), "{path}: {first}");
            assert_eq!(first.contains("text/event-stream"), streams, "{path}: {first}");
            let second = ask(&model, path, &body((protocol.second)(&text, "it ran")));
            assert!(second.contains("xit ranx"), "{path}: {second}");
        }
        let log = model.log();
        let steps: Vec<usize> = log.iter().map(|exchange| exchange.step).collect();
        assert_eq!(steps, [0, 1, 0, 1], "{}", protocol.path);
        assert!(log.iter().all(|exchange| exchange.outcome == Outcome::Answered));
        assert!(log[0].asked.says(Role::System, "Be good."), "{}", protocol.path);
        assert_eq!(log[1].asked.tool_results(), ["it ran"], "{}", protocol.path);
        assert_eq!(log[1].calls[0].args["say"], "xit ranx");
    }
}

#[test]
fn a_request_without_tools_and_one_without_a_marker_get_a_fixed_text() {
    let model = Model::start();
    let untold = (PROTOCOLS[0].first)("hello");
    assert!(ask(&model, PROTOCOLS[0].path, &untold).contains("No script marker"));
    let mut title = (PROTOCOLS[0].first)(&marker("talk"));
    title["tools"] = json!([]);
    assert!(ask(&model, PROTOCOLS[0].path, &title).contains("Scripted title"));
    assert_eq!(model.asked("auxiliary").len(), 1);
}

#[test]
fn errors_and_usage_are_as_scripted() {
    let model = Model::start();
    model.script("bad", [Step::error(529, "scripted overload")]);
    model.script("large", [Step::text("Big.").usage(199_000, 7)]);
    for protocol in PROTOCOLS {
        let refused = ask(&model, protocol.stream_path, &streamed((protocol.first)(&marker("bad"))));
        assert!(refused.contains(" 529 ") && refused.contains("scripted overload"), "{refused}");
        let large = ask(&model, protocol.stream_path, &streamed((protocol.first)(&marker("large"))));
        assert!(large.contains("199000"), "{large}");
    }
}

#[test]
fn a_held_answer_goes_on_when_it_is_released() {
    let model = Model::start();
    model.script("held", [Step::text("one two three").held()]);
    let body = streamed((PROTOCOLS[2].first)(&marker("held")));
    let mut stream = send(&model, PROTOCOLS[2].path, &body);
    let mut heard = String::new();
    let mut buffer = [0; 4096];
    while !heard.contains("\"one \"") {
        let count = stream.read(&mut buffer).unwrap();
        heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(!heard.contains("two"), "{heard}");
    assert_eq!(model.asked("held")[0].outcome, Outcome::Open);
    model.release("held");
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("three") && heard.contains("message_stop"), "{heard}");
}

#[test]
fn a_client_that_hangs_up_is_in_the_log() {
    let model = Model::start();
    model.script("slow", [Step::text("one two three").hang(Duration::from_mins(10))]);
    model.script("late", [Step::text("one").delay(Duration::from_mins(10))]);
    model.script("mute", [Step::silent()]);
    for (protocol, script) in PROTOCOLS.iter().zip(["slow", "late", "mute", "slow"]) {
        let stream = send(&model, protocol.stream_path, &streamed((protocol.first)(&marker(script))));
        let at = model.wait("the request", PATIENCE, |asked| asked.outcome == Outcome::Open).seq;
        drop(stream);
        model.wait("the hang-up", PATIENCE, |asked| asked.seq == at && asked.outcome == Outcome::HungUp);
    }
}

#[test]
fn a_stream_can_break_off_in_garbage_or_in_a_reset() {
    let model = Model::start();
    model.script("wrong", [Step::text("one two").malformed()]);
    model.script("dies", [Step::text("one two").reset()]);
    model.script("dies_at_once", [Step::default().reset()]);
    for protocol in PROTOCOLS {
        let wrong = ask(&model, protocol.stream_path, &streamed((protocol.first)(&marker("wrong"))));
        assert!(wrong.trim_end().ends_with("data: {\"broken\": [1,"), "{wrong}");
        for script in ["dies", "dies_at_once"] {
            let body = streamed((protocol.first)(&marker(script)));
            let mut heard = Vec::new();
            let error = send(&model, protocol.stream_path, &body).read_to_end(&mut heard).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{script}");
            let heard = String::from_utf8_lossy(&heard).into_owned();
            assert_eq!(heard.contains("one"), script == "dies", "{heard}");
        }
    }
    assert!(model.asked("dies").iter().all(|asked| asked.outcome == Outcome::Broken));
}

#[test]
fn a_namespaced_tool_and_a_field_of_an_earlier_answer_can_be_named() {
    let model = Model::start();
    let wait = json!({ "targets": ["{{field:agent_id}}"], "odd": "{{no such}} {{" });
    model.script("talk", [Step::tool("mcp__ev::echo", json!({})), Step::tool("~wait", wait)]);
    let space = json!({ "type": "namespace", "name": "mcp__ev", "tools": [{ "name": "echo" }, { "name": "wait_agent" }] });
    let mut body = (PROTOCOLS[1].first)(&marker("talk"));
    body["tools"] = json!([space, { "type": "custom", "name": "patch" }]);
    let first = ask(&model, PROTOCOLS[1].path, &body);
    assert!(first.contains("\"namespace\":\"mcp__ev\""), "{first}");
    let mut second = (PROTOCOLS[1].second)(&marker("talk"), "{\"agent_id\": \"a-1\", \"other\": 2}");
    second["tools"] = body["tools"].clone();
    ask(&model, PROTOCOLS[1].path, &second);
    let calls = &model.asked("talk")[1].calls;
    assert_eq!(calls[0].tool.full_name(), "mcp__ev::wait_agent");
    assert_eq!(calls[0].args, json!({ "targets": ["a-1"], "odd": "{{no such}} {{" }));
}
