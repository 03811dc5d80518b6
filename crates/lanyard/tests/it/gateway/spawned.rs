//! FND-M1: a child that an agent makes with `memory_spawn_agent`, and starts itself, is stopped step by step like any other.
//! It talks over its parent's connection and names itself in each call, as its prompt tells it to.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kit::{Client, Stage};
use crate::support::PATIENCE;

/// Levels rise with calls alone.
const PATIENT: &str = "[stop]\ngraceful_ms = 600000\nimmediate_ms = 600000\n";

struct Family {
    stage: Stage,
    hub: String,
    child: String,
    client: Client,
}

impl Family {
    /// A hub behind the gateway, and a child it prepared.
    fn new() -> Self {
        let stage = Stage::new(PATIENT);
        let hub = stage.session(&json!({"source": "external", "agent": "hub", "workspace": "/tmp"}));
        let mut client = stage.client(&hub, "lanyard");
        client.greet("hub");
        let prepare = json!({"action": "prepare", "agent": "Executor", "prompt": "run the tests"});
        let prepared = client.said("memory_spawn_agent", &prepare);
        let prepared: Value = serde_json::from_str(&prepared).unwrap_or_else(|_| panic!("{prepared}"));
        let child = prepared["session_id"].as_str().unwrap_or_else(|| panic!("{prepared}")).to_owned();
        Self { stage, hub, child, client }
    }

    fn stop(&self) {
        let body = json!({"reason": "wrong branch"});
        let answer = self.stage.post(&format!("/sessions/{}/stop", self.child), &body);
        assert_eq!((answer.status, &answer.json()["stop_level"]), (202, &json!(1)), "{}", answer.text());
    }

    /// All text of an answer to the child's call, and whether it is an error.
    fn child_calls(&self, tool: &str, mut arguments: Value) -> (String, bool) {
        arguments["_session_id"] = json!(self.child);
        texts(&self.client.call(tool, &arguments))
    }

    fn looks(&self) -> (String, bool) {
        self.child_calls("memory_workspace", json!({"action": "info"}))
    }

    fn shown(&self, session: &str) -> Value {
        self.stage.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }

    fn until(&self, session: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let shown = self.shown(session);
            if wanted(&shown) {
                return shown;
            }
            assert!(since.elapsed() < PATIENCE, "{shown:#}");
            // sleep: between two looks at another process.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn texts(answer: &Value) -> (String, bool) {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let all: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
    (all.join("\n"), answer["result"]["isError"] == true)
}

/// FND-M1, S0-T17, S0-16, S0-40..S0-43, S0-49: hub and child registered, stopped before its first call; three calls give
/// levels 1, 2 and 3; the child is stopped and the hub is told with its next call. All of it survives a kill.
#[test]
fn fnd_m1_t17_a_spawned_child_stopped_before_its_first_call_goes_through_all_levels() {
    let mut family = Family::new();
    family.stop();
    let view = family.shown(&family.child);
    assert_eq!((&view["status"], &view["stop"]["level"]), (&json!("stopping"), &json!(1)), "{view:#}");

    let (first, error) = family.looks();
    assert!(first.starts_with("⚠️ SESSION STOP REQUESTED") && !error, "{first}");
    assert!(first.contains("--- ORIGINAL RESPONSE ---"), "{first}");
    assert!(first.contains("Coordinator") && first.contains("User requested stop"), "{first}");
    let listen = family.stage.daemon.address();
    family.stage.daemon.kill_9();
    let setup = crate::support::Setup::default().config(PATIENT).listen(&listen);
    family.stage.daemon.restart_with(setup);
    let (second, _) = family.looks();
    assert!(second.starts_with("🛑 SESSION STOP — IMMEDIATE"), "{second}");
    assert!(!second.contains("--- ORIGINAL RESPONSE ---"), "{second}");
    let (third, error) = family.looks();
    assert!(third.starts_with("❌ SESSION TERMINATED") && error, "{third}");
    assert!(third.contains(&family.child), "{third}");
    family.until(&family.child, |shown| shown["state"] == "stopped");
    let (fourth, error) = family.looks();
    assert!(fourth.starts_with("❌ SESSION TERMINATED") && error, "every later call too: {fourth}");

    family.until(&family.hub, |shown| shown["guidance"].as_array().is_some_and(|notes| notes.len() == 1));
    let (told, error) = texts(&family.client.call("memory_workspace", &json!({"action": "info"})));
    assert!(told.contains("⚠️ SUBAGENT INTERRUPTED:") && !error, "{told}");
    assert!(
        told.contains("Executor") && told.contains(&family.child) && told.contains("wrong branch"),
        "{told}"
    );
    assert_eq!(family.shown(&family.hub)["status"], "active", "the hub goes on");
}

/// FND-M1, S0-B02: told at level 1, it hands off and completes; both are carried out and resolve the stop.
#[test]
fn fnd_m1_a_spawned_child_hands_off_at_level_one() {
    let family = Family::new();
    family.stop();
    let (first, _) = family.looks();
    assert!(first.starts_with("⚠️ SESSION STOP REQUESTED"), "{first}");
    let hand_off = json!({"action": "handoff", "to": "Coordinator", "reason": "User requested stop"});
    let (handed, error) = family.child_calls("memory_agent", hand_off);
    assert!(handed.contains("handed_off") && !error, "{handed}");
    let (done, error) =
        family.child_calls("memory_agent", json!({"action": "complete", "summary": "stopped as asked"}));
    assert!(!error, "{done}");
    let view = family.until(&family.child, |shown| shown["state"] == "completed");
    assert_eq!(view["stop"]["level"], 1, "no level rose: {view:#}");
}

/// FND-M1: its very first call may be the hand-off.
#[test]
fn fnd_m1_a_spawned_child_may_hand_off_with_its_first_call() {
    let family = Family::new();
    family.stop();
    let hand_off = json!({"action": "handoff", "to": "Coordinator", "reason": "User requested stop"});
    let (handed, error) = family.child_calls("memory_agent", hand_off);
    assert!(handed.contains("handed_off") && !error, "{handed}");
    assert_eq!(family.shown(&family.child)["stop"]["level"], 1);
}
