//! Instructions of an agent over a compaction of its context (S1-05, S1-39).

use serde_json::json;

use super::kit::Stage;

/// FND-M9: what the config has the agent told is told again with the first prompt after a compaction, and not again.
#[test]
fn fnd_m9_instructions_are_told_again_after_a_compaction() {
    let stage = Stage::with(&[], "instructions = \"You count the sheep.\"\n");
    let language = json!({ "communication": "German" });
    let mut talk = stage.talk_of(&json!({ "agent": "a", "workspace": stage.work(), "language": language }));
    let injected = || stage.get(&format!("/sessions/{}", talk.id))["governance_injected"].clone();
    assert_eq!(injected(), false);
    let told = |words: &str| stage.memory().matches(words).count();
    talk.answer_to("/say one");
    talk.answer_to("/say two");
    let path = format!("/sessions/{}", talk.id);
    assert_eq!(stage.get(&path)["governance_injected"], true);
    assert_eq!((told("You count the sheep."), told("Write to people in German.")), (1, 1));
    let compacted = json!({ "type": "context_compacted", "size_before": 900, "size_after": 90 });
    let answer = talk.post("signals", &compacted);
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(stage.get(&path)["governance_injected"], false);
    talk.answer_to("/say three");
    assert_eq!(stage.get(&path)["governance_injected"], true);
    assert_eq!((told("You count the sheep."), told("Write to people in German.")), (2, 2));
    talk.answer_to("/say four");
    assert_eq!(told("You count the sheep."), 2, "once per compaction");
    let memory = stage.memory();
    assert!(memory.rfind("sheep").unwrap() < memory.find("/say three").unwrap(), "{memory}");
}
