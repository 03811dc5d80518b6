//! A plan from the outside: watched, waited for, cancelled, and merged branch by branch.

use std::process::{Child, Command, Output, Stdio};

use lanyard_base::failpoint::IN_PLAN_CANCEL;
use serde_json::{Value, json};

use super::kit::{Stage, git, id, until};
use crate::support::binary;

/// A plan of these tasks, in the form `key`, `after`, prompt; started.
fn plan(stage: &Stage, name: &str, tasks: &[(&str, &str, &str)]) -> String {
    let heading = |(key, after, prompt): &(&str, &str, &str)| {
        let after = if after.is_empty() { String::new() } else { format!("- after: {after}\n\n") };
        format!("## [ ] {key}: The {key}\n\n{after}{prompt}\n\n")
    };
    let text: String = tasks.iter().map(heading).collect();
    let markdown = format!("# A plan\n\n{text}");
    let body = json!({ "markdown": markdown, "workspace": stage.repo(), "name": name, "start": true });
    id(&stage.ok("/plans/import", &body), "id")
}

fn keyed(stage: &Stage, plan: &str, key: &str) -> Value {
    let shown = stage.get(&format!("/plans/{plan}"));
    let task = shown["all"].as_array().unwrap().iter().find(|task| task["key"] == key).cloned();
    task.unwrap_or_else(|| panic!("no {key} in {shown}"))
}

fn comes_to(stage: &Stage, plan: &str, key: &str, wanted: &str) -> Value {
    stage.is(&id(&keyed(stage, plan, key), "id"), wanted)
}

/// Waits for the file `go`, then writes a file.
fn slow(stage: &Stage, file: &str) -> String {
    format!("/wait-file {}\n/edit {file} text of {file}\n/say wrote {file}", stage.sign("go").display())
}

/// A command that runs beside the test, with its output in files.
fn beside(stage: &Stage, words: &[&str]) -> Child {
    let file = |name: &str| std::fs::File::create(stage.sign(name)).unwrap();
    Command::new(binary())
        .args(words)
        .env("LANYARD_DATA_DIR", stage.daemon.home())
        .env("LANYARD_CONFIG", stage.daemon.config())
        .env("LANYARD_NO_START", "1")
        .env("LANYARD_DAEMON_WAIT_MS", "60000")
        .stdin(Stdio::null())
        .stdout(file("said"))
        .stderr(file("told"))
        .spawn()
        .unwrap()
}

fn said(stage: &Stage, file: &str, words: &str) {
    let text = || std::fs::read_to_string(stage.sign(file)).unwrap();
    until(&format!("`{words}` in {file}"), || text().contains(words));
}

fn out(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Every change is a line, over a daemon that is killed, and the exit code says how it ended.
#[test]
fn fnd_n16_plan_watch_prints_each_change_and_outlasts_the_daemon() {
    let mut stage = Stage::new();
    let tasks = [("api", "", slow(&stage, "api.txt")), ("notes", "api", "/say noted".to_owned())];
    let tasks: Vec<_> = tasks.iter().map(|(key, after, prompt)| (*key, *after, prompt.as_str())).collect();
    let plan = plan(&stage, "release", &tasks);
    comes_to(&stage, &plan, "api", "running");
    assert_eq!(keyed(&stage, &plan, "notes")["held"], "waits for api");
    let mut watching = beside(&stage, &["plan", "watch", "release"]);
    said(&stage, "said", "notes  [ ] pending    waits for api");
    stage.daemon.kill_9();
    said(&stage, "told", "the daemon is gone");
    stage.up_where_it_was();
    said(&stage, "told", "the daemon is back");
    stage.touch("go");
    assert!(watching.wait().unwrap().success());
    let lines = std::fs::read_to_string(stage.sign("said")).unwrap();
    for line in ["api    [>] running", "api    [x] completed  wrote api.txt", "notes  [x] completed  noted"] {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    said(&stage, "told", "release is completed: 2 completed");
    let json = stage.daemon.lanyard(&["--json", "plan", "watch", "release"]);
    let (code, lines, _) = out(&json);
    let tasks: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, tasks.len()), (Some(0), 2), "a plan that is over is shown once");
}

/// A task whose agent asks says so wherever it is listed, while it is followed too.
#[test]
fn plan_watch_shows_what_a_running_task_asks() {
    let stage = Stage::new();
    let plan = plan(&stage, "asking", &[("clean", "", "/ask rm -rf build")]);
    let mut watching = beside(&stage, &["plan", "watch", "asking"]);
    said(&stage, "said", "clean  [>] running    asks for approval: rm -rf build");
    for words in [&["plan", "show", "asking"][..], &["task", "ls"]] {
        let (_, shown, _) = out(&stage.daemon.lanyard(words));
        assert!(shown.contains("asks for approval: rm -rf build"), "{words:?}: {shown}");
    }
    let entry = &keyed(&stage, &plan, "clean")["approvals"][0];
    let (gate, session) = (id(entry, "id"), id(entry, "session"));
    stage.ok(&format!("/sessions/{session}/gates/{gate}"), &json!({ "option": "allow" }));
    assert!(watching.wait().unwrap().success());
}

