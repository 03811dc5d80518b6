//! Subagents of a program that is run once per turn and writes what Claude writes: nobody can end one alone, and the
//! hook and the output tell of the same one.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, PATIENCE, Setup, binary};

/// The lines of one turn with a subagent, and the files it waits for before each part.
const PARTS: [(&str, &[&str]); 3] = [
    (
        "begin",
        &[
            r#"{"type":"system","subtype":"init","session_id":"main-1","claude_code_version":"2.1"}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"toolu_1","name":"Agent","input":{}}]},"session_id":"main-1"}"#,
            r#"{"type":"system","subtype":"task_started","task_id":"a8d5","tool_use_id":"toolu_1","description":"dig","subagent_type":"digger","task_type":"local_agent","prompt":"dig a hole","session_id":"main-1"}"#,
        ],
    ),
    (
        "finish",
        &[
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"half"}],"usage":{"input_tokens":100,"output_tokens":2}},"parent_tool_use_id":"toolu_1","session_id":"main-1"}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"way"}],"usage":{"input_tokens":100,"output_tokens":2}},"parent_tool_use_id":"toolu_1","session_id":"main-1"}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"dug"}]},"session_id":"main-1","tool_use_result":{"status":"completed","agentId":"a8d5","content":[{"type":"text","text":"dug"}],"usage":{"input_tokens":150,"output_tokens":5}}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"main-1","usage":{"input_tokens":1000,"output_tokens":7}}"#,
        ],
    ),
    ("leave", &[]),
];

