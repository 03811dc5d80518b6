//! What is asked for over HTTP and cannot be: each is refused with a code of its own, and nothing has changed.

use serde_json::{Value, json};

use super::kit::{Stage, git, id};
use crate::support::Answer;

impl Stage {
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.daemon.request(method, &format!("/api/v1{path}"), headers, Some(&body.to_string()))
    }

    /// Status and code of a refusal, which says what happened and what to do.
    fn no(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let answer = self.send(method, path, &[], body);
        assert!(answer.status >= 400, "{method} {path} {body}: {}", answer.text());
        let problem = answer.json();
        for field in ["title", "advice"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{path}: {problem}");
        }
        (answer.status, answer.code())
    }

    /// A task that nobody works at yet.
    fn idle(&self, more: &Value) -> String {
        let mut new = json!({ "deploy": false });
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        self.task("/say done", &new)
    }
}

fn no(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Names nobody has, on every route that takes one (S4-11: distinct from a task nobody works at).
#[test]
fn what_does_not_exist_is_not_found() {
    let stage = Stage::new();
    let task = "task_00000000000000000000000001";
    let about_tasks = [
        ("deploy", json!({})),
        ("pause", json!({})),
        ("resume", json!({})),
        ("cancel", json!({})),
        ("retry", json!({})),
        ("complete", json!({ "summary": "x" })),
        ("fail", json!({})),
        ("adopt", json!({})),
        ("merge", json!({})),
        ("discard", json!({})),
        ("token", json!({})),
        ("mail", json!({ "text": "x" })),
    ];
    for name in [task, "worker_00000000000000000000000001", "orchestrator:%2Fnothing", "nothing"] {
        for (verb, body) in &about_tasks {
            let answer = stage.no("POST", &format!("/tasks/{name}/{verb}"), body);
            assert_eq!(answer, no(404, "task_not_found"), "{verb}");
        }
        for rest in ["", "/log", "/diff"] {
            let answer = stage.no("GET", &format!("/tasks/{name}{rest}"), &json!({}));
            assert_eq!(answer, no(404, "task_not_found"), "{rest}");
        }
        assert_eq!(stage.no("GET", &format!("/ids/{name}"), &json!({})), no(404, "id_unknown"));
        assert_eq!(stage.no("POST", &format!("/resume/{name}"), &json!({})), no(404, "id_unknown"));
    }
    assert_eq!(stage.no("PATCH", &format!("/tasks/{task}"), &json!({})), no(404, "task_not_found"));
    for plan in ["plan_00000000000000000000000001", "nothing"] {
        for verb in ["start", "pause", "deploy", "archive"] {
            let answer = stage.no("POST", &format!("/plans/{plan}/{verb}"), &json!({}));
            assert_eq!(answer, no(404, "plan_not_found"), "{verb}");
        }
        assert_eq!(stage.no("GET", &format!("/plans/{plan}"), &json!({})), no(404, "plan_not_found"));
        assert_eq!(
            stage.no("GET", &format!("/plans/{plan}/markdown"), &json!({})),
            no(404, "plan_not_found")
        );
        assert_eq!(stage.no("POST", "/halt", &json!({ "what": plan })), no(404, "plan_not_found"));
        let new = json!({ "title": "x", "plan": plan });
        assert_eq!(stage.no("POST", "/tasks", &new), no(404, "plan_not_found"));
    }
    for mail in ["mail_00000000000000000000000001", "nothing"] {
        assert_eq!(stage.no("GET", &format!("/mail/{mail}"), &json!({})), no(404, "mail_not_found"));
        for verb in ["ack", "again"] {
            let answer = stage.no("POST", &format!("/mail/{mail}/{verb}"), &json!({}));
            assert_eq!(answer, no(404, "mail_not_found"), "{verb}");
        }
    }
    assert_eq!(stage.no("GET", "/mail?box=nothing", &json!({})), no(404, "box_unknown"));
    let parent = json!({ "parent": "nothing" });
    let one = stage.idle(&json!({}));
    assert_eq!(stage.no("POST", &format!("/tasks/{one}/adopt"), &parent), no(404, "box_unknown"));
}

/// Tasks that cannot be as they are asked for: refused before anything is made.
#[test]
fn a_task_that_makes_no_sense_is_not_made() {
    let stage = Stage::new();
    let long = "x".repeat(100_001);
    let many: Vec<String> = (0..201).map(|n| format!("file{n}")).collect();
    for (new, status, code) in [
        (json!({}), 422, "field_empty"),
        (json!({ "title": "  " }), 422, "field_empty"),
        (json!({ "title": "two\nlines" }), 422, "field_bad_text"),
        (json!({ "title": long }), 422, "field_too_long"),
        (json!({ "title": "x", "prompt": "" }), 422, "field_empty"),
        (json!({ "title": "x", "prompt": long }), 422, "field_too_long"),
        (json!({ "title": "x", "files": many }), 422, "field_too_many"),
        (json!({ "title": "x", "agent": "nobody" }), 422, "agent_unknown"),
        (json!({ "title": "x", "kind": "chat" }), 422, "chat_needs_session"),
        (json!({ "title": "x", "session": "nothing" }), 404, "session_not_found"),
        (json!({ "title": "x", "parent": "nothing" }), 404, "task_not_found"),
        (json!({ "title": "x", "depends_on": ["nothing"] }), 404, "task_not_found"),
        (json!({ "title": "x", "key": "me", "depends_on": ["me"] }), 422, "dependency_cycle"),
        (json!({ "title": "x", "workspace": "/nonexistent/folder" }), 422, "workspace_missing"),
        (json!({ "title": "x", "colour": "red" }), 422, "body_invalid"),
        (json!({ "title": "x", "kind": "human" }), 422, "body_invalid"),
        (json!(["x"]), 422, "body_invalid"),
    ] {
        assert_eq!(stage.no("POST", "/tasks", &new), no(status, code), "{new}");
    }
    let answer = stage.daemon.request("POST", "/api/v1/tasks", &[], Some("{\"title\":"));
    assert_eq!((answer.status, answer.code().as_str()), (400, "json_malformed"));
    assert_eq!(stage.get("/tasks")["tasks"], json!([]));
    for (query, code) in [
        ("/tasks?cursor=x", "query_invalid"),
        ("/tasks?state=odd", "query_invalid"),
        ("/tasks?limit=-1", "query_invalid"),
        ("/mail?cursor=x", "cursor_bad"),
        ("/mail?cursor=task_x.y", "cursor_bad"),
    ] {
        assert_eq!(stage.no("GET", query, &json!({})), no(400, code), "{query}");
    }
    let pages = stage.get("/tasks?limit=0");
    assert_eq!((&pages["tasks"], &pages["next"]), (&json!([]), &Value::Null));
}

/// Dependencies in a circle, over plans, edits and itself.
#[test]
fn tasks_do_not_wait_for_each_other_in_a_circle() {
    let stage = Stage::new();
    let one = stage.idle(&json!({}));
    let two = stage.idle(&json!({ "depends_on": [one] }));
    let three = stage.idle(&json!({ "depends_on": [two] }));
    let path = format!("/tasks/{one}");
    for on in [&one, &two, &three] {
        let edit = json!({ "depends_on": [on] });
        assert_eq!(stage.no("PATCH", &path, &edit), no(422, "dependency_cycle"), "{on}");
    }
    assert_eq!(stage.show(&one)["depends_on"], Value::Null);
    let tasks = json!([
        { "title": "a", "key": "a", "depends_on": ["b"] }, { "title": "b", "key": "b", "depends_on": ["a"] },
    ]);
    let plan = json!({ "title": "p", "workspace": stage.repo(), "tasks": tasks });
    assert_eq!(stage.no("POST", "/plans", &plan), no(422, "dependency_cycle"));
    assert_eq!(stage.get("/plans")["plans"], json!([]), "nothing is left of it");
    assert_eq!(
        stage.no("POST", &format!("/tasks/{one}/adopt"), &json!({ "parent": one })),
        no(409, "adopt_cycle")
    );
}

/// What a task's state does not allow, and what holds one back.
#[test]
fn the_state_of_a_task_decides_what_may_be_asked_of_it() {
    let stage = Stage::new();
    let first = stage.idle(&json!({}));
    let second = stage.idle(&json!({ "depends_on": [first] }));
    let deploy = |task: &str, body: Value| stage.no("POST", &format!("/tasks/{task}/deploy"), &body);
    assert_eq!(deploy(&second, json!({})), no(409, "task_blocked"));
    assert_eq!(stage.no("POST", &format!("/tasks/{first}/resume"), &json!({})), no(409, "task_state"));
    assert_eq!(stage.no("POST", &format!("/tasks/{first}/retry"), &json!({})), no(409, "task_state"));
    assert_eq!(stage.no("GET", &format!("/tasks/{first}/diff"), &json!({})), no(409, "no_branch"));
    assert_eq!(stage.no("POST", &format!("/tasks/{first}/merge"), &json!({})), no(409, "no_branch"));
    assert_eq!(stage.no("POST", &format!("/tasks/{first}/token"), &json!({})), no(409, "task_not_external"));
    // Whoever knows better has it done all the same.
    stage.ok(&format!("/tasks/{second}/deploy"), &json!({ "force": true }));
    stage.is(&second, "completed");
    assert_eq!(deploy(&second, json!({})), no(409, "task_ended"));
    assert_eq!(deploy(&second, json!({ "force": true })), no(409, "task_ended"));
    for (verb, body) in [
        ("pause", json!({})),
        ("resume", json!({})),
        ("complete", json!({ "summary": "x" })),
        ("fail", json!({})),
    ] {
        let answer = stage.no("POST", &format!("/tasks/{second}/{verb}"), &body);
        assert_eq!(answer, no(409, "task_ended"), "{verb}");
    }
    let mail = json!({ "text": "hello" });
    assert_eq!(stage.no("POST", &format!("/tasks/{second}/mail"), &mail), no(409, "no_worker"), "S4-11");

    let wait = format!("/wait-file {}", stage.sign("go").display());
    let busy = stage.task(&wait, &json!({ "files": ["src"] }));
    stage.is(&busy, "running");
    assert_eq!(deploy(&busy, json!({})), no(409, "task_at_work"));
    assert_eq!(
        stage.no("PATCH", &format!("/tasks/{busy}"), &json!({ "title": "y" })),
        no(409, "task_at_work")
    );
    assert_eq!(stage.no("POST", &format!("/tasks/{busy}/merge"), &json!({})), no(409, "task_at_work"));
    assert_eq!(stage.no("POST", &format!("/tasks/{busy}/discard"), &json!({})), no(409, "task_at_work"));
    let crowded = stage.idle(&json!({ "files": ["src/lib.rs"] }));
    assert_eq!(deploy(&crowded, json!({})), no(409, "task_held"));
    assert!(id(&stage.show(&crowded), "held").contains(&busy));

    stage.ok("/halt", &json!({ "reason": "fire", "now": true }));
    assert_eq!(stage.is(&busy, "cancelled")["reason"], "fire");
    stage.is(&first, "cancelled");
    stage.ok(&format!("/tasks/{first}/retry"), &json!({}));
    assert_eq!(deploy(&first, json!({})), no(409, "halted"));
    assert_eq!(deploy(&first, json!({ "force": true })), no(409, "halted"));
}

/// Git says no: the task fails with that reason, and is not tried for ever.
#[test]
fn a_worktree_that_cannot_be_had_fails_the_task_with_the_reason() {
    let stage = Stage::new();
    let fails = |task: &str, words: &str| {
        let failed = stage.is(task, "failed");
        assert!(id(&failed, "reason").contains(words), "{failed}");
    };
    let task = stage.idle(&json!({}));
    git(&stage.repo(), &["branch", &format!("lanyard/{task}")]);
    stage.ok(&format!("/tasks/{task}/deploy"), &json!({}));
    fails(&task, "exists already and was not made for this task");
    assert_eq!(stage.worktrees(), 1);
    assert!(stage.branch(&format!("lanyard/{task}")), "somebody else's branch stays");

    fails(&stage.task("/say x", &json!({ "base": "nowhere" })), "`nowhere` is no branch");
    let plain = stage.sign("plain");
    std::fs::create_dir(&plain).unwrap();
    let alone = json!({ "workspace": plain, "isolation": "worktree" });
    fails(&stage.task("/say x", &alone), "is not in the worktree of a git repository");
    // Where it is not insisted on, the folder itself will do.
    let task = stage.task("/say x", &json!({ "workspace": plain }));
    assert_eq!(stage.is(&task, "completed")["tree"], Value::Null);
    assert_eq!(stage.no("POST", &format!("/tasks/{task}/merge"), &json!({})), no(409, "no_branch"));
}

/// A merge that cannot be made has changed nothing.
#[test]
fn a_merge_that_cannot_be_made_changes_nothing() {
    let stage = Stage::new();
    let task = stage.task("/write first.txt theirs", &json!({}));
    stage.is(&task, "completed");
    let merge = format!("/tasks/{task}/merge");
    let repo = stage.repo();
    let stands = || (git(&repo, &["rev-parse", "HEAD"]), git(&repo, &["status", "--porcelain"]));

    std::fs::write(repo.join("first.txt"), "mine\n").unwrap();
    let before = stands();
    assert_eq!(stage.no("POST", &merge, &json!({})), no(409, "dirty_workspace"));
    assert_eq!(
        (stands(), std::fs::read_to_string(repo.join("first.txt")).unwrap()),
        (before, "mine\n".to_owned())
    );

    git(&repo, &["commit", "-qam", "mine"]);
    let before = stands();
    assert_eq!(stage.no("POST", &merge, &json!({})), no(409, "merge_conflict"));
    assert_eq!(
        (stands(), std::fs::read_to_string(repo.join("first.txt")).unwrap()),
        (before, "mine\n".to_owned())
    );
    assert_eq!(stage.show(&task)["merged"], Value::Null);

    let elsewhere = json!({ "into": stage.sign("nowhere") });
    let (status, code) = stage.no("POST", &merge, &elsewhere);
    assert_eq!((status, code.as_str()), (409, "folder_gone"));
}

/// A repeated request is the same request; a different one under the same key is refused.
#[test]
fn a_request_that_is_sent_again_is_done_once() {
    let stage = Stage::new();
    let new = json!({ "title": "once", "workspace": stage.repo(), "kind": "external", "deploy": true });
    let key = [("Idempotency-Key", "k-1")];
    let made: Vec<String> = std::thread::scope(|scope| {
        let asks: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| id(&stage.send("POST", "/tasks", &key, &new).json(), "id")))
            .collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    assert!(made.iter().all(|task| *task == made[0]), "{made:?}");
    assert_eq!(stage.get("/tasks")["tasks"].as_array().unwrap().len(), 1);
    let other = json!({ "title": "another", "workspace": stage.repo() });
    let answer = stage.send("POST", "/tasks", &key, &other);
    assert_eq!((answer.status, answer.code().as_str()), (409, "idempotency_conflict"));

    let path = format!("/tasks/{}/mail", made[0]);
    let key = [("Idempotency-Key", "k-2")];
    let first = stage.send("POST", &path, &key, &json!({ "text": "hello" })).json();
    let again = stage.send("POST", &path, &key, &json!({ "text": "hello" })).json();
    assert_eq!(first["id"], again["id"]);
    let answer = stage.send("POST", &path, &key, &json!({ "text": "something else" }));
    assert_eq!((answer.status, answer.code().as_str()), (409, "idempotency_conflict"));
    assert_eq!(stage.all_mail().len(), 1);
    assert_eq!(stage.no("POST", &path, &json!({ "text": " " })), no(422, "field_empty"));
    assert_eq!(stage.no("POST", &path, &json!({ "text": "x", "to": "y" })), no(422, "body_invalid"));
    assert_eq!(
        stage.no("POST", &format!("/mail/{}/again", id(&first, "id")), &json!({})),
        no(409, "mail_on_its_way")
    );
    let long = stage.ok(&path, &json!({ "text": "y".repeat(20_000) }));
    assert!(id(&long, "text").contains("cut here"), "it says that it was cut");
}

/// A plan that is asked for again under the same key is the same plan; another one needs another key.
#[test]
fn a_plan_that_is_asked_for_again_is_made_once() {
    let stage = Stage::new();
    let body =
        json!({ "title": "once", "workspace": stage.repo(), "tasks": [{ "title": "one", "key": "a" }] });
    let text = json!({ "markdown": "# Twice\n\n- [ ] one\n- [x] two\n", "workspace": stage.repo() });
    for (path, body) in [("/plans", body), ("/plans/import", text)] {
        let headers = [("idempotency-key", path)];
        let path = format!("/api/v1{path}");
        let ask = |body: &Value| stage.daemon.request("POST", &path, &headers, Some(&body.to_string()));
        let (first, again) = (ask(&body).json(), ask(&body).json());
        assert_eq!(
            (&first["id"], first["all"].as_array().unwrap().len()),
            (&again["id"], again["all"].as_array().unwrap().len())
        );
        let mut other = body.clone();
        other["name"] = json!("other");
        assert_eq!(ask(&other).code(), "idempotency_conflict");
    }
    assert_eq!(stage.get("/plans")["plans"].as_array().unwrap().len(), 2);
}
