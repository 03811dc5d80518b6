//! Inputs as the harnesses send them, and what they are answered while a session is left alone, guided and stopped.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Daemon, Setup, binary};

struct Hook<'a> {
    daemon: &'a Daemon,
    agent: &'a str,
    env: Vec<(&'a str, String)>,
}

impl Hook<'_> {
    /// What the hook prints; it never fails.
    fn answer(&self, input: &Value) -> Value {
        let said = self.raw(&input.to_string());
        if said.is_empty() { Value::Null } else { serde_json::from_str(&said).unwrap() }
    }

    fn raw(&self, input: &str) -> String {
        let mut child = Command::new(binary())
            .args(["hook", self.agent])
            .env_remove("LANYARD_SESSION")
            .env("LANYARD_DATA_DIR", self.daemon.home())
            .envs(self.env.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> Value {
    let answer = daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()));
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.json()
}

fn claude(event: &str, more: &Value) -> Value {
    let mut input = json!({
        "session_id": "0f6cf1d0-8e4b-4b62-9a43-0d1d8f0c6f11",
        "transcript_path": "/home/u/.claude/projects/-w/0f6c.jsonl",
        "cwd": "/w",
        "permission_mode": "default",
        "hook_event_name": event,
        "tool_name": "Bash",
        "tool_input": { "command": "ls", "description": "list" },
        "tool_use_id": "toolu_01",
    });
    if event == "PostToolUse" {
        input["tool_response"] = json!({ "stdout": "a", "stderr": "", "interrupted": false });
    }
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

fn gemini(event: &str) -> Value {
    let mut input = json!({
        "session_id": "gm-1", "transcript_path": "/t.json", "cwd": "/w", "hook_event_name": event,
        "timestamp": "2026-11-15T08:00:00.000Z", "tool_name": "run_shell_command", "tool_input": { "command": "ls" },
    });
    if event == "AfterTool" {
        input["tool_response"] = json!({ "llmContent": "a", "returnDisplay": "a" });
    }
    input
}

#[test]
fn claude_is_guided_denied_and_ended() {
    let daemon = Daemon::start(Setup::default());
    let hook = Hook { daemon: &daemon, agent: "claude", env: Vec::new() };
    assert_eq!(hook.answer(&claude("PreToolUse", &json!({}))), Value::Null);
    assert_eq!(hook.answer(&claude("PostToolUse", &json!({}))), Value::Null);
    let id = "0f6cf1d0-8e4b-4b62-9a43-0d1d8f0c6f11";
    let session = daemon.request("GET", &format!("/api/v1/sessions/{id}"), &[], None).json();
    assert_eq!((&session["source"], &session["agent"]), (&json!("external"), &json!("claude")));
    assert_eq!(session["workspace"], "/w");

    post(&daemon, &format!("/sessions/{id}/guidance"), &json!({ "text": "mind the gap" }));
    assert_eq!(hook.answer(&claude("PreToolUse", &json!({}))), Value::Null);
    let said = hook.answer(&claude("PostToolUse", &json!({})));
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "PostToolUse");
    let context = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.starts_with("📝 USER GUIDANCE"), "{context}");
    assert!(context.contains("\nmind the gap\n") && !context.contains("TOOL RESPONSE"), "{context}");
    let later = json!({ "tool_use_id": "toolu_02" });
    assert_eq!(hook.answer(&claude("PreToolUse", &later)), Value::Null);
    assert_eq!(hook.answer(&claude("PostToolUse", &later)), Value::Null, "said twice");
    let list = daemon.request("GET", &format!("/api/v1/sessions/{id}/guidance"), &[], None).json();
    assert_eq!(list["settled"][0]["delivery"]["channel"], "hook", "{list}");
    assert_eq!(list["settled"][0]["delivery"]["call"], "toolu_01", "{list}");

    post(&daemon, &format!("/sessions/{id}/guidance"), &json!({ "text": "with the prompt" }));
    let said = hook.answer(&claude("UserPromptSubmit", &json!({ "prompt": "go on" })));
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit", "{said}");

    post(&daemon, &format!("/sessions/{id}/stop"), &json!({ "now": true }));
    let said = hook.answer(&claude("PreToolUse", &json!({ "tool_use_id": "toolu_03" })));
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    let reason = said["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.starts_with("🛑 SESSION STOP — IMMEDIATE\n"), "{reason}");
    assert_eq!(said.get("continue"), None);
    assert_eq!(hook.answer(&claude("PostToolBatch", &json!({}))), Value::Null, "not before level 3");
    let said = hook.answer(&claude("PreToolUse", &json!({ "tool_use_id": "toolu_04" })));
    assert_eq!(said["continue"], false, "{said}");
    assert!(said["stopReason"].as_str().unwrap().starts_with("❌ SESSION TERMINATED\n"), "{said}");
    let said = hook.answer(&claude("PostToolBatch", &json!({})));
    assert_eq!(said["continue"], false, "{said}");
}

