//! Waiting for a task outlives the one who waits (S4-B11): a task is a handle, whoever asks for it again gets what came of
//! it, and who does not ask again hears of it all the same.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::kit::{Stage, id, until};
use super::talk::{begin, below, step, tasks};
use crate::support::{binary, head};

/// A session that waits for its child, which waits for the file `go`. Answers the session, and the child.
fn waiting(stage: &Stage) -> (String, String) {
    let chat = stage.chat();
    let child = format!("/wait-file {}\n/say the long answer", stage.sign("go").display());
    let spawn = json!({ "action": "spawn", "prompt": child, "key": "long", "title": "the long one" });
    let child = id(&tasks(stage, &chat, &spawn)["tasks"][0], "task_id");
    stage.is(&child, "running");
    let wait = json!({ "action": "await", "task_ids": [child], "wait_ms": 600_000 });
    begin(stage, &chat, &format!("/touch {}\n{}", stage.sign("waits").display(), step(&wait)));
    stage.await_sign("waits");
    until("the call", || {
        let log = stage.daemon.log_after(&chat, 0);
        log.iter().filter(|event| event["type"] == "tool.called").count() >= 2
    });
    (chat, child)
}

/// Ends the agent of a session that has no task, and waits until that is seen.
fn kill_agent(stage: &Stage, session: &str) {
    stage.kill_agent(session);
    let shown = || stage.get(&format!("/sessions/{session}"));
    until("the agent's end to be seen", || shown()["state"] == "interrupted");
}

/// The caller dies while it waits, comes back, and waits for the same task.
#[test]
fn who_died_while_it_waited_waits_again_and_gets_the_result() {
    let stage = Stage::new();
    let (chat, child) = waiting(&stage);
    kill_agent(&stage, &chat);
    assert_eq!(stage.show(&child)["state"], "running", "the child does not care");
    stage.touch("go");
    stage.is(&child, "completed");
    // By the key it gave, for it may have forgotten the id.
    let wait = json!({ "action": "await", "task_ids": ["long"], "wait_ms": 60_000 });
    let answer = tasks(&stage, &chat, &wait);
    assert_eq!(answer["tasks"][0]["task_id"], child.as_str());
    assert_eq!(answer["tasks"][0]["result"]["summary"], "the long answer");
}

/// The caller dies while it waits and never waits again: it hears of the end as of any other.
#[test]
fn who_died_while_it_waited_hears_of_the_end_without_asking() {
    let stage = Stage::new();
    let (chat, child) = waiting(&stage);
    kill_agent(&stage, &chat);
    begin(&stage, &chat, "/say I am back").over(&stage);
    stage.touch("go");
    stage.is(&child, "completed");
    until("the parent to be told", || stage.told().contains("SUBAGENT REPORT"));
    assert!(stage.told().contains("the long answer"));
}

