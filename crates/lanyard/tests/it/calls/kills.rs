//! The daemon is killed between queueing, delivering and acknowledging: nothing is lost, and at most what was in flight
//! is said again, marked as a repeat (S0-B10, S0-23).

use super::*;
use lanyard_base::failpoint::OF_CALLS;

/// One piece of guidance, and the daemon dies at this place. The words reach the agent; twice at most, and then marked.
fn dies_at(place: &str, nth: u32) {
    let mut daemon = daemon();
    let session = external(&daemon);
    guide(&daemon, &session, "mind the gap");
    daemon.kill_9();
    daemon.restart_with(patient().env("LANYARD_FAILPOINT", format!("{place}:{nth}")));
    let mut heard: Vec<bool> = Vec::new();
    let mut died = false;
    for id in 0..6 {
        let Ok(block) = try_call(&daemon, &session, &id.to_string()) else {
            assert!(!std::mem::replace(&mut died, true), "{place}: it died twice");
            let _ = daemon.wait();
            daemon.restart_with(patient());
            continue;
        };
        if let Some(block) = block {
            assert!(block.contains("\nmind the gap\n"), "{block}");
            heard.push(block.contains("repeated: you may have seen it"));
        }
    }
    assert!(died, "never died at {place}");
    // What was answered arrived; an answer that did not leave may have been delivered for all the daemon knows.
    assert!(heard == [false] || heard == [true], "{place}: heard {heard:?}");
    let list = get(&daemon, &session, "/guidance");
    assert_eq!(list["settled"][0]["status"], "acknowledged", "{list}");
    let log = daemon.log_after(&session, 0);
    let delivered = log.iter().filter(|event| event["type"] == "guidance.delivered").count();
    assert!(delivered <= 2, "{place}: sent {delivered} times");
}

/// An error when the daemon died under it; else the block that came with the answer.
fn try_call(daemon: &Daemon, session: &str, id: &str) -> std::io::Result<Option<String>> {
    let caller = daemon.caller();
    let path = |what: &str| format!("/api/v1/sessions/{session}/{what}");
    let begun = caller.try_request("POST", &path("calls"), &[], Some(&call(id).to_string()))?;
    assert_eq!(begun.status, 200, "{}", begun.text());
    let body = json!({ "call": call(id) }).to_string();
    let ended = caller.try_request("POST", &path("calls/end"), &[], Some(&body))?;
    assert_eq!(ended.status, 200, "{}", ended.text());
    let lead = ended.json();
    Ok(lead["blocks"].as_array().unwrap().first().map(|block| block.as_str().unwrap().to_owned()))
}

#[test]
fn guidance_survives_a_kill_at_every_place_of_a_call() {
    for place in OF_CALLS {
        dies_at(place, 1);
    }
    for place in ["before_append", "after_append", "after_publish"] {
        dies_at(place, 1);
    }
}

/// S0-B06: whatever level was told, it is not told again as a lower one, and the third one stands.
#[test]
fn a_stop_survives_a_kill_at_every_place_of_a_call() {
    for place in OF_CALLS {
        let mut daemon = daemon();
        let session = external(&daemon);
        stop(&daemon, &session, &json!({}));
        daemon.kill_9();
        daemon.restart_with(patient().env("LANYARD_FAILPOINT", format!("{place}:1")));
        let mut levels: Vec<i64> = Vec::new();
        for id in 0..8 {
            if try_call(&daemon, &session, &id.to_string()).is_err() {
                let _ = daemon.wait();
                daemon.restart_with(patient());
            }
            levels.extend(get(&daemon, &session, "")["stop"]["level"].as_i64());
        }
        assert!(levels.is_sorted(), "{place}: {levels:?}");
        assert_eq!(get(&daemon, &session, "")["state"], "stopped", "{place}");
        assert_eq!(whole(&daemon, &session, "last"), "not carried out: ❌ SESSION TERMINATED", "{place}");
    }
}

/// S0-B18, S0-23: the daemon dies between the end of a child and the telling of it; the parent is told after the start,
/// once.
#[test]
fn a_notice_survives_a_kill_before_it_was_told() {
    let mut daemon = Daemon::start(patient().env("LANYARD_FAILPOINT", "before_notice:1"));
    let hub = external(&daemon);
    let child = made(&daemon, &json!({ "source": "external", "agent": "executor", "parent": hub }));
    let caller = daemon.caller();
    for _ in 0..3 {
        let path = format!("/api/v1/sessions/{child}/stop");
        let _ = caller.try_request("POST", &path, &[], Some("{}"));
    }
    let _ = daemon.wait();
    for _ in 0..2 {
        daemon.restart_with(patient());
        let told = || get(&daemon, &hub, "/guidance")["waiting"].as_array().unwrap().len() == 1;
        assert!(until(told), "{}", get(&daemon, &hub, "/guidance"));
        assert!(until(|| kinds(&daemon, &child).contains(&"notice.sent".to_owned())));
        daemon.kill_9();
    }
    daemon.restart_with(patient());
    let log = daemon.log_after(&child, 0);
    let sent: Vec<&Value> = log.iter().filter(|event| event["type"] == "notice.sent").collect();
    let waiting = get(&daemon, &hub, "/guidance")["waiting"].clone();
    assert_eq!((sent.len(), &sent[0]["data"]["note"]), (1, &waiting[0]["id"]), "{waiting}");
}

/// S0-23: where an answer waits for its record, killing the daemon the moment it has arrived loses none.
#[test]
fn a_call_that_was_answered_is_in_the_log_after_a_kill() {
    for record in ["written", "synced"] {
        let setup = || patient().config(&format!("[gateway]\nrecord = \"{record}\"\n"));
        let mut daemon = Daemon::start(setup());
        let session = external(&daemon);
        for round in 0..4 {
            let calls: Vec<String> = (0..=round).map(|number| format!("{round}-{number}")).collect();
            for id in &calls {
                assert_eq!(try_call(&daemon, &session, id).unwrap(), None);
            }
            daemon.kill_9();
            daemon.restart_with(setup());
            let log = daemon.log_after(&session, 0);
            let relayed = log.iter().filter(|event| event["type"] == "tool.relayed");
            let kept: Vec<&str> = relayed.filter_map(|event| event["data"]["call"].as_str()).collect();
            assert!(calls.iter().all(|id| kept.contains(&id.as_str())), "{record}: {kept:?}");
        }
    }
}
