//! Families as people meet them on the command line.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::operate::Stage;
use crate::support::PATIENCE;

/// The seconds a task may take that is waited for.
const PATIENCE_S: &str = "60";

const PLAN: &str = "\
# Release 1.0

All that stands between us and the tag.

## [ ] api: Finish the API

- files: api.txt

/edit api.txt done
/say All routes are there.

## [ ] notes: Write the notes

- after: api

/edit notes.txt written
/say The notes are written.
";

/// A daemon, a scripted agent, and a repository to work in.
struct Desk(Stage);

impl Desk {
    fn new() -> Self {
        let stage = Stage::new();
        stage.git();
        Self(stage)
    }

    /// What agents that are told to wait for it wait for.
    fn gate(&self) -> PathBuf {
        self.0.workspace().with_file_name("go")
    }

    fn open_gate(&self) {
        std::fs::write(self.gate(), "").unwrap();
    }

    /// A prompt that ends when the gate is open.
    fn slow(&self, words: &str) -> String {
        format!("/wait-file {}\n/say {words}", self.gate().display())
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.0.lanyard(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&words)).unwrap()
    }

    /// `task add` in the workspace; its id.
    #[track_caller]
    fn add(&self, words: &[&str]) -> String {
        let work = self.0.workspace().display().to_string();
        let words: Vec<&str> =
            ["task", "add", "--workspace", &work].into_iter().chain(words.iter().copied()).collect();
        self.ok(&words)
    }

    /// Waits until somebody works at it.
    fn until_running(&self, task: &str) -> Value {
        let since = Instant::now();
        loop {
            let shown = self.json(&["task", "show", task]);
            if shown["state"] == "running" {
                return shown;
            }
            assert!(since.elapsed() < PATIENCE, "still {shown:#}");
            // sleep: between two looks at a task that is being deployed.
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait(&self, task: &str) -> Output {
        self.0.lanyard(&["task", "wait", "--timeout", PATIENCE_S, task])
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Says what was refused, and has the code and the next command in it.
#[track_caller]
fn refused(output: &Output, code: &str, advice: &str) {
    let said = text(&output.stderr);
    assert!(!output.status.success(), "it was not refused");
    assert!(said.contains(&format!("[{code}]")) && said.contains(advice), "{said}");
}

/// S4-03, S4-09: a plan as Markdown, worked at by background workers on branches of their own.
#[test]
fn a_plan_is_imported_started_watched_merged_and_exported() {
    let desk = Desk::new();
    let file = desk.0.workspace().with_file_name("release.md");
    std::fs::write(&file, PLAN).unwrap();
    let work = desk.0.workspace().display().to_string();
    let file = file.display().to_string();
    let plan = desk.ok(&["plan", "import", &file, "--name", "release", "--workspace", &work]);
    assert!(plan.starts_with("plan_"), "{plan}");
    let draft = desk.ok(&["plan", "show", "release"]);
    assert!(draft.contains("2 pending") && draft.contains("its plan is draft"), "{draft}");

    desk.ok(&["plan", "start", "release"]);
    let tasks = desk.json(&["task", "ls", "--plan", "release", "--all"]);
    let by_key = |key: &str| {
        let found = tasks["items"].as_array().unwrap().iter().find(|task| task["key"] == key);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (api, notes) = (by_key("api"), by_key("notes"));
    let waited = desk.0.lanyard(&["task", "wait", "--timeout", PATIENCE_S, &api, &notes]);
    assert!(waited.status.success(), "{}", text(&waited.stderr));
    let listed = text(&waited.stdout);
    assert!(listed.contains("[x] completed") && listed.contains("All routes are there."), "{listed}");

    let diff = desk.0.lanyard(&["task", "diff", &api]);
    assert!(text(&diff.stdout).contains("+done"), "{}", text(&diff.stdout));
    assert!(text(&diff.stderr).contains("A api.txt +1 -0"), "{}", text(&diff.stderr));
    assert!(!desk.0.workspace().join("api.txt").exists(), "the checkout is not touched before the merge");
    desk.ok(&["task", "merge", &api]);
    assert_eq!(std::fs::read_to_string(desk.0.workspace().join("api.txt")).unwrap(), "done");

    let markdown = desk.ok(&["plan", "export", "release"]);
    assert!(markdown.contains("## [x] api: Finish the API"), "{markdown}");
    desk.ok(&["plan", "archive", "release"]);
    assert_eq!(desk.json(&["plan", "ls"])["items"].as_array().unwrap().len(), 0);
    assert_eq!(desk.json(&["plan", "ls", "--all"])["items"][0]["id"], plan.as_str());
}

/// S4-14, S4-19: a task that is done again keeps its worker's id; the exit code of `wait` says how it went.
#[test]
fn a_task_is_cancelled_and_retried_by_the_same_worker() {
    let desk = Desk::new();
    let task = desk.add(&["slow", "--alias", "slow", "--prompt", &desk.slow("done"), "--deploy"]);
    let worker = desk.until_running("slow")["worker"].clone();
    let left = desk.0.lanyard(&["task", "wait", "--timeout", "0", &task]);
    assert_eq!(left.status.code(), Some(4), "{}", text(&left.stderr));
    let message = desk.ok(&["task", "message", "slow", "mention the flag"]);
    assert!(desk.ok(&["mailbox", "slow"]).contains(&message[message.len() - 6..]));
    desk.ok(&["mailbox", "ack", &message]);

    desk.ok(&["task", "cancel", "slow", "--reason", "wrong branch"]);
    let cancelled = desk.wait("slow");
    assert_eq!(cancelled.status.code(), Some(1), "{}", text(&cancelled.stderr));
    assert!(text(&cancelled.stdout).contains("[-] cancelled"), "{}", text(&cancelled.stdout));
    refused(&desk.0.lanyard(&["task", "deploy", "slow"]), "task_ended", "lanyard task retry");

    desk.open_gate();
    desk.ok(&["task", "retry", "slow", "--deploy"]);
    assert!(desk.wait("slow").status.success());
    let again = desk.json(&["task", "show", "slow"]);
    assert_eq!((&again["worker"], &again["attempts"]), (&worker, &Value::from(2)));
    let log = desk.ok(&["task", "show", "slow", "--log"]);
    assert!(
        log.contains("(generated)") && log.contains("(reused)") && log.contains("to be done again"),
        "{log}"
    );
}

/// S4-15, S4-20: the end of a part is mail to the task above, and any id leads to the whole chain.
#[test]
fn a_part_reports_to_the_task_above_and_ids_are_explained() {
    let desk = Desk::new();
    let lead = desk.add(&["lead", "--alias", "lead", "--prompt", &desk.slow("lead done"), "--deploy"]);
    let part = desk.add(&["part", "--part-of", "lead", "--prompt", "/say Two typos.", "--deploy"]);
    assert!(desk.wait(&part).status.success());

    let mail = desk.json(&["mailbox", "lead", "--all"]);
    let mail = mail["items"][0]["id"].as_str().unwrap();
    let letter = desk.ok(&["mailbox", "show", mail]);
    assert!(letter.contains("ended: completed") && letter.contains("Two typos."), "{letter}");
    assert!(letter.contains(", an agent"), "S4-B03: {letter}");

    let shown = desk.json(&["task", "show", &part]);
    for id in ["worker", "session", "id"].map(|key| shown[key].as_str().unwrap()) {
        let chain = desk.ok(&["id", id]);
        assert!(chain.contains("<- this one") && chain.contains(&part), "{chain}");
        assert!(chain.trim_end().ends_with(&lead), "whom it reports to: {chain}");
    }
    let address = format!("orchestrator:/{part}");
    assert_eq!(desk.json(&["id", &address])["task"]["id"], part.as_str(), "S4-06");
    refused(&desk.0.lanyard(&["id", "nosuch"]), "id_unknown", "lanyard task ls --all");

    desk.ok(&["mailbox", "ack", mail, "--reason", "read"]);
    desk.ok(&["task", "adopt", &part]);
    assert!(desk.json(&["task", "show", &part])["reports_to"].is_null());
    let workers = desk.ok(&["workers"]);
    assert!(
        workers.contains(&lead[lead.len() - 6..]) && !workers.contains(&part[part.len() - 6..]),
        "{workers}"
    );
}

/// S4-21: whoever works at a task is brought back by any of its ids, under the same worker.
#[test]
fn work_is_resumed_by_any_id() {
    let desk = Desk::new();
    let task = desk.add(&["slow", "--prompt", &desk.slow("done"), "--deploy"]);
    let shown = desk.until_running(&task);
    let (worker, session) = (shown["worker"].as_str().unwrap(), shown["session"].as_str().unwrap());
    assert_eq!(desk.json(&["resume", worker])["how"], "at_work");

    desk.ok(&["task", "pause", &task]);
    refused(&desk.0.lanyard(&["resume", &task, "--way", "native"]), "usage", "leave out --way");
    let back = desk.json(&["resume", session]);
    assert_eq!((&back["how"], &back["worker"]), (&Value::from("resumed"), &Value::from(worker)));
    refused(&desk.0.lanyard(&["resume", "nosuch"]), "session_not_found", "lanyard ls --all");
}

/// S4-08: a chat has its session's id as its worker's, and is a chat again when its task is over.
#[test]
fn a_chat_that_is_done_with_its_task_is_resumed_as_a_chat() {
    let desk = Desk::new();
    let work = desk.0.workspace().display().to_string();
    let session = desk.ok(&["new", "--agent", "scripted", "--workspace", &work, "--alias", "chatty"]);
    let task = desk.add(&["talk", "--session", "chatty", "--prompt", "/say hello", "--deploy"]);
    desk.0.until(&session, |shown| shown["turns"] == 1 && shown["active_turn"].is_null());
    let shown = desk.json(&["task", "show", &task]);
    assert_eq!(shown["worker"], session.replace("sess_", "worker_").as_str());

    desk.ok(&["task", "complete", &task, "--summary", "talked"]);
    assert!(desk.wait(&task).status.success());
    desk.ok(&["resume", "chatty"]);
    assert_eq!(desk.json(&["task", "show", &task])["state"], "completed");
    assert_eq!(desk.json(&["show", &session])["turns"], 1);
}

#[test]
fn a_program_outside_gets_the_tokens_of_its_run() {
    let desk = Desk::new();
    let task = desk.add(&["import", "--kind", "external", "--deploy"]);
    desk.until_running(&task);
    let token = desk.json(&["task", "token", &task]);
    assert!(token["run"] == 1 && token["run_token"].is_string(), "{token:#}");
    let background = desk.add(&["another"]);
    refused(&desk.0.lanyard(&["task", "token", &background]), "task_not_external", "--kind external");
    desk.ok(&["task", "complete", &task, "--summary", "4,112 rows", "--evidence", "run 7"]);
    assert!(desk.wait(&task).status.success());
    assert!(desk.ok(&["task", "show", &task]).contains("4,112 rows"));
}

/// Nothing begins while everything is halted.
#[test]
fn work_is_halted_and_goes_on_when_that_is_lifted() {
    let desk = Desk::new();
    assert_eq!(desk.ok(&["halt", "--status"]), "work is not halted");
    let task = desk.add(&["slow", "--prompt", &desk.slow("done"), "--deploy"]);
    let halted = desk.ok(&["halt", "--reason", "all out"]);
    assert_eq!(halted, task);
    assert_eq!(desk.wait(&task).status.code(), Some(1));
    assert!(desk.ok(&["halt", "--status"]).contains("all out"));
    let later = desk.add(&["later", "--prompt", "/say late", "--deploy"]);
    assert!(desk.ok(&["task", "ls"]).contains("everything was halted"));
    refused(&desk.0.lanyard(&["task", "deploy", &later]), "halted", "lanyard halt --lift");
    desk.ok(&["halt", "--lift"]);
    assert!(desk.wait(&later).status.success());
}

#[test]
fn a_task_nobody_works_at_is_edited_and_one_that_is_not_there_is_named() {
    let desk = Desk::new();
    let first = desk.add(&["first"]);
    let second = desk.add(&["second", "--after", &first, "--file", "a.txt"]);
    desk.ok(&["task", "edit", &second, "--title", "then", "--priority", "high", "--after", ""]);
    let shown = desk.json(&["task", "show", &second]);
    assert_eq!((&shown["title"], &shown["priority"]), (&Value::from("then"), &Value::from("high")));
    assert!(shown["depends_on"].is_null() && shown["files"][0] == "a.txt", "{shown:#}");
    refused(&desk.0.lanyard(&["task", "edit", &second]), "usage", "--title");
    for (words, code, advice) in [
        (&["task", "show", "nosuch"][..], "task_not_found", "lanyard task ls"),
        (&["plan", "show", "nosuch"], "plan_not_found", "lanyard plan ls"),
        (&["mailbox", "show", "nosuch"], "mail_not_found", "lanyard mailbox"),
    ] {
        refused(&desk.0.lanyard(words), code, advice);
    }
}
