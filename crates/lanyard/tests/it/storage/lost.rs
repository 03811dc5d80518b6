//! A journal that is removed or replaced under a running daemon, or missing at its start.

use serde_json::json;

use super::{make, say, until};
use crate::support::{Daemon, Setup};

/// FND-K10: nothing is acknowledged any more, the daemon says so within seconds, and what it has can be saved.
#[test]
fn fnd_k10_a_journal_removed_under_the_daemon_acknowledges_nothing() {
    let mut daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "kept"}));
    assert_eq!(say(&daemon, &session, "acknowledged"), 201);
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        std::fs::remove_file(daemon.home().join(name)).unwrap();
    }
    let body = json!({"type": "said", "role": "agent", "text": "lost"}).to_string();
    let refused = daemon.request("POST", &format!("/api/v1/sessions/{session}/signals"), &[], Some(&body));
    assert_eq!((refused.status, refused.code()), (503, "journal_removed".to_owned()), "{}", refused.text());
    let status = until("the state of the storage", || {
        let status = daemon.request("GET", "/api/v1/status", &[], None).json();
        Some(status).filter(|status| status["storage"] == "unavailable")
    });
    assert!(status["storage_error"].as_str().unwrap().contains("was removed"), "{status}");
    let file = daemon.home().join("../rescue.db");
    let saved = daemon.lanyard(&["backup", &file.display().to_string()]);
    assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));
    daemon.kill_9();
    let refused = daemon.try_start().unwrap_err();
    assert!(refused.contains("journal_missing") && refused.contains("lanyard restore"), "{refused}");
    let restored = daemon.lanyard(&["restore", &file.display().to_string(), "--yes"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    daemon.try_start().unwrap();
    let log = daemon.log_after(&session, 0);
    assert!(log.iter().any(|event| event.to_string().contains("acknowledged")));
    assert_eq!(say(&daemon, &session, "and on"), 201);
}

/// FND-K10: without a write the loss is noticed within seconds too.
#[test]
fn fnd_k10_a_replaced_journal_is_noticed_without_a_write() {
    let daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "kept"}));
    let path = daemon.home().join("journal.db");
    let other = daemon.home().join("other.db");
    std::fs::copy(&path, &other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    until("the state of the storage", || {
        let status = daemon.request("GET", "/api/v1/status", &[], None).json();
        Some(()).filter(|()| {
            status["storage_error"].as_str().is_some_and(|error| error.contains("journal_replaced"))
        })
    });
    assert_eq!(say(&daemon, &session, "lost"), 503);
}

/// FND-K10: a folder that was used before does not begin anew without a word.
#[test]
fn fnd_k10_a_missing_journal_is_refused_at_the_start() {
    let mut daemon = Daemon::start(Setup::default());
    make(&daemon, &json!({"title": "gone"}));
    assert!(daemon.terminate().success());
    std::fs::remove_file(daemon.home().join("journal.db")).unwrap();
    let refused = daemon.try_start().unwrap_err();
    assert!(refused.contains("journal_missing") && refused.contains("--new-journal"), "{refused}");
    assert!(!daemon.home().join("journal.db").exists());
    let doctor = daemon.lanyard(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("journal.db is missing"), "{doctor:?}");
    let begun = daemon.lanyard(&["up", "--detach", "--new-journal", "--listen", "127.0.0.1:0"]);
    assert!(begun.status.success(), "{}", String::from_utf8_lossy(&begun.stderr));
    let sessions = daemon.lanyard(&["ls", "--all", "--json"]);
    let ended = daemon.lanyard(&["down"]);
    assert!(ended.status.success() && sessions.status.success());
}
