//! Stops, guidance and the audit as their operators meet them on the command line.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::operate::Stage;
use crate::support::{Daemon, PATIENCE, Setup, binary};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn new(daemon: &Daemon) -> String {
    let output = daemon.lanyard(&["new"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

fn json_of(daemon: &Daemon, words: &[&str]) -> Value {
    let output = daemon.lanyard(words);
    assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A call as a hook would report it; what was put in front of its answer.
fn call(daemon: &Daemon, session: &str, id: &str) -> Vec<String> {
    let call = json!({ "id": id, "tool": "Bash", "channel": "hook" });
    let post = |path: &str, body: &Value| {
        let path = format!("/api/v1/sessions/{session}/{path}");
        let answer = daemon.request("POST", &path, &[], Some(&body.to_string()));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let began = post("calls", &call);
    if began["go"] == false {
        return vec![began["text"].as_str().unwrap().to_owned()];
    }
    let lead = post("calls/end", &json!({ "call": call }));
    lead["blocks"].as_array().unwrap().iter().map(|block| block.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_stop_is_shown_until_the_work_has_ended() {
    let stage = Stage::new();
    let session = stage.detached("/say! at it\n/wait 60000");
    let output = stage.lanyard(&["stop", &session, "--now", "--reason", "enough"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.contains("  request   "), "{out}");
    assert!(out.lines().count() > 1, "{out}");
    assert!(err.contains(&format!("{session} is stopped")), "{err}");
    // What is over is told again, at once.
    let receipt = daemon_receipt(&stage.daemon, &session);
    assert_eq!((&receipt["confirmed"], &receipt["state"]), (&json!(true), &json!("stopped")));
}

fn daemon_receipt(daemon: &Daemon, session: &str) -> Value {
    daemon.request("GET", &format!("/api/v1/sessions/{session}/stop"), &[], None).json()
}

/// Starts `lanyard stop` and waits until the stop is in force.
fn stopping(daemon: &Daemon, session: &str) -> std::process::Child {
    let child = Command::new(binary())
        .args(["stop", session])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_NO_START", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while daemon_receipt(daemon, session)["level"].is_null() {
        assert!(since.elapsed() < PATIENCE, "no stop was asked for");
        // sleep: between two looks at what another process does.
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn executing(daemon: &Daemon) -> String {
    let session = new(daemon);
    assert!(daemon.lanyard(&["prompt", &session, "go"]).status.success());
    session
}

#[test]
fn a_stop_that_is_taken_back_or_takes_too_long_is_no_success() {
    let daemon = Daemon::start(Setup::default());
    let session = executing(&daemon);
    let child = stopping(&daemon, &session);
    assert!(daemon.lanyard(&["unstop", &session]).status.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("was taken back"), "{}", text(&output.stderr));

    let output = daemon.lanyard(&["stop", &session, "--timeout", "0"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the stop stands"), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_leaves_a_stop_standing() {
    let daemon = Daemon::start(Setup::default());
    let session = executing(&daemon);
    let child = stopping(&daemon, &session);
    let pid = rustix::process::Pid::from_child(&child);
    // sleep: the command has to be listening before it is told to leave; it prints nothing when it is.
    std::thread::sleep(Duration::from_millis(300));
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("lanyard unstop"), "{}", text(&output.stderr));
    assert_eq!(daemon_receipt(&daemon, &session)["level"], 1);
}

#[test]
fn guidance_is_listed_with_what_became_of_it() {
    let daemon = Daemon::start(Setup::default());
    let session = executing(&daemon);
    let guide = |words: &str| {
        let output = daemon.lanyard(&["guide", &session, words]);
        assert!(text(&output.stderr).contains("agent's next"), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let first = guide("mind the gap");
    assert_eq!(call(&daemon, &session, "call_1").len(), 1);
    assert_eq!(call(&daemon, &session, "call_2").len(), 0);
    let second = guide("and the doors");
    assert!(daemon.lanyard(&["guidance", &session, "--withdraw", &second]).status.success());
    let third = guide("one more");
    let table = text(&daemon.lanyard(&["guidance", &session]).stdout);
    let row = |note: &str| table.lines().find(|line| line.starts_with(note)).unwrap().to_owned();
    assert!(row(&first).contains("acknowledged") && row(&first).contains("hook call_1"), "{table}");
    assert!(row(&second).contains("withdrawn"), "{table}");
    assert!(row(&third).contains("pending") && row(&third).contains("one more"), "{table}");
    let list = json_of(&daemon, &["guidance", &session, "--json"]);
    let waiting = list["items"].as_array().unwrap().iter().filter(|note| note["status"] == "pending");
    assert_eq!(waiting.count(), 1, "{list}");
}

/// S0-59, S0-65: what took effect is told with its channel and call; each entry is a line of text too.
#[test]
fn the_audit_has_who_did_what_by_which_channel_and_when() {
    let daemon = Daemon::start(Setup::default());
    let session = executing(&daemon);
    let quiet = new(&daemon);
    daemon.lanyard(&["guide", &session, &"é".repeat(300)]);
    call(&daemon, &session, "call_1");
    daemon.lanyard(&["stop", &session, "--no-wait", "--reason", "wrong branch"]);
    call(&daemon, &session, "call_2");
    // Seen to its end, so that nothing more is written while the audit is read.
    daemon.lanyard(&["stop", &quiet]);

    let all = json_of(&daemon, &["audit", "--json"]);
    let entries = all["items"].as_array().unwrap();
    let of =
        |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{all}"));
    let injected = of("session_injected");
    assert_eq!(injected["text_preview"].as_str().unwrap().chars().count(), 100, "{injected}");
    assert_eq!((&injected["channel"], &injected["call"]), (&json!("hook"), &json!("call_1")));
    let interrupted = of("session_interrupted");
    assert_eq!((&interrupted["escalation_level"], &interrupted["session"]), (&json!(1), &json!(session)));
    let asked =
        entries.iter().find(|entry| entry["event"] == "stop.requested" && entry["session"] == session);
    let asked = asked.unwrap();
    assert_eq!((&asked["actor"]["name"], &asked["reason"]), (&json!("local"), &json!("wrong branch")));
    let times: Vec<&str> = entries.iter().map(|entry| entry["at"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");

    let stops = json_of(&daemon, &["audit", &session, "--kind", "stop", "--json"]);
    assert!(
        stops["items"]
            .as_array()
            .unwrap()
            .iter()
            .all(|entry| entry["kind"] == "stop" && entry["session"] == session)
    );
    assert_eq!(json_of(&daemon, &["audit", "--until", "2020-01-01T00:00:00Z", "--json"])["items"], json!([]));
    let lines = text(&daemon.lanyard(&["audit", "--since", "1h", "--jsonl"]).stdout);
    assert_eq!(lines.lines().count(), entries.len(), "{lines}");
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(line, entries[0]);
    let table = text(&daemon.lanyard(&["audit"]).stdout);
    assert!(table.contains("stop.applied") && table.contains("hook call_2"), "{table}");
}

#[test]
fn the_audit_is_read_in_pages() {
    let daemon = Daemon::start(Setup::default());
    for _ in 0..3 {
        let session = executing(&daemon);
        for n in 0..5 {
            daemon.lanyard(&["guide", &session, &format!("word {n}")]);
        }
    }
    let page = |query: &str| {
        let answer = daemon.request("GET", &format!("/api/v1/audit?{query}"), &[], None);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    let whole = page("limit=100");
    let mut read: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let next = page(&format!("limit=4{cursor}"));
        read.extend(next["entries"].as_array().unwrap().iter().cloned());
        match next["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(read.len(), 15);
    assert_eq!(&read, whole["entries"].as_array().unwrap());
    for (query, code) in [
        ("cursor=x", "cursor_unreadable"),
        ("limit=0", "query_invalid"),
        ("kind=x", "query_invalid"),
        ("session=nobody", "session_not_found"),
    ] {
        assert_eq!(daemon.request("GET", &format!("/api/v1/audit?{query}"), &[], None).code(), code);
    }
}

#[test]
fn mcp_servers_are_listed_checked_and_addressed() {
    let command = format!("[\"{}\", \"scripted-mcp\"]", binary().display());
    let config = format!("[mcp.tools]\ncommand = {command}\n[mcp.broken]\ncommand = [\"/does/not/exist\"]\n");
    let daemon = Daemon::start(Setup::default().config(&config));
    let table = text(&daemon.lanyard(&["mcp", "ls"]).stdout);
    assert!(table.lines().any(|line| line.starts_with("tools") && line.contains("stdio")), "{table}");
    let names = json_of(&daemon, &["mcp", "ls", "--json"]);
    assert!(names["items"].as_array().unwrap().iter().any(|server| server["name"] == "lanyard"), "{names}");
    let output = daemon.lanyard(&["mcp", "check", "tools"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).starts_with("tools: ok, lanyard-scripted-mcp"), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("5 tools"), "{}", text(&output.stdout));
    let output = daemon.lanyard(&["mcp", "check", "broken"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let session = new(&daemon);
    let printed = text(&daemon.lanyard(&["mcp", "url", "tools", "--session", &session]).stdout);
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some(format!("http://{}/mcp/{session}/tools", daemon.address()).as_str()));
    assert!(
        lines.next().unwrap().to_ascii_lowercase().starts_with("authorization: bearer lyd_"),
        "{printed}"
    );
    let external = json_of(&daemon, &["mcp", "url", "tools", "--agent", "cursor", "--json"]);
    let made = external["session"].as_str().unwrap();
    let view = daemon.request("GET", &format!("/api/v1/sessions/{made}"), &[], None).json();
    assert_eq!((&view["source"], &view["agent"]), (&json!("external"), &json!("cursor")));
}
