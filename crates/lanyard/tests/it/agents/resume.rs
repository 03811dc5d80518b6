//! Going on after a crash: how is said, and never a new conversation under an old name.

use super::kit::{Stage, Talk, interrupted};

/// A conversation with a past, whose agent is dead.
fn broken_off<'a>(stage: &'a Stage, agent: &str) -> Talk<'a> {
    let mut talk = stage.talk_with(agent);
    talk.answer_to("remember the blue door\n/say I remember the blue door");
    talk.ask("/die");
    talk.catch_up();
    talk
}

fn continuity(talk: &Talk<'_>) -> Vec<String> {
    let of = |event: &&serde_json::Value| event["data"]["continuity"].as_str().unwrap_or("none").to_owned();
    talk.all("run.ready").iter().map(of).collect()
}

#[test]
fn an_agent_takes_its_own_conversation_up_again() {
    let stage = Stage::new();
    let mut talk = broken_off(&stage, "a");
    assert_eq!(talk.answer_to("/recall"), "I know 2 earlier prompts, the last: /die");
    assert_eq!(continuity(&talk), ["none", "native"]);
    // What it played back was said before, and is not said again.
    assert_eq!(talk.said().matches("blue door").count(), 1);
}

#[test]
fn a_replay_that_comes_late_is_heard() {
    let stage = Stage::with(&["--late-replay"], "");
    let mut talk = broken_off(&stage, "a");
    assert_eq!(talk.answer_to("/recall"), "I know 2 earlier prompts, the last: /die");
    assert_eq!(continuity(&talk), ["none", "native"]);
    assert_eq!(talk.said().matches("blue door").count(), 1);
}

#[test]
fn an_agent_that_refuses_is_an_error_and_no_new_conversation() {
    for flag in ["--refuse-resume", "--no-load"] {
        let stage = Stage::with(&[flag], "resume = [\"native\"]\n");
        let mut talk = broken_off(&stage, "a");
        talk.turn("/recall");
        let ended = talk.run_over();
        assert_eq!(ended["data"]["how"]["code"], "resume_refused", "{ended:#}");
        assert!(interrupted(&talk.over(), "crash").starts_with("resume_refused: "));
        assert!(!talk.said().contains("I know no earlier prompt"));
        talk.catch_up();
        assert_eq!((talk.runs(), continuity(&talk).len()), (2, 1), "it was tried once: {:#?}", talk.seen);
    }
}

#[test]
fn an_agent_that_refuses_is_told_a_summary_where_that_is_allowed() {
    let stage = Stage::with(&["--refuse-resume"], "resume = [\"native\", \"preamble\"]\n");
    let mut talk = broken_off(&stage, "a");
    assert_eq!(talk.answer_to("/recall"), "I know no earlier prompt.", "the conversation is a new one");
    assert_eq!(continuity(&talk), ["none", "preamble"], "and the log says so");
    let told = stage.memory();
    assert!(told.contains("Your process was lost. This is a summary"), "{told}");
    assert!(told.contains("you: I remember the blue door"), "{told}");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(stage.memory().matches("This is a summary").count(), 1, "told once");
}

#[test]
fn an_agent_that_cannot_load_is_given_the_whole_conversation_where_that_is_allowed() {
    let stage = Stage::with(&["--no-load"], "resume = [\"native\", \"replay\", \"preamble\"]\n");
    let mut talk = broken_off(&stage, "a");
    talk.answer_to("/say on");
    assert_eq!(continuity(&talk), ["none", "replayed"]);
    let told = stage.memory();
    assert!(told.contains("This is the conversation so far."), "{told}");
    assert!(told.contains("user: remember the blue door"), "{told}");
    // The steps of the past are words now: it did not die again.
    assert_eq!(talk.runs(), 3);
}

