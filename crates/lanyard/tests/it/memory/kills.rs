//! Kills: what was acknowledged is there, once, and found by its words; nothing is there by half.

use std::collections::BTreeSet;

use serde_json::json;

use super::kit::Stage;
use crate::support::{Daemon, Setup};

/// The daemon dies just before and just after an entry is on disk, and at any moment, between write and answer.
#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let mut daemon = Daemon::start(Setup::default());
    let mut acknowledged: BTreeSet<String> = BTreeSet::new();
    let mut tried: BTreeSet<String> = BTreeSet::new();
    let mut died = 0;
    for round in 0..24_u32 {
        let place = ["memory_before_write", "memory_after_write", "before_commit", "after_commit"]
            [usize::try_from(round % 4).unwrap()];
        let armed = Setup::default().env("LANYARD_FAILPOINT", format!("{place}:{}", 1 + round % 5));
        if daemon.try_restart_with(armed).is_ok() {
            for n in 0..8 {
                let word = format!("word{round}x{n}");
                // Half of them take the place of another.
                let name = (n % 2 == 1).then(|| format!("n {n}"));
                let body = json!({ "text": format!("remember {word}"), "name": name });
                tried.insert(word.clone());
                let sent =
                    daemon.caller().try_request("POST", "/api/v1/memory", &[], Some(&body.to_string()));
                match sent {
                    Ok(answer) if answer.status == 201 => {
                        acknowledged.insert(word);
                    }
                    Ok(answer) => panic!("{}", answer.text()),
                    Err(_) => {
                        died += 1;
                        break;
                    }
                }
            }
        }
        daemon.restart_with(Setup::default());
        let page = daemon.request("GET", "/api/v1/memory?limit=500", &[], None).json();
        let texts: Vec<String> = page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["text"].as_str().unwrap().trim_start_matches("remember ").to_owned())
            .collect();
        let unique: BTreeSet<String> = texts.iter().cloned().collect();
        assert_eq!(unique.len(), texts.len(), "each once");
        assert!(unique.is_subset(&tried));
        // Under a name is the last that was acknowledged, or the one that was on its way.
        let replaced = |word: &str| word.ends_with(['1', '3', '5', '7']);
        for word in acknowledged.iter().filter(|word| !replaced(word)) {
            assert!(unique.contains(word), "{word} was acknowledged");
            let found = daemon.request("GET", &format!("/api/v1/memory?query={word}"), &[], None).json();
            assert_eq!(found["entries"].as_array().unwrap().len(), 1, "{word} is not found by its words");
        }
    }
    assert!(died > 12, "it died {died} times only: this proves little");
    assert!(acknowledged.len() > 24, "hardly anything was acknowledged");
    let check = daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!(check["damage"], json!([]));
}

/// A summary that was due when the daemon was killed is made by the next one, once.
#[test]
fn a_summary_that_was_due_is_made_after_a_kill() {
    let settings = "[memory]\nsummary = \"session\"";
    let mut stage = Stage::new(settings);
    let session = stage.session(&json!({}));
    stage.turn(&session, &json!({ "prompt": "/say all green" }));
    let config = super::kit::config(settings, stage.folder.path());
    stage
        .daemon
        .restart_with(Setup::default().config(&config).env("LANYARD_FAILPOINT", "memory_before_write:1"));
    let done = format!("/api/v1/sessions/{session}/complete");
    let _ = stage.daemon.caller().try_request("POST", &done, &[], Some("{}"));
    super::kit::until("the daemon to die", || !stage.daemon.is_alive());
    for _ in 0..2 {
        stage.daemon.restart_with(Setup::default().config(&config));
        super::kit::until("the summary", || stage.texts("").len() == 1);
    }
    let text = stage.texts("").remove(0);
    assert!(text.contains("a ended as completed after 1 turns") && text.contains("all green"), "{text}");
    // Forgotten, it does not come back.
    stage.ok("POST", "/memory/forget", &json!({ "tags": ["summary"] }));
    stage.daemon.restart_with(Setup::default().config(&config));
    stage.ok("POST", "/memory", &json!({ "text": "another" }));
    assert_eq!(stage.texts(""), ["another"]);
}
