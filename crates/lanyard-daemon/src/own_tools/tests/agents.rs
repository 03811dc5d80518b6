//! Taking one's place, handing off, ending, and who may see whom.

use lanyard_core::session::{Command, NewSession, Signal, StateName, StopScope};
use serde_json::{Value, json};

use super::{Room, Rules};

/// S0-37, S0-60, S0-61: the answer to an init; nothing more when there is nothing to report.
#[tokio::test(flavor = "multi_thread")]
async fn an_init_answers_who_one_is() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let child = room.child(hub).await;
    let arguments = json!({ "action": "init", "agent_type": "Tester", "extension_session_id": "chat-7" });
    let result = room.result(Some(child), "memory_agent", arguments).await;
    let answer: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let nonce = room.app.tokens.nonce(child);
    let expected = json!({
        "session_id": child, "agent_type": "Tester", "role": "subagent", "workspace": "/w", "plan": null,
        "parent_session_id": hub, "nonce": nonce, "can_delegate": true,
    });
    assert_eq!(answer, expected);
    // The words it has to know stand beside, as they are.
    let words = result["content"][1]["text"].as_str().unwrap();
    assert!(
        words.contains(&format!("\"_session_id\": \"{child}\""))
            && words.contains("⚠️ SESSION STOP REQUESTED")
    );
    // S0-37: the log has it.
    let page = room.app.store.events(child, 0, 100).unwrap();
    let events = page.events.iter().map(|event| event.body.as_ref().unwrap());
    let events: Vec<Value> = events.map(|body| serde_json::from_slice(body).unwrap()).collect();
    let told = events.iter().find(|event| event["type"] == "agent.introduced").unwrap();
    assert_eq!(told["data"], json!({ "agent": "Tester", "extension_session_id": "chat-7" }));
    assert_eq!(told["actor"], json!({ "kind": "agent", "name": child.to_string() }));
    let hub_init = room.call(hub, "memory_agent", json!({ "action": "init" })).await;
    assert_eq!((&hub_init["role"], &hub_init["agent_type"]), (&json!("hub"), &json!("Coordinator")));
    assert_eq!(hub_init.get("orphaned_sessions"), None);
    room.close().await;
}

