//! Words that wait for a session stand in front of the next answer its client gets, whichever client it is.

use serde_json::Value;

use super::clients::{Client, inspect};
use super::kit::{Gateway, everything_command};
use super::servers::Server;

/// The first line of a block with an operator's words.
const MARKER: &str = "📝 USER GUIDANCE (injected by user):";
const WORDS: &str = "Mind the gap, please.";

/// The words lead, the answer follows, and nothing is said twice.
fn leads(blocks: &Value) {
    let blocks = blocks.as_array().unwrap();
    let [first, .., last] = &blocks[..] else { panic!("{blocks:#?}") };
    let first = first["text"].as_str().unwrap();
    assert!(first.starts_with(MARKER) && first.contains(WORDS), "{blocks:#?}");
    assert_eq!(last["text"], "Echo: hello there", "{blocks:#?}");
    assert_eq!(blocks.len(), 2, "{blocks:#?}");
}

#[test]
fn every_client_gets_them_over_http() {
    let server = Server::everything();
    let gateway = Gateway::before(&server);
    for client in [Client::V1, Client::V2, Client::Python] {
        let way = gateway.way();
        gateway.guide(&way.session, WORDS);
        leads(&client.echo(&way.target)["echo"]);
        let again = client.echo(&way.target);
        assert_eq!(again["echo"].as_array().unwrap().len(), 1, "once is enough: {again:#}");
    }
}

#[test]
fn clients_of_the_new_revision_get_them_too() {
    let server = Server::modern(&["only"]);
    let gateway = Gateway::before(&server);
    for client in [Client::V2Pinned, Client::Python] {
        let way = gateway.way();
        gateway.guide(&way.session, WORDS);
        leads(&client.echo(&way.target)["echo"]);
    }
}

#[test]
fn every_client_gets_them_from_a_wrapped_server() {
    let gateway = Gateway::start("[mcp.it]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    for client in [Client::V1, Client::V2, Client::Python] {
        let way = gateway.wrapped(&everything_command());
        gateway.guide(&way.session, WORDS);
        leads(&client.echo(&way.target)["echo"]);
    }
}

#[test]
fn the_inspector_gets_them() {
    let server = Server::everything();
    let gateway = Gateway::before(&server);
    let way = gateway.way();
    gateway.guide(&way.session, WORDS);
    let call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello there"];
    leads(&inspect(&way.target, &call)["content"]);
}
