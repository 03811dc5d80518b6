//! Agents and workspaces that cannot work: a clear event with a stable code, and a daemon that took no harm.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

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

/// A turn without a folder to work in: it failed, and nothing of it is in doubt.
fn failed(talk: &mut Talk<'_>, code: &str) -> String {
    talk.turn("/say never");
    let ended = talk.until("run.ended");
    assert_eq!(ended["data"]["how"], json!({"kind": "not_started", "code": code}), "{ended:#}");
    let end = talk.over();
    assert_eq!(
        (&end["type"], &end["data"]["outcome"]),
        (&json!("turn.finished"), &json!("failed")),
        "{end:#}"
    );
    let reason = end["data"]["reason"].as_str().unwrap_or_default().to_owned();
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

/// FND-N2: refused where the agent is named, with the program and what to do.
#[test]
fn fnd_n2_a_program_that_is_not_there_is_refused_by_its_name() {
    for command in ["/nowhere/at/all", "no-such-agent-anywhere"] {
        let stage = Stage::program(&[command], "");
        let refused = stage.post("/sessions", &json!({"agent": "a", "workspace": stage.work()}));
        assert_eq!((refused.status, refused.code().as_str()), (422, "agent_program_missing"));
        assert!(refused.text().contains(command), "{}", refused.text());
        for words in [&["run", "--agent", "a", "hello"][..], &["new", "--agent", "a"]] {
            let said = stage.daemon.lanyard(words);
            let stderr = String::from_utf8_lossy(&said.stderr).into_owned();
            assert_eq!(said.status.code(), Some(1), "{stderr}");
            assert!(stderr.contains("[agent_program_missing]") && stderr.contains(command), "{stderr}");
            assert!(stderr.contains("`command` under `[agents.a]`"), "{stderr}");
        }
        stage.is_unharmed();
    }
}

/// FND-N2: a program that goes while its session rests is missed by the next turn, at once.
#[test]
fn fnd_n2_a_program_that_was_removed_is_missed_at_the_next_turn() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent");
    std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let stage = Stage::program(&[program.to_str().unwrap()], "");
    let talk = stage.talk();
    std::fs::remove_file(&program).unwrap();
    let refused = talk.try_turn("/say never");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (409, "agent_program_missing"),
        "{}",
        refused.text()
    );
    let sent = stage.daemon.lanyard(&["send", &talk.id, "hello"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&sent.stderr).contains("[agent_program_missing]"));
}

#[test]
fn a_program_that_cannot_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let stage = Stage::program(&[path.to_str().unwrap()], "");
    let refused = stage.post("/sessions", &json!({"agent": "a", "workspace": stage.work()}));
    assert_eq!((refused.status, refused.code().as_str()), (422, "agent_program_missing"));
    assert!(refused.text().contains("not executable"), "{}", refused.text());
    stage.is_unharmed();
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

/// FND-D12: refused before there is a session.
#[test]
fn fnd_d12_a_workspace_that_cannot_be_worked_in_is_refused() {
    let stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let file = stage.file("file");
    std::fs::write(&file, "").unwrap();
    for (workspace, code) in [
        (json!("/nowhere/at/all"), "workspace_missing"),
        (json!(file), "workspace_missing"),
        (json!("~/nowhere/at/all"), "workspace_missing"),
        (json!("relative/place"), "workspace_relative"),
    ] {
        let refused = stage.post("/sessions", &json!({"agent": "a", "workspace": workspace}));
        assert_eq!((refused.status, refused.code().as_str()), (422, code), "{workspace}");
        assert!(refused.json()["advice"].as_str().is_some_and(|advice| !advice.is_empty()));
    }
    let task = json!({"title": "t", "prompt": "x", "agent": "a", "workspace": "/nowhere/at/all"});
    assert_eq!(stage.post("/tasks", &task).code(), "workspace_missing");
    let said = stage.daemon.lanyard(&["new", "--agent", "a", "--workspace", "/nowhere/at/all"]);
    assert_eq!(said.status.code(), Some(2), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(stage.get("/sessions")["sessions"], json!([]));
    let mut nowhere = stage.talk_of(&json!({"agent": "a"}));
    failed(&mut nowhere, "workspace_missing");
    assert_eq!(nowhere.record()["state"], "between_turn");
}

/// FND-D12: the home of the daemon's user.
#[test]
fn fnd_d12_a_tilde_stands_for_the_daemons_home() {
    let stage = Stage::new();
    let home = std::env::var("HOME").unwrap();
    let talk = stage.talk_of(&json!({"agent": "a", "workspace": "~/"}));
    assert_eq!(
        talk.record()["workspace"].as_str().unwrap().trim_end_matches('/'),
        home.trim_end_matches('/')
    );
}

/// FND-D12: the turn failed for a clear reason, and nothing of it is uncertain.
#[test]
fn fnd_d12_a_workspace_that_vanished_between_two_turns() {
    let stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let place = stage.file("deep");
    std::fs::create_dir(&place).unwrap();
    let mut talk = stage.talk_of(&json!({"agent": "a", "workspace": place}));
    talk.answer_to("/say one");
    talk.ask("/die");
    std::fs::remove_dir(&place).unwrap();
    let reason = failed(&mut talk, "workspace_missing");
    assert!(reason.contains("vanished"), "{reason}");
    let turns = stage.get(&format!("/sessions/{}/turns", talk.id));
    assert!(turns["turns"].as_array().unwrap().iter().any(|turn| turn["status"] == "failed"), "{turns:#}");
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
    let new = json!({"agent": "nobody-we-know", "driven_by": "nobody", "workspace": stage.work()});
    let mut talk = stage.talk_of(&new);
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
