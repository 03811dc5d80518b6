//! The tool `tasks` in the hands of a parent: spawn, await, message, pull, cancel (S4-B11, S4-16).

use serde_json::{Value, json};

use super::kit::{Stage, git, id, until};
use super::talk::{all_returned, below, refused, step, tasks};

/// S4-B11, S4-B03: a spawn that waits answers with the result; what went out in the answer does not come beside it.
#[test]
fn a_spawn_that_waits_answers_with_the_result_and_it_is_not_told_again() {
    let stage = Stage::new();
    let chat = stage.chat();
    let spawn = json!({ "action": "spawn", "prompt": "/say forty two", "wait_ms": 60_000 });
    let answer = tasks(&stage, &chat, &spawn);
    assert_eq!(answer["open"], json!([]));
    assert_eq!(answer["tasks"][0]["state"], "completed");
    assert_eq!(answer["tasks"][0]["result"]["summary"], "forty two");
    assert_eq!(answer["mail"][0]["kind"], "ended");
    assert!(answer["note"].as_str().unwrap().contains("not from the user"), "{answer}");
    until("the mail to be settled", || stage.all_mail()[0]["state"] == "acknowledged");
    let mail = stage.all_mail();
    assert_eq!((mail.len(), &mail[0]["times"]), (1, &json!(1)));
    assert!(!stage.told().contains("SUBAGENT REPORT"));
    assert_eq!(stage.get(&format!("/sessions/{chat}"))["turns"], 1, "it was not woken for what it has heard");
}

/// Several at once, that wait for each other by their keys; then one await for all of them.
#[test]
fn many_are_spawned_and_awaited_together() {
    let stage = Stage::new();
    let chat = stage.chat();
    let wait = format!("/wait-file {}", stage.sign("go").display());
    let spawn = json!({ "action": "spawn_many", "tasks": [
        { "title": "first", "key": "one", "prompt": format!("{wait}\n/say result of one") },
        { "title": "second", "key": "two", "prompt": "/say result of two", "depends_on": ["one"] },
        { "title": "third", "key": "three", "prompt": "/say result of three" },
    ] });
    let answer = tasks(&stage, &chat, &spawn);
    let ids: Vec<String> =
        answer["tasks"].as_array().unwrap().iter().map(|task| id(task, "task_id")).collect();
    assert_eq!(ids.len(), 3);
    stage.is(&ids[2], "completed");
    let second = stage.show(&ids[1]);
    assert_eq!(second["state"], "pending");
    assert!(second["held"].as_str().unwrap().contains(&ids[0]), "{second}");
    // Made again under the same keys, they are the same tasks.
    let again = tasks(&stage, &chat, &spawn);
    assert_eq!(again["tasks"][0]["task_id"], ids[0].as_str());
    stage.touch("go");
    let keys = ["one", "two", "three"];
    // Mail of the third that comes during an await ends it early: the words go out with its answer.
    let all = loop {
        let all = tasks(&stage, &chat, &json!({ "action": "await", "task_ids": keys, "wait_ms": 60_000 }));
        if all["open"] == json!([]) {
            break all;
        }
    };
    let words: Vec<&Value> =
        all["tasks"].as_array().unwrap().iter().map(|task| &task["result"]["summary"]).collect();
    assert_eq!(words, ["result of one", "result of two", "result of three"]);
    let mine = below(&stage, &chat);
    assert_eq!(mine.len(), 3);
}

/// An await that ends before the task names what is open.
#[test]
fn an_await_that_is_over_names_what_is_open() {
    let stage = Stage::new();
    let chat = stage.chat();
    let wait = format!("/wait-file {}\n/say late", stage.sign("go").display());
    let spawned = tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": wait, "wait_ms": 20 }));
    let child = id(&spawned["tasks"][0], "task_id");
    assert_eq!(spawned["open"], json!([child]));
    assert!(spawned["next"].as_str().unwrap().contains("await"), "{spawned}");
    stage.touch("go");
    stage.is(&child, "completed");
    until("the parent to be told of it beside", || stage.told().contains("SUBAGENT REPORT"));
}

