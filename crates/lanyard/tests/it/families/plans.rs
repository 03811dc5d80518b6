//! Plans: read from text, gone on with by themselves in the order their tasks depend on each other, held, ended, taken up
//! again.

use serde_json::{Value, json};

use super::kit::{Stage, id, until};

fn import(stage: &Stage, markdown: &str, more: &Value) -> String {
    let mut body = json!({ "markdown": markdown, "workspace": stage.repo() });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    id(&stage.ok("/plans/import", &body), "id")
}

fn new_plan(stage: &Stage, tasks: &Value) -> String {
    let body = json!({ "title": "a plan", "workspace": stage.repo(), "tasks": tasks });
    id(&stage.ok("/plans", &body), "id")
}

/// The task of a plan that is called so.
fn keyed(stage: &Stage, plan: &str, key: &str) -> Value {
    let shown = stage.get(&format!("/plans/{plan}"));
    let task = shown["all"].as_array().unwrap().iter().find(|task| task["key"] == key).cloned();
    task.unwrap_or_else(|| panic!("no {key} in {shown}"))
}

fn becomes(stage: &Stage, plan: &str, status: &str) {
    until(&format!("the plan to be {status}"), || stage.get(&format!("/plans/{plan}"))["status"] == status);
}

/// Waits until the task of a plan is so.
fn comes_to(stage: &Stage, plan: &str, key: &str, wanted: &str) -> Value {
    stage.is(&id(&keyed(stage, plan, key), "id"), wanted)
}

/// A step that leaves a trace of the task in the order they came to it.
fn trace(stage: &Stage, name: &str) -> String {
    format!("/run echo {name} >> {}", stage.sign("order").display())
}

fn order(stage: &Stage) -> Vec<String> {
    let text = std::fs::read_to_string(stage.sign("order")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A plan from a text is worked through as its tasks depend on each other; what was done before is not done again.
#[test]
fn a_plan_from_a_text_is_worked_through_in_order() {
    let stage = Stage::new();
    let text = format!(
        "# Build it\n\nAll of it.\n\n## [ ] roof: The roof\n\n- after: walls, plumbing\n\n{}\n\n\
         ## [ ] walls: The walls\n\n- after: ground\n\n{}\n\n## [ ] plumbing: The pipes\n\n- after: ground\n\n{}\n\n\
         ## [x] survey: The survey\n\n{}\n\n## [ ] ground: The ground\n\n- after: survey\n\n{}\n",
        trace(&stage, "roof"),
        trace(&stage, "walls"),
        trace(&stage, "plumbing"),
        trace(&stage, "survey"),
        trace(&stage, "ground"),
    );
    let plan = import(&stage, &text, &json!({ "name": "house" }));
    let shown = stage.get("/plans/house");
    assert_eq!((&shown["id"], &shown["status"]), (&json!(plan), &json!("draft")));
    assert_eq!(keyed(&stage, &plan, "survey")["state"], "completed");
    assert_eq!(keyed(&stage, &plan, "ground")["held"], "its plan is draft");
    stage.ok("/plans/house/start", &json!({}));
    becomes(&stage, &plan, "completed");
    let order = order(&stage);
    assert_eq!((order.len(), order[0].as_str(), order[3].as_str()), (4, "ground", "roof"), "{order:?}");
    let text = stage.get("/plans/house/markdown")["markdown"].as_str().unwrap().to_owned();
    assert_eq!(text.matches("## [x]").count(), 5, "{text}");
    assert_eq!(
        stage.refused("/tasks", &json!({ "title": "x", "plan": "house", "key": "roof" })),
        "task_key_taken"
    );
}

/// What is exported is the plan: imported it is the same, and exported again the same text.
#[test]
fn a_plan_that_is_exported_and_imported_is_the_same() {
    let stage = Stage::new();
    let text = "# Rewrite\n\nIt is slow.\n\n## [ ] lexer: Write the lexer\n\n## [ ] parser: Write the parser\n\n\
                - agent: a\n- part of: lexer\n- after: lexer\n- priority: high\n- group: front\n\
                - files: src/parser.rs, src/ast/**\n- base: main\n- isolation: worktree\n- when parent ends: cancel\n\
                - may spawn: yes\n- may change: src/**\n- must not change: Cargo.lock\n\
                - out of scope: `speed, and what it costs`\n\nRead `src/lexer.rs` first.\n\n- then this\n";
    let one = import(&stage, text, &json!({}));
    let exported = id(&stage.get(&format!("/plans/{one}/markdown")), "markdown");
    assert_eq!(exported, text);
    let two = import(&stage, &exported, &json!({}));
    assert_ne!(one, two);
    assert_eq!(stage.get(&format!("/plans/{two}/markdown"))["markdown"], text);
    let parser = keyed(&stage, &two, "parser");
    assert_eq!(parser["depends_on"][0], keyed(&stage, &two, "lexer")["id"]);
    assert_eq!(parser["bounds"]["out_of_scope"], json!(["speed, and what it costs"]));
    assert_eq!(parser["parent"], keyed(&stage, &two, "lexer")["id"]);
    for (bad, code) in [
        ("", "plan_without_title"),
        ("# T\n", "plan_without_tasks"),
        ("# T\n\n## [ ] a: A\n\n- after: b\n", "plan_unknown_key"),
        ("# T\n\n## [ ] a: A\n\n- after: a\n", "dependency_cycle"),
        ("# T\n\n## [ ] a: A\n\n- colour: red\n", "plan_unknown_field"),
    ] {
        let body = json!({ "markdown": bad, "workspace": stage.repo() });
        assert_eq!(stage.refused("/plans/import", &body), code, "{bad}");
    }
    let body = json!({ "markdown": "# T\n\n## [ ] a: A\n\n- agent: nobody\n", "workspace": stage.repo() });
    assert_eq!(stage.refused("/plans/import", &body), "agent_unknown");
    assert_eq!(stage.get("/plans")["plans"].as_array().unwrap().len(), 2, "nothing is left of those");
}

/// As many at a time as there are places, the most urgent first.
#[test]
fn no_more_of_a_plan_are_at_work_than_there_are_places() {
    let stage = Stage::with("[families]\nplan_concurrency = 1\n");
    let place = stage.sign("place");
    let prompt = |name: &str| {
        let (place, clash) = (place.display(), stage.sign("clash"));
        let enter = format!("/run mkdir {place} || touch {}", clash.display());
        format!("{enter}\n{}\n/run rmdir {place}", trace(&stage, name))
    };
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "low", "key": "low", "prompt": prompt("low"), "priority": "low" },
            { "title": "normal", "key": "normal", "prompt": prompt("normal") },
            { "title": "urgent", "key": "urgent", "prompt": prompt("urgent"), "priority": "critical" },
        ]),
    );
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    becomes(&stage, &plan, "completed");
    assert_eq!(order(&stage), ["urgent", "normal", "low"]);
    assert!(!stage.sign("clash").exists());
}

