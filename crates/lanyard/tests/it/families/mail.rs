//! Parents always hear, and once: over redeploys, kills of the daemon, and both (S4-15, S4-16, S4-B02, S4-T1, S4-T2).

use lanyard_base::failpoint::OF_FAMILIES;
use serde_json::json;

use super::kit::{Stage, id, until};

/// A parent that spawns a child with this prompt, and then waits for a file.
fn parent(stage: &Stage, child: &str, gate: &str) -> String {
    let spawn = json!({ "action": "spawn", "prompt": child, "title": "the child", "key": "child" });
    let prompt = format!(
        "/mcp lanyard tasks {spawn}\n/touch {}\n/wait-file {}\n/say parent done",
        stage.sign("spawned").display(),
        stage.sign(gate).display(),
    );
    let task = stage.task(&prompt, &json!({ "may_spawn": true, "title": "the parent" }));
    stage.await_sign("spawned");
    task
}

fn child_of(stage: &Stage, parent: &str) -> String {
    let listed = stage.get(&format!("/tasks?reports_to={parent}"));
    id(&listed["tasks"][0], "id")
}

/// The parent of a child that ended is told, in the words of whoever ended, marked as an agent's output (S4-B03).
#[test]
fn a_parent_between_turns_is_told_of_its_childs_end() {
    let stage = Stage::new();
    let task = parent(&stage, "/say the answer is 42", "never");
    let child = child_of(&stage, &task);
    let done = stage.is(&child, "completed");
    assert_eq!(done["created_in"], stage.show(&task)["session"], "S4-18");
    stage.touch("never");
    // Its turn ended with mail in the box: it is woken, told, and only then completed.
    let ended = stage.is(&task, "completed");
    assert_eq!(ended["result"]["summary"], "noted");
    let told = stage.told();
    assert!(told.contains("SUBAGENT REPORT"), "{told}");
    assert!(told.contains("the answer is 42") && told.contains(&child), "{told}");
    let mail = stage.all_mail();
    assert_eq!(mail.len(), 1);
    assert_eq!((&mail[0]["kind"], &mail[0]["ended"]), (&json!("ended"), &json!("completed")));
    assert_eq!((&mail[0]["state"], &mail[0]["to"]), (&json!("acknowledged"), &json!(task)));
}

/// What a parent is told in other words than a report, of a cancelled child or by a person, is settled by its turn too.
#[test]
fn a_parent_that_read_of_a_cancelled_child_comes_to_its_end() {
    let stage = Stage::new();
    let task = parent(&stage, &format!("/wait-file {}", stage.sign("never").display()), "go");
    let child = child_of(&stage, &task);
    stage.is(&child, "running");
    stage.ok(&format!("/tasks/{child}/cancel"), &json!({ "reason": "not wanted", "now": true }));
    stage.is(&child, "cancelled");
    // Asked again it is the same end, and told of once.
    stage.ok(&format!("/tasks/{child}/cancel"), &json!({}));
    stage.ok(&format!("/tasks/{task}/mail"), &json!({ "text": "a word of the operator's" }));
    stage.touch("go");
    stage.is(&task, "completed");
    let mail = stage.all_mail();
    assert_eq!(mail.len(), 2, "{mail:?}");
    assert!(mail.iter().all(|mail| mail["state"] == "acknowledged"), "{mail:?}");
    let told = stage.told();
    assert!(told.contains("not wanted") && told.contains("a word of the operator's"), "{told}");
}

/// S4-T2: told also after the parent was redeployed, and never twice to one that acknowledged.
#[test]
fn a_redeployed_parent_hears_of_the_child_of_its_first_run() {
    let stage = Stage::new();
    let child = format!("/wait-file {}\n/say late news", stage.sign("child-go").display());
    let task = parent(&stage, &child, "never");
    let child = child_of(&stage, &task);
    stage.is(&child, "running");
    let first = stage.show(&task);
    // The parent's session ends under it; the task is run again by the same worker.
    let session = id(&first, "session");
    stage.ok(&format!("/sessions/{session}/stop"), &json!({ "now": true, "scope": "session" }));
    stage.is(&task, "cancelled");
    assert_eq!(stage.show(&child)["state"], "running", "adopted, not ended with its parent");
    stage.ok(&format!("/tasks/{child}/adopt"), &json!({ "parent": task }));
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    until("the second run", || stage.show(&task)["attempts"] == 2);
    assert_eq!(stage.show(&task)["worker"], first["worker"]);
    stage.touch("child-go");
    stage.is(&child, "completed");
    stage.touch("never");
    stage.is(&task, "completed");
    assert_eq!(
        stage.get("/tasks")["tasks"].as_array().unwrap().len(),
        2,
        "spawned again, it is the same child"
    );
    until("the mail to be acknowledged", || {
        stage
            .all_mail()
            .iter()
            .any(|mail| mail["from"]["task"] == child.as_str() && mail["state"] == "acknowledged")
    });
    let mail: Vec<_> =
        stage.all_mail().into_iter().filter(|mail| mail["from"]["task"] == child.as_str()).collect();
    assert_eq!((mail.len(), &mail[0]["times"]), (1, &json!(1)));
}

