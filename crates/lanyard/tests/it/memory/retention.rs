//! S3-31: tags say how long something is kept, and the keeper sees to it.

use serde_json::json;

use super::kit::{Stage, until};
use crate::support::Setup;

const HOUR_MS: i64 = 3_600_000;

/// FND-M12: `retain` is kept whatever other tags an entry has, as the config promises.
#[test]
fn fnd_m12_tags_say_how_long_something_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let start = 1_794_729_600_000_i64;
    let set = |after_ms: i64| std::fs::write(&clock, (start + after_ms).to_string()).unwrap();
    set(0);
    let stage = Stage::with("", |setup: Setup| setup.env("LANYARD_CLOCK_FILE", &clock));
    for (text, tags) in [
        ("discard", json!(["discard"])),
        ("dev test", json!(["dev_test"])),
        ("test to retain", json!(["dev_test", "retain"])),
        ("retain", json!(["retain"])),
        ("usual", json!([])),
    ] {
        stage.ok("POST", "/memory", &json!({ "text": text, "tags": tags }));
    }
    assert_eq!(stage.texts("").len(), 5);
    set(2 * HOUR_MS);
    until("what was to be discarded to go", || stage.texts("").len() == 4);
    assert!(!stage.texts("").contains(&"discard".to_owned()));
    set(8 * 24 * HOUR_MS);
    until("what a test left to go", || stage.texts("").len() == 3);
    set(1_000 * 24 * HOUR_MS);
    // Two looks of the keeper later they are still there: it has swept something that is due now.
    stage.ok("POST", "/memory", &json!({ "text": "soon gone", "tags": ["discard"] }));
    set(1_001 * 24 * HOUR_MS);
    until("the last to go", || stage.texts("").len() == 3);
    let mut left = stage.texts("");
    left.sort();
    assert_eq!(left, ["retain", "test to retain", "usual"]);
}

/// A session that is deleted takes its own memory with it, and leaves long-term memory.
#[test]
fn a_deleted_session_takes_its_own_memory_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    std::fs::write(&clock, "1794729600000").unwrap();
    let stage = Stage::with("", |setup: Setup| setup.env("LANYARD_CLOCK_FILE", &clock));
    let (gone, stays) = (stage.session(&json!({ "mode": "full" })), stage.session(&json!({})));
    for (session, scope, text) in
        [(&gone, "session", "gone"), (&gone, "workspace", "long term"), (&stays, "session", "stays")]
    {
        let body = json!({ "text": text, "session": session, "scope": scope });
        stage.ok("POST", "/memory", &body);
    }
    stage.ok("DELETE", &format!("/sessions/{gone}"), &json!({}));
    until("its memory to go", || stage.texts("").len() == 2);
    let mut left = stage.texts("");
    left.sort_unstable();
    assert_eq!(left, ["long term", "stays"]);
}
