//! `lanyard run` and `lanyard send`: what is shown where, and the exit codes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::stage::{Stage, text};
use crate::support::{Setup, binary};

#[test]
fn a_turn_is_shown_as_it_happens_and_its_words_are_data() {
    let stage = Stage::new();
    let script = "/think let me see\n/plan look | sum up\n/tool search {\"pattern\": \"README\"}\n\
                  /tool-fail build it broke\n/edit new.txt one\n/say! first words\n/say! and more\n/usage 12 3";
    let output = stage.run(&[script]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "first words\n\nand more\n");
    let told = text(&output.stderr);
    for line in [
        "starting scripted\n",
        "~ let me see\n",
        "plan: 0 of 2 steps done, now: look\n",
        "tool search README: ok\n",
        "it broke\n",
        "new.txt +1 -0\n",
        "completed after ",
        "tokens: 12 in, 3 out\n",
    ] {
        assert!(told.contains(line), "{line:?} is missing in\n{told}");
    }
    let session = told.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let shown = stage.get(&format!("/sessions/{session}"));
    assert_eq!(shown["workspace"], stage.workspace().display().to_string());
    assert_eq!((&shown["agent"], &shown["title"]), (&json!("scripted"), &json!("/think let me see")));

    let output = stage.lanyard(&["send", &session, "/say! again"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "again\n".to_owned()));
    assert!(!text(&output.stderr).contains("starting"), "the same process goes on");
    let card = text(&stage.lanyard(&["show", &session]).stdout);
    assert!(card.contains("run          1 ready, "), "{card}");
}

