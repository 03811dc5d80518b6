//! A cancel is confirmed when the processes of the turn are gone. The agent confirms at once and leaves its commands
//! running, as Codex does.

use serde_json::{Value, json};

use super::kit::{Stage, Talk, interrupted, marked, until};

/// A command that writes on and on; its number is in `pid`.
const WRITES: &str = "echo $$ > pid; while :; do echo more >> grows; sleep 0.01; done";

/// Sets the agent to work at a step that leaves a process running.
fn leaves_running<'a>(stage: &'a Stage, step: &str) -> (Talk<'a>, u32) {
    let mut talk = stage.talk();
    talk.turn(&format!("{step}\n/touch there\n/wait 60000"));
    stage.await_file("there");
    stage.await_file("grows");
    talk.until("run.ready");
    let pid = std::fs::read_to_string(stage.file("pid")).unwrap().trim().parse().unwrap();
    assert!(lives(pid));
    (talk, pid)
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Nothing of the run lives but its agent.
fn is_alone(talk: &Talk<'_>) {
    let living = marked(&talk.run());
    assert_eq!(living.len(), 1, "{living:?}");
    assert!(living[0].contains(" scripted-agent "), "{living:?}");
}

/// The processes a receipt lists as ended, each with its signal.
fn ended(event: &Value) -> Vec<(u64, String)> {
    let processes = event["data"]["receipt"]["processes"].as_array();
    let by = |process: &Value| process["by"].as_str().unwrap().to_owned();
    processes.into_iter().flatten().map(|process| (process["pid"].as_u64().unwrap(), by(process))).collect()
}

fn is_cut_off(talk: &mut Talk<'_>, pid: u32, by: &str) {
    let end = talk.over();
    assert!(!lives(pid), "the turn is told as interrupted while its command lives: {end:#}");
    is_alone(talk);
    interrupted(&end, "user");
    assert!(ended(&end).contains(&(u64::from(pid), by.to_owned())), "{end:#}");
}

/// FND-R3.
#[test]
fn fnd_r3_a_cancel_is_confirmed_when_the_commands_of_the_turn_are_gone() {
    let stage = Stage::new();
    let (mut talk, pid) = leaves_running(&stage, &format!("/run-on {WRITES}"));
    talk.cancel();
    is_cut_off(&mut talk, pid, "TERM");
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.runs(), 1, "the agent itself goes on");
}

