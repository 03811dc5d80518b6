//! The life of a task: worked at in a worktree of its own, ended with a reason, nothing lost.

use serde_json::json;

use super::kit::{Stage, git, id, until};

/// S4-09, S4-B10, S4-13: a background task works in its own worktree; what it did not commit is committed for it.
#[test]
fn a_background_task_leaves_its_work_on_a_branch() {
    let stage = Stage::new();
    let task = stage.task("/write made.txt hello\n/say it is made", &json!({}));
    let done = stage.is(&task, "completed");
    assert_eq!(done["result"]["summary"], "it is made");
    assert_eq!(done["result"]["by_turn_end"], true);
    assert_eq!((&done["worker_source"], &done["kind"]), (&json!("generated"), &json!("background")));
    let branch = id(&done["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:made.txt")]), "hello");
    assert!(!stage.repo().join("made.txt").exists(), "the workspace is untouched");
    assert_eq!(stage.worktrees(), 1, "the worktree is gone, the branch stays");
    assert_eq!(done["captured"]["files"], json!(["made.txt"]));

    let diff = stage.get(&format!("/tasks/{task}/diff"));
    assert_eq!(diff["files"][0]["path"], "made.txt");
    assert!(diff["patch"].as_str().unwrap().contains("+hello"), "{diff}");
    let merged = stage.ok(&format!("/tasks/{task}/merge"), &json!({}));
    assert_eq!(merged["into"], "main");
    assert!(stage.repo().join("made.txt").exists());
    assert_eq!(stage.show(&task)["merged"], merged["commit"]);
    let dropped = stage.ok(&format!("/tasks/{task}/discard"), &json!({}));
    assert!(!stage.branch(&branch));
    assert!(stage.branch(dropped["reference"].as_str().unwrap()), "git keeps it under a ref");
    assert_eq!(stage.refused(&format!("/tasks/{task}/merge"), &json!({})), "no_branch");
}

/// S4-14: a redeployed task keeps its worker and its branch; each run has a number that only grows.
#[test]
fn a_retried_task_keeps_its_worker_and_goes_on_with_its_branch() {
    let stage = Stage::new();
    let task = stage.task("/write one.txt 1\n/stop refusal", &json!({}));
    let failed = stage.is(&task, "failed");
    stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
    let again = stage.is(&task, "failed");
    until("the second attempt", || stage.show(&task)["attempts"] == 2);
    let again = if again["attempts"] == 2 { again } else { stage.is(&task, "failed") };
    assert_eq!(again["worker"], failed["worker"]);
    assert_eq!(again["worker_source"], "reused");
    assert_ne!(again["session"], failed["session"]);
    assert!(again["run"].as_u64() > failed["run"].as_u64());
    assert_eq!(again["tree"]["branch"], failed["tree"]["branch"]);
    let worker = id(&again, "worker");
    assert_eq!(stage.show(&worker)["id"], task.as_str(), "found by its worker");
    assert_eq!(stage.show(&id(&failed, "session"))["id"], task.as_str(), "found by an old session");
    assert_eq!(
        stage.show(&format!("orchestrator:%2F{task}"))["id"],
        task.as_str(),
        "S4-06: found by its uri"
    );
}

/// A task that is cancelled while it works is stopped, and what it did is kept.
#[test]
fn a_cancelled_task_is_stopped_and_its_work_is_kept() {
    let stage = Stage::new();
    let sign = stage.sign("begun");
    let prompt =
        format!("/write half.txt half\n/touch {}\n/wait-file {}", sign.display(), stage.sign("go").display());
    let task = stage.task(&prompt, &json!({}));
    stage.await_sign("begun");
    stage.ok(&format!("/tasks/{task}/cancel"), &json!({ "reason": "not wanted", "now": true }));
    let ended = stage.is(&task, "cancelled");
    assert_eq!(ended["reason"], "not wanted");
    let branch = id(&ended["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:half.txt")]), "half");
    assert_eq!(stage.refused(&format!("/tasks/{task}/deploy"), &json!({})), "task_ended");
}

