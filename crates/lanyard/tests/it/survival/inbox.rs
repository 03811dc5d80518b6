//! SIGKILL while messages are admitted, queued, started one after the other, steered and interrupted. After it each name
//! stands for one turn, the same as before, and no work was done twice (S3-B01).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kit::{Stage, wait};

/// What is sent, in order: a name, how it wants to arrive, and what the agent then does besides counting.
const MESSAGES: [(&str, &str, &str); 5] = [
    ("a", "reject", "/wait-file go"),
    ("b", "queue", ""),
    ("c", "steer", ""),
    ("d", "queue", ""),
    ("e", "interrupt", ""),
];

/// Sends what has no answer yet; the turns each name has.
fn send_all(stage: &Stage, session: &str, turns: &mut BTreeMap<String, String>) {
    for (name, delivery, rest) in MESSAGES {
        let prompt = format!("/run echo {name} >> ran\n{rest}");
        if delivery == "interrupt" {
            // There is work to interrupt, unless the kill took it and what waits is held back.
            let rests = || stage.look(session).is_some_and(|shown| shown["active_turn"].is_null());
            assert!(wait(|| !stage.daemon.is_alive() || stage.work("ran").exists() || rests()));
        }
        let body = json!({"prompt": prompt, "client_turn_id": name, "delivery": delivery});
        let Some(answer) = stage.try_post(&format!("/sessions/{session}/turns"), &body) else { return };
        let told = answer.json();
        match (answer.status, told["code"].as_str()) {
            (200 | 201, _) => {
                let turn = told["turn"].as_str().unwrap().to_owned();
                let known = turns.entry(name.to_owned()).or_insert_with(|| turn.clone());
                assert_eq!(*known, turn, "{name} is another turn after the kill");
            }
            (409, Some("turn_uncertain")) => {}
            // `a` may find what came after it at work, when it was not admitted before the kill.
            (409, Some("turn_rejected_busy")) => assert_eq!(name, "a"),
            other => panic!("{name}: {other:?}: {told}"),
        }
    }
}

/// Lets everything that waits run, until nothing is left to do or the daemon has died.
fn drive(stage: &Stage, session: &str) {
    let mut shown = Value::Null;
    let done = wait(|| {
        if !stage.daemon.is_alive() {
            return true;
        }
        let Some(now) = stage.look(session) else { return false };
        shown = now;
        let rests = shown["active_turn"].is_null();
        let empty = shown["inbox"].as_array().is_none_or(Vec::is_empty);
        if rests && !empty {
            let _ = stage.try_post(&format!("/sessions/{session}/inbox/go"), &json!({}));
        }
        rests && empty
    });
    assert!(done, "{shown:#}");
}

fn dies_at(place: &str) {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to(place);
    let mut turns = BTreeMap::new();
    send_all(&stage, &session, &mut turns);
    stage.touch("go");
    // The place may come up only now, at the end of a turn or in the cancel.
    drive(&stage, &session);
    assert!(!stage.daemon.is_alive(), "it never came to {place}");
    stage.up();
    send_all(&stage, &session, &mut turns);
    send_all(&stage, &session, &mut turns);
    drive(&stage, &session);
    let ran = std::fs::read_to_string(stage.work("ran")).unwrap_or_default();
    for (name, _, _) in MESSAGES {
        let times = ran.lines().filter(|line| *line == name).count();
        assert!(times <= 1, "{place}: {name} ran {times} times: {ran:?}\n{:#?}", stage.log(&session));
        let started = stage.events(&session, "turn.started");
        let begun = started.iter().filter(|event| event["data"]["client_turn_id"] == name).count();
        assert!(begun <= 1, "{place}: {name} began {begun} times");
    }
    // Every message that was admitted has come to an end that is told.
    let rows = stage.daemon.request("GET", &format!("/api/v1/sessions/{session}/turns"), &[], None).json();
    for row in rows["turns"].as_array().unwrap() {
        let status = row["status"].as_str().unwrap();
        assert!(!["queued", "running"].contains(&status), "{place}: {row:#}");
    }
    assert!(turns.len() >= 4, "{place}: {turns:?}");
    let report = stage.daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!(report["damage"], json!([]), "{place}");
    stage.end();
}

macro_rules! places {
    ($($test:ident $place:literal)*) => {$(
        #[test]
        fn $test() {
            dies_at($place);
        }
    )*};
}

places! {
    killed_before_the_first_admission_is_written "before_append:1"
    killed_after_the_first_admission_is_written "after_append:1"
    killed_in_the_commit_of_a_queued_message "before_commit:3"
    killed_after_the_commit_of_a_queued_message "after_commit:3"
    killed_after_a_later_commit "after_commit:9"
    killed_before_a_later_commit "before_append:12"
    killed_before_a_prompt_is_handed_over "before_prompt:1"
    killed_after_a_prompt_was_handed_over "after_prompt:1"
    killed_before_the_second_prompt "before_prompt:2"
    killed_after_the_second_prompt "after_prompt:2"
    killed_before_the_cancel_of_an_interrupt "before_cancel:1"
    killed_after_the_cancel_of_an_interrupt "after_cancel:1"
    killed_at_the_end_of_a_turn_before_it_is_told "before_report:2"
    killed_at_the_end_of_a_turn_after_it_was_told "after_report:2"
}
