//! The directory: the order that puts first what needs a person, doing one thing to many, and the paths of operations
//! consoles (S3-20..S3-24, S3-B14, S3-T6).

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Setup};

fn create(daemon: &Daemon, body: &Value) -> String {
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body.to_string()));
    made.json()["session"].as_str().unwrap().to_owned()
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    daemon.request("POST", &format!("/api/v1/{path}"), &[], Some(&body.to_string()))
}

fn start(daemon: &Daemon, session: &str) {
    assert_eq!(post(daemon, &format!("sessions/{session}/turns"), &json!({"prompt": "x"})).status, 201);
}

fn list(daemon: &Daemon, query: &str) -> Vec<Value> {
    let page = daemon.request("GET", &format!("/api/v1/sessions?{query}"), &[], None);
    assert_eq!(page.status, 200, "{}", page.text());
    page.json()["sessions"].as_array().unwrap().clone()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

fn results(answer: &Value) -> Vec<(&str, &str)> {
    let sessions = answer["sessions"].as_array().unwrap();
    sessions.iter().map(|one| (one["session"].as_str().unwrap(), one["result"].as_str().unwrap())).collect()
}

#[test]
fn what_needs_a_person_comes_first() {
    let daemon = Daemon::start(Setup::default());
    let all: Vec<String> = (0..4).map(|_| create(&daemon, &json!({}))).collect();
    post(&daemon, &format!("sessions/{}/fail", all[1]), &json!({}));
    start(&daemon, &all[2]);
    post(&daemon, &format!("sessions/{}/stop", all[2]), &json!({}));
    post(&daemon, &format!("sessions/{}/guidance", all[0]), &json!({"text": "mind the gap"}));
    let rows = list(&daemon, "sort=attention");
    assert_eq!(ids(&rows), [&all[1], &all[0], &all[2], &all[3]]);
    assert_eq!(rows[1]["attention"], json!(["guidance"]));
    assert_eq!(rows[1]["pending"]["guidance"], json!(1));
    assert_eq!(rows[2]["pending"]["stop_level"], json!(1));
    assert_eq!(ids(&list(&daemon, "attention=true&sort=attention")), [&all[1], &all[0], &all[2]]);
    // Within one millisecond nobody was last; the journal's own tests have the order.
    assert_eq!(list(&daemon, "sort=activity").len(), 4);
    let bad = daemon.request("GET", "/api/v1/sessions?sort=size", &[], None);
    assert_eq!((bad.status, bad.code().as_str()), (400, "query_invalid"));
}

/// S3-T6, S3-20..S3-24: filters, archive, cancel, reset, delete under the paths consoles know; each touches the one
/// session that was chosen, and is refused while it runs (S3-B14).
#[test]
fn the_paths_of_operations_consoles_do_the_same() {
    let daemon = Daemon::start(Setup::default());
    let chat = create(&daemon, &json!({"source": "chat", "owner": "ada", "memory_mode": "off"}));
    let other = create(&daemon, &json!({"source": "telegram", "owner": "ada"}));
    let found = daemon
        .request("GET", "/api/v1/ops/sessions?source=chat&owner=ada&memory_mode=off&status=active", &[], None)
        .json();
    assert_eq!(ids(found["sessions"].as_array().unwrap()), [&chat]);
    start(&daemon, &chat);
    for what in ["archive", "reset"] {
        let busy = post(&daemon, &format!("ops/sessions/{chat}/{what}"), &json!({}));
        assert_eq!((busy.status, busy.code().as_str()), (409, "turn_rejected_busy"), "{what}");
    }
    let cancelled = post(&daemon, &format!("ops/sessions/{chat}/cancel"), &json!({"reason": "enough"}));
    assert_eq!(cancelled.status, 202, "{}", cancelled.text());
    post(&daemon, &format!("sessions/{chat}/signals"), &json!({"type": "work_ended", "channel": "cancel"}));
    assert_eq!(post(&daemon, &format!("ops/sessions/{chat}/reset"), &json!({})).status, 200);
    assert_eq!(post(&daemon, &format!("ops/sessions/{chat}/archive"), &json!({})).status, 200);
    assert_eq!(ids(&list(&daemon, "archived=true")), [&chat]);
    let untouched = daemon.request("GET", &format!("/api/v1/ops/sessions/{other}"), &[], None).json();
    assert_eq!((&untouched["last_seq"], &untouched["archived"]), (&json!(1), &json!(false)));
    assert_eq!(daemon.request("DELETE", &format!("/api/v1/ops/sessions/{chat}"), &[], None).status, 200);
    assert_eq!(ids(&list(&daemon, "")), [&other]);
}

/// FND-M6, S3-20, S3-21, S3-T6: `status` takes lifecycle markers beside the status words, with every other filter.
#[test]
fn fnd_m6_sessions_are_filtered_by_lifecycle_markers() {
    let daemon = Daemon::start(Setup::default());
    let busy = create(&daemon, &json!({"source": "chat", "owner": "ada", "memory_mode": "off"}));
    let rest = create(&daemon, &json!({"source": "telegram", "owner": "ada"}));
    let over = create(&daemon, &json!({"source": "chat", "owner": "bob"}));
    start(&daemon, &busy);
    post(&daemon, &format!("sessions/{over}/complete"), &json!({}));
    let ops = |query: &str| {
        let page = daemon.request("GET", &format!("/api/v1/ops/sessions?{query}"), &[], None);
        assert_eq!(page.status, 200, "{query}: {}", page.text());
        page.json()["sessions"].as_array().unwrap().clone()
    };
    for (query, wanted) in [
        ("status=running", vec![&busy]),
        ("status=idle", vec![&rest]),
        ("status=terminal", vec![&over]),
        ("status=active", vec![&rest, &busy]),
        ("status=completed", vec![&over]),
        ("status=running&source=chat&owner=ada&memory_mode=off", vec![&busy]),
        ("status=running&source=telegram", vec![]),
        ("status=idle&lifecycle=idle", vec![&rest]),
        ("status=terminal&owner=ada", vec![]),
    ] {
        assert_eq!(ids(&ops(query)), wanted, "{query}");
    }
    let row = ops("status=running").remove(0);
    let shown =
        ["source", "owner", "memory_mode", "lifecycle", "lifecycle_state", "status"].map(|name| &row[name]);
    assert_eq!(shown, ["chat", "ada", "off", "running", "running", "active"]);
    let bad = daemon.request("GET", "/api/v1/ops/sessions?status=sleeping", &[], None);
    assert_eq!((bad.status, bad.code().as_str()), (400, "query_invalid"));
    for word in ["active", "stopping", "stopped", "completed", "running", "idle", "terminal"] {
        assert!(bad.text().contains(word), "{}", bad.text());
    }
    let both = daemon.request("GET", "/api/v1/ops/sessions?status=idle&lifecycle=running", &[], None);
    assert_eq!((both.status, both.code().as_str()), (400, "query_conflict"));
}

/// In bulk each session is handled on its own, a dry run changes nothing, and a repeat of the key is one for each.
#[test]
fn one_thing_is_done_to_many_and_a_dry_run_to_none() {
    let daemon = Daemon::start(Setup::default());
    let all: Vec<String> =
        (0..3).map(|n| create(&daemon, &json!({"source": "chat", "title": format!("{n}")}))).collect();
    start(&daemon, &all[1]);
    let ask = |dry_run: bool| json!({"action": "archive", "filter": {"source": "chat"}, "dry_run": dry_run});
    let plan = post(&daemon, "sessions/bulk", &ask(true)).json();
    assert_eq!(results(&plan), [(&*all[2], "would_do"), (&*all[1], "refused"), (&*all[0], "would_do")]);
    assert_eq!(plan["sessions"][1]["code"], json!("turn_rejected_busy"));
    assert_eq!(list(&daemon, "archived=true").len(), 0);
    let path = "/api/v1/sessions/bulk";
    let key = [("Idempotency-Key", "nightly")];
    let done = daemon.request("POST", path, &key, Some(&ask(false).to_string())).json();
    assert_eq!(results(&done), [(&*all[2], "done"), (&*all[1], "refused"), (&*all[0], "done")]);
    let again = daemon.request("POST", path, &key, Some(&ask(false).to_string())).json();
    assert_eq!(results(&again)[0], (&*all[2], "done"), "the first answer again");
    assert_eq!(daemon.log_after(&all[2], 0).len(), 2);
    let unchanged =
        post(&daemon, "sessions/bulk", &json!({"action": "archive", "sessions": [all[2]]})).json();
    assert_eq!(results(&unchanged), [(&*all[2], "unchanged")]);
    let told = json!({"action": "guide", "sessions": [all[1]], "text": "mind the gap"});
    assert_eq!(results(&post(&daemon, "sessions/bulk", &told).json()), [(&*all[1], "done")]);
    let resumed = post(&daemon, "sessions/bulk", &json!({"action": "resume", "sessions": [all[0]]})).json();
    assert_eq!(resumed["sessions"][0]["code"], json!("agent_not_configured"));
}

#[test]
fn a_bulk_that_chooses_nothing_or_too_much_is_refused() {
    let daemon = Daemon::start(Setup::default());
    let table = [
        (json!({"action": "delete"}), "bulk_unselected"),
        (json!({"action": "delete", "filter": {}}), "bulk_unselected"),
        (json!({"action": "delete", "filter": {"owner": "x"}, "sessions": ["y"]}), "bulk_overselected"),
        (json!({"action": "guide", "filter": {"owner": "x"}}), "bulk_text"),
        (json!({"action": "stop", "filter": {"owner": "x"}, "text": "y"}), "bulk_text"),
        (json!({"action": "explode", "filter": {"owner": "x"}}), "body_invalid"),
        (json!({"action": "stop", "filter": {"colour": "x"}}), "body_invalid"),
        (json!({"action": "stop", "sessions": ["sess_none"]}), "session_not_found"),
    ];
    for (body, code) in table {
        assert_eq!(post(&daemon, "sessions/bulk", &body).code(), code, "{body}");
    }
    let many: Vec<String> = (0..501).map(|n| format!("s{n}")).collect();
    assert_eq!(
        post(&daemon, "sessions/bulk", &json!({"action": "stop", "sessions": many})).code(),
        "bulk_too_many"
    );
}

/// `lanyard bulk`: a dry run as a table; without a terminal nothing is done unasked.
#[test]
fn the_command_line_shows_first_and_asks() {
    let daemon = Daemon::start(Setup::default());
    let session = create(&daemon, &json!({"title": "old", "source": "chat"}));
    let dry = daemon.lanyard(&["bulk", "archive", "--source", "chat", "--dry-run"]);
    let text = String::from_utf8(dry.stdout).unwrap();
    assert!(text.contains(&session[session.len() - 6..]) && text.contains("would be done"), "{text}");
    let unasked = daemon.lanyard(&["bulk", "archive", "--source", "chat"]);
    assert!(!unasked.status.success() && String::from_utf8_lossy(&unasked.stderr).contains("--yes"));
    let done = daemon.lanyard(&["bulk", "archive", "--source", "chat", "--yes", "--json"]);
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(answer["sessions"][0]["result"], json!("done"));
    let listed = daemon.lanyard(&["ls", "--sort", "attention", "--all", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&listed.stdout).unwrap()["items"][0]["id"], json!(session));
}