struct Stage {
    daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Stage {
    /// A program that writes what Claude writes.
    fn new() -> Self {
        Self::of("claude_json", &PARTS)
    }

    fn of(form: &str, parts: &[(&str, &[&str])]) -> Self {
        let folder = tempfile::Builder::new().prefix("ly").tempdir_in("/tmp").unwrap();
        let mut script = String::new();
        for (file, lines) in parts {
            let place = folder.path().join(file);
            writeln!(script, "until [ -e {} ]; do sleep 0.01; done", place.display()).unwrap();
            for line in *lines {
                writeln!(script, "printf '%s\\n' '{line}'").unwrap();
            }
        }
        let command = serde_json::to_string(&["/bin/sh", "-c", &script, "agent"]).unwrap();
        let config = format!(
            "[agents.once]\ndriver = \"command\"\ncommand = {command}\nkill_grace_ms = 500\n\
             per_turn = {{ first = [\"{{prompt}}\"], next = [\"{{prompt}}\"], output = \"{form}\" }}\n"
        );
        Self { daemon: Daemon::start(Setup::default().config(&config)), folder }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Lets the program go on to the end of a part.
    fn go(&self, part: &str) {
        std::fs::write(self.folder.path().join(part), "").unwrap();
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.daemon.request("POST", &format!("/api/v1{path}"), &[], Some(&body.to_string()))
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.daemon.request("GET", &format!("/api/v1{path}"), &[], None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// A session whose first turn has been handed over.
    fn started(&self) -> String {
        let made = self.post("/sessions", &json!({"agent": "once", "workspace": self.work()}));
        let session = made.json()["session"].as_str().unwrap().to_owned();
        let answer = self.post(&format!("/sessions/{session}/turns"), &json!({"prompt": "go"}));
        assert_eq!(answer.status, 201, "{}", answer.text());
        session
    }

    fn events(&self, session: &str, kind: &str) -> Vec<Value> {
        let log = self.daemon.log_after(session, 0);
        log.into_iter().filter(|event| event["type"] == kind).collect()
    }

    fn children(&self, session: &str) -> Vec<String> {
        let linked = self.events(session, "session.child_linked");
        linked.iter().map(|event| event["data"]["child"].as_str().unwrap().to_owned()).collect()
    }

    /// The only subagent, once it is at work.
    fn child(&self, session: &str) -> String {
        until("the subagent", || {
            self.children(session).iter().any(|child| !self.events(child, "turn.started").is_empty())
        });
        let children = self.children(session);
        assert_eq!(children.len(), 1, "{children:?}");
        children[0].clone()
    }

    fn at_rest(&self, session: &str) {
        until("the end of the turn", || self.get(&format!("/sessions/{session}"))["active_turn"].is_null());
    }

    /// What Claude's hook is answered inside the subagent.
    fn hook(&self, session: &str, event: &str) -> Value {
        let input = json!({
            "session_id": "main-1", "cwd": self.work(), "hook_event_name": event, "tool_name": "Bash",
            "tool_use_id": "toolu_9", "agent_id": "a8d5", "agent_type": "digger",
        });
        let mut child = Command::new(binary())
            .args(["hook", "claude"])
            .env("LANYARD_DATA_DIR", self.daemon.home())
            .env("LANYARD_SESSION", session)
            .env("LANYARD_TOKEN", Self::session_token(session))
            .env("LANYARD_URL", format!("http://{}", self.daemon.address()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// The token the agent's process was given.
    fn session_token(session: &str) -> String {
        let mark = format!("LANYARD_SESSION={session}");
        let mut token = String::new();
        until("the agent's process", || {
            for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
                let held: Vec<&[u8]> = environ.split(|byte| *byte == 0).collect();
                let own = held.contains(&mark.as_bytes());
                let found = held.iter().find_map(|entry| entry.strip_prefix(b"LANYARD_TOKEN="));
                if let Some(found) = found.filter(|_| own) {
                    token = String::from_utf8_lossy(found).into_owned();
                }
            }
            !token.is_empty()
        });
        token
    }
}

fn until(what: &str, mut met: impl FnMut() -> bool) {
    let since = Instant::now();
    while !met() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        // sleep: between two looks at something that happens elsewhere.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// FND-R7: without a hook nothing ends it, and nothing says that it did.
#[test]
fn fnd_r7_a_subagent_that_cannot_be_ended_alone_is_not_confirmed_while_it_works() {
    let stage = Stage::new();
    let session = stage.started();
    stage.go("begin");
    let child = stage.child(&session);
    for level in 1..=3 {
        let answer = stage.post(&format!("/sessions/{child}/stop"), &json!({}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        until("the word that nothing can be done", || stage.events(&child, "end.blocked").len() == level);
        let receipt = stage.get(&format!("/sessions/{child}/stop"));
        assert_eq!(receipt["confirmed"], false, "{receipt:#}");
        assert_eq!(receipt["state"], "executing", "{receipt:#}");
        let steps = receipt["steps"].to_string();
        assert!(steps.contains("cannot end this subagent alone"), "{receipt:#}");
        assert!(steps.contains(&session) && steps.contains("lanyard hook install claude"), "{receipt:#}");
    }
    stage.go("finish");
    until("the subagent's end", || stage.get(&format!("/sessions/{child}/stop"))["confirmed"] == true);
    stage.at_rest(&session);
    let own = stage.events(&session, "turn.finished");
    assert_eq!(own[0]["data"]["outcome"], "completed", "the end of a subagent is not its parent's: {own:#?}");
    stage.go("leave");
}

/// A subagent is newer than the session whose agent started it, and was started by nobody who types `last`.
#[test]
fn last_is_the_session_and_not_its_agents_subagent() {
    let stage = Stage::new();
    let session = stage.started();
    stage.go("begin");
    let child = stage.child(&session);
    let named = |name: &str| stage.get(&format!("/ids?kind=session&name={name}"))["items"][0]["id"].clone();
    assert_eq!(named("last"), session.as_str());
    assert_eq!(named(&child), child.as_str());
    stage.go("finish");
    stage.at_rest(&session);
    stage.go("leave");
}

/// FND-R7: whichever comes first, the hook and the output tell of one subagent, and a stop of it refuses its calls.
#[test]
fn fnd_r7_the_hook_and_the_output_tell_of_one_subagent() {
    for hook_first in [true, false] {
        let stage = Stage::new();
        let session = stage.started();
        if hook_first {
            assert_eq!(stage.hook(&session, "PreToolUse"), Value::Null);
        }
        stage.go("begin");
        let child = stage.child(&session);
        assert_eq!(stage.hook(&session, "PreToolUse"), Value::Null);
        assert_eq!(stage.hook(&session, "PostToolUse"), Value::Null);
        assert_eq!(stage.child(&session), child, "hook first: {hook_first}");
        let answer = stage.post(&format!("/sessions/{child}/stop"), &json!({"now": true}));
        assert_eq!(answer.status, 202, "{}", answer.text());
        let said = stage.hook(&session, "PreToolUse");
        assert_eq!(
            said["hookSpecificOutput"]["permissionDecision"], "deny",
            "hook first: {hook_first}: {said}"
        );
        stage.go("finish");
        stage.at_rest(&session);
        assert_eq!(stage.children(&session).len(), 1);
        stage.go("leave");
    }
}

/// FND-R15.
#[test]
fn fnd_r15_the_tokens_of_a_subagent_are_counted() {
    let stage = Stage::new();
    let session = stage.started();
    stage.go("begin");
    let child = stage.child(&session);
    stage.go("finish");
    stage.at_rest(&session);
    let used = |session: &str| -> Vec<(u64, u64)> {
        let told = stage.events(session, "usage.reported");
        let number = |event: &Value, key: &str| event["data"][key].as_u64().unwrap();
        told.iter().map(|event| (number(event, "input_tokens"), number(event, "output_tokens"))).collect()
    };
    assert_eq!(used(&child), [(100, 2), (150, 5)]);
    assert_eq!(used(&session), [(1000, 7)]);
    stage.go("leave");
}

/// FND-R15: a process that has had its turn is nobody's to go on with.
#[test]
fn fnd_r15_an_agent_that_is_run_once_per_turn_is_not_told_to_be_there() {
    let stage = Stage::new();
    let session = stage.started();
    stage.go("begin");
    stage.child(&session);
    stage.go("finish");
    stage.at_rest(&session);
    assert_eq!(
        stage.get(&format!("/sessions/{session}"))["run"]["phase"],
        "ready",
        "its process is still there"
    );
    let refused = stage.post(&format!("/sessions/{session}/resume"), &json!({}));
    assert_eq!((refused.status, refused.code()), (409, "agent_per_turn".to_owned()), "{}", refused.text());
    let said = stage.daemon.lanyard(&["resume", &session]);
    assert_eq!(said.status.code(), Some(1));
    let words = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(words.contains("started again for each turn") && words.contains("lanyard send"), "{words}");
    // With a prompt it is a turn like any other.
    stage.go("leave");
    let said = stage.daemon.lanyard(&["resume", &session, "--prompt", "again"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(!String::from_utf8_lossy(&said.stderr).contains("exact"), "{said:?}");
    assert_eq!(stage.events(&session, "run.started").len(), 2);
}

/// FND-R15: Codex gives its subagents no names.
#[test]
fn fnd_r15_a_subagent_without_a_name_goes_by_the_first_words_it_was_given() {
    const SPAWNS: [(&str, &[&str]); 2] = [
        (
            "begin",
            &[
                r#"{"type":"thread.started","thread_id":"main-2"}"#,
                r#"{"type":"item.completed","item":{"id":"i1","type":"collab_tool_call","tool":"spawn_agent","prompt":"dig a hole\nand fill it","receiver_thread_ids":["t2"],"status":"completed"}}"#,
            ],
        ),
        ("finish", &[r#"{"type":"turn.completed","usage":{}}"#]),
    ];
    let stage = Stage::of("codex_json", &SPAWNS);
    let session = stage.started();
    stage.go("begin");
    let child = stage.child(&session);
    assert_eq!(stage.get(&format!("/sessions/{child}"))["title"], "dig a hole");
    stage.go("finish");
    stage.at_rest(&session);
}
