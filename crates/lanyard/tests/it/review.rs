//! The review of a session's changes as its operators meet it: drafts that outlive the daemon, one message made of them,
//! comments that move with their lines, marks of files that were viewed, and a pull request by a scripted `gh`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::operate::Stage;
use crate::support::{Answer, Caller, Daemon, Setup, until};

/// A workspace in which a turn has changed a file, and the session that did.
fn changed() -> (Stage, String) {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/write kept.txt one\\ntwo\\nthree\\nfour\\n");
    stage.until_at_rest(&session);
    stage.until(&session, |shown| shown["snapshots"] == 2);
    (stage, session)
}

fn draft(stage: &Stage, session: &str, first: u32, last: u32, text: &str) -> String {
    let body = json!({ "path": "kept.txt", "first": first, "last": last, "text": text, "base": "turn" });
    let answer = stage.post(&format!("/sessions/{session}/review/comments"), &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["comment"].as_str().unwrap().to_owned()
}

fn review(stage: &Stage, session: &str) -> Value {
    stage.get(&format!("/sessions/{session}/review"))
}

/// State and anchor of each comment.
fn states(review: &Value) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let comments = review["comments"].as_array().unwrap();
    comments.iter().map(|comment| (word(&comment["state"]), word(&comment["anchor"]))).collect()
}

fn started(daemon: &Daemon, session: &str) -> Vec<Value> {
    let log = daemon.log_after(session, 0);
    log.into_iter().filter(|event| event["type"] == "turn.started").collect()
}

fn pair(state: &str, anchor: &str) -> (String, String) {
    (state.to_owned(), anchor.to_owned())
}

#[test]
fn drafts_become_one_turn_whose_end_answers_them() {
    let (stage, session) = changed();
    draft(&stage, &session, 2, 3, "Use numbers.");
    draft(&stage, &session, 4, 4, "/write kept.txt zero\\none\\ntwo\\nthree\\n4\\n");
    assert_eq!(states(&review(&stage, &session)), [pair("draft", "same"), pair("draft", "same")]);

    let sent = stage.post(&format!("/sessions/{session}/review/send"), &json!({ "message": "Please:" }));
    assert_eq!(sent.status, 201, "{}", sent.text());
    stage.until_at_rest(&session);
    let turns = started(&stage.daemon, &session);
    assert_eq!(turns.len(), 2);
    assert_eq!(
        turns[1]["data"]["prompt"],
        "Review of your changes: 2 comments. Address each.\n\nPlease:\n\nkept.txt:2-3\n```\ntwo\nthree\n```\n\
         Use numbers.\n\nkept.txt:4\n```\nfour\n```\n/write kept.txt zero\\none\\ntwo\\nthree\\n4\\n"
    );
    let log = stage.daemon.log_after(&session, 0);
    let at = log.iter().position(|event| event["type"] == "review.sent").unwrap();
    assert_eq!(log[at - 1]["type"], "turn.started");
    assert_eq!(log[at]["at"], log[at - 1]["at"], "one commit");

    let told = review(&stage, &session);
    assert_eq!(told["comments"][0]["now"], json!({ "first": 3, "last": 4 }), "{told:#}");
    assert_eq!(told["comments"][1]["number"], 2);
    assert_eq!(states(&told), [pair("answered", "moved"), pair("answered", "stale")]);
}

#[test]
fn a_key_sends_a_review_once_and_a_comment_goes_once_under_any_key() {
    let (stage, session) = changed();
    let comment = draft(&stage, &session, 1, 1, "/say! because");
    let path = format!("/api/v1/sessions/{session}/review/send");
    let send =
        |key: &str, body: &str| stage.daemon.request("POST", &path, &[("idempotency-key", key)], Some(body));
    let first = send("k1", "{}");
    assert_eq!(first.status, 201, "{}", first.text());
    let again = send("k1", "{}");
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")));
    assert_eq!(again.json()["turn"], first.json()["turn"]);
    stage.until_at_rest(&session);
    assert_eq!(send("k2", "{}").code(), "review_empty");
    let named = send("k3", &json!({ "comments": [comment] }).to_string());
    assert_eq!((named.status, named.code()), (409, "comment_already_sent".to_owned()));
    assert_eq!(started(&stage.daemon, &session).len(), 2);
}

