//! A supervisor is killed, alone or with the daemon: what it looked after is ended, also what tried to get away.

use serde_json::json;

use super::kit::{Stage, kill_9, lives, state, wait};
use super::story::gist;

/// Starts processes in every way that gets them away from their parents, and waits.
const SCATTER: &str = "/say I begin\n\
    /fork-away sh -c 'echo $$ >> scattered; exec sleep 600'\n\
    /run (setsid sh -c 'echo $$ >> scattered; exec sleep 600' >/dev/null 2>&1 &)\n\
    /run (trap '' TERM HUP; setsid sh -c 'echo $$ >> scattered; while :; do sleep 1; done' >/dev/null 2>&1 &)\n\
    /run while [ $(wc -l < scattered) -lt 3 ]; do sleep 0.02; done\n\
    /touch began\n\
    /wait-file never";

/// A turn with processes all over the place, and their numbers.
fn scattered() -> (Stage, String, Vec<u32>) {
    let stage = Stage::new();
    let session = stage.started(SCATTER);
    stage.until_file("began");
    let mut pids = stage.pids("scattered");
    assert_eq!(pids.len(), 3);
    pids.push(stage.agent());
    assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    (stage, session, pids)
}

/// The session says what became of it, nothing lives, and the conversation goes on in a new process.
fn lost_and_gone(stage: Stage, session: &str, pids: &[u32]) {
    let shown = stage.until_at_rest(session);
    assert_eq!(state(&shown), "interrupted crash");
    assert!(pids.iter().all(|pid| !lives(*pid)), "{:?}", stage.processes());
    stage.nothing_is_left();
    let ended = stage.events(session, "run.ended");
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!(ended[0]["data"]["how"], json!({"kind": "lost"}));
    let listed = ended[0]["data"]["receipt"]["processes"].as_array().unwrap().len();
    assert!(listed >= 3, "the receipt lists who was ended: {ended:#?}");
    assert!(gist(&stage, session).contains(&"message agent: I begin".to_owned()), "what it said is kept");
    stage.prompt(session, "/recall");
    stage.until(session, |shown| shown["state"] == "between_turn");
    let ready = stage.events(session, "run.ready");
    assert_eq!(ready.last().unwrap()["data"]["continuity"], "native");
    assert!(gist(&stage, session).iter().any(|line| line.contains("I know 1 earlier prompt")));
    stage.end();
}

#[test]
fn a_shim_that_is_killed_takes_its_run_with_it() {
    let (stage, session, pids) = scattered();
    kill_9(stage.shim());
    lost_and_gone(stage, &session, &pids);
}

#[test]
fn a_daemon_and_then_its_shim_are_killed() {
    let (mut stage, session, pids) = scattered();
    stage.daemon.kill_9();
    let shim = stage.shim();
    kill_9(shim);
    assert!(wait(|| !lives(shim)));
    stage.up();
    lost_and_gone(stage, &session, &pids);
}

#[test]
fn a_shim_and_then_its_daemon_are_killed() {
    let (mut stage, session, pids) = scattered();
    let shim = stage.shim();
    kill_9(shim);
    stage.daemon.kill_9();
    assert!(wait(|| !lives(shim)));
    stage.up();
    lost_and_gone(stage, &session, &pids);
}

/// The daemon dies again while it sweeps, and the next one sweeps.
#[test]
fn a_sweep_that_is_cut_short_is_done_again() {
    let (mut stage, session, pids) = scattered();
    stage.daemon.kill_9();
    let shim = stage.shim();
    kill_9(shim);
    assert!(wait(|| !lives(shim)));
    stage.up_to("in_recover:1+20000");
    stage.up_to("before_run_end:1");
    stage.up();
    lost_and_gone(stage, &session, &pids);
}

/// Subagents live in the same process: they are told of its end, those at work and those at rest.
#[test]
fn the_subagents_of_a_lost_run_are_told() {
    for restart in [false, true] {
        let mut stage = Stage::new();
        let session = stage.started(
            "/spawn quick /say soon done\n/join\n\
             /spawn slow /spawn below /wait-file never ; /touch began ; /wait-file never\n/wait-file never",
        );
        stage.until_file("began");
        if restart {
            stage.up();
            stage.until(&session, |shown| shown["run"]["continuity"] == "exact");
        }
        kill_9(stage.shim());
        stage.until_at_rest(&session);
        let mut below = stage.children(&session);
        assert_eq!(below.len(), 2);
        below.extend(stage.children(&below[1]));
        for child in &below {
            let shown = stage.until(child, |shown| shown["run"]["phase"] == "ended");
            assert!(shown["active_turn"].is_null(), "{shown:#}");
            assert_eq!(stage.events(child, "run.ended").len(), 1);
        }
        stage.end();
    }
}
