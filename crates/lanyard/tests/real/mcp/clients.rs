//! Real clients through the gateway: each goes once through all that a server offers, and must see what it sees without
//! Lanyard.

use serde_json::{Value, json};

use super::kit::{Gateway, everything_command, run, told};
use super::servers::{self, Script, Server, bare};
use crate::agents;

/// A client that can make the tour.
#[derive(Debug, Clone, Copy)]
pub(super) enum Client {
    /// The TypeScript SDK 1.x.
    V1,
    /// The TypeScript SDK 2.x, which asks a server for its revision first.
    V2,
    /// The same, for servers of 2026-07-28 alone.
    V2Pinned,
    /// The Python SDK.
    Python,
}

impl Client {
    /// Makes the whole tour.
    pub(super) fn tour(self, target: &Value) -> Value {
        self.go(target, "full")
    }

    /// Lists the tools and calls one.
    pub(super) fn echo(self, target: &Value) -> Value {
        self.go(target, "echo")
    }

    fn go(self, target: &Value, how: &str) -> Value {
        let tour = ("tour.mjs", include_str!("clients/tour.mjs"));
        let (package, main, mode) = match self {
            Client::Python => return python(target, how),
            Client::V1 => ("mcp_sdk", ("v1.mjs", include_str!("clients/v1.mjs")), "legacy"),
            Client::V2 => ("mcp_client", ("v2.mjs", include_str!("clients/v2.mjs")), "auto"),
            Client::V2Pinned => ("mcp_client", ("v2.mjs", include_str!("clients/v2.mjs")), "2026-07-28"),
        };
        let script = Script::new(package, &[main, tour]);
        told(servers::node().arg(script.path()).arg(target.to_string()).args([how, mode]))
    }
}

fn python(target: &Value, how: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("client.py");
    std::fs::write(&script, include_str!("clients/python.py")).unwrap();
    let mut command = bare(&agents::inside("mcp_python", "bin/python"));
    told(command.arg(script).arg(target.to_string()).args([how, "auto"]))
}

/// With a session, Lanyard may leave out what would keep its words from some client's model: the structured form of a
/// result that is there as text as well.
fn without_structure(mut report: Value) -> Value {
    report["structured"]["keys"] = json!("any");
    asked_once(report)
}

/// The reference server asks for roots on a timer too: how often it asks depends on how fast the tour is.
fn asked_once(mut report: Value) -> Value {
    if let Some(asked) = report["asked"].as_array_mut() {
        asked.dedup();
    }
    report
}

/// The tour without Lanyard, without a session, and with one.
fn the_same_everywhere(client: Client, server: &Server) -> Value {
    let direct = asked_once(client.tour(&server.target()));
    let gateway = Gateway::before(server);
    assert_eq!(asked_once(client.tour(&gateway.plain_target())), direct, "without a session");
    let with_session = without_structure(client.tour(&gateway.way().target));
    assert_eq!(with_session, without_structure(direct.clone()), "with a session");
    direct
}

#[test]
fn the_first_sdk_sees_the_reference_server() {
    let seen = the_same_everywhere(Client::V1, &Server::everything());
    assert_eq!(seen["asked"].as_array().unwrap().len(), 3, "{seen:#}");
    assert_eq!(seen["cancelled"], true, "{seen:#}");
}

#[test]
fn the_second_sdk_sees_the_reference_server() {
    let seen = the_same_everywhere(Client::V2, &Server::everything());
    assert_eq!(seen["revision"], "2025-11-25", "{seen:#}");
}

#[test]
fn the_python_sdk_sees_the_reference_server() {
    let seen = the_same_everywhere(Client::Python, &Server::everything());
    assert_eq!(seen["asked"].as_array().unwrap().len(), 3, "{seen:#}");
}

#[test]
fn the_second_sdk_speaks_the_new_revision_to_a_server_that_does() {
    let server = Server::modern(&["only"]);
    let seen = the_same_everywhere(Client::V2, &server);
    assert_eq!(seen["revision"], "2026-07-28", "{seen:#}");
    the_same_everywhere(Client::V2Pinned, &server);
}

