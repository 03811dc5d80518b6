//! Sessions that nobody works on any more, and sessions that only look like it (FND-M3, FND-M5, S0-B13).

use serde_json::{Value, json};

use super::kit::{Stage, rounds, until};

const MINUTE: i64 = 60_000;

fn post(stage: &Stage, path: &str, body: &Value) -> Value {
    let answer = stage.call("POST", path, body);
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.json()
}

fn external(stage: &Stage, new: &Value) -> String {
    post(stage, "/sessions", new)["session"].as_str().unwrap().to_owned()
}

/// A whole call of an agent that its own host runs.
fn calls(stage: &Stage, session: &str, id: &str) {
    let call = json!({"id": id, "tool": "Bash", "channel": "hook", "proof": "named"});
    post(stage, &format!("/sessions/{session}/calls"), &call);
    let ended = json!({"call": call, "returned": {"is_error": false, "took_ms": 5, "bytes": 5}});
    post(stage, &format!("/sessions/{session}/calls/end"), &ended);
    // Written to the log a little after its answer.
    let named = |event: &Value| event["type"] == "tool.relayed" && event["data"]["call"] == id;
    until("its record", || stage.daemon.log_after(session, 0).iter().any(named).then_some(()));
}

/// FND-M5: a child that another host runs is told of once nobody works on it or looks after it, and no sooner.
#[test]
fn fnd_m5_a_host_run_child_that_nobody_works_on_is_told_of() {
    let mut stage = Stage::new("");
    let parent = external(&stage, &json!({"source": "external", "agent": "claude"}));
    let new = json!({"source": "external", "agent": "explore", "parent": parent, "title": "look around"});
    let child = external(&stage, &new);
    calls(&stage, &child, "c1");
    calls(&stage, &parent, "p1");
    stage.later(55 * MINUTE);
    calls(&stage, &parent, "p2");
    stage.later(6 * MINUTE);
    let is_idle = |stage: &Stage| stage.get(&format!("/sessions/{child}"))["state"] == "idle";
    until("the child to be idle", || is_idle(&stage).then_some(()));
    rounds();
    assert_eq!(stage.notifications("suspected_orphan").len(), 0, "its parent looks after it");
    // The parent falls silent, which is no change of the child; a restart forgets nothing.
    stage.again("");
    stage.later(10 * MINUTE);
    let told = stage.await_notifications("suspected_orphan", 1);
    assert_eq!((&told[0]["session"], &told[0]["severity"]), (&json!(child), &json!("warning")), "{told:#?}");
    assert_eq!(told[0]["title"], "Nobody works on \"look around\" any more");
    assert!(told[0]["text"].as_str().unwrap().contains(&format!("lanyard archive {child}")), "{told:#?}");
    rounds();
    assert_eq!(stage.notifications("suspected_orphan").len(), 1, "told once");
    // It calls again: it was none.
    calls(&stage, &child, "c2");
    until("its end", || stage.notifications("suspected_orphan")[0]["over_at"].is_string().then_some(()));
}

/// FND-M3: a turn whose child waits for an answer is silent for a reason.
#[test]
fn fnd_m3_a_session_whose_child_waits_at_a_gate_is_no_orphan() {
    let mut stage = Stage::new("");
    let parent = stage.new_session();
    post(&stage, &format!("/sessions/{parent}/turns"), &json!({"prompt": "work"}));
    let folder = tempfile::tempdir().unwrap();
    let new = json!({"agent": "demo", "parent": parent, "workspace": folder.path().display().to_string()});
    let child = external(&stage, &new);
    post(&stage, &format!("/sessions/{child}/turns"), &json!({"prompt": "/ask May I look?"}));
    let gate = until("the gate", || {
        let view = stage.get(&format!("/sessions/{child}"));
        let open = view["gates"][0]["status"]["name"] == "open";
        open.then(|| view["gates"][0]["id"].as_str().unwrap().to_owned())
    });
    stage.later(30 * MINUTE);
    rounds();
    let suspected = |stage: &Stage| {
        let view = stage.get(&format!("/sessions/{parent}"));
        let rows = stage.get("/sessions");
        let row =
            rows["sessions"].as_array().unwrap().iter().find(|row| row["id"] == parent.as_str()).unwrap();
        (view["state"].clone(), view["suspected_orphan"].clone(), row["attention"].clone())
    };
    assert_eq!(suspected(&stage), (json!("executing"), json!(false), json!([])));
    assert_eq!(stage.notifications("suspected_orphan").len(), 0);
    // Answered: the parent is as silent as before, without a reason.
    post(&stage, &format!("/sessions/{child}/gates/{gate}"), &json!({"option": "allow_once"}));
    let told = stage.await_notifications("suspected_orphan", 1);
    assert_eq!(told[0]["session"], json!(parent), "{told:#?}");
    assert_eq!(suspected(&stage), (json!("executing"), json!(true), json!(["suspected_orphan"])));
}
