//! A task begins with the work of those it comes after (FND-N3).

use serde_json::{Value, json};

use super::kit::{Stage, git, id, until};

/// A task that writes this text into a file of its worktree, and is completed.
fn writes(stage: &Stage, file: &str, text: &str, more: &Value) -> String {
    let task = stage.task(&format!("/edit {file} {text}\n/say wrote {file}"), more);
    stage.is(&task, "completed");
    task
}

fn at(stage: &Stage, branch: &str, file: &str) -> String {
    git(&stage.repo(), &["show", &format!("{branch}:{file}")])
}

fn branch(task: &str) -> String {
    format!("lanyard/{task}")
}

#[test]
fn fnd_n3_a_task_sees_the_work_of_all_it_comes_after() {
    let stage = Stage::new();
    let one = writes(&stage, "one.txt", "first", &json!({}));
    let two = writes(&stage, "two.txt", "second", &json!({}));
    let three = writes(&stage, "three.txt", "third", &json!({ "depends_on": [one, two] }));
    for file in ["one.txt", "two.txt", "three.txt", "first.txt"] {
        assert!(!at(&stage, &branch(&three), file).is_empty());
    }
    let shown = stage.show(&three);
    assert_eq!(shown["commits"], 1, "FND-D17: of its own, those before it not counted");
    // One prerequisite: its tip.
    let four = writes(&stage, "four.txt", "fourth", &json!({ "depends_on": [three] }));
    let tip = git(&stage.repo(), &["rev-parse", &branch(&three)]);
    assert_eq!(stage.show(&four)["tree"]["base"], tip.trim());
    // Merged at the end, it brings all of it, and none of them is left to merge.
    stage.ok(&format!("/tasks/{four}/merge"), &json!({}));
    for task in [&one, &two, &three, &four] {
        assert!(stage.show(task)["merged"].is_string(), "{task}");
    }
    // All of it is in the workspace: nothing extra.
    let five = writes(&stage, "five.txt", "fifth", &json!({ "depends_on": [one, four] }));
    let head = git(&stage.repo(), &["rev-parse", "HEAD"]);
    assert_eq!(stage.show(&five)["tree"]["base"], head.trim());
    let idle = stage.task("/say nothing to do", &json!({}));
    assert_eq!(stage.is(&idle, "completed")["commits"], 0, "FND-D17");
}

/// FND-N3: the base of a retry has what its prerequisite has become meanwhile.
#[test]
fn fnd_n3_a_retried_task_begins_at_what_its_prerequisite_is_now() {
    let stage = Stage::new();
    let again = |task: &str| {
        stage.ok(&format!("/tasks/{task}/retry"), &json!({ "deploy": true }));
        until("the second run", || {
            let shown = stage.show(task);
            shown["attempts"] == 2 && shown["state"] == "completed"
        });
    };
    let one = stage
        .task("/run [ -e one.txt ] && echo more > more.txt || echo first > one.txt\n/say wrote", &json!({}));
    stage.is(&one, "completed");
    let two = writes(&stage, "two.txt", "second", &json!({ "depends_on": [one] }));
    let old = stage.show(&two)["tree"]["base"].clone();
    again(&one);
    let tip = git(&stage.repo(), &["rev-parse", &branch(&one)]);
    assert_ne!(json!(tip.trim()), old);
    again(&two);
    assert_eq!(stage.show(&two)["tree"]["base"], tip.trim());
    assert_eq!(at(&stage, &branch(&two), "more.txt").trim(), "more");
    let diff = stage.get(&format!("/tasks/{two}/diff"));
    assert!(!diff.to_string().contains("more.txt"), "the work of others is not its own: {diff}");
}

#[test]
fn fnd_n3_a_conflict_of_prerequisites_holds_a_task_before_it_begins() {
    let stage = Stage::new();
    let one = writes(&stage, "same.txt", "one way", &json!({}));
    let two = writes(&stage, "same.txt", "another way", &json!({}));
    let third = stage.task("/say begun", &json!({ "depends_on": [one, two], "title": "the third" }));
    until("the conflict", || stage.show(&third)["conflict"].is_object());
    let shown = stage.show(&third);
    assert_eq!(shown["state"], "pending", "{shown}");
    assert_eq!(shown["conflict"]["files"], json!(["same.txt"]));
    assert_eq!(shown["conflict"]["branch"], json!(branch(&two)));
    let held = shown["held"].as_str().unwrap();
    assert!(held.contains("same.txt") && held.contains(&format!("lanyard task retry {third}")), "{held}");
    assert!(shown["session"].is_null(), "no agent was started: {shown}");
    assert!(!stage.told().contains("begun"));
    // It is found again as long as nobody resolves it.
    stage.ok(&format!("/tasks/{third}/retry"), &json!({}));
    until("the second conflict", || {
        let shown = stage.show(&third);
        shown["conflict"].is_object() && shown["attempts"] == 2
    });
    // The first is merged by Lanyard, the second by a person who resolves it.
    stage.ok(&format!("/tasks/{one}/merge"), &json!({}));
    until("a conflict with the workspace", || {
        let shown = stage.show(&third);
        shown["conflict"]["with"] == json!(["HEAD"]) && shown["attempts"] == 3
    });
    git(&stage.repo(), &["merge", "-q", "-X", "ours", "-m", "both", &branch(&two)]);
    stage.ok(&format!("/tasks/{third}/retry"), &json!({}));
    stage.is(&third, "completed");
    let types: Vec<String> = stage.get(&format!("/tasks/{third}/log"))["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| id(event, "type"))
        .collect();
    assert_eq!(types.iter().filter(|name| *name == "task.base_conflict").count(), 3, "{types:?}");
}

/// FND-N3: in a plan the others go on, and the plan waits for whoever resolves it.
#[test]
fn fnd_n3_a_plan_waits_for_a_conflict_to_be_resolved() {
    let stage = Stage::new();
    let text = "# Both\n\n## [ ] one: One\n\n/edit same.txt one\n\n## [ ] two: Two\n\n/edit same.txt two\n\n\
                ## [ ] both: Both\n\n- after: one, two\n\n/say both\n\n## [ ] free: Free\n\n- after: one\n\n/say free\n";
    let new = json!({ "markdown": text, "workspace": stage.repo(), "start": true });
    let plan = id(&stage.ok("/plans/import", &new), "id");
    let task = |key: &str| {
        let tasks = stage.get(&format!("/plans/{plan}"))["all"].as_array().unwrap().clone();
        tasks.into_iter().find(|task| task["key"] == key).unwrap()
    };
    until("the conflict", || task("both")["conflict"].is_object());
    stage.is(task("free")["id"].as_str().unwrap(), "completed");
    let shown = stage.get(&format!("/plans/{plan}"));
    assert_eq!(shown["status"], "active", "{shown}");
    assert!(task("both")["held"].as_str().unwrap().contains("same.txt"));
}
