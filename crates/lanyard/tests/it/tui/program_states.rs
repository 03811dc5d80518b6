//! Programs on terminals as they are told to an operator: working, resting, ringing; with the hooks, the sandbox and the
//! conversation of an agent.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::terminal::Terminal;
use super::text;
use crate::support::{Daemon, Setup, binary, until};

/// A full-screen program that does what a key says: rings, sends a notification, draws, calls its hook, or writes elsewhere.
const PROGRAM: &str = r#"
stty raw -echo
printf '\033[?1049h\033[2J\033[1;1Hfull screen %s' "$*"
while :; do
  key=$(dd bs=1 count=1 2>/dev/null)
  case $key in
    b) printf '\a' ;;
    n) printf '\033]9;look here\007' ;;
    p) printf '\033]9;4;1;50\007' ;;
    w) printf '\033[2;1Hdrawn' ;;
    h) printf '%s' "$HOOK_INPUT" | "$HOOK_PROGRAM" hook claude > hook.txt 2>&1; printf '\033[3;1Hhooked' ;;
    o) (echo out > "$OUTSIDE") 2>/dev/null; printf '\033[4;1Htried' ;;
    q) break ;;
  esac
done
exit 0
"#;

struct Stage {
    daemon: Daemon,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(settings: &str) -> Self {
        let base = tempfile::Builder::new().prefix("lyp").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["home", "work", "bin"] {
            std::fs::create_dir(base.path().join(name)).unwrap();
        }
        // It has the name of an agent whose conversations can be chosen.
        for name in ["program", "claude"] {
            let path = base.path().join("bin").join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{PROGRAM}")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let hook = json!({
            "session_id": "0f6cf1d0-8e4b-4b62-9a43-0d1d8f0c6f11", "hook_event_name": "PostToolUse", "cwd": "/w",
            "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "toolu_01", "tool_response": { "stdout": "a" },
        });
        let setup = Setup::default()
            .config(settings)
            .env("HOME", base.path().join("home").as_os_str())
            .env("OUTSIDE", base.path().join("outside").as_os_str())
            .env("HOOK_PROGRAM", binary().as_os_str())
            .env("HOOK_INPUT", hook.to_string());
        Self { daemon: Daemon::start(setup), folder: base }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a program and answers its session.
    fn start(&self, program: &str, more: &[&str]) -> String {
        let (program, cwd) = (self.path("bin").join(program), self.path("work"));
        let first = ["run", "--pty", "-d", "--cwd", cwd.to_str().unwrap()];
        let words = [&first[..], more, &["--", program.to_str().unwrap()]].concat();
        let started = self.daemon.lanyard(&words);
        assert!(started.status.success(), "{}", text(&started.stderr));
        let session = text(&started.stdout).trim().to_owned();
        self.until_screen(&session, "full screen");
        session
    }

