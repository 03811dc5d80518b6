//! Stopping a session: confirmed only when nothing of it lives.

use serde_json::json;

use super::kit::{Stage, Talk, ended_by, interrupted, marked, pids_of, tried, until};

/// Reads on to the confirmation, and sees that nothing lives at that moment. The end of its run.
fn confirmed(stage: &Stage, talk: &mut Talk<'_>) -> serde_json::Value {
    let end = talk.until("session.ended");
    let run = talk.run();
    assert_eq!(marked(&run), Vec::<String>::new(), "the stop was confirmed too early");
    assert_eq!(end["data"]["how"], "stopped");
    stage.is_gone(&run);
    (*talk.all("run.ended").last().unwrap()).clone()
}

#[test]
fn an_idle_agent_is_stopped() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    assert_eq!(pids_of(&talk.run(), "lanyard").len(), 1);
    talk.stop();
    let ended = confirmed(&stage, &mut talk);
    assert_eq!(tried(&ended), ["term"], "{ended:#}");
}

#[test]
fn a_session_without_a_process_is_stopped() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.stop();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");
    assert_eq!(talk.runs(), 0);
}

#[test]
fn an_agent_at_work_is_asked_first() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/touch there\n/wait 60000");
    stage.await_file("there");
    talk.stop();
    interrupted(&talk.over(), "user");
    let ended = confirmed(&stage, &mut talk);
    assert_eq!(tried(&ended), ["agent", "term"], "{ended:#}");
}

#[test]
fn a_stop_while_the_agent_is_greeted_ends_it() {
    let stage = Stage::with(&["--start-delay", "60000"], "");
    let mut talk = stage.talk();
    talk.turn("/say never");
    talk.until("run.started");
    talk.stop();
    confirmed(&stage, &mut talk);
    let end = talk.all("turn.interrupted")[0];
    interrupted(end, "user");
}

#[test]
fn the_second_level_does_not_wait_for_an_agent_that_ignores() {
    let stage = Stage::with(&[], "cancel_grace_ms = 600000\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.stop();
    talk.until("stop.requested");
    talk.stop();
    let ended = confirmed(&stage, &mut talk);
    assert_eq!(tried(&ended), ["agent", "term"], "{ended:#}");
    assert_eq!(talk.all("stop.raised").len(), 1);
}

#[test]
fn the_third_level_kills() {
    let stage = Stage::with(&[], "cancel_grace_ms = 600000\nkill_grace_ms = 600000\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/ignore-term\n/touch there\n/wait 60000");
    stage.await_file("there");
    for _ in 0..3 {
        talk.stop();
    }
    let ended = confirmed(&stage, &mut talk);
    assert!(tried(&ended).contains(&"kill"), "{ended:#}");
    assert_eq!(ended_by(&ended), [("lanyard", "KILL")]);
    // Level 3 is durable.
    assert_eq!(talk.try_turn("/say never").status, 409);
}

/// A stop can be taken back before level 3: the turn is lost, the process and the session stay.
#[test]
fn a_stop_that_is_withdrawn_in_time_ends_no_process() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/answer-late 700\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.stop();
    talk.until("stop.requested");
    assert_eq!(talk.post("stop/withdraw", &json!({})).status, 200);
    interrupted(&talk.over(), "user");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_process_that_forked_away_is_stopped_too() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/fork-away sleep 1000\n/fork-away trap '' TERM; touch deaf; sleep 1001 & wait; sleep 1002\n/touch there\n/wait 60000");
    stage.await_file("there");
    stage.await_file("deaf");
    talk.until("run.ready");
    let run = talk.run();
    until("both to run", || pids_of(&run, "sleep").len() == 2);
    talk.stop();
    let ended = confirmed(&stage, &mut talk);
    // What the turn left is ended with it, before the agent is.
    let turn = talk.all("turn.interrupted")[0].clone();
    let all = [ended_by(&turn), ended_by(&ended)].concat();
    assert!(all.iter().filter(|(name, _)| *name == "sleep").count() >= 2, "{turn:#}\n{ended:#}");
    assert!(all.contains(&("sh", "KILL")), "{turn:#}\n{ended:#}");
    assert_eq!(tried(&ended), ["agent", "term"], "{ended:#}");
}

#[test]
fn whatever_ends_a_session_ends_its_process() {
    let stage = Stage::new();
    for what in ["complete", "fail", "archive", "reset"] {
        let mut talk = stage.talk();
        talk.answer_to("/fork-away sleep 1000\n/say one");
        let answer = talk.post(what, &json!({}));
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        talk.run_over();
    }
    let mut talk = stage.talk();
    talk.answer_to("/fork-away sleep 1000\n/say one");
    let run = talk.run();
    let path = format!("/api/v1/sessions/{}", talk.id);
    let answer = stage.daemon.request("DELETE", &path, &[], Some("{}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    until("the process of a deleted session to end", || marked(&run).is_empty());
    stage.is_gone(&run);
}

#[test]
fn a_session_completed_in_mid_turn_ends_its_process() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/touch there\n/wait 60000");
    stage.await_file("there");
    assert_eq!(talk.post("complete", &json!({})).status, 200);
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    talk.run_over();
}

/// The conversation starts over, the log goes on.
#[test]
fn a_reset_session_begins_a_new_conversation() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    assert_eq!(talk.post("reset", &json!({})).status, 200);
    assert_eq!(talk.answer_to("/recall"), "I know no earlier prompt.");
    assert_eq!(talk.runs(), 2);
}

#[test]
fn an_archived_session_goes_on_where_it_was() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    assert_eq!(talk.post("archive", &json!({})).status, 200);
    talk.run_over();
    assert_eq!(talk.post("unarchive", &json!({})).status, 200);
    assert_eq!(talk.answer_to("/recall"), "I know 1 earlier prompt: /say one");
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
}

/// A new turn asked for while the old process still ends waits for a new one.
#[test]
fn a_reset_and_a_turn_at_once_do_not_lose_the_turn() {
    let stage = Stage::with(&["--ignore-term"], "kill_grace_ms = 500\n");
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    assert_eq!(talk.post("reset", &json!({})).status, 200);
    let end = talk.ask("/recall");
    assert_eq!(end["type"], "turn.finished", "{end:#}");
    assert!(talk.said().ends_with("I know no earlier prompt."), "{}", talk.said());
}
