//! A subagent in the background: the turn that started it lasts until it has reported, and its questions are asked.

use serde_json::json;

use super::cases::{CHILD, Case};
use super::kit::{Kit, said};
use crate::agents::Rights;
use crate::model::{Step, marker};

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::Ask);
    let prompt = format!("do it {}", marker("child"));
    let call = json!({ "description": "sub work", "prompt": prompt, "subagent_type": "general-purpose",
        "run_in_background": true });
    kit.model
        .script("parent", [Step::tool("Agent", call), Step::text("Parent waits."), Step::text("Heard it.")]);
    kit.model.script("child", [(case.shell)("touch made", Rights::Ask), Step::text(CHILD)]);
    let session = kit.session();
    let turn = kit.begin(&session, "parent");
    let linked = kit.event(&session, "the subagent", |event| event["type"] == "session.child_linked");
    let child = linked["data"]["child"].as_str().unwrap().to_owned();
    let opened = kit.event(&child, "its question", |event| event["type"] == "gate.opened");
    kit.answered("parent", 1);
    let over = kit.log(&session).iter().any(|event| event["type"] == "turn.finished");
    assert!(!over, "{}", kit.told(&session));
    let gate = opened["data"]["gate"].as_str().unwrap();
    kit.post(&format!("/sessions/{child}/gates/{gate}"), &json!({ "option": "allow" }));
    let worked = kit.completed(&session, &turn);
    assert!(worked.ends_with("Heard it."), "{worked}\n{}", kit.told(&session));
    assert!(kit.work.join("made").exists(), "{}", kit.told(&child));
    let finished = kit.event(&child, "the child's end", |event| event["type"] == "turn.finished");
    assert_eq!(finished["data"]["outcome"], "completed", "{}", kit.told(&child));
    assert_eq!(said(&kit.log(&child)), CHILD, "{}", kit.told(&child));
    kit.ok("background");
}