/// Groups take turns; files are written by one at a time.
#[test]
fn groups_and_files_keep_tasks_apart() {
    let stage = Stage::new();
    let wait = |name: &str| format!("/wait-file {}", stage.sign(name).display());
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "a", "key": "a", "prompt": wait("front"), "group": "front", "files": ["src/*.rs"] },
            { "title": "b", "key": "b", "prompt": wait("front"), "group": "front", "files": ["docs"] },
            { "title": "c", "key": "c", "prompt": "/say c", "group": "back" },
            { "title": "d", "key": "d", "prompt": "/say d", "files": ["src/main.rs"] },
            { "title": "e", "key": "e", "prompt": wait("e"), "files": ["tests"] },
        ]),
    );
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    for key in ["a", "b", "e"] {
        comes_to(&stage, &plan, key, "running");
    }
    let held = |key: &str| id(&keyed(&stage, &plan, key), "held");
    assert!(held("c").contains("group `front`"), "{}", held("c"));
    assert!(held("d").contains("src/main.rs"), "{}", held("d"));
    stage.touch("front");
    comes_to(&stage, &plan, "c", "completed");
    comes_to(&stage, &plan, "d", "completed");
    assert_eq!(keyed(&stage, &plan, "e")["state"], "running", "it is in nobody's way");
    stage.touch("e");
    becomes(&stage, &plan, "completed");
}

