//! `lanyard memory` as people use it.

use std::process::Output;

use serde_json::{Value, json};

use super::kit::Stage;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn ok(stage: &Stage, words: &[&str]) -> String {
    let output = stage.daemon.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn refused(stage: &Stage, words: &[&str]) -> (Output, String) {
    let output = stage.daemon.lanyard(words);
    assert!(!output.status.success(), "{words:?}: {}", text(&output.stdout));
    let stderr = text(&output.stderr);
    (output, stderr)
}

#[test]
fn a_memory_is_added_found_shown_and_forgotten() {
    let stage = Stage::new("");
    let add = [
        "memory",
        "add",
        "The API speaks JSON only",
        "--name",
        "api",
        "--tag",
        "Design",
        "--workspace",
        "/w",
    ];
    let id = ok(&stage, &add).trim().to_owned();
    assert!(id.starts_with("mem_"), "{id}");
    let found = ok(&stage, &["memory", "search", "json"]);
    assert!(found.contains(&id) && found.contains("design") && found.contains("long_term"), "{found}");
    let card = ok(&stage, &["memory", "show", &id]);
    for part in ["api", "long-term", "design", "/w", "operator local", "The API speaks JSON only"] {
        assert!(card.contains(part), "{part}: {card}");
    }
    let page: Value = serde_json::from_str(&ok(&stage, &["memory", "search", "json", "--json"])).unwrap();
    assert_eq!(page["found_by"], json!(["words"]));
    let dry = stage.daemon.lanyard(&["memory", "forget", "--tag", "design", "--dry-run"]);
    assert!(text(&dry.stderr).contains("1 entry would be forgotten"), "{}", text(&dry.stderr));
    ok(&stage, &["memory", "forget", &id]);
    let none = stage.daemon.lanyard(&["memory", "search", "json"]);
    assert!(text(&none.stderr).contains("nothing was found"), "{}", text(&none.stderr));
}

#[test]
fn a_policy_is_shown_and_set() {
    let stage = Stage::new("");
    let session = stage.session(&json!({}));
    let shown = ok(&stage, &["memory", "policy", &session]);
    assert!(shown.contains("session_only") && shown.contains("own memory   yes"), "{shown}");
    let set = ["memory", "policy", &session, "--mode", "selective", "--allow", "API", "--tag", "dev_test"];
    let shown = ok(&stage, &set);
    assert!(shown.contains("selective") && shown.contains("api") && shown.contains("dev_test"), "{shown}");
    let write = ["memory", "add", "x", "--session", &session, "--long-term", "--tag", "other"];
    let (_, stderr) = refused(&stage, &write);
    assert!(
        stderr.contains("memory_tag_not_allowed") && stderr.contains("lanyard memory policy"),
        "{stderr}"
    );
    let shown = ok(&stage, &["memory", "policy", &session]);
    assert!(shown.contains("1 × memory_tag_not_allowed"), "{shown}");
    ok(&stage, &["memory", "add", "x", "--session", &session, "--long-term", "--tag", "api"]);
    let card = ok(&stage, &["show", &session]);
    assert!(card.contains("selective (api), tagged dev_test"), "{card}");
    ok(&stage, &["memory", "policy", &session, "--no-allow", "--no-tags"]);
    let (_, stderr) = refused(&stage, &["memory", "policy", &session, "--mode", "everything"]);
    assert!(stderr.contains("session_only"), "it says which modes there are: {stderr}");
    let (_, stderr) = refused(&stage, &["memory", "policy", &session, "--tag", "a,b"]);
    assert!(stderr.contains("memory_tag_bad") && stderr.contains("letters"), "{stderr}");
}

#[test]
fn what_is_exported_comes_back_and_twice_changes_nothing() {
    let stage = Stage::new("");
    let session = stage.session(&json!({ "mode": "full" }));
    for (n, scope) in (0..60).map(|n| (n, if n % 2 == 0 { "session" } else { "workspace" })) {
        let body = json!({ "text": format!("entry {n}"), "session": session, "scope": scope, "tags": ["x"] });
        stage.ok("POST", "/memory", &body);
    }
    let exported = ok(&stage, &["memory", "export"]);
    assert_eq!(exported.lines().count(), 60);
    let by_http = stage.ask("GET", "/memory/export", &Value::Null);
    assert_eq!(by_http.header("content-type"), Some("application/x-ndjson"));
    let file = stage.folder.path().join("memory.jsonl");
    std::fs::write(&file, &exported).unwrap();
    let file = file.to_str().unwrap();
    let import = |file: &str| text(&stage.daemon.lanyard(&["memory", "import", file]).stderr);
    assert!(import(file).contains("0 brought in, 60 were there already"));
    ok(&stage, &["memory", "forget", "--tag", "x"]);
    assert!(import(file).contains("60 brought in, 0 were there already"));
    assert_eq!(ok(&stage, &["memory", "export"]), exported);
    // What cannot be taken is told by its line; the rest is in.
    let bad = stage.folder.path().join("bad.jsonl");
    let first = exported.lines().next().unwrap();
    std::fs::write(&bad, format!("{first}\n{{\"text\": 1}}\n")).unwrap();
    let (_, stderr) = refused(&stage, &["memory", "import", bad.to_str().unwrap()]);
    assert!(stderr.contains("line 2") && stderr.contains("entry_invalid"), "{stderr}");
    std::fs::write(&bad, "no json\n").unwrap();
    let (_, stderr) = refused(&stage, &["memory", "import", bad.to_str().unwrap()]);
    assert!(stderr.contains("line 1") && stderr.contains("import_not_json"), "{stderr}");
    let (_, stderr) = refused(&stage, &["memory", "import", "/nowhere"]);
    assert!(stderr.contains("lanyard memory export"), "{stderr}");
}

/// S3-47: flags carry tags and allow-list by value.
#[test]
fn flags_of_new_and_send_say_what_may_be_remembered() {
    let stage = Stage::new("");
    let here = stage.folder.path().display().to_string();
    let new = [
        "new",
        "--agent",
        "a",
        "--workspace",
        &here,
        "--memory-mode",
        "selective",
        "--memory-tag",
        "Nightly",
        "--memory-allow",
        "api",
    ];
    let session = ok(&stage, &new).trim().to_owned();
    let policy = stage.get(&format!("/sessions/{session}/memory-policy"))["policy"].clone();
    assert_eq!(policy, json!({ "mode": "selective", "tags": ["nightly"], "allow": ["api"] }));
    ok(&stage, &["send", &session, "/say hi", "--memory-mode", "off", "--no-session-memory"]);
    let turns = stage.get(&format!("/sessions/{session}/turns"));
    assert_eq!(turns["turns"][0]["memory"]["mode"], "off");
    let (_, stderr) = refused(&stage, &["send", &session, "/say hi", "--memory-mode", "full"]);
    assert!(stderr.contains("memory_policy_wider"), "{stderr}");
    let (_, stderr) = refused(&stage, &["new", "--memory-tag", "a;b"]);
    assert!(stderr.contains("memory_tag_bad"), "{stderr}");
}

/// An observer reads; an agent reaches its own session's memory and nobody else's.
#[test]
fn each_role_reaches_what_it_may() {
    let stage = Stage::new("");
    let (mine, other) =
        (stage.session(&json!({ "mode": "full" })), stage.session(&json!({ "mode": "full" })));
    let token = |role: &str, session: Option<&str>| {
        let body = json!({ "role": role, "name": role, "session": session });
        stage.ok("POST", "/tokens", &body)["token"].as_str().unwrap().to_owned()
    };
    let (observer, agent) = (token("observer", None), token("agent", Some(&mine)));
    let ask = |token: &str, method: &str, path: &str| {
        let caller = crate::support::Caller { token: token.to_owned(), ..stage.daemon.caller() };
        let body = (method != "GET").then_some("{\"text\":\"x\"}");
        caller.try_request(method, &format!("/api/v1{path}"), &[], body).unwrap().status
    };
    assert_eq!(ask(&observer, "GET", "/memory"), 200);
    assert_eq!(ask(&observer, "GET", "/memory/export"), 200);
    assert_eq!(ask(&observer, "POST", "/memory"), 403);
    assert_eq!(ask(&observer, "PATCH", &format!("/sessions/{mine}/memory-policy")), 403);
    assert_eq!(ask(&agent, "GET", "/memory"), 403);
    assert_eq!(ask(&agent, "POST", &format!("/sessions/{mine}/memory")), 201);
    assert_eq!(ask(&agent, "GET", &format!("/sessions/{mine}/memory")), 200);
    assert_eq!(ask(&agent, "POST", &format!("/sessions/{other}/memory")), 403);
    assert_eq!(ask(&agent, "GET", &format!("/sessions/{other}/memory")), 403);
    assert_eq!(ask(&agent, "GET", &format!("/sessions/{mine}/memory-policy")), 200);
    assert_eq!(ask(&agent, "PATCH", &format!("/sessions/{mine}/memory-policy")), 403);
}

/// S3-47: `up` takes tags and allow-list too, in the background as well, and passes them on by value.
#[test]
fn a_daemon_is_started_with_tags_for_all_that_begins_under_it() {
    let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
    let lanyard = |words: &[&str]| {
        let output = std::process::Command::new(crate::support::binary())
            .args(words)
            .env("LANYARD_DATA_DIR", folder.path().join("data"))
            .env("LANYARD_CONFIG", folder.path().join("config.toml"))
            .env("LANYARD_NO_START", "1")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (started, _, said) = lanyard(&["up", "--memory-tag", "a,b"]);
    assert!(!started && said.contains("cannot be a tag") && said.contains("letters"), "{said}");
    let up =
        ["up", "--detach", "--listen", "127.0.0.1:0", "--memory-tag", "Nightly", "--memory-allow", "api"];
    let (started, _, said) = lanyard(&up);
    assert!(started, "{said}");
    let (_, session, _) = lanyard(&["new"]);
    let (_, policy, said) = lanyard(&["memory", "policy", session.trim(), "--json"]);
    let (ended, _, _) = lanyard(&["down"]);
    let policy: Value = serde_json::from_str(&policy).unwrap_or_else(|_| panic!("{said}"));
    let wanted = json!({ "mode": "session_only", "tags": ["nightly"], "allow": ["api"] });
    assert!(ended);
    assert_eq!(policy["policy"], wanted);
}
