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
    let init =
        json!({ "action": "init", "agent_type": "Coordinator", "context": { "session_id": "chat-7" } });
    assert_eq!(told(&client, "memory_agent", &init).get("ignored_arguments"), None);
    assert_eq!(event(&stage, &id, "agent.introduced")["extension_session_id"], "chat-7");
    let plan = told(&client, "memory_plan", &json!({ "action": "create", "title": "Checkout" }));
    let plan = plan["id"].as_str().unwrap();

    let spawn =
        json!({ "agent_name": "Executor", "plan_id": plan, "workspace_id": "/w", "prompt": "Fix the form." });
    let answer = client.call("memory_spawn_agent", &spawn);
    let blocks = &answer["result"]["content"];
    let prepared: Value = serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap();
    let child = prepared["session_id"].as_str().unwrap();
    let config = &prepared["prep_config"];
    assert_eq!(
        (&config["session_id"], &config["agent_name"]),
        (&json!(child), &json!("Executor")),
        "{config}"
    );
    assert_eq!((&config["plan_id"], &config["workspace_id"]), (&json!(plan), &json!("/w")));
    assert_eq!(config["enriched_prompt"], blocks[1]["text"], "word for word, its markers whole");
    let prompt = config["enriched_prompt"].as_str().unwrap();
    let session_line = format!("Session: {child}");
    let parts =
        ["## CONTEXT", &session_line, "## SESSION TRACKING", "⚠️ SESSION STOP REQUESTED", "Fix the form."];
    let places: Vec<usize> = parts.iter().map(|part| prompt.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{prompt}");

    // The child is started by its parent's own means and shares the connection.
    let handoff = json!({
        "action": "handoff", "to_agent": "Coordinator", "reason": "done", "_session_id": child,
    });
    told(&client, "memory_agent", &handoff);
    assert_eq!(event(&stage, child, "agent.handed_off")["to"], "Coordinator");
    let shown = told(&client, "memory_plan", &json!({ "action": "get", "plan_id": plan }));
    assert_eq!(
        (&shown["lineage"][0]["to"], &shown["current_agent"]),
        (&json!("Coordinator"), &json!("Coordinator"))
    );
}

/// FND-M11: two names of one argument with different values are refused, and nothing happens.
#[test]
fn fnd_m11_two_values_under_two_names_are_refused() {
    let stage = Stage::new("");
    let (id, client) = hub(&stage);
    let before =
        stage.daemon.log_after(&id, 0).iter().filter(|event| event["type"] == "agent.handed_off").count();
    let both = json!({ "action": "handoff", "to": "Coordinator", "to_agent": "Tester", "reason": "x" });
    let text = refused(&client, "memory_agent", &both);
    assert!(text.contains("[arguments_conflict]") && text.contains("`to` and `to_agent`"), "{text}");
    let spawn = json!({ "agent": "A", "prompt": "x", "prep_config": { "agent_name": "B" } });
    assert!(refused(&client, "memory_spawn_agent", &spawn).contains("[arguments_conflict]"));
    let log = stage.daemon.log_after(&id, 0);
    assert_eq!(log.iter().filter(|event| event["type"] == "agent.handed_off").count(), before);
    assert!(!log.iter().any(|event| event["type"] == "session.child_linked"), "{log:?}");
}

/// A hub that plans, with a step done, one taken and a hand-off; the plan's id.
fn planned(client: &Client) -> String {
    let create = json!({
        "action": "create", "title": "Checkout", "goal": "Pay with a card", "phases": ["design", "build"],
        "priority": "high",
    });
    let plan = told(client, "memory_plan", &create)["id"].as_str().unwrap().to_owned();
    let steps = json!([
        { "task": "Draw the form", "type": "documentation", "phase": "design" },
        { "task": "Write the form", "phase": "build", "notes": "two cards", "acceptance": ["cargo test is green"] },
        { "task": "Test it", "type": "test", "phase": "build" },
    ]);
    told(client, "memory_steps", &json!({ "action": "add", "steps": steps }));
    told(client, "memory_steps", &json!({ "action": "complete", "step": 1, "evidence": "a picture" }));
    told(client, "memory_steps", &json!({ "action": "next", "phase": "build" }));
    told(client, "memory_plan", &json!({ "action": "update", "status": "active", "current_phase": "build" }));
    let handoff = json!({ "action": "handoff", "to": "Executor", "reason": "the design stands" });
    told(client, "memory_agent", &handoff);
    plan
}

