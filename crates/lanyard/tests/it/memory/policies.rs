//! Policies: each session has its own, by value, and takes it into every turn.

use serde_json::json;

use super::kit::{Stage, storing};
use crate::support::Setup;

/// S3-B07: sessions that run at the same time, in one daemon, with every mode. None of them gets another's.
#[test]
fn sessions_at_the_same_time_keep_their_own_policies() {
    // What the environment says is nobody's business.
    let stage = Stage::with("", |setup| {
        setup.env("UA_MEMORY_RUN_TAGS", "leaked").env("UA_MEMORY_LONG_TERM_TAG_ALLOWLIST", "leaked")
    });
    let modes = ["off", "session_only", "selective", "full"];
    let sessions: Vec<(usize, String)> = (0..12)
        .map(|n| {
            let tag = format!("run-{n}");
            let memory = json!({ "mode": modes[n % 4], "tags": [tag], "allow": [format!("mine-{n}")] });
            (n, stage.session(&memory))
        })
        .collect();
    std::thread::scope(|scope| {
        for (n, session) in &sessions {
            let stage = &stage;
            scope.spawn(move || {
                for round in 0..3 {
                    let mine = format!("mine-{n}");
                    // The tag of another session's allow-list is none of this one's.
                    let other = format!("mine-{}", n + 1);
                    let prompt = [
                        storing("session", &format!("s{round}"), &format!("own {n} {round}"), &[]),
                        storing(
                            "workspace",
                            &format!("a{n} {round}"),
                            &format!("mine {n} {round}"),
                            &[&mine],
                        ),
                        storing(
                            "workspace",
                            &format!("b{n} {round}"),
                            &format!("other {n} {round}"),
                            &[&other],
                        ),
                    ]
                    .join("\n");
                    let row = stage.turn(session, &json!({ "prompt": prompt }));
                    assert_eq!(row["memory"]["mode"], modes[n % 4], "{row}");
                    assert_eq!(row["memory"]["tags"], json!([format!("run-{n}")]));
                }
            });
        }
    });
    for (n, session) in &sessions {
        let page = stage.get(&format!("/memory?limit=500&session={session}"));
        let mut texts: Vec<&str> = Vec::new();
        for entry in page["entries"].as_array().unwrap() {
            texts.push(entry["text"].as_str().unwrap());
            let tags: Vec<&str> =
                entry["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
            assert!(tags.contains(&format!("run-{n}").as_str()), "{entry}");
            assert!(
                tags.iter().all(|tag| !tag.starts_with("run-") || **tag == format!("run-{n}")),
                "{entry}"
            );
            assert!(!tags.contains(&"leaked"), "{entry}");
            assert!(entry["turn"].is_string(), "{entry}");
        }
        let count = |begin: &str| texts.iter().filter(|text| text.starts_with(begin)).count();
        let wanted = match modes[n % 4] {
            "off" => [0, 0, 0],
            "session_only" => [3, 0, 0],
            "selective" => [3, 3, 0],
            _ => [3, 3, 3],
        };
        assert_eq!([count("own"), count("mine"), count("other")], wanted, "{n}: {texts:?}");
    }
}

/// S3-32: in the session, in the turn's event, in its row, and where an approval was waited for.
#[test]
fn the_snapshot_is_in_the_session_and_in_every_turn() {
    let stage = Stage::new("");
    let session = stage.session(&json!({ "mode": "selective", "allow": ["API"], "tags": ["dev_test"] }));
    let policy = json!({ "mode": "selective", "tags": ["dev_test"], "allow": ["api"] });
    assert_eq!(stage.get(&format!("/sessions/{session}"))["memory"], policy);
    let row = stage.turn(&session, &json!({ "prompt": "/say hi" }));
    assert_eq!(row["memory"], policy);
    let less = json!({ "prompt": "/ask May I?\n/say done", "memory": { "mode": "session_only" } });
    let sent = stage.ok("POST", &format!("/sessions/{session}/turns"), &less);
    let mut gate = String::new();
    super::kit::until("the question", || {
        let gates = stage.get(&format!("/sessions/{session}/gates"));
        gate = gates["gates"][0]["gate"]["id"]
            .as_str()
            .or(gates["gates"][0]["id"].as_str())
            .unwrap_or("")
            .to_owned();
        !gate.is_empty()
    });
    let tight = json!({ "mode": "session_only", "tags": ["dev_test"], "allow": ["api"] });
    assert_eq!(stage.get(&format!("/sessions/{session}"))["active_turn"]["memory"], tight);
    stage.ok("POST", &format!("/sessions/{session}/gates/{gate}"), &json!({ "option": "allow" }));
    let turn = sent["turn"].as_str().unwrap();
    super::kit::until("the turn to end", || {
        stage.get(&format!("/sessions/{session}/turns/{turn}"))["ended_at"].is_string()
    });
    assert_eq!(stage.get(&format!("/sessions/{session}/turns/{turn}"))["memory"], tight);
    let started: Vec<serde_json::Value> = stage
        .daemon
        .log_after(&session, 0)
        .into_iter()
        .filter(|event| event["type"] == "turn.started")
        .map(|event| event["data"]["memory"].clone())
        .collect();
    assert_eq!(started, [policy, tight]);
    let more = json!({ "prompt": "x", "memory": { "mode": "full" } });
    assert_eq!(stage.refused("POST", &format!("/sessions/{session}/turns"), &more), "memory_policy_wider");
}

/// The refusal an agent reads names the rule, and says what to do.
#[test]
fn an_agent_is_told_which_rule_forbids_it() {
    let stage = Stage::new("");
    let session = stage.session(&json!({ "mode": "session_only" }));
    stage.turn(&session, &json!({ "prompt": storing("workspace", "x", "for all", &[]) }));
    let log = stage.log(&session);
    assert!(log.contains("memory_session_only") && log.contains("use the scope session"), "{log}");
    let view = stage.get(&format!("/sessions/{session}/memory-policy"));
    assert_eq!(view["refused"], json!({ "session_only": 1 }));
}

/// Switching memory off and on again loses nothing, whatever was tried meanwhile.
#[test]
fn memory_off_and_on_again_is_as_it_was() {
    let mut stage = Stage::new("");
    let session = stage.session(&json!({ "mode": "full" }));
    let prompt =
        [storing("session", "a", "kept one", &[]), storing("workspace", "b", "kept two", &["discard"])];
    stage.turn(&session, &json!({ "prompt": prompt.join("\n") }));
    let before = stage.get("/memory");
    assert_eq!(before["entries"].as_array().unwrap().len(), 2);
    // Due long ago, if anybody swept.
    stage.restart("[memory]\nmode = \"off\"\ndiscard_ms = 1\nsummary = \"long_term\"");
    assert_eq!(stage.get("/memory/status")["mode"], "off");
    for (method, path, body) in [
        ("GET", "/memory".to_owned(), json!({})),
        ("POST", "/memory".to_owned(), json!({ "text": "x" })),
        ("POST", "/memory/forget".to_owned(), json!({ "tags": ["discard"] })),
        ("GET", "/memory/export".to_owned(), json!({})),
        ("POST", "/memory/import".to_owned(), json!({ "entries": [] })),
        ("GET", format!("/sessions/{session}/memory"), json!({})),
        ("POST", format!("/sessions/{session}/memory"), json!({ "text": "x" })),
    ] {
        assert_eq!(stage.refused(method, &path, &body), "memory_switched_off", "{method} {path}");
    }
    let row = stage.turn(&session, &json!({ "prompt": storing("session", "a", "lost", &[]) }));
    assert_eq!(row["status"], "completed", "an agent goes on without it");
    stage.ok("POST", &format!("/sessions/{session}/complete"), &json!({}));
    stage.restart("");
    assert_eq!(stage.get("/memory"), before);
}

/// S3-47: tags and allow-list of everything that begins while this daemon runs, by value.
#[test]
fn the_daemons_own_tags_are_on_every_session() {
    let stage = Stage::new("[memory]\ntags = [\"Nightly\"]\nallow = [\"design\"]\ndefault = \"selective\"\n");
    let plain = stage.session(&json!({}));
    let own = stage.session(&json!({ "mode": "off", "tags": ["mine"], "allow": ["other"] }));
    let policy = |session: &str| stage.get(&format!("/sessions/{session}/memory-policy"))["policy"].clone();
    assert_eq!(policy(&plain), json!({ "mode": "selective", "tags": ["nightly"], "allow": ["design"] }));
    assert_eq!(policy(&own), json!({ "mode": "off", "tags": ["mine", "nightly"], "allow": ["other"] }));
}

/// A config that makes no sense is refused at the start, and says what to do.
#[test]
fn a_bad_config_is_refused_at_the_start() {
    for (settings, says) in [
        ("[memory]\nmode = \"maybe\"", "maybe"),
        ("[memory]\ntags = [\"a,b\"]", "cannot be a tag"),
        ("[memory]\ndefault = \"everything\"", "everything"),
        ("[memory.embeddings]\nurl = \"http://127.0.0.1:9/\"", "model"),
        ("[memory.embeddings]\nurl = \"ftp://x\"\nmodel = \"m\"", "http://"),
    ] {
        let mut daemon = crate::support::Daemon::prepare(Setup::default().config(settings));
        let said = daemon.try_start().unwrap_err();
        assert!(said.contains(says), "{settings}: {said}");
    }
}
