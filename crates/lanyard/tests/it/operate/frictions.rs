//! FND-N16: frictions that new users met, each gone. Others are tested where their subject is: names, completions, the
//! reloaded config, packages, the transcript, `attach`, plans.

use serde_json::Value;

use super::stage::{Stage, text};

/// `lanyard run fix the test` was refused: a message needed quotes.
#[test]
fn fnd_n16_a_message_needs_no_quotes() {
    let stage = Stage::new();
    let ran = stage.run(&["--name", "tea", "/say", "hello", "to", "you"]);
    assert_eq!(text(&ran.stdout), "hello to you\n", "{}", text(&ran.stderr));
    let sent = stage.lanyard(&["send", "tea", "/say", "and", "again", "--when", "next"]);
    assert_eq!(text(&sent.stdout), "and again\n", "{}", text(&sent.stderr));
    let guided = stage.lanyard(&["guide", "tea", "mind", "the", "gap"]);
    assert!(guided.status.success(), "{}", text(&guided.stderr));
    assert!(text(&stage.lanyard(&["guidance", "tea"]).stdout).contains("mind the gap"));
    let nothing = stage.lanyard(&["run"]);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing.stderr));
}

/// `down` left agents running and did not say so.
#[test]
fn fnd_n16_down_says_what_keeps_running() {
    let mut stage = Stage::new();
    let working = stage.detached("/say! at it\n/wait-file go\n/say! done");
    let asking = stage.detached("/ask May I?");
    stage.until(&working, |shown| shown["state"] == "executing");
    stage.until(&asking, |shown| shown["gates"].as_array().is_some_and(|gates| !gates.is_empty()));
    let down = stage.lanyard(&["down"]);
    assert_eq!(
        text(&down.stderr),
        "the daemon has ended; the agents of 1 session at work and 1 waiting for you keep running, and `lanyard up \
         --detach` takes them over\n"
    );
    assert!(stage.daemon.wait().success());
    stage.daemon.try_start().unwrap();
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    stage.until_at_rest(&working);
    assert!(text(&stage.lanyard(&["log", &working]).stdout).contains("done"));
    assert!(stage.lanyard(&["answer", &asking, "allow"]).status.success());
    stage.until_at_rest(&asking);
    let down = stage.lanyard(&["down", "--json"]);
    let said: Value = serde_json::from_slice(&down.stdout).unwrap();
    assert_eq!(said, serde_json::json!({ "running": false, "working": 0, "waiting": 0 }));
    assert!(stage.daemon.wait().success());
    stage.daemon.try_start().unwrap();
}

/// Shapes of JSON differed between commands: every list is `items` and `next`.
#[test]
fn fnd_n16_every_list_has_the_same_shape() {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/ask May I?");
    stage.until(&session, |shown| shown["gates"].as_array().is_some_and(|gates| !gates.is_empty()));
    let plan = ["plan", "new", "The shop", "--name", "shop", "--workspace", "/tmp"];
    assert!(stage.lanyard(&plan).status.success());
    let task = ["task", "add", "the api", "--plan", "shop", "--task-key", "api", "--agent", "scripted"];
    assert!(stage.lanyard(&task).status.success());
    let id = session.as_str();
    let lists: [&[&str]; 22] = [
        &["ls"],
        &["tree"],
        &["top", "--once"],
        &["turns", id],
        &["inbox", id],
        &["approvals"],
        &["approvals", id],
        &["guidance", id],
        &["checkpoints", id],
        &["audit"],
        &["audit", "--kind", "change"],
        &["notifications"],
        &["plan", "ls"],
        &["task", "ls"],
        &["task", "show", "api", "--log"],
        &["flow", "ls"],
        &["workers"],
        &["mailbox"],
        &["agents"],
        &["token", "ls"],
        &["mcp", "ls"],
        &["doctor"],
    ];
    for words in lists {
        let output = stage.lanyard(&[words, &["--json"]].concat());
        let said = text(&output.stderr);
        let list: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {said}"));
        assert!(list["items"].is_array(), "{words:?}: {list:#}");
        assert!(
            list.get("next").is_some_and(|next| next.is_null() || next.is_string()),
            "{words:?}: {list:#}"
        );
    }
}