/// Paused and gone on with, in the same session by the same worker.
#[test]
fn a_paused_task_goes_on_in_its_session() {
    let stage = Stage::new();
    let sign = stage.sign("begun");
    let prompt = format!("/touch {}\n/wait-file {}", sign.display(), stage.sign("go").display());
    let task = stage.task(&prompt, &json!({}));
    stage.await_sign("begun");
    let paused = stage.ok(&format!("/tasks/{task}/pause"), &json!({}));
    assert_eq!(paused["state"], "paused");
    stage.rests(&id(&paused, "session"));
    stage.ok(&format!("/tasks/{task}/resume"), &json!({}));
    let done = stage.is(&task, "completed");
    assert_eq!(done["session"], paused["session"]);
    assert_eq!(done["result"]["summary"], "noted", "it was told to go on");
}

/// S4-08, S4-T3: a chat session's worker has the session's own id, also after a restart.
#[test]
fn a_chat_is_its_own_worker() {
    let mut stage = Stage::new();
    let chat = stage.chat();
    let task = stage.task("/say I work at it", &json!({ "session": chat }));
    until("the task to run", || stage.show(&task)["state"] == "running");
    let shown = stage.show(&task);
    assert_eq!((&shown["kind"], &shown["worker_source"]), (&json!("chat"), &json!("session")));
    assert_eq!(id(&shown, "worker").split_once('_').unwrap().1, chat.split_once('_').unwrap().1);
    assert_eq!(shown["session"], chat.as_str());
    stage.up();
    assert_eq!(stage.show(&task)["worker"], shown["worker"]);
    let chain = stage.get(&format!("/ids/{chat}"));
    assert_eq!((&chain["kind"], &chain["task"]["id"]), (&json!("session"), &json!(task)));
    stage.ok(&format!("/tasks/{task}/complete"), &json!({ "summary": "done" }));
    stage.is(&task, "completed");
    assert_ne!(stage.get(&format!("/sessions/{chat}"))["state"], "completed", "the chat goes on");
}

/// S4-10, S4-11, S4-12, S4-T1: a task's address leads to the session it is worked at in, for every route and tool call;
/// that there is no such task and that nobody works at it are told apart.
#[test]
fn a_tasks_address_is_that_of_its_session() {
    let stage = Stage::new();
    let prompt =
        format!("/touch {}\n/wait-file {}", stage.sign("begun").display(), stage.sign("go").display());
    let task = stage.task(&prompt, &json!({}));
    stage.await_sign("begun");
    let shown = stage.show(&task);
    let (session, worker) = (id(&shown, "session"), id(&shown, "worker"));
    for name in [&task, &worker, &format!("orchestrator:%2F{task}")] {
        assert_eq!(stage.get(&format!("/sessions/{name}"))["id"], session.as_str(), "{name}");
    }
    let token = stage.post("/tokens", &json!({ "role": "agent", "name": "a", "session": session })).json();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "memory_agent", "arguments": { "action": "init", "agent_type": "Executor" } } });
    let headers = [("accept", "application/json, text/event-stream")];
    let path = format!("/mcp/orchestrator:%2F{task}/lanyard");
    let agent = crate::support::Caller { token: id(&token, "token"), ..stage.daemon.caller() };
    let answer = agent.try_request("POST", &path, &headers, Some(&call.to_string())).unwrap();
    assert!(answer.status == 200 && answer.text().contains(&session), "{}", answer.text());
    assert!(!stage.daemon.stderr().contains("unknown"), "{}", stage.daemon.stderr());

    let nobody = lanyard_core::TaskId::from_u128(7);
    let look = |name: &str| stage.daemon.request("GET", &format!("/api/v1/sessions/{name}"), &[], None);
    assert_eq!(look(&nobody.to_string()).code(), "task_not_found");
    let pending = stage.task("/say later", &json!({ "deploy": false }));
    let refused = look(&pending);
    assert_eq!((refused.status, refused.code()), (409, "no_worker".to_owned()));
    assert!(refused.text().contains(&pending), "{}", refused.text());
    stage.touch("go");
    stage.is(&task, "completed");
    assert_eq!(look(&task).code(), "no_worker");
}

