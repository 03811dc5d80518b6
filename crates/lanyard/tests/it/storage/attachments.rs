//! Attachments on disk: counted, bounded, purged with the last session that refers to them, in backups, and never missing
//! after a kill.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{make, purged, sound, until};
use crate::support::{Answer, Daemon, Setup};

/// No agent is run here: the end of a turn is reported.
const OVER: &str = r#"{"type":"turn_finished","outcome":"completed"}"#;
const PICTURE: &str = "GIF89a\u{1}\0\u{1}\0\0\0\0;";

fn upload(daemon: &Daemon, query: &str, kind: &str, content: &str) -> Answer {
    let path = format!("/api/v1/attachments{query}");
    daemon.request("POST", &path, &[("content-type", kind)], Some(content))
}

fn kept(daemon: &Daemon, content: &str) -> String {
    let answer = upload(daemon, "", "application/octet-stream", content);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn send(daemon: &Daemon, session: &str, id: &str) -> Answer {
    let body = json!({ "prompt": "look", "parts": [{ "kind": "attachment", "id": id }] });
    daemon.request("POST", &format!("/api/v1/sessions/{session}/turns"), &[], Some(&body.to_string()))
}

fn place(daemon: &Daemon, id: &str) -> PathBuf {
    daemon.home().join("attachments/content").join(&id[..2]).join(id)
}

fn fetch(daemon: &Daemon, session: &str, id: &str) -> (u16, String) {
    let got = daemon.request("GET", &format!("/api/v1/sessions/{session}/attachments/{id}"), &[], None);
    (got.status, got.text())
}

fn gc(daemon: &Daemon) -> Value {
    daemon.request("POST", "/api/v1/gc", &[], Some("{}")).json()
}

/// What cannot be kept or referred to is refused with a reason, and nothing is left of it.
#[test]
fn bad_attachments_are_refused() {
    let config = "[storage]\nattachment_bytes = 100\nattachments_bytes = 150\n";
    let daemon = Daemon::start(Setup::default().config(config));
    let session = make(&daemon, &json!({}));
    let files = || -> usize {
        let shelves = std::fs::read_dir(daemon.home().join("attachments/content"));
        shelves
            .into_iter()
            .flatten()
            .flatten()
            .map(|shelf| std::fs::read_dir(shelf.path()).unwrap().count())
            .sum()
    };
    let page = "<!doctype html><script>alert(1)</script>";
    for (query, kind, content, status, code) in [
        ("", "image/png", "", 422, "attachment_empty"),
        ("", "text/plain", &*"x".repeat(101), 422, "attachment_too_large"),
        ("?name=a.png", "application/octet-stream", page, 422, "attachment_not_an_image"),
        ("", "image/png", page, 422, "attachment_not_an_image"),
        ("?nme=a.png", "text/plain", page, 400, "query_invalid"),
    ] {
        let answer = upload(&daemon, query, kind, content);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{query} {kind}");
    }
    assert_eq!(files(), 0);
    let drawing = upload(&daemon, "?name=a.svg", "image/svg+xml", "<svg/>").json();
    assert_eq!(
        (&drawing["image"], &drawing["media_type"]),
        (&json!(false), &json!("text/plain")),
        "{drawing}"
    );
    let lie = upload(&daemon, "?name=a.png", "image/png", PICTURE).json();
    assert_eq!(lie["media_type"], "image/gif", "the content says what it is");
    assert_eq!(upload(&daemon, "", "text/plain", &"y".repeat(100)).status, 201);
    let full = upload(&daemon, "", "text/plain", &"z".repeat(100));
    assert_eq!((full.status, full.code().as_str()), (409, "attachments_full"));
    assert_eq!(
        upload(&daemon, "", "text/plain", &"y".repeat(100)).status,
        201,
        "what is there takes no room"
    );
    assert_eq!(files(), 3);

    let unknown = "0".repeat(64);
    let answer = send(&daemon, &session, &unknown);
    assert_eq!((answer.status, answer.code().as_str()), (404, "attachment_unknown"));
    assert_eq!(send(&daemon, &session, "../../token").code(), "body_invalid");
    assert_eq!(fetch(&daemon, &session, &unknown).0, 404);
    assert_eq!(fetch(&daemon, &session, "token").0, 400);
    let many: Vec<Value> = (0..17).map(|_| json!({ "kind": "link", "uri": "file:///a" })).collect();
    let body = json!({ "prompt": "look", "parts": many }).to_string();
    let turns = format!("/api/v1/sessions/{session}/turns");
    assert_eq!(daemon.request("POST", &turns, &[], Some(&body)).code(), "field_too_many");
    assert_eq!(daemon.log_after(&session, 0).len(), 1, "nothing was begun");
    sound(&daemon);
}

/// The content goes with the last session that refers to it, and an upload that none refers to goes after its time.
#[test]
fn content_is_purged_with_its_last_reference() {
    let daemon = Daemon::start(Setup::default().config("[storage]\nkeep_uploads_ms = 1\n"));
    let (one, two) = (make(&daemon, &json!({})), make(&daemon, &json!({})));
    let id = kept(&daemon, PICTURE);
    for session in [&one, &two] {
        assert_eq!(send(&daemon, session, &id).status, 201);
        assert_eq!(fetch(&daemon, session, &id), (200, PICTURE.to_owned()));
    }
    let unused = kept(&daemon, "nobody wants it");
    until("the upload's time", || (gc(&daemon)["attachments"]["count"] == 1).then_some(()));
    assert!(!place(&daemon, &unused).exists() && place(&daemon, &id).exists());
    let forget = |session: &str| {
        let path = format!("/api/v1/sessions/{session}");
        let over = daemon.request("POST", &format!("{path}/signals"), &[], Some(OVER));
        assert_eq!(over.status, 201, "{}", over.text());
        assert_eq!(daemon.request("DELETE", &path, &[], Some("{}")).status, 200);
        purged(&daemon, session);
    };
    forget(&one);
    assert!(place(&daemon, &id).exists(), "the other session refers to it");
    forget(&two);
    until("the purge of the content", || (!place(&daemon, &id).exists()).then_some(()));
    let left = std::fs::read_dir(daemon.home().join("attachments/sessions")).unwrap().count();
    assert_eq!(left, 0);
    sound(&daemon);
}

/// Killed at each step between an upload and the end of a purge, the daemon has no reference to nothing.
#[test]
fn no_kill_leaves_a_reference_to_nothing() {
    for died_at in ["after_upload:1", "after_attachment_mark:1", "after_attachment_release:1"] {
        let mut daemon = Daemon::start(Setup::default());
        let session = make(&daemon, &json!({}));
        daemon.restart_with(Setup::default().env("LANYARD_FAILPOINT", died_at));
        let caller = daemon.caller();
        let kind = [("content-type", "application/octet-stream")];
        let sent = caller.try_request("POST", "/api/v1/attachments", &kind, Some(PICTURE));
        let id = sent
            .ok()
            .filter(|answer| answer.status == 201)
            .map(|answer| answer.json()["id"].as_str().unwrap().to_owned());
        if let Some(id) = &id {
            let body = json!({ "prompt": "look", "parts": [{ "kind": "attachment", "id": id }] }).to_string();
            let turns = format!("/api/v1/sessions/{session}/turns");
            let begun = caller.try_request("POST", &turns, &[], Some(&body));
            if begun.is_ok_and(|answer| answer.status == 201) {
                let path = format!("/api/v1/sessions/{session}");
                let _ = caller.try_request("POST", &format!("{path}/signals"), &[], Some(OVER));
                let _ = caller.try_request("DELETE", &path, &[], Some("{}"));
            }
        }
        until("the end of the daemon", || (!daemon.is_alive()).then_some(()));
        daemon.restart_with(Setup::default());
        sound(&daemon);
        // The same upload and the same message work, or the session is gone with all of it.
        let id = kept(&daemon, PICTURE);
        if died_at == "after_attachment_release:1" {
            purged(&daemon, &session);
            assert_eq!(std::fs::read_dir(daemon.home().join("attachments/sessions")).unwrap().count(), 0);
        } else {
            assert_eq!(send(&daemon, &session, &id).status, 201, "{died_at}");
            assert_eq!(fetch(&daemon, &session, &id), (200, PICTURE.to_owned()));
        }
        sound(&daemon);
    }
}

/// A backup has what was attached, also where the folder of attachments is lost.
#[test]
fn a_backup_has_the_attachments() {
    let mut daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({}));
    let id = kept(&daemon, PICTURE);
    assert_eq!(send(&daemon, &session, &id).status, 201);
    let file = daemon.home().join("../copy.db").display().to_string();
    let copied = daemon.lanyard(&["backup", &file, "--json"]);
    assert!(copied.status.success(), "{copied:?}");
    let receipt: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert_eq!(receipt["attachments"], 1, "{receipt}");
    assert!(daemon.terminate().success());
    std::fs::remove_dir_all(daemon.home().join("attachments")).unwrap();
    let restored = daemon.lanyard(&["restore", &file, "--yes"]);
    assert!(restored.status.success(), "{restored:?}");
    daemon.try_start().unwrap();
    assert_eq!(fetch(&daemon, &session, &id), (200, PICTURE.to_owned()));
    sound(&daemon);
    // The copy itself is as it was.
    assert!(daemon.terminate().success());
    assert!(daemon.lanyard(&["restore", &file, "--yes"]).status.success());
    daemon.try_start().unwrap();
    sound(&daemon);
}
