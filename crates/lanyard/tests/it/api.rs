//! The API beyond what scenarios show: pages and cursors, large bodies, one daemon per folder, clean ends.

use serde_json::{Value, json};

use crate::support::{Daemon, Setup};

fn create(daemon: &Daemon, body: &Value) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body.to_string()));
    assert_eq!(made.status, 201, "{}", made.text());
    made.json()["session"].as_str().unwrap().to_owned()
}

/// All ids a filter finds, page by page.
fn pages(daemon: &Daemon, query: &str, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page =
            daemon.request("GET", &format!("/api/v1/sessions?limit={limit}&{query}{cursor}"), &[], None);
        assert_eq!(page.status, 200, "{query}: {}", page.text());
        let page = page.json();
        let rows = page["sessions"].as_array().unwrap();
        assert!(rows.len() <= limit);
        found.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// S3-20, S0-12, S0-13: each filter finds all and only what it names, in pages of any size.
#[test]
fn filters_and_pages_find_all_and_only_what_they_name() {
    let daemon = Daemon::start(Setup::default());
    let mut all = Vec::new();
    for number in 0..24 {
        let body = json!({
            "title": format!("session number {number}"),
            "owner": if number % 2 == 0 { "ada" } else { "grace" },
            "source": if number % 3 == 0 { "telegram" } else { "chat" },
            "workspace": format!("/w/{}", number % 4),
            "plan": format!("p{}", number % 5),
            "agent": if number % 6 == 0 { json!("planner") } else { Value::Null },
            "driven_by": "nobody",
            "memory_mode": if number % 8 == 0 { "full" } else { "off" },
        });
        all.push(create(&daemon, &body));
    }
    let child = create(&daemon, &json!({"parent": all[3], "title": "the child"}));
    for number in [4, 5, 6] {
        daemon.request(
            "POST",
            &format!("/api/v1/sessions/{}/turns", all[number]),
            &[],
            Some(r#"{"prompt":"x"}"#),
        );
    }
    daemon.request("POST", &format!("/api/v1/sessions/{}/stop", all[5]), &[], None);
    daemon.request("POST", &format!("/api/v1/sessions/{}/complete", all[7]), &[], None);
    daemon.request("POST", &format!("/api/v1/sessions/{}/archive", all[8]), &[], None);
    daemon.request("DELETE", &format!("/api/v1/sessions/{}", all[9]), &[], None);

    let wanted = |test: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..24)
            .rev()
            .filter(|number| *number != 9 && test(*number))
            .map(|number| all[number].clone())
            .collect()
    };
    let everything: Vec<String> = std::iter::once(child.clone()).chain(wanted(&|_| true)).collect();
    for limit in [1, 2, 7, 24, 25, 1000] {
        assert_eq!(pages(&daemon, "", limit), everything, "in pages of {limit}");
    }
    assert_eq!(pages(&daemon, "owner=ada", 5), wanted(&|n| n % 2 == 0));
    assert_eq!(pages(&daemon, "source=telegram", 5), wanted(&|n| n % 3 == 0));
    assert_eq!(pages(&daemon, "agent=planner", 5), wanted(&|n| n % 6 == 0));
    assert_eq!(pages(&daemon, "memory_mode=full", 5), wanted(&|n| n % 8 == 0));
    assert_eq!(pages(&daemon, "plan=p2&owner=grace", 5), wanted(&|n| n % 5 == 2 && n % 2 == 1));
    assert_eq!(pages(&daemon, "state=executing", 5), wanted(&|n| (4..=6).contains(&n)));
    assert_eq!(pages(&daemon, "lifecycle=running", 5), wanted(&|n| (4..=6).contains(&n)));
    assert_eq!(pages(&daemon, "lifecycle=terminal", 5), wanted(&|n| n == 7));
    assert_eq!(pages(&daemon, "status=stopping", 5), wanted(&|n| n == 5));
    assert_eq!(pages(&daemon, "status=completed", 5), wanted(&|n| n == 7));
    assert_eq!(pages(&daemon, "archived=true", 5), wanted(&|n| n == 8));
    assert_eq!(pages(&daemon, &format!("parent={}", all[3]), 5), [child]);
    assert_eq!(pages(&daemon, "text=NUMBER%2012", 5), wanted(&|n| n == 12));
    assert_eq!(pages(&daemon, "text=12%20session", 5), wanted(&|n| n == 12));
    assert_eq!(pages(&daemon, "text=%22%20OR%20%22", 5), Vec::<String>::new());
    assert_eq!(pages(&daemon, "owner=nobody", 5), Vec::<String>::new());
}

