//! Misdeeds of the whole process, asked for with flags.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Agent, Place};

fn load(agent: &mut Agent, session: &str) -> Value {
    let params = json!({"sessionId": session, "cwd": agent.place.work(), "mcpServers": []});
    agent.call("session/load", &params)
}

/// A conversation with one prompt, left behind by a process that is gone.
fn left_behind() -> (std::rc::Rc<Place>, String) {
    let (mut agent, session) = Agent::session(&[]);
    agent.turn(&session, "/say first words");
    (std::rc::Rc::clone(&agent.place), session)
}

#[test]
fn a_resume_can_be_refused_empty_or_not_offered() {
    let (place, session) = left_behind();
    let mut agent = Agent::start(&place, &["--refuse-resume"]);
    assert_eq!(load(&mut agent, &session)["error"]["code"], -32002);

    let mut agent = Agent::start(&place, &["--no-load"]);
    let greeting = &agent.heard[0]["result"]["agentCapabilities"];
    assert_eq!(
        (&greeting["loadSession"], greeting["sessionCapabilities"].get("resume")),
        (&json!(false), None)
    );
    assert_eq!(load(&mut agent, &session)["error"]["code"], -32601);

    let mut agent = Agent::start(&place, &["--resume-empty"]);
    assert!(load(&mut agent, &session).get("result").is_some());
    assert!(agent.updates(&session).is_empty());
    agent.turn(&session, "/recall");
    assert_eq!(agent.said(&session), "I know no earlier prompt.");
}

#[test]
fn a_replay_can_come_late() {
    let (place, session) = left_behind();
    let mut agent = Agent::start(&place, &["--late-replay"]);
    assert!(load(&mut agent, &session).get("result").is_some());
    assert!(agent.updates(&session).is_empty());
    agent.hears(&session, "first words");
}

#[test]
fn a_handshake_can_be_bad_or_missing_or_late() {
    let place = Place::new();
    let greet = |flags: &[&str]| {
        Agent::spawn(&place, flags).call("initialize", &json!({"protocolVersion": 1}))["result"].clone()
    };
    assert_eq!(greet(&["--bad-handshake"])["protocolVersion"], 99);
    assert!(greet(&["--bad-handshake=garbage"]).is_array());
    assert_eq!(greet(&["--start-delay", "30"])["protocolVersion"], 1);

    let mut agent = Agent::spawn(&place, &["--silent"]);
    agent.ask("initialize", &json!({"protocolVersion": 1}));
    agent.hang_up();
    agent.hear_out();
    assert!(agent.heard.is_empty());
    assert!(agent.exit().success());
}

#[test]
fn the_end_of_input_and_a_term_can_be_ignored() {
    let (mut agent, session) = Agent::session(&["--ignore-eof", "--ignore-term"]);
    agent.prompt(&session, "/say ready\n/wait-file go\n/say still here");
    agent.hears(&session, "ready");
    kill_process(Pid::from_child(&agent.child), Signal::TERM).unwrap();
    agent.hang_up();
    std::fs::write(agent.place.file("go"), "").unwrap();
    agent.hears(&session, "still here");
}

#[test]
fn a_cancel_while_idle_can_poison_the_next_prompt() {
    for (flags, expected) in [(&["--idle-cancel-poisons"][..], "cancelled"), (&[], "end_turn")] {
        let (mut agent, session) = Agent::session(flags);
        agent.cancel(&session);
        assert_eq!(agent.turn(&session, "/say hello")["result"]["stopReason"], expected);
        assert_eq!(agent.turn(&session, "/say hello")["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn a_cancel_can_wait_for_an_open_question() {
    let (mut agent, session) = Agent::session(&["--cancel-waits-for-permission"]);
    let id = agent.prompt(&session, "/ask May I?\n/say never");
    let question = agent.question("session/request_permission");
    agent.cancel(&session);
    agent.call("session/list", &json!({}));
    assert_eq!(agent.answers(&id), 0);
    agent.tell(&question, &json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(agent.answer(&id)["result"]["stopReason"], "cancelled");
    assert_eq!(agent.said(&session), "");
}

/// Commands do not outlive an agent that ends as it should.
#[test]
fn the_end_of_input_ends_what_runs() {
    let (mut agent, session) = Agent::session(&[]);
    agent.prompt(&session, "/run echo $$ > run.pid; sleep 600; true");
    let pid = super::client::wait_for_file(&agent.place.file("run.pid"));
    agent.hang_up();
    assert!(agent.exit().success());
    assert!(super::client::process(&pid).is_none());
}
