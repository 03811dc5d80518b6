//! `lanyard mcp serve`: the official client of MCP as a person's assistant, over stdio, against a real daemon.

use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::{Daemon, Setup, binary, until};

/// An assistant, and the server that it started.
struct Assistant {
    client: RunningService<RoleClient, ()>,
    _server: Child,
}

fn serve(daemon: &Daemon, role: &str) -> Command {
    let mut command = Command::new(binary());
    command
        .args(["mcp", "serve", "--role", role, "--client", "Test Assistant"])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_CONFIG", daemon.config())
        .env("LANYARD_NO_START", "1")
        .env_remove("LANYARD_SESSION")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

impl Assistant {
    async fn of(daemon: &Daemon, role: &str) -> Self {
        let mut server = serve(daemon, role).spawn().unwrap();
        let (stdin, stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        Self { client: ().serve((stdout, stdin)).await.unwrap(), _server: server }
    }

    async fn result(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let mut call = CallToolRequestParams::new(tool);
        call.arguments = arguments.as_object().cloned();
        self.client.call_tool(call).await.unwrap()
    }

    /// What a tool answers; its error where it fails.
    async fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, Value> {
        let result = self.result(tool, arguments).await;
        let raw = serde_json::to_value(&result).unwrap();
        let told = serde_json::from_str(raw["content"][0]["text"].as_str().unwrap()).unwrap();
        if result.is_error == Some(true) { Err(told) } else { Ok(told) }
    }

    async fn tools(&self) -> Vec<(String, Value)> {
        let tools = self.client.list_all_tools().await.unwrap();
        let told = tools.iter().map(|tool| (tool.name.to_string(), json!(tool.annotations)));
        told.collect()
    }
}

fn daemon() -> (Daemon, tempfile::TempDir) {
    let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
    (Daemon::start(Setup::default()), folder)
}

fn tokens(daemon: &Daemon) -> Vec<(String, String, String)> {
    let listed = daemon.request("GET", "/api/v1/tokens", &[], None).json();
    let text = |token: &Value, field: &str| token[field].as_str().unwrap_or_default().to_owned();
    let tokens = listed["tokens"].as_array().unwrap().iter();
    tokens.map(|token| (text(token, "name"), text(token, "role"), text(token, "id"))).collect()
}

#[tokio::test]
async fn an_operator_starts_reads_and_stops_a_session_under_its_own_name() {
    let (daemon, folder) = daemon();
    let assistant = Assistant::of(&daemon, "operator").await;
    let tools = assistant.tools().await;
    let annotated = |name: &str| tools.iter().find(|(tool, _)| tool == name).unwrap().1.clone();
    assert_eq!(annotated("stop_session")["destructiveHint"], true);
    assert_eq!(annotated("read_transcript")["readOnlyHint"], true);
    assert_eq!(tokens(&daemon), [], "nothing is made before it is needed");

    let work = folder.path().display().to_string();
    let start = json!({ "prompt": "/say hello there", "workspace": work, "agent": "demo", "name": "first" });
    let started = assistant.call("start_session", start).await.unwrap();
    let session = started["session"].as_str().unwrap().to_owned();
    let state = || daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
    assert!(until(|| state()["state"] == "between_turn"), "{:#}", state());

    let listed = assistant.call("list_sessions", json!({ "workspace": work })).await.unwrap();
    assert_eq!(listed["sessions"][0]["id"], session);
    let found = assistant.call("find_session", json!({ "name": "first" })).await.unwrap();
    assert_eq!((&found["exact"], &found["candidates"][0]["id"]), (&json!(true), &json!(session)));
    let read = assistant
        .call("read_transcript", json!({ "session": "first", "after": 0, "limit": 3 }))
        .await
        .unwrap();
    assert_eq!(read["events"].as_array().unwrap().len(), 3);
    let rest = assistant
        .call("read_transcript", json!({ "session": "first", "after": read["next_after"], "limit": 200 }));
    assert!(rest.await.unwrap().to_string().contains("hello there"));

    let sent =
        assistant.call("send_message", json!({ "session": "first", "prompt": "/say more" })).await.unwrap();
    assert_eq!(sent["session"], session);
    assert!(until(|| state()["state"] == "between_turn" && state()["turns"] == 2), "{:#}", state());
    let stop = json!({ "session": "first", "reason": "enough" });
    assistant.call("stop_session", stop).await.unwrap();
    assert!(until(|| state()["state"] == "stopped"), "{:#}", state());

    // One token, of its own name, in the list and as the actor of what was done.
    assert_eq!(tokens(&daemon).len(), 1);
    let (name, role, id) = tokens(&daemon).remove(0);
    assert_eq!((name.as_str(), role.as_str()), ("mcp-test-assistant", "operator"));
    let log = daemon.log_after(&session, 0);
    assert!(
        log.iter().any(|event| event["type"] == "stop.requested" && event["actor"]["name"] == name),
        "{log:#?}"
    );
    let again = Assistant::of(&daemon, "operator").await;
    again.call("list_sessions", json!({})).await.unwrap();
    assert_eq!(tokens(&daemon).len(), 1, "it is made once");

    // Revoked, it stays so.
    let revoked = daemon.request(
        "DELETE",
        &format!("/api/v1/tokens/{id}"),
        &[("content-type", "application/json")],
        Some("{}"),
    );
    assert_eq!(revoked.status, 204, "{}", revoked.text());
    let refused = again.call("list_sessions", json!({})).await.unwrap_err();
    assert!(refused["advice"].as_str().unwrap().contains("was revoked"), "{refused:#}");
    assert_eq!(tokens(&daemon), []);
}

#[tokio::test]
async fn an_observer_sees_and_changes_nothing() {
    let (daemon, folder) = daemon();
    let assistant = Assistant::of(&daemon, "observer").await;
    let tools = assistant.tools().await;
    assert!(tools.iter().all(|(_, annotations)| annotations["readOnlyHint"] == true), "{tools:?}");
    assert_eq!(assistant.call("list_sessions", json!({})).await.unwrap()["sessions"], json!([]));
    assert_eq!(tokens(&daemon)[0].1, "observer");
    let start = CallToolRequestParams::new("start_session");
    assert!(assistant.client.call_tool(start).await.is_err(), "there is no such tool for it");
    // The daemon itself refuses what the token may not do.
    let secret = daemon.home().join("assistants/mcp-test-assistant.observer");
    let caller = crate::support::Caller {
        socket: daemon.home().join("lanyard.sock"),
        token: std::fs::read_to_string(secret).unwrap().trim().to_owned(),
    };
    let body = json!({ "agent": "demo", "workspace": folder.path() }).to_string();
    let headers = [("content-type", "application/json")];
    let refused = caller.try_request("POST", "/api/v1/sessions", &headers, Some(&body)).unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[tokio::test]
async fn bad_arguments_and_unknown_names_are_told_and_nothing_is_done() {
    let (daemon, _folder) = daemon();
    let assistant = Assistant::of(&daemon, "operator").await;
    let made = daemon.lanyard(&["new", "--alias", "blue-door", "--title", "the blue door"]);
    assert!(made.status.success());
    for arguments in [json!({}), json!({ "session": 7 }), json!({ "session": "x", "other": 1 })] {
        let refused = assistant.call("get_session", arguments.clone()).await.unwrap_err();
        assert_eq!(refused["code"], "arguments_bad", "{arguments}");
    }
    let limit = assistant.call("list_sessions", json!({ "limit": 9_999 })).await.unwrap_err();
    assert_eq!(limit["code"], "arguments_bad");
    let unknown = assistant.call("get_session", json!({ "session": "blue-dor" })).await.unwrap_err();
    assert_eq!(unknown["code"], "session_not_found");
    assert!(unknown["error"].as_str().unwrap().contains("blue-door"), "candidates: {unknown:#}");
    let nowhere = json!({ "prompt": "x", "workspace": "/no/such/folder", "agent": "demo" });
    assert_eq!(assistant.call("start_session", nowhere).await.unwrap_err()["code"], "workspace_missing");
}

#[tokio::test]
async fn a_call_outlives_a_restart_of_the_daemon() {
    let (mut daemon, folder) = daemon();
    let assistant = Assistant::of(&daemon, "operator").await;
    assistant.call("list_sessions", json!({})).await.unwrap();
    daemon.kill_9();
    let work = folder.path().display().to_string();
    let start = json!({ "prompt": "/say late", "workspace": work, "agent": "demo" });
    let call = assistant.call("start_session", start);
    let restart = async { daemon.restart_with(Setup::default()) };
    // The call finds no daemon at first, and is carried out by the next one: once.
    let (started, ()) = tokio::join!(call, restart);
    assert!(started.is_ok(), "{started:?}");
    let listed = daemon.request("GET", "/api/v1/sessions", &[], None).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed:#}");
}

/// Decision 0028: an agent is no operator, also where its program keeps its environment from its servers.
#[test]
fn inside_of_a_session_it_is_refused() {
    let (daemon, _folder) = daemon();
    let direct = std::process::Command::new(binary())
        .args(["mcp", "serve", "--role", "operator"])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_SESSION", "sess_x")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!direct.status.success() && String::from_utf8_lossy(&direct.stderr).contains("sess_x"));
    let script = format!(
        "env -i HOME=\"$0\" LANYARD_DATA_DIR=\"$0\" {} mcp serve --role operator; exit $?",
        binary().display()
    );
    let hidden = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(daemon.home())
        .env("LANYARD_SESSION", "sess_x")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&hidden.stderr);
    assert!(!hidden.status.success() && told.contains("operator_only") && told.contains("sess_x"), "{told}");
}