/// The exit code of a wait says how the plan ended, or that it has not.
#[test]
fn fnd_n16_plan_wait_ends_with_the_plan() {
    let stage = Stage::new();
    plan(&stage, "good", &[("one", "", "/say done")]);
    let (code, shown, _) = out(&stage.daemon.lanyard(&["plan", "wait", "good"]));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("[x] completed"), "{shown}");

    let broken = plan(&stage, "broken", &[("one", "", &slow(&stage, "x")), ("two", "one", "/say never")]);
    comes_to(&stage, &broken, "one", "running");
    let (code, _, told) = out(&stage.daemon.lanyard(&["plan", "wait", "broken", "--timeout", "0"]));
    assert_eq!(code, Some(4), "{told}");
    let one = id(&keyed(&stage, &broken, "one"), "id");
    stage.ok(&format!("/tasks/{one}/fail"), &json!({ "reason": "it cannot be done" }));
    let (code, shown, told) = out(&stage.daemon.lanyard(&["plan", "wait", "broken"]));
    assert_eq!(code, Some(1), "{told}");
    assert!(shown.contains("it cannot be done") && shown.contains("its plan is failed"), "{shown}");
    assert!(told.contains("broken is failed"), "{told}");
}

/// Cancelled, nothing of it starts any more: not by itself, not over a restart, not twice.
#[test]
fn plan_cancel_ends_its_tasks_and_starts_no_more() {
    let mut stage = Stage::new();
    let plan = plan(&stage, "wrong", &[("one", "", &slow(&stage, "one.txt")), ("two", "one", "/say two")]);
    comes_to(&stage, &plan, "one", "running");
    let cancel = || stage.daemon.lanyard(&["plan", "cancel", "wrong", "--reason", "wrong branch", "--now"]);
    let (code, _, told) = out(&cancel());
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("wrong is cancelled"), "{told}");
    let (code, _, told) = out(&stage.daemon.lanyard(&["plan", "wait", "wrong"]));
    assert_eq!(code, Some(6), "{told}");
    for key in ["one", "two"] {
        let task = comes_to(&stage, &plan, key, "cancelled");
        assert_eq!(task["reason"], "wrong branch", "{task}");
    }
    assert_eq!(out(&cancel()).0, Some(0), "again is the same");
    let two = id(&keyed(&stage, &plan, "two"), "id");
    let added = json!({ "title": "late", "prompt": "/say late", "plan": "wrong", "key": "late" });
    stage.ok("/tasks", &added);
    stage.ok(&format!("/tasks/{two}/retry"), &json!({ "deploy": true }));
    stage.up();
    assert_eq!(stage.get("/plans/wrong")["status"], "cancelled");
    for key in ["late", "two"] {
        let task = keyed(&stage, &plan, key);
        assert_eq!((&task["state"], &task["held"]), (&json!("pending"), &json!("its plan is cancelled")));
    }
    stage.ok("/plans/wrong/start", &json!({}));
    comes_to(&stage, &plan, "late", "completed");
    plan_is_done(&stage);
}

/// A daemon that dies in the middle of a cancel leaves no task at work, and the same command ends the plan.
#[test]
fn a_cancel_that_the_daemon_did_not_survive_leaves_nothing_running() {
    let mut stage = Stage::new();
    let plan = plan(&stage, "wrong", &[("one", "", &slow(&stage, "one.txt")), ("two", "one", "/say two")]);
    comes_to(&stage, &plan, "one", "running");
    stage.up_to(&format!("{IN_PLAN_CANCEL}:1"));
    let cancel = ["plan", "cancel", "wrong", "--reason", "wrong branch", "--now"];
    let (code, _, told) = out(&stage.daemon.lanyard(&cancel));
    assert_eq!(code, Some(3), "{told}");
    stage.dies();
    stage.up();
    for key in ["one", "two"] {
        assert_eq!(comes_to(&stage, &plan, key, "cancelled")["reason"], "wrong branch");
    }
    assert_eq!(out(&stage.daemon.lanyard(&cancel)).0, Some(0));
    assert_eq!(stage.get("/plans/wrong")["status"], "cancelled");
}

/// A plan that is completed has nothing to cancel.
fn plan_is_done(stage: &Stage) {
    plan(stage, "done", &[("one", "", "/say one")]);
    assert_eq!(out(&stage.daemon.lanyard(&["plan", "wait", "done"])).0, Some(0));
    assert_eq!(stage.refused("/plans/done/cancel", &json!({})), "plan_transition");
    assert_eq!(stage.refused("/plans/nobody/cancel", &json!({})), "plan_not_found");
}

