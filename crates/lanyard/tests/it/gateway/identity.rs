//! Whose call it is: the address says it, the token proves it, and a name among the arguments is only a hint.

use serde_json::json;

use super::kit::{Client, Stage};
use super::server::Server;

fn call(hint: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"a": 1,  "_session_id" :{hint}, "b":"é"}}}}}}"#
    )
}

const STRIPPED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a": 1,  "b":"é"}}}"#;

/// S0-33, S0-B07: the session's own name, its alias and its children's are taken, and never seen by the server.
#[test]
fn a_session_may_name_itself_and_its_family() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({"aliases": ["me"]}));
    let child = stage.session(&json!({"parent": session, "aliases": ["thread-9"]}));
    let client = stage.client(&session, "h");
    for name in [session.as_str(), "me", child.as_str(), "thread-9", child.as_str()] {
        let said = client.raw(&call(&format!("\"{name}\"")));
        assert!(said.text.contains("echo"), "{name}: {}", said.text);
        assert_eq!(server.got().1, STRIPPED, "{name}");
    }
    for other in ["7", "null", "[\"me\"]", "{}"] {
        client.raw(&call(other));
        assert_eq!(server.got().1, call(other), "only a string is a name");
    }
}

/// S0-B07: a forged name is refused, and the tool is not called.
#[test]
fn a_session_cannot_name_another() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let parent = stage.session(&json!({}));
    let session = stage.session(&json!({"parent": parent}));
    let other = stage.session(&json!({"aliases": ["other"]}));
    let client = stage.client(&session, "h");
    for name in [other.as_str(), "other", "nobody", "", parent.as_str(), "sess_01jd2y7zq8e9vte8w2n5h6k7m8"] {
        let said = client.raw(&call(&format!("\"{name}\""))).json();
        assert_eq!(said["result"]["isError"], true, "{name}: {said}");
        let text = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("session_mismatch: "), "{text}");
        assert!(server.got_nothing(), "{name}");
    }
}

/// S0-36, S0-T9, S0-O2: without a session's address a known name is taken, and a call with an unknown one passes.
/// FND-M12, S0-33: the server sees neither.
#[test]
fn fnd_m12_a_name_alone_is_believed_only_where_somebody_has_it() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({"aliases": ["known"]}));
    let client = stage.nobody("h");
    for name in [session.as_str(), "known"] {
        client.raw(&call(&format!("\"{name}\"")));
        assert_eq!(server.got().1, STRIPPED, "{name}");
    }
    for name in ["unknown", "sess_01jd2y7zq8e9vte8w2n5h6k7m8"] {
        let said = client.raw(&call(&format!("\"{name}\"")));
        assert!(said.text.contains("echo"), "{name}: {}", said.text);
        assert_eq!(server.got().1, STRIPPED, "{name}");
    }
    // A deleted session is as unknown.
    stage.daemon.request("DELETE", &format!("/api/v1/sessions/{session}"), &[], Some("{}"));
    client.raw(&call(&format!("\"{session}\"")));
    assert_eq!(server.got().1, STRIPPED, "deleted");
}

/// S0-B08: knowing an id gives no right; only the session's own token opens its address.
#[test]
fn another_sessions_token_opens_nothing() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let (one, two) = (stage.session(&json!({})), stage.session(&json!({})));
    let (first, second) = (stage.client(&one, "h"), stage.client(&two, "h"));
    let code =
        |client: &Client| client.raw(&call("1")).json()["code"].as_str().unwrap_or("let in").to_owned();
    let crossed = Client { token: second.token.clone(), ..first.clone() };
    assert_eq!(code(&crossed), "not_your_session");
    let nobodys = Client { token: second.token.clone(), ..stage.nobody("h") };
    assert_eq!(code(&nobodys), "not_your_session");
    let forged = Client { token: format!("{}x", second.token), ..second.clone() };
    assert_eq!(code(&forged), "token_unknown");
    let without = Client { token: String::new(), ..second };
    assert_eq!(code(&without), "token_missing");
    assert_eq!(code(&first), "let in");
    let page = first.open("POST", &[("origin", "http://evil.example")], Some(&call("1"))).whole();
    assert_eq!(page.json()["code"], "origin_not_allowed");
}

/// An agent that Lanyard did not start is registered as it asks for an address.
#[test]
fn an_address_for_nobody_registers_an_external_session() {
    let server = Server::start();
    let stage = Stage::new(&server.config("h", ""));
    let body = json!({"agent": "somebody", "workspace": "/tmp", "alias": "native-1"});
    let made = stage.post("/mcp/h/address", &body).json();
    let session = made["session"].as_str().unwrap();
    let looked = stage.daemon.request("GET", "/api/v1/sessions/native-1", &[], None).json();
    assert_eq!((&looked["id"], &looked["source"]), (&json!(session), &json!("external")), "{looked}");
    assert!(stage.client(session, "h").raw(&call("1")).text.contains("echo"));
    assert_eq!(stage.post("/mcp/none/address", &json!({})).code(), "mcp_server_not_found");
    assert_eq!(stage.post("/mcp/h/address", &json!({"session": "nobody"})).code(), "session_not_found");
}
