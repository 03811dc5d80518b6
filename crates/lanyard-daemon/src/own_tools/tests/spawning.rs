//! S0-28..S0-31, S0-O3, S0-B18: the child's session comes first, then its prompt, then its agent.

use lanyard_core::session::{NewSession, StateName};
use serde_json::json;

use super::Room;

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_child_is_linked_and_its_prompt_tells_it_so() {
    let room = Room::new();
    let hub = room.hub(Some("checkout")).await;
    let arguments = json!({
        "action": "prepare", "agent": "Executor", "prompt": "Fix the form.\nThen test it.",
        "bounds": { "may_change": ["src/form.rs"] },
    });
    let result = room.result(Some(hub), "memory_spawn_agent", arguments).await;
    assert_eq!(result["isError"], false, "{result}");
    let answer: serde_json::Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let child = answer["session_id"].as_str().unwrap().parse().unwrap();
    let session = room.load(child);
    assert_eq!((session.parent, session.plan.as_deref()), (Some(hub), Some("checkout")));
    assert_eq!((session.workspace.as_deref(), session.policy.leaf), (Some("/w"), true));
    assert_eq!(
        (session.hands.agent.as_deref(), session.title.as_deref()),
        (Some("Executor"), Some("Fix the form."))
    );
    assert_eq!(session.turns, 0);
    let prompt = result["content"][1]["text"].as_str().unwrap();
    for part in [
        "Workspace: /w\nPlan: checkout\nSession: sess_",
        &format!("\"_session_id\": \"{child}\""),
        "- src/form.rs",
        "⚠️ SESSION STOP REQUESTED",
        &room.app.tokens.nonce(child),
    ] {
        assert!(prompt.contains(part), "{part}\n{prompt}");
    }
    assert!(prompt.ends_with("\n\nFix the form.\nThen test it."));
    // A child that was told not to spawn cannot.
    let spawn = json!({ "action": "prepare", "agent": "x", "prompt": "y" });
    assert_eq!(room.refused(child, "memory_spawn_agent", spawn).await, "leaf_cannot_delegate");
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_agent_is_started_and_others_are_refused_before_anything_is_made() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let start = |agent: &str| json!({ "action": "start", "agent": agent, "prompt": "go", "may_spawn": true });
    let started = room.call(hub, "memory_spawn_agent", start("helper")).await;
    let child = started["session_id"].as_str().unwrap().parse().unwrap();
    room.until(|| room.find(child).is_some_and(|session| session.turn.is_some())).await;
    let session = room.load(child);
    assert_eq!((session.state.name(), session.parent), (StateName::Executing, Some(hub)));
    assert_eq!(started["task_id"], json!(session.task));
    assert_eq!(room.refused(hub, "memory_spawn_agent", start("nobody")).await, "agent_unknown");
    let bad = json!({ "action": "prepare", "agent": "x", "prompt": "  " });
    assert_eq!(room.refused(hub, "memory_spawn_agent", bad).await, "field_empty");
    let listed = room.call(hub, "memory_agent", json!({ "action": "list" })).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
    room.close().await;
}

/// The refusals of the family's policy are passed on, with their advice.
#[tokio::test(flavor = "multi_thread")]
async fn depth_is_kept_to() {
    let room = Room::new();
    let hub = room.session(NewSession { depth_limit: Some(1), ..NewSession::default() }, None).await;
    let spawn = json!({ "action": "prepare", "agent": "x", "prompt": "y" });
    assert_eq!(room.refused(hub, "memory_spawn_agent", spawn.clone()).await, "depth_exceeded");
    // Without a session of its own a caller makes a root (S0-35).
    let made = room.call(None, "memory_spawn_agent", spawn).await;
    assert_eq!(made["parent_session_id"], serde_json::Value::Null);
    room.close().await;
}
