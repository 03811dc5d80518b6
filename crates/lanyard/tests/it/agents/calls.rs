//! What an agent has its client do: files and commands, inside the workspace only.

use super::kit::{Stage, Talk, marked, pids_of};

/// What the newest tool call came back with: whether it failed, and its words.
fn returned(talk: &Talk<'_>) -> (bool, String) {
    let event = *talk.all("tool.returned").last().unwrap();
    let content = &event["data"]["content"];
    let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    (event["data"]["is_error"].as_bool().unwrap(), text)
}

#[test]
fn files_of_the_workspace_are_read_and_written() {
    let stage = Stage::new();
    std::fs::write(stage.file("in.txt"), "some words").unwrap();
    let mut talk = stage.talk();
    talk.answer_to("/read in.txt");
    assert_eq!(returned(&talk), (false, "some words".to_owned()));
    talk.answer_to("/write deep/out.txt other words");
    assert!(!returned(&talk).0, "{:?}", returned(&talk));
    assert_eq!(std::fs::read_to_string(stage.file("deep/out.txt")).unwrap(), "other words");
    talk.answer_to("/read none.txt");
    assert!(returned(&talk).0);
}

#[test]
fn files_outside_are_neither_read_nor_written() {
    let stage = Stage::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "hush").unwrap();
    std::os::unix::fs::symlink(outside.path(), stage.file("way-out")).unwrap();
    let mut talk = stage.talk();
    let mut refused = |step: &str| {
        talk.answer_to(step);
        let (is_error, text) = returned(&talk);
        assert!(is_error && !text.contains("hush"), "{step}: {text}");
    };
    refused(&format!("/read {}", secret.display()));
    refused("/read way-out/secret.txt");
    refused("/read ../../../../../../etc/hostname");
    refused(&format!("/write {} gone", secret.display()));
    refused("/write way-out/new.txt gone");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hush");
    assert!(!outside.path().join("new.txt").exists());
}

#[test]
fn commands_run_in_the_workspace() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.answer_to("/terminal pwd; echo words >&2; exit 3");
    let (is_error, text) = returned(&talk);
    assert!(is_error, "it exited with 3: {text}");
    assert!(text.contains(stage.work().to_str().unwrap()) && text.contains("words"), "{text}");
    talk.answer_to("/terminal echo fine");
    assert!(!returned(&talk).0, "{:?}", returned(&talk));
}

/// Commands belong to the run, whoever is their parent.
#[test]
fn commands_end_with_a_cancel_and_with_their_agent() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/terminal touch there; sleep 1000");
    stage.await_file("there");
    talk.until("run.ready");
    let run = talk.run();
    talk.cancel();
    talk.over();
    super::kit::until("the command of a cancelled turn to end", || pids_of(&run, "sleep").is_empty());

    talk.turn("/terminal setsid sleep 1001 & touch here; sleep 1002");
    stage.await_file("here");
    super::kit::until("both commands to run", || pids_of(&run, "sleep").len() == 2);
    talk.stop();
    talk.until("session.ended");
    assert_eq!(marked(&run), Vec::<String>::new());
}
