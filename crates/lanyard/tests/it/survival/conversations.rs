//! How a conversation was begun is not forgotten by a daemon that takes it over: the role, the past, the way.

use super::kit::{Stage, kill_9, lives, state, wait};
use super::story::{gist, play};

/// What the agent was asked, as its own files have it.
fn heard(stage: &Stage) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(stage.folder().join("state")).unwrap() {
        all.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    all
}

/// A session with a turn behind it, and no process.
fn with_a_past(settings: &str) -> (Stage, String) {
    let stage = Stage::with(settings);
    let session = stage.started("remember the blue door\n/say I will remember it");
    stage.until_at_rest(&session);
    let (agent, shim) = (stage.agent(), stage.shim());
    kill_9(agent);
    assert!(wait(|| !lives(shim)));
    stage.until(&session, |shown| shown["run"]["phase"] == "ended");
    (stage, session)
}

#[test]
fn the_role_is_told_once_however_often_daemons_die_before_the_first_prompt() {
    let mut stage = Stage::with("instructions = \"You are the gardener.\"");
    let session = stage.session();
    stage.up_to("before_prompt:1");
    stage.prompt(&session, "/say hello");
    assert!(wait(|| !stage.daemon.is_alive()));
    stage.up_to("before_catch_up:1");
    assert!(wait(|| !stage.daemon.is_alive()));
    let told = play(&mut stage, &session);
    assert_eq!(state(&told.shown), "between_turn");
    assert_eq!(heard(&stage).matches("You are the gardener.").count(), 1);
    stage.prompt(&session, "/say hello again");
    stage.until_at_rest(&session);
    assert_eq!(heard(&stage).matches("You are the gardener.").count(), 1);
    stage.end();
}

#[test]
fn the_past_is_told_by_the_daemon_that_takes_the_run_over() {
    for place in ["after_spawn:1", "after_ready:1", "before_prompt:1", "after_prompt:1"] {
        for way in ["preamble", "replay"] {
            let (mut stage, session) = with_a_past(&format!("resume = [\"{way}\"]"));
            let before = heard(&stage).matches("blue door").count();
            stage.up_to(place);
            stage.prompt(&session, "/say where were we");
            let told = play(&mut stage, &session);
            assert_eq!((told.deaths, state(&told.shown).as_str()), (1, "between_turn"), "{place} {way}");
            let now = heard(&stage).matches("blue door").count();
            assert!(now > before, "{place} {way}: nothing of the past reached the agent:\n{}", heard(&stage));
            let ready = stage.events(&session, "run.ready");
            let how = if way == "replay" { "replayed" } else { "preamble" };
            assert_eq!(ready.last().unwrap()["data"]["continuity"], how, "{place}");
            stage.end();
        }
    }
}

#[test]
fn a_conversation_that_is_being_taken_up_again_is_taken_up_once() {
    for place in ["after_spawn:1", "before_report:1", "after_ready:1", "before_prompt:1", "after_prompt:1"] {
        let (mut stage, session) = with_a_past("");
        stage.up_to(place);
        stage.prompt(&session, "/recall");
        let told = play(&mut stage, &session);
        assert_eq!((told.deaths, state(&told.shown).as_str()), (1, "between_turn"), "{place}");
        let gist = gist(&stage, &session);
        assert!(
            gist.iter().any(|line| line.contains("I know 1 earlier prompt: remember")),
            "{place}: {gist:#?}"
        );
        assert_eq!(
            gist.iter().filter(|line| line.ends_with(": I will remember it")).count(),
            1,
            "{place}: {gist:#?}"
        );
        let ready = stage.events(&session, "run.ready");
        assert_eq!((ready.len(), ready[1]["data"]["continuity"].as_str()), (2, Some("native")), "{place}");
        stage.end();
    }
}

/// The agent's own way was refused, and a daemon dies while the second way is under way.
#[test]
fn the_second_way_is_not_taken_for_the_first() {
    for place in ["after_spawn:2", "after_ready:1", "before_prompt:1"] {
        let flags = ["--no-load", "--refuse-resume"];
        let (mut stage, session) = with_a_past("resume = [\"native\", \"preamble\"]");
        stage.add_flags(&flags);
        stage.up_to(place);
        stage.prompt(&session, "/say where were we");
        let told = play(&mut stage, &session);
        assert_eq!((told.deaths, state(&told.shown).as_str()), (1, "between_turn"), "{place}");
        let ready = stage.events(&session, "run.ready");
        assert_eq!((ready.len(), ready[1]["data"]["continuity"].as_str()), (2, Some("preamble")), "{place}");
        assert_ne!(ready[0]["data"]["native"], ready[1]["data"]["native"], "{place}: another conversation");
        stage.end();
    }
}

/// An agent that is run once per turn.
#[test]
fn a_command_that_answers_goes_on_answering() {
    for place in ["none", "after_spawn:1", "after_report:1"] {
        let mut stage = Stage::new();
        stage.add_agent(
            "[agents.once]\ndriver = \"command\"\ncommand = [\"sh\", \"-c\", \
             \"echo one; echo $$ >> pids; touch began; while [ ! -e go ]; do sleep 0.02; done; echo two; echo $0\"]",
        );
        stage.up_to(place);
        let session = stage.session_of("once");
        stage.prompt(&session, "hello");
        stage.until_file("began");
        stage.up();
        stage.touch("go");
        let shown = stage.until_at_rest(&session);
        assert_eq!(state(&shown), "between_turn", "{place} {:#?}", stage.log(&session));
        let gist = gist(&stage, &session);
        let said: Vec<_> = gist.iter().filter(|line| line.starts_with("message")).collect();
        assert_eq!(said, ["message agent: one\ntwo\nhello\n"], "{place} {gist:#?}");
        assert_eq!(stage.pids("pids").len(), 1, "{place}");
        assert_eq!(stage.events(&session, "run.started").len(), 1, "{place}");
        stage.end();
    }
}
