//! An agent with the entry that `lanyard init` writes does its work: it asks and is answered, its own tools and Lanyard's
//! work, and it knows the conversation. Each time the model's request log is the witness.

use serde_json::{Value, json};

use super::cases::Case;
use super::kit::{GREETING, Kit};
use crate::agents::Rights;
use crate::model::{Exchange, Role, Step, marker};
use crate::peer::PATIENCE;

/// Starts a task that follows a script; its id and its session.
fn task(kit: &Kit<'_>, script: &str) -> (String, String) {
    let agent = kit.agent();
    let new = json!({
        "title": script, "prompt": format!("go {}", marker(script)), "agent": agent, "workspace": kit.work,
        "isolation": "shared", "deploy": true,
    });
    let task = kit.post("/tasks", &new)["id"].as_str().unwrap().to_owned();
    let shown = || kit.get(&format!("/tasks/{task}"))["session"].as_str().map(str::to_owned);
    kit.model.wait(script, PATIENCE, |one| one.is(script, 0));
    (task.clone(), shown().unwrap())
}

/// Waits for the next question after a place in the log and answers it.
fn allow(kit: &Kit<'_>, session: &str, after: usize) -> Value {
    let opened =
        kit.wait("a question", session, || kit.events(session, "gate.opened").into_iter().nth(after));
    let gate = opened["data"]["gate"].as_str().unwrap();
    kit.post(&format!("/sessions/{session}/gates/{gate}"), &json!({ "option": "allow" }));
    opened
}

/// FND-R4: it writes, edits and runs commands after a question each; Lanyard's own tools need none.
pub(super) fn does_a_task(case: &Case) {
    let kit = Kit::new(case, Rights::Ask);
    let file = kit.work.join("note.txt").display().to_string();
    kit.model.script(
        "work",
        [
            Step::tool("mcp__lanyard__memory_agent", json!({ "action": "init", "agent_type": "Executor" })),
            Step::tool("Write", json!({ "file_path": file, "content": "one\n" })),
            Step::tool("Edit", json!({ "file_path": file, "old_string": "one", "new_string": "two" })),
            (case.shell)("touch made && printf MADE-%s it", Rights::Ask),
            Step::text("All is done."),
        ],
    );
    let (task, session) = task(&kit, "work");
    let titles: Vec<String> = (0..3)
        .map(|number| allow(&kit, &session, number)["data"]["title"].as_str().unwrap().to_owned())
        .collect();
    assert!(titles[0].starts_with("Write: ") && titles[1].starts_with("Edit: "), "{titles:?}");
    assert!(titles[2].starts_with("Bash: touch made"), "{titles:?}");
    kit.wait("the end of the task", &session, || {
        let state = kit.get(&format!("/tasks/{task}"))["state"].as_str().unwrap().to_owned();
        assert!(state != "failed", "{}", kit.told(&session));
        (state == "completed").then_some(())
    });
    assert_eq!(std::fs::read_to_string(file).unwrap(), "two\n", "{}", kit.told(&session));
    assert!(kit.work.join("made").exists());
    assert_eq!(kit.events(&session, "gate.opened").len(), 3, "{}", kit.told(&session));
    let last = kit.answered("work", 4).asked;
    let results = last.tool_results();
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(results[0].contains(&session), "Lanyard's own tool answered: {results:?}");
    assert!(results[3].contains("MADE-it"), "{results:?}");
    let failed = |text: &&str| text.contains("InputValidationError") || text.contains("permission");
    assert!(!results.iter().any(failed), "{results:?}");
    names_no_session_id(&kit, "work");
    kit.ok("does a task");
}

/// FND-R4: nothing is done in silence where it cannot ask.
pub(super) fn tells_denials(case: &Case) {
    let kit = Kit::new(case, Rights::Ask);
    let file = kit.work.join("note.txt").display().to_string();
    let write = Step::tool("Write", json!({ "file_path": file, "content": "one\n" }));
    kit.model.script("work", [write, Step::text("All is done.")]);
    let session = kit.session();
    let turn = kit.begin(&session, "work");
    let end = kit.ended(&session, &turn);
    assert!(!kit.work.join("note.txt").exists());
    let reason = end["data"]["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("Claude Code denied 1 tool call and asked nobody: Write;"), "{end:#}");
    let checked = kit.post(&format!("/agents/{}/check", kit.agent()), &json!({}));
    assert_eq!(checked["warnings"].as_array().map(Vec::len), Some(2), "{checked:#}");
    kit.ok("tells denials");
}

/// FND-R5: nothing that reaches the model of a task asks for a session id in tool calls.
pub(super) fn asks_for_no_session_id(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let shell = (case.shell)("printf SHELL-%s 42", Rights::All);
    kit.model.script("work", [shell, Step::text("All is done.")]);
    let (task, session) = task(&kit, "work");
    kit.wait("the end of the task", &session, || {
        (kit.get(&format!("/tasks/{task}"))["state"] == "completed").then_some(())
    });
    let asked = kit.answered("work", 1).asked;
    assert!(asked.says(Role::Tool, "SHELL-42"), "{:?}", asked.tool_results());
    names_no_session_id(&kit, "work");
    kit.ok("tools without session id");
}

fn names_no_session_id(kit: &Kit<'_>, script: &str) {
    let asked: Vec<Exchange> = kit.model.asked(script);
    assert!(!asked.is_empty());
    for one in asked {
        let body = one.body.to_string();
        assert!(body.contains("SESSION TRACKING"), "the task's own words are there: {body}");
        for told in [r#"\"_session_id"#, "`_session_id"] {
            assert!(!body.contains(told), "{told}: {body}");
        }
    }
}

/// FND-R9.
pub(super) fn knows_the_past() {
    for (case, more, label, knows) in [
        (Case::claude_asks(), "", "native", true),
        (Case::claude_old_guide(), "", "lost", false),
        (Case::claude_old_guide(), "resume = [\"native\", \"preamble\"]\n", "preamble", true),
    ] {
        let kit = Kit::with(&case, Rights::All, |_| more.to_owned());
        let session = kit.session();
        kit.turn(&session, "greet");
        kit.turn(&session, "after");
        let ready = kit.ready(&session);
        assert_eq!(ready["continuity"], label, "{}", kit.told(&session));
        let asked = kit.answered("after", 0).asked;
        let told = asked.says(Role::Assistant, GREETING) || asked.says(Role::User, GREETING);
        assert_eq!(told, knows, "{label}: {:?}", asked.messages);
        kit.say("conversation", label);
    }
}

/// FND-R15.
pub(super) fn checks(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let checked = kit.post(&format!("/agents/{}/check", kit.agent()), &json!({}));
    assert_eq!(checked["works"], true, "{checked:#}");
    assert!(checked["warnings"].is_null(), "{checked:#}");
    let session = kit.session();
    kit.turn(&session, "greet");
    let ready = kit.ready(&session);
    assert_eq!(checked["capabilities"], ready["capabilities"], "{checked:#} {ready:#}");
    for field in ["name", "protocol"] {
        assert_eq!(checked["info"][field], ready["info"][field]);
    }
    kit.ok("check says what the run says");
}
