//! What the agent asked of the daemon itself when it died: files, commands, open calls.

use super::kit::{Stage, lives, state, wait};
use super::story::gist;

#[test]
fn a_tool_call_that_was_open_is_told_once_and_returns_once() {
    let mut stage = Stage::new();
    let session = stage.started("/run while [ ! -e go ]; do sleep 0.02; done; echo ran\n/say done");
    stage.until(&session, |_| stage.events(&session, "tool.called").len() == 1);
    stage.up();
    stage.touch("go");
    stage.until_at_rest(&session);
    let called = stage.events(&session, "tool.called");
    assert_eq!(called.len(), 1, "{called:#?}");
    let returned = stage.events(&session, "tool.returned");
    assert_eq!(returned.len(), 1, "{returned:#?}");
    assert_eq!(returned[0]["data"]["content"], "ran\n");
    assert_eq!(returned[0]["data"]["call"], called[0]["data"]["call"]);
    stage.end();
}

/// A command the agent has its client run is lost with the client. It is not run twice, and the agent is told.
#[test]
fn a_command_that_ran_for_the_agent_is_not_run_again() {
    // The child's words carry the log's place past the request that waits for an answer.
    for words in ["", "/spawn busy /wait-file beside ; /say I work beside\n"] {
        let mut stage = Stage::new();
        let script = format!("{words}/terminal echo $$ >> ran; touch running; exec sleep 600\n/say and on");
        let session = stage.started(&script);
        stage.until_file("running");
        if !words.is_empty() {
            stage.touch("beside");
            let child = stage.children(&session).remove(0);
            stage.until_at_rest(&child);
        }
        stage.up();
        let shown = stage.until_at_rest(&session);
        assert_eq!(state(&shown), "between_turn", "{:#?}", stage.log(&session));
        let ran = stage.pids("ran");
        assert_eq!(ran.len(), 1, "run once");
        let returned = stage.events(&session, "tool.returned");
        assert_eq!(returned.len(), 1);
        assert_eq!(returned[0]["data"]["is_error"], true, "{returned:#?}");
        assert!(gist(&stage, &session).iter().any(|line| line.ends_with("and on")));
        stage.end();
        assert!(!lives(ran[0]));
    }
}

#[test]
fn a_file_that_was_written_for_the_agent_is_not_written_again() {
    let mut stage = Stage::new();
    let session = stage.started("/write note first\n/touch written\n/wait-file go\n/read note\n/say done");
    stage.until_file("written");
    stage.daemon.kill_9();
    std::fs::write(stage.work("note"), "changed by hand").unwrap();
    stage.up();
    stage.touch("go");
    stage.until_at_rest(&session);
    let returned = stage.events(&session, "tool.returned");
    assert_eq!(returned.len(), 2, "{returned:#?}");
    assert_eq!(returned[1]["data"]["content"], "changed by hand");
    assert!(wait(|| std::fs::read_to_string(stage.work("note")).unwrap() == "changed by hand"));
    stage.end();
}
