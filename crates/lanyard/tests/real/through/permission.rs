//! An agent asks before it acts: allowed it does, denied it does not, and a question outlives the daemon.

use serde_json::{Value, json};

use super::cases::{Asks, Case};
use super::kit::Kit;
use crate::agents::Rights;
use crate::model::Step;

pub(super) fn shows(case: &Case) {
    let mut kit = Kit::new(case, Rights::Ask);
    for name in ["allowed", "denied", "later"] {
        let work = (case.shell)(&format!("touch {name} && printf MADE-%s {name}"), Rights::Ask);
        kit.model.script(name, [work, Step::text("Work done.")]);
    }
    if case.asks == Asks::Refuses {
        return refuses(&kit);
    }
    let session = kit.session();

    let (turn, gate) = question(&kit, &session, "allowed");
    assert!(!kit.work.join("allowed").exists(), "it waits for an answer");
    answer(&kit, &session, &gate, "allow");
    kit.completed(&session, &turn);
    assert!(kit.work.join("allowed").exists(), "{}", kit.told(&session));
    let returned = kit.events(&session, "tool.returned");
    let told = returned.iter().any(|event| event.to_string().contains("MADE-allowed"));
    assert_eq!(told, case.tells_output, "{}", kit.told(&session));

    let (turn, gate) = question(&kit, &session, "denied");
    answer(&kit, &session, &gate, "deny");
    kit.ended(&session, &turn);
    assert!(!kit.work.join("denied").exists(), "{}", kit.told(&session));

    let (turn, gate) = question(&kit, &session, "later");
    kit.restart_daemon();
    answer(&kit, &session, &gate, "allow");
    kit.completed(&session, &turn);
    assert!(kit.work.join("later").exists(), "{}", kit.told(&session));
    assert_eq!(kit.events(&session, "gate.opened").len(), 3, "{}", kit.told(&session));
    kit.ok("permission");
}

/// Begins a turn and waits for its question.
fn question(kit: &Kit<'_>, session: &str, script: &str) -> (String, String) {
    let before = kit.log(session).len() as u64;
    let turn = kit.begin(session, script);
    let opened = kit.event(session, "a question", |event| {
        event["type"] == "gate.opened" && event["seq"].as_u64() > Some(before)
    });
    assert!(opened["data"].to_string().contains(script), "it says what it wants: {opened:#}");
    let gates = kit.get("/gates")["gates"].as_array().cloned().unwrap_or_default();
    assert!(gates.iter().any(|gate| gate["id"] == opened["data"]["gate"]), "{gates:?}");
    (turn, opened["data"]["gate"].as_str().unwrap().to_owned())
}

fn answer(kit: &Kit<'_>, session: &str, gate: &str, option: &str) {
    kit.post(&format!("/sessions/{session}/gates/{gate}"), &json!({ "option": option }));
}

/// Run once per turn there is nobody to ask: what needs a permission is refused by the agent itself, and no gate opens.
fn refuses(kit: &Kit<'_>) {
    let session = kit.session();
    let turn = kit.begin(&session, "allowed");
    kit.ended(&session, &turn);
    assert!(!kit.work.join("allowed").exists(), "{}", kit.told(&session));
    assert_eq!(kit.events(&session, "gate.opened"), Vec::<Value>::new());
    assert_eq!(kit.ready(&session)["capabilities"]["permissions"], false);
    kit.not_offered("permission");
}
