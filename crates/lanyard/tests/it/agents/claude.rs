//! Claude Code in both directions, played by a program that can be late, silent, deaf and wrong: one process per
//! conversation, questions, words, cancels, and the same conversation after a crash of either side.

use serde_json::{Value, json};

use super::kit::{Stage, interrupted, tried};

const PEER: &str = include_str!("claude_peer.sh");

fn stage(settings: &str) -> Stage {
    Stage::shell("claude", PEER, settings)
}

fn continuity(seen: &[&Value]) -> Vec<Value> {
    seen.iter().map(|event| event["data"]["continuity"].clone()).collect()
}

/// How often a prompt reached the agent.
fn heard(stage: &Stage, words: &str) -> usize {
    let heard = std::fs::read_to_string(stage.file("heard")).unwrap();
    heard.lines().filter(|line| line.contains(words)).count()
}

#[test]
fn one_process_serves_turn_after_turn_and_a_check_says_what_it_can() {
    let stage = stage("");
    let checked = stage.post("/agents/a/check", &json!({})).json();
    assert_eq!(checked["works"], true, "{checked:#}");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("hello"), "1 prompts");
    assert_eq!(talk.answer_to("hello"), "2 prompts");
    assert_eq!((talk.runs(), talk.all("run.ready").len()), (1, 1));
    let ready = &talk.all("run.ready")[0]["data"];
    assert_eq!(checked["capabilities"], ready["capabilities"]);
    for offered in ["resume", "cancel", "steer", "compact", "children", "permissions"] {
        assert_eq!(ready["capabilities"][offered], true, "{offered}");
    }
}

#[test]
fn tools_at_once_and_lines_that_are_none_become_what_they_are() {
    let stage = stage("");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("do tools"), "both");
    let of = |kind: &str, field: &str| -> Vec<Value> {
        talk.all(kind).iter().map(|event| event["data"][field].clone()).collect()
    };
    assert_eq!(of("tool.called", "call"), ["t1", "t2"]);
    assert_eq!(of("tool.returned", "call"), ["t2", "t1"]);
    assert_eq!(talk.answer_to("do noise"), "heard");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_question_is_answered_and_outlives_the_daemon() {
    let mut stage = stage("");
    let (session, gate) = {
        let mut talk = stage.talk();
        talk.turn("do ask");
        let gate = talk.until("gate.opened")["data"]["gate"].as_str().unwrap().to_owned();
        (talk.id.clone(), gate)
    };
    assert!(!stage.file("note.txt").exists(), "it waits for an answer");
    stage.restart();
    let mut talk = stage.follow(&session);
    let answer = talk.post(&format!("gates/{gate}"), &json!({ "option": "allow" }));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(talk.over()["data"]["outcome"], "completed", "{:#?}", talk.seen);
    assert!(stage.file("note.txt").exists());
    assert_eq!((talk.said().as_str(), talk.all("gate.opened").len(), talk.runs()), ("written", 1, 1));
    assert_eq!(heard(&stage, "do ask"), 1);
}

#[test]
fn a_turn_goes_on_while_the_daemon_is_killed() {
    let mut stage = stage("");
    let session = {
        let talk = stage.talk();
        talk.turn("do late");
        talk.id.clone()
    };
    stage.await_file("began");
    stage.restart();
    stage.touch("go");
    let mut talk = stage.follow(&session);
    assert_eq!(talk.over()["data"]["outcome"], "completed", "{:#?}", talk.seen);
    assert_eq!((talk.said().as_str(), talk.runs()), ("before after", 1), "{:#?}", talk.seen);
    assert_eq!(talk.answer_to("hello"), "2 prompts");
    assert_eq!(heard(&stage, "do late"), 1);
}

#[test]
fn words_are_taken_into_the_turn_and_answered_before_it_ends() {
    let stage = stage("");
    let mut talk = stage.talk();
    talk.turn("do words");
    stage.await_file("began");
    let sent = talk.post("guidance", &json!({ "text": "mind the gap" }));
    assert!(sent.status < 300, "{}", sent.text());
    assert_eq!(talk.until("guidance.delivered")["data"]["channel"], "steer");
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert!(talk.said().ends_with("mind the gap"), "{}", talk.said());
    assert_eq!((talk.answer_to("hello"), talk.runs()), ("2 prompts".to_owned(), 1));
}

#[test]
fn a_cancel_is_heeded_or_the_process_is_ended() {
    let stage = stage("cancel_grace_ms = 700\n");
    let mut talk = stage.talk();
    talk.turn("do silent");
    stage.await_file("began");
    talk.cancel();
    let end = talk.over();
    interrupted(&end, "user");
    assert_eq!((talk.answer_to("hello"), talk.runs()), ("2 prompts".to_owned(), 1), "the process is kept");

    std::fs::remove_file(stage.file("began")).unwrap();
    talk.turn("do deaf");
    stage.await_file("began");
    talk.cancel();
    let ended = talk.run_over();
    assert!(tried(&ended).starts_with(&["agent", "term"]), "{ended:#}");
    interrupted(&talk.over(), "user");
    assert_eq!(talk.answer_to("hello"), "4 prompts", "the conversation goes on in another process");
    assert_eq!(continuity(&talk.all("run.ready")), [Value::Null, json!("native")]);
}

#[test]
fn a_process_that_dies_in_mid_turn_is_followed_by_one_with_the_same_conversation() {
    let stage = stage("");
    let mut talk = stage.talk();
    talk.turn("do die");
    interrupted(&talk.over(), "crash");
    assert_eq!(talk.said(), "before ");
    assert_eq!(talk.answer_to("hello"), "2 prompts");
    assert_eq!(continuity(&talk.all("run.ready")), [Value::Null, json!("native")]);
}

#[test]
fn a_conversation_that_is_gone_is_not_begun_anew() {
    let stage = stage("");
    let mut talk = stage.talk();
    talk.turn("do die");
    interrupted(&talk.over(), "crash");
    for entry in std::fs::read_dir(stage.work()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("talk-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    talk.turn("hello");
    let ended = talk.until("run.ended");
    let ended = if ended["data"]["reason"].to_string().contains("No conversation") {
        ended
    } else {
        talk.until("run.ended")
    };
    assert!(ended["data"]["reason"].to_string().contains("No conversation found"), "{ended:#}");
    assert_eq!(talk.all("run.ready").len(), 1, "nothing was opened in its place");
}