/// Killed at each place of a commit while a review is sent, the daemon has sent it once or not at all, and no draft is lost.
#[test]
fn a_review_that_meets_a_kill_is_sent_once() {
    for place in ["before_append", "after_append", "after_publish"] {
        let mut daemon = Daemon::start(Setup::default());
        let folder = repository(&daemon);
        let body = json!({ "workspace": folder, "title": "reviewed" }).to_string();
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body)).json();
        let session = made["session"].as_str().unwrap().to_owned();
        let path = |below: &str| format!("/api/v1/sessions/{session}/review/{below}");
        let kept = format!("/api/v1/sessions/{session}/checkpoints");
        assert_eq!(daemon.request("POST", &kept, &[], Some("{}")).status, 201);
        let comment = json!({ "path": "kept.txt", "first": 1, "text": "why?" }).to_string();
        for _ in 0..2 {
            let drafted = daemon.request("POST", &path("comments"), &[], Some(&comment));
            assert_eq!(drafted.status, 201, "{}", drafted.text());
        }
        daemon.restart_with(Setup::default().env("LANYARD_FAILPOINT", format!("{place}:1")));
        let keyed = [("idempotency-key", "once")];
        let _ = daemon.caller().try_request("POST", &path("send"), &keyed, Some("{}"));
        assert!(until(|| !daemon.is_alive()), "{place} was not reached");
        daemon.restart_with(Setup::default());
        let review = daemon.request("GET", path("").trim_end_matches('/'), &[], None).json();
        let held: Vec<(String, String)> = states(&review);
        let sent = started(&daemon, &session).len();
        assert_eq!(held.len(), 2, "{place}: no comment is lost");
        // A turn that no process works at is interrupted by the restart.
        let expected = if sent == 0 { "draft" } else { "unanswered" };
        assert!(held.iter().all(|(state, _)| state == expected), "{place}: {sent} turns and {held:?}");
        let again = daemon.request("POST", &path("send"), &keyed, Some("{}"));
        assert!([200, 201].contains(&again.status), "{place}: {}", again.text());
        assert_eq!(started(&daemon, &session).len(), 1, "{place}");
    }
}

/// A repository in the daemon's folder, with one file of one line.
fn repository(daemon: &Daemon) -> String {
    let folder = daemon.folder().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("kept.txt"), "first\n").unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-qm", "first"]);
    folder.canonicalize().unwrap().display().to_string()
}

