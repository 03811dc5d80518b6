//! `lanyard acp` with the TypeScript SDK that editors use: a client of its own, in Node, over real pipes.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents;
use crate::support::{Daemon, Setup, binary};

/// How long the whole tour may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Runs the tour and gives what it saw.
fn tour(daemon: &Daemon, work: &std::path::Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let modules = agents::inside("acp_sdk", "node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let script = folder.path().join("tour.mjs");
    std::fs::write(&script, include_str!("editors/tour.mjs")).unwrap();
    let child = Command::new("node")
        .arg(script)
        .args([binary(), work])
        .env("LANYARD_DATA_DIR", daemon.home())
        .env("LANYARD_CONFIG", daemon.config())
        .env("LANYARD_NO_START", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (send, done) = mpsc::sync_channel(1);
    std::thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = done.recv_timeout(PATIENCE) else {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        panic!("the tour does not come to an end");
    };
    let output = output.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(out.trim()).unwrap_or_else(|_| panic!("the tour said:\n{out}\n{err}"))
}

#[test]
fn the_typescript_sdk_has_durable_sessions() {
    let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let state = folder.path().join("state").display().to_string();
    let command =
        serde_json::to_string(&[&binary().display().to_string(), "scripted-agent", "--state", &state]);
    let config = format!("[agents.a]\ndriver = \"acp\"\ncommand = {}\n", command.unwrap());
    let daemon = Daemon::start(Setup::default().config(&config));
    let seen = tour(&daemon, &work);
    let expected = json!({
        "agent": "lanyard",
        "version": 1,
        "first": {
            "stop": "end_turn",
            "told": ["thought: hm", "plan: a, b", "message: hello world", "call: read: /w/a in_progress", "done: completed"],
            "tokens": 15,
        },
        "permission": { "asked": "May I?", "options": ["allow_once", "allow_always", "reject_once"], "said": "permission: allow_once" },
        "cancelled": "cancelled",
        "busy": "turn_rejected_busy",
        "observed": ["user: /say seen by both", "message: seen by both"],
        "elsewhere": { "taken_back": true, "stop": "end_turn" },
        "listed": true,
        "loaded_as_streamed": true,
        "forked": true,
        "resumed": "end_turn",
        "unknown": -32002,
        "not_offered": -32601,
        "finished_without_us": true,
    });
    assert_eq!(seen, expected, "{seen:#}");
    // Nothing of it is left running.
    for row in daemon.request("GET", "/api/v1/sessions", &[], None).json()["sessions"].as_array().unwrap() {
        let path = format!("/api/v1/sessions/{}/stop", row["id"].as_str().unwrap());
        for _ in 0..3 {
            daemon.request("POST", &path, &[], Some("{}"));
        }
    }
}