/// The daemon dies at each place between the child's end and the parent's hearing of it, the first time it comes there
/// and later ones.
#[test]
fn nothing_is_lost_when_the_daemon_dies_around_a_childs_end() {
    for place in OF_FAMILIES {
        for time in 1..=3 {
            let mut stage = Stage::new();
            let words = format!("survived {place} {time}");
            let child = format!("/wait-file {}\n/say {words}", stage.sign("child-go").display());
            let task = parent(&stage, &child, "go");
            let child = child_of(&stage, &task);
            stage.is(&child, "running");
            let workers =
                |stage: &Stage| (stage.show(&task)["worker"].clone(), stage.show(&child)["worker"].clone());
            let before = workers(&stage);
            stage.up_to(&format!("{place}:{time}"));
            stage.touch("child-go");
            stage.touch("go");
            // It comes to each place at least once; to the later times it may not.
            if time == 1 {
                stage.dies();
            } else {
                until("its death, or the end", || !stage.daemon.is_alive() || stage.has_ended(&task));
            }
            stage.up();
            stage.is(&child, "completed");
            stage.is(&task, "completed");
            assert_eq!(workers(&stage), before, "{place} {time}");
            let mail = stage.all_mail();
            assert_eq!(mail.len(), 1, "{place} {time}: {mail:?}");
            assert_eq!(mail[0]["state"], "acknowledged", "{place} {time}");
            assert!(stage.told().contains(&words), "{place} {time}");
            assert_eq!(stage.worktrees(), 1, "{place} {time}");
        }
    }
}

/// A task whose agent waits in its first run and ends its turn in the next. It runs.
fn retriable(stage: &Stage, name: &str) -> String {
    let go = stage.sign(&format!("{name}-go"));
    let prompt = format!("/touch {}\n/wait-file {}", stage.sign(name).display(), go.display());
    let task = stage.task(&prompt, &json!({}));
    stage.await_sign(name);
    task
}

fn mail_to(stage: &Stage, task: &str) -> serde_json::Value {
    let mail = stage.all_mail().into_iter().find(|mail| mail["to"] == task);
    mail.unwrap_or_else(|| panic!("no mail to {task}"))
}

/// The next worker of a cancelled task is told, and the message is acknowledged.
fn hears_after_a_retry(stage: &Stage, task: &str, name: &str, words: &str) {
    stage.touch(&format!("{name}-go"));
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    until(&format!("{words} to be acknowledged"), || mail_to(stage, task)["state"] == "acknowledged");
    assert!(stage.told().contains(words), "{words}");
    stage.is(task, "completed");
}

/// FND-N7: mail sent just before a cancel waits for the next worker, however often and whenever the box is looked into.
#[test]
fn fnd_n7_mail_sent_before_a_cancel_reaches_the_next_worker() {
    let stage = Stage::new();
    for round in 0..6 {
        let (name, words) = (format!("first-{round}"), format!("remember the {round}"));
        let task = retriable(&stage, &name);
        stage.ok(&format!("/tasks/{task}/mail"), &json!({ "text": words }));
        stage.ok(&format!("/tasks/{task}/cancel"), &json!({ "now": round % 2 == 0 }));
        stage.is(&task, "cancelled");
        // In every second round the box is looked into while the task is cancelled.
        if round < 3 {
            until("the mail to wait again", || {
                let now = mail_to(&stage, &task)["state"].clone();
                assert_ne!(now, "dead", "{words}");
                now == "pending"
            });
        }
        hears_after_a_retry(&stage, &task, &name, &words);
    }
}

/// FND-N7: the same for mail that comes while the cancel is under way. After the end it is refused.
#[test]
fn fnd_n7_mail_sent_during_a_cancel_reaches_the_next_worker() {
    let stage = Stage::new();
    for round in 0..4 {
        let (name, words) = (format!("late-{round}"), format!("remember late {round}"));
        let task = retriable(&stage, &name);
        stage.ok(&format!("/tasks/{task}/cancel"), &json!({}));
        let sent = stage.post(&format!("/tasks/{task}/mail"), &json!({ "text": words }));
        stage.is(&task, "cancelled");
        if sent.status >= 400 {
            assert_eq!(sent.code(), "no_worker");
            continue;
        }
        hears_after_a_retry(&stage, &task, &name, &words);
    }
    let task = retriable(&stage, "ended");
    stage.ok(&format!("/tasks/{task}/cancel"), &json!({ "now": true }));
    stage.is(&task, "cancelled");
    assert_eq!(stage.refused(&format!("/tasks/{task}/mail"), &json!({ "text": "too late" })), "no_worker");
}

/// FND-N7: a retry takes up what nobody heard before the task was completed.
#[test]
fn fnd_n7_a_retry_takes_up_dead_letters() {
    let stage = Stage::new();
    let task = stage.task("work outside", &json!({ "kind": "external" }));
    stage.is(&task, "running");
    stage.ok(&format!("/tasks/{task}/mail"), &json!({ "text": "never heard" }));
    stage.ok(&format!("/tasks/{task}/complete"), &json!({ "summary": "by hand" }));
    stage.is(&task, "completed");
    until("the dead letter", || mail_to(&stage, &task)["state"] == "dead");
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    let second = id(&stage.is(&task, "running"), "session");
    until("the next run to have it", || {
        let mail = mail_to(&stage, &task);
        mail["state"] == "given" && mail["session"] == second.as_str()
    });
}
