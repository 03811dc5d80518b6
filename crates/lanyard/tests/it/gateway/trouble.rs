//! Everything that can go wrong is said, in time, to whoever waits.

use serde_json::{Value, json};

use super::kit::{Client, Stage, until};
use super::program;
use super::server::Server;
use crate::support::Setup;

#[test]
fn what_is_no_message_is_refused() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({}));
    for client in [stage.nobody("h"), stage.client(&session, "h"), stage.client(&session, "lanyard")] {
        for (body, code) in [
            ("", -32700),
            ("{", -32700),
            ("no", -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (r#"{"id":1,"method":5}"#, -32600),
            (r#"{"id":1,"method":"ping","method":"tools/call"}"#, -32600),
        ] {
            let said = client.raw(body);
            assert_eq!(
                (said.status, &said.json()["error"]["code"]),
                (400, &json!(code)),
                "{body}: {}",
                said.text
            );
        }
        let said = client.open("POST", &[("content-type", "text/plain")], Some("{}")).whole();
        assert_eq!(said.json()["code"], "content_type_not_json");
        let long = format!(r#"{{"id":1,"method":"{}"}}"#, "x".repeat(16 << 20));
        let said = client.open("POST", &[("expect", "")], Some(&long)).whole();
        assert_eq!((said.status, &said.json()["code"]), (413, &json!("body_too_large")));
    }
    assert!(server.got_nothing());
    let unknown = stage.nobody("h");
    let unknown = Client { path: "/mcp/-/none".to_owned(), ..unknown };
    for method in ["POST", "GET", "DELETE"] {
        let body = (method == "POST").then_some("{}");
        let said = unknown.open(method, &[], body).whole();
        assert_eq!((said.status, &said.json()["code"]), (404, &json!("mcp_server_not_found")));
    }
}

fn failed(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_that_cannot_be_reached_is_a_tool_error() {
    let server = Server::start();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = server.config("h", "timeout_ms = 300")
        + &format!("[mcp.gone]\nurl = \"http://{}/\"\n", gone.local_addr().unwrap())
        + "[mcp.far]\nurl = \"https://example.test/\"\n[mcp.none]\ncommand = [\"/no/such/program\"]\n";
    drop(gone);
    let stage = Stage::new(&config);
    let session = stage.session(&json!({}));
    for (name, word) in [("gone", "cannot be reached"), ("far", "https is not supported")] {
        let client = stage.client(&session, name);
        let text = failed(&client.call("echo", &json!({})));
        assert!(text.contains(&format!("`{name}`")) && text.contains(word), "{text}");
        let error = client.request(1, "tools/list", &json!({}));
        assert!(error["error"]["message"].as_str().unwrap().contains(word), "{error}");
        assert_eq!(stage.entry(name)["state"], "down");
    }
    let client = stage.client(&session, "h");
    assert!(failed(&client.call("hang", &json!({}))).contains("no answer within 300 ms"));
    assert!(failed(&client.call("break", &json!({}))).contains("broke the connection off"));
    assert!(failed(&client.call("denied", &json!({}))).contains("credentials"));
    assert!(client.said("echo", &json!({})).starts_with("echo"), "and goes on");
    let greeting = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let refused = stage.client(&session, "none").request(1, "initialize", &greeting);
    assert!(refused["error"]["message"].as_str().unwrap().contains("/no/such/program"), "{refused}");
}

#[test]
fn a_server_that_dies_in_a_call_is_said_so_and_started_again() {
    for more in ["timeout_ms = 400", "timeout_ms = 400\nshare = true"] {
        let stage = Stage::new(&program::config("p", more));
        let session = stage.session(&json!({}));
        let mut client = stage.client(&session, "p");
        client.greet("somebody");
        let pid = |client: &Client| {
            let who: Value = serde_json::from_str(&client.said("who", &json!({}))).unwrap();
            assert_eq!((&who["client"], &who["greetings"]), (&json!("somebody"), &json!(1)), "greeted again");
            who["pid"].clone()
        };
        let first = pid(&client);
        for restarts in 1..=3 {
            let text = failed(&client.call("die", &json!({})));
            assert!(text.contains("`p` ended while") && text.contains("I was told to die"), "{text}");
            assert_ne!(pid(&client), first);
            assert_eq!(stage.entry("p")["restarts"], restarts);
        }
        let text = failed(&client.call("hang", &json!({})));
        assert!(text.contains("no answer within 400 ms"), "{text}");
        until("the server to be told", || client.said("cancelled", &json!({})) != "[]");
    }
}

#[test]
fn a_server_without_measure_is_ended() {
    let stage = Stage::new(&program::config("p", ""));
    let session = stage.session(&json!({}));
    let mut client = stage.client(&session, "p");
    client.greet("somebody");
    let text = failed(&client.call("huge", &json!({})));
    assert!(text.contains("bytes in one line"), "{text}");
    assert_eq!(client.said("echo", &json!({})), "{}");
    // What a session used ends with it.
    stage.post(&format!("/sessions/{session}/complete"), &json!({}));
    until("the session's process to end", || stage.entry("p")["processes"] == 0);
}

/// Some clients never greet twice: their connection outlives the daemon, and nothing of the old one is left.
#[test]
fn a_connection_survives_the_daemon() {
    let config = program::config("p", "");
    let mut stage = Stage::new(&config);
    let session = stage.session(&json!({}));
    let other = stage.session(&json!({}));
    let mut client = stage.client(&session, "p");
    client.greet("somebody");
    let who = |client: &Client| -> Value { serde_json::from_str(&client.said("who", &json!({}))).unwrap() };
    let pid = who(&client)["pid"].as_u64().unwrap();
    stage.daemon.restart_with(Setup::default().config(&config));
    let again = Client { link: client.link.clone(), ..stage.client(&session, "p") };
    let now = who(&again);
    assert_eq!((&now["client"], &now["greetings"]), (&json!("somebody"), &json!(1)));
    assert_ne!(now["pid"].as_u64(), Some(pid));
    until("the old process to end", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    // Another session's connection is as unknown as one that never was.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let stolen = Client { link: client.link.clone(), ..stage.client(&other, "p") };
    assert_eq!(stolen.tell(&list).status, 404);
    let invented = Client { link: Some("lyn_0".to_owned()), ..again.clone() };
    assert_eq!(invented.tell(&list).json()["error"]["code"], -32001);
    let unnamed = Client { link: None, ..again };
    assert_eq!(unnamed.tell(&list).status, 400);
    // Ending in order leaves nothing behind either.
    let pid = now["pid"].as_u64().unwrap();
    assert!(stage.daemon.terminate().success());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
