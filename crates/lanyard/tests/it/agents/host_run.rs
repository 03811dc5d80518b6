//! Conversations that an agent has from elsewhere: Lanyard resumes them by the agent's own id, and only when asked to.

use serde_json::json;

use super::kit::Stage;

/// A conversation of the agent's own, which no session of Lanyard's holds any more.
fn elsewhere(stage: &Stage) -> String {
    let mut talk = stage.talk();
    talk.answer_to("remember the blue door\n/say I remember the blue door");
    let native = talk.record()["native"].as_str().unwrap().to_owned();
    let ended = talk.post("complete", &json!({}));
    assert_eq!(ended.status, 200, "{}", ended.text());
    talk.run_over();
    native
}

/// FND-R1: a message to an agent of another host is refused; asked for, Lanyard resumes the conversation and says so.
#[test]
fn fnd_r1_a_conversation_of_another_host_is_resumed_only_when_asked_for() {
    let stage = Stage::new();
    let native = elsewhere(&stage);
    let new = json!({
        "agent": "a", "workspace": stage.work(), "source": "external", "aliases": [native], "native": native,
    });
    let mut talk = stage.talk_of(&new);
    let refused = talk.try_turn("/recall");
    assert_eq!((refused.status, refused.code().as_str()), (409, "session_host_run"), "{}", refused.text());
    assert!(refused.json()["advice"].as_str().unwrap().contains("--resume"), "{}", refused.text());
    let sent = talk.post("turns", &json!({ "prompt": "/recall", "resume": true }));
    assert_eq!(sent.status, 201, "{}", sent.text());
    assert!(sent.json()["warnings"][0].as_str().unwrap().contains("takes the conversation over"));
    let ready = talk.until("run.ready");
    assert_eq!((&ready["data"]["continuity"], &ready["data"]["native"]), (&json!("native"), &json!(native)));
    talk.over();
    assert!(talk.said().contains("I know 1 earlier prompt"), "{}", talk.said());
    assert_eq!(talk.all("session.driven").len(), 1);
    assert_eq!(talk.record()["driven_by"], "lanyard");
}

/// FND-R1: `resume` takes it over too, and never speaks of the same process.
#[test]
fn fnd_r1_resume_of_another_hosts_conversation_is_native() {
    let stage = Stage::new();
    let native = elsewhere(&stage);
    let new = json!({
        "agent": "a", "workspace": stage.work(), "source": "external", "aliases": ["tui"], "native": native,
    });
    let talk = stage.talk_of(&new);
    let said = stage.daemon.lanyard(&["resume", &talk.id, "--json"]);
    let said = String::from_utf8(said.stdout).unwrap();
    let said: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(said["continuity"], "native", "{said}");
}

/// FND-R12: `--native` resumes the agent's own conversation with the first turn; an alias is a name and no more.
#[test]
fn fnd_r12_a_first_turn_says_which_conversation_it_is_of() {
    let stage = Stage::new();
    let native = elsewhere(&stage);
    let work = stage.work().display().to_string();
    let made = stage.daemon.lanyard(&["new", "--agent", "a", "--workspace", &work, "--native", &native]);
    let id = String::from_utf8(made.stdout).unwrap();
    let mut talk = stage.follow(id.trim());
    assert!(talk.answer_to("/recall").contains("I know 1 earlier prompt"), "{}", talk.said());
    assert_eq!(talk.all("run.ready")[0]["data"]["continuity"], "native");

    let aliased =
        stage.talk_of(&json!({ "agent": "a", "workspace": stage.work(), "aliases": ["named-like-one"] }));
    let sent = aliased.try_turn("/recall").json();
    let warning = sent["warnings"][0].as_str().unwrap();
    assert!(warning.contains("a new conversation begins") && warning.contains("--native"), "{warning}");
    let mut aliased = stage.follow(&aliased.id);
    aliased.over();
    assert!(aliased.said().contains("I know no earlier prompt"), "{}", aliased.said());
}
