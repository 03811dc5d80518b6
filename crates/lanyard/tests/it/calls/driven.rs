//! Agents that Lanyard runs itself, stopped through the answers to their tool calls.

use super::*;
use crate::support::binary;

/// A daemon with the scripted agent behind the gateway, in a workspace of its own.
struct Stage {
    daemon: Daemon,
    workspace: tempfile::TempDir,
}

/// Deadlines that only a session which waits for them would see.
fn setup() -> Setup {
    let server = serde_json::to_string(&[&binary().display().to_string(), "scripted-mcp"]).unwrap();
    let slow = "[stop]\ngraceful_ms = 600000\nimmediate_ms = 600000\n";
    Setup::default().config(&format!("{slow}[mcp.tools]\ncommand = {server}\n"))
}

impl Stage {
    fn new() -> Self {
        Self { daemon: Daemon::start(setup()), workspace: tempfile::tempdir().unwrap() }
    }

    /// A session of the demo agent that works through these lines.
    fn works(&self, lines: &[&str]) -> String {
        let workspace = self.workspace.path().display().to_string();
        let session = made(&self.daemon, &json!({ "agent": "demo", "workspace": workspace }));
        let prompt = json!({ "prompt": lines.join("\n") });
        assert_eq!(post(&self.daemon, &session, "turns", &prompt).status, 201);
        session
    }

    /// Waits for the n-th event of a kind.
    fn until(&self, session: &str, kind: &str, n: usize) {
        let count = || kinds(&self.daemon, session).iter().filter(|held| *held == kind).count();
        assert!(until(|| count() >= n), "no {n} of {kind}: {:?}", kinds(&self.daemon, session));
    }

    /// What the agent's calls came back with, as it told itself.
    fn returned(&self, session: &str) -> Vec<String> {
        let log = self.daemon.log_after(session, 0);
        let returned = log.iter().filter(|event| event["type"] == "tool.returned");
        returned.map(|event| event["data"]["content"].to_string()).collect()
    }

    fn ends(&self, session: &str, state: &str) {
        self.until(session, "session.ended", 1);
        self.until(session, "run.ended", 1);
        assert_eq!(get(&self.daemon, session, "")["state"], state);
    }
}

const ONE: &str = r#"/mcp tools echo {"text":"one"}"#;
const TWO: &str = r#"/mcp tools echo {"text":"two"}"#;
const THREE: &str = r#"/mcp tools echo {"text":"three"}"#;
const FOUR: &str = r#"/mcp tools echo {"text":"four"}"#;

/// S0-43, S0-B05: the model goes on calling; it is told, refused, told of its end, and ended with all its processes.
#[test]
fn an_agent_that_goes_on_is_ended_with_the_third_call() {
    let stage = Stage::new();
    let session = stage.works(&[ONE, "/wait 1500", TWO, THREE, FOUR, "/wait 60000"]);
    stage.until(&session, "tool.relayed", 1);
    stop(&stage.daemon, &session, &json!({}));
    stage.until(&session, "stop.applied", 3);
    stage.ends(&session, "stopped");
    let told = stage.returned(&session);
    let marks = ["⚠️ SESSION STOP REQUESTED", "🛑 SESSION STOP — IMMEDIATE", "❌ SESSION TERMINATED"];
    for (answer, mark) in told[1..].iter().zip(marks) {
        assert!(answer.contains(mark), "{told:#?}");
    }
    assert!(told[1].contains("two") && !told[2].contains("three"), "{told:#?}");
}

/// S0-B02: it hands off and completes, each call is answered, and then its process ends.
#[test]
fn an_agent_that_complies_gets_its_answers_and_ends_completed() {
    let stage = Stage::new();
    let session = stage.works(&[
        ONE,
        "/wait 1500",
        TWO,
        r#"/mcp lanyard memory_agent {"action":"handoff","to":"Coordinator","reason":"User requested stop"}"#,
        r#"/mcp lanyard memory_agent {"action":"complete","summary":"stopped as asked"}"#,
        "/wait 60000",
    ]);
    stage.until(&session, "tool.relayed", 1);
    stop(&stage.daemon, &session, &json!({ "reason": "enough" }));
    stage.ends(&session, "completed");
    let kinds = kinds(&stage.daemon, &session);
    let of = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
    assert_eq!((of("stop.raised"), of("stop.complied"), of("agent.handed_off")), (0, 2, 1), "{kinds:?}");
    let told = stage.returned(&session);
    assert!(told.len() >= 3 && told[2].contains("handed_off"), "{told:#?}");
}

