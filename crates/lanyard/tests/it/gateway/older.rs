//! Clients of revision 2026-07-28 in front of addresses that want a greeting, and clients that greet in front of
//! addresses that ask by `input_required`.

use serde_json::{Value, json};

use super::kit::{Client, Stage};
use super::modern::{CLIENT, VERSION, asked};
use super::server::Server;
use super::strict::Strict;

const NOT_FOUND: (&str, &str) = ("404 Not Found", "");
const BAD: (&str, &str) =
    ("400 Bad Request", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#);
const UNKNOWN: (&str, &str) =
    ("200 OK", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}"#);

/// The last message of an answer.
fn ask(client: &Client, method: &str, params: &Value) -> Value {
    asked(client, method, params).messages().pop().unwrap()
}

#[test]
fn a_client_without_a_greeting_uses_an_address_that_wants_one() {
    for refusal in [NOT_FOUND, BAD, UNKNOWN] {
        let server = Strict::start(refusal);
        let stage = Stage::new(&server.config("h"));
        let session = stage.session(&json!({}));
        let client = stage.client(&session, "h");
        // A client that knows both revisions takes the refusal as a sign to greet the server itself.
        let refused = asked(&client, "server/discover", &json!({}));
        assert!(refusal.0.starts_with(&refused.status.to_string()), "{refusal:?}: {}", refused.text);
        assert_eq!(refused.text, refusal.1.replace("ID", "\"m1\""));
        // One that goes on without a greeting has Lanyard greet in its place.
        let listed = ask(&client, "tools/list", &json!({}));
        let complete = (&json!("complete"), &json!("private"));
        assert_eq!((&listed["result"]["resultType"], &listed["result"]["cacheScope"]), complete, "{listed}");
        let greeting = server.got("initialize").1;
        assert_eq!(greeting["params"]["clientInfo"]["name"], "new");
        assert_eq!(greeting["params"]["capabilities"], json!({"elicitation": {}}));
        let (head, _) = server.got("notifications/initialized");
        assert!(head.contains("mcp-session-id: strict-1"), "{head}");
        let found = ask(&client, "server/discover", &json!({}));
        assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28", "{refusal:?}: {found}");
        assert_eq!((&found["id"], &found["result"]["instructions"]), (&json!("m1"), &json!("be kind")));
        let (head, sent) = server.got("tools/list");
        assert!(head.contains("mcp-protocol-version: 2025-06-18") && !head.contains("mcp-method"), "{head}");
        assert!(
            sent["params"]["_meta"].get(VERSION).is_none() && sent["params"]["_meta"].get(CLIENT).is_none()
        );
        // It forgets the connection: it is greeted again, and the client does not notice.
        ask(&client, "tools/call", &json!({"name": "forget"}));
        let called = ask(&client, "tools/call", &json!({"name": "echo", "arguments": {"a": 1}}));
        let text = called["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{called}"));
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["arguments"], json!({"a": 1}));
        assert_eq!(server.count("initialize"), 1);
        let other = stage.session(&json!({}));
        // Without asking first what it is.
        let listed = ask(&stage.client(&other, "h"), "tools/list", &json!({}));
        assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
        assert_eq!(server.count("initialize"), 1, "each session has a connection of its own");
    }
}

#[test]
fn a_question_on_the_servers_stream_is_input_required() {
    let server = Strict::start(UNKNOWN);
    let stage = Stage::new(&server.config("h"));
    let session = stage.session(&json!({}));
    let client = stage.client(&session, "h");
    ask(&client, "tools/list", &json!({}));
    let said = asked(&client, "tools/call", &json!({"name": "elicit"})).messages();
    assert_eq!(said[0]["method"], "notifications/progress");
    let required = &said[1]["result"];
    assert_eq!(required["resultType"], "input_required", "{said:?}");
    assert_eq!(required["inputRequests"]["input"]["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let again = json!({"name": "elicit", "requestState": required["requestState"], "inputResponses": {"input": answer}});
    let elsewhere = stage.client(&stage.session(&json!({})), "h");
    assert_eq!(ask(&elsewhere, "tools/list", &json!({}))["result"]["resultType"], "complete");
    assert_eq!(ask(&elsewhere, "tools/call", &again)["error"]["code"], -32602, "another session's question");
}

#[test]
fn the_answer_to_a_question_goes_on_with_the_call() {
    let server = Strict::start(BAD);
    let stage = Stage::new(&server.config("h"));
    let session = stage.session(&json!({}));
    let client = stage.client(&session, "h");
    let first = ask(&client, "tools/list", &json!({}));
    assert_eq!(first["result"]["resultType"], "complete", "{first}");
    let required = ask(&client, "tools/call", &json!({"name": "elicit"}));
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let waiting = &required["result"]["requestState"];
    let again = json!({"name": "elicit", "requestState": waiting, "inputResponses": {"input": answer}});
    let done = ask(&client, "tools/call", &again);
    assert_eq!(
        (&done["id"], &done["result"]["resultType"]),
        (&json!("m1"), &json!("complete")),
        "{required} {done}"
    );
    let told: Value = serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&told["id"], &told["result"]), (&json!(77), &answer));
    assert_eq!(ask(&client, "tools/call", &again)["error"]["code"], -32602, "an answer counts once");
}

#[test]
fn a_client_that_greets_is_asked_what_a_server_without_a_greeting_wants_to_know() {
    let server = Server::modern();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({}));
    let mut client = stage.client(&session, "h");
    client.greet("old");
    let call = |tool: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": tool}});
        client.open("POST", &[], Some(&body.to_string()))
    };
    let reply = |question: &Value, key: &str, value: Value| {
        let told = client.tell(&json!({"jsonrpc": "2.0", "id": question["id"], key: value}));
        assert_eq!(told.status, 202, "{}", told.text);
    };
    for tool in ["ask", "ask-streaming"] {
        let mut stream = call(tool);
        let mut next = || loop {
            let message = stream.next();
            if message["method"] != "notifications/progress" {
                return message;
            }
        };
        let (one, two) = (next(), next());
        let (who, place) = if one["method"] == "roots/list" { (two, one) } else { (one, two) };
        assert_eq!(
            (&who["method"], &who["params"]["message"]),
            (&json!("elicitation/create"), &json!("who?"))
        );
        reply(&place, "result", json!({"roots": []}));
        reply(&who, "result", json!({"action": "decline"}));
        let done = next();
        assert_eq!(done["id"], 9, "{done}");
        let said: Value =
            serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(said["answers"], json!({"who": {"action": "decline"}, "where": {"roots": []}}));
        assert_eq!(said["state"], "s-1");
        assert_ne!(said["id"], 9, "a request made again has an id of its own");
    }
    // A client that cannot answer ends the call, and a server that never stops asking is stopped.
    let mut stream = call("ask");
    for question in [stream.next(), stream.next()] {
        reply(&question, "error", json!({"code": -32601, "message": "no"}));
    }
    let refused = stream.next();
    assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(9), &json!(true)), "{refused}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("refused to answer"));
    let nagged = call("nag").next();
    assert!(nagged["result"]["content"][0]["text"].as_str().unwrap().contains("16 times"), "{nagged}");
    assert!(client.said("echo", &json!({})).starts_with("echo"));
}