#[test]
fn the_python_sdk_speaks_the_new_revision_to_a_server_that_does() {
    let seen = the_same_everywhere(Client::Python, &Server::modern(&["only"]));
    assert_eq!(seen["revision"], "2026-07-28", "{seen:#}");
}

#[test]
fn an_old_client_reaches_a_server_of_both_revisions() {
    let server = Server::modern(&[]);
    let direct = Client::V1.echo(&server.target());
    let gateway = Gateway::before(&server);
    assert_eq!(Client::V1.echo(&gateway.way().target), direct);
}

#[test]
fn servers_on_stdio_look_the_same_behind_the_gateway() {
    let gateway = Gateway::before_stdio(&everything_command());
    let [program, words @ ..] = &everything_command()[..] else { panic!("no command") };
    let direct = json!({ "command": program, "args": words });
    for client in [Client::V1, Client::V2, Client::Python] {
        let mut seen = without_structure(client.tour(&gateway.way().target));
        let mut alone = without_structure(client.tour(&direct));
        // The gateway speaks the newest revision to whoever does, also for a server that does not.
        let (through, own) = (seen["revision"].take(), alone["revision"].take());
        assert!(through == own || through == "2026-07-28", "{client:?}: {through}, not {own}");
        assert_eq!(seen, alone, "{client:?}");
    }
}

#[test]
fn a_wrapped_server_looks_like_itself() {
    let gateway = Gateway::start("[mcp.it]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    let [program, words @ ..] = &everything_command()[..] else { panic!("no command") };
    let direct = json!({ "command": program, "args": words });
    for client in [Client::V1, Client::V2, Client::Python] {
        let seen = without_structure(client.tour(&gateway.wrapped(&everything_command()).target));
        assert_eq!(seen, without_structure(client.tour(&direct)), "{client:?}");
    }
}

#[test]
fn a_wrapped_server_of_the_new_revision_looks_like_itself() {
    let gateway = Gateway::start("[mcp.it]\nurl = \"http://127.0.0.1:9/mcp\"\n");
    let script = servers::modern();
    let node = servers::node_dir().join("node").display().to_string();
    let command = [node, script.path().display().to_string(), "stdio".to_owned()];
    let direct = json!({ "command": command[0], "args": command[1..] });
    for client in [Client::V2, Client::Python] {
        let seen = client.tour(&direct);
        assert_eq!(seen["revision"], "2026-07-28", "{seen:#}");
        let wrapped = without_structure(client.tour(&gateway.wrapped(&command).target));
        assert_eq!(wrapped, without_structure(seen), "{client:?}");
    }
}

/// One question of the inspector, and its answer.
pub(super) fn inspect(target: &Value, words: &[&str]) -> Value {
    // It keeps things in its home.
    let home = tempfile::tempdir().unwrap();
    let mut command = bare(&agents::binary("mcp_inspector", "mcp-inspector"));
    command.env("HOME", home.path());
    command.arg("--cli").arg(target["url"].as_str().unwrap()).args(["--transport", "http"]);
    if let Some(bearer) = target["headers"]["Authorization"].as_str() {
        command.args(["--header", &format!("Authorization: {bearer}")]);
    }
    let output = run(command.args(words));
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_inspector_sees_the_reference_server() {
    let server = Server::everything();
    let gateway = Gateway::before(&server);
    let way = gateway.way();
    let questions: [&[&str]; 6] = [
        &["--method", "resources/list"],
        &["--method", "resources/read", "--uri", "demo://resource/static/document/features.md"],
        &["--method", "prompts/list"],
        &["--method", "prompts/get", "--prompt-name", "simple-prompt"],
        &["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hi"],
        &["--method", "tools/call", "--tool-name", "get-sum", "--tool-arg", "a=2", "--tool-arg", "b=3"],
    ];
    for question in questions {
        let direct = inspect(&server.target(), question);
        assert_eq!(inspect(&gateway.plain_target(), question), direct, "{question:?}");
        assert_eq!(inspect(&way.target, question), direct, "{question:?}");
    }
    let names = |target: &Value| {
        let listed = inspect(target, &["--method", "tools/list"]);
        let tools = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
        tools.collect::<Vec<Value>>()
    };
    assert_eq!(names(&way.target), names(&server.target()));
}
