//! The daemon dies at each named place of a turn.

use lanyard_base::failpoint;
use serde_json::json;

use super::kit::{Stage, lives, state};
use super::story::{SCRIPT, gist, play, went_through};

/// A turn in which the daemon dies the n-th time it comes to a place; it is found again and goes through.
fn survives(place: &str, n: u32) {
    let about = format!("{place}:{n}");
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to(&about);
    stage.prompt(&session, SCRIPT);
    let told = play(&mut stage, &session);
    assert_eq!(told.deaths, 1, "{about}: the daemon did not die there");
    went_through(&mut stage, &session, &told, &about);
    stage.end();
}

/// Every place is gone to by some test here: a new one is added to a list below.
#[test]
fn every_place_is_visited() {
    let visited = [
        &STARTING[..],
        &BEGINNING[..],
        &REPORTING[..],
        &ASKING[..],
        &FAMILY[..],
        &["before_run", "before_spawn", "after_cancel", "before_run_end", "after_run_end"],
        &["in_recover", "before_catch_up", "before_cancel", "before_stop", "before_end"],
    ]
    .concat();
    for place in failpoint::OF_AGENTS {
        assert!(visited.contains(&place), "nobody dies at {place}");
    }
}

const STARTING: [&str; 2] = ["after_spawn", "after_ready"];
const BEGINNING: [&str; 2] = ["before_prompt", "after_prompt"];
const REPORTING: [&str; 2] = ["before_report", "after_report"];
const ASKING: [&str; 3] = ["after_gate", "before_answer", "after_answer"];
const FAMILY: [&str; 2] = ["after_child", "after_child_turn"];

#[test]
fn a_daemon_that_dies_while_the_agent_starts_finds_it() {
    for place in STARTING {
        survives(place, 1);
    }
}

#[test]
fn a_daemon_that_dies_around_a_prompt_asks_once() {
    for place in BEGINNING {
        survives(place, 1);
    }
}

#[test]
fn a_daemon_that_dies_before_a_report_reads_it_again() {
    for n in [1, 2, 4, 7] {
        survives(REPORTING[0], n);
    }
}

#[test]
fn a_daemon_that_dies_after_a_report_does_not_repeat_it() {
    // On a busy machine neighbouring reports are joined; seven are told of in any case.
    for n in [2, 3, 6, 7] {
        survives(REPORTING[1], n);
    }
}

#[test]
fn a_daemon_that_dies_around_a_question_has_it_answered_once() {
    for place in ASKING {
        survives(place, 1);
    }
}

#[test]
fn a_daemon_that_dies_around_a_subagent_has_it_once() {
    for place in FAMILY {
        survives(place, 1);
        survives(place, 2);
    }
}

#[test]
fn a_turn_without_a_process_is_lost_and_the_next_one_works() {
    for place in ["before_run", "before_spawn"] {
        let mut stage = Stage::new();
        let session = stage.session();
        stage.up_to(&format!("{place}:1"));
        stage.prompt(&session, SCRIPT);
        let told = play(&mut stage, &session);
        assert_eq!(told.deaths, 1, "{place}");
        assert_eq!(state(&told.shown), "interrupted crash", "{place}");
        stage.nothing_is_left();
        stage.prompt(&session, "/say hello again");
        stage.until(&session, |shown| shown["state"] == "between_turn");
        assert_eq!(gist(&stage, &session).last().unwrap(), "turn.finished: completed", "{place}");
        assert!(stage.pids("pids").is_empty(), "{place}: nothing of the first turn was done");
        stage.end();
    }
}

#[test]
fn a_rule_that_had_not_judged_a_question_judges_it_after_the_crash() {
    let mut stage = Stage::with("permissions = { default = \"allow\" }");
    let session = stage.session();
    stage.up_to("after_gate:1");
    stage.prompt(&session, "/ask May I?\n/say done");
    assert!(super::kit::wait(|| !stage.daemon.is_alive()));
    stage.up();
    stage.until_at_rest(&session);
    assert_eq!(stage.events(&session, "gate.answered").len(), 1);
    assert_eq!(stage.events(&session, "gate.opened").len(), 1);
    assert_eq!(gist(&stage, &session).last().unwrap(), "turn.finished: completed");
    stage.end();
}

#[test]
fn a_cancel_is_carried_out_by_whoever_comes_after() {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to("after_cancel:1");
    stage.prompt(&session, "/say I begin\n/touch began\n/wait-file never\n/say and I go on");
    stage.until_file("began");
    let agent = stage.agent();
    let _ = stage.try_post(&format!("/sessions/{session}/cancel"), &json!({}));
    let told = play(&mut stage, &session);
    assert_eq!(told.deaths, 1);
    assert_eq!(state(&told.shown), "interrupted user");
    assert_eq!(stage.agent(), agent, "the agent heeded its own cancel and is kept");
    assert_eq!(stage.events(&session, "turn.interrupted").len(), 1);
    stage.end();
}

/// FND-R3: the daemon that comes back knows which processes belong to the turn.
#[test]
fn fnd_r3_a_cancel_after_a_restart_ends_the_commands_of_the_turn() {
    let mut stage = Stage::new();
    let script = "/run-on echo $$ > aside; mv aside command; sleep 1000; :\n/touch began\n/wait-file never";
    let session = stage.started(script);
    stage.until_file("began");
    stage.until_file("command");
    let [command] = stage.pids("command")[..] else { panic!("one command") };
    let agent = stage.agent();
    stage.up();
    assert!(lives(command), "a restart ends nothing");
    assert_eq!(stage.post(&format!("/sessions/{session}/cancel"), &json!({})).status, 202);
    let shown = stage.until_at_rest(&session);
    assert!(!lives(command), "{shown:#}");
    assert_eq!(state(&shown), "interrupted user");
    assert_eq!(stage.agent(), agent, "the agent itself is kept");
    stage.end();
}

/// The agent ends by itself; the daemon dies just before or just after it told so.
#[test]
fn the_end_of_a_run_is_told_once() {
    for place in ["before_run_end", "after_run_end"] {
        let mut stage = Stage::new();
        let session = stage.session();
        stage.up_to(&format!("{place}:1"));
        stage.prompt(&session, "/say last words\n/exit 3");
        let told = play(&mut stage, &session);
        assert_eq!(told.deaths, 1, "{place}");
        assert_eq!(state(&told.shown), "interrupted crash", "{place}");
        let ended = stage.events(&session, "run.ended");
        assert_eq!(ended.len(), 1, "{place}: {ended:#?}");
        assert_eq!(ended[0]["data"]["how"], json!({"kind": "exited", "code": 3}), "{place}");
        assert!(gist(&stage, &session).contains(&"message agent: last words".to_owned()), "{place}");
        stage.nothing_is_left();
        stage.prompt(&session, "/recall");
        stage.until_at_rest(&session);
        let ready = stage.events(&session, "run.ready");
        assert_eq!(ready.last().unwrap()["data"]["continuity"], "native", "{place}");
        stage.end();
    }
}

/// The daemon that was to go on with the agent dies as well, and the next, and the next.
#[test]
fn daemons_that_die_while_they_recover_change_nothing() {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.prompt(&session, SCRIPT);
    stage.until_asked(&session);
    for place in ["in_recover:1", "before_catch_up:1", "in_recover:1", "before_report:1", "after_answer:1"] {
        stage.up_to(place);
    }
    let mut told = play(&mut stage, &session);
    told.deaths += 3;
    went_through(&mut stage, &session, &told, "many deaths");
    assert!(stage.events(&session, "run.adopted").len() >= 3);
    stage.end();
}