/// FND-M4, S0-63, S0-64: phases, steps, progress, current agent and lineage of what agents plan are in the API.
#[test]
fn fnd_m4_what_agents_plan_is_in_the_api() {
    let stage = Stage::new("");
    let (id, client) = hub(&stage);
    told(&client, "memory_agent", &json!({ "action": "init", "agent_type": "Coordinator" }));
    let plan = planned(&client);
    let get = |path: &str| {
        let answer = stage.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let view = get(&format!("/plans/{plan}"));
    let progress = json!({ "done": 1, "total": 3, "steps_done": 1, "steps": 3, "tasks_done": 0, "tasks": 0 });
    assert_eq!((&view["progress"], &view["status"]), (&progress, &json!("active")), "{view}");
    assert_eq!((&view["current_phase"], &view["current_agent"]), (&json!("build"), &json!("Executor")));
    assert_eq!(view["phases"][1], json!({ "name": "build", "current": true, "steps": 2, "done": 0 }));
    let states: Vec<&str> =
        view["steps"].as_array().unwrap().iter().map(|step| step["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["done", "active", "pending"]);
    let step = &view["steps"][1];
    assert_eq!(
        (&step["type"], &step["notes"], &step["taken"]["by"]),
        (&json!("code"), &json!("two cards"), &json!(id))
    );
    assert_eq!(step["acceptance"], json!(["cargo test is green"]));
    let lineage = &view["lineage"][0];
    assert_eq!((&lineage["from"], &lineage["to"]), (&json!("Coordinator"), &json!("Executor")), "{lineage}");
    let row = &get("/plans")["plans"][0];
    assert_eq!((&row["progress"], &row["current_agent"]), (&progress, &json!("Executor")));

    // S0-12: the hub is one of the plan's sessions, by its id and by its record.
    assert_eq!(get(&format!("/sessions/{id}"))["plan"], json!(plan));
    let other = stage.session(&json!({ "workspace": "/w" }));
    let of_plan = get(&format!("/sessions?plan={plan}"));
    let found: Vec<&str> =
        of_plan["sessions"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(found, [&id]);
    assert_ne!(id, other);
}

/// FND-M4: a session that was made for a plan by its name is found by the plan's id, and only in its workspace.
#[test]
fn fnd_m4_sessions_are_found_by_either_word_for_their_plan() {
    let stage = Stage::new("");
    let new = |workspace: &str| {
        stage.session(&json!({ "source": "external", "agent": "Coordinator", "workspace": workspace, "plan": "checkout" }))
    };
    let (here, elsewhere) = (new("/w"), new("/elsewhere"));
    let client = stage.client(&here, "lanyard");
    let plan = told(&client, "memory_plan", &json!({ "action": "create", "title": "Checkout" }));
    let (plan, name) = (plan["id"].as_str().unwrap(), plan["name"].as_str().unwrap());
    assert_eq!(name, "checkout");
    let found = |query: &str| {
        let page = stage.daemon.request("GET", &format!("/api/v1/sessions?{query}"), &[], None).json();
        let rows = page["sessions"].as_array().unwrap().clone();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&format!("plan={plan}")), std::slice::from_ref(&here));
    assert_eq!(found("plan=checkout&workspace=/w"), std::slice::from_ref(&here));
    assert_eq!(found("plan=checkout"), [elsewhere, here]);
    assert_eq!(found("plan=nothing"), Vec::<String>::new());
}

/// FND-M4: the same on the command line, for people and as JSON, and in the export.
#[test]
fn fnd_m4_what_agents_plan_is_shown_on_the_command_line() {
    let stage = Stage::new("");
    let (id, client) = hub(&stage);
    let plan = planned(&client);
    let said = |words: &[&str]| {
        let out = stage.daemon.lanyard(words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let shown = said(&["plan", "show", &plan]);
    for part in [
        "1 of 3 steps",
        "design (1/1), build (0/2, current)",
        "Executor",
        "[x] done",
        "[>] active",
        "[ ] pending",
        "Test it",
        &id[id.len() - 6..],
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("0/0") && !shown.contains("no tasks"), "{shown}");
    let listed = said(&["plan", "ls"]);
    assert!(listed.contains("1/3") && listed.contains("build") && listed.contains("Executor"), "{listed}");
    let view: Value = serde_json::from_str(&said(&["plan", "show", &plan, "--json"])).unwrap();
    assert_eq!((&view["steps"][2]["task"], &view["progress"]["total"]), (&json!("Test it"), &json!(3)));
    let text = said(&["plan", "export", &plan]);
    for part in [
        "- [x] 1. Draw the form (documentation)",
        "  Notes: two cards",
        "  Acceptance: cargo test is green",
        "- [ ] 3. Test it (test)",
        "Coordinator to Executor: the design stands",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
