//! Messages that wait, with an agent that really works: the next turn follows in the same process, an interrupt ends the
//! turn before it takes its place, and a lost agent leaves an uncertain turn.

use serde_json::{Value, json};

use super::kit::{Stage, Talk, interrupted, pids_of};

fn send(talk: &Talk<'_>, prompt: &str, delivery: &str) -> Value {
    let answer = talk.post("turns", &json!({"prompt": prompt, "delivery": delivery}));
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

fn ran(talk: &Talk<'_>) -> Vec<String> {
    let started = talk.all("turn.started");
    started.iter().map(|event| event["data"]["prompt"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn queued_messages_follow_in_the_same_process() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/say one\n/wait-file go");
    talk.until("turn.delivered");
    assert_eq!(send(&talk, "/say two", "queue")["result"], "queued");
    assert_eq!(send(&talk, "/say three", "queue")["result"], "queued");
    stage.touch("go");
    for _ in 0..3 {
        assert_eq!(talk.over()["type"], "turn.finished");
    }
    assert_eq!(talk.said(), "onetwothree");
    assert_eq!(talk.runs(), 1);
    assert_eq!(talk.all("turn.delivered").len(), 3, "each was handed over");
}

#[test]
fn an_interrupt_takes_the_place_of_the_turn_once_that_has_ended() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/wait-file never");
    talk.until("turn.delivered");
    send(&talk, "/say later", "queue");
    assert_eq!(send(&talk, "/say now", "interrupt")["result"], "interrupting");
    interrupted(&talk.over(), "user");
    assert_eq!(talk.over()["type"], "turn.finished");
    assert_eq!(talk.said(), "now");
    let record = talk.record();
    assert_eq!(
        (&record["inbox_paused"], &record["inbox"][0]["prompt"]),
        (&json!("interrupted"), &json!("/say later"))
    );
    assert_eq!(talk.post("inbox/go", &json!({})).status, 200);
    assert_eq!(talk.over()["type"], "turn.finished");
    assert_eq!(talk.said(), "nowlater");
    assert_eq!(ran(&talk).len(), 3);
}

#[test]
fn a_cancel_pauses_the_inbox_and_names_the_run() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/wait-file never");
    talk.until("turn.delivered");
    send(&talk, "/say later", "queue");
    let answer = talk.post("cancel", &json!({"reason": "wrong"}));
    let asked = &answer.json()["cancel_requested"];
    assert_eq!((&asked["session"], &asked["run"]), (&json!(talk.id), &json!(talk.run())), "{asked}");
    interrupted(&talk.over(), "user");
    talk.until("inbox.paused");
    assert_eq!(talk.post("inbox/go", &json!({})).status, 200);
    assert_eq!(talk.over()["type"], "turn.finished");
    assert_eq!(talk.said(), "later");
}

/// The agent offers no channel for it, so the words are its next turn.
#[test]
fn a_steer_the_agent_cannot_take_is_its_next_turn() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/wait-file go");
    talk.until("turn.delivered");
    send(&talk, "/say queued", "queue");
    assert_eq!(send(&talk, "/say steered", "steer")["result"], "steered");
    stage.touch("go");
    for _ in 0..3 {
        assert_eq!(talk.over()["type"], "turn.finished");
    }
    assert_eq!(talk.said(), "steeredqueued");
}

/// S3-B01: the agent had the prompt and died of it.
#[test]
fn a_turn_whose_agent_died_is_uncertain() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let body = json!({"prompt": "/run echo once >> ran\n/wait-file never", "client_turn_id": "x"});
    assert_eq!(talk.post("turns", &body).status, 201);
    talk.until("turn.delivered");
    stage.await_file("ran");
    send(&talk, "/say later", "queue");
    for pid in pids_of(&talk.run(), "lanyard") {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let end = talk.over();
    interrupted(&end, "crash");
    assert_eq!(end["data"]["uncertain"], true);
    assert_eq!(talk.until("inbox.paused")["data"]["reason"], "failed");
    let repeat = talk.post("turns", &body);
    assert_eq!((repeat.status, repeat.code().as_str()), (409, "turn_uncertain"));
    assert_eq!(std::fs::read_to_string(stage.file("ran")).unwrap(), "once\n");
    assert_eq!(ran(&talk).len(), 1);
}