    fn press(&self, session: &str, key: &str) {
        let body = json!({ "data": STANDARD.encode(key) }).to_string();
        let path = format!("/api/v1/sessions/{session}/terminal/input");
        let answer = self.daemon.request("POST", &path, &[], Some(&body));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    fn until_screen(&self, session: &str, words: &str) -> String {
        let path = format!("/api/v1/sessions/{session}/terminal");
        let mut last = Value::Null;
        let shown = until(|| {
            last = self.daemon.request("GET", &path, &[], None).json();
            last["text"].as_str().is_some_and(|text| text.contains(words))
        });
        assert!(shown, "no {words:?} on {last:#}");
        last["text"].as_str().unwrap().to_owned()
    }

    fn view(&self, session: &str) -> Value {
        self.daemon.request("GET", &format!("/api/v1/sessions/{session}"), &[], None).json()
    }

    fn until_state(&self, session: &str, word: &str) {
        let is_it = until(|| self.view(session)["operator_state"] == word);
        assert!(is_it, "not {word}: {:#?}", self.daemon.log_after(session, 0));
    }

    fn events(&self, session: &str, kind: &str) -> Vec<Value> {
        let log = self.daemon.log_after(session, 0);
        log.into_iter().filter(|event| event["type"] == kind).map(|event| event["data"].clone()).collect()
    }

    /// Ends the run and begins another one.
    fn again(&self, session: &str) {
        self.press(session, "q");
        assert!(until(|| self.events(session, "run.ended").len() == 1));
        let resumed =
            self.daemon.request("POST", &format!("/api/v1/sessions/{session}/resume"), &[], Some("{}"));
        assert!(resumed.status < 300, "{}", resumed.text());
        assert!(until(|| self.events(session, "run.ready").len() == 2), "{:#}", self.view(session));
    }
}

#[test]
fn a_program_works_rings_and_rests_and_a_look_at_it_counts() {
    let stage = Stage::new("");
    let session = stage.start("program", &[]);
    stage.until_state(&session, "working");
    stage.press(&session, "b");
    stage.until_state(&session, "needs_answer");
    // The screen of somebody who looks at it.
    let looks = Terminal::lanyard(&stage.daemon, &["attach", "-r", &session], 80, 24);
    stage.until_state(&session, "idle");
    drop(looks);
    // A report of progress is no call for anybody; a notification is.
    stage.press(&session, "p");
    stage.until_state(&session, "working");
    stage.until_state(&session, "ready_for_review");
    stage.press(&session, "n");
    stage.until_state(&session, "needs_answer");
    stage.press(&session, "q");
    assert!(until(|| !stage.events(&session, "run.ended").is_empty()));
    let told = stage.events(&session, "run.activity");
    let words: Vec<&str> = told.iter().map(|one| one["activity"].as_str().unwrap()).collect();
    assert_eq!(words, ["working", "rang", "working", "quiet", "working", "rang"]);
}

#[test]
fn a_daemon_that_comes_back_hears_no_old_bell() {
    let mut stage = Stage::new("");
    let session = stage.start("program", &[]);
    stage.press(&session, "b");
    stage.until_state(&session, "needs_answer");
    let seq = stage.view(&session)["last_seq"].clone();
    let seen = stage.daemon.request(
        "POST",
        &format!("/api/v1/sessions/{session}/seen"),
        &[],
        Some(&json!({ "seq": seq }).to_string()),
    );
    assert_eq!(seen.status, 200, "{}", seen.text());
    let setup = Setup::default();
    stage.daemon.restart_with(setup);
    stage.until_screen(&session, "full screen");
    assert_eq!(stage.view(&session)["operator_state"], "idle");
    stage.press(&session, "w");
    stage.until_screen(&session, "drawn");
    stage.until_state(&session, "ready_for_review");
}

#[test]
fn hooks_of_a_program_on_a_terminal_report_into_its_session() {
    let stage = Stage::new("");
    let session = stage.start("claude", &[]);
    stage.press(&session, "h");
    stage.until_screen(&session, "hooked");
    let said = std::fs::read_to_string(stage.path("work").join("hook.txt")).unwrap();
    let is_told = until(|| !stage.events(&session, "tool.relayed").is_empty());
    assert!(is_told, "{said:?} {:#?}", stage.daemon.log_after(&session, 0));
    assert_eq!(stage.events(&session, "tool.relayed")[0]["tool"], "Bash");
    let all = stage.daemon.request("GET", "/api/v1/sessions", &[], None).json();
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1, "no second session: {all:#}");
}

#[test]
fn a_program_on_a_terminal_stays_in_its_sandbox() {
    let stage = Stage::new("");
    let open = stage.start("program", &[]);
    stage.press(&open, "o");
    stage.until_screen(&open, "tried");
    assert!(stage.path("outside").exists());
    std::fs::remove_file(stage.path("outside")).unwrap();
    let confined = stage.start("program", &["--sandbox", "workspace"]);
    assert_eq!(stage.view(&confined)["run"]["sandbox"]["level"], "workspace");
    stage.press(&confined, "o");
    stage.until_screen(&confined, "tried");
    assert!(!stage.path("outside").exists());
}

/// Claude Code lets its conversation be named: another run resumes it once it has written anything, and says so.
#[test]
fn claude_on_a_terminal_resumes_its_conversation_and_another_program_does_not() {
    let stage = Stage::new("");
    let session = stage.start("claude", &[]);
    let native = stage.view(&session)["native"].as_str().unwrap().to_owned();
    assert!(stage.until_screen(&session, "--session-id").contains(&native));
    // Nothing was said: there is nothing to resume.
    stage.again(&session);
    let ready = stage.events(&session, "run.ready");
    assert_eq!(ready[1]["continuity"], "lost", "{ready:#?}");
    let native = stage.view(&session)["native"].as_str().unwrap().to_owned();

    let history = stage.path("home/.claude/projects/-w");
    std::fs::create_dir_all(&history).unwrap();
    std::fs::write(history.join(format!("{native}.jsonl")), "{}\n").unwrap();
    stage.press(&session, "q");
    assert!(until(|| stage.events(&session, "run.ended").len() == 2));
    let resumed = stage.daemon.lanyard(&["resume", &session]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    stage.until_screen(&session, &format!("--resume {native}"));
    assert_eq!(stage.events(&session, "run.ready")[2]["continuity"], "native");

    let other = stage.start("program", &[]);
    stage.again(&other);
    assert_eq!(stage.events(&other, "run.ready")[1]["continuity"], "lost");
}
