//! Every id leads to all the others, whatever it names is brought back under the same worker, and a family shows who
//! stands where (S4-01 to S4-05, S4-07, S4-20, S4-21, S1-28, S1-31, S1-33, S1-34, S1-35).

use serde_json::{Value, json};

use super::kit::{Stage, id, until};
use super::talk::{below, step, tasks};

fn wait(stage: &Stage, sign: &str) -> String {
    format!("/wait-file {}", stage.sign(sign).display())
}

/// S4-20: session, task, worker, run, plan, mail and alias.
#[test]
fn every_id_leads_to_the_task_and_all_it_is_linked_to() {
    let stage = Stage::new();
    let plan =
        id(&stage.ok("/plans", &json!({ "title": "p", "name": "p", "workspace": stage.repo() })), "id");
    let above = stage.task("/say x", &json!({ "title": "above", "kind": "external" }));
    stage.is(&above, "running");
    let more = json!({ "plan": plan, "aliases": ["ticket-7"], "parent": above });
    let task = stage.task(&wait(&stage, "go"), &more);
    stage.ok("/plans/p/start", &json!({}));
    let running = stage.is(&task, "running");
    until("its process", || stage.show(&task)["runs"][0]["run"].is_string());
    let (session, worker) = (id(&running, "session"), id(&running, "worker"));
    let run = id(&stage.show(&task)["runs"][0], "run");
    let uri = format!("orchestrator:%2F{task}");
    for (name, kind) in [
        (session.as_str(), "session"),
        (task.as_str(), "task"),
        (uri.as_str(), "task"),
        (worker.as_str(), "worker"),
        (run.as_str(), "run"),
        ("ticket-7", "alias"),
    ] {
        let chain = stage.get(&format!("/ids/{name}"));
        assert_eq!(chain["kind"], kind, "{chain}");
        assert_eq!(chain["task"]["id"], task.as_str(), "{name}");
        assert_eq!((&chain["worker"], &chain["session"]["id"]), (&json!(worker), &json!(session)), "{name}");
        assert_eq!(
            (&chain["plan"]["id"], &chain["plan"]["status"]),
            (&json!(plan), &json!("active")),
            "{name}"
        );
        assert_eq!((&chain["session"]["process"], &chain["session"]["live"]), (&json!(run), &json!(true)));
        assert_eq!(chain["reports_to"], json!([above]), "{name}");
    }
    let named = stage.get("/ids/p");
    assert_eq!((&named["kind"], &named["plan"]["id"]), (&json!("alias"), &json!(plan)));
    assert_eq!(stage.get(&format!("/ids/{plan}"))["kind"], "plan");
    let mail = stage.ok(&format!("/tasks/{above}/mail"), &json!({ "text": "hello" }));
    let chain = stage.get(&format!("/ids/{}", id(&mail, "id")));
    assert_eq!((&chain["kind"], &chain["mail"]["to"]), (&json!("mail"), &json!(above)));
    stage.touch("go");
    stage.is(&task, "completed");
    let boxed = stage.get(&format!("/mail?box={above}"))["mail"].clone();
    let ended = boxed.as_array().unwrap().iter().find(|mail| mail["kind"] == "ended").cloned().unwrap();
    let chain = stage.get(&format!("/ids/{}", id(&ended, "id")));
    assert_eq!(chain["task"]["id"], task.as_str(), "the task it is from");
    assert_eq!(stage.get(&format!("/ids/{session}"))["task"]["state"], "completed", "also when it has ended");
    let chat = stage.chat();
    let chain = stage.get(&format!("/ids/{chat}"));
    assert_eq!((&chain["kind"], &chain["task"]), (&json!("session"), &Value::Null));
}

/// S4-21: in each state, by each of its names, under the same worker.
#[test]
fn whatever_is_named_is_brought_back_under_the_same_worker() {
    let stage = Stage::new();
    let resume = |name: &str| stage.ok(&format!("/resume/{name}"), &json!({}));
    let pending = stage.task("/say pending", &json!({ "deploy": false, "aliases": ["ticket-8"] }));
    let brought = resume("ticket-8");
    assert_eq!((&brought["how"], &brought["task"]), (&json!("redeployed"), &json!(pending)));
    let done = stage.is(&pending, "completed");
    assert_eq!(done["worker"], brought["worker"]);

    let task = stage.task(&wait(&stage, "never"), &json!({}));
    let running = stage.is(&task, "running");
    let (session, worker) = (id(&running, "session"), id(&running, "worker"));
    let at_work = resume(&worker);
    assert_eq!((&at_work["how"], &at_work["session"]), (&json!("at_work"), &json!(session)));

    // Its turn was cancelled by a person: interrupted, and nobody brings it back but a person.
    until("its turn", || stage.get(&format!("/sessions/{session}"))["active_turn"].is_object());
    stage.ok(&format!("/sessions/{session}/cancel"), &json!({}));
    stage.is(&task, "interrupted");
    let brought = resume(&session);
    assert_eq!((&brought["how"], &brought["worker"]), (&json!("resumed"), &json!(worker)));
    let done = stage.is(&task, "completed");
    assert_eq!(done["session"], session.as_str());

    // One that has ended is worked at anew: another session, another run, the same worker.
    let brought = resume(&session);
    assert_eq!((&brought["how"], &brought["worker"]), (&json!("redeployed"), &json!(worker)));
    assert_ne!(brought["session"], session.as_str());
    let again = stage.is(&task, "running");
    assert_eq!((&again["worker"], &again["attempts"]), (&json!(worker), &json!(2)));
    assert!(again["run"].as_u64() > done["run"].as_u64());
    stage.ok(&format!("/tasks/{task}/pause"), &json!({}));
    stage.rests(&id(&again, "session"));
    assert_eq!(resume(&task)["how"], "resumed");
    stage.is(&task, "completed");
}