fn git(folder: &Path, words: &[&str]) -> String {
    let user = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let done = Command::new("git").args(user).args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn as_(stage: &Stage, role: &str, session: &str) -> Caller {
    let body = json!({ "role": role, "name": format!("{role} two"), "session": session });
    let body = if role == "agent" { body } else { json!({ "role": role, "name": format!("{role} two") }) };
    let made = stage.post("/tokens", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    Caller { token: made.json()["token"].as_str().unwrap().to_owned(), ..stage.daemon.caller() }
}

#[test]
fn two_operators_share_the_drafts_and_nobody_else_writes_any() {
    let (stage, session) = changed();
    let path = |below: &str| format!("/api/v1/sessions/{session}/review{below}");
    let mine = draft(&stage, &session, 1, 1, "mine");
    let second = as_(&stage, "operator", &session);
    let body = json!({ "path": "kept.txt", "first": 2, "text": "theirs" }).to_string();
    let ask = |caller: &Caller, method: &str, below: &str, body: Option<&str>| -> Answer {
        caller.try_request(method, &path(below), &[], body).unwrap()
    };
    assert_eq!(ask(&second, "POST", "/comments", Some(&body)).status, 201);
    let told = review(&stage, &session);
    let authors: Vec<&Value> =
        told["comments"].as_array().unwrap().iter().map(|comment| &comment["author"]["name"]).collect();
    assert_eq!(authors, ["local", "operator two"]);
    let edit = json!({ "text": "better" }).to_string();
    assert_eq!(ask(&second, "PATCH", &format!("/comments/{mine}"), Some(&edit)).status, 200);
    assert_eq!(review(&stage, &session)["comments"][0]["text"], "better");

    let observer = as_(&stage, "observer", &session);
    assert_eq!(ask(&observer, "GET", "", None).status, 200);
    for (method, below) in [("POST", "/comments"), ("POST", "/send"), ("POST", "/viewed")] {
        let refused = ask(&observer, method, below, Some(&body));
        assert_eq!((refused.status, refused.code()), (403, "role_forbidden".to_owned()), "{below}");
    }
    let agent = as_(&stage, "agent", &session);
    for (method, below) in [("GET", ""), ("POST", "/comments"), ("POST", "/send"), ("POST", "/viewed")] {
        let refused = ask(&agent, method, below, (method == "POST").then_some(body.as_str()));
        assert_eq!(refused.status, 403, "{method} {below}: {}", refused.text());
    }
    assert_eq!(review(&stage, &session)["comments"].as_array().unwrap().len(), 2);
}

#[test]
fn a_withdrawn_review_gives_its_drafts_back() {
    let (stage, session) = changed();
    draft(&stage, &session, 1, 1, "why?");
    let busy = stage.post(&format!("/sessions/{session}/turns"), &json!({ "prompt": "/wait-file go" }));
    assert_eq!(busy.status, 201, "{}", busy.text());
    let sent =
        stage.post(&format!("/sessions/{session}/review/send"), &json!({ "delivery": "queue" })).json();
    assert_eq!(sent["result"], "queued", "{sent:#}");
    assert_eq!(states(&review(&stage, &session))[0].0, "sent");
    let turn = sent["turn"].as_str().unwrap();
    let path = format!("/api/v1/sessions/{session}/inbox/{turn}");
    assert_eq!(stage.daemon.request("DELETE", &path, &[], Some("{}")).status, 200);
    assert_eq!(states(&review(&stage, &session))[0].0, "draft");
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    stage.until_at_rest(&session);
}

#[test]
fn a_file_is_viewed_until_its_content_changes() {
    let (stage, session) = changed();
    let diff = || stage.get(&format!("/sessions/{session}/diff?from=turn"));
    let first = diff();
    assert_eq!(
        (&first["base"]["kind"], &first["files"][0]["path"]),
        (&json!("turn_start"), &json!("kept.txt"))
    );
    let hash = first["files"][0]["hash"].as_str().unwrap().to_owned();
    let body = json!({ "path": "kept.txt", "hash": hash });
    assert_eq!(stage.post(&format!("/sessions/{session}/review/viewed"), &body).status, 200);
    assert_eq!(diff()["files"][0]["viewed"], true);
    std::fs::write(stage.workspace().join("kept.txt"), "other\n").unwrap();
    assert!(diff()["files"][0].get("viewed").is_none(), "{:#}", diff());
}

/// The bases a diff can have, and the side before the change.
#[test]
fn changes_are_compared_with_a_turn_a_session_a_branch_and_a_checkpoint() {
    let stage = Stage::new();
    stage.git();
    git(&stage.workspace(), &["branch", "-M", "main"]);
    git(&stage.workspace(), &["checkout", "-qb", "topic"]);
    std::fs::write(stage.workspace().join("on-branch.txt"), "b\n").unwrap();
    git(&stage.workspace(), &["add", "."]);
    git(&stage.workspace(), &["commit", "-qm", "second"]);
    let session = stage.detached("/write one.txt 1\\n");
    stage.until_at_rest(&session);
    let next =
        stage.post(&format!("/sessions/{session}/turns"), &json!({ "prompt": "/write kept.txt two\\n" }));
    assert_eq!(next.status, 201, "{}", next.text());
    stage.until_at_rest(&session);
    stage.until(&session, |shown| shown["snapshots"] == 4);
    let files = |from: &str| {
        let diff = stage.get(&format!("/sessions/{session}/diff?from={from}"));
        let files =
            diff["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned());
        (diff["base"]["kind"].as_str().unwrap().to_owned(), files.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(files("turn"), pair("turn_start", "kept.txt"));
    assert_eq!(files("session"), pair("session_start", "kept.txt one.txt"));
    assert_eq!(files("branch"), pair("branch", "kept.txt on-branch.txt one.txt"));
    let taken = stage.get(&format!("/sessions/{session}/snapshots"));
    let name = taken["snapshots"][1]["name"].as_str().unwrap();
    assert_eq!(files(name), pair("checkpoint", "kept.txt"));

    let old = json!({ "path": "kept.txt", "side": "old", "first": 1, "text": "keep it", "base": "turn" });
    let kept = stage.post(&format!("/sessions/{session}/review/comments"), &old);
    assert_eq!(kept.status, 201, "{}", kept.text());
    assert_eq!(review(&stage, &session)["comments"][0]["quote"], "first");
    for (path, line) in [("kept.txt", 9), ("none.txt", 1), ("../secret", 1), (".git/config", 1)] {
        let body = json!({ "path": path, "first": line, "text": "x" });
        let refused = stage.post(&format!("/sessions/{session}/review/comments"), &body);
        assert_eq!((refused.status, refused.code()), (409, "lines_not_found".to_owned()), "{path}");
    }
}

#[test]
fn the_command_line_lists_adds_and_sends() {
    let (stage, session) = changed();
    let run = |words: &[&str]| {
        let output = stage.lanyard(words);
        let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{words:?}: {}", told(&output.stderr));
        told(&output.stdout).replace(&session, "SESSION")
    };
    run(&["review", "add", &session, "kept.txt:2-3", "Use", "numbers."]);
    let gone = run(&["review", "add", &session, "kept.txt:1", "--old", "Gone."]);
    let listed = run(&["review", &session]);
    assert!(
        listed.contains("kept.txt:2-3") && listed.contains("draft") && listed.contains("Use numbers."),
        "{listed}"
    );
    assert!(listed.contains("kept.txt:1 (old)"), "{listed}");
    run(&["review", "rm", &session, gone.trim()]);
    run(&[
        "review",
        "edit",
        &session,
        listed.lines().nth(1).unwrap().split(' ').next().unwrap(),
        "Use 2 and 3.",
    ]);
    run(&["review", "send", &session, "--message", "/say! done"]);
    let listed = run(&["review", &session]);
    assert!(listed.contains("answered by turn 2") && listed.contains("Use 2 and 3."), "{listed}");
    let json: Value = serde_json::from_str(&run(&["review", &session, "--json"])).unwrap();
    assert_eq!((json["items"].as_array().unwrap().len(), &json["drafts"]), (1, &json!(0)), "{json:#}");
    let nothing = stage.lanyard(&["review", "send", &session]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no draft comments"));
    let bad = stage.lanyard(&["review", "add", &session, "kept.txt", "x"]);
    assert!(
        String::from_utf8_lossy(&bad.stderr).contains("PATH:LINE"),
        "{}",
        String::from_utf8_lossy(&bad.stderr)
    );
}

/// A `gh` that writes down its arguments, one to a line, and knows the pull requests it opened.
const GH: &str = r#"#!/bin/sh
state=$(dirname "$0")
for word in "$@"; do printf '%s\n' "$word" >> "$state/calls"; done
echo -- >> "$state/calls"
case "$2" in
  list) if [ -f "$state/open" ]; then echo '[{"url":"https://forge.test/pull/1"}]'; else echo '[]'; fi ;;
  create) [ -f "$state/fail" ] && { echo "not signed in" >&2; exit 4; }
    touch "$state/open"; echo "Creating pull request"; echo "https://forge.test/pull/1" ;;
esac
"#;

#[test]
fn a_pull_request_is_opened_once_by_the_users_own_program() {
    let tools = tempfile::tempdir().unwrap();
    let gh = tools.path().join("gh");
    std::fs::write(&gh, GH).unwrap();
    std::fs::set_permissions(&gh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let inherited = std::env::var("PATH").unwrap();
    let with = Setup::default().env("PATH", format!("{}:{inherited}", tools.path().display()));
    let daemon = Daemon::start(with);
    let folder = repository(&daemon);
    let folder = Path::new(&folder);
    let remote = daemon.folder().join("remote.git");
    git(daemon.folder(), &["init", "-q", "--bare", "remote.git"]);
    git(folder, &["remote", "add", "origin", &remote.display().to_string()]);
    git(folder, &["checkout", "-qb", "topic"]);
    std::fs::write(folder.join("kept.txt"), "second\n").unwrap();
    git(folder, &["commit", "-qam", "second"]);
    // A hook and a program of the repository are not run.
    let hook = folder.join(".git/hooks/pre-push");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}/hooked\nexit 1\n", tools.path().display())).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let body = json!({ "workspace": folder, "title": "Topic" }).to_string();
    let made = daemon.request("POST", "/api/v1/sessions", &[], Some(&body)).json();
    let path = format!("/api/v1/sessions/{}/pull-request", made["session"].as_str().unwrap());

    let offer = daemon.request("GET", &path, &[], None).json();
    assert_eq!((&offer["program"], &offer["branch"]), (&json!("gh"), &json!("topic")), "{offer:#}");
    let ask = |key: &str, body: Value| {
        daemon.request("POST", &path, &[("idempotency-key", key)], Some(&body.to_string()))
    };
    let wanted = json!({ "title": "Fix; $(touch x)", "body": "Two\nlines", "base": "main", "remote": offer["remote"] });
    std::fs::write(tools.path().join("fail"), "").unwrap();
    let failed = ask("k0", wanted.clone());
    assert_eq!((failed.status, failed.code()), (409, "pull_request_failed".to_owned()), "{}", failed.text());
    assert!(failed.text().contains("not signed in"));
    std::fs::remove_file(tools.path().join("fail")).unwrap();
    let opened = ask("k1", wanted.clone());
    assert_eq!(opened.status, 201, "{}", opened.text());
    assert_eq!(opened.json()["url"], "https://forge.test/pull/1");
    assert_eq!(ask("k1", wanted.clone()).json(), opened.json(), "the same key is the same request");
    let again = ask("k2", wanted.clone()).json();
    assert_eq!(again["existing"], true, "{again:#}");
    assert_eq!(git(&remote, &["rev-parse", "topic"]), git(folder, &["rev-parse", "HEAD"]));
    assert!(!tools.path().join("hooked").exists(), "a hook of the repository was run");
    let calls = std::fs::read_to_string(tools.path().join("calls")).unwrap();
    let created: Vec<&str> = calls.split("--\n").filter(|call| call.starts_with("pr\ncreate\n")).collect();
    let create = "pr\ncreate\n--head\ntopic\n--title\nFix; $(touch x)\n--body\nTwo\nlines\n--base\nmain\n";
    assert_eq!(created, [create, create], "one that failed, and one");

    git(folder, &["remote", "set-url", "origin", "ext::sh -c touch% hooked"]);
    let refused = ask("k3", wanted.clone());
    assert_eq!((refused.status, refused.code()), (409, "remote_unusable".to_owned()));
    git(folder, &["remote", "set-url", "origin", "https://elsewhere.test/a.git"]);
    assert_eq!(ask("k4", wanted.clone()).code(), "remote_changed");
    git(folder, &["remote", "remove", "origin"]);
    assert_eq!(ask("k5", wanted).code(), "no_remote");
    let none = daemon.request("GET", &path, &[], None).json();
    assert!(none.get("program").is_none() && none["why"].as_str().unwrap().contains("no remote"), "{none:#}");
}
