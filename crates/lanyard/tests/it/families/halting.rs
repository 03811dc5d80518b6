//! The emergency stop: of a task, a worker, a plan, everything. It holds until it is lifted, also over a restart.

use serde_json::{Value, json};

use super::kit::{Stage, id, until};
use super::talk::{below, step, tasks};

fn waits(stage: &Stage, more: &Value) -> String {
    let task = stage.task(&format!("/wait-file {}", stage.sign("never").display()), more);
    stage.is(&task, "running");
    task
}

/// One task by its id, another by its worker; the rest goes on.
#[test]
fn a_task_and_a_worker_are_halted_alone() {
    let stage = Stage::new();
    let (one, two, three) = (waits(&stage, &json!({})), waits(&stage, &json!({})), waits(&stage, &json!({})));
    let halted = stage.ok("/halt", &json!({ "what": one, "reason": "wrong way", "now": true }));
    assert_eq!((&halted["tasks"], &halted["halted"]), (&json!([one]), &json!(false)));
    assert_eq!(stage.is(&one, "cancelled")["reason"], "wrong way");
    let worker = id(&stage.show(&two), "worker");
    stage.ok("/halt", &json!({ "what": worker, "now": true }));
    stage.is(&two, "cancelled");
    assert_eq!(stage.show(&three)["state"], "running");
    assert_eq!(stage.get("/halt")["halted"], false);
    assert_eq!(
        stage.refused("/halt", &json!({ "what": "task_00000000000000000000000001" })),
        "task_not_found"
    );
    let again = stage.ok("/halt", &json!({ "what": one }));
    assert_eq!(again["tasks"], json!([]), "what has ended is not halted again");
}

/// Who is halted takes along all that work for it.
#[test]
fn a_halt_reaches_all_below() {
    let stage = Stage::new();
    let wait = format!("/wait-file {}", stage.sign("never").display());
    let spawn = json!({ "action": "spawn", "prompt": wait });
    let task = stage.task(&format!("{}\n{wait}", step(&spawn)), &json!({ "may_spawn": true }));
    until("the child", || below(&stage, &task).len() == 1);
    let child = id(&below(&stage, &task)[0], "id");
    stage.is(&child, "running");
    stage.ok("/halt", &json!({ "what": task, "now": true }));
    stage.is(&task, "cancelled");
    stage.is(&child, "cancelled");
}

/// A plan is paused, and what was at work of it is cancelled.
#[test]
fn a_plan_is_halted_as_a_whole() {
    let stage = Stage::new();
    let wait = format!("/wait-file {}", stage.sign("never").display());
    let body = json!({ "title": "p", "name": "p", "workspace": stage.repo(), "start": true, "tasks": [
        { "title": "a", "key": "a", "prompt": wait },
        { "title": "b", "key": "b", "prompt": wait, "depends_on": ["a"] },
    ] });
    let plan = stage.ok("/plans", &body);
    let (a, b) = (id(&plan["all"][0], "id"), id(&plan["all"][1], "id"));
    stage.is(&a, "running");
    let beside = waits(&stage, &json!({}));
    let halted = stage.ok("/halt", &json!({ "what": "p", "now": true }));
    assert_eq!(halted["tasks"].as_array().unwrap().len(), 2);
    stage.is(&a, "cancelled");
    stage.is(&b, "cancelled");
    assert_ne!(stage.get("/plans/p")["status"], "active");
    assert_eq!(stage.show(&beside)["state"], "running");
}

