//! How far a family may grow: each limit is refused with its code, nothing is made beyond it, and no child widens what it
//! was given (S1-30, S1-32).

use serde_json::{Value, json};

use super::kit::{Stage, id, until};
use super::talk::{all_returned, answer, begin, below, code, refused, step, tasks};

/// An agent that does not do what it is told with an answer is made to, soon.
const SOON: &str = "[stop]\ngraceful_ms = 100\nimmediate_ms = 100\n";

fn spawn(prompt: &str) -> Value {
    json!({ "action": "spawn", "prompt": prompt })
}

fn spawner(prompt: &str) -> Value {
    json!({ "action": "spawn", "prompt": prompt, "may_spawn": true })
}

/// What the tool `tasks` answers to whoever has the session's own address.
fn call_as(stage: &Stage, session: &str, arguments: &Value) -> Value {
    let params = json!({ "name": "tasks", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let accept = [("Accept", "application/json, text/event-stream")];
    let path = format!("/mcp/{session}/lanyard");
    let answer = stage.daemon.request("POST", &path, &accept, Some(&call.to_string()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let result = answer.json()["result"].clone();
    json!({ "is_error": result["isError"], "content": result["content"].as_array().unwrap().last().unwrap()["text"] })
}

/// The refusal is the answer; the stop that follows it may already stand in front, and not in its place.
fn too_deep(returned: &Value) {
    assert_eq!(
        (code(returned), &returned["is_error"]),
        ("depth_exceeded".to_owned(), &json!(true)),
        "{returned}"
    );
}

/// S1-32: a fourth generation is refused, and whoever tried it is stopped.
#[test]
fn too_deep_is_refused_and_stops_whoever_tries() {
    let stage = Stage::with(SOON);
    let chat = stage.chat();
    let wait = format!("/wait-file {}", stage.sign("never").display());
    let third = step(&spawner(&wait));
    let second = id(&tasks(&stage, &chat, &spawner(&format!("{third}\n{wait}")))["tasks"][0], "task_id");
    until("the third generation", || below(&stage, &second).len() == 1);
    let third = id(&below(&stage, &second)[0], "id");
    let session = id(&stage.is(&third, "running"), "session");
    too_deep(&call_as(&stage, &session, &spawn("/say too deep")));
    let ended = stage.is(&third, "cancelled");
    assert!(id(&ended, "reason").contains("EMERGENCY_HALT"), "{ended}");
    assert!(below(&stage, &third).is_empty());
    assert_eq!(stage.show(&second)["state"], "running", "its parent goes on");
    until("its parent to hear", || {
        stage.all_mail().iter().any(|mail| mail["from"]["task"] == third.as_str())
    });
}

/// S1-30: who was not allowed to spawn does not, and may not say otherwise.
#[test]
fn a_leaf_does_not_spawn() {
    let stage = Stage::new();
    let chat = stage.chat();
    let prompt = format!("{}\n/say done", step(&spawner("/say no")));
    let child = id(&tasks(&stage, &chat, &spawn(&prompt))["tasks"][0], "task_id");
    let ended = stage.is(&child, "completed");
    let calls = all_returned(&stage, &id(&ended, "session"));
    assert_eq!(code(&calls[0]), "leaf_cannot_delegate");
    assert!(below(&stage, &child).is_empty());
    let stands = stage.get(&format!("/sessions/{}/delegation", id(&ended, "session")));
    assert_eq!(stands["can_delegate"], false);
}

/// An agent's own subagents are seen below it, though it may make no tasks: a plan's text says so in a word.
#[test]
fn the_own_subagents_of_a_leaf_are_seen() {
    let stage = Stage::new();
    let prompt =
        format!("/spawn scout look around ; /say all clear\n/join\n{}\n/say done", step(&spawner("/say no")));
    let text = format!("# P\n\n## [ ] a: A\n\n- may spawn: subagents\n\n{prompt}\n");
    let body = json!({ "markdown": text, "workspace": stage.repo(), "start": true });
    let plan = id(&stage.ok("/plans/import", &body), "id");
    assert_eq!(stage.get(&format!("/plans/{plan}/markdown"))["markdown"], text.as_str());
    let task = id(&stage.get(&format!("/plans/{plan}"))["all"][0], "id");
    let session = id(&stage.is(&task, "completed"), "session");
    let calls = all_returned(&stage, &session);
    assert_eq!(code(&calls[0]), "leaf_cannot_delegate");
    let children = stage.get(&format!("/sessions/{session}/delegation"))["children"].clone();
    assert_eq!(children.as_array().unwrap().len(), 1, "{children}");
    let child = stage.get(&format!("/sessions/{}", id(&children[0], "session")));
    assert_eq!((&child["source"], &child["title"]), (&json!("subagent"), &json!("scout")));
    assert!(stage.told().contains("You may delegate to your own subagents"));
}

/// What a root session was given is what its whole family has.
#[test]
fn the_depth_a_family_was_given_is_not_widened_below() {
    let stage = Stage::with(SOON);
    let body = json!({ "agent": "a", "workspace": stage.repo(), "depth_limit": 2 });
    let chat = id(&stage.ok("/sessions", &body), "session");
    let wait = format!("/wait-file {}", stage.sign("never").display());
    let child = id(&tasks(&stage, &chat, &spawner(&wait))["tasks"][0], "task_id");
    let session = id(&stage.is(&child, "running"), "session");
    assert_eq!(stage.get(&format!("/sessions/{session}/delegation"))["depth_limit"], 2);
    too_deep(&call_as(&stage, &session, &spawn("/say no")));
    stage.is(&child, "cancelled");
}

/// So many open at a time, together with those of the same call.
#[test]
fn no_more_than_so_many_are_open_below_one() {
    let stage = Stage::with("[families]\nbreadth = 2\n");
    let chat = stage.chat();
    let wait = format!("/wait-file {}", stage.sign("go").display());
    let three = json!({ "action": "spawn_many", "tasks": [spawn(&wait), spawn(&wait), spawn(&wait)] });
    assert_eq!(refused(&stage, &chat, &three), "breadth_limit");
    assert!(below(&stage, &chat).is_empty(), "all or none");
    let two = json!({ "action": "spawn_many", "tasks": [spawn(&wait), spawn(&wait)] });
    let two = tasks(&stage, &chat, &two);
    assert_eq!(refused(&stage, &chat, &spawn("/say x")), "breadth_limit");
    stage.touch("go");
    for task in two["tasks"].as_array().unwrap() {
        stage.is(&id(task, "task_id"), "completed");
    }
    tasks(&stage, &chat, &spawn("/say there is room again"));
}

/// So many within a minute. What was refused was not made, and does not count.
#[test]
fn no_more_than_so_many_are_made_in_a_minute() {
    let stage = Stage::with("[families]\nspawns_per_minute = 2\n");
    let chat = stage.chat();
    let three =
        json!({ "action": "spawn_many", "tasks": [spawn("/say a"), spawn("/say b"), spawn("/say c")] });
    assert_eq!(refused(&stage, &chat, &three), "spawn_rate");
    let two = json!({ "action": "spawn_many", "tasks": [spawn("/say a"), spawn("/say b")] });
    tasks(&stage, &chat, &two);
    assert_eq!(refused(&stage, &chat, &spawn("/say c")), "spawn_rate");
    assert_eq!(below(&stage, &chat).len(), 2);
}

/// So many ever below one root, grandchildren and ended ones included.
#[test]
fn no_more_than_so_many_are_ever_made_below_one_root() {
    let stage = Stage::with("[families]\nbudget = 3\nwake = false\n");
    let chat = stage.chat();
    let two = json!({ "action": "spawn_many", "tasks": [spawn("/say one"), spawn("/say two")] });
    let child = step(&two);
    let child = id(&tasks(&stage, &chat, &spawner(&child))["tasks"][0], "task_id");
    until("the grandchildren", || below(&stage, &child).len() == 2);
    assert_eq!(refused(&stage, &chat, &spawn("/say four")), "spawn_budget");
    for task in below(&stage, &child) {
        stage.is(&id(&task, "id"), "completed");
    }
    assert_eq!(refused(&stage, &chat, &spawn("/say four")), "spawn_budget", "also when they have ended");
}

/// The same work handed down to the same agent again is a circle.
#[test]
fn work_is_not_handed_down_in_circles() {
    let stage = Stage::new();
    let chat = stage.chat();
    let task = stage.task("work at it", &json!({ "session": chat }));
    stage.is(&task, "running");
    assert_eq!(refused(&stage, &chat, &spawn("work at it")), "spawn_cycle");
    tasks(&stage, &chat, &spawn("work at a part of it"));
    stage.ok(&format!("/tasks/{task}/complete"), &json!({ "summary": "done" }));
}

/// While everything is halted no agent spawns.
#[test]
fn nothing_is_spawned_while_everything_is_halted() {
    let stage = Stage::new();
    let chat = stage.chat();
    stage.ok("/halt", &json!({ "reason": "fire" }));
    // Its agent cannot even begin the turn in which it would.
    assert_eq!(stage.refused(&format!("/sessions/{chat}/turns"), &json!({ "prompt": "spawn" })), "halted");
    stage.ok("/halt/lift", &json!({}));
    tasks(&stage, &chat, &spawn("/say x"));
}

/// Bad words of an agent are refused before anything is made.
#[test]
fn bad_calls_are_refused_with_their_code() {
    let stage = Stage::new();
    let chat = stage.chat();
    let many: Vec<Value> = (0..51).map(|_| spawn("/say x")).collect();
    for (arguments, expected) in [
        (json!({ "action": "spawn" }), "field_missing"),
        (json!({ "action": "spawn", "prompt": "  " }), "field_empty"),
        (json!({ "action": "spawn", "prompt": "x", "agent": "nobody" }), "agent_unknown"),
        (json!({ "action": "spawn", "prompt": "x", "depends_on": ["nothing"] }), "task_not_found"),
        (json!({ "action": "spawn", "prompt": "x", "plan": "nothing" }), "plan_not_found"),
        (json!({ "action": "spawn_many", "tasks": [] }), "tasks_too_many"),
        (json!({ "action": "spawn_many", "tasks": many }), "tasks_too_many"),
        (
            json!({ "action": "spawn_many", "tasks": [
            { "prompt": "x", "key": "a", "depends_on": ["b"] }, { "prompt": "y", "key": "b", "depends_on": ["a"] },
        ] }),
            "dependency_cycle",
        ),
        (
            json!({ "action": "spawn_many", "tasks": [
            { "prompt": "x", "key": "a" }, { "prompt": "y", "key": "a" },
        ] }),
            "task_key_taken",
        ),
        (json!({ "action": "await", "task_ids": [] }), "tasks_required"),
        (json!({ "action": "message", "to": "parent", "text": " " }), "field_empty"),
        (json!({ "action": "report", "text": "x" }), "field_missing"),
        (json!({ "action": "ack" }), "field_missing"),
    ] {
        let returned = begin(&stage, &chat, &step(&arguments)).returned(&stage);
        assert_eq!(returned[0]["is_error"], true, "{arguments}: {returned:?}");
        assert_eq!(code(&returned[0]), expected, "{arguments}");
    }
    assert!(below(&stage, &chat).is_empty());
    let listed = begin(&stage, &chat, &step(&json!({ "action": "list", "all": true }))).returned(&stage);
    assert_eq!(answer(&listed[0])["tasks"], json!([]));
}
