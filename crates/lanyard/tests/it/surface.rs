//! The command line against a daemon: JSON, exit codes, pipes, following, replaying, checking.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Daemon, Setup, binary};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs it and gives back what it printed.
fn ok(daemon: &Daemon, words: &[&str]) -> String {
    let output = daemon.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

fn json(daemon: &Daemon, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&ok(daemon, &words)).unwrap()
}

fn with_stdin(daemon: &Daemon, words: &[&str], input: &str) -> Output {
    let mut child = Command::new(binary())
        .args(words)
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_NO_START", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn every_command_speaks_json() {
    let daemon = Daemon::start(Setup::default());
    let made = json(&daemon, &["new", "--title", "one", "--key", "k1"]);
    assert_eq!(json(&daemon, &["new", "--title", "one", "--key", "k1"]), made);
    let id = made["session"].as_str().unwrap();
    assert!(json(&daemon, &["prompt", id, "go"])["turn"].as_str().unwrap().starts_with("turn_"));
    let note = json(&daemon, &["guide", id, "careful"])["note"].as_str().unwrap().to_owned();
    assert_eq!(json(&daemon, &["guidance", id, "--withdraw", &note])["events"], 1);
    assert_eq!(json(&daemon, &["stop", id, "--no-wait"])["stop_level"], 1);
    assert_eq!(json(&daemon, &["unstop", id])["state"], "executing");
    assert_eq!(json(&daemon, &["cancel", id])["events"], 1);
    let done = r#"{"type": "work_ended", "channel": "test"}"#;
    assert_eq!(json(&daemon, &["signal", id, done])["state"], "interrupted");
    assert_eq!(json(&daemon, &["checkpoint", id])["events"], 1);
    assert_eq!(json(&daemon, &["migrate", id, "--owner", "mira", "--reason", "shift"])["events"], 1);
    assert_eq!(json(&daemon, &["alias", id, "other"])["events"], 1);
    assert_eq!(json(&daemon, &["archive", id])["events"], 1);
    assert_eq!(json(&daemon, &["archive", id, "--undo"])["events"], 1);
    assert_eq!(json(&daemon, &["reset", id])["state"], "beginning");
    let fork = json(&daemon, &["fork", id, "--at", "2"])["session"].as_str().unwrap().to_owned();
    assert_ne!(fork, id);
    assert_eq!(json(&daemon, &["link", &fork, id])["session"], fork.as_str());
    assert_eq!(json(&daemon, &["ls"])["items"].as_array().unwrap().len(), 2);
    assert_eq!(json(&daemon, &["tree", id])["children"][0]["id"], fork.as_str());
    assert_eq!(json(&daemon, &["tree"])["items"][0]["children"][0]["id"], fork.as_str());
    assert_eq!(json(&daemon, &["show", "other"])["owner"], "mira");
    assert_eq!(json(&daemon, &["complete", &fork])["state"], "completed");
    assert_eq!(json(&daemon, &["fail", id, "--reason", "no"])["state"], "failed");
    assert_eq!(json(&daemon, &["rm", &fork, "--yes"])["events"], 1);
    let token = json(&daemon, &["token", "new", "dash", "--role", "observer"]);
    assert_eq!(json(&daemon, &["token", "ls"])["items"][0]["id"], token["id"]);
    json(&daemon, &["token", "rm", token["id"].as_str().unwrap()]);
    assert_eq!(json(&daemon, &["status"])["storage"], "ok");
    assert!(
        json(&daemon, &["doctor"])["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|finding| finding["level"] == "ok")
    );
    assert_eq!(json(&daemon, &["replay", id, "--at", "1"])["seq"], 1);
    assert!(json(&daemon, &["schema"])["openapi"].is_string());
    for line in ok(&daemon, &["logs", id, "--json"]).lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["session"], id);
    }
}