#[test]
fn with_json_the_events_are_printed_and_nothing_else() {
    let stage = Stage::new();
    let output = stage.run(&["--json", "--quiet", "/say hello"]);
    let kinds: Vec<String> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("turn.started"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "turn.finished").count(), 1, "{kinds:?}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn the_exit_code_tells_how_a_turn_ended() {
    let stage = Stage::new();
    for (script, code, sentence) in [
        ("/stop refusal", 1, "refused by the agent"),
        ("/error -32000 out of order", 1, ": out of order"),
        ("/die", 7, "interrupted by crash"),
        ("/stop max_tokens", 7, "interrupted by limit"),
    ] {
        let output = stage.run(&[script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(sentence), "{script}: {}", text(&output.stderr));
    }
    for (verb, code) in [("cancel", 6), ("stop", 5)] {
        let (session, output) = stage.watched("/say! at it\n/wait 60000", |session| {
            assert!(stage.lanyard(&[verb, session]).status.success());
        });
        assert_eq!(output.status.code(), Some(code), "{verb} of {session}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "at it\n");
    }
    let missing = stage.run(&["--cwd", "/no/such/folder", "x"]);
    assert_eq!(missing.status.code(), Some(2));
}

/// FND-N13: one table of exit codes, each produced by what it says, and each with one meaning.
#[test]
fn fnd_n13_every_exit_code_of_the_help_is_produced_by_what_it_says() {
    let stage = Stage::new();
    let help = text(&stage.lanyard(&["--help"]).stdout);
    let (_, table) = help.split_once("Exit codes:\n").unwrap();
    let row = |line: &str| {
        let (code, meaning) = line.trim().split_once(' ')?;
        Some((code.parse::<i32>().ok()?, meaning.trim().to_owned()))
    };
    let documented: BTreeMap<i32, String> = table.lines().map_while(row).collect();
    let mut seen = BTreeMap::new();
    let mut saw = |meaning: &str, code: Option<i32>| seen.insert(code.unwrap(), meaning.to_owned());
    saw("done", stage.run(&["/say hi"]).status.code());
    saw("refused or failed", stage.lanyard(&["show", "no-such-session"]).status.code());
    saw("the command line was not understood", stage.lanyard(&["ls", "--no-such-option"]).status.code());
    let mut alone = Command::new(binary());
    let nowhere = stage.workspace().join("nowhere");
    alone.arg("ls").env("LANYARD_DATA_DIR", nowhere).env("LANYARD_NO_START", "1");
    saw("no daemon answers", alone.output().unwrap().status.code());
    let busy = stage.detached("/say! at it\n/wait-file go");
    let guided = stage.lanyard(&["guide", &busy, "--wait", "--timeout", "1", "look at the tests"]);
    saw("not ended, answered or confirmed in time", guided.status.code());
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    let crashed = stage.run(&["/die"]);
    saw("the turn was interrupted by a crash, a timeout or a limit", crashed.status.code());
    for (verb, meaning) in
        [("cancel", "the turn or the plan was cancelled"), ("stop", "the session was stopped")]
    {
        let (_, output) = stage.watched("/say! at it\n/wait 60000", |session| {
            assert!(stage.lanyard(&[verb, session]).status.success());
        });
        saw(meaning, output.status.code());
    }
    let (_, left) = stage.watched("/say! at it\n/wait 60000", |_| {});
    saw("left with Ctrl-C; the work goes on", left.status.code());
    assert_eq!(documented, seen);
}

/// FND-N12: a turn that is watched while its daemon is killed for good ends the command; the turn itself goes on.
#[test]
fn fnd_n12_run_and_send_end_when_the_daemon_stays_away() {
    let mut stage = Stage::new();
    let work = stage.workspace().display().to_string();
    let mut session = String::new();
    for go in ["first", "second"] {
        let script = format!("/say! at it\n/wait-file {go}\n/say! the {go} end");
        let words = match go {
            "first" => vec!["run", "--cwd", &work, &script],
            _ => vec!["send", &session, &script],
        };
        let mut child = stage.spawned(&words);
        // Shown: the command follows.
        let mut words = child.stdout.take().unwrap();
        words.read_exact(&mut [0]).unwrap();
        stage.daemon.kill_9();
        let output = child.wait_with_output().unwrap();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains("the daemon is gone; start it with `lanyard up --detach`"), "{told}");
        assert!(told.contains("[daemon_gone]"), "{told}");
        let (_, next) = told.split_once("then continue with `lanyard ").unwrap();
        let next: Vec<&str> = next.trim().trim_end_matches('`').split(' ').collect();

        let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
        stage.daemon.restart_with(Setup::default().config(&config));
        std::fs::write(stage.workspace().join(go), "").unwrap();
        stage.until_at_rest(next[2]);
        let shown = text(&stage.lanyard(&[&["logs"], &next[2..]].concat()).stdout);
        assert!(shown.contains(&format!("the {go} end")) && !shown.contains("at it"), "{next:?}: {shown}");
        session = next[2].to_owned();
    }
}

/// FND-N13: a command line that is not understood is told as every other error where errors are wanted as JSON.
#[test]
fn fnd_n13_usage_errors_respect_json() {
    let stage = Stage::new();
    for words in [
        &["ls", "--no-such-option", "--json"][..],
        &["--json", "no-such-command"],
        &["stop", "--json"],
        &["logs", "x", "--limit", "many", "--json"],
        &["task", "--json"],
    ] {
        let output = stage.lanyard(words);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{words:?}");
        let problem: serde_json::Value = serde_json::from_slice(&output.stderr)
            .unwrap_or_else(|error| panic!("{words:?}: {error}: {}", text(&output.stderr)));
        assert_eq!(problem["code"], "usage", "{words:?}");
        let title = problem["title"].as_str().unwrap();
        assert!(!title.is_empty() && !title.contains("error:") && !title.contains('\n'), "{problem}");
        assert!(!problem["advice"].as_str().unwrap().is_empty(), "{problem}");
    }
    let help = stage.lanyard(&["ls", "--help", "--json"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Usage:"));
    // What follows `--` is no option.
    let plain = stage.lanyard(&["ls", "--no-such-option", "--", "--json"]);
    assert!(text(&plain.stderr).starts_with("error: "), "{}", text(&plain.stderr));
}

/// Without a terminal nobody can be asked: the turn is left running.
#[test]
fn ctrl_c_leaves_a_turn_running_and_says_how_to_come_back() {
    let stage = Stage::new();
    let (session, output) = stage.watched("/say! at it\n/wait-file go", |_| {});
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&format!("lanyard log -f {session}")), "{}", text(&output.stderr));
    assert_eq!(stage.get(&format!("/sessions/{session}"))["state"], "executing");
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    assert_eq!(stage.until_at_rest(&session)["state"], "between_turn");
}

/// One key for a command that makes two changes: run again, nothing is done twice.
#[test]
fn a_key_makes_a_run_repeatable() {
    let stage = Stage::new();
    let first = stage.run(&["--key", "k1", "--detach", "/say once"]);
    let again = stage.run(&["--key", "k1", "--detach", "/say once"]);
    assert_eq!(text(&first.stdout), text(&again.stdout));
    assert_eq!(stage.get("/sessions")["sessions"].as_array().unwrap().len(), 1);
    stage.until_at_rest(text(&first.stdout).trim());
}

impl Stage {
    /// `lanyard run` as a process of its own; once the agent has spoken, `then`. Sent SIGINT when that did not end it.
    fn watched(&self, script: &str, then: impl FnOnce(&str)) -> (String, std::process::Output) {
        let work = self.workspace().display().to_string();
        let mut child = self.spawned(&["run", "--cwd", &work, script]);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        let session = first.trim().strip_prefix("session ").unwrap().to_owned();
        self.until(&session, |shown| {
            let id = shown["id"].as_str().unwrap();
            self.daemon.log_after(id, 0).iter().any(|event| event["type"] == "message")
        });
        then(&session);
        if self.get(&format!("/sessions/{session}"))["active_turn"]["cancel_requested"] == false
            && self.get(&format!("/sessions/{session}"))["stop"].is_null()
        {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        }
        let mut told = first;
        std::io::Read::read_to_string(&mut stderr, &mut told).unwrap();
        let mut output = child.wait_with_output().unwrap();
        output.stderr = told.into_bytes();
        (session, output)
    }

    /// A command as a process of its own.
    fn spawned(&self, words: &[&str]) -> std::process::Child {
        Command::new(binary())
            .args(words)
            .env("LANYARD_DATA_DIR", self.daemon.home())
            .env("LANYARD_CONFIG", self.daemon.config())
            .env("LANYARD_NO_START", "1")
            .env("LANYARD_DAEMON_WAIT_MS", "1500")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}