/// A paused plan begins nothing more, and goes on when it is told to. It is put away once nothing of it is open.
#[test]
fn a_plan_is_paused_gone_on_with_and_put_away() {
    let stage = Stage::new();
    let first =
        format!("/touch {}\n/wait-file {}", stage.sign("begun").display(), stage.sign("go").display());
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "first", "key": "first", "prompt": first },
            { "title": "second", "key": "second", "prompt": "/say second", "depends_on": ["first"] },
        ]),
    );
    let path = |verb: &str| format!("/plans/{plan}/{verb}");
    stage.ok(&path("start"), &json!({}));
    stage.await_sign("begun");
    assert_eq!(stage.ok(&path("pause"), &json!({}))["status"], "paused");
    assert_eq!(stage.refused(&path("archive"), &json!({})), "plan_at_work");
    stage.touch("go");
    comes_to(&stage, &plan, "first", "completed");
    let second = keyed(&stage, &plan, "second");
    assert_eq!((&second["state"], &second["held"]), (&json!("pending"), &json!("its plan is paused")));
    // One who asks for it by name gets it; the plan itself begins nothing.
    let deployed = stage.ok(&path("deploy"), &json!({}));
    assert_eq!(deployed["deployed"], json!([second["id"]]));
    comes_to(&stage, &plan, "second", "completed");
    stage.ok(&path("start"), &json!({}));
    becomes(&stage, &plan, "completed");
    stage.ok(&path("archive"), &json!({}));
    assert_eq!(stage.get("/plans")["plans"], json!([]));
    assert_eq!(stage.get("/plans?archived=true")["plans"][0]["id"], plan.as_str());
    assert_eq!(stage.refused(&path("start"), &json!({})), "plan_archived");
    assert_eq!(stage.refused("/tasks", &json!({ "title": "late", "plan": plan })), "plan_archived");
}

/// What is ready is begun at once, whatever the plan's status; the answer says what holds the rest.
#[test]
fn deploying_a_plan_begins_what_is_ready() {
    let stage = Stage::new();
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "one", "key": "one", "prompt": "/say one" },
            { "title": "two", "key": "two", "prompt": "/say two", "depends_on": ["one"] },
        ]),
    );
    let deployed = stage.ok(&format!("/plans/{plan}/deploy"), &json!({}));
    let (one, two) = (id(&keyed(&stage, &plan, "one"), "id"), id(&keyed(&stage, &plan, "two"), "id"));
    assert_eq!(deployed["deployed"], json!([one]));
    assert_eq!(deployed["held"][0]["task"], two.as_str());
    assert_eq!(deployed["held"][0]["why"], "waits for one", "{deployed}");
    stage.is(&one, "completed");
    assert_eq!(stage.show(&two)["state"], "pending", "the plan was not started");
    assert_eq!(stage.get(&format!("/plans/{plan}"))["status"], "draft");
}

/// A plan that can only wait for what failed has failed; when that is mended it goes on to its end.
#[test]
fn a_plan_that_failed_goes_on_when_its_task_is_mended() {
    let stage = Stage::new();
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "bad", "key": "bad", "prompt": "/stop refusal" },
            { "title": "then", "key": "then", "prompt": "/say then", "depends_on": ["bad"] },
            { "title": "last", "key": "last", "prompt": "/say last", "depends_on": ["then"] },
            { "title": "beside", "key": "beside", "prompt": "/say beside" },
        ]),
    );
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    becomes(&stage, &plan, "failed");
    assert_eq!(keyed(&stage, &plan, "beside")["state"], "completed", "what did not depend on it was done");
    let bad = id(&keyed(&stage, &plan, "bad"), "id");
    let worker = stage.show(&bad)["worker"].clone();
    stage.ok(&format!("/tasks/{bad}/retry"), &json!({}));
    let body = json!({ "prompt": "/say mended" }).to_string();
    let edited = stage.daemon.request("PATCH", &format!("/api/v1/tasks/{bad}"), &[], Some(&body));
    assert_eq!(edited.json()["prompt"], "/say mended");
    assert_eq!(stage.show(&bad)["held"], "its plan is failed");
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    becomes(&stage, &plan, "completed");
    assert_eq!(stage.show(&bad)["worker"], worker, "S4-14");
}

/// The same with one word: who has a task of a failed plan worked at again wants the plan to go on.
#[test]
fn a_retry_takes_up_the_plan_that_failed() {
    let stage = Stage::new();
    let tool = format!("/run test -e {} || exit 1", stage.sign("mended").display());
    let prompt = format!("{tool}\n/wait-file {}", stage.sign("mended").display());
    let plan = new_plan(
        &stage,
        &json!([
            { "title": "first", "key": "first", "prompt": prompt },
            { "title": "then", "key": "then", "prompt": "/say then", "depends_on": ["first"] },
        ]),
    );
    stage.ok(&format!("/plans/{plan}/start"), &json!({}));
    let first = id(&comes_to(&stage, &plan, "first", "running"), "id");
    stage.ok(&format!("/tasks/{first}/fail"), &json!({ "reason": "the tool is broken" }));
    becomes(&stage, &plan, "failed");
    stage.touch("mended");
    stage.ok(&format!("/tasks/{first}/retry"), &json!({ "deploy": true }));
    becomes(&stage, &plan, "completed");
    assert_eq!(stage.show(&first)["attempts"], 2);
}