#[test]
fn refusals_end_with_1_and_misuse_with_2() {
    let daemon = Daemon::start(Setup::default());
    let refused = daemon.lanyard(&["show", "nobody"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        text(&refused.stderr),
        "error: there is no session `nobody` [session_not_found]\n  try: list the sessions with `lanyard ls --all`\n"
    );
    let refused = daemon.lanyard(&["show", "nobody", "--json"]);
    let problem: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&"session_not_found".into(), &404.into()));

    for misuse in
        [&["prompt"][..], &["ls", "--state", "tired"], &["rm", "x"], &["signal", "x", "{}"], &["show", ""]]
    {
        assert_eq!(daemon.lanyard(misuse).status.code(), Some(2), "{misuse:?}");
    }
}

#[test]
fn names_may_hold_anything() {
    let daemon = Daemon::start(Setup::default());
    for alias in ["ws::plan::7", "a/b", "two words", "grün 漢字", "50%?&#=+", "..", "-x"] {
        let id = ok(&daemon, &["new", &format!("--alias={alias}")]);
        assert!(ok(&daemon, &["show", "--", alias]).contains(&id), "{alias}");
        assert_eq!(
            json(&daemon, &["ls", &format!("--text={alias}")])["items"][0]["id"],
            id.as_str(),
            "{alias}"
        );
    }
}

/// S0-O1.
#[test]
fn an_alias_used_twice_is_narrowed_by_its_workspace() {
    let daemon = Daemon::start(Setup::default());
    let web = ok(&daemon, &["new", "--alias", "main", "--workspace", "web"]);
    let app = ok(&daemon, &["new", "--alias", "main", "--workspace", "app"]);
    assert_eq!(daemon.lanyard(&["show", "main"]).status.code(), Some(1));
    assert_eq!(json(&daemon, &["show", "main", "--workspace", "web"])["id"], web.as_str());
    assert_eq!(json(&daemon, &["show", "main", "--workspace", "app"])["id"], app.as_str());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let daemon = Daemon::start(Setup::default());
    ok(&daemon, &["new"]);
    for words in [&["ls"][..], &["ls", "--json"], &["status"], &["tree"]] {
        let mut child = Command::new(binary())
            .args(words)
            .env("LANYARD_DATA_DIR", daemon.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn a_listing_reads_all_pages_unless_it_is_told_to_stop() {
    let daemon = Daemon::start(Setup::default());
    let keep = ok(&daemon, &["new", "--title", "kept"]);
    let gone = ok(&daemon, &["new", "--title", "put away"]);
    ok(&daemon, &["archive", &gone]);
    for _ in 0..1_100 {
        let made = daemon.request("POST", "/api/v1/sessions", &[], Some("{}"));
        assert_eq!(made.status, 201, "{}", made.text());
    }
    assert_eq!(json(&daemon, &["ls"])["items"].as_array().unwrap().len(), 1_101);
    assert_eq!(json(&daemon, &["ls", "--all"])["items"].as_array().unwrap().len(), 1_102);
    let first = json(&daemon, &["ls", "--limit", "7"]);
    assert_eq!(first["items"].as_array().unwrap().len(), 7);
    let second = json(&daemon, &["ls", "--limit", "7", "--cursor", first["next"].as_str().unwrap()]);
    assert_eq!(second["items"].as_array().unwrap().len(), 7);
    assert_ne!(first["items"][6]["id"], second["items"][0]["id"]);
    assert!(json(&daemon, &["ls", "--all"])["next"].is_null());
    assert_eq!(json(&daemon, &["ls", "--archived"])["items"][0]["id"], gone.as_str());
    assert_eq!(json(&daemon, &["ls", "--text", "kept"])["items"][0]["id"], keep.as_str());
    let forest = daemon.lanyard(&["tree"]);
    assert_eq!(text(&forest.stdout).lines().count(), 1_000);
    assert!(text(&forest.stderr).contains("only the 1000 newest are shown"));
}

/// The reader sees every event once, in order, although the daemon is killed under it, and ends with the session.
#[test]
fn following_outlasts_a_crash_of_the_daemon() {
    let mut daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    let mut reader = Command::new(binary())
        .args(["logs", "--follow", "--json", &id])
        .env("LANYARD_DATA_DIR", daemon.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["type"], "session.created");
    ok(&daemon, &["alias", &id, "two"]);
    assert_eq!(next()["data"]["alias"], "two");
    daemon.kill_9();
    daemon.restart_with(Setup::default());
    ok(&daemon, &["alias", &id, "three"]);
    assert_eq!(next()["data"]["alias"], "three");
    ok(&daemon, &["complete", &id]);
    let last = next();
    assert_eq!((&last["type"], &last["seq"]), (&"session.ended".into(), &4.into()));
    let output = reader.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stderr),
        "the daemon is gone; start it with `lanyard up --detach` (waiting up to 60 s)\nthe daemon is back; going on \
         after event 2\n"
    );
}

/// FND-N12: a daemon that does not come back is not waited for without end.
#[test]
fn fnd_n12_following_ends_when_the_daemon_stays_away() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    let mut reader = Command::new(binary())
        .args(["logs", "--follow", &id])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_DAEMON_WAIT_MS", "1500")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("session.created"));
    ok(&daemon, &["alias", &id, "two"]);
    assert!(lines.next().unwrap().unwrap().contains("two"), "it follows");
    daemon.kill_9();
    let output = reader.wait_with_output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.starts_with("the daemon is gone; start it with `lanyard up --detach`"), "{told}");
    assert!(told.contains("[daemon_gone]"), "{told}");
    assert!(told.contains(&format!("lanyard logs -f {id} --after 2")), "{told}");
}

