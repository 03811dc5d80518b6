//! What the workers of tasks and plans wait to be allowed (FND-N6).

use serde_json::{Value, json};

use super::kit::{Stage, id, until};

#[test]
fn fnd_n6_a_task_and_its_plan_show_what_the_worker_asks() {
    let stage = Stage::new();
    let text = "# One\n\n## [ ] one: One\n\n/ask May I write?\n";
    let new = json!({ "markdown": text, "workspace": stage.repo(), "start": true });
    let plan = id(&stage.ok("/plans/import", &new), "id");
    let of_plan = || stage.get(&format!("/plans/{plan}"));
    until("the worker to ask", || of_plan()["approvals"].is_array());
    let shown = of_plan();
    let task = id(&shown["all"][0], "id");
    let entry = &shown["approvals"][0];
    assert_eq!(stage.get("/gates")["gates"][0], *entry, "the same shape as a row of the gates");
    assert_eq!(stage.show(&task)["approvals"][0], *entry);
    assert_eq!(stage.get("/tasks")["tasks"][0]["approvals"][0], *entry);

    let (gate, session) = (id(entry, "id"), id(entry, "session"));
    for words in [&["plan", "show", &plan][..], &["task", "show", &task], &["task", "ls"]] {
        let said = String::from_utf8(stage.daemon.lanyard(words).stdout).unwrap();
        assert!(said.contains("May I write?") && said.contains(&gate), "{words:?}: {said}");
    }
    let waited = stage.daemon.lanyard(&["task", "wait", &task, "--timeout", "1"]);
    let told = String::from_utf8(waited.stderr).unwrap();
    assert!(told.contains(&format!("lanyard answer {gate} allow")), "{told}");

    stage.ok(&format!("/sessions/{session}/gates/{gate}"), &json!({ "option": "allow" }));
    stage.is(&task, "completed");
    assert_eq!(of_plan()["approvals"], Value::Null);
}
