//! Conversations from an agent's own history: listed, made into sessions with their transcript, and gone on with by the
//! agent's own resume.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::kit::Stage;

const PEER: &str = include_str!("claude_peer.sh");
const NATIVE: &str = "0a1b2c3d-0000-4000-8000-000000000001";
const OTHER: &str = "0a1b2c3d-0000-4000-8000-000000000002";

/// A daemon whose agent `a` is played, and the place where that agent keeps its history.
fn stage() -> (Stage, tempfile::TempDir) {
    let histories = tempfile::tempdir().unwrap();
    let env = format!("env = {{ CLAUDE_CONFIG_DIR = \"{}\" }}\n", histories.path().display());
    (Stage::shell("claude", PEER, &env), histories)
}

fn keep(histories: &Path, native: &str, text: &str) {
    let folder = histories.join("projects/-work");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{native}.jsonl")), text).unwrap();
}

/// A question, a call and an answer, with a secret in the question.
fn conversation(work: &Path) -> String {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let lines = [
        json!({ "type": "user", "cwd": work, "timestamp": "2026-11-01T10:00:00.000Z",
            "message": { "role": "user", "content": format!("use {key} for the blue door") } }),
        json!({ "type": "assistant", "timestamp": "2026-11-01T10:00:01.000Z",
            "message": { "id": "m1", "content": [{ "type": "text", "text": "Looking." }] } }),
        json!({ "type": "assistant", "timestamp": "2026-11-01T10:00:02.000Z",
            "message": { "id": "m1", "content": [
                { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls" } }] } }),
        json!({ "type": "user", "timestamp": "2026-11-01T10:00:03.000Z",
            "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "door" }] } }),
        json!({ "type": "assistant", "timestamp": "2026-11-01T10:00:04.000Z",
            "message": { "id": "m2", "content": [{ "type": "text", "text": "It is open." }] } }),
    ];
    lines.map(|line| line.to_string()).join("\n") + "\n"
}

fn import(stage: &Stage, native: &str) -> (u16, Value) {
    let answer = stage.post("/histories/import", &json!({ "agent": "claude", "native": native }));
    (answer.status, answer.json())
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn an_imported_conversation_has_its_transcript_and_goes_on_as_itself() {
    let (stage, histories) = stage();
    keep(histories.path(), NATIVE, &conversation(&stage.work()));
    let listed = stage.get("/histories?agent=claude");
    let item = &listed["items"][0];
    assert_eq!((item["native"].as_str(), item["messages"].as_u64()), (Some(NATIVE), Some(3)), "{listed:#}");
    assert_eq!(item["workspace"], json!(stage.work()));
    assert_eq!(item["session"], Value::Null);

    let (status, receipt) = import(&stage, "0a1b2c3d");
    assert_eq!((status, receipt["existing"].as_bool()), (201, Some(false)), "{receipt:#}");
    assert_eq!((receipt["messages"].as_u64(), receipt["events"].as_u64()), (Some(3), Some(5)));
    assert_eq!(receipt.get("warnings"), None, "{receipt:#}");
    let session = receipt["session"].as_str().unwrap();

    let mut talk = stage.follow(session);
    talk.catch_up();
    let kinds: Vec<&str> = talk.seen.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "session.created",
        "session.imported",
        "message",
        "message",
        "tool.called",
        "tool.returned",
        "message",
    ];
    assert_eq!(kinds, expected);
    let told = &talk.seen[2];
    assert_eq!(told["cause"], json!({ "imported": { "at": "2026-11-01T10:00:00.000Z" } }));
    assert_ne!(told["at"], "2026-11-01T10:00:00.000Z", "the log has its own time");
    let log = format!("{:?}", talk.seen);
    assert!(!log.contains("ghp_") && log.contains("[redacted:github-token]"), "{log}");
    assert_eq!(stage.get(&format!("/sessions/{session}"))["native"], NATIVE);

    // The agent knows its conversation: two prompts were before.
    std::fs::write(stage.file(&format!("talk-{NATIVE}")), "one\ntwo\n").unwrap();
    assert_eq!(talk.answer_to("hello"), "3 prompts");
    let ready = talk.all("run.ready");
    assert_eq!((ready.len(), &ready[0]["data"]["continuity"]), (1, &json!("native")));

    // Again, by its id or by that of the history: the same session, and nothing new in it.
    talk.catch_up();
    let events = talk.seen.len();
    let (status, again) = import(&stage, NATIVE);
    assert_eq!(
        (status, again["existing"].as_bool(), again["session"].as_str()),
        (200, Some(true), Some(session))
    );
    talk.catch_up();
    assert_eq!(talk.seen.len(), events);
    assert_eq!(stage.get("/histories")["items"][0]["session"], session);
}

#[test]
fn a_conversation_of_lanyards_own_run_is_the_session_it_is() {
    let (stage, histories) = stage();
    let mut talk = stage.talk();
    talk.answer_to("hello");
    let native = talk.all("run.ready")[0]["data"]["native"].as_str().unwrap().to_owned();
    keep(histories.path(), &native, &conversation(&stage.work()));
    assert_eq!(stage.get("/histories")["items"][0]["session"], talk.id);
    let (status, receipt) = import(&stage, &native);
    assert_eq!((status, receipt["session"].as_str()), (200, Some(talk.id.as_str())));
}

#[test]
fn what_cannot_be_imported_is_refused_and_leaves_no_session() {
    let (stage, histories) = stage();
    keep(histories.path(), NATIVE, "this is no history\n");
    let refused = |agent: &str, native: &str| {
        let answer = stage.post("/histories/import", &json!({ "agent": agent, "native": native }));
        (answer.status, answer.code())
    };
    assert_eq!(refused("claude", NATIVE), (422, "history_unreadable".to_owned()));
    assert_eq!(refused("claude", "ffff0000"), (404, "history_not_found".to_owned()));
    assert_eq!(refused("claude", "../../etc/passwd"), (404, "history_not_found".to_owned()));
    assert_eq!(refused("emacs", NATIVE), (422, "history_agent_unknown".to_owned()));
    assert_eq!(refused("a", NATIVE).1, "history_unreadable", "a configured agent names its history too");
    assert_eq!(stage.get("/sessions")["sessions"], json!([]));
}

#[test]
fn the_command_lists_imports_some_and_all_of_a_folder() {
    let (stage, histories) = stage();
    keep(histories.path(), NATIVE, &conversation(&stage.work()));
    keep(histories.path(), OTHER, &conversation(Path::new("/elsewhere")));
    let listed: Value =
        serde_json::from_str(&ok(&stage.daemon.lanyard(&["import", "claude", "--json"]))).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed:#}");
    let table = ok(&stage.daemon.lanyard(&["import"]));
    assert!(table.contains(NATIVE) && table.contains("/elsewhere"), "{table}");

    let work = stage.work().display().to_string();
    let session = ok(&stage.daemon.lanyard(&["import", "--all", "--folder", &work]));
    let again = ok(&stage.daemon.lanyard(&["import", "claude", NATIVE]));
    assert_eq!((session.lines().count(), &session), (1, &again));

    // One that fails keeps none of the others out, and is told.
    let some = stage.daemon.lanyard(&["import", "claude", "ffff0000", OTHER, "--json"]);
    assert!(!some.status.success());
    let told: Value = serde_json::from_slice(&some.stdout).unwrap();
    assert_eq!(told["items"][0]["native"], OTHER);
    assert!(told["items"][0]["warnings"][0].as_str().unwrap().contains("/elsewhere"), "{told:#}");
    assert_eq!(told["failed"][0]["code"], "history_not_found");

    let log = ok(&stage.daemon.lanyard(&["log", session.trim()]));
    assert!(log.contains("imported from claude: 3 messages") && log.contains("It is open."), "{log}");
}

/// A program of this name that works in a folder and does nothing.
struct Elsewhere(std::process::Child);

impl Elsewhere {
    fn start(folder: &Path, name: &str) -> Self {
        let program = folder.join(name);
        std::fs::copy("/bin/sleep", &program).unwrap();
        Self(std::process::Command::new(program).arg("1000").current_dir(folder).spawn().unwrap())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// FND-R1: never two processes on one conversation.
#[test]
fn fnd_r1_a_conversation_is_adopted_once_its_own_program_has_ended() {
    let (stage, _histories) = stage();
    std::fs::write(stage.file(&format!("talk-{NATIVE}")), "one\n").unwrap();
    let made = json!({ "agent": "a", "source": "external", "native": NATIVE, "aliases": [NATIVE], "workspace": stage.work() });
    let mut talk = stage.talk_of(&made);
    let program = Elsewhere::start(&stage.work(), "claude");
    let pid = program.0.id().to_string();
    assert_eq!(talk.post("resume", &json!({})).code(), "conversation_open_elsewhere");
    let refused = talk.post("turns", &json!({ "prompt": "hello", "resume": true }));
    assert_eq!((refused.status, refused.code()), (409, "conversation_open_elsewhere".to_owned()));
    assert!(refused.text().contains(&pid), "{}", refused.text());
    let told = stage.daemon.lanyard(&["adopt", NATIVE]);
    assert!(!told.status.success() && String::from_utf8_lossy(&told.stderr).contains(&pid));
    talk.catch_up();
    assert_eq!(talk.runs(), 0);
    drop(program);
    let adopted = stage.daemon.lanyard(&["adopt", NATIVE]);
    assert!(adopted.status.success(), "{}", String::from_utf8_lossy(&adopted.stderr));
    let ready = talk.until("run.ready");
    assert_eq!((&ready["data"]["continuity"], &ready["data"]["native"]), (&json!("native"), &json!(NATIVE)));
    assert_eq!(talk.answer_to("hello"), "2 prompts");
}

#[test]
fn an_imported_conversation_waits_for_its_own_program_unless_it_is_forced() {
    let (stage, histories) = stage();
    keep(histories.path(), NATIVE, &conversation(&stage.work()));
    std::fs::write(stage.file(&format!("talk-{NATIVE}")), "one\n").unwrap();
    let session = import(&stage, NATIVE).1["session"].as_str().unwrap().to_owned();
    let program = Elsewhere::start(&stage.work(), "claude");
    let mut talk = stage.follow(&session);
    assert_eq!(talk.post("resume", &json!({})).code(), "conversation_open_elsewhere");
    assert_eq!(talk.try_turn("hello").code(), "conversation_open_elsewhere");
    assert_eq!(talk.post("resume", &json!({ "force": true })).status, 202);
    talk.catch_up();
    assert_eq!(talk.answer_to("hello"), "2 prompts");
    drop(program);
}
