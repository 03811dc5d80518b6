//! Stops that concern more than one session.

use super::*;

fn child(daemon: &Daemon, parent: &str) -> String {
    made(daemon, &json!({ "source": "external", "agent": "executor", "parent": parent }))
}

/// S0-B17: one session, or the whole subtree; children born later inherit; taken back, it is taken back everywhere.
#[test]
fn a_stop_of_the_subtree_reaches_all_below_and_those_born_later() {
    let daemon = daemon();
    let hub = external(&daemon);
    let one = child(&daemon, &hub);
    let below = child(&daemon, &one);
    let alone = stop(&daemon, &hub, &json!({}));
    assert_eq!((&alone["untouched"], alone.get("below")), (&json!(2), None), "{alone}");
    assert_eq!(post(&daemon, &hub, "stop/withdraw", &json!({})).status, 200);

    let all = stop(&daemon, &hub, &json!({ "scope": "subtree" }));
    let reached: Vec<&str> =
        all["below"].as_array().unwrap().iter().map(|one| one["session"].as_str().unwrap()).collect();
    assert_eq!(reached, [one.as_str(), below.as_str()], "{all}");
    let late = child(&daemon, &one);
    for session in [&hub, &one, &below, &late] {
        assert_eq!(whole(&daemon, session, "1"), "⚠️ SESSION STOP REQUESTED", "{session}");
    }
    let back = post(&daemon, &hub, "stop/withdraw", &json!({})).json();
    assert_eq!(back["below"].as_array().unwrap().len(), 3, "{back}");
    for session in [&hub, &one, &below, &late] {
        assert_eq!(whole(&daemon, session, "2"), "as it is", "{session}");
    }
}

/// S0-49, S0-O8, S0-T17: the parent hears of it with its next call, what the child left is told, and it goes on.
#[test]
fn a_parent_is_told_of_a_child_that_was_stopped_and_what_it_left() {
    let daemon = daemon();
    let hub = external(&daemon);
    let executor = child(&daemon, &hub);
    for signal in [
        json!({ "type": "said", "role": "agent", "text": "half of the tests pass" }),
        json!({ "type": "file_changed", "path": "src/lib.rs" }),
        json!({ "type": "tool_called", "call": "c9", "tool": "cargo test" }),
    ] {
        assert_eq!(post(&daemon, &executor, "signals", &signal).status, 201);
    }
    stop(&daemon, &executor, &json!({ "reason": "wrong branch" }));
    for _ in 0..2 {
        stop(&daemon, &executor, &json!({}));
    }
    assert!(until(|| get(&daemon, &executor, "")["state"] == "stopped"));
    let told = || get(&daemon, &hub, "/guidance")["waiting"].as_array().unwrap().len() == 1;
    assert!(until(told), "{}", get(&daemon, &hub, "/guidance"));
    begins(&daemon, &hub, &call("1"));
    let block = ends(&daemon, &hub, &call("1"))["blocks"][0].as_str().unwrap().to_owned();
    assert!(block.starts_with("⚠️ SUBAGENT INTERRUPTED:\n"), "{block}");
    for part in
        ["executor", &executor, "wrong branch", "half of the tests pass", "src/lib.rs", "cargo test", "plan"]
    {
        assert!(block.contains(part), "no {part} in {block}");
    }
    assert_eq!(get(&daemon, &hub, "")["status"], "active", "the parent is not stopped");
    assert!(until(|| kinds(&daemon, &executor).contains(&"notice.sent".to_owned())));
}

/// S0-50, S0-B18: no parent, nobody to tell; a parent that has ended, then the nearest ancestor that lives.
#[test]
fn the_nearest_ancestor_that_lives_is_told() {
    let daemon = daemon();
    let hub = external(&daemon);
    let middle = child(&daemon, &hub);
    let leaf = child(&daemon, &middle);
    assert_eq!(post(&daemon, &middle, "complete", &json!({})).status, 200);
    for _ in 0..3 {
        stop(&daemon, &leaf, &json!({}));
    }
    // That the one between has ended may be told there as well, by mail, before or after.
    let about_leaf = |note: &Value| note["text"].as_str().is_some_and(|text| text.contains(&leaf));
    let told = || get(&daemon, &hub, "/guidance")["waiting"].as_array().unwrap().iter().any(about_leaf);
    assert!(until(told), "{}", get(&daemon, &hub, "/guidance"));
    let alone = external(&daemon);
    for _ in 0..3 {
        stop(&daemon, &alone, &json!({}));
    }
    assert!(until(|| get(&daemon, &alone, "")["state"] == "stopped"));
    assert!(!kinds(&daemon, &alone).contains(&"notice.sent".to_owned()));
}