/// FND-K13: a process in a session of its own, its parent gone.
#[test]
fn fnd_k13_setsid_a_cancel_ends_what_forked_away() {
    let stage = Stage::new();
    let (mut talk, pid) = leaves_running(&stage, &format!("/fork-away exec sh -c '{WRITES}'"));
    talk.cancel();
    is_cut_off(&mut talk, pid, "TERM");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// FND-R3: one that does not heed SIGTERM is killed, and the turn waits for that.
#[test]
fn fnd_r3_a_command_that_ignores_term_is_killed_before_the_cancel_is_confirmed() {
    let stage = Stage::with(&[], "kill_grace_ms = 200\n");
    let (mut talk, pid) = leaves_running(&stage, &format!("/run-on trap '' TERM; {WRITES}"));
    talk.cancel();
    is_cut_off(&mut talk, pid, "KILL");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// FND-R3: a stop of the turn alone.
#[test]
fn fnd_r3_a_stop_of_the_turn_is_confirmed_when_its_commands_are_gone() {
    let stage = Stage::new();
    let (mut talk, pid) = leaves_running(&stage, &format!("/run-on {WRITES}"));
    let answer = talk.post("stop", &json!({"scope": "turn", "now": true}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    is_cut_off(&mut talk, pid, "TERM");
    talk.until("stop.settled");
    let receipt = stage.get(&format!("/sessions/{}/stop", talk.id));
    assert_eq!(receipt["confirmed"], true, "{receipt:#}");
    let told = format!("(pid {pid}) ended by TERM");
    assert!(receipt["steps"].to_string().contains(&told), "{receipt:#}");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

/// FND-R3: a message that interrupts.
#[test]
fn fnd_r3_a_message_that_interrupts_runs_after_the_commands_of_the_turn_are_gone() {
    let stage = Stage::new();
    let (mut talk, pid) = leaves_running(&stage, &format!("/run-on {WRITES}"));
    let body = json!({"prompt": "/say instead", "delivery": "interrupt"});
    let answer = talk.post("turns", &body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    is_cut_off(&mut talk, pid, "TERM");
    assert_eq!(talk.over()["data"]["outcome"], "completed");
    assert_eq!(talk.said(), "instead");
    assert_eq!(talk.runs(), 1);
}

/// FND-R3: servers that the agent started for itself, and what an earlier turn left on purpose.
#[test]
fn fnd_r3_a_cancel_leaves_alone_what_is_not_of_the_turn() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    let server = stage.file("mcp-sleep");
    std::os::unix::fs::symlink("/bin/sleep", &server).unwrap();
    talk.answer_to("/run-on echo $$ > aside; mv aside earlier; exec sleep 1000\n/wait-file earlier");
    let earlier: u32 = std::fs::read_to_string(stage.file("earlier")).unwrap().trim().parse().unwrap();
    talk.turn(&format!("/serve {} 1001\n/touch there\n/wait 60000", server.display()));
    stage.await_file("there");
    runs(&talk, "mcp-sleep 1001");
    talk.cancel();
    let end = talk.over();
    assert_eq!(ended(&end), [], "{end:#}");
    assert_eq!(end["data"]["receipt"]["kept"][0]["name"], "mcp-sleep", "{end:#}");
    assert_eq!(end["data"]["receipt"].get("left"), None, "{end:#}");
    assert!(lives(earlier), "it is of the turn before");
    assert!(marked(&talk.run()).iter().any(|line| line.ends_with("mcp-sleep 1001")));
    assert_eq!(talk.answer_to("/say on"), "on");
}

/// Waits until a process of the run has this command line.
fn runs(talk: &Talk<'_>, line: &str) {
    until(line, || marked(&talk.run()).iter().any(|held| held.ends_with(line)));
}

/// FND-R3: a command without a shell, in the agent's own process group, is no server.
#[test]
fn fnd_r3_a_command_without_a_shell_ends_with_its_turn() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/run-bare sleep 1002\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.until("run.ready");
    runs(&talk, "sleep 1002");
    let answer = talk.post("stop", &json!({"scope": "turn", "now": true}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    let end = talk.over();
    is_alone(&talk);
    assert_eq!(ended(&end).len(), 1, "{end:#}");
    assert_eq!(end["data"]["receipt"].get("kept"), None, "{end:#}");
    talk.until("stop.settled");
    assert_eq!(stage.get(&format!("/sessions/{}/stop", talk.id))["confirmed"], true);
    assert_eq!(talk.answer_to("/say on"), "on");
}

/// FND-R3: a program that talks over pipes and is not named as a server may be either: it is not ended, and the stop
/// is not confirmed.
#[test]
fn fnd_r3_a_program_that_may_be_a_server_is_told_and_not_confirmed() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/serve sleep 1003\n/touch there\n/wait 60000");
    stage.await_file("there");
    talk.until("run.ready");
    runs(&talk, "sleep 1003");
    let answer = talk.post("stop", &json!({"scope": "turn", "now": true}));
    assert_eq!(answer.status, 202, "{}", answer.text());
    let end = talk.over();
    assert_eq!(end["data"]["receipt"]["left"][0]["name"], "sleep", "{end:#}");
    runs(&talk, "sleep 1003");
    talk.until("stop.settled");
    let receipt = stage.get(&format!("/sessions/{}/stop", talk.id));
    assert_eq!(receipt["confirmed"], false, "{receipt:#}");
    assert!(receipt["steps"].to_string().contains("may still run"), "{receipt:#}");
    assert_eq!(talk.answer_to("/say on"), "on");
}

/// FND-R3: nobody can say whose command it is, so it is not ended with the subagent, and the receipt says so.
#[test]
fn fnd_r3_a_stopped_subagent_whose_command_may_live_is_not_confirmed() {
    let stage = Stage::new();
    let mut talk = stage.talk();
    talk.turn("/spawn slow /run-on echo 1 > grows; sleep 1000; : ; /touch there ; /wait 60000\n/wait 60000");
    stage.await_file("there");
    stage.await_file("grows");
    let child = talk.until("session.child_linked")["data"]["child"].as_str().unwrap().to_owned();
    let mut child = stage.follow(&child);
    child.until("turn.started");
    child.stop();
    let end = child.over();
    assert!(end["data"]["receipt"]["left"].to_string().contains("\"sleep\""), "{end:#}");
    child.until("session.ended");
    let receipt = stage.get(&format!("/sessions/{}/stop", child.id));
    assert_eq!(receipt["confirmed"], false, "{receipt:#}");
    assert!(receipt["steps"].to_string().contains("may still run"), "{receipt:#}");
    // Its parent's end takes it along.
    talk.cancel();
    let end = talk.over();
    assert_eq!(ended(&end).len(), 2, "{end:#}");
    is_alone(&talk);
}