/// A page that was begun goes on where it was, whatever is created meanwhile.
#[test]
fn a_cursor_is_steady_while_sessions_are_created() {
    let daemon = Daemon::start(Setup::default());
    let mut old: Vec<String> = (0..10).map(|_| create(&daemon, &json!({}))).collect();
    old.reverse();
    let first = daemon.request("GET", "/api/v1/sessions?limit=4", &[], None).json();
    let cursor = first["next"].as_str().unwrap();
    for _ in 0..5 {
        create(&daemon, &json!({}));
    }
    let second =
        daemon.request("GET", &format!("/api/v1/sessions?limit=100&cursor={cursor}"), &[], None).json();
    let ids: Vec<&str> =
        second["sessions"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, old[4..]);
    let mixed = daemon.request("GET", &format!("/api/v1/sessions?owner=x&cursor={cursor}"), &[], None);
    assert_eq!(mixed.code(), "cursor_other_filter");
}

#[test]
fn a_body_that_is_too_large_is_refused_and_changes_nothing() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon, &json!({}));
    let path = format!("/api/v1/sessions/{session}/turns");
    let huge = json!({ "prompt": "x".repeat(3 << 20) }).to_string();
    let refused = daemon.request("POST", &path, &[], Some(&huge));
    assert_eq!((refused.status, refused.code()), (413, "body_too_large".to_owned()));
    let long = json!({ "prompt": "x".repeat((1 << 20) + 1) }).to_string();
    let refused = daemon.request("POST", &path, &[], Some(&long));
    assert_eq!((refused.status, refused.code()), (422, "field_too_long".to_owned()));
    assert_eq!(daemon.log_after(&session, 0).len(), 1);
    let just = json!({ "prompt": "x".repeat(1 << 20) }).to_string();
    assert_eq!(daemon.request("POST", &path, &[], Some(&just)).status, 201);
}

/// A page of events is bounded by their size too, and says that there is more.
#[test]
fn a_page_of_large_events_is_shorter_and_complete_in_the_end() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon, &json!({}));
    for _ in 0..90 {
        let body = json!({"type": "said", "role": "agent", "text": "x".repeat(100_000)}).to_string();
        daemon.request("POST", &format!("/api/v1/sessions/{session}/signals"), &[], Some(&body));
    }
    let page =
        daemon.request("GET", &format!("/api/v1/sessions/{session}/events?limit=1000"), &[], None).json();
    assert_eq!((page["events"].as_array().unwrap().len(), &page["head"]), (64, &json!(91)));
    assert_eq!(daemon.log_after(&session, 0).len(), 91);
    let logs = daemon.lanyard(&["logs", &session, "--after", "0", "--json"]);
    assert_eq!(String::from_utf8(logs.stdout).unwrap().lines().count(), 91);
}

