//! `lanyard plan watch` in a real terminal.

use serde_json::json;

use super::terminal::Terminal;
use crate::support::{Daemon, Setup};

/// Issue 22: a table that is drawn again in its place, until the plan is over.
#[test]
fn a_plan_is_watched_as_one_table() {
    let daemon = Daemon::start(Setup::default());
    let post = |path: &str, body: serde_json::Value| {
        let answer = daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()));
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
        answer.json()
    };
    let task = |key: &str| json!({ "key": key, "title": key, "prompt": "/say hi", "agent": "demo" });
    let plan = post(
        "/plans",
        json!({ "title": "Release", "name": "release", "workspace": "/tmp", "tasks": [task("api"), task("web")] }),
    );
    let mut terminal = Terminal::lanyard(&daemon, &["plan", "watch", "release"], 100, 30);
    let shown = terminal.until_shows("NOTE");
    assert!(shown.contains("release is draft") && shown.contains("api") && shown.contains("web"), "{shown}");
    post(&format!("/plans/{}/cancel", plan["id"].as_str().unwrap()), json!({}));
    let shown = terminal.until_shows("release is cancelled");
    assert_eq!(terminal.ended(), Some(6), "{shown}");
    let shown = terminal.text();
    assert_eq!(shown.matches("NOTE").count(), 1, "drawn in its place: {shown}");
    assert!(!shown.contains("release is draft:"), "{shown}");
}
