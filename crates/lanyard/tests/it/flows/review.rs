//! Plan reviews: the plan itself is judged and mended until it is approved.

use serde_json::{Value, json};

use super::kit::{READY, Stage, corrections, id};

const EDITED: &str = "/run echo edited >> SIGNS/turns; echo '- [ ] say goodbye' >> PLAN.md";
const COMPLETE: &str = r#"/say! {"status":"complete"}"#;

/// Judged, mended, judged again and approved, in the plan's own file.
#[test]
fn a_plan_is_reviewed_until_it_is_approved() {
    let stage = Stage::new();
    stage.reviewer("look", &corrections("say goodbye as well", "auto_fix"));
    stage.script("author", EDITED);
    stage.script("author", COMPLETE);
    stage.reviewer("look-again", READY);
    let flow = stage.begin(&json!({ "kind": "plan_review" }));
    let shown = stage.settled(&flow, "approved");
    assert_eq!(stage.lines("turns"), ["look", "edited", "look-again"]);
    let plan = std::fs::read_to_string(stage.repo().join("PLAN.md")).unwrap();
    assert!(plan.ends_with("- [ ] say goodbye\n"), "{plan}");
    assert_eq!(shown["tree"], Value::Null, "it is the plan itself that is changed");
    let states: Vec<String> = stage.events(&flow, "flow.moved").iter().map(|one| id(one, "to")).collect();
    assert_eq!(states, ["auto_fix", "review"]);
    assert!(stage.told("author").concat().contains("say goodbye as well"));
}

/// S2-14, S2-T9: the same gate by the same rules.
#[test]
fn a_plan_review_asks_at_the_same_gate() {
    let stage = Stage::new();
    stage.reviewer("look", r#"{"readiness":"not_ready"}"#);
    let flow = stage.begin(&json!({ "kind": "plan_review" }));
    let gate = stage.gate(&flow, "review_without_items");
    let payload = &gate["continue_session"];
    assert_eq!((&payload["role"], &payload["resume_state"]), (&json!("reviewer"), &json!("review")));
    stage.reviewer("look-closer", &corrections("which language?", "human_required"));
    stage.answer(&flow, &gate, "continue_session", Some("Say why."));
    let gate = stage.gate(&flow, "review_items");
    assert_eq!(gate["continue_session"], Value::Null, "S2-13: the author is next");
    stage.answer(&flow, &gate, "approve", None);
    let shown = stage.settled(&flow, "approved");
    assert!(id(&shown, "reason").starts_with("approved by "), "{shown}");
    assert_eq!(stage.lines("turns"), ["look", "look-closer"]);
}
