//! What is kept on disk: purges, garbage, retention, bounds, backups, and a journal that is lost.

mod attachments;
mod copies;
mod deleting;
mod lost;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Daemon, PATIENCE};

const SECRET: &str = "correct-horse-battery-staple";

/// Waits until something holds.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "{what} does not come true");
        // sleep: between two looks at what another process does.
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn make(daemon: &Daemon, body: &Value) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body.to_string()));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["session"].as_str().unwrap().to_owned()
}

fn say(daemon: &Daemon, session: &str, text: &str) -> u16 {
    let body = json!({"type": "said", "role": "agent", "text": text});
    let path = format!("/api/v1/sessions/{session}/signals");
    daemon.request("POST", &path, &[], Some(&body.to_string())).status
}

fn complete(daemon: &Daemon, session: &str) {
    let done = daemon.request("POST", &format!("/api/v1/sessions/{session}/complete"), &[], Some("{}"));
    assert_eq!(done.status, 200, "{}", done.text());
}

/// Whether a file of the journal, or of its search index, has these bytes.
fn journal_holds(home: &Path, text: &str) -> bool {
    let names = ["journal.db", "journal.db-wal", "journal.db-search", "journal.db-search-wal"];
    names.iter().any(|name| {
        let bytes = std::fs::read(home.join(name)).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

fn purged(daemon: &Daemon, session: &str) -> Value {
    until("the purge", || {
        let view = daemon.request("GET", &format!("/api/v1/sessions/{session}/purge"), &[], None);
        Some(view.json()).filter(|view| view["complete"] == true)
    })
}

fn sound(daemon: &Daemon) {
    let report = daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!((&report["damage"], &report["structure"]), (&json!([]), &json!([])), "{report}");
}
