//! Deleting is purging, also across a kill; and what belongs to nothing goes.

use serde_json::json;

use super::{SECRET, complete, journal_holds, make, purged, say, sound, until};
use crate::support::{Daemon, Setup};

/// FND-K9: nothing of a deleted session is left in the files, and a tombstone tells of it.
#[test]
fn fnd_k9_rm_purges_the_log_of_a_session() {
    let daemon = Daemon::start(Setup::default());
    let kept = make(&daemon, &json!({"title": "kept"}));
    let gone = make(&daemon, &json!({"title": SECRET, "aliases": [format!("a-{SECRET}")]}));
    for round in 0..50 {
        assert_eq!(say(&daemon, &gone, &format!("{SECRET} {}", "x".repeat(round * 50))), 201);
        assert_eq!(say(&daemon, &kept, "not a secret"), 201);
    }
    assert!(journal_holds(&daemon.home(), SECRET));
    let removed = daemon.lanyard(&["rm", &gone, "--yes", "--wait", "--json", "--reason", "a test"]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    let view: serde_json::Value = serde_json::from_slice(&removed.stdout).unwrap();
    assert_eq!((&view["complete"], &view["tombstone"]["reason"]), (&json!(true), &json!("a test")));
    assert_eq!(view["tombstone"]["deleted_by"]["kind"], "operator");
    assert!(!journal_holds(&daemon.home(), SECRET), "the journal still has it");
    let document = daemon.request("GET", "/api/v1/openapi.json", &[], None).json();
    let reads = document["paths"].as_object().unwrap().iter().filter(|(_, route)| route["get"].is_object());
    let reads = reads.filter_map(|(path, _)| path.strip_prefix("/api/v1/sessions/{id}"));
    // What came of the purge is told, and everything else is gone.
    let reads: Vec<&str> = reads.filter(|path| !path.contains('{') && *path != "/purge").collect();
    assert!(reads.contains(&"/turns") && reads.len() > 10, "{reads:?}");
    for path in reads {
        let late = daemon.request("GET", &format!("/api/v1/sessions/{gone}{path}"), &[], None);
        assert_eq!((late.status, late.code()), (410, "session_deleted".to_owned()), "{path}");
    }
    assert_eq!(daemon.log_after(&kept, 0).len(), 51);
    sound(&daemon);
}

/// FND-K9: a purge that was cut short is finished by the next daemon.
#[test]
fn fnd_k9_a_purge_is_finished_after_a_kill() {
    for place in ["purge:1", "purge:2"] {
        let mut daemon = Daemon::start(Setup::default());
        let kept = make(&daemon, &json!({"title": "kept"}));
        let gone = make(&daemon, &json!({"title": SECRET}));
        for _ in 0..30 {
            assert_eq!(say(&daemon, &gone, SECRET), 201);
        }
        daemon.restart_with(Setup::default().env("LANYARD_FAILPOINT", place));
        // The daemon may die before its answer is read; it dies in the purge, so the deletion is on disk.
        let path = format!("/api/v1/sessions/{gone}");
        let _ = daemon.caller().try_request("DELETE", &path, &[], Some("{}"));
        until("the end of the daemon", || (!daemon.is_alive()).then_some(()));
        daemon.restart_with(Setup::default());
        purged(&daemon, &gone);
        assert!(!journal_holds(&daemon.home(), SECRET), "{place}");
        assert_eq!(daemon.log_after(&kept, 0).len(), 1);
        sound(&daemon);
    }
}

fn git(folder: &std::path::Path, words: &[&str]) -> String {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@localhost"])
        .args(words)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with one commit.
fn repository() -> tempfile::TempDir {
    let work = tempfile::tempdir().unwrap();
    git(work.path(), &["init", "-q"]);
    std::fs::write(work.path().join("file"), "one").unwrap();
    git(work.path(), &["add", "."]);
    git(work.path(), &["commit", "-q", "-m", "one"]);
    work
}

/// The refs of checkpoints in all stores of a daemon.
fn kept_refs(daemon: &Daemon) -> String {
    let Ok(stores) = std::fs::read_dir(daemon.home().join("checkpoints")) else { return String::new() };
    let stores = stores.map(|entry| entry.unwrap().path());
    let stores = stores.filter(|path| path.extension() == Some("git".as_ref()));
    stores.map(|store| git(&store, &["for-each-ref", "--format=%(refname)"])).collect()
}

fn gc_count(daemon: &Daemon, words: &[&str]) -> u64 {
    let done = daemon.lanyard(words);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    report["snapshot_refs"]["count"].as_u64().unwrap()
}

/// FND-K9, FND-N9: checkpoints go with their session, `gc` finds those of sessions that are gone already, and the
/// repository shows nothing of them at any time.
#[test]
fn fnd_n9_fnd_k9_checkpoints_go_with_their_session() {
    let daemon = Daemon::start(Setup::default());
    let work = repository();
    let place = work.path().display().to_string();
    let gone = make(&daemon, &json!({"workspace": place}));
    let kept = make(&daemon, &json!({"workspace": place}));
    for session in [&gone, &kept] {
        let taken = daemon.lanyard(&["checkpoint", session]);
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    }
    assert_eq!(git(work.path(), &["log", "--all", "--format=%H"]).lines().count(), 1);
    assert!(!git(work.path(), &["for-each-ref"]).contains("lanyard"));
    let refs = kept_refs(&daemon);
    assert!(refs.contains(&gone) && refs.contains(&kept), "{refs}");
    let removed = daemon.lanyard(&["rm", &gone, "--yes", "--wait"]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    let refs = kept_refs(&daemon);
    assert!(!refs.contains(&gone) && refs.contains(&kept), "{refs}");
    // What an older Lanyard left behind: a checkpoint of a session that is purged, as a ref of the repository.
    git(work.path(), &["update-ref", &format!("refs/lanyard/{gone}/turn-1"), "HEAD"]);
    assert_eq!(gc_count(&daemon, &["gc", "--dry-run", "--json"]), 1);
    assert_eq!(gc_count(&daemon, &["gc", "--json"]), 1);
    assert_eq!(gc_count(&daemon, &["gc", "--json"]), 0);
    assert!(!git(work.path(), &["for-each-ref"]).contains("lanyard"));
    assert!(kept_refs(&daemon).contains(&kept));
}

/// FND-N9: the checkpoints of a workspace that is gone are removed too, with their store.
#[test]
fn fnd_n9_checkpoints_of_a_workspace_that_is_gone_are_removed() {
    let daemon = Daemon::start(Setup::default());
    let work = repository();
    let session = make(&daemon, &json!({"workspace": work.path().display().to_string()}));
    assert!(daemon.lanyard(&["checkpoint", &session]).status.success());
    assert!(kept_refs(&daemon).contains(&session));
    drop(work);
    assert!(daemon.lanyard(&["rm", &session, "--yes", "--wait"]).status.success());
    assert!(!kept_refs(&daemon).contains(&session));
    assert!(daemon.lanyard(&["gc"]).status.success());
    let left = std::fs::read_dir(daemon.home().join("checkpoints")).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(left, 0, "the store went with its last session");
}

/// FND-N9: a daemon that starts moves the checkpoints that an older version kept in the repository.
#[test]
fn fnd_n9_old_checkpoints_are_moved_at_the_start() {
    let mut daemon = Daemon::start(Setup::default());
    let work = repository();
    let session = make(&daemon, &json!({"workspace": work.path().display().to_string()}));
    let head = git(work.path(), &["rev-parse", "HEAD"]).trim().to_owned();
    let tree = git(work.path(), &["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let index = git(work.path(), &["commit-tree", &tree, "-p", &head, "-m", "Index"]).trim().to_owned();
    let text = format!(
        "Before a turn\n\nLanyard-Checkpoint: at-3\nLanyard-Head: {head}\nLanyard-Index: {index}\n\
         Lanyard-Extras: none\nLanyard-Files-Changed: 0\n"
    );
    let commit = git(work.path(), &["commit-tree", &tree, "-p", &head, "-p", &index, "-m", &text]);
    git(work.path(), &["update-ref", &format!("refs/lanyard/{session}/at-3"), commit.trim()]);
    // Another data folder's, for all this daemon knows.
    let other = "refs/lanyard/sess_01m7n5djg0fayvh8t5cxyjkdnf/at-3";
    git(work.path(), &["update-ref", other, commit.trim()]);
    std::fs::remove_file(daemon.home().join("checkpoints/moved")).ok();
    daemon.restart_with(Setup::default());
    until("the move", || kept_refs(&daemon).contains(&format!("{session}/at-3")).then_some(()));
    until("the end of the old ref", || {
        let refs = git(work.path(), &["for-each-ref", "--format=%(refname)", "refs/lanyard"]);
        (refs.trim() == other).then_some(())
    });
    let list = daemon.lanyard(&["checkpoints", &session, "--json"]);
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list["items"][0]["name"], "at-3");
    assert!(daemon.lanyard(&["rollback", &session, "at-3", "--yes"]).status.success());
}

/// FND-K9: a folder of a run that belongs to no session is found and removed.
#[test]
fn fnd_k9_gc_removes_what_belongs_to_nothing() {
    let daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "kept"}));
    let folder = daemon.home().join("runs").join("run_00000000000000000000000001");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.json"), json!({"about": {}, "boot": "another"}).to_string()).unwrap();
    std::fs::write(folder.join("out"), vec![b'x'; 100_000]).unwrap();
    let dry = daemon.lanyard(&["gc", "--dry-run", "--json"]);
    let dry: serde_json::Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!((&dry["dry_run"], &dry["run_folders"]["count"]), (&json!(true), &json!(1)));
    assert!(folder.exists());
    let done = daemon.lanyard(&["gc", "--compact", "--json"]);
    let done: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(done["run_folders"]["count"], 1, "{done}");
    assert!(done["run_folders"]["bytes"].as_u64().unwrap() >= 100_000, "{done}");
    assert!(!folder.exists());
    assert_eq!(daemon.log_after(&session, 0).len(), 1);
    sound(&daemon);
}

/// FND-K9: sessions that ended long ago are deleted where the config wants it, by the same purge.
#[test]
fn fnd_k9_retention_deletes_what_ended_long_ago() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let start = 1_794_729_600_000_i64;
    std::fs::write(&clock, start.to_string()).unwrap();
    let setup =
        Setup::default().config("[retention]\nended_after_days = 30\n").env("LANYARD_CLOCK_FILE", &clock);
    let daemon = Daemon::start(setup);
    let [old, archived, live] =
        ["old", "archived", "live"].map(|title| make(&daemon, &json!({"title": title})));
    complete(&daemon, &old);
    complete(&daemon, &archived);
    let put_away = daemon.request("POST", &format!("/api/v1/sessions/{archived}/archive"), &[], Some("{}"));
    assert_eq!(put_away.status, 200);
    std::fs::write(&clock, (start + 31 * DAY).to_string()).unwrap();
    let view = purged(&daemon, &old);
    assert_eq!(view["tombstone"]["deleted_by"], json!({"kind": "system", "name": "retention"}));
    for session in [archived, live] {
        assert_eq!(daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).status, 200);
    }
}

