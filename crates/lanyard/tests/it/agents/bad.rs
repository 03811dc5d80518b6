//! Agents and workspaces that cannot work: a clear event with a stable code, and a daemon that took no harm.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::kit::{Stage, Talk, interrupted};

/// A turn that cannot begin: its run's end has the code, its turn's end the sentence, and it is tried once.
fn not_started(talk: &mut Talk<'_>, code: &str) -> String {
    talk.turn("/say never");
    let ended = talk.until("run.ended");
    assert_eq!(ended["data"]["how"], json!({"kind": "not_started", "code": code}), "{ended:#}");
    let reason = interrupted(&talk.over(), "crash");
    assert!(reason.starts_with(&format!("{code}: ")), "{reason}");
    reason
}

/// Nothing happens after the end.
fn tried_once(stage: &Stage, talk: &mut Talk<'_>) {
    stage.is_unharmed();
    talk.catch_up();
    assert_eq!(talk.runs(), 1, "{:#?}", talk.seen);
    assert_eq!(talk.record()["state"], "interrupted");
    stage.is_gone(&talk.run());
}

#[test]
fn a_program_that_is_not_there() {
    for command in ["/nowhere/at/all", "no-such-agent-anywhere"] {
        let stage = Stage::program(&[command], "");
        let mut talk = stage.talk();
        let reason = not_started(&mut talk, "agent_program_missing");
        assert!(reason.contains(command), "{reason}");
        tried_once(&stage, &mut talk);
    }
}

#[test]
fn a_program_that_cannot_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let stage = Stage::program(&[path.to_str().unwrap()], "");
    let mut talk = stage.talk();
    not_started(&mut talk, "agent_not_executable");
    tried_once(&stage, &mut talk);
}

/// Its last words say why.
#[test]
fn a_program_that_exits_at_once() {
    let stage = Stage::program(&["sh", "-c", "echo no licence found >&2; exit 7"], "");
    let mut talk = stage.talk();
    talk.turn("/say never");
    let ended = talk.run_over();
    let reason = interrupted(&talk.over(), "crash");
    assert!(reason.contains("exited with 7") && reason.contains("no licence found"), "{reason}");
    assert_eq!(
        ended["data"]["how"],
        json!({"kind": "not_started", "code": "agent_exited_early"}),
        "{ended:#}"
    );
    tried_once(&stage, &mut talk);
}

#[test]
fn a_greeting_that_cannot_be_understood() {
    for (flag, code) in
        [("--bad-handshake=version", "version_unsupported"), ("--bad-handshake=garbage", "handshake_failed")]
    {
        let stage = Stage::of(&[("a", &[flag], ""), ("b", &[], "")]);
        let mut talk = stage.talk();
        not_started(&mut talk, code);
        tried_once(&stage, &mut talk);
    }
}

#[test]
fn an_agent_that_never_greets() {
    let stage = Stage::of(&[("a", &["--silent"], "handshake_timeout_ms = 300\n"), ("b", &[], "")]);
    let mut talk = stage.talk();
    let reason = not_started(&mut talk, "handshake_timeout");
    assert!(reason.contains("300 ms"), "{reason}");
    tried_once(&stage, &mut talk);
}

#[test]
fn a_program_that_is_no_agent() {
    let stage = Stage::program(
        &["sh", "-c", "while :; do echo this is no agent; sleep 0.05; done"],
        "handshake_timeout_ms = 400\n",
    );
    let mut talk = stage.talk();
    not_started(&mut talk, "handshake_timeout");
    tried_once(&stage, &mut talk);
}

#[test]
fn a_workspace_that_cannot_be_worked_in() {
    let stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let file = stage.file("file");
    std::fs::write(&file, "").unwrap();
    for workspace in [json!("/nowhere/at/all"), json!("relative/place"), json!(file), Value::Null] {
        let mut new = json!({"agent": "a"});
        if !workspace.is_null() {
            new["workspace"] = workspace;
        }
        let mut talk = stage.talk_of(&new);
        not_started(&mut talk, "workspace_missing");
        tried_once(&stage, &mut talk);
    }
}

#[test]
fn a_workspace_that_vanished_between_two_turns() {
    let stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let place = stage.file("deep");
    std::fs::create_dir(&place).unwrap();
    let mut talk = stage.talk_of(&json!({"agent": "a", "workspace": place}));
    talk.answer_to("/say one");
    talk.ask("/die");
    std::fs::remove_dir(&place).unwrap();
    let reason = not_started(&mut talk, "workspace_missing");
    assert!(reason.contains("vanished"), "{reason}");
    // Once it is back, so is the conversation.
    std::fs::create_dir(&place).unwrap();
    assert!(talk.answer_to("/recall").starts_with("I know 2 earlier prompts"));
    stage.is_unharmed();
}

#[test]
fn a_mode_the_agent_does_not_know() {
    let stage = Stage::of(&[("a", &[], "mode = \"flying\"\n"), ("b", &[], "")]);
    let mut talk = stage.talk();
    not_started(&mut talk, "mode_refused");
    tried_once(&stage, &mut talk);
    assert_eq!(talk.said(), "", "nothing was done in another mode");
}

/// Somebody else reports on the session of an agent Lanyard does not run.
#[test]
fn an_unknown_agent_is_somebody_elses() {
    let stage = Stage::new();
    let mut talk = stage.talk_with("nobody-we-know");
    let turn = talk.turn("/say never");
    let said = talk.post("signals", &json!({"type": "said", "role": "agent", "text": "hello"}));
    assert_eq!(said.status, 201, "{}", said.text());
    let done = talk.post("signals", &json!({"type": "turn_finished", "turn": turn, "outcome": "completed"}));
    assert_eq!(done.status, 201, "{}", done.text());
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!((talk.said().as_str(), talk.runs()), ("hello", 0));
    talk.stop();
    talk.catch_up();
    assert_eq!(talk.runs(), 0);
}