/// What cannot be brought back now is left as it is.
#[test]
fn what_is_held_is_not_brought_back_by_half() {
    let stage = Stage::new();
    let first = stage.task("/say first", &json!({ "deploy": false }));
    let second = stage.task("/say second", &json!({ "deploy": false, "depends_on": [first] }));
    stage.ok(&format!("/tasks/{second}/cancel"), &json!({}));
    assert_eq!(stage.refused(&format!("/resume/{second}"), &json!({})), "task_blocked");
    assert_eq!(stage.show(&second)["state"], "cancelled");
    stage.ok(&format!("/resume/{first}"), &json!({}));
    stage.is(&first, "completed");
    stage.ok(&format!("/resume/{second}"), &json!({}));
    stage.is(&second, "completed");
}

/// A chat without a task is brought back as a session; one of another agent cannot be.
#[test]
fn a_chat_is_brought_back_as_it_is() {
    let stage = Stage::new();
    let chat = stage.chat();
    tasks(&stage, &chat, &json!({ "action": "agents" }));
    assert_eq!(stage.ok(&format!("/resume/{chat}"), &json!({}))["how"], "at_work", "its process is there");
    stage.kill_agent(&chat);
    until("its end to be seen", || stage.get(&format!("/ids/{chat}"))["session"]["live"] == false);
    let brought = stage.ok(&format!("/resume/{chat}"), &json!({}));
    assert_eq!((&brought["how"], &brought["session"]), (&json!("resumed"), &json!(chat)));
    until("its process to be there again", || stage.get(&format!("/ids/{chat}"))["session"]["live"] == true);
    let foreign = stage
        .ok("/sessions", &json!({ "agent": "somebody", "driven_by": "nobody", "workspace": stage.repo() }));
    let foreign = id(&foreign, "session");
    assert_eq!(stage.refused(&format!("/resume/{foreign}"), &json!({})), "agent_not_configured");
    let plan = id(&stage.ok("/plans", &json!({ "title": "p", "workspace": stage.repo() })), "id");
    assert_eq!(stage.refused(&format!("/resume/{plan}"), &json!({})), "id_unknown");
}

/// S1-28, S1-31, S1-33, S1-34: levels and depth are what they are, callers and children are named.
#[test]
fn a_family_shows_who_stands_where() {
    let stage = Stage::new();
    let chat = stage.chat();
    let third = step(&json!({ "action": "spawn", "prompt": wait(&stage, "third"), "title": "third" }));
    let second = format!("{third}\n{}", wait(&stage, "second"));
    let spawn =
        json!({ "action": "spawn", "prompt": second, "may_spawn": true, "agent": "a", "title": "second" });
    let second = id(&tasks(&stage, &chat, &spawn)["tasks"][0], "task_id");
    until("the third", || below(&stage, &second).len() == 1);
    let third = id(&below(&stage, &second)[0], "id");
    let (two, three) =
        (id(&stage.is(&second, "running"), "session"), id(&stage.is(&third, "running"), "session"));
    let stands = |session: &str| stage.get(&format!("/sessions/{session}/delegation"));
    for (session, level, can) in [(&chat, 1, true), (&two, 2, true), (&three, 3, false)] {
        let shown = stands(session);
        assert_eq!((&shown["level"], &shown["depth"]), (&json!(level), &json!(level)), "{shown}");
        assert_eq!(shown["can_delegate"], can, "{shown}");
        assert_eq!(shown["depth_limit"], 3);
    }
    let stack = stands(&three)["call_stack"].clone();
    let sessions: Vec<&Value> = stack.as_array().unwrap().iter().map(|caller| &caller["session"]).collect();
    assert_eq!(sessions, [&json!(chat), &json!(two), &json!(three)]);
    assert!(stack.as_array().unwrap().iter().all(|caller| caller["agent"] == "a"), "{stack}");
    let children = stands(&chat)["children"].clone();
    assert_eq!(children.as_array().unwrap().len(), 1);
    let child = &children[0];
    assert_eq!((&child["session"], &child["agent"]), (&json!(two), &json!("a")));
    assert_eq!((&child["task"], &child["task_state"]), (&json!(second), &json!("running")));
    assert_eq!(child["liveness"], "live");
    assert!(child["created_at"].is_string());
    stage.touch("third");
    stage.is(&third, "completed");
    assert_eq!(stands(&two)["children"][0]["liveness"], "ended");
    assert_eq!(stands(&two)["depth"], 2, "what is below does not count");
    stage.touch("second");
    stage.is(&second, "completed");
    assert_eq!(stands(&chat)["children"][0]["liveness"], "ended");
}