/// FND-M12, S0-21: pruning by age of the end removes only what is over for that long, and answers how many.
#[test]
fn fnd_m12_s0_21_gc_prunes_ended_sessions_by_the_age_of_their_end() {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    let start = 1_794_729_600_000_i64;
    std::fs::write(&clock, start.to_string()).unwrap();
    let daemon = Daemon::start(Setup::default().env("LANYARD_CLOCK_FILE", &clock));
    let days = |days: i64| {
        let at = start + days * DAY;
        // Moved into its place: a clock that is being written would be read as one that stands at nothing.
        let next = clock.with_extension("next");
        std::fs::write(&next, at.to_string()).unwrap();
        std::fs::rename(&next, &clock).unwrap();
        let at = lanyard_core::Timestamp::from_millis(at).to_string();
        until("the clock", || {
            let status = daemon.request("GET", "/api/v1/status", &[], None).json();
            (status["now"].as_str().unwrap() >= at.as_str()).then_some(())
        });
    };
    let pruned = |words: &[&str]| {
        let done = daemon.lanyard(&[&["gc", "--ended-after", "30d", "--json"][..], words].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        report["ended"].as_u64().unwrap()
    };
    // All are equally old; what counts is when they ended.
    let [early, late, live] = ["early", "late", "live"].map(|title| make(&daemon, &json!({"title": title})));
    complete(&daemon, &early);
    assert_eq!(pruned(&[]), 0, "none is over for that long");
    days(20);
    complete(&daemon, &late);
    days(31);
    assert_eq!(pruned(&["--dry-run"]), 1);
    let there =
        |session: &str| daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).status;
    assert_eq!(there(&early), 200, "a dry run deletes nothing");
    assert_eq!(pruned(&[]), 1);
    assert_eq!(pruned(&[]), 0);
    assert_eq!((there(&early), there(&late), there(&live)), (410, 200, 200));
    let view = purged(&daemon, &early);
    assert_eq!(view["tombstone"]["deleted_by"]["kind"], "operator");
    days(51);
    assert_eq!(pruned(&[]), 1);
    assert_eq!((there(&late), there(&live)), (410, 200));
}