/// S3-B16: the connection of a call that waits breaks, which cancels the call and nothing else: the task runs on, and its
/// handle gives the result.
#[test]
fn a_connection_that_breaks_while_it_waits_costs_nothing_but_the_answer() {
    let stage = Stage::new();
    let chat = stage.chat();
    let child = format!("/wait-file {}\n/say the long answer", stage.sign("go").display());
    let child =
        id(&tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": child }))["tasks"][0], "task_id");
    stage.is(&child, "running");
    let wait = json!({ "action": "await", "task_ids": [child], "wait_ms": 60_000 });
    let params = json!({ "name": "tasks", "arguments": wait });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let caller = stage.daemon.caller();
    let bearer = format!("Bearer {}", caller.token);
    let headers = [
        ("host", "localhost"),
        ("authorization", bearer.as_str()),
        ("accept", "application/json, text/event-stream"),
    ];
    let mut connection = UnixStream::connect(&caller.socket).unwrap();
    let head = head("POST", &format!("/mcp/{chat}/lanyard"), &headers, Some(&call));
    connection.write_all(format!("{head}{call}").as_bytes()).unwrap();
    until("the call to be under way", || {
        stage.daemon.log_after(&chat, 0).iter().any(|event| event["type"] == "tool.in_flight")
    });
    drop(connection);
    assert_eq!(stage.show(&child)["state"], "running");
    stage.touch("go");
    stage.is(&child, "completed");
    let answer = tasks(&stage, &chat, &wait);
    assert_eq!(answer["tasks"][0]["result"]["summary"], "the long answer");
}

/// The daemon dies while somebody waits; the agent's call is lost with it. The result is there when it asks again.
#[test]
fn a_wait_survives_the_daemon() {
    let mut stage = Stage::new();
    let (chat, child) = waiting(&stage);
    stage.up_where_it_was();
    stage.touch("go");
    stage.is(&child, "completed");
    let wait = json!({ "action": "await", "task_ids": [child], "wait_ms": 60_000 });
    let answer = tasks(&stage, &chat, &wait);
    assert_eq!(answer["tasks"][0]["result"]["summary"], "the long answer");
    until("the mail to be settled", || stage.all_mail().iter().all(|mail| mail["state"] == "acknowledged"));
    assert_eq!(stage.all_mail().len(), 1);
}

/// A task that is brought back by itself after its agent died in an await: its child's end is not lost, and spawned again
/// under the same key it is the same child.
#[test]
fn a_task_whose_agent_died_in_an_await_is_brought_back_and_hears() {
    let stage = Stage::new();
    let child = format!("/wait-file {}\n/say the long answer", stage.sign("go").display());
    let spawn = json!({ "action": "spawn", "prompt": child, "key": "long", "wait_ms": 600_000 });
    let task = stage.task(&step(&spawn), &json!({ "may_spawn": true }));
    until("the child", || !below(&stage, &task).is_empty());
    let child = id(&below(&stage, &task)[0], "id");
    stage.is(&child, "running");
    let first = stage.is(&task, "running");
    let session = id(&first, "session");
    stage.kill_agent(&session);
    until("the second run", || stage.show(&task)["run"] == 2);
    stage.is(&task, "running");
    stage.touch("go");
    stage.is(&child, "completed");
    let done = stage.is(&task, "completed");
    assert_eq!(done["worker"], first["worker"]);
    assert!(stage.told().contains("the long answer"));
    assert_eq!(done["remedies"]["restarts"], 1);
}

/// Whoever waits for a task of another's keeps that other from nothing.
#[test]
fn who_waits_further_up_keeps_no_parent_from_hearing() {
    let stage = Stage::new();
    let chat = stage.chat();
    let wait = |sign: &str| format!("/wait-file {}", stage.sign(sign).display());
    let third = json!({ "action": "spawn", "prompt": format!("{}\n/say third", wait("third")) });
    let second = format!("{}\n{}", step(&third), wait("second"));
    let spawn = json!({ "action": "spawn", "prompt": second, "may_spawn": true });
    let second = id(&tasks(&stage, &chat, &spawn)["tasks"][0], "task_id");
    until("the third", || below(&stage, &second).len() == 1);
    let third = id(&below(&stage, &second)[0], "id");
    let all = json!({ "action": "await", "task_ids": [second, third], "wait_ms": 600_000 });
    let waits = begin(&stage, &chat, &format!("/touch {}\n{}", stage.sign("waits").display(), step(&all)));
    stage.await_sign("waits");
    stage.is(&third, "running");
    stage.touch("third");
    stage.is(&third, "completed");
    let given = || {
        let mail = stage.all_mail();
        mail.iter().any(|mail| mail["from"]["task"] == third.as_str() && mail["state"] == "given")
    };
    until("its parent to be told, while somebody else waits", given);
    stage.touch("second");
    stage.is(&second, "completed");
    assert_eq!(waits.returned(&stage).len(), 1);
}

/// `lanyard task wait` for a task that waits for the file `go`, and what it was told so far.
fn waits_at_the_terminal(stage: &Stage, wait_ms: &str) -> (Child, String) {
    let task = stage.task(&format!("/wait-file {}\n/say done", stage.sign("go").display()), &json!({}));
    stage.is(&task, "running");
    let told = std::fs::File::create(stage.sign("told")).unwrap();
    let waiting = Command::new(binary())
        .args(["task", "wait", &task])
        .env("LANYARD_DATA_DIR", stage.daemon.home())
        .env("LANYARD_CONFIG", stage.daemon.config())
        .env("LANYARD_NO_START", "1")
        .env("LANYARD_DAEMON_WAIT_MS", wait_ms)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(told)
        .spawn()
        .unwrap();
    is_told(stage, "is running");
    (waiting, task)
}

fn is_told(stage: &Stage, words: &str) {
    let told = || std::fs::read_to_string(stage.sign("told")).unwrap();
    until(words, || told().contains(words));
}

/// FND-N12: a wait at the terminal goes on over a daemon that is killed, and tells what became of the task.
#[test]
fn fnd_n12_task_wait_outlasts_the_daemon() {
    let mut stage = Stage::new();
    let (waiting, task) = waits_at_the_terminal(&stage, "60000");
    stage.daemon.kill_9();
    is_told(&stage, "the daemon is gone; start it with `lanyard up --detach`");
    stage.up_where_it_was();
    is_told(&stage, "the daemon is back");
    stage.touch("go");
    let ended = waiting.wait_with_output().unwrap();
    let shown = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{}", std::fs::read_to_string(stage.sign("told")).unwrap());
    assert!(shown.contains(&task[task.len() - 6..]) && shown.contains("completed"), "{shown}");
}

/// FND-N12: and it ends when the daemon stays away.
#[test]
fn fnd_n12_task_wait_ends_when_the_daemon_stays_away() {
    let mut stage = Stage::new();
    let (waiting, task) = waits_at_the_terminal(&stage, "300");
    stage.daemon.kill_9();
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(3));
    is_told(&stage, &format!("continue with `lanyard task wait {task}`"));
    stage.up_where_it_was();
    stage.touch("go");
    stage.is(&task, "completed");
}
