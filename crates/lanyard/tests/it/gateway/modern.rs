//! Clients of one revision and servers of another.

use serde_json::{Value, json};

use super::kit::{Client, Said, Stage};
use super::program;
use super::server::Server;

pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of revision 2026-07-28.
pub(super) fn asked(client: &Client, method: &str, params: &Value) -> Said {
    let mut params = params.clone();
    params["_meta"] = json!({VERSION: "2026-07-28", CLIENT: {"name": "new", "version": "1"}, CAPABILITIES: {"elicitation": {}}});
    let body = json!({"jsonrpc": "2.0", "id": "m1", "method": method, "params": params}).to_string();
    client
        .open("POST", &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)], Some(&body))
        .whole()
}

fn ask(client: &Client, method: &str, params: &Value) -> Value {
    asked(client, method, params).json()
}

#[test]
fn a_client_without_a_greeting_uses_a_program_that_wants_one() {
    let stage = Stage::new(&program::config("p", ""));
    let session = stage.session(&json!({}));
    let client = stage.client(&session, "p");
    let found = ask(&client, "server/discover", &json!({}));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28", "{found}");
    assert_eq!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "program");
    let called = ask(&client, "tools/call", &json!({"name": "echo", "arguments": {"a": 1}}));
    assert_eq!(
        (&called["id"], &called["result"]["resultType"]),
        (&json!("m1"), &json!("complete")),
        "{called}"
    );
    assert_eq!(called["result"]["content"][0]["text"], r#"{"a":1}"#);
    // The server's question is the answer, and the client's answer comes with the same request.
    let asked = ask(&client, "tools/call", &json!({"name": "elicit"}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["input"]["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let again = json!({"name": "elicit", "requestState": asked["result"]["requestState"], "inputResponses": {"input": answer}});
    let done = ask(&client, "tools/call", &again);
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    let text: Value = serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["result"], answer);
    assert_eq!(ask(&client, "tools/call", &again)["error"]["code"], -32602, "an answer counts once");
    for method in ["GET", "DELETE"] {
        let said = client.open(method, &[("mcp-protocol-version", "2026-07-28")], None).whole();
        assert_eq!(said.status, 405);
    }
}

#[test]
fn a_client_that_greets_uses_servers_without_a_greeting() {
    let server = Server::modern();
    let stage = Stage::new(&(server.config("h", "") + &program::modern("p")));
    let session = stage.session(&json!({}));
    let mut client = stage.client(&session, "h");
    let greeting = client.greet("old");
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25", "{greeting}");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "modern");
    for _ in 0..3 {
        server.got();
    }
    assert!(client.said("echo", &json!({})).starts_with("echo"));
    let (head, body) = server.got();
    for line in ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: echo"] {
        assert!(head.contains(line), "{head}");
    }
    let sent: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(sent["params"]["_meta"][CLIENT]["name"], "old");

    let mut client = stage.client(&session, "p");
    let greeting = client.greet("old");
    assert_eq!(greeting["result"]["serverInfo"]["name"], "modern program", "{greeting}");
    let meta: Value = serde_json::from_str(&client.said("meta", &json!({}))).unwrap();
    assert_eq!((&meta[VERSION], &meta[CLIENT]["name"]), (&json!("2026-07-28"), &json!("old")));
    let checked = stage.post("/mcp/h/check", &json!({})).json();
    assert_eq!((&checked["ok"], &checked["protocol"]), (&json!(true), &json!("2026-07-28")), "{checked}");
}

#[test]
fn the_same_revision_on_both_sides_passes_as_it_is() {
    let server = Server::modern();
    let stage = Stage::new(&server.config("h", ""));
    let session = stage.session(&json!({}));
    let client = stage.client(&session, "h");
    let found = ask(&client, "server/discover", &json!({}));
    assert_eq!(found["result"]["ttlMs"], 0, "{found}");
    let (head, body) = server.got();
    assert!(head.contains("mcp-method: server/discover"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["params"]["_meta"][CLIENT]["name"], "new");
    // A server of Lanyard's own speaks both.
    let own = stage.client(&session, "lanyard");
    let listed = ask(&own, "tools/list", &json!({}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    assert_eq!(own.open("GET", &[], None).whole().status, 405);
}