/// Two clients at once with the same key, and with the same alias: one of them wins, and both learn the same.
#[test]
fn concurrent_requests_with_one_key_or_one_alias_have_one_outcome() {
    let daemon = Daemon::start(Setup::default());
    let race = |body: &str, key: Option<&str>| -> Vec<(u16, Value)> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    let caller = daemon.caller();
                    let headers: Vec<(&str, &str)> =
                        key.map(|key| ("idempotency-key", key)).into_iter().collect();
                    scope.spawn(move || {
                        let answer =
                            caller.try_request("POST", "/api/v1/sessions", &headers, Some(body)).unwrap();
                        (answer.status, answer.json())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    };
    let answers = race("{}", Some("same"));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let answers = race(r#"{"aliases":["only::one"]}"#, None);
    assert_eq!(answers.iter().filter(|(status, _)| *status == 201).count(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, body)| body["code"] == "alias_taken").count(), 7, "{answers:?}");
    assert_eq!(pages(&daemon, "", 10).len(), 2);
}

#[test]
fn a_second_daemon_on_the_same_folder_is_refused_and_names_the_first() {
    let daemon = Daemon::start(Setup::default());
    let second = daemon.lanyard(&["up", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success());
    assert!(said.contains(&format!("pid {}", daemon.pid().unwrap())), "{said}");
    assert!(daemon.is_alive());
}

/// SIGTERM ends cleanly: exit code 0, no socket left, all of the journal in one file.
#[test]
fn sigterm_ends_cleanly_and_nothing_is_lost() {
    let mut daemon = Daemon::start(Setup::default());
    let session = create(&daemon, &json!({"title": "before the end"}));
    assert!(daemon.terminate().success());
    assert!(!daemon.home().join("lanyard.sock").exists());
    let wal = daemon.home().join("journal.db-wal");
    assert!(!wal.exists() || wal.metadata().unwrap().len() == 0, "the write-ahead log was not moved on");
    daemon.restart_with(Setup::default());
    assert_eq!(daemon.log_after(&session, 0).len(), 1);
}

/// `lanyard down` does the same from outside.
#[test]
fn down_ends_the_daemon() {
    let daemon = Daemon::start(Setup::default());
    let down = daemon.lanyard(&["down"]);
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    assert!(daemon.wait().success());
    assert_eq!(daemon.lanyard(&["ls"]).status.code(), Some(3));
}

/// S0-26, X-03: a config that is wrong stops the daemon with a word on where; it is not ignored.
#[test]
fn a_config_with_an_unknown_name_is_refused() {
    let mut daemon = Daemon::prepare(Setup::default().config("[limits]\ndeepth = 4\n"));
    let error = daemon.try_start().unwrap_err();
    assert!(error.contains("deepth"), "{error}");
    let daemon = Daemon::start(Setup::default().config("[limits]\ndepth = 1\n"));
    let root = create(&daemon, &json!({}));
    let refused = daemon.request("POST", "/api/v1/sessions", &[], Some(&json!({"parent": root}).to_string()));
    assert_eq!(refused.code(), "depth_exceeded");
}

/// Projections can be thrown away and made again while the daemon runs.
#[test]
fn a_rebuild_changes_nothing_anyone_can_see() {
    let daemon = Daemon::start(Setup::default());
    let root = create(&daemon, &json!({"title": "root", "aliases": ["r::1"]}));
    create(&daemon, &json!({"parent": root}));
    daemon.request("POST", &format!("/api/v1/sessions/{root}/turns"), &[], Some(r#"{"prompt":"x"}"#));
    let look = || {
        let list = daemon.request("GET", "/api/v1/sessions", &[], None).json();
        let one = daemon.request("GET", "/api/v1/sessions/r%3A%3A1", &[], None).json();
        let tree = daemon.request("GET", &format!("/api/v1/sessions/{root}/tree"), &[], None).json();
        (list, one, tree, daemon.log_after(&root, 0))
    };
    let before = look();
    assert_eq!(daemon.request("POST", "/api/v1/rebuild", &[], None).json(), json!({"sessions": 2}));
    assert_eq!(look(), before);
    let report = daemon.request("GET", "/api/v1/check", &[], None).json();
    assert_eq!(report["damage"], json!([]), "{report}");
}

/// The committed document is what the daemon serves.
#[test]
fn the_openapi_document_is_true() {
    let daemon = Daemon::start(Setup::default());
    let served = daemon.request("GET", "/api/v1/openapi.json", &[], None).json();
    assert_eq!(served, lanyard_daemon::openapi());
    // Two types of one name would be told apart by a number, which says nothing and may move.
    let names = served["components"]["schemas"].as_object().unwrap().keys();
    let numbered: Vec<&String> = names.filter(|name| name.ends_with(|c: char| c.is_ascii_digit())).collect();
    assert!(numbered.is_empty(), "two types have one name: {numbered:?}");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/openapi.json");
    let text = serde_json::to_string_pretty(&served).unwrap() + "\n";
    expect_test::expect_file![path].assert_eq(&text);
}

/// A session nobody uses is not in memory after a restart, and is found all the same.
#[test]
fn sessions_live_in_the_journal_and_load_on_demand() {
    let mut daemon = Daemon::start(Setup::default());
    let ids: Vec<String> = (0..50).map(|_| create(&daemon, &json!({}))).collect();
    daemon.restart_with(Setup::default());
    let status = daemon.request("GET", "/api/v1/status", &[], None).json();
    assert_eq!(status["sessions_in_memory"], 0);
    let path = format!("/api/v1/sessions/{}/guidance", ids[7]);
    assert_eq!(daemon.request("POST", &path, &[], Some(r#"{"text":"hello"}"#)).status, 201);
    let status = daemon.request("GET", "/api/v1/status", &[], None).json();
    assert_eq!(status["sessions_in_memory"], 1);
}
