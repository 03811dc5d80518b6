//! Subagents' tools pass the hooks too: as sessions of their own where the harness says whose call it is.

use serde_json::json;

use super::cases::{Case, Family};
use super::kit::Kit;
use crate::model::Step;

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case);
    let (Family::Below(steps) | Family::Hidden(steps)) = &case.family;
    let mut steps = steps.clone();
    steps.push(Step::text("Parent-done."));
    kit.model.script("parent", steps);
    let end = match case.harness {
        "gemini" => Step::tool("complete_task", json!({ "result": { "response": "Child done." } })),
        _ => Step::text("Child done."),
    };
    kit.model.script("child", [kit.plain("child"), end]);
    let mut running = kit.start("parent", None);
    let said = running.ended();
    assert!(said.contains("Parent-done.") && kit.has_run("child"), "{}", running.shown());
    let found = kit.get(&format!("/sessions/{}", running.native(case.id_key)));
    let parent = found["id"].as_str().unwrap();
    let others: Vec<_> = kit.sessions().into_iter().filter(|session| session["id"] != parent).collect();
    let below = kit.get(&format!("/sessions?parent={parent}"))["sessions"].clone();
    let below = below.as_array().map_or(0, Vec::len);
    let is_shown = matches!(case.family, Family::Below(_));
    let seen = usize::from(is_shown);
    assert_eq!((others.len(), below), (seen, seen), "{others:#?}\n{}", running.shown());
    let worker = others.first().and_then(|child| child["id"].as_str()).unwrap_or(parent);
    let relayed = kit.relayed(worker);
    assert!(relayed.contains(&case.tool.to_owned()), "{relayed:?}");
    kit.say("subagents apart", is_shown);
}
