//! Agents by their names: unknown ones are refused where they are named, none is chosen in silence, and a session that is
//! handed to another agent takes its conversation along.

use std::process::Output;

use serde_json::json;

use super::kit::{Stage, Talk};
use crate::support::{Daemon, Setup};

fn refused(output: &Output, code: &str) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("[{code}]")), "{stderr}");
    stderr
}

/// FND-N2.
#[test]
fn fnd_n2_an_unknown_agent_is_refused_wherever_it_is_named() {
    let stage = Stage::of(&[("writer", &[], ""), ("tester", &[], "")]);
    let work = stage.work().display().to_string();
    let talk = stage.talk_with("writer");
    let plan = stage.file("PLAN.md");
    std::fs::write(&plan, "# Plan\n\n## [ ] One\n\nDo it.\n").unwrap();
    let plan = plan.display().to_string();
    for words in [
        &["new", "--agent", "writr", "--workspace", &work][..],
        &["run", "--agent", "writr", "--cwd", &work, "hello"],
        &["migrate", &talk.id, "--agent", "writr", "--reason", "better at it"],
        &["task", "add", "t", "--prompt", "hello", "--agent", "writr", "--workspace", &work],
        &["flow", "run", &plan, "--author", "writr", "--workspace", &work],
    ] {
        let stderr = refused(&stage.daemon.lanyard(words), "agent_unknown");
        assert!(stderr.contains("writer") && stderr.contains("tester"), "{words:?}: {stderr}");
        assert!(stderr.contains("did you mean `writer`?"), "{words:?}: {stderr}");
    }
    assert_eq!(stage.get("/sessions")["sessions"].as_array().unwrap().len(), 1, "nothing was made");
    assert_eq!(talk.record()["agent"], "writer");
}

/// FND-N2: a turn that nobody would run is not waited for.
#[test]
fn fnd_n2_send_to_a_session_that_nothing_runs_is_refused_at_once() {
    let mut stage = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let client_run = json!({"agent": "ghost", "driven_by": "nobody", "workspace": "anywhere"});
    let session = stage.post("/sessions", &client_run).json()["session"].as_str().unwrap().to_owned();
    let stderr = refused(&stage.daemon.lanyard(&["send", &session, "hello"]), "session_not_run");
    assert!(stderr.contains(&format!("lanyard migrate {session} --agent")), "{stderr}");
    let left = stage.daemon.lanyard(&["send", &session, "--detach", "for the client"]);
    assert_eq!(left.status.code(), Some(0), "a client of the API may carry it out");

    let id = stage.talk_with("b").id;
    let config = std::fs::read_to_string(stage.daemon.config()).unwrap();
    let without = config.split("[agents.b]").next().unwrap().to_owned();
    stage.daemon.restart_with(Setup::default().config(&without));
    let stderr = refused(&stage.daemon.lanyard(&["send", &id, "hello"]), "agent_not_configured");
    assert!(stderr.contains("lanyard migrate"), "{stderr}");
}

/// FND-N4: the demo agent only by its name.
#[test]
fn fnd_n4_no_agent_is_chosen_in_silence() {
    let none = Daemon::start(Setup::default());
    let stderr = refused(&none.lanyard(&["run", "fix the failing test"]), "agent_none_configured");
    assert!(stderr.contains("lanyard init") && stderr.contains("lanyard demo"), "{stderr}");
    assert_eq!(none.request("GET", "/api/v1/sessions", &[], None).json()["sessions"], json!([]));
    let demo = none.lanyard(&["run", "--agent", "demo", "--cwd", "/tmp", "/say hello"]);
    assert_eq!(String::from_utf8_lossy(&demo.stdout), "hello\n");
    let demo = none.lanyard(&["demo", "/say the same"]);
    assert_eq!(String::from_utf8_lossy(&demo.stdout), "the same\n");

    let two = Stage::of(&[("a", &[], ""), ("b", &[], "")]);
    let stderr = refused(&two.daemon.lanyard(&["run", "fix the failing test"]), "agent_default_missing");
    assert!(stderr.contains("a, b") && stderr.contains("default_agent"), "{stderr}");
    let task = json!({"title": "t", "prompt": "x", "workspace": two.work()});
    assert_eq!(two.post("/tasks", &task).code(), "agent_default_missing");

    let one = Stage::new();
    let work = one.work().display().to_string();
    let ran = one.daemon.lanyard(&["run", "--cwd", &work, "/say the only one"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "the only one\n");
}

fn hand_over(stage: &Stage, talk: &Talk<'_>, agent: &str) -> String {
    let done = stage.daemon.lanyard(&["migrate", &talk.id, "--agent", agent, "--reason", "better at it"]);
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    stderr
}

/// FND-N1: the witness is the second agent's own record of its first prompt.
#[test]
fn fnd_n1_another_agent_is_given_the_conversation_and_the_label_says_how() {
    let stage = Stage::of(&[
        ("a", &[], ""),
        ("b", &["--no-load"], ""),
        ("c", &["--start-delay", "1"], "resume = [\"native\", \"preamble\"]\n"),
    ]);
    for (agent, label, heading) in [
        ("b", "replayed", "You take this conversation over from another agent. This is all of it"),
        ("c", "preamble", "You take this conversation over from another agent. This is a summary"),
    ] {
        let mut talk = stage.talk();
        talk.answer_to(&format!("remember the blue door of {agent}\n/say I remember it for {agent}"));
        let said = hand_over(&stage, &talk, agent);
        assert!(said.contains(&format!("continuity {label}")), "{said}");
        talk.answer_to("/say on");
        let moved = talk.all("session.migrated")[0].clone();
        assert_eq!(moved["data"]["continuity"], label, "{moved:#}");
        let ready = talk.all("run.ready").last().unwrap()["data"].clone();
        assert_eq!(ready["continuity"], label, "{ready:#}");
        let told = stage.memory();
        let prompt = told.split(heading).nth(1).unwrap_or_else(|| panic!("no heading in {told}"));
        assert!(prompt.contains(&format!("user: remember the blue door of {agent}")), "{told}");
        assert!(prompt.contains(&format!("you: I remember it for {agent}")), "{told}");
        assert_eq!(talk.answer_to("/say further"), "further");
        assert_eq!(stage.memory().matches(heading).count(), 1, "told once");
    }
}

/// FND-N1: the same program loads the same conversation, and a session without one has nothing to carry.
#[test]
fn fnd_n1_the_same_program_under_another_name_loads_the_conversation() {
    let stage = Stage::of(&[("a", &[], ""), ("twin", &[], "")]);
    let fresh = stage.talk();
    assert!(!hand_over(&stage, &fresh, "twin").contains("continuity"));
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    assert!(hand_over(&stage, &talk, "twin").contains("continuity native"));
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.all("run.ready").last().unwrap()["data"]["continuity"], "native");
}
