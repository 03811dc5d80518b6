//! Workers that do not do well are helped, then begun again, then a person is asked; silence alone is no fault (S4-22).

use lanyard_base::failpoint::BEFORE_ESCALATION;
use serde_json::{Value, json};

use super::kit::{Stage, id, until};
use crate::support::binary;

/// A stage with an agent `odd` beside `a`.
struct Ward {
    stage: Stage,
    /// Gone after the stage is.
    _state: tempfile::TempDir,
}

impl std::ops::Deref for Ward {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

/// These rules of health, and `odd` does this whenever it is told nothing else.
fn stage(rules: &str, otherwise: &str) -> Ward {
    let folder = tempfile::tempdir().unwrap();
    let (program, state) = (binary().display().to_string(), folder.path().display().to_string());
    let command = [&program, "scripted-agent", "--state", &state, "--otherwise", otherwise];
    let command = serde_json::to_string(&command).unwrap();
    let agent = format!("[agents.odd]\ndriver = \"acp\"\ncommand = {command}\nkill_grace_ms = 400\n");
    Ward {
        stage: Stage::with(&format!("[daemon]\ndefault_agent = \"a\"\n[health]\n{rules}\n{agent}")),
        _state: folder,
    }
}

/// The same call again and again, and then nothing.
fn loops(stage: &Stage) -> String {
    let task = json!({ "agent": "odd" });
    let prompt =
        format!("/repeat 4 /tool search {{\"for\":\"it\"}}\n/wait-file {}", stage.sign("never").display());
    stage.task(&prompt, &task)
}

fn row(stage: &Stage, worker: &Value) -> Value {
    let listed = stage.get("/workers");
    let row = listed["workers"].as_array().unwrap().iter().find(|row| row["worker"] == *worker).cloned();
    row.unwrap_or_else(|| panic!("no {worker} in {listed}"))
}

fn remedies(stage: &Stage, task: &str) -> (u64, u64, u64) {
    let shown = stage.show(task)["remedies"].clone();
    let count = |name: &str| shown[name].as_u64().unwrap();
    (count("nudges"), count("restarts"), count("escalations"))
}

fn events(stage: &Stage, task: &str, kind: &str) -> Vec<Value> {
    let log = stage.get(&format!("/tasks/{task}/log?limit=500"));
    log["events"].as_array().unwrap().iter().filter(|event| event["type"] == kind).cloned().collect()
}

/// The open question about a task.
fn gate(stage: &Stage, task: &str) -> (String, String) {
    let about = |gate: &&Value| gate["detail"]["task"] == task && gate["status"]["name"] == "open";
    let found = || {
        let listed = stage.get("/gates");
        listed["gates"].as_array().unwrap().iter().find(about).cloned()
    };
    until("a person to be asked", || found().is_some());
    let gate = found().unwrap();
    assert_eq!(gate["kind"], "escalation", "{gate}");
    (id(&gate, "session"), id(&gate, "id"))
}

const IMPATIENT: &str = "same_calls = 3\nstuck_ms = 100\npatience_ms = 50\nnudges = 1\nrestarts = 1";

/// S4-22: nudged, begun again, and then a person is asked, whose answer is done; by the same worker all along.
#[test]
fn a_looping_worker_is_nudged_then_begun_again_then_asked_about() {
    let stage = stage(IMPATIENT, "/wait-file /nonexistent/never");
    let task = loops(&stage);
    let worker = stage.is(&task, "running")["worker"].clone();
    until("it to be nudged", || remedies(&stage, &task).0 == 1);
    let session = id(&stage.show(&task), "session");
    until("the words in its log", || {
        let log = stage.daemon.log_after(&session, 0);
        log.iter().any(|event| event.to_string().contains("the same call 3 times in a row"))
    });
    until("it to be begun again", || remedies(&stage, &task).1 == 1);
    assert_eq!(events(&stage, &task, "task.remedied")[1]["data"]["why"], "looping");
    let (session, question) = gate(&stage, &task);
    assert_eq!(stage.show(&task)["worker"], worker);
    assert_eq!(row(&stage, &worker)["task"], task.as_str());
    assert_eq!(remedies(&stage, &task), (1, 1, 1));
    let path = format!("/sessions/{session}/gates/{question}");
    stage.ok(&path, &json!({ "option": "restart" }));
    until("it to be begun again as a person said", || remedies(&stage, &task).1 == 2);
    // Stuck once more, a person is asked once more.
    let (session, question) = gate(&stage, &task);
    stage.ok(&format!("/sessions/{session}/gates/{question}"), &json!({ "option": "cancel" }));
    let ended = stage.is(&task, "cancelled");
    assert_eq!(ended["reason"], "a person was asked and cancelled it");
    assert_eq!(ended["worker"], worker);
}

/// A call that runs suspends everything, however long it takes and whatever came before.
#[test]
fn a_call_that_runs_suspends_every_remedy() {
    // Silence alone is passed over here: on a busy machine it may last before the call is open.
    let rules = "same_calls = 3\nstuck_ms = 3600000\npatience_ms = 50\nnudges = 1\nrestarts = 1";
    let mut stage = stage(rules, "/wait-file /nonexistent/never");
    let busy = format!(
        "/tool-open build\n/repeat 4 /tool search {{\"for\":\"it\"}}\n/wait-file {}",
        stage.sign("never").display()
    );
    let busy = stage.task(&busy, &json!({}));
    stage.is(&busy, "running");
    let worker = stage.show(&busy)["worker"].clone();
    until("it to be seen", || row(&stage, &worker)["condition"] == "looping");
    // Another, which has no call open, is looked at in the same looks.
    let looping = loops(&stage);
    until("the other to be begun again", || remedies(&stage, &looping).1 == 1);
    assert_eq!(remedies(&stage, &busy), (0, 0, 0));
    // S4-22: another daemon sees the same worker in the same condition.
    stage.stage.up();
    until("it to be seen again", || row(&stage, &worker)["condition"] == "looping");
    assert_eq!(stage.show(&busy)["state"], "running");
}

/// Words that were just sent are given time to work.
#[test]
fn a_word_just_sent_suspends_every_remedy() {
    let stage = stage("same_calls = 3\npatience_ms = 3600000\nnudges = 1", "/say x");
    let prompt = |sign: &str| {
        let (go, never) = (stage.sign(sign), stage.sign("never"));
        let wait = format!("/wait-file {}", go.display());
        format!("{wait}\n/repeat 4 /tool search {{}}\n/wait-file {}", never.display())
    };
    let (steered, left) = (stage.task(&prompt("go"), &json!({})), stage.task(&prompt("go"), &json!({})));
    let session = id(&stage.is(&steered, "running"), "session");
    stage.is(&left, "running");
    stage.ok(&format!("/sessions/{session}/guidance"), &json!({ "text": "try the other way" }));
    stage.touch("go");
    until("the one without words to be nudged", || remedies(&stage, &left).0 == 1);
    let worker = stage.show(&steered)["worker"].clone();
    until("both to be seen", || row(&stage, &worker)["condition"] == "looping");
    assert_eq!(remedies(&stage, &steered), (0, 0, 0));
}

/// A worker that says nothing any more, whatever it is asked, gets another process; the same worker all the same.
#[test]
fn a_worker_that_hangs_is_begun_again_in_another_process() {
    let rules = "stuck_ms = 100\npatience_ms = 50\nnudges = 0\nrestarts = 3";
    let stage = stage(rules, "/say I am back");
    let task = stage.task("/write half.txt half\n/hang", &json!({ "agent": "odd" }));
    let first = stage.is(&task, "running");
    let done = stage.is(&task, "completed");
    assert_eq!(done["result"]["summary"], "I am back");
    assert_eq!(done["worker"], first["worker"]);
    assert!(done["run"].as_u64() > first["run"].as_u64(), "{done}");
    assert_eq!(done["captured"]["files"], json!(["half.txt"]), "what it had done is still there");
}

/// One that dies each time is not begun again for ever: it fails, and says why.
#[test]
fn a_worker_that_dies_each_time_fails_with_a_reason() {
    let stage = stage("restarts = 2", "/die");
    let task = stage.task("/die", &json!({ "agent": "odd" }));
    let failed = stage.is(&task, "failed");
    assert!(id(&failed, "reason").contains("lost 3 times"), "{failed}");
    assert_eq!((&failed["run"], &failed["attempts"]), (&json!(3), &json!(1)));
    assert_eq!(stage.worktrees(), 1);
}

/// Errors in a row are a fault too, and a person who says `wait` is left alone with it.
#[test]
fn errors_in_a_row_are_seen_and_a_person_may_leave_it() {
    let rules = "errors = 3\nstuck_ms = 3600000\npatience_ms = 50\nnudges = 0\nrestarts = 0";
    let stage = stage(rules, "/say x");
    let prompt = format!("/repeat 4 /tool-fail build it broke\n/wait-file {}", stage.sign("go").display());
    let task = stage.task(&prompt, &json!({}));
    let (session, question) = gate(&stage, &task);
    let worker = stage.show(&task)["worker"].clone();
    assert_eq!(row(&stage, &worker)["condition"], "error_streak");
    stage.ok(&format!("/sessions/{session}/gates/{question}"), &json!({ "option": "wait" }));
    stage.touch("go");
    stage.is(&task, "completed");
    assert_eq!(remedies(&stage, &task), (0, 0, 1));
}

/// A task in a chat that nobody goes on with is asked about as well; the chat stays what it is.
#[test]
fn a_chat_that_rests_on_its_task_is_asked_about() {
    let stage = stage("idle_ms = 100\npatience_ms = 50\nnudges = 0", "/say x");
    let chat = stage.chat();
    let task = stage.task("/say I rest", &json!({ "session": chat }));
    let (session, question) = gate(&stage, &task);
    assert_eq!(session, chat);
    assert_eq!(stage.get(&format!("/sessions/{chat}"))["state"], "between_turn");
    stage.ok(&format!("/sessions/{chat}/gates/{question}"), &json!({ "option": "cancel" }));
    stage.is(&task, "cancelled");
    assert_eq!(stage.get(&format!("/sessions/{chat}"))["state"], "between_turn");
    assert_eq!(stage.get("/gates")["gates"], json!([]));
}

/// A task that ends takes the question about it along.
#[test]
fn nobody_is_asked_about_a_task_that_has_ended() {
    let stage = stage("stuck_ms = 100\npatience_ms = 50\nnudges = 0\nrestarts = 0", "/say x");
    let wait = format!("/wait-file {}", stage.sign("never").display());
    let (one, two) = (stage.task(&wait, &json!({})), stage.task(&wait, &json!({})));
    let (session, _) = gate(&stage, &one);
    gate(&stage, &two);
    stage.ok(&format!("/tasks/{one}/cancel"), &json!({ "now": true }));
    stage.ok(&format!("/tasks/{two}/fail"), &json!({ "reason": "enough" }));
    stage.is(&one, "cancelled");
    stage.is(&two, "failed");
    assert_eq!(stage.get("/gates")["gates"], json!([]));
    let held = stage.get(&format!("/sessions/{session}/gates"));
    assert_eq!(held["gates"][0]["status"]["name"], "withdrawn", "{held}");
}

/// S4-22: a daemon that dies between writing that a person is to be asked and asking has the next one ask, once.
#[test]
fn a_person_is_asked_though_the_daemon_died_before_it_could() {
    let rules = "same_calls = 3\nstuck_ms = 3600000\npatience_ms = 50\nnudges = 0\nrestarts = 0";
    let mut stage = stage(rules, "/wait-file /nonexistent/never");
    stage.stage.up_to(&format!("{BEFORE_ESCALATION}:1"));
    let task = loops(&stage);
    stage.dies();
    stage.stage.up();
    assert_eq!(remedies(&stage, &task), (0, 0, 1), "it was written before");
    let (session, question) = gate(&stage, &task);
    // Looked at again and again meanwhile, it is the one question.
    stage.stage.up();
    assert_eq!(gate(&stage, &task), (session.clone(), question.clone()));
    stage.ok(&format!("/sessions/{session}/gates/{question}"), &json!({ "option": "cancel" }));
    stage.is(&task, "cancelled");
    let log = stage.daemon.log_after(&session, 0);
    let opened = log.iter().filter(|event| event["type"] == "gate.opened").count();
    assert_eq!((opened, remedies(&stage, &task)), (1, (0, 0, 1)));
}
