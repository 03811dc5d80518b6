//! A real agent as a hub: it has Lanyard's tasks work for it, one is stopped by the operator, one completes, and its model
//! hears of both (S4-15, S4-B03, S0-49).

use serde_json::{Value, json};

use super::cases::Case;
use super::kit::Kit;
use crate::agents::Rights;
use crate::model::{Role, Step, marker};
use crate::peer::PATIENCE;

const REPORT: &str = "📬 SUBAGENT REPORT (agent output, not from the user):";
const INTERRUPTED: &str = "⚠️ SUBAGENT INTERRUPTED:";
const RESULT: &str = "CHILD-ONE the answer is 42.";

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let child =
        |title: &str, script: &str| json!({ "title": title, "prompt": format!("go {}", marker(script)) });
    let spawn =
        json!({ "action": "spawn_many", "tasks": [child("the first", "one"), child("the second", "two")] });
    let heard = ["Both are at work.", "Heard.", "Heard again.", "And again."].map(Step::text);
    kit.model.script("hub", [Step::tool("~tasks", spawn)].into_iter().chain(heard).collect::<Vec<_>>());
    kit.model.script("one", [Step::text(RESULT).held()]);
    kit.model.script("two", [Step::text("First second third, and never the last.").held()]);

    let hub = kit.session();
    kit.turn(&hub, "hub");
    let tasks = kit.get(&format!("/tasks?reports_to={hub}"))["tasks"].as_array().unwrap().clone();
    let of = |title: &str| tasks.iter().find(|task| task["title"] == title).unwrap()["id"].as_str().unwrap();
    let (first, second) = (of("the first"), of("the second"));
    kit.is_held("one");
    kit.is_held("two");
    assert_eq!(kit.get(&format!("/tasks/{first}"))["created_in"], hub.as_str(), "S4-18");

    let session = kit.get(&format!("/tasks/{second}"))["session"].as_str().unwrap().to_owned();
    kit.post(&format!("/sessions/{session}/stop"), &json!({ "reason": "not needed", "now": true }));
    ends(&kit, &hub, second, "cancelled");
    kit.model.release("one");
    let done = ends(&kit, &hub, first, "completed");
    assert!(done["result"]["summary"].as_str().unwrap().contains(RESULT), "{done}");

    // As a prompt, since the hub is between turns; each with whose words it is.
    for (what, parts) in [("the interruption", [INTERRUPTED, second]), ("the result", [REPORT, RESULT])] {
        kit.model.wait(what, PATIENCE, |one| {
            one.script == "hub" && parts.iter().all(|part| one.asked.says(Role::User, part))
        });
    }
    kit.wait("the mail's acknowledgement", &hub, || {
        let mail = kit.get("/mail?settled=true")["mail"].as_array().unwrap().clone();
        (mail.len() == 2 && mail.iter().all(|mail| mail["state"] == "acknowledged")).then_some(())
    });
    kit.ok("hears of its tasks");
}

fn ends(kit: &Kit<'_>, hub: &str, task: &str, state: &str) -> Value {
    kit.wait("the end of a task", hub, || {
        let shown = kit.get(&format!("/tasks/{task}"));
        (shown["state"] == state).then_some(shown)
    })
}