/// S4-16: down to a child and up to the parent, and to nobody else.
#[test]
fn words_go_to_the_parent_and_to_children_only() {
    let stage = Stage::new();
    let (chat, other) = (stage.chat(), stage.chat());
    let child = format!(
        "{}\n/wait-file {}\n{}\n{}",
        step(&json!({ "action": "message", "to": "parent", "text": "psst from below" })),
        stage.sign("go").display(),
        step(&json!({ "action": "mailbox" })),
        step(&json!({ "action": "status", "task_ids": ["task_00000000000000000000000001"] })),
    );
    let spawned = tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": child }));
    let child = id(&spawned["tasks"][0], "task_id");
    let foreign = tasks(&stage, &other, &json!({ "action": "spawn", "prompt": "/hang" }));
    let foreign = id(&foreign["tasks"][0], "task_id");
    until("the parent to be told", || stage.told().contains("psst from below"));
    for arguments in [
        json!({ "action": "message", "to": foreign, "text": "hello" }),
        json!({ "action": "status", "task_ids": [foreign] }),
        json!({ "action": "await", "task_ids": [foreign], "wait_ms": 1 }),
        json!({ "action": "cancel", "task_ids": [foreign] }),
        json!({ "action": "pull", "task_ids": [foreign] }),
    ] {
        assert_eq!(refused(&stage, &chat, &arguments), "not_your_task", "{arguments}");
    }
    let up = json!({ "action": "message", "to": "parent", "text": "hello" });
    assert_eq!(refused(&stage, &chat, &up), "no_parent");
    assert_eq!(stage.show(&foreign)["state"], "running");

    let sent = tasks(&stage, &chat, &json!({ "action": "message", "to": child, "text": "psst from above" }));
    assert_eq!(sent["to"], child.as_str());
    stage.touch("go");
    stage.is(&child, "completed");
    assert!(stage.told().contains("psst from above"));
    let session = id(&stage.show(&child), "session");
    let heard = all_returned(&stage, &session);
    assert!(
        heard.iter().any(|call| call["content"].as_str().unwrap().contains("psst from above")),
        "{heard:?}"
    );
    let ended = json!({ "action": "message", "to": child, "text": "hello" });
    assert_eq!(refused(&stage, &chat, &ended), "no_worker", "S4-11");
    assert_eq!(
        refused(&stage, &chat, &json!({ "action": "message", "to": "nobody", "text": "x" })),
        "task_not_found"
    );
}

/// What a worker says of its task reaches its parent in order, in its words.
#[test]
fn a_worker_reports_how_its_task_goes() {
    let stage = Stage::new();
    let chat = stage.chat();
    let report = |kind: &str, text: &str| step(&json!({ "action": "report", "kind": kind, "text": text }));
    let done =
        json!({ "action": "report", "kind": "completed", "text": "all green", "evidence": "12 passed" });
    let prompt = [
        report("progress", "half way"),
        report("question", "blue or red?"),
        report("error", "the net is down"),
        step(&done),
        "/say these words are not the result".to_owned(),
    ];
    let spawn = json!({ "action": "spawn", "prompt": prompt.join("\n"), "title": "reporter" });
    let child = id(&tasks(&stage, &chat, &spawn)["tasks"][0], "task_id");
    let ended = stage.is(&child, "completed");
    assert_eq!(ended["result"], json!({ "summary": "all green", "evidence": "12 passed" }));
    until("all of it to be acknowledged", || {
        let mail = stage.all_mail();
        mail.len() == 4 && mail.iter().all(|mail| mail["state"] == "acknowledged")
    });
    let mut mail = stage.all_mail();
    mail.sort_by_key(|mail| mail["seq"].as_u64());
    let kinds: Vec<&Value> = mail.iter().map(|mail| &mail["kind"]).collect();
    assert_eq!(kinds, ["progress", "question", "error", "ended"]);
    let told = stage.told();
    for words in ["half way", "blue or red?", "the net is down", "Evidence: 12 passed"] {
        assert!(told.contains(words), "{words}");
    }

    let spawn = json!({ "action": "spawn", "prompt": report("failed", "there is no such thing") });
    let child = id(&tasks(&stage, &chat, &spawn)["tasks"][0], "task_id");
    let ended = stage.is(&child, "failed");
    assert_eq!(ended["reason"], "there is no such thing");
    // Who works at no task has nothing to report of.
    let nothing = json!({ "action": "report", "kind": "progress", "text": "hm" });
    assert_eq!(refused(&stage, &chat, &nothing), "no_task");
}

/// `memory_agent complete` in a task's session is that task's result.
#[test]
fn completing_the_session_reports_the_task() {
    let stage = Stage::new();
    let prompt =
        "/mcp lanyard memory_agent {\"action\":\"complete\",\"summary\":\"did it\",\"evidence\":\"seen\"}";
    let task = stage.task(prompt, &json!({}));
    let done = stage.is(&task, "completed");
    assert_eq!(done["result"], json!({ "summary": "did it", "evidence": "seen" }));
}

