//! Checkpoints of a workspace: kept at each turn, compared, gone back to.

use serde_json::{Value, json};

use super::stage::{Stage, text};

fn names(stage: &Stage, session: &str) -> Vec<String> {
    let list = stage.get(&format!("/sessions/{session}/snapshots"));
    let list = list["snapshots"].as_array().unwrap();
    list.iter().map(|snapshot| snapshot["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_workspace_goes_back_to_a_checkpoint_and_forth_again() {
    let stage = Stage::new();
    stage.git();
    let kept = stage.workspace().join("kept.txt");
    let session = stage.detached("/edit kept.txt second\n/edit made.txt new");
    stage.until(&session, |shown| shown["snapshots"] == 2);
    let taken = names(&stage, &session);
    assert_eq!(taken[1], format!("{}-end", taken[0]), "the start and the end of the turn");
    let shown = text(&stage.lanyard(&["checkpoints", &session]).stdout);
    assert!(shown.contains("start of a turn") && shown.contains(&taken[0]), "{shown}");

    let diff = stage.lanyard(&["diff", &session]);
    assert!(text(&diff.stdout).contains("-first\n+second"), "{}", text(&diff.stdout));
    assert!(text(&diff.stderr).contains("new made.txt +1 -0"), "{}", text(&diff.stderr));

    let unasked = stage.lanyard(&["rollback", &session, &taken[0]]);
    assert_eq!(unasked.status.code(), Some(2));
    assert!(text(&unasked.stderr).contains("there is no terminal to ask on"));
    assert_eq!(std::fs::read_to_string(&kept).unwrap().trim_end(), "second");

    let back = stage.lanyard(&["rollback", &session, &taken[0], "--yes", "--json"]);
    assert!(back.status.success(), "{}", text(&back.stderr));
    let done: Value = serde_json::from_slice(&back.stdout).unwrap();
    assert_eq!(
        (&done["restored"]["changed"], &done["restored"]["removed"]),
        (&json!(1), &json!(1)),
        "{done:#}"
    );
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "first\n");
    assert!(!stage.workspace().join("made.txt").exists());

    let before = done["restored"]["before"].as_str().unwrap();
    let range = format!("{}..{before}", taken[0]);
    let between = text(&stage.lanyard(&["diff", &session, &range]).stdout);
    assert!(between.contains("+second"), "{between}");
    assert!(stage.lanyard(&["rollback", &session, before, "--yes"]).status.success());
    assert_eq!(std::fs::read_to_string(&kept).unwrap().trim_end(), "second");
    let log = stage.daemon.log_after(&session, 0);
    let kept = log.iter().filter(|event| event["data"]["reason"] == "rollback").count();
    assert_eq!(kept, 2, "{log:#?}");
}

/// A rollback is in the log: who did it, from where and to where, once for each request.
#[test]
fn fnd_i19_a_rollback_leaves_an_event() {
    let stage = Stage::new();
    stage.git();
    let work = stage.workspace().display().to_string();
    let made = stage.post("/sessions", &json!({ "agent": "scripted", "workspace": work })).json();
    let session = made["session"].as_str().unwrap().to_owned();
    let kept = stage.post(&format!("/sessions/{session}/checkpoints"), &json!({}));
    assert!((200..300).contains(&kept.status), "{}", kept.text());
    let log = stage.daemon.log_after(&session, 0);
    let taken = log.iter().find(|event| event["type"] == "context.snapshot").unwrap();
    let to = taken["data"]["name"].as_str().unwrap().to_owned();
    std::fs::write(stage.workspace().join("kept.txt"), "changed\n").unwrap();
    std::fs::write(stage.workspace().join("new.txt"), "new\n").unwrap();
    let path = format!("/api/v1/sessions/{session}/rollback");
    let body = json!({ "to": to }).to_string();
    let mut before = Value::Null;
    for _ in 0..2 {
        let back = stage.daemon.request("POST", &path, &[("idempotency-key", "once")], Some(&body));
        assert_eq!(back.status, 200, "{}", back.text());
        if before.is_null() {
            before = back.json()["restored"]["before"].clone();
        }
    }
    let log = stage.daemon.log_after(&session, 0);
    let told: Vec<&Value> = log.iter().filter(|event| event["type"] == "context.rolled_back").collect();
    let [told] = told[..] else { panic!("{log:#?}") };
    assert_eq!(told["data"], json!({ "from": before, "to": to, "changed": 1, "added": 0, "removed": 1 }));
    assert_eq!((&told["actor"]["kind"], &told["actor"]["name"]), (&json!("operator"), &json!("local")));
    let shown = text(&stage.lanyard(&["logs", &session]).stdout);
    assert!(shown.contains("context.rolled_back") && shown.contains(&format!("to {to}")), "{shown}");
}

#[test]
fn a_checkpoint_that_is_asked_for_keeps_the_workspace() {
    let stage = Stage::new();
    stage.git();
    let work = stage.workspace().display().to_string();
    let made = stage.post("/sessions", &json!({"workspace": work})).json();
    let session = made["session"].as_str().unwrap();
    let empty = stage.daemon.request("GET", &format!("/api/v1/sessions/{session}/diff"), &[], None);
    assert_eq!((empty.status, empty.code()), (404, "snapshot_not_found".to_owned()));
    assert!(stage.lanyard(&["checkpoint", session]).status.success());
    assert_eq!(names(&stage, session), ["at-1"]);
    assert_eq!(stage.get(&format!("/sessions/{session}/snapshots"))["snapshots"][0]["reason"], "asked");

    let missing = stage.post(&format!("/sessions/{session}/rollback"), &json!({"to": "at-9"}));
    assert_eq!((missing.status, missing.code()), (404, "snapshot_not_found".to_owned()));
    std::fs::write(stage.workspace().join("kept.txt"), "third\n").unwrap();
    let path = format!("/api/v1/sessions/{session}/rollback");
    let body = json!({"to": "at-1"}).to_string();
    let roll = || stage.daemon.request("POST", &path, &[("idempotency-key", "r1")], Some(&body));
    let first = roll().json();
    assert_eq!(first["restored"]["changed"], 1, "{first:#}");
    std::fs::write(stage.workspace().join("kept.txt"), "fourth\n").unwrap();
    let again = roll().json();
    assert!(again.get("restored").is_none(), "done once for one key: {again:#}");
    assert_eq!(std::fs::read_to_string(stage.workspace().join("kept.txt")).unwrap(), "fourth\n");
    let other = json!({"to": "at-9"}).to_string();
    let conflict = stage.daemon.request("POST", &path, &[("idempotency-key", "r1")], Some(&other));
    assert_eq!(conflict.code(), "idempotency_conflict");
}

#[test]
fn a_workspace_is_not_taken_back_under_an_agent_at_work() {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/say! x\n/wait-file go");
    stage.until(&session, |shown| shown["snapshots"] == 1);
    let name = names(&stage, &session).remove(0);
    let busy = stage.post(&format!("/sessions/{session}/rollback"), &json!({"to": name}));
    assert_eq!((busy.status, busy.code()), (409, "turn_rejected_busy".to_owned()));

    let work = stage.workspace().display().to_string();
    let neighbour = stage.post("/sessions", &json!({"workspace": work})).json();
    let neighbour = neighbour["session"].as_str().unwrap();
    assert!(stage.lanyard(&["checkpoint", neighbour]).status.success());
    let busy = stage.post(&format!("/sessions/{neighbour}/rollback"), &json!({"to": "at-1"}));
    assert_eq!((busy.status, busy.code()), (409, "workspace_busy".to_owned()), "{}", busy.text());
    std::fs::write(stage.workspace().join("go"), "").unwrap();
    stage.until_at_rest(&session);
}

#[test]
fn outside_a_repository_there_are_no_checkpoints_and_it_says_so() {
    let stage = Stage::new();
    let output = stage.run(&["/say! hello"]);
    assert!(text(&output.stderr).contains("no checkpoint: "), "{}", text(&output.stderr));
    let work = stage.workspace().display().to_string();
    let made = stage.post("/sessions", &json!({"workspace": work})).json();
    let session = made["session"].as_str().unwrap();
    let marked = stage.lanyard(&["checkpoint", session]);
    assert!(marked.status.success());
    assert!(text(&marked.stderr).contains("warning: the workspace was not kept"), "{}", text(&marked.stderr));
    let listed = stage.lanyard(&["checkpoints", session]);
    assert_eq!(listed.status.code(), Some(1));
    assert!(text(&listed.stderr).contains("[not_git]"), "{}", text(&listed.stderr));
    let nowhere = stage.post("/sessions", &json!({"workspace": "just-a-name"})).json();
    let path = format!("/api/v1/sessions/{}/snapshots", nowhere["session"].as_str().unwrap());
    let refused = stage.daemon.request("GET", &path, &[], None);
    assert_eq!((refused.status, refused.code()), (409, "workspace_missing".to_owned()));
}

/// The session's checkpoints as the API lists them.
fn listed(stage: &Stage, session: &str) -> Vec<Value> {
    let list = stage.get(&format!("/sessions/{session}/snapshots"));
    list["snapshots"].as_array().unwrap().clone()
}

/// The position that the log's last mark of this kind names.
fn marked(stage: &Stage, session: &str, reason: &str) -> Value {
    let log = stage.daemon.log_after(session, 0);
    let mut marks = log.iter().filter(|event| event["type"] == "context.checkpoint");
    marks.rfind(|event| event["data"]["reason"] == reason).unwrap()["data"]["position"].clone()
}

/// FND-M10 (S1-B06): the end of a turn and a cancel leave a checkpoint that names its position and its commit.
#[test]
fn fnd_m10_the_end_of_a_turn_and_a_cancel_leave_a_checkpoint() {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/edit kept.txt second");
    stage.until(&session, |shown| shown["snapshots"] == 2);
    let taken = listed(&stage, &session);
    assert_eq!((&taken[0]["reason"], &taken[1]["reason"]), (&json!("turn_start"), &json!("turn_end")));
    assert_ne!(taken[0]["commit"], taken[1]["commit"]);
    assert_eq!(taken[1]["position"], marked(&stage, &session, "turn_end"));
    let range = format!("{}..{}", taken[0]["name"].as_str().unwrap(), taken[1]["name"].as_str().unwrap());
    let between = text(&stage.lanyard(&["diff", &session, &range]).stdout);
    assert!(between.contains("-first\n+second"), "{between}");
    let alone = text(&stage.lanyard(&["diff", &session]).stdout);
    assert!(alone.contains("-first\n+second"), "without a range it is what the turn changed: {alone}");

    let prompt = json!({"prompt": "/edit made.txt half\n/wait-file never"});
    let begun = stage.post(&format!("/sessions/{session}/turns"), &prompt);
    assert_eq!(begun.status, 201, "{}", begun.text());
    let made = stage.workspace().join("made.txt");
    stage.until(&session, |_| made.exists());
    assert!(stage.lanyard(&["cancel", &session]).status.success());
    stage.until(&session, |shown| shown["snapshots"] == 4);
    let taken = listed(&stage, &session);
    // Nothing happened between the turns: another name for the same commit.
    assert_eq!(taken[2]["commit"], taken[1]["commit"]);
    assert_eq!((&taken[2]["reason"], &taken[3]["reason"]), (&json!("turn_start"), &json!("turn_end")));
    assert_eq!(taken[3]["position"], marked(&stage, &session, "interruption"));
    let range = format!("{}..{}", taken[2]["name"].as_str().unwrap(), taken[3]["name"].as_str().unwrap());
    let between = text(&stage.lanyard(&["diff", &session, &range]).stdout);
    assert!(between.contains("+half"), "{between}");
    assert_eq!(stage.log_all(), 1, "the repository shows nothing of it");
}

/// FND-N14: one number for a checkpoint, in the answer, in the log, in the list and in ranges.
#[test]
fn fnd_n14_a_checkpoint_has_one_number() {
    let stage = Stage::new();
    stage.git();
    let session = stage.detached("/edit kept.txt second");
    stage.until(&session, |shown| shown["snapshots"] == 2);
    let said = text(&stage.lanyard(&["checkpoint", &session]).stderr);
    let position = marked(&stage, &session, "asked").as_u64().unwrap();
    assert!(said.contains(&format!("has a checkpoint at {position}\n")), "{said}");
    let taken = listed(&stage, &session);
    let last = taken.last().unwrap();
    assert_eq!((&last["name"], &last["position"]), (&json!(format!("at-{position}")), &json!(position)));
    for named in [format!("at-{position}"), position.to_string()] {
        let diff = stage.lanyard(&["diff", &session, &named]);
        assert!(diff.status.success(), "{named}: {}", text(&diff.stderr));
    }
    for words in [
        &["checkpoints", "--help"][..],
        &["checkpoint", "--help"],
        &["diff", "--help"],
        &["rollback", "--help"],
    ] {
        let help = text(&stage.lanyard(words).stdout);
        assert!(!help.contains("snapshot"), "one word for one thing: {help}");
    }
}
