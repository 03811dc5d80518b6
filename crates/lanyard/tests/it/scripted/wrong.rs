//! Misdeeds, each seen to happen.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{Agent, process, wait_for_file, wait_until};

fn signal(pid: &str, signal: Signal) {
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn a_cancel_can_be_ignored() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/ignore-cancel\n/say ready\n/wait-file go\n/say still here");
    agent.hears(&session, "ready");
    agent.cancel(&session);
    // Answered after the cancel was read, since lines are read in order.
    agent.call("session/list", &json!({}));
    std::fs::write(agent.place.file("go"), "").unwrap();
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "end_turn");
    assert!(agent.said(&session).ends_with("still here"));
}

#[test]
fn words_and_a_late_answer_after_a_cancel() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/stream-after-cancel 3\n/answer-late 20\n/say ready\n/wait-file never");
    agent.hears(&session, "ready");
    agent.cancel(&session);
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "cancelled");
    assert_eq!(agent.said(&session), "readyafter the cancel 1 after the cancel 2 after the cancel 3 ");
}

#[test]
fn lines_that_make_no_sense() {
    let (mut agent, session) = Agent::session(&[]);
    let answer = agent.turn(&session, "/malformed\n/endless 200000\n/unknown-update\n/say sane again");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(agent.noise.len(), 2);
    assert_eq!(agent.noise[1].len(), 200_000);
    assert!(agent.heard.contains(&json!({"some": "json"})));
    assert!(agent.heard.iter().any(|message| message["params"]["sessionId"] == 42));
    assert_eq!(agent.of_kind(&session, "something_nobody_knows").len(), 1);
    assert_eq!(agent.said(&session), "sane again");
}

#[test]
fn an_agent_that_hangs_says_nothing_and_minds_no_cancel() {
    let (mut agent, session) = Agent::session(&[]);
    let id = agent.prompt(&session, "/say before\n/hang\n/say after");
    agent.hears(&session, "before");
    agent.cancel(&session);
    agent.hang_up();
    agent.hear_out();
    assert_eq!((agent.answers(&id), agent.said(&session).as_str()), (0, "before"));
    assert!(agent.exit().success(), "the end of its input ends it");
}

#[test]
fn a_process_that_forked_away_outlives_the_agent() {
    let (mut agent, session) = Agent::session(&[]);
    let own = agent.child.id().to_string();
    agent.turn(&session, "/fork-away exec sh -c 'echo $$ > away.pid; exec sleep 600'\n/say gone");
    let pid = wait_for_file(&agent.place.file("away.pid"));
    let (_, parent, group) = process(&pid).unwrap();
    let (_, _, own_group) = process(&own).unwrap();
    assert_ne!(parent, own);
    assert_ne!(group, own_group);
    agent.child.kill().unwrap();
    agent.exit();
    let alive = process(&pid).is_some();
    signal(&pid, Signal::KILL);
    assert!(alive, "it went with the agent");
    wait_until("the process is gone", || process(&pid).is_none());
}

#[test]
fn a_term_can_be_ignored() {
    let (mut agent, session) = Agent::session(&[]);
    agent.prompt(&session, "/ignore-term\n/say ready\n/wait-file go\n/say still here");
    agent.hears(&session, "ready");
    signal(&agent.child.id().to_string(), Signal::TERM);
    std::fs::write(agent.place.file("go"), "").unwrap();
    agent.hears(&session, "still here");

    let (mut agent, session) = Agent::session(&[]);
    agent.prompt(&session, "/wait-file never");
    signal(&agent.child.id().to_string(), Signal::TERM);
    assert_eq!(agent.exit().signal(), Some(15), "it is ignored on demand only");
}

#[test]
fn an_agent_can_die_and_exit() {
    for (step, killed_by, code) in
        [("/die", Some(9), None), ("/die 15", Some(15), None), ("/exit 7", None, Some(7))]
    {
        let (mut agent, session) = Agent::session(&[]);
        let id = agent.prompt(&session, &format!("/say last words\n{step}\n/wait-file never"));
        agent.hear_out();
        assert_eq!(agent.said(&session), "last words");
        assert_eq!(agent.answers(&id), 0);
        let status = agent.exit();
        assert_eq!((status.signal(), status.code()), (killed_by, code), "{step}");
    }
}

#[test]
fn no_answer_two_answers_and_an_error() {
    let (mut agent, session) = Agent::session(&[]);
    let silent = agent.prompt(&session, "/say one\n/no-answer");
    agent.hears(&session, "one");
    // Free again once the turn is over.
    while agent.turn(&session, "/double-answer\n/late-update").get("error").is_some() {}
    let twice = agent.heard.last().unwrap()["id"].as_str().unwrap().to_owned();
    agent.hears(&session, "late words");
    assert_eq!((agent.answers(&silent), agent.answers(&twice)), (0, 2));
    assert_eq!(agent.heard.last().unwrap()["method"], "session/update", "it comes after the answers");
    let failed = agent.turn(&session, "/error -32000 not logged in\n/say never");
    assert_eq!(failed["error"], json!({"code": -32000, "message": "not logged in"}));
}
