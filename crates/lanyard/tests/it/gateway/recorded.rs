//! Calls whose answers wait for their record (S0-23): whoever makes the engine's round, a caller that is alone or the
//! engine's own thread, what was answered is in the log after a kill.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use serde_json::json;

use super::kit::{Client, Stage};
use super::server::Server;
use crate::support::Setup;

/// The ids of the calls in a session's log, which has no gap.
fn kept(stage: &Stage, session: &str) -> HashSet<String> {
    let log = stage.daemon.log_after(session, 0);
    for (at, event) in log.iter().enumerate() {
        assert_eq!(event["seq"], at as u64 + 1, "a gap: {event}");
    }
    let calls = log.iter().filter(|event| event["type"] == "tool.relayed");
    calls.filter_map(|event| event["data"]["call"].as_str()).map(str::to_owned).collect()
}

/// Calls, and answers whether it was answered.
fn call(client: &Client, id: usize) -> bool {
    let params = json!({"name": "echo", "arguments": {"n": id}});
    let body = json!({"jsonrpc": "2.0", "id": id.to_string(), "method": "tools/call", "params": params});
    client.try_raw(&body.to_string()).is_some_and(|said| {
        assert_eq!(said.json()["id"], id.to_string(), "{}", said.text);
        true
    })
}

fn config(server: &Server, record: &str) -> String {
    format!("[gateway]\nrecord = \"{record}\"\n{}", server.config("h", ""))
}

#[test]
fn a_lone_call_that_was_answered_is_in_the_log_after_a_kill() {
    for record in ["written", "synced"] {
        let server = Server::start();
        let config = config(&server, record);
        let mut stage = Stage::new(&config);
        let session = stage.session(&json!({"source": "external"}));
        let mut answered = HashSet::new();
        for round in 0..3 {
            let client = stage.client(&session, "h");
            for id in round * 10..round * 10 + 5 {
                assert!(call(&client, id));
                answered.insert(id.to_string());
            }
            stage.daemon.kill_9();
            stage.daemon.restart_with(Setup::default().config(&config));
            assert_eq!(kept(&stage, &session), answered, "{record}");
        }
    }
}

#[test]
fn calls_side_by_side_that_were_answered_are_in_the_log_after_a_kill() {
    const CALLERS: usize = 4;
    const ANSWERS: usize = 60;
    for record in ["written", "synced"] {
        let server = Server::start();
        let config = config(&server, record);
        let mut stage = Stage::new(&config);
        let sessions: Vec<_> = (0..CALLERS).map(|_| stage.session(&json!({"source": "external"}))).collect();
        let (answered, answers) = channel();
        for (number, session) in sessions.iter().enumerate() {
            let (client, answered) = (stage.client(session, "h"), answered.clone());
            std::thread::spawn(move || {
                // Alone now and then: the others are between two calls.
                let mut ids = (0..).take_while(|id| call(&client, *id));
                while let Some(id) = ids.next()
                    && answered.send((number, id)).is_ok()
                {}
            });
        }
        drop(answered);
        let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); CALLERS];
        for _ in 0..ANSWERS {
            let (number, id) = answers.recv().unwrap();
            seen[number].insert(id.to_string());
        }
        stage.daemon.kill_9();
        // Those that were answered before they could be counted.
        for (number, id) in answers {
            seen[number].insert(id.to_string());
        }
        stage.daemon.restart_with(Setup::default().config(&config));
        for (session, seen) in sessions.iter().zip(&seen) {
            let kept = kept(&stage, session);
            assert!(seen.is_subset(&kept), "{record}: {seen:?} of {kept:?}");
        }
    }
}