#[test]
fn a_subagent_of_claude_is_a_child_of_its_own() {
    let daemon = Daemon::start(Setup::default());
    let hook = Hook { daemon: &daemon, agent: "claude", env: Vec::new() };
    let sub = json!({ "agent_id": "a8d5ed85", "agent_type": "general-purpose" });
    assert_eq!(hook.answer(&claude("PreToolUse", &sub)), Value::Null);
    let id = "0f6cf1d0-8e4b-4b62-9a43-0d1d8f0c6f11";
    let parent = daemon.request("GET", &format!("/api/v1/sessions/{id}"), &[], None).json();
    let child = daemon.request("GET", &format!("/api/v1/sessions/{id}%2Fa8d5ed85"), &[], None).json();
    assert_eq!(child["parent"], parent["id"], "{child}");
    assert_eq!(child["agent"], "general-purpose");
    let child = child["id"].as_str().unwrap();
    post(&daemon, &format!("/sessions/{child}/stop"), &json!({ "now": true }));
    assert_eq!(hook.answer(&claude("PreToolUse", &json!({}))), Value::Null, "the parent goes on");
    let said = hook.answer(&claude("PreToolUse", &sub));
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
}

#[test]
fn codex_is_denied_in_words_it_understands() {
    let daemon = Daemon::start(Setup::default());
    let hook = Hook { daemon: &daemon, agent: "codex", env: Vec::new() };
    let input = |event: &str| {
        json!({ "session_id": "01a1ddd5", "turn_id": "t1", "cwd": "/w", "hook_event_name": event, "model": "m",
            "permission_mode": "default", "tool_name": "Bash", "tool_input": { "command": "ls" },
            "tool_use_id": "call_1", "tool_response": "a" })
    };
    assert_eq!(hook.answer(&input("PreToolUse")), Value::Null);
    post(&daemon, "/sessions/01a1ddd5/stop", &json!({ "now": true }));
    hook.answer(&input("PreToolUse"));
    let said = hook.answer(&input("PreToolUse"));
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    assert_eq!(
        (said.get("continue"), said.get("stopReason")),
        (None, None),
        "it would take this for a broken hook"
    );
    let said = hook.answer(&input("PostToolUse"));
    assert_eq!(said["continue"], false, "{said}");
}

#[test]
fn gemini_is_guided_denied_and_ended() {
    let daemon = Daemon::start(Setup::default());
    let hook = Hook { daemon: &daemon, agent: "gemini", env: Vec::new() };
    assert_eq!(hook.answer(&gemini("BeforeTool")), Value::Null);
    post(&daemon, "/sessions/gm-1/guidance", &json!({ "text": "mind the gap" }));
    let said = hook.answer(&gemini("BeforeAgent"));
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], "BeforeAgent", "{said}");
    post(&daemon, "/sessions/gm-1/stop", &json!({ "now": true }));
    let said = hook.answer(&gemini("BeforeTool"));
    assert_eq!((&said["decision"], said.get("continue")), (&json!("deny"), None), "{said}");
    let said = hook.answer(&gemini("BeforeTool"));
    assert_eq!((&said["decision"], &said["continue"]), (&json!("deny"), &json!(false)), "{said}");
    let said = hook.answer(&gemini("AfterTool"));
    assert_eq!(said["decision"], "deny", "what the tool answered is kept from the model: {said}");
}

