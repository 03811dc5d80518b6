//! Everything an agent should not do, done by a real one.

use super::kit::{Stage, ended_by, interrupted, marked, pids_of, until};

#[test]
fn nonsense_between_the_lines_harms_nothing() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let said = talk.answer_to("/say one\n/malformed\n/unknown-update\n/say two");
    assert_eq!(said, "onetwo");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_second_answer_and_late_words_belong_to_no_other_turn() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/double-answer\n/late-update\n/say one"), "one");
    let words = talk.until("message");
    assert_eq!(words["data"]["text"], "late words", "they are kept");
    // The second answer ends nothing: the next turn is whole.
    talk.turn("/touch there\n/wait-file go\n/say two");
    stage.await_file("there");
    stage.touch("go");
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!(talk.said(), "onelate wordstwo");
    assert_eq!((talk.runs(), talk.all("turn.finished").len()), (1, 2));
}

/// S2-22: the wait ends, and the conversation can go on.
#[test]
fn a_prompt_that_is_never_answered_ends_with_its_time() {
    let stage = Stage::with(&[], "turn_timeout_ms = 400\ncancel_grace_ms = 300\n");
    let mut talk = stage.talk();
    let end = talk.ask("/say hm\n/no-answer");
    assert!(interrupted(&end, "timeout").contains("400 ms"));
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
}

#[test]
fn a_hanging_agent_ends_with_its_time() {
    let stage = Stage::with(&[], "turn_timeout_ms = 400\ncancel_grace_ms = 300\n");
    let mut talk = stage.talk();
    interrupted(&talk.ask("/say hm\n/hang"), "timeout");
    talk.run_over();
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
}

#[test]
fn a_hanging_agent_is_stopped() {
    let stage = Stage::with(&[], "cancel_grace_ms = 200\n");
    let mut talk = stage.talk();
    talk.turn("/touch there\n/hang");
    stage.await_file("there");
    talk.stop();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");
    assert_eq!(marked(&talk.run()), Vec::<String>::new());
}

#[test]
fn a_line_without_end_ends_the_run() {
    let stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let mut talk = stage.talk();
    talk.turn("/say before\n/endless 40000000\n/wait 60000");
    let ended = talk.run_over();
    let reason = ended["data"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("line_too_long: "), "{reason}");
    assert!(interrupted(&talk.over(), "crash").starts_with("line_too_long: "));
    assert_eq!(talk.said(), "before");
    stage.is_unharmed();
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
}

#[test]
fn a_long_line_within_bounds_is_only_odd() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/say a\n/endless 3000000\n/say b"), "ab");
    assert_eq!(talk.runs(), 1);
}

/// S1-B07.
#[test]
fn an_agent_that_dies_is_a_crash_and_the_session_goes_on() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/say words before\n/die");
    let ended = talk.run_over();
    assert_eq!(ended["data"]["how"], serde_json::json!({"kind": "signalled", "signal": 9}));
    let reason = interrupted(&talk.over(), "crash");
    assert_eq!(reason, "the agent was ended by signal 9");
    assert_eq!(talk.said(), "words before");
    let record = talk.record();
    assert_eq!((&record["state"], &record["cause"]), (&"interrupted".into(), &"crash".into()));
    assert_eq!(talk.answer_to("/recall"), "I know 1 earlier prompt: /say words before /die");
    let ready = talk.all("run.ready")[1];
    assert_eq!(ready["data"]["continuity"], "native");
    assert!(ready["data"]["history"].as_u64() > Some(0), "{ready:#}");
}

#[test]
fn an_agent_that_exits_in_mid_turn_is_a_crash() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/exit 3");
    let ended = talk.run_over();
    assert_eq!(ended["data"]["how"], serde_json::json!({"kind": "exited", "code": 3}));
    assert!(interrupted(&talk.over(), "crash").starts_with("the agent exited with 3"));
}

#[test]
fn an_agent_that_dies_at_rest_interrupts_nothing() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    let [agent] = pids_of(&talk.run(), "lanyard")[..] else { panic!("one agent") };
    let agent = rustix::process::Pid::from_raw(agent).unwrap();
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    talk.run_over();
    assert_eq!(talk.record()["state"], "between_turn");
    assert_eq!(talk.answer_to("/recall"), "I know 1 earlier prompt: /say one");
}

#[test]
fn an_error_is_told_in_the_agents_own_words() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let end = talk.ask("/error -32000 the model is on strike");
    assert_eq!((&end["type"], &end["data"]["outcome"]), (&"turn.finished".into(), &"failed".into()));
    assert!(end["data"]["reason"].as_str().unwrap().contains("the model is on strike"), "{end:#}");
    let end = talk.ask("/fly");
    assert!(end["data"]["reason"].as_str().unwrap().contains("there is no step /fly"), "{end:#}");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// The run is over when the last of its processes is, not when its first one is.
#[test]
fn what_forked_away_ends_with_an_agent_that_dies() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/fork-away sleep 1000\n/touch there\n/wait-file go\n/die");
    stage.await_file("there");
    talk.until("run.ready");
    let run = talk.run();
    until("what forked away to run", || pids_of(&run, "sleep").len() == 1);
    stage.touch("go");
    let ended = talk.run_over();
    assert!(ended_by(&ended).iter().any(|(name, _)| *name == "sleep"), "{ended:#}");
    interrupted(&talk.over(), "crash");
}

#[test]
fn an_agent_deaf_to_everything_is_ended_with_its_session() {
    let stage = Stage::with(&["--ignore-eof", "--ignore-term"], "kill_grace_ms = 200\n");
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    talk.stop();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");
    assert_eq!(marked(&talk.run()), Vec::<String>::new());
}
