//! What happens while no daemon is there is found when one comes back.

use serde_json::json;

use super::kit::{Stage, kill_9, lives, state, wait};
use super::story::{gist, play};

#[test]
fn an_agent_that_died_meanwhile_is_heard_to_its_last_word() {
    let mut stage = Stage::new();
    let session = stage.started(
        "/say before\n/touch a\n/wait-file go\n/say after\n/tool count {}\n/chatter 300 40\n/touch b\n/wait-file never",
    );
    stage.until_file("a");
    let (agent, shim) = (stage.agent(), stage.shim());
    stage.daemon.kill_9();
    stage.touch("go");
    stage.until_file("b");
    kill_9(agent);
    assert!(wait(|| !lives(agent) && !lives(shim)));
    stage.up();
    let shown = stage.until_at_rest(&session);
    assert_eq!(state(&shown), "interrupted crash");
    let gist = gist(&stage, &session);
    let all = gist.concat();
    assert!(all.contains("before") && all.contains("after") && all.contains("00000299"), "{gist:#?}");
    let ended = stage.events(&session, "run.ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0]["data"]["how"], json!({"kind": "signalled", "signal": 9}));
    stage.nothing_is_left();
    stage.end();
}

#[test]
fn a_turn_that_ended_meanwhile_is_completed() {
    let mut stage = Stage::new();
    let session = stage.started("/touch a\n/wait-file go\n/say done\n/touch b");
    stage.until_file("a");
    let agent = stage.agent();
    stage.daemon.kill_9();
    stage.touch("go");
    stage.until_file("b");
    stage.up();
    let shown = stage.until_at_rest(&session);
    assert_eq!(state(&shown), "between_turn");
    assert_eq!(gist(&stage, &session).last().unwrap(), "turn.finished: completed");
    assert_eq!((stage.agent(), shown["run"]["continuity"].as_str()), (agent, Some("exact")));
    stage.end();
}

/// The same for an agent that is gone by then.
#[test]
fn a_turn_that_ended_before_its_agent_did_is_completed() {
    let mut stage = Stage::new();
    let session = stage.started("/touch a\n/wait-file go\n/say done\n/touch b");
    stage.until_file("a");
    let (agent, shim) = (stage.agent(), stage.shim());
    stage.daemon.kill_9();
    stage.touch("go");
    stage.until_file("b");
    let spool = stage.run_folders().remove(0).join("out");
    assert!(wait(|| std::fs::read_to_string(&spool).unwrap().contains("end_turn")));
    kill_9(agent);
    assert!(wait(|| !lives(shim)));
    stage.up();
    let shown = stage.until(&session, |shown| shown["run"]["phase"] == "ended");
    assert_eq!(state(&shown), "between_turn", "{:#?}", stage.log(&session));
    assert_eq!(gist(&stage, &session).last().unwrap(), "turn.finished: completed");
    stage.end();
}

/// A stop that was acknowledged is carried out, whoever comes after; also against an agent that heeds nothing.
#[test]
fn a_stop_is_carried_out_after_the_crash() {
    for stubborn in ["", "/ignore-cancel\n/ignore-term\n"] {
        let mut stage = Stage::with("cancel_grace_ms = 300");
        let session = stage.session();
        stage.up_to("before_stop:1");
        stage.prompt(&session, &format!("{stubborn}/touch began\n/wait-file never"));
        stage.until_file("began");
        let agent = stage.agent();
        let _ = stage.try_post(&format!("/sessions/{session}/stop"), &json!({"reason": "enough"}));
        assert!(wait(|| !stage.daemon.is_alive()));
        assert!(lives(agent));
        stage.up();
        let shown = stage.until(&session, |shown| shown["state"] == "stopped");
        assert!(!lives(agent), "{shown:#}");
        assert_eq!(stage.events(&session, "session.ended").len(), 1);
        assert_eq!(stage.events(&session, "run.ended").len(), 1);
        stage.nothing_is_left();
        stage.end();
    }
}

#[test]
fn a_stop_of_an_agent_that_died_meanwhile_is_confirmed() {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to("before_stop:1");
    stage.prompt(&session, "/touch began\n/wait-file never");
    stage.until_file("began");
    let (agent, shim) = (stage.agent(), stage.shim());
    let _ = stage.try_post(&format!("/sessions/{session}/stop"), &json!({}));
    assert!(wait(|| !stage.daemon.is_alive()));
    kill_9(agent);
    assert!(wait(|| !lives(shim)));
    stage.up();
    stage.until(&session, |shown| shown["state"] == "stopped");
    stage.nothing_is_left();
    stage.end();
}

#[test]
fn a_cancel_is_carried_out_after_the_crash() {
    let mut stage = Stage::new();
    let session = stage.session();
    stage.up_to("before_cancel:1");
    stage.prompt(&session, "/touch began\n/ask May I?\n/say I go on");
    stage.until_asked(&session);
    let _ = stage.try_post(&format!("/sessions/{session}/cancel"), &json!({}));
    let told = play_unanswered(&mut stage, &session);
    assert_eq!(told, "interrupted user");
    assert_eq!(stage.events(&session, "gate.withdrawn").len(), 1);
    assert_eq!(stage.events(&session, "gate.answered").len(), 0);
    stage.prompt(&session, "/recall");
    assert_eq!(play(&mut stage, &session).shown["state"], "between_turn");
    stage.end();
}

fn play_unanswered(stage: &mut Stage, session: &str) -> String {
    assert!(wait(|| !stage.daemon.is_alive()));
    stage.up();
    state(&stage.until_at_rest(session))
}