#[test]
fn the_opencode_plugin_is_told_what_to_do() {
    let daemon = Daemon::start(Setup::default());
    let hook = Hook { daemon: &daemon, agent: "opencode", env: Vec::new() };
    let input = |event: &str| {
        json!({ "hook_event_name": event, "session_id": "ses_1", "parent_id": "ses_0", "cwd": "/w",
            "tool_name": "bash", "tool_use_id": "call_1" })
    };
    assert_eq!(hook.answer(&input("tool.execute.before")), Value::Null);
    let child = daemon.request("GET", "/api/v1/sessions/ses_1", &[], None).json();
    let parent = daemon.request("GET", "/api/v1/sessions/ses_0", &[], None).json();
    assert_eq!(child["parent"], parent["id"]);
    post(&daemon, "/sessions/ses_1/guidance", &json!({ "text": "mind the gap" }));
    let said = hook.answer(&input("tool.execute.after"));
    assert!(said["blocks"][0].as_str().unwrap().ends_with("\n--- TOOL RESPONSE ---"), "{said}");
    assert_eq!(said["withhold"], false);
    post(&daemon, "/sessions/ses_1/stop", &json!({ "now": true }));
    let said = hook.answer(&input("tool.execute.before"));
    assert!(said["deny"].as_str().unwrap().starts_with("🛑 SESSION STOP"), "{said}");
}

#[test]
fn an_agent_that_lanyard_runs_is_known_by_what_it_was_given() {
    let daemon = Daemon::start(Setup::default());
    let made = post(&daemon, "/sessions", &json!({}));
    let id = made["session"].as_str().unwrap();
    let token = post(&daemon, "/tokens", &json!({ "role": "agent", "name": "a", "session": id }));
    let env = vec![
        ("LANYARD_SESSION", id.to_owned()),
        ("LANYARD_TOKEN", token["token"].as_str().unwrap().to_owned()),
        ("LANYARD_URL", format!("http://{}", daemon.address())),
        ("LANYARD_DATA_DIR", "/does/not/exist".to_owned()),
    ];
    let hook = Hook { daemon: &daemon, agent: "claude", env };
    post(&daemon, &format!("/sessions/{id}/guidance"), &json!({ "text": "mind the gap" }));
    let said = hook.answer(&claude("PostToolUse", &json!({})));
    assert!(said["hookSpecificOutput"]["additionalContext"].is_string(), "{said}");
    let page = daemon.request("GET", "/api/v1/sessions?source=external", &[], None).json();
    assert_eq!(page["sessions"], json!([]), "no second session is made");
}

#[test]
fn what_passes_mcp_is_left_to_it() {
    let command = format!("[\"{}\", \"scripted-mcp\"]", binary().display());
    let daemon = Daemon::start(Setup::default().config(&format!("[mcp.tools]\ncommand = {command}\n")));
    let hook = Hook { daemon: &daemon, agent: "claude", env: Vec::new() };
    let id = "0f6cf1d0-8e4b-4b62-9a43-0d1d8f0c6f11";
    let tool = |name: &str| claude("PreToolUse", &json!({ "tool_name": name }));
    hook.answer(&tool("Bash"));
    post(&daemon, &format!("/sessions/{id}/stop"), &json!({ "now": true }));
    for passes in ["mcp__lanyard__memory_agent", "mcp__tools__echo"] {
        assert_eq!(hook.answer(&tool(passes)), Value::Null, "{passes}");
    }
    // One that nobody stands in front of is asked about here.
    let said = hook.answer(&tool("mcp__files__read"));
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
}

#[test]
fn a_hook_never_stands_in_the_way() {
    let mut daemon = Daemon::prepare(Setup::default());
    let hook = |daemon: &Daemon, agent: &str, input: &str| Hook { daemon, agent, env: Vec::new() }.raw(input);
    let call = claude("PreToolUse", &json!({})).to_string();
    assert_eq!(hook(&daemon, "claude", &call), "", "there is no daemon");
    daemon.try_start().unwrap();
    for agent in ["claude", "codex", "gemini", "opencode"] {
        for input in
            ["", "no json", "[]", "{}", r#"{"hook_event_name":"PreToolUse"}"#, "{\"hook_event_name\":7}"]
        {
            assert_eq!(hook(&daemon, agent, input), "", "{agent}: {input}");
        }
    }
    // Without a home there is nothing to ask, and nothing to complain about.
    let output =
        Command::new(binary()).args(["hook", "claude"]).env_clear().stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}
