//! Tools with side effects in a turn that is taken up again after its agent died (S3-18).

use serde_json::{Value, json};

use super::kit::{Stage, until};
use super::server::Server;
use crate::support::binary;

fn log(stage: &Stage, session: &str, kind: &str) -> Vec<Value> {
    let all = stage.daemon.log_after(session, 0).into_iter();
    all.filter(|event| event["type"] == kind).collect()
}

/// How often the tool was really called.
fn calls(server: &Server) -> usize {
    let mut calls = 0;
    while let Some((_, body)) = server.try_got() {
        calls += usize::from(body.contains("tools/call"));
    }
    calls
}

/// A prompt whose agent calls `echo` twice and dies, and again.
fn twice(once: &str) -> (usize, Vec<Value>) {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (program, memory) = (binary().display().to_string(), folder.path().join("state"));
    let command = [program.as_str(), "scripted-agent", "--state", memory.to_str().unwrap()];
    let command = serde_json::to_string(&command).unwrap();
    let agent = format!("[agents.a]\ndriver = \"acp\"\ncommand = {command}\n");
    let stage = Stage::new(&(server.config("h", once) + &agent));
    let session = stage.session(&json!({"agent": "a", "workspace": folder.path()}));
    let prompt = "/mcp h echo {\"n\":1}\n/mcp h echo {\"n\":1}\n/die";
    for (attempt, again) in [(1, false), (2, true)] {
        let body = json!({"prompt": prompt, "client_turn_id": "x", "again": again});
        let sent = stage.post(&format!("/sessions/{session}/turns"), &body);
        assert_eq!(sent.status, 201, "{}", sent.text());
        until("the turn's loss", || log(&stage, &session, "turn.interrupted").len() == attempt);
        until("the run's end", || log(&stage, &session, "run.ended").len() == attempt);
    }
    (calls(&server), log(&stage, &session, "tool.returned"))
}

#[test]
fn a_tool_that_is_named_is_carried_out_once_over_a_crash() {
    let (calls, returned) = twice("once = [\"echo\"]\n");
    assert_eq!(calls, 2, "two calls in one life are two, and none is repeated in the next");
    assert_eq!(returned.len(), 4, "the agent has its answers all the same");
    assert_eq!(returned[0]["data"]["content"], returned[2]["data"]["content"]);
}

#[test]
fn without_being_named_a_tool_is_carried_out_as_often_as_it_is_called() {
    assert_eq!(twice("").0, 4);
}