/// Everything stops, chats too, and nothing begins until it is lifted; a restart does not lift it.
#[test]
fn everything_is_halted_until_it_is_lifted() {
    let mut stage = Stage::new();
    let task = waits(&stage, &json!({}));
    let chat = stage.chat();
    let body = json!({ "prompt": format!("/wait-file {}", stage.sign("never").display()) });
    stage.ok(&format!("/sessions/{chat}/turns"), &body);
    let halted = stage.ok("/halt", &json!({ "reason": "fire", "now": true }));
    assert_eq!((&halted["tasks"], &halted["halted"]), (&json!([task]), &json!(true)));
    assert_eq!(halted["sessions"], json!([chat]));
    assert_eq!(stage.is(&task, "cancelled")["reason"], "fire");
    until("the chat to be stopped", || stage.get(&format!("/sessions/{chat}"))["state"] == "stopped");
    // It is written down, waits, and says why.
    let waiting = stage.task("/say at last", &json!({}));
    stage.up();
    let shown = stage.get("/halt");
    assert_eq!(
        (&shown["halted"], &shown["reason"], &shown["by"]),
        (&json!(true), &json!("fire"), &json!("local"))
    );
    let held = stage.show(&waiting);
    assert_eq!((&held["state"], &held["held"]), (&json!("pending"), &json!("everything was halted")));
    assert_eq!(stage.refused(&format!("/tasks/{waiting}/deploy"), &json!({ "force": true })), "halted");
    assert_eq!(stage.refused(&format!("/resume/{task}"), &json!({})), "halted");
    assert_eq!(stage.show(&task)["state"], "cancelled", "what was refused was not done by half");
    assert_eq!(stage.ok("/halt/lift", &json!({}))["halted"], false);
    stage.is(&waiting, "completed");
    stage.up();
    assert_eq!(stage.get("/halt")["halted"], false);
    let spawned = tasks(&stage, &stage.chat(), &json!({ "action": "spawn", "prompt": "/say x" }));
    stage.is(&id(&spawned["tasks"][0], "task_id"), "completed");
}

/// No words keep an emergency stop from working.
#[test]
fn a_halt_works_whatever_its_reason() {
    let stage = Stage::new();
    for (reason, kept) in
        [(String::new(), "it was cancelled".to_owned()), ("x".repeat(100_000), "xxx".to_owned())]
    {
        let task = waits(&stage, &json!({}));
        stage.ok("/halt", &json!({ "reason": reason, "now": true }));
        assert!(id(&stage.is(&task, "cancelled"), "reason").starts_with(&kept));
        stage.ok("/halt/lift", &json!({}));
    }
}

/// FND-K6. While everything is halted no session, turn, run or flow begins, also after a restart; `status`, `ls` and `top`
/// say so; and the record tells who lifted the halt.
#[test]
fn fnd_k6_a_halt_holds_ordinary_sessions() {
    let mut stage = Stage::new();
    let chat = stage.chat();
    let turns = format!("/sessions/{chat}/turns");
    stage.ok("/halt", &json!({ "reason": "fire" }));
    for restarted in [false, true] {
        if restarted {
            stage.up();
        }
        for (path, body) in [
            (turns.clone(), json!({ "prompt": "/say x" })),
            (turns.clone(), json!({ "prompt": "/say x", "delivery": "queue" })),
            (format!("/sessions/{chat}/resume"), json!({})),
            (format!("/sessions/{chat}/fork"), json!({})),
            ("/sessions".to_owned(), json!({ "title": "another" })),
            ("/flows".to_owned(), json!({ "kind": "phases", "plan": stage.repo().join("plan.md") })),
        ] {
            assert_eq!(stage.refused(&path, &body), "halted", "{path}, restarted: {restarted}");
        }
        let problem = stage.post(&turns, &json!({ "prompt": "/say x" })).json();
        assert!(problem["advice"].as_str().unwrap().contains("lanyard halt --lift"), "{problem}");
        let status = stage.get("/status");
        assert_eq!(
            (&status["halt"]["halted"], &status["halt"]["reason"], &status["halt"]["by"]),
            (&json!(true), &json!("fire"), &json!("local"))
        );
        for words in [&["status"][..], &["ls"], &["top", "--once"]] {
            let said = stage.daemon.lanyard(words);
            let said = [said.stdout, said.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
            assert!(
                said.contains("work is halted since ") && said.contains("by local: fire"),
                "{words:?}: {said}"
            );
        }
    }
    assert_eq!(stage.get(&format!("/sessions/{chat}"))["turn"], Value::Null);
    let external = json!({ "source": "external", "agent": "someone" });
    assert_eq!(stage.post("/sessions", &external).status, 201, "what others started is still watched");
    let lifted = stage.ok("/halt/lift", &json!({ "reason": "it is out" }));
    let of_lift = |state: &Value| (state["lifted"]["by"].clone(), state["lifted"]["reason"].clone());
    assert_eq!(of_lift(&lifted), (json!("local"), json!("it is out")));
    stage.up();
    assert_eq!(of_lift(&stage.get("/halt")), (json!("local"), json!("it is out")));
    stage.ok(&turns, &json!({ "prompt": "/say x" }));
    stage.rests(&chat);
}