/// Asked for again under the same key, a cancel is the same answer.
#[test]
fn a_plan_is_cancelled_once_for_a_key() {
    let stage = Stage::new();
    plan(&stage, "twice", &[("one", "", &slow(&stage, "one.txt"))]);
    let cancel = |body: &Value| {
        let headers = [("idempotency-key", "cancel-1")];
        let body = body.to_string();
        stage.daemon.request("POST", "/api/v1/plans/twice/cancel", &headers, Some(&body))
    };
    let now = json!({ "now": true });
    assert_eq!((cancel(&now).status, cancel(&now).status), (202, 202));
    assert_eq!(stage.get("/plans/twice")["status"], "cancelled");
}

/// Branches carry the names of plan and task, the same for every attempt, and are merged prerequisites first. A conflict
/// stops the merge with nothing changed; resolved, the same command continues.
#[test]
fn fnd_n16_plan_merge_goes_on_where_a_conflict_stopped_it() {
    let stage = Stage::new();
    // The last in the text comes first in the merge.
    let plan = plan(
        &stage,
        "Release 1.0",
        &[
            ("notes", "api", "/edit notes.txt notes\n/say wrote"),
            ("clash", "", "/edit same.txt theirs\n/say wrote"),
            ("api", "", "/edit api.txt api\n/say wrote"),
            ("later", "clash", "/edit later.txt later\n/say wrote"),
        ],
    );
    assert_eq!(out(&stage.daemon.lanyard(&["plan", "wait", &plan])).0, Some(0));
    let api = keyed(&stage, &plan, "api");
    let task = id(&api, "id");
    let branch = id(&api["tree"], "branch");
    assert_eq!(branch, format!("lanyard/release-1-0-api-{}", &task[task.len() - 6..]));
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    until("the second attempt", || {
        let shown = stage.show(&task);
        shown["attempts"] == 2 && shown["state"] == "completed"
    });
    assert_eq!(stage.show(&task)["tree"]["branch"], branch, "a retry goes on with the branch");
    until("the plan to be over again", || stage.get(&format!("/plans/{plan}"))["status"] == "completed");

    std::fs::write(stage.repo().join("same.txt"), "ours\n").unwrap();
    git(&stage.repo(), &["add", "."]);
    git(&stage.repo(), &["commit", "-qm", "ours"]);
    let merge = |words: &[&str]| {
        let output = stage.daemon.lanyard(&[&["--json"], words].concat());
        let receipts: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let outcome = |receipt: &Value| {
            format!("{} {}", receipt["key"].as_str().unwrap(), receipt["outcome"].as_str().unwrap())
        };
        let outcomes: Vec<String> = receipts["items"].as_array().unwrap().iter().map(outcome).collect();
        (output.status.code(), outcomes, String::from_utf8(output.stderr).unwrap())
    };
    let (code, first, told) = merge(&["plan", "merge", &plan]);
    assert_eq!(code, Some(1), "{told}");
    let place = |receipts: &[String], key: &str| receipts.iter().position(|line| line.starts_with(key));
    assert!(place(&first, "api") < place(&first, "notes") && place(&first, "clash") < place(&first, "later"));
    assert!(first.contains(&"clash refused".to_owned()), "{first:?}");
    assert!(first.contains(&"later not_tried".to_owned()), "{first:?}");
    let clash = id(&keyed(&stage, &plan, "clash")["tree"], "branch");
    let mend = format!("git -C {} merge {clash}", stage.repo().display());
    assert!(told.contains(&mend) && told.contains(&format!("lanyard plan merge {plan}")), "{told}");
    assert_eq!(git(&stage.repo(), &["status", "--porcelain"]), "", "nothing is half merged");

    git(&stage.repo(), &["merge", "-q", "-X", "ours", "--no-edit", &clash]);
    let (code, second, told) = merge(&["task", "merge", "--plan", &plan]);
    assert_eq!(code, Some(0), "{told}");
    assert!(second.contains(&"clash nothing_to_merge".to_owned()), "{second:?}");
    assert!(second.contains(&"later merged".to_owned()), "{second:?}");
    for file in ["api.txt", "notes.txt", "later.txt", "same.txt"] {
        assert!(stage.repo().join(file).exists(), "{file}");
    }
    let (code, third, _) = merge(&["plan", "merge", &plan]);
    assert_eq!(code, Some(0));
    assert!(third.iter().all(|line| line.ends_with(" merged_before")), "{third:?}");
}

/// A branch of that name that is somebody else's stays as it is.
#[test]
fn a_branch_that_is_taken_is_left_alone() {
    let stage = Stage::new();
    let body = json!({ "title": "A plan", "workspace": stage.repo(), "name": "p",
        "tasks": [{ "title": "x", "key": "k", "prompt": "/edit x.txt x\n/say wrote" }] });
    let plan = id(&stage.ok("/plans", &body), "id");
    let task = id(&keyed(&stage, &plan, "k"), "id");
    let taken = format!("lanyard/p-k-{}", &task[task.len() - 6..]);
    git(&stage.repo(), &["branch", &taken]);
    let before = git(&stage.repo(), &["rev-parse", &taken]);
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    let done = stage.is(&task, "completed");
    assert_eq!(done["tree"]["branch"], format!("lanyard/{task}"));
    assert_eq!(git(&stage.repo(), &["rev-parse", &taken]), before);
}
