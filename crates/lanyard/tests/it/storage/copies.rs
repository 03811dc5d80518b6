//! Backup and restore.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{make, say, sound};
use crate::support::{Daemon, Setup};

/// FND-K10: a backup made while sessions are written to has everything that was acknowledged before it, and restores.
#[test]
fn fnd_k10_a_backup_under_load_restores_what_was_acknowledged() {
    let mut daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "under load"}));
    for _ in 0..50 {
        assert_eq!(say(&daemon, &session, "before the backup"), 201);
    }
    let file = daemon.home().join("../copy.db");
    let name = file.display().to_string();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(say(&daemon, &session, "meanwhile"), 201);
                }
            });
        }
        let copied = daemon.lanyard(&["backup", &name, "--json"]);
        done.store(true, Ordering::Relaxed);
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let receipt: serde_json::Value = serde_json::from_slice(&copied.stdout).unwrap();
        assert_eq!(receipt["sessions"], 1, "{receipt}");
    });
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = daemon.lanyard(&["backup", &name]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("backup_exists"));
    assert!(daemon.lanyard(&["backup", &name, "--force"]).status.success());
    let acknowledged = daemon.log_after(&session, 0);
    assert_eq!(say(&daemon, &session, "after the backup"), 201);
    let refused = daemon.lanyard(&["restore", &name, "--yes"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("daemon_running"), "{refused:?}");
    assert!(daemon.terminate().success());
    let restored = daemon.lanyard(&["restore", &name, "--yes", "--json"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let restored: serde_json::Value = serde_json::from_slice(&restored.stdout).unwrap();
    assert!(std::path::Path::new(restored["kept"].as_str().unwrap()).exists(), "the old journal is kept");
    daemon.try_start().unwrap();
    let log = daemon.log_after(&session, 0);
    assert_eq!(log[..acknowledged.len()], acknowledged[..], "something acknowledged is missing");
    assert!(!log.iter().any(|event| event.to_string().contains("after the backup")));
    sound(&daemon);
}

/// FND-K10: what is no backup is refused and changes nothing.
#[test]
fn fnd_k10_a_bad_backup_is_not_restored() {
    let daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "kept"}));
    let file = daemon.home().join("../notes.txt");
    std::fs::write(&file, "x".repeat(10_000)).unwrap();
    assert!(daemon.terminate().success());
    let refused = daemon.lanyard(&["restore", &file.display().to_string(), "--yes"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("backup_unusable"), "{refused:?}");
    let unasked = daemon.lanyard(&["restore", &file.display().to_string()]);
    assert_eq!(unasked.status.code(), Some(2), "nobody to ask");
    let copy = daemon.home().join("../alone.db");
    let alone = daemon.lanyard(&["backup", &copy.display().to_string()]);
    assert!(alone.status.success(), "a backup without a daemon: {}", String::from_utf8_lossy(&alone.stderr));
    let mut daemon = daemon;
    daemon.try_start().unwrap();
    assert_eq!(daemon.log_after(&session, 0).len(), 1);
}

/// A backup that a program of schema 9 has written is restored, and the daemon brings it forward.
#[test]
fn a_backup_of_schema_9_is_restored() {
    let mut daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "older"}));
    assert_eq!(say(&daemon, &session, "before the upgrade"), 201);
    let file = daemon.home().join("../older.db");
    let name = file.display().to_string();
    assert!(daemon.lanyard(&["backup", &name]).status.success());
    let acknowledged = daemon.log_after(&session, 0);
    assert!(daemon.terminate().success());
    let older =
        "DROP TABLE record_events; DROP TABLE record_rows; DROP TABLE record_keys; PRAGMA user_version = 9";
    rusqlite::Connection::open(&file).unwrap().execute_batch(older).unwrap();
    let restored = daemon.lanyard(&["restore", &name, "--yes", "--json"]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    daemon.try_start().unwrap();
    assert_eq!(daemon.log_after(&session, 0)[..acknowledged.len()], acknowledged[..]);
    sound(&daemon);
}