/// FND-R15: what MCP clients said of themselves goes when their session ends.
#[test]
fn fnd_r15_mcp_files_go_with_their_session() {
    let daemon = Daemon::start(Setup::default());
    let session = make(&daemon, &json!({"title": "with a client"}));
    let greet = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
    }});
    let headers = [("accept", "application/json, text/event-stream")];
    let said = daemon.request("POST", &format!("/mcp/{session}/lanyard"), &headers, Some(&greet.to_string()));
    assert_eq!(said.status, 200, "{}", said.text());
    let folder = daemon.home().join("mcp");
    let files = || -> usize {
        let count = |path: &std::path::Path| std::fs::read_dir(path).map_or(0, Iterator::count);
        let inside = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        inside.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
    };
    until("the client's file", || (files() > 0).then_some(()));
    complete(&daemon, &session);
    until("the end of the client's file", || (files() == 0).then_some(()));
}

/// FND-K9: an agent that writes without end is stopped, and what was dropped is told.
#[test]
fn fnd_k9_an_agent_that_floods_is_ended_and_told_of() {
    let config = "[agents.flood]\ndriver = \"command\"\nkill_grace_ms = 200\n\
                  command = [\"sh\", \"-c\", \"while :; do echo 0123456789012345678901234567890123456789; done\"]\n\
                  [agents.flood.budget]\noutput_bytes = 200000\n";
    let daemon = Daemon::start(Setup::default().config(config));
    let work = tempfile::tempdir().unwrap();
    let session = make(&daemon, &json!({"agent": "flood", "workspace": work.path().display().to_string()}));
    let body = json!({"prompt": "go"}).to_string();
    let sent = daemon.request("POST", &format!("/api/v1/sessions/{session}/turns"), &[], Some(&body));
    assert_eq!(sent.status, 201, "{}", sent.text());
    let view = until("the end of the turn", || {
        let view = daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json();
        Some(view).filter(|view| view["state"] == "interrupted")
    });
    assert_eq!(view["cause"], "limit", "{view}");
    let log = until("the end of the run", || {
        let log = daemon.log_after(&session, 0);
        log.iter().any(|event| event["type"] == "run.ended").then_some(log)
    });
    let ended = log.iter().find(|event| event["type"] == "run.ended").unwrap().to_string();
    assert!(ended.contains("output_limit") && ended.contains("bytes of its output were dropped"), "{ended}");
    let bytes: usize = log.iter().map(|event| event.to_string().len()).sum();
    assert!(bytes < 4_000_000, "{bytes} bytes in the log");
    let told = until("the notification", || {
        let all =
            daemon.request("GET", &format!("/api/v1/notifications?session={session}"), &[], None).json();
        all["notifications"].as_array().and_then(|all| all.first().cloned())
    });
    assert_eq!(told["kind"], "budget_spent", "{told}");
}
