//! Lanyard's own tools as a client of the earlier design calls them (S0): its argument names, its shapes.

use serde_json::{Value, json};

use super::kit::{Client, Stage};

fn hub(stage: &Stage) -> (String, Client) {
    let id = stage.session(&json!({ "source": "external", "agent": "Coordinator", "workspace": "/w" }));
    let client = stage.client(&id, "lanyard");
    (id, client)
}

/// The document of a call's answer.
fn told(client: &Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.call(tool, arguments);
    assert_eq!(answer["result"]["isError"], false, "{tool} {arguments}: {answer}");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn refused(client: &Client, tool: &str, arguments: &Value) -> String {
    let answer = client.call(tool, arguments);
    assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
    answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

fn event(stage: &Stage, session: &str, kind: &str) -> Value {
    let log = stage.daemon.log_after(session, 0);
    let found = log.iter().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {log:?}"))["data"].clone()
}

/// FND-M11, S0-28..S0-31, S0-37, S0-63: init, spawn and hand-off with the arguments S0 names them by.
#[test]
fn fnd_m11_a_hub_and_its_child_use_the_names_of_s0() {
    let stage = Stage::new("");
    let (id, client) = hub(&stage);
    let init = json!({ "action": "init", "agent_type": "Coordinator", "context": { "session_id": "chat-7" } });
    assert_eq!(told(&client, "memory_agent", &init).get("ignored_arguments"), None);
    assert_eq!(event(&stage, &id, "agent.introduced")["extension_session_id"], "chat-7");
    let plan = told(&client, "memory_plan", &json!({ "action": "create", "title": "Checkout" }));
    let plan = plan["id"].as_str().unwrap();

    let spawn = json!({ "agent_name": "Executor", "plan_id": plan, "workspace_id": "/w", "prompt": "Fix the form." });
    let answer = client.call("memory_spawn_agent", &spawn);
    let blocks = &answer["result"]["content"];
    let prepared: Value = serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap();
    let child = prepared["session_id"].as_str().unwrap();
    let config = &prepared["prep_config"];
    assert_eq!((&config["session_id"], &config["agent_name"]), (&json!(child), &json!("Executor")), "{config}");
    assert_eq!((&config["plan_id"], &config["workspace_id"]), (&json!(plan), &json!("/w")));
    assert_eq!(config["enriched_prompt"], blocks[1]["text"], "word for word, its markers whole");
    let prompt = config["enriched_prompt"].as_str().unwrap();
    let session_line = format!("Session: {child}");
    let parts = ["## CONTEXT", &session_line, "## SESSION TRACKING", "⚠️ SESSION STOP REQUESTED", "Fix the form."];
    let places: Vec<usize> = parts.iter().map(|part| prompt.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{prompt}");

    // The child is started by its parent's own means and shares the connection.
    let handoff = json!({
        "action": "handoff", "to_agent": "Coordinator", "reason": "done", "_session_id": child,
    });
    told(&client, "memory_agent", &handoff);
    assert_eq!(event(&stage, child, "agent.handed_off")["to"], "Coordinator");
    let shown = told(&client, "memory_plan", &json!({ "action": "get", "plan_id": plan }));
    assert_eq!((&shown["lineage"][0]["to"], &shown["current_agent"]), (&json!("Coordinator"), &json!("Coordinator")));
}

/// FND-M11: two names of one argument with different values are refused, and nothing happens.
#[test]
fn fnd_m11_two_values_under_two_names_are_refused() {
    let stage = Stage::new("");
    let (id, client) = hub(&stage);
    let before = stage.daemon.log_after(&id, 0).iter().filter(|event| event["type"] == "agent.handed_off").count();
    let both = json!({ "action": "handoff", "to": "Coordinator", "to_agent": "Tester", "reason": "x" });
    let text = refused(&client, "memory_agent", &both);
    assert!(text.contains("[arguments_conflict]") && text.contains("`to` and `to_agent`"), "{text}");
    let spawn = json!({ "agent": "A", "prompt": "x", "prep_config": { "agent_name": "B" } });
    assert!(refused(&client, "memory_spawn_agent", &spawn).contains("[arguments_conflict]"));
    let log = stage.daemon.log_after(&id, 0);
    assert_eq!(log.iter().filter(|event| event["type"] == "agent.handed_off").count(), before);
    assert!(!log.iter().any(|event| event["type"] == "session.child_linked"), "{log:?}");
}
