//! Permissions: durable questions, judged by policy first, answered once.

use serde_json::{Value, json};

use super::kit::{Stage, Talk, interrupted};
use crate::support::{Answer, Caller};

fn asked(talk: &mut Talk<'_>) -> String {
    talk.until("gate.opened")["data"]["gate"].as_str().unwrap().to_owned()
}

fn answer(talk: &Talk<'_>, gate: &str, option: &str) -> Answer {
    talk.post(&format!("gates/{gate}"), &json!({"option": option}))
}

#[test]
fn the_first_answer_wins_and_the_same_again_changes_nothing() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/ask May I go on?");
    let gate = asked(&mut talk);
    let opened = talk.all("gate.opened")[0].clone();
    assert_eq!(
        (&opened["data"]["title"], &opened["data"]["kind"]),
        (&json!("May I go on?"), &json!("permission"))
    );
    assert_eq!(opened["data"]["options"].as_array().unwrap().len(), 3);
    assert_eq!(answer(&talk, &gate, "maybe").status, 422);
    let first = answer(&talk, &gate, "allow");
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!(talk.said(), "permission: allow_once");
    let again = answer(&talk, &gate, "allow_once");
    assert_eq!(again.status, 200, "{}", again.text());
    let other = answer(&talk, &gate, "deny");
    assert_eq!((other.status, other.code()), (409, "gate_already_answered".to_owned()), "{}", other.text());
    talk.catch_up();
    assert_eq!(talk.all("gate.answered").len(), 1);
    assert_eq!(talk.said(), "permission: allow_once");
}

#[test]
fn a_rejection_reaches_the_agent() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/ask-tool deploy Deploy it all");
    let gate = asked(&mut talk);
    answer(&talk, &gate, "deny");
    assert_eq!(talk.over()["data"]["outcome"], "completed", "the agent goes on without");
    assert_eq!(talk.all("tool.returned")[0]["data"]["is_error"], true);
    assert_eq!(talk.said(), "permission: reject_once");
}

#[test]
fn questions_are_answered_in_any_order() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/spawn one /ask First?\n/spawn two /ask Second?\n/join");
    let children =
        [(); 2].map(|()| talk.until("session.child_linked")["data"]["child"].as_str().unwrap().to_owned());
    let mut first = stage.follow(&children[0]);
    let mut second = stage.follow(&children[1]);
    let (one, two) = (asked(&mut first), asked(&mut second));
    assert_eq!(answer(&second, &two, "deny").status, 200);
    assert_eq!(answer(&first, &one, "always").status, 200);
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!(talk.said(), "child one: permission: allow_alwayschild two: permission: reject_once");
}

#[test]
fn a_question_nobody_waits_for_is_void() {
    let stage = Stage::with(&[], "cancel_grace_ms = 300\n");
    let mut talk = stage.talk();
    let ends: [(&str, &str); 2] = [("cancel", "user"), ("die", "crash")];
    for (how, cause) in ends {
        talk.turn("/ask May I?");
        let gate = asked(&mut talk);
        if how == "cancel" {
            talk.cancel();
        } else {
            let [agent] = super::kit::pids_of(&talk.run(), "lanyard")[..] else { panic!("one agent") };
            let agent = rustix::process::Pid::from_raw(agent).unwrap();
            rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
        }
        interrupted(&talk.over(), cause);
        assert_eq!(talk.until("gate.withdrawn")["data"]["gate"], json!(gate));
        let late = answer(&talk, &gate, "allow");
        assert_eq!((late.status, late.code()), (409, "gate_void".to_owned()), "{}", late.text());
    }
}

#[test]
fn policy_comes_before_people() {
    let stage = Stage::of(&[
        ("free", &[], "permissions = { default = \"allow\" }\n"),
        ("strict", &[], "permissions = { default = \"deny\", allow = [\"look\"] }\n"),
        ("mixed", &[], "permissions = { deny = [\"delete\"], allow = [\"look\"] }\n"),
    ]);
    let mut free = stage.talk_with("free");
    assert_eq!(free.answer_to("/ask Delete it?"), "permission: allow_once");
    let answered = free.all("gate.answered")[0];
    assert_eq!(answered["actor"]["name"], "policy", "{answered:#}");
    let mut strict = stage.talk_with("strict");
    assert_eq!(strict.answer_to("/ask Delete it?"), "permission: reject_once");
    assert_eq!(strict.answer_to("/ask Look at it?"), "permission: allow_once");
    let mut mixed = stage.talk_with("mixed");
    assert_eq!(mixed.answer_to("/ask Look and delete?"), "permission: reject_once");
    mixed.turn("/ask Paint it?");
    let gate = asked(&mut mixed);
    assert_eq!(answer(&mixed, &gate, "allow").status, 200);
    assert_eq!(mixed.over()["data"]["outcome"], "completed");
}

/// S4-B08: files in a repository tighten, never loosen.
#[test]
fn a_repository_can_only_be_stricter() {
    let stage = Stage::of(&[
        ("free", &[], "permissions = { default = \"allow\" }\n"),
        ("strict", &[], "permissions = { default = \"deny\" }\n"),
    ]);
    std::fs::create_dir(stage.file(".lanyard")).unwrap();
    std::fs::write(stage.file(".lanyard/permissions.toml"), "default = \"allow\"\ndeny = [\"delete\"]\n")
        .unwrap();
    let mut free = stage.talk_with("free");
    assert_eq!(free.answer_to("/ask Delete it?"), "permission: reject_once");
    assert_eq!(free.answer_to("/ask Paint it?"), "permission: allow_once");
    let mut strict = stage.talk_with("strict");
    assert_eq!(strict.answer_to("/ask Paint it?"), "permission: reject_once");
    // Rules nobody understands are asked about.
    std::fs::write(stage.file(".lanyard/permissions.toml"), "allow = [\"paint\"]\n").unwrap();
    free.turn("/ask Paint it?");
    let gate = asked(&mut free);
    answer(&free, &gate, "deny");
    assert_eq!(free.over()["data"]["outcome"], "completed");
}

/// An agent's token can never answer a gate, also not one of its own session.
#[test]
fn an_agent_cannot_answer_itself() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/ask May I?");
    let gate = asked(&mut talk);
    let token = |role: &Value| stage.post("/tokens", role).json()["token"].as_str().unwrap().to_owned();
    for role in [
        json!({"role": "agent", "name": "it", "session": talk.id}),
        json!({"role": "observer", "name": "wall"}),
    ] {
        let caller = Caller { token: token(&role), ..stage.daemon.caller() };
        let path = format!("/api/v1/sessions/{}/gates/{gate}", talk.id);
        let body = json!({"option": "allow"}).to_string();
        let refused = caller.try_request("POST", &path, &[], Some(&body)).unwrap();
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    talk.catch_up();
    assert_eq!(talk.all("gate.answered").len(), 0);
    assert_eq!(answer(&talk, &gate, "allow").status, 200);
    assert_eq!(talk.over()["data"]["outcome"], "completed");
}