/// S4-B09: a task goes on after whoever made it has ended and its worktree is gone. It begins where that one's branch is.
#[test]
fn a_task_begins_at_the_branch_of_a_maker_that_is_gone() {
    let stage = Stage::new();
    let held = stage.task("/say later", &json!({ "deploy": false, "title": "held" }));
    let child = json!({
        "action": "spawn", "prompt": "/look base.txt\n/say seen", "title": "the child", "key": "c",
        "depends_on": [held],
    });
    let prompt = format!(
        "/edit base.txt of the parent\n/mcp lanyard tasks {child}\n/touch {}\n/wait-file {}",
        stage.sign("spawned").display(),
        stage.sign("never").display()
    );
    let parent = stage.task(&prompt, &json!({ "may_spawn": true }));
    stage.await_sign("spawned");
    stage.ok(&format!("/tasks/{parent}/cancel"), &json!({ "now": true }));
    stage.is(&parent, "cancelled");
    assert_eq!(stage.worktrees(), 1);
    stage.ok(&format!("/tasks/{held}/complete"), &json!({ "summary": "go" }));
    let listed = stage.get("/tasks?limit=10");
    let child = listed["tasks"].as_array().unwrap().iter().find(|task| task["title"] == "the child").unwrap();
    let done = stage.is(&id(child, "id"), "completed");
    assert_eq!(done["result"]["summary"], "seen");
    let branch = id(&done["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:base.txt")]), "of the parent");
    assert_eq!(stage.worktrees(), 1);
}

/// S4-B10: what cannot be committed for it is not thrown away, by its end or by whoever drops its branch.
#[test]
fn a_worktree_with_work_in_no_commit_stays() {
    let stage = Stage::new();
    let above = stage.task("x", &json!({ "title": "above", "kind": "external" }));
    stage.is(&above, "running");
    let prompt = format!("/write outer.txt x\n/wait-file {}", stage.sign("go").display());
    let task = stage.task(&prompt, &json!({ "parent": above }));
    until("its worktree", || stage.show(&task)["tree"]["path"].is_string());
    let path = id(&stage.show(&task)["tree"], "path");
    let inner = std::path::Path::new(&path).join("inner");
    std::fs::create_dir(&inner).unwrap();
    // A repository without a commit is nothing git can add.
    git(&inner, &["init", "-q"]);
    std::fs::write(inner.join("work.txt"), "not lost").unwrap();
    stage.touch("go");
    let done = stage.is(&task, "completed");
    assert_eq!(done["captured"]["files"], json!(["outer.txt"]));
    assert!(id(&done, "capture_failed").contains("work that is in no commit"), "{done}");
    let mail = stage.get(&format!("/mail?box={above}"))["mail"][0].clone();
    assert!(id(&mail, "text").contains("What it had not committed is still in its worktree"), "{mail}");
    let discard = format!("/tasks/{task}/discard");
    assert_eq!(stage.refused(&discard, &json!({})), "dirty_worktree");
    assert_eq!(std::fs::read_to_string(inner.join("work.txt")).unwrap(), "not lost");
    assert!(stage.branch(&format!("lanyard/{task}")), "nothing has changed");
    std::fs::remove_dir_all(&inner).unwrap();
    stage.ok(&discard, &json!({}));
    assert!(!std::path::Path::new(&path).exists());
    assert_eq!((stage.branch(&format!("lanyard/{task}")), stage.worktrees()), (false, 1));
}

/// A request that is repeated finds the task it made, until that has been over for longer than outcomes are kept.
#[test]
fn the_key_of_a_request_is_forgotten_some_time_after_its_task() {
    let mut stage = Stage::with("[daemon]\nkeep_outcomes_ms = 1\n");
    let new = json!({ "title": "once", "kind": "external", "deploy": true }).to_string();
    let add = |stage: &Stage| {
        let headers = [("Idempotency-Key", "add-1")];
        let answer = stage.daemon.request("POST", "/api/v1/tasks", &headers, Some(&new));
        assert_eq!(answer.status, 201, "{}", answer.text());
        id(&answer.json(), "id")
    };
    let task = add(&stage);
    stage.is(&task, "running");
    stage.up();
    assert_eq!(add(&stage), task, "it is not over");
    stage.ok(&format!("/tasks/{task}/complete"), &json!({ "summary": "done" }));
    stage.is(&task, "completed");
    // What can be forgotten is looked for at the start, and every now and then.
    stage.up();
    until("the key to be forgotten", || add(&stage) != task);
    assert_eq!(stage.show(&task)["state"], "completed", "the task is not");
}
