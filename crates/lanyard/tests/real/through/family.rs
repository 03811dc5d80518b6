//! Subagents: sessions of their own where the agent shows them, and their result where it does not.

use serde_json::{Value, json};

use super::cases::{CHILD, Case, Family};
use super::kit::{Kit, said};
use crate::agents::Rights;
use crate::model::{Role, Step};

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let (Family::Sessions(steps) | Family::Hidden(steps)) = &case.family;
    let last = steps.len();
    let mut steps = steps.clone();
    steps.push(Step::text("Parent done."));
    kit.model.script("parent", steps);
    kit.model.script("child", [case.child.clone()]);
    let session = kit.session();
    let worked = kit.turn(&session, "parent");
    assert!(worked.ends_with("Parent done."), "{worked}\n{}", kit.told(&session));
    assert!(!worked.contains(CHILD), "the child's words are not its parent's: {worked}");
    kit.answered("child", 0);
    let asked = kit.answered("parent", last).asked;
    assert!(asked.says(Role::Tool, "CHILD-OK"), "{:?}", asked.tool_results());
    let children = kit.get(&format!("/sessions?parent={session}"))["sessions"].clone();
    let children = children.as_array().cloned().unwrap_or_default();
    let offered = kit.ready(&session)["capabilities"]["children"].clone();
    match &case.family {
        Family::Hidden(_) => {
            assert_eq!((offered, children), (json!(false), Vec::<Value>::new()));
            kit.not_offered("children");
        }
        Family::Sessions(_) => {
            assert_eq!(offered, true);
            let [child] = &children[..] else { panic!("{children:#?}\n{}", kit.told(&session)) };
            let id = child["id"].as_str().unwrap();
            let shown = kit.get(&format!("/sessions/{id}"));
            assert_eq!(shown["parent"], session, "{shown:#}");
            let finished = kit.event(id, "the child's end", |event| event["type"] == "turn.finished");
            assert_eq!(finished["data"]["outcome"], "completed");
            let log = kit.log(id);
            assert_eq!(said(&log), CHILD, "{}", kit.told(id));
            let started = log.iter().find(|event| event["type"] == "turn.started").unwrap();
            assert!(started["data"]["prompt"].as_str().unwrap().contains("do it"), "{started:#}");
            let linked = kit.events(&session, "session.child_linked");
            assert_eq!(linked.len(), 1, "{linked:#?}");
            assert_eq!(linked[0]["data"]["child"], json!(id));
            kit.ok("children");
        }
    }
}