/// FND-N8: the pieces of one message are one line for people, and as they are for programs.
#[test]
fn fnd_n8_the_pieces_of_one_message_are_one_line_of_the_log() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    for (message, said) in [("m1", "Looking at "), ("m1", "the tests."), ("m2", "They "), ("m2", "pass.")] {
        let said =
            format!(r#"{{"type": "said", "role": "agent", "text": "{said}", "message_id": "{message}"}}"#);
        let path = format!("/api/v1/sessions/{id}/signals");
        assert_eq!(daemon.request("POST", &path, &[], Some(&said)).status, 201);
    }
    ok(&daemon, &["complete", &id]);
    for words in [&["logs", &id][..], &["logs", "-f", &id], &["attach", &id]] {
        let printed = ok(&daemon, words);
        let said: Vec<(&str, &str)> = printed
            .lines()
            .filter_map(|line| Some((line.split_whitespace().next()?, line.split_once("agent: ")?.1)))
            .collect();
        assert_eq!(said, [("2", "Looking at the tests."), ("4", "They pass.")], "{words:?}: {printed}");
        assert!(printed.lines().last().unwrap().contains("session.ended"), "{words:?}: {printed}");
    }
    assert_eq!(ok(&daemon, &["logs", "--json", &id]).matches(r#""type":"message""#).count(), 4);
}

#[test]
fn logs_begin_where_they_are_asked_to() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    for n in 2..=700 {
        let said = format!(r#"{{"type": "said", "role": "agent", "text": "word {n}"}}"#);
        let path = format!("/api/v1/sessions/{id}/signals");
        assert_eq!(daemon.request("POST", &path, &[], Some(&said)).status, 201);
    }
    let first = |words: &[&str]| -> (usize, u64) {
        let words: Vec<&str> = ["logs", &id, "--json"].into_iter().chain(words.iter().copied()).collect();
        let printed = ok(&daemon, &words);
        let first = printed
            .lines()
            .next()
            .map_or(0, |line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap());
        (printed.lines().count(), first)
    };
    assert_eq!(first(&[]), (50, 651));
    assert_eq!(first(&["--tail", "3"]), (3, 698));
    assert_eq!(first(&["--tail", "9999"]), (700, 1));
    assert_eq!(first(&["--after", "0"]), (700, 1));
    assert_eq!(first(&["--after", "600"]), (100, 601));
    assert_eq!(first(&["--after", "700"]), (0, 0));
    assert_eq!(daemon.lanyard(&["logs", &id, "--after", "701"]).status.code(), Some(1));
}

#[test]
fn a_log_is_replayed_from_the_daemon_from_a_file_and_from_stdin() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    ok(&daemon, &["prompt", &id, "go"]);
    ok(&daemon, &["alias", &id, "x"]);
    ok(&daemon, &["stop", &id, "--no-wait"]);
    let steps = ok(&daemon, &["replay", &id]);
    assert_eq!(
        steps,
        "    1  session.created         beginning\n    2  turn.started            executing\n    \
         3  session.alias_added     executing\n    4  stop.requested          executing, stop level 1"
    );
    let log = ok(&daemon, &["logs", &id, "--json", "--after", "0"]) + "\n";
    assert_eq!(text(&with_stdin(&daemon, &["replay", "-"], &log).stdout).trim_end(), steps);
    let file = daemon.home().join("log.jsonl");
    std::fs::write(&file, &log).unwrap();
    assert_eq!(ok(&daemon, &["replay", file.to_str().unwrap()]), steps);

    let gap: Vec<&str> = log.lines().filter(|line| !line.contains("alias_added")).collect();
    let senseless = with_stdin(&daemon, &["replay", "-"], &gap.join("\n"));
    assert_eq!(senseless.status.code(), Some(1));
    assert_eq!(text(&senseless.stdout).lines().count(), 2);
    let said = text(&senseless.stderr);
    assert!(
        said.contains("stops making sense at event 3: event 4 follows event 2 [log_senseless]"),
        "{said}"
    );
}

#[test]
fn text_can_come_from_stdin() {
    let daemon = Daemon::start(Setup::default());
    let id = ok(&daemon, &["new"]);
    let started = with_stdin(&daemon, &["prompt", &id, "-"], "line one\nline two\n");
    assert!(started.status.success(), "{}", text(&started.stderr));
    let log = ok(&daemon, &["logs", &id, "--json"]);
    assert!(log.contains(r#""prompt":"line one\nline two\n""#), "{log}");
}

#[test]
fn the_doctor_finds_what_is_open_to_others_and_checks_the_journal_with_and_without_a_daemon() {
    let daemon = Daemon::start(Setup::default().config("[daemon]\nlisten = \"127.0.0.1:0\"\n"));
    ok(&daemon, &["new"]);
    assert!(ok(&daemon, &["doctor", "--rebuild"]).contains("of 1 sessions were made again"));
    let token = daemon.home().join("token");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).unwrap();
    let sick = daemon.lanyard(&["doctor"]);
    assert_eq!(sick.status.code(), Some(1));
    let fix = format!("fix: chmod 600 {}", token.display());
    assert!(text(&sick.stdout).contains(&fix), "{}", text(&sick.stdout));
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    daemon.terminate();
    let alone = ok(&daemon, &["doctor", "--rebuild"]);
    assert!(alone.contains("1 sessions, 1 events") && alone.contains("nothing is damaged"), "{alone}");
    std::fs::write(daemon.home().join("journal.db"), "not a database").unwrap();
    let foreign = daemon.lanyard(&["doctor"]);
    assert_eq!(foreign.status.code(), Some(1));
    assert!(text(&foreign.stdout).contains("FAIL  journal"), "{}", text(&foreign.stdout));
}

#[test]
fn a_config_is_written_once_and_is_understood() {
    let daemon = Daemon::prepare(Setup::default());
    assert_eq!(ok(&daemon, &["init"]), daemon.config().display().to_string());
    // Where another daemon has the usual port, a free one is written.
    let written = std::fs::read_to_string(daemon.config()).unwrap().replace("\nlisten = \"127.0.0.1:0\"", "");
    assert!(written.starts_with(lanyard_api::config::TEMPLATE), "{written}");
    let again = daemon.lanyard(&["init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("[config_exists]"));
    ok(&daemon, &["init", "--force"]);
    assert!(text(&daemon.lanyard(&["doctor"]).stdout).contains("config.toml is understood"));
}

#[test]
fn completions_are_made_for_every_shell() {
    let daemon = Daemon::prepare(Setup::default());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(ok(&daemon, &["completions", shell]).contains("LANYARD_COMPLETE"), "{shell}");
    }
}