/// S0-63, S0-B02: hand-offs are in the plan's lineage in order; a stop does not keep anybody from handing off and ending.
#[tokio::test(flavor = "multi_thread")]
async fn handing_off_and_completing_resolve_a_stop() {
    let room = Room::new();
    let hub = room.hub(None).await;
    let plan = room.call(hub, "memory_plan", json!({ "action": "create", "title": "x" })).await;
    let plan = plan["id"].as_str().unwrap().to_owned();
    let handoff =
        |to: &str| json!({ "action": "handoff", "to": to, "reason": "User requested stop", "notes": "half" });
    room.call(hub, "memory_agent", handoff("Coordinator")).await;
    let agent = Some("Executor".to_owned());
    let child =
        room.session(NewSession { agent, plan: Some(plan), ..NewSession::default() }, Some(hub)).await;
    let turn = lanyard_core::TurnId::from_u128(1);
    room.command(child, Command::StartTurn { turn, client_turn_id: None, prompt: "go".to_owned() }).await;
    room.command(
        child,
        Command::Stop { reason: Some("enough".to_owned()), scope: StopScope::Session, now: false },
    )
    .await;
    let ack = room.call(child, "memory_agent", json!({ "action": "ack" })).await;
    assert_eq!((&ack["acknowledged"], &ack["stop_level"]), (&json!(true), &json!(1)));
    assert!(room.call(child, "memory_agent", handoff("Coordinator")).await["next"].is_string());
    let done = json!({ "action": "complete", "summary": "stopped\nas asked", "evidence": "see notes" });
    assert_eq!(room.call(child, "memory_agent", done.clone()).await["state"], "completed");
    let session = room.load(child);
    assert_eq!(session.state.name(), StateName::Completed);
    assert_eq!(session.end_reason.as_deref(), Some("stopped as asked"));
    assert_eq!(room.refused(child, "memory_agent", done).await, "session_ended");
    let lineage = room.call(hub, "memory_agent", json!({ "action": "lineage" })).await;
    let path: Vec<(&str, &str)> = lineage["lineage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["from"].as_str().unwrap(), entry["to"].as_str().unwrap()))
        .collect();
    assert_eq!(path, [("Coordinator", "Coordinator"), ("Executor", "Coordinator")]);
    let plan = room.call(hub, "memory_plan", json!({ "action": "get" })).await;
    assert_eq!(plan["notes"][0]["text"], "Completed: stopped\nas asked\nEvidence: see notes");
    let own = room.call(hub, "memory_agent", json!({ "action": "lineage", "session": child })).await;
    assert_eq!(own["lineage"][0]["reason"], "User requested stop");
    room.close().await;
}

/// S0-12, S0-O6: one sees one's own workspace and plan, and what is below; nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sees_its_plan_and_its_family_and_nobody_else() {
    let room = Room::new();
    let hub = room.hub(Some("a")).await;
    let child = room.child(hub).await;
    let (mate, other) = (room.hub(Some("a")).await, room.hub(Some("b")).await);
    let far =
        room.session(NewSession { workspace: Some("/far".to_owned()), ..NewSession::default() }, None).await;
    let listed = room.call(hub, "memory_agent", json!({ "action": "list" })).await;
    let mut ids: Vec<&str> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["session_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut expected = [hub, child, mate].map(|id| id.to_string());
    expected.sort_unstable();
    assert_eq!(ids, expected);
    let look = |session| json!({ "action": "lineage", "session": session });
    for seen in [hub, child, mate] {
        room.call(hub, "memory_agent", look(seen)).await;
    }
    for hidden in [other, far] {
        assert_eq!(room.refused(hub, "memory_agent", look(hidden)).await, "not_your_session");
    }
    let spaces = room.call(hub, "memory_workspace", json!({ "action": "list" })).await;
    assert_eq!(spaces["workspaces"].as_array().unwrap().len(), 1);
    // A person sees all.
    let spaces = room.call(None, "memory_workspace", json!({ "action": "list" })).await;
    assert_eq!(spaces["workspaces"].as_array().unwrap().len(), 2);
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_at_the_same_files_are_reported() {
    let room = Room::new();
    let (one, two) = (room.hub(None).await, room.hub(Some("b")).await);
    let turn = lanyard_core::TurnId::from_u128(1);
    room.command(two, Command::StartTurn { turn, client_turn_id: None, prompt: "go".to_owned() }).await;
    let changed = |path: &str| Signal::FileChanged { path: path.to_owned(), added: None, removed: None };
    let call = Signal::ToolCalled {
        call: "c1".to_owned(),
        tool: "Edit".to_owned(),
        arguments: json!({ "file_path": "/w/src/b.rs" }),
    };
    room.tell(two, vec![changed("/w/src/a.rs"), changed("src/a.rs"), call]).await;
    let peers = room.call(one, "memory_workspace", json!({ "action": "peers" })).await;
    assert_eq!(peers["peers"][0]["session"], two.to_string());
    assert_eq!(peers["peers"][0]["files"], json!(["src/b.rs", "src/a.rs"]));
    assert_eq!((peers.get("warning"), peers["peers"][0].get("shared_files")), (None, None));
    let asked = json!({ "action": "peers", "files": ["./src/b.rs", "src/c.rs"] });
    let peers = room.call(one, "memory_workspace", asked).await;
    assert_eq!(peers["peers"][0]["shared_files"], json!(["src/b.rs"]));
    assert!(peers["warning"].is_string());
    let info = room.call(one, "memory_workspace", json!({ "action": "info" })).await;
    assert_eq!(info["sessions"], json!({ "beginning": 1, "executing": 1 }));
    room.close().await;
}

/// Sessions without a workspace share nothing but with their own family.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_workspace_papers_belong_to_the_family() {
    let room = Room::new();
    let (one, two) = (room.anywhere(None).await, room.anywhere(None).await);
    let child = room.anywhere(Some(one)).await;
    room.call(one, "memory_context", json!({ "action": "store", "name": "x", "text": "ours" })).await;
    let get = json!({ "action": "get", "name": "x" });
    assert_eq!(room.call(child, "memory_context", get.clone()).await["text"], "ours");
    assert_eq!(room.refused(two, "memory_context", get).await, "context_not_found");
    let look = json!({ "action": "lineage", "session": one });
    room.call(child, "memory_agent", look.clone()).await;
    assert_eq!(room.refused(two, "memory_agent", look).await, "not_your_session");
    let listed = room.call(one, "memory_agent", json!({ "action": "list" })).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    let init = room.call(one, "memory_agent", json!({ "action": "init" })).await;
    assert_eq!(init["workspace"], Value::Null);
    room.close().await;
}

/// FND-N5: what a daemon that was killed left to be done is found however many sessions came after it.
#[tokio::test(flavor = "multi_thread")]
async fn fnd_n5_every_wanted_run_is_found_at_a_start() {
    const LATER: usize = 600;
    let room = Room::new();
    let helper = || NewSession { agent: Some("helper".to_owned()), ..NewSession::default() };
    let wanted = room.session(helper(), None).await;
    room.command(wanted, Command::Resume { ways: Vec::new(), per_turn: false }).await;
    let settled = room.session(helper(), None).await;
    room.command(settled, Command::Resume { ways: Vec::new(), per_turn: false }).await;
    room.command(settled, Command::Complete { reason: None }).await;
    for _ in 0..LATER {
        room.session(NewSession::default(), None).await;
    }
    let store = room.app.store.clone();
    let runs = lanyard_agents::agents::wanted::wanted(&*store).unwrap();
    assert_eq!(runs.iter().map(|run| run.session).collect::<Vec<_>>(), [wanted]);
    drop(store);
    // As the next daemon finds it on disk.
    let room = Room::open(Rules::default(), room.close().await);
    let runs = lanyard_agents::agents::wanted::wanted(&*room.app.store).unwrap();
    assert_eq!(runs.iter().map(|run| run.session).collect::<Vec<_>>(), [wanted]);
    room.close().await;
}
