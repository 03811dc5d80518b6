//! S0-60, S0-61, S0-B13: what a coordinator hears of sessions nobody works on, and what it may decide.

use lanyard_core::policy::Staleness;
use lanyard_core::session::{Command, NewSession, Role, Signal, StateName};
use lanyard_core::{Rules, SessionId, TurnId};
use serde_json::{Value, json};

use super::Room;

fn init() -> Value {
    json!({ "action": "init", "agent_type": "Coordinator" })
}

fn choose(session: SessionId, choice: &str) -> Value {
    json!({ "action": "orphan", "session": session, "choice": choice })
}

async fn at_work(room: &Room, session: SessionId) {
    let turn = TurnId::mint(room.app.clock.now(), room.app.clock.random());
    room.command(session, Command::StartTurn { turn, client_turn_id: None, prompt: "go".to_owned() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reported_with_what_is_known_and_the_rest_is_not() {
    let room = Room::impatient();
    let hub = room.hub(Some("a")).await;
    let orphan = room.child(hub).await;
    at_work(&room, orphan).await;
    let said = Signal::Said {
        role: Role::Agent,
        text: "I will fix the form".to_owned(),
        message_id: None,
        parts: Vec::new(),
    };
    let changed = Signal::FileChanged { path: "/w/form.rs".to_owned(), added: None, removed: None };
    let called = Signal::ToolCalled { call: "c".to_owned(), tool: "bash".to_owned(), arguments: Value::Null };
    let back = Signal::ToolReturned { call: "c".to_owned(), is_error: false, content: Value::Null };
    room.tell(orphan, vec![said, changed, called, back]).await;
    // In a long call, ended, at rest, of another plan: none of them is an orphan.
    let waiting = room.child(hub).await;
    at_work(&room, waiting).await;
    let called = Signal::ToolCalled { call: "c".to_owned(), tool: "bash".to_owned(), arguments: Value::Null };
    room.tell(waiting, vec![called]).await;
    let ended = room.child(hub).await;
    room.command(ended, Command::Complete { reason: None }).await;
    room.hub(Some("a")).await;
    let other = room.hub(Some("b")).await;
    at_work(&room, other).await;

    let answer = room.call(hub, "memory_agent", init()).await;
    let orphans = answer["orphaned_sessions"].as_array().unwrap();
    assert_eq!(orphans.len(), 1, "{answer}");
    assert!(answer["warning"].as_str().unwrap().starts_with("1 session seems"), "{answer}");
    let told = &orphans[0];
    assert_eq!((&told["sessionId"], &told["agentType"]), (&json!(orphan), &json!("Executor")));
    assert_eq!((&told["state"], &told["lastToolCall"]["callCount"]), (&json!("orphaned"), &json!(1)));
    assert!(told["startedAt"].is_string());
    let known = &told["what_is_known"];
    assert_eq!(
        (&known["last_message"], &known["files"]),
        (&json!("I will fix the form"), &json!(["form.rs"]))
    );
    assert_eq!((&known["process"], &known["turn_running"]), (&json!("unknown"), &json!(true)));
    // Hearing of it changed nothing, and a subagent does not hear of it.
    assert_eq!(room.load(orphan).state.name(), StateName::Executing);
    assert_eq!(room.call(waiting, "memory_agent", init()).await.get("orphaned_sessions"), None);
    room.close().await;
}

/// S0-61: cleaned up with its reason, as failed and never as completed; its step is free again.
#[tokio::test(flavor = "multi_thread")]
async fn a_cleaned_orphan_has_failed_and_its_step_is_free() {
    let room = Room::impatient();
    let hub = room.hub(None).await;
    let plan = room.call(hub, "memory_plan", json!({ "action": "create", "title": "x" })).await;
    let plan = plan["id"].as_str().unwrap().to_owned();
    room.call(hub, "memory_steps", json!({ "action": "add", "steps": [{ "task": "a" }] })).await;
    let orphan = room.session(NewSession { plan: Some(plan), ..NewSession::default() }, Some(hub)).await;
    room.call(orphan, "memory_steps", json!({ "action": "next" })).await;
    at_work(&room, orphan).await;
    let cleaned = room.call(hub, "memory_agent", choose(orphan, "clean")).await;
    assert_eq!((&cleaned["state"], &cleaned["released_steps"]), (&json!("failed"), &json!([1])));
    assert_eq!(room.load(orphan).end_reason.as_deref(), Some("orphaned_auto_cleanup"));
    assert_eq!(room.refused(hub, "memory_agent", choose(orphan, "clean")).await, "session_ended");
    assert_eq!(room.call(hub, "memory_agent", init()).await.get("orphaned_sessions"), None);
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_is_adopted_stopped_or_resumed() {
    let room = Room::impatient();
    let (gone, hub) = (room.hub(Some("a")).await, room.hub(Some("a")).await);
    let orphan = room.child(gone).await;
    at_work(&room, orphan).await;
    room.command(gone, Command::Fail { reason: None }).await;
    let adopted = room.call(hub, "memory_agent", choose(orphan, "adopt")).await;
    assert_eq!(adopted["parent"], hub.to_string());
    assert_eq!(room.load(orphan).parent, Some(hub));
    assert_eq!(room.refused(hub, "memory_agent", choose(orphan, "resume")).await, "agent_not_configured");
    let stopped = room.call(hub, "memory_agent", choose(orphan, "stop")).await;
    assert_eq!(stopped["stop_level"], 1);
    let agent = Some("helper".to_owned());
    let runs_here = room.session(NewSession { agent, ..NewSession::default() }, Some(hub)).await;
    room.tell(runs_here, Vec::new()).await;
    let resumed = room.call(hub, "memory_agent", choose(runs_here, "resume")).await;
    assert_eq!((&resumed["choice"], &resumed["was"]), (&json!("resume"), &json!("orphaned")));
    room.close().await;
}

/// S0-B13: nothing happens to one that lives, nor to one that is only suspected and might.
#[tokio::test(flavor = "multi_thread")]
async fn the_living_and_the_suspected_are_safe() {
    let staleness = Staleness { suspect_after_ms: 0, ..Staleness::default() };
    let room = Room::with(Rules { staleness, ..Rules::default() });
    let hub = room.hub(Some("a")).await;
    let child = room.child(hub).await;
    at_work(&room, child).await;
    let answer = room.call(hub, "memory_agent", init()).await;
    assert_eq!(answer["orphaned_sessions"][0]["state"], "suspected");
    for choice in ["clean", "resume"] {
        assert_eq!(room.refused(hub, "memory_agent", choose(child, choice)).await, "only_suspected");
    }
    // A subagent decides nothing, and nobody decides on strangers or on themselves.
    assert_eq!(room.refused(child, "memory_agent", choose(hub, "stop")).await, "hub_only");
    assert_eq!(room.refused(hub, "memory_agent", choose(hub, "stop")).await, "not_orphaned");
    let stranger = room.hub(Some("b")).await;
    at_work(&room, stranger).await;
    assert_eq!(room.refused(hub, "memory_agent", choose(stranger, "clean")).await, "not_your_session");
    room.close().await;

    let room = Room::new();
    let hub = room.hub(Some("a")).await;
    let child = room.child(hub).await;
    at_work(&room, child).await;
    assert_eq!(room.refused(hub, "memory_agent", choose(child, "clean")).await, "not_orphaned");
    assert_eq!(room.load(child).state.name(), StateName::Executing);
    room.close().await;
}