/// An agent that says it knows the conversation, and knows nothing.
#[test]
fn an_agent_that_comes_back_empty_is_found_out() {
    let stage = Stage::of(&[
        ("alone", &["--resume-empty"], "resume = [\"native\"]\n"),
        ("helped", &["--resume-empty"], "resume = [\"native\", \"preamble\"]\n"),
    ]);
    let mut alone = broken_off(&stage, "alone");
    let mut helped = broken_off(&stage, "helped");
    alone.turn("/recall");
    helped.turn("/recall");
    let ended = alone.run_over();
    assert_eq!(ended["data"]["how"]["code"], "resume_lost", "{ended:#}");
    assert!(interrupted(&alone.over(), "crash").starts_with("resume_lost: "));
    assert_eq!(alone.said(), "I remember the blue door");
    let ended = helped.run_over();
    assert!(ended["data"]["reason"].as_str().unwrap().starts_with("resume_lost: "), "{ended:#}");
    assert_eq!(helped.over()["type"], "turn.finished");
    assert_eq!(continuity(&helped), ["none", "preamble"]);
}

#[test]
fn a_conversation_that_never_began_is_begun() {
    let stage = Stage::with(&["--refuse-resume"], "");
    let mut talk = stage.talk();
    talk.turn("/touch there\n/die");
    talk.run_over();
    // The agent had greeted: its conversation exists, and it will not take it up again.
    assert!(interrupted(&talk.over(), "crash").contains("signal 9"));
    let end = talk.ask("/recall");
    assert!(interrupted(&end, "crash").starts_with("resume_refused: "));
}

/// A cancel is not undone by the way back to the agent, and neither is a stop.
#[test]
fn a_cancel_and_a_stop_hold_while_the_agent_comes_back() {
    let stage = Stage::with(&["--start-delay", "700"], "");
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    talk.ask("/die");
    talk.turn("/say never");
    talk.until("run.started");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert!(talk.answer_to("/recall").starts_with("I know 2 earlier prompts"));
    talk.ask("/die");
    talk.turn("/say never");
    talk.until("run.started");
    talk.stop();
    assert_eq!(talk.until("session.ended")["data"]["how"], "stopped");
    assert!(!talk.said().contains("never"));
}

/// Going on by itself is a policy, and only for what a crash cut off.
#[test]
fn a_turn_that_a_crash_cut_off_is_gone_on_with_where_that_is_the_policy() {
    let settings = "auto_resume = true\nauto_resume_prompt = \"/recall\"\n";
    let stage = Stage::with(&[], settings);
    let mut talk = stage.talk();
    interrupted(&talk.ask("/say at work\n/die"), "crash");
    let end = talk.over();
    assert_eq!(end["data"]["outcome"], "completed", "{end:#}");
    assert!(talk.said().contains("I know 1 earlier prompt"), "{}", talk.said());
    let started = talk.all("turn.started");
    assert_eq!(started.len(), 2);
    let name = started[1]["data"]["client_turn_id"].as_str().unwrap_or_default();
    assert!(name.starts_with("auto-resume:turn_"), "{name}");
    assert_eq!(started[1]["actor"]["name"], "auto-resume");
}

#[test]
fn an_agent_that_dies_each_time_comes_to_rest() {
    let settings = "auto_resume = true\nauto_resume_prompt = \"/die\"\n";
    let stage = Stage::with(&[], settings);
    let mut talk = stage.talk();
    interrupted(&talk.ask("/die"), "crash");
    interrupted(&talk.over(), "crash");
    // A turn of one's own shows that nothing else was begun.
    assert_eq!(talk.answer_to("/say here"), "here");
    assert_eq!(talk.all("turn.started").len(), 3);
}

#[test]
fn a_turn_that_somebody_ended_is_not_gone_on_with() {
    let stage = Stage::with(&[], "auto_resume = true\ncancel_grace_ms = 100\n");
    let mut talk = stage.talk();
    talk.turn("/ignore-cancel\n/say at work\n/wait-file nowhere");
    talk.until("message");
    talk.cancel();
    interrupted(&talk.over(), "user");
    assert_eq!(talk.answer_to("/say here"), "here");
    assert_eq!(talk.all("turn.started").len(), 2);
}