/// S1-35: a child nobody works at any more is found by its process, and not by its silence.
#[test]
fn an_orphan_is_found_by_its_liveness() {
    let stage = Stage::with("[staleness]\nsuspect_after_ms = 0\n");
    let chat = stage.chat();
    let child = |source: &str| {
        let body = json!({ "agent": "a", "workspace": stage.repo(), "parent": chat, "source": source });
        id(&stage.ok("/sessions", &body), "session")
    };
    let (lost, busy) = (child("one"), child("two"));
    for session in [&lost, &busy] {
        let body = json!({ "prompt": format!("/touch {}\n{}", stage.sign(session).display(), wait(&stage, "never")) });
        let answer = stage.post(&format!("/sessions/{session}/turns"), &body);
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let liveness = |session: &str| {
        let shown = stage.get(&format!("/sessions/{chat}/delegation"));
        let children = shown["children"].as_array().unwrap();
        children.iter().find(|child| child["session"] == session).unwrap()["liveness"].clone()
    };
    for session in [&lost, &busy] {
        stage.await_sign(session);
        assert_eq!(liveness(session), "live");
    }
    stage.kill_agent(&lost);
    until("it to be found", || liveness(&lost) == "orphaned");
    assert_eq!(liveness(&busy), "live", "quiet as it is");
}

/// An id says by its form what it names, and lives as long as that: an agent's name for ever (S4-01), a task's (S4-02) and
/// a part's (S4-07) as long as the task, a plan's (S4-03) as the plan, a worker's (S4-04) over every deploy and restart.
#[test]
fn each_id_lives_as_long_as_what_it_names() {
    let mut stage = Stage::new();
    let plan = id(&stage.ok("/plans", &json!({ "title": "p", "workspace": stage.repo() })), "id");
    let more = json!({ "plan": plan, "agent": "a", "deploy": false });
    let task = stage.task("/say once", &more);
    let whole = stage.task("/say whole", &json!({ "deploy": false }));
    let part = stage.task("/say part", &json!({ "parent": whole, "agent": "a", "deploy": false }));
    let of = |kind: &str, text: &str| text.strip_prefix(kind).is_some_and(|rest| rest.len() == 26);
    assert!(of("plan_", &plan) && of("task_", &task) && of("task_", &part), "{plan} {task} {part}");
    assert_eq!(stage.show(&part)["parent"], whole.as_str());
    let before = stage.show(&task);
    assert_eq!((&before["agent"], &before["worker"]), (&json!("a"), &Value::Null));
    stage.ok(&format!("/tasks/{task}/deploy"), &json!({}));
    let first = stage.is(&task, "completed");
    stage.up();
    stage.ok(&format!("/tasks/{task}/retry"), &json!({}));
    stage.ok(&format!("/tasks/{task}/deploy"), &json!({}));
    let second = stage.is(&task, "completed");
    assert!(of("worker_", &id(&first, "worker")), "{first}");
    for field in ["id", "plan", "agent", "worker"] {
        assert_eq!(first[field], second[field], "{field}");
    }
    assert_ne!(first["session"], second["session"], "a session is one go at it");
    // The same agent works at another task as another worker.
    stage.ok(&format!("/tasks/{part}/deploy"), &json!({}));
    let other = stage.is(&part, "completed");
    assert_eq!(other["agent"], first["agent"]);
    assert_ne!(other["worker"], first["worker"]);
}

/// S4-05, S4-04: a chat's id is the same over restarts of the daemon and of its agent, and is its worker's with the other
/// prefix, for one task after the other.
#[test]
fn a_chat_keeps_its_id_over_restarts() {
    let mut stage = Stage::new();
    let chat = stage.chat();
    let bits = |id: &str| id.split_once('_').unwrap().1.to_owned();
    let mut workers = Vec::new();
    for text in ["one", "two"] {
        let task = stage.task(&format!("/say {text}"), &json!({ "session": chat }));
        stage.is(&task, "running");
        stage.up();
        assert_eq!(stage.get(&format!("/sessions/{chat}"))["id"], chat.as_str());
        let shown = stage.show(&task);
        assert_eq!(shown["session"], chat.as_str());
        workers.push(id(&shown, "worker"));
        stage.ok(&format!("/tasks/{task}/complete"), &json!({ "summary": "done" }));
        stage.is(&task, "completed");
        stage.rests(&chat);
    }
    assert_eq!(workers[0], workers[1]);
    assert_eq!(bits(&workers[0]), bits(&chat));
    assert!(workers[0].starts_with("worker_") && chat.starts_with("sess_"), "{workers:?} {chat}");
}
