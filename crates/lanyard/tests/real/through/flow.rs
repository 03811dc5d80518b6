//! A real agent as the author of a flow: it needs a person, the daemon is killed while that person is asked, and the answer
//! given after that goes on with the same session; its model sees the earlier conversation and the guidance, and no second
//! template (S2-02, S2-17, S2-B01). A turn that took too long is gone on with as well (S2-22, S2-B02).

use serde_json::{Value, json};

use super::cases::Case;
use super::kit::Kit;
use crate::agents::Rights;
use crate::model::{Role, Step, marker};
use crate::peer::PATIENCE;

const TEMPLATE: &str = "Work on one phase of a plan";
const CONTINUED: &str = "Continue the current session and complete all remaining tasks.";
const GUIDANCE: &str = "WORD-OF-GUIDANCE use the staging database";
const BEGUN: &str = "FIRST-WORDS I have begun and need to know something.";
const COMPLETE: &str = r#"{"status": "complete", "notes": "all of it"}"#;

pub(super) fn shows(case: &Case) {
    let mut kit = Kit::with(case, Rights::All, |_| config(case, ""));
    let asks = r#"{"status": "needs_human", "reason": "which database?"}"#;
    kit.model.script(
        "author",
        [Step::text(BEGUN), Step::text(asks), Step::text("It is done now."), Step::text(COMPLETE)],
    );
    let flow = begin(&kit, "author");
    let gate = gate(&kit, &flow, "needs_human");
    let session = gate["continue_session"]["session"].as_str().unwrap().to_owned();
    assert_eq!(gate["continue_session"]["role"], "author", "S2-04: {gate}");
    assert_eq!(gate["continue_session"]["resume_state"], "execute", "S2-04: {gate}");

    kit.restart_daemon();
    let again = kit.get(&format!("/flows/{flow}"));
    assert_eq!(again["gate"]["id"], gate["id"], "S2-B01: the same gate is open");
    answer(&kit, &flow, &gate, &json!({ "choice": "continue_session", "guidance": GUIDANCE }));
    completes(&kit, &flow);

    let heard = kit.model.wait("the guidance", PATIENCE, |one| {
        one.script == "author"
            && one.asked.says(Role::User, GUIDANCE)
            && one.asked.says(Role::User, CONTINUED)
    });
    assert!(heard.asked.says(Role::Assistant, BEGUN), "S2-02: the earlier conversation is there");
    let templates = |one: &&crate::model::Exchange| one.asked.says(Role::User, TEMPLATE);
    assert!(templates(&&heard), "it was told once what it is about");
    let turns = kit.events(&session, "turn.started");
    let told = turns.iter().filter(|turn| turn["data"]["prompt"].as_str().unwrap().contains(TEMPLATE));
    assert_eq!(told.count(), 1, "S2-17: no template is sent again: {turns:?}");
    kit.ok("goes on at a gate");
}

pub(super) fn takes_too_long(case: &Case) {
    let kit = Kit::with(case, Rights::All, |_| config(case, "author.timeout_ms = 20000\n"));
    kit.model.script(
        "slow",
        [
            Step::text("First second third, and never the last.").held(),
            Step::text(COMPLETE),
            Step::text(COMPLETE),
            Step::text(COMPLETE),
        ],
    );
    let flow = begin(&kit, "slow");
    kit.is_held("slow");
    let gate = gate(&kit, &flow, "timeout");
    assert_eq!(gate["continue_session"]["probe"]["idle"], false, "S2-22: it goes on: {gate}");
    let session = gate["continue_session"]["session"].as_str().unwrap().to_owned();
    answer(&kit, &flow, &gate, &json!({ "choice": "continue_session" }));
    // What still ran is ended first; then its model may answer.
    kit.event(&session, "the end of the first turn", |event| event["type"] == "turn.interrupted");
    kit.model.release("slow");
    completes(&kit, &flow);
    kit.ok("goes on after it took too long");
}

/// An author that asks again after `c` is offered again (FND-M2). A continuation that failed is not (S2-12), and neither is
/// a session whose turn is ended when it takes too long (S2-23).
pub(super) fn is_not_offered(case: &Case) {
    let ends = "author.timeout_ms = 20000\nauthor.abort_on_timeout = true\n";
    let kit = Kit::with(case, Rights::All, |_| config(case, ends));
    let asks = r#"{"status": "needs_human", "reason": "which database?"}"#;
    let fails = r#"{"status": "failed", "reason": "I cannot."}"#;
    let steps = ["I have begun.", asks, "I went on.", asks, "I went on again.", fails].map(Step::text);
    kit.model.script("again", steps);
    let flow = begin(&kit, "again");
    let first = gate(&kit, &flow, "needs_human");
    answer(&kit, &flow, &first, &json!({ "choice": "continue_session", "guidance": GUIDANCE }));
    let shown = wait(&kit, &flow, "the second gate", |shown| {
        shown["gate"]["id"] != first["id"] && shown["gate"]["answered"].is_null()
    });
    let second = &shown["gate"];
    assert_eq!(second["code"], "needs_human", "{shown}");
    assert_eq!(
        second["continue_session"]["session"], first["continue_session"]["session"],
        "FND-M2: {shown}"
    );
    answer(&kit, &flow, second, &json!({ "choice": "continue_session" }));
    let shown = wait(&kit, &flow, "the third gate", |shown| {
        shown["gate"]["code"] == "author_failed" && shown["gate"]["answered"].is_null()
    });
    let failed = &shown["gate"];
    assert_eq!(failed["continue_session"], Value::Null, "{shown}");
    assert_eq!(failed["not_offered"], "continuing it failed", "S2-12: {shown}");
    answer(&kit, &flow, failed, &json!({ "choice": "abort" }));

    kit.model.script("hold", [Step::text("First second third, and never the last.").held()]);
    let flow = begin(&kit, "hold");
    kit.is_held("hold");
    let shown = wait(&kit, &flow, "the gate", |shown| shown["gate"].is_object());
    let third = &shown["gate"];
    assert_eq!(
        (&third["code"], &third["continue_session"]),
        (&json!("timeout"), &Value::Null),
        "S2-23: {shown}"
    );
    let session = shown["sessions"][0]["session"].as_str().unwrap();
    kit.event(session, "the end of its turn", |event| event["type"] == "turn.interrupted");
    answer(&kit, &flow, third, &json!({ "choice": "abort" }));
    kit.ok("is not offered what cannot be");
}