/// A turn that comes to its end after it was told is all a graceful stop wants; no deadline is waited for.
#[test]
fn an_agent_that_ends_its_turn_is_stopped_at_once() {
    let stage = Stage::new();
    let session = stage.works(&[ONE, "/wait 1500", TWO, "/say I leave it here"]);
    stage.until(&session, "tool.relayed", 1);
    stop(&stage.daemon, &session, &json!({}));
    stage.ends(&session, "stopped");
    assert!(!kinds(&stage.daemon, &session).contains(&"stop.raised".to_owned()));
}

/// The scope of the turn: its agent lives on and takes the next prompt.
#[test]
fn a_stop_of_the_turn_leaves_the_agent_to_the_next_one() {
    let stage = Stage::new();
    let session = stage.works(&[ONE, "/wait 1500", TWO, "/say enough"]);
    stage.until(&session, "tool.relayed", 1);
    stop(&stage.daemon, &session, &json!({ "scope": "turn" }));
    stage.until(&session, "stop.settled", 1);
    assert_eq!(post(&stage.daemon, &session, "turns", &json!({ "prompt": THREE })).status, 201);
    stage.until(&session, "turn.finished", 2);
    let told = stage.returned(&session);
    assert!(told[1].contains("SESSION STOP REQUESTED") && told[2].contains("three"), "{told:#?}");
    assert_eq!(kinds(&stage.daemon, &session).iter().filter(|kind| *kind == "run.started").count(), 1);
    assert_eq!(post(&stage.daemon, &session, "complete", &json!({})).status, 200);
    stage.until(&session, "run.ended", 1);
}

/// S0-B10: the daemon is killed between two levels; the agent, its address and its stop are all still there.
#[test]
fn the_ladder_goes_on_after_the_daemon_was_killed() {
    let mut stage = Stage::new();
    let listen = stage.daemon.address();
    let session = stage.works(&[ONE, "/wait 1500", TWO, "/wait 4000", THREE, FOUR, "/wait 60000"]);
    stage.until(&session, "tool.relayed", 1);
    stop(&stage.daemon, &session, &json!({}));
    stage.until(&session, "stop.applied", 1);
    stage.daemon.kill_9();
    // The agent holds the address it was given.
    stage.daemon.restart_with(setup().listen(&listen));
    stage.until(&session, "stop.applied", 3);
    stage.ends(&session, "stopped");
    assert!(kinds(&stage.daemon, &session).contains(&"run.adopted".to_owned()));
}

/// S0-O8, S0-49: a child that an agent started with Lanyard's own tools is stopped, and the agent hears of it.
#[test]
fn a_hub_hears_of_the_child_it_spawned() {
    let stage = Stage::new();
    let spawn = r#"/mcp lanyard memory_spawn_agent {"action":"start","agent":"demo","prompt":"/wait 60000"}"#;
    let hub = stage.works(&[spawn, "/wait 3000", ONE, "/say heard"]);
    stage.until(&hub, "session.child_linked", 1);
    let log = stage.daemon.log_after(&hub, 0);
    let linked = log.iter().find(|event| event["type"] == "session.child_linked").unwrap();
    let child = linked["data"]["child"].as_str().unwrap().to_owned();
    stage.until(&child, "run.ready", 1);
    stop(&stage.daemon, &child, &json!({ "now": true, "reason": "not needed" }));
    stage.ends(&child, "stopped");
    stage.until(&hub, "turn.finished", 1);
    let told = stage.returned(&hub);
    let heard = told.iter().find(|answer| answer.contains("SUBAGENT INTERRUPTED"));
    assert!(
        heard.is_some_and(|answer| answer.contains(&child) && answer.contains("not needed")),
        "{told:#?}"
    );
    assert_eq!(post(&stage.daemon, &hub, "complete", &json!({})).status, 200);
    stage.until(&hub, "run.ended", 1);
}
