//! Agents run once per turn: JSON lines out, and a second process that goes on where the first ended.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use super::Ground;
use crate::agents::{self, Agent, Rights};
use crate::model::{Role, Step, marker};
use crate::peer::{PATIENCE, end_group};

#[test]
fn claude_goes_on_in_a_second_process() {
    let ground = Ground::new();
    let agent = agents::claude_print(&ground.home, &ground.model, Rights::All);
    goes_on(&ground, &agent, "session_id", |id| vec!["--resume".to_owned(), id.to_owned()]);
}

#[test]
fn codex_goes_on_in_a_second_process() {
    let ground = Ground::new();
    let agent = agents::codex_exec(&ground.home, &ground.model, Rights::All);
    goes_on(&ground, &agent, "thread_id", |id| vec!["resume".to_owned(), id.to_owned()]);
}

/// Runs two turns, the second with the id that the first printed in a member called `key`.
fn goes_on(ground: &Ground, agent: &Agent, key: &str, resume: fn(&str) -> Vec<String>) {
    ground.model.script("first", [Step::text("First answer.")]);
    ground.model.script("second", [Step::text("Second answer.")]);
    let first = turn(ground, agent, &[], "first");
    assert!(first.iter().any(|line| line.to_string().contains("First answer.")), "{first:?}");
    let id = first.iter().find_map(|line| line[key].as_str()).unwrap();
    let second = turn(ground, agent, &resume(id), "second");
    assert!(second.iter().any(|line| line.to_string().contains("Second answer.")), "{second:?}");
    let asked = ground.model.wait("the second turn", PATIENCE, |asked| asked.is("second", 0)).asked;
    assert!(asked.says(Role::User, &marker("first")), "the first prompt is remembered");
    assert!(asked.says(Role::Assistant, "First answer."), "the first answer is remembered");
}

fn turn(ground: &Ground, agent: &Agent, extra: &[String], script: &str) -> Vec<Value> {
    let stderr = File::create(ground.home.join("stderr.txt")).unwrap();
    let mut process = agent.process(&ground.work);
    process.args(extra).arg(format!("go {}", marker(script)));
    let mut child = process.stdin(Stdio::null()).stderr(stderr).process_group(0).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (send, output) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut output = String::new();
        let _ = send.send(stdout.read_to_string(&mut output).map(|_| output));
    });
    let output = output.recv_timeout(PATIENCE);
    end_group(&mut child);
    let output = output.expect("the turn ends").unwrap();
    let lines: Result<Vec<Value>, _> = output.lines().map(serde_json::from_str).collect();
    lines.unwrap_or_else(|error| panic!("{error}: {output}"))
}