/// A child's work comes into the worktree of the task above it, and the workspace stays as it is.
#[test]
fn a_parent_pulls_its_childs_work_into_its_worktree() {
    let stage = Stage::new();
    let worker =
        json!({ "action": "spawn", "prompt": "/write part.txt a part\n/say made", "title": "maker" });
    let holder = format!("/wait-file {}", stage.sign("over").display());
    let holder = json!({ "action": "spawn", "prompt": holder, "title": "holder" });
    let task = stage.task(&format!("{}\n{}", step(&worker), step(&holder)), &json!({ "may_spawn": true }));
    until("both children", || below(&stage, &task).len() == 2);
    let (maker, holder) = (id(&below(&stage, &task)[0], "id"), id(&below(&stage, &task)[1], "id"));
    stage.is(&maker, "completed");
    let session = id(&stage.show(&task), "session");
    assert_eq!(refused(&stage, &session, &json!({ "action": "pull", "task_ids": [holder] })), "task_at_work");
    let pulled = tasks(&stage, &session, &json!({ "action": "pull", "task_ids": [maker] }));
    let tree = stage.show(&task)["tree"].clone();
    assert_eq!(pulled["into"], tree["branch"]);
    let path = std::path::PathBuf::from(id(&tree, "path"));
    assert_eq!(std::fs::read_to_string(path.join("part.txt")).unwrap(), "a part");
    assert_eq!(stage.show(&maker)["merged"], pulled["commit"]);
    let again = tasks(&stage, &session, &json!({ "action": "pull", "task_ids": [maker] }));
    assert_eq!(again["nothing_new"], true);
    stage.touch("over");
    stage.is(&task, "completed");
    assert!(!stage.repo().join("part.txt").exists());
    let branch = id(&tree, "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:part.txt")]), "a part");
}

/// A child that was cancelled is told of as interrupted, with what it left, in Lanyard's words and not in its own.
#[test]
fn a_parent_hears_what_a_cancelled_child_left() {
    let stage = Stage::with("[stop]\ngraceful_ms = 50\nimmediate_ms = 50\n");
    let chat = stage.chat();
    let prompt = format!(
        "/write half.txt half\n/say I am at it\n/touch {}\n/wait-file {}",
        stage.sign("begun").display(),
        stage.sign("never").display()
    );
    let spawned = tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": prompt, "title": "unwanted" }));
    let child = id(&spawned["tasks"][0], "task_id");
    stage.await_sign("begun");
    let ended =
        id(&tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": "/say x" }))["tasks"][0], "task_id");
    stage.is(&ended, "completed");
    until("its end to be heard", || stage.all_mail().iter().all(|mail| mail["state"] == "acknowledged"));
    let cancel = json!({ "action": "cancel", "task_ids": [ended, child], "text": "not needed after all" });
    let cancelled = tasks(&stage, &chat, &cancel);
    assert_eq!(cancelled["tasks"][0]["state"], "completed", "one that has ended is left as it is");
    let ended = stage.is(&child, "cancelled");
    assert_eq!(ended["reason"], "not needed after all");
    until("the parent to be told", || stage.told().contains("SUBAGENT INTERRUPTED"));
    let told = stage.told();
    for words in ["not needed after all", "half.txt", "I am at it", &id(&ended["tree"], "branch")] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let told_of_it = told
        .split("SUBAGENT REPORT")
        .skip(1)
        .any(|words| words.lines().nth(1).is_some_and(|line| line.contains(&child)));
    assert!(!told_of_it, "it is not its own word");
}

/// What is there to look at, and that mail can be acknowledged by hand.
#[test]
fn a_parent_sees_its_agents_tasks_and_mail() {
    let stage = Stage::with("[families]\nwake = false\n");
    let chat = stage.chat();
    let agents = tasks(&stage, &chat, &json!({ "action": "agents" }));
    let a = agents["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "a").unwrap();
    assert_eq!(a["default"], true);
    let hold = format!("/wait-file {}", stage.sign("go").display());
    let open = tasks(&stage, &chat, &json!({ "action": "spawn", "prompt": hold, "title": "open" }));
    let open = id(&open["tasks"][0], "task_id");
    let brief = json!({ "action": "spawn", "prompt": "/say brief", "title": "brief" });
    let brief = id(&tasks(&stage, &chat, &brief)["tasks"][0], "task_id");
    stage.is(&brief, "completed");
    let listed = tasks(&stage, &chat, &json!({ "action": "list" }));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(listed["tasks"][0]["task_id"], open.as_str());
    let listed = tasks(&stage, &chat, &json!({ "action": "list", "all": true }));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2);
    stage.is(&open, "running");
    let status = tasks(&stage, &chat, &json!({ "action": "status", "task_ids": [open] }));
    assert_eq!((&status["state"], &status["run"]), (&json!("running"), &json!(1)));
    assert_eq!(status["worker_id"], stage.show(&open)["worker"]);
    // The end came to it with the answer of a call; that it was handled it says itself.
    let mail = stage.all_mail();
    assert_eq!(mail.len(), 1, "{mail:?}");
    let mail = id(&mail[0], "id");
    let acked = tasks(&stage, &chat, &json!({ "action": "ack", "mail": mail }));
    assert_eq!(acked["acknowledged"], true);
    assert_eq!(stage.get(&format!("/mail/{mail}"))["state"], "acknowledged");
    assert_eq!(tasks(&stage, &chat, &json!({ "action": "mailbox" }))["mail"], json!([]));
    assert_eq!(refused(&stage, &chat, &json!({ "action": "ack", "mail": "mail_x" })), "mail_not_found");
    let other = stage.chat();
    assert_eq!(refused(&stage, &other, &json!({ "action": "ack", "mail": mail })), "not_your_mail");
    stage.touch("go");
}
