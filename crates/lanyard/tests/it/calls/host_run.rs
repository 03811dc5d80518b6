//! Agents that run under their own host, under a name that the config has too: who runs a session is a fact of its
//! record.

use super::*;
use crate::support::binary;

/// A daemon whose config has an agent of the same name as the hooked one.
fn daemon_with_claude() -> Daemon {
    let command = serde_json::to_string(&[&binary().display().to_string(), "scripted-agent"]).unwrap();
    let slow = "[stop]\ngraceful_ms = 600000\nimmediate_ms = 600000\n";
    Daemon::start(
        Setup::default().config(&format!("{slow}[agents.claude]\ndriver = \"acp\"\ncommand = {command}\n")),
    )
}

fn hooked(daemon: &Daemon) -> String {
    made(daemon, &json!({ "source": "external", "agent": "claude", "aliases": ["nat-1"], "native": "nat-1" }))
}

fn by_hook(daemon: &Daemon, session: &str, id: &str) -> String {
    let call = json!({ "id": id, "tool": "Bash", "channel": "hook", "proof": "named" });
    let begun = begins(daemon, session, &call);
    if begun["go"] == false {
        return format!("not carried out: {}", first_line(&begun["text"]));
    }
    ends(daemon, session, &call)["blocks"]
        .as_array()
        .unwrap()
        .first()
        .map_or("as it is".to_owned(), first_line)
}

/// FND-R1: a stop of a hooked agent goes 1, 2, 3 with its calls, although the config has an agent of its name.
#[test]
fn fnd_r1_a_hooked_agent_whose_name_is_in_the_config_is_told_each_level() {
    let daemon = daemon_with_claude();
    let session = hooked(&daemon);
    assert_eq!(get(&daemon, &session, "")["driven_by"], "host");
    let rows = daemon.request("GET", "/api/v1/sessions", &[], None).json();
    assert_eq!(rows["sessions"][0]["driven_by"], "host", "{rows}");
    assert_eq!(by_hook(&daemon, &session, "0"), "as it is");
    // A call is written to the log a little after its answer.
    assert!(until(|| get(&daemon, &session, "")["state"] == "between_turn"));
    stop(&daemon, &session, &json!({}));
    let receipt = get(&daemon, &session, "/stop");
    // The record of the call before is written behind, so the state may still be the one of birth.
    assert!(receipt["confirmed"] == false && receipt["state"] != "stopped", "{receipt}");
    assert_eq!(by_hook(&daemon, &session, "1"), "⚠️ SESSION STOP REQUESTED");
    assert_eq!(by_hook(&daemon, &session, "2"), "not carried out: 🛑 SESSION STOP — IMMEDIATE");
    assert_eq!(get(&daemon, &session, "/stop")["confirmed"], false);
    assert_eq!(by_hook(&daemon, &session, "3"), "not carried out: ❌ SESSION TERMINATED");
    assert!(until(|| get(&daemon, &session, "/stop")["confirmed"] == true));
    assert!(!kinds(&daemon, &session).contains(&"run.started".to_owned()));
}

/// FND-R1: pressed to the last level without a call, the session is stopped and the receipt says what may still live.
#[test]
fn fnd_r1_the_end_of_an_agent_of_another_host_is_confirmed_by_its_next_call() {
    let daemon = daemon_with_claude();
    let session = hooked(&daemon);
    for _ in 0..3 {
        stop(&daemon, &session, &json!({}));
    }
    assert!(until(|| get(&daemon, &session, "")["state"] == "stopped"));
    let receipt = get(&daemon, &session, "/stop");
    assert_eq!(receipt["confirmed"], false, "{receipt}");
    assert!(receipt["unconfirmed"].as_str().unwrap().contains("own host"), "{receipt}");
    assert_eq!(by_hook(&daemon, &session, "1"), "not carried out: ❌ SESSION TERMINATED");
    assert_eq!(get(&daemon, &session, "/stop")["confirmed"], true);
}