/// FND-R13: the author's own sandbox lets it commit in the worktree that Lanyard made, and keeps it from everything else.
pub(super) fn commits(case: &Case) {
    let kit = Kit::with(case, Rights::All, |_| config(case, ""));
    let git = |folder: &std::path::Path, words: &[&str]| {
        let done = std::process::Command::new("git").arg("-C").arg(folder).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&kit.work, &["init", "-q", "-b", "main"]);
    for (name, value) in [("user.name", "a"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")] {
        git(&kit.work, &["config", name, value]);
    }
    std::fs::write(kit.work.join("PLAN.md"), "# A plan\n").unwrap();
    git(&kit.work, &["add", "."]);
    git(&kit.work, &["commit", "-q", "-m", "begin"]);
    let outside = kit.work.join("outside");
    let command = format!(
        "echo work > work.txt && git add work.txt && git commit -q -m work; echo rc=$?; touch {}",
        outside.display()
    );
    let work = (case.shell)(&command, Rights::All);
    kit.model.script("commit", [work.clone(), Step::text("It is done.").held()]);
    let flow = begin(&kit, "commit");
    let asked = kit.model.wait("the result", PATIENCE, |one| one.is("commit", 1)).asked;
    let result = asked.last_tool_result().unwrap_or_default().to_owned();
    assert!(result.contains("rc=0"), "{result}");
    let commit = git(&kit.work, &["rev-parse", &format!("lanyard/{flow}")]);
    assert_ne!(commit, git(&kit.work, &["rev-parse", "main"]), "{result}");
    assert!(!outside.exists(), "the sandbox holds: {result}");
    let complete = json!({ "status": "complete", "notes": "all of it", "commit": commit }).to_string();
    kit.model.script("commit", [work, Step::text("It is done.").held(), Step::text(&complete)]);
    kit.model.release("commit");
    completes(&kit, &flow);
    kit.ok("commits in a flow");
}

fn config(case: &Case, more: &str) -> String {
    let lanyard = env!("CARGO_BIN_EXE_lanyard");
    format!(
        "\n[flow]\nauthor.agent = \"{}\"\nreviewer.agent = \"judge\"\nrules.phase_gate = \"auto\"\n{more}\n\
         [agents.judge]\ndriver = \"acp\"\n\
         command = ['{lanyard}', 'scripted-agent', '--otherwise', '/say! {{\"readiness\": \"ready\"}}']\n",
        case.package,
    )
}

fn begin(kit: &Kit<'_>, script: &str) -> String {
    let plan = kit.work.join("PLAN.md");
    let text = format!("# A plan\n\n## Phase 1: The work\n\n- [ ] do it\n\n{}\n", marker(script));
    std::fs::write(&plan, text).unwrap();
    let body = json!({ "kind": "phases", "plan": plan, "workspace": kit.work });
    kit.post("/flows", &body)["id"].as_str().unwrap().to_owned()
}

/// The gate of the flow, once it is open.
fn gate(kit: &Kit<'_>, flow: &str, code: &str) -> Value {
    let shown =
        wait(kit, flow, "a gate", |shown| shown["gate"]["answered"].is_null() && shown["gate"].is_object());
    let gate = shown["gate"].clone();
    assert_eq!(gate["code"], code, "{shown}");
    assert!(gate["continue_session"].is_object(), "{shown}");
    gate
}

fn answer(kit: &Kit<'_>, flow: &str, gate: &Value, answer: &Value) {
    kit.post(&format!("/flows/{flow}/gates/{}", gate["id"].as_str().unwrap()), answer);
}

fn completes(kit: &Kit<'_>, flow: &str) {
    let done = wait(kit, flow, "the end of the flow", |shown| {
        let state = shown["state"].as_str().unwrap();
        assert_ne!(state, "escalate", "{shown}");
        state == "completed"
    });
    assert_eq!(done["phases"][0]["state"], "complete", "{done}");
}

fn wait(kit: &Kit<'_>, flow: &str, what: &str, met: impl Fn(&Value) -> bool) -> Value {
    let shown = || kit.get(&format!("/flows/{flow}"));
    let session = || shown()["sessions"][0]["session"].as_str().map(str::to_owned);
    let since = std::time::Instant::now();
    let first = loop {
        if let Some(first) = session() {
            break first;
        }
        assert!(since.elapsed() < PATIENCE, "the flow does not begin: {}", shown());
        // sleep: between two looks at a flow that begins.
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    kit.wait(what, &first, || Some(shown()).filter(|shown| met(shown)))
}
