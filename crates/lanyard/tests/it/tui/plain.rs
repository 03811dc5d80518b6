//! The same two commands for whoever has no terminal.

use serde_json::Value;

use super::text;
use crate::operate::Stage;

#[test]
fn without_a_terminal_a_session_is_text() {
    let stage = Stage::new();
    let id = stage.detached("/say as text");
    stage.until_at_rest(&id);
    assert!(stage.lanyard(&["complete", &id]).status.success());
    let shown = stage.lanyard(&["attach", &id]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(text(&shown.stdout).contains("agent: as text"), "{}", text(&shown.stdout));
    assert!(text(&shown.stderr).contains("no terminal"), "{}", text(&shown.stderr));
    let whole = text(&stage.lanyard(&["attach", "--full", &id]).stdout);
    assert!(whole.lines().next().unwrap().contains("session.created"), "{whole}");
    let short = text(&stage.lanyard(&["attach", "--tail", "2", &id]).stdout);
    assert_eq!(short.lines().count(), 2, "{short}");
    let json = text(&stage.lanyard(&["--json", "attach", &id]).stdout);
    assert!(json.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{json}");
}

#[test]
fn without_a_terminal_a_session_must_be_named() {
    let stage = Stage::new();
    let refused = stage.lanyard(&["attach"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("name one: `lanyard ls` lists them"), "{}", text(&refused.stderr));
    // S3-B09: an unknown one is not found, and nothing is made.
    let unknown = stage.lanyard(&["attach", "sess_01m7n5djg0fayvh8t5cxyjkdnf"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(stage.get("/sessions")["sessions"], serde_json::json!([]));
}

#[test]
fn top_prints_once_for_scripts() {
    let stage = Stage::new();
    let none = stage.lanyard(&["top"]);
    assert!(none.status.success());
    assert!(text(&none.stderr).contains("no sessions"), "{}", text(&none.stderr));
    let id = stage.detached("/say listed");
    stage.until_at_rest(&id);
    let once = text(&stage.lanyard(&["top", "--once"]).stdout);
    assert!(once.contains(&id[id.len() - 6..]) && once.contains("ready for review"), "{once}");
    let rows: Value = serde_json::from_slice(&stage.lanyard(&["top", "--json"]).stdout).unwrap();
    assert_eq!(rows["items"][0]["id"], id.as_str(), "{rows:#}");
}