/// FND-R11: a turn for a session of which only the gateway knows is refused at once.
#[test]
fn fnd_r11_a_message_to_a_gateway_only_session_is_refused_at_once() {
    let daemon = daemon_with_claude();
    let session = external(&daemon);
    for body in [json!({ "prompt": "go" }), json!({ "prompt": "go", "delivery": "queue" })] {
        let refused = post(&daemon, &session, "turns", &body);
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (409, "session_host_run"),
            "{}",
            refused.text()
        );
        assert!(refused.json()["advice"].as_str().unwrap().contains("lanyard guide"));
    }
    let sent = daemon.lanyard(&["send", &session, "go"]);
    assert_eq!(sent.status.code(), Some(1));
    let said = String::from_utf8(sent.stderr).unwrap();
    assert!(said.contains("[session_host_run]"), "{said}");
    assert_eq!(get(&daemon, &session, "")["turns"], 0);
}

/// FND-R8: the answer says which channel will carry the words, and without one which command installs it.
#[test]
fn fnd_r8_the_channel_is_told_before_the_words_are_sent() {
    let daemon = daemon_with_claude();
    let session = hooked(&daemon);
    let none = guide(&daemon, &session, "one");
    assert_eq!(none["delivery"]["channel"], "none", "{none}");
    let said = daemon.lanyard(&["guide", &session, "two"]);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("no channel to the agent is known"), "{said}");
    assert!(
        said.contains("lanyard hook install claude") && !said.contains("in front of the answer"),
        "{said}"
    );
    assert_eq!(whole(&daemon, &session, "1"), "📝 USER GUIDANCE (injected by user):");
    let mcp = guide(&daemon, &session, "three");
    assert_eq!(mcp["delivery"]["channel"], "mcp", "{mcp}");
    by_hook(&daemon, &session, "2");
    let hook = guide(&daemon, &session, "four");
    assert_eq!(
        (&hook["delivery"]["channel"], hook["delivery"].get("advice")),
        (&json!("hook"), None),
        "{hook}"
    );
}

/// FND-R8: `guide --wait` prints when the words were delivered and that the agent went on with them.
#[test]
fn fnd_r8_guide_waits_for_the_acknowledgement() {
    let daemon = daemon_with_claude();
    let session = hooked(&daemon);
    by_hook(&daemon, &session, "0");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| daemon.lanyard(&["guide", &session, "--wait", "look there"]));
        assert!(until(|| get(&daemon, &session, "/guidance")["waiting"].as_array().unwrap().len() == 1));
        assert_eq!(by_hook(&daemon, &session, "1"), "📝 USER GUIDANCE (injected by user):");
        by_hook(&daemon, &session, "2");
        let said = waiting.join().unwrap();
        let text = String::from_utf8(said.stderr).unwrap();
        assert!(said.status.success(), "{text}");
        assert!(text.contains("through hook, call 1") && text.contains("acknowledged"), "{text}");
    });
}

/// FND-R2: with hooks that name the subagent, the parent's connection is shared while the subagent calls.
#[test]
fn fnd_r2_a_hooked_subagent_makes_its_parents_connection_uncertain() {
    let daemon = daemon_with_claude();
    let parent = hooked(&daemon);
    let child = made(&daemon, &json!({ "source": "external", "agent": "explore", "parent": parent }));
    assert_eq!(whole(&daemon, &parent, "0"), "as it is");
    by_hook(&daemon, &child, "1");
    guide(&daemon, &parent, "for the parent");
    assert_eq!(whole(&daemon, &parent, "2"), "as it is", "it may be the subagent's");
    assert_eq!(by_hook(&daemon, &child, "3"), "as it is");
    // The parent's own tool, by its hook: certain.
    assert_eq!(by_hook(&daemon, &parent, "4"), "📝 USER GUIDANCE (injected by user):");
    assert_eq!(whole(&daemon, &parent, "5"), "as it is");
    assert_eq!(get(&daemon, &parent, "/guidance")["waiting"][0]["status"], "delivered");
    // The call that set it to work comes back right after the subagent's last call: each in its order.
    for round in 6..16 {
        by_hook(&daemon, &child, &format!("child-{round}"));
        let task =
            json!({ "id": format!("task-{round}"), "tool": "Task", "channel": "hook", "proof": "named" });
        begins(&daemon, &parent, &task);
        ends(&daemon, &parent, &task);
        guide(&daemon, &parent, "again for the parent");
        let said = whole(&daemon, &parent, &format!("parent-{round}"));
        assert_eq!(said, "📝 USER GUIDANCE (injected by user):", "round {round}");
    }
}
