//! The ends of flows: cancelled, taken up again, reported.

use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, git, id, until};

/// S2-11: a cancel leads to the end and asks nobody; what works for the flow ends.
#[test]
fn a_flow_that_is_cancelled_is_aborted_without_a_gate() {
    let stage = Stage::new();
    stage.script("author", "/run echo half > work.txt; echo half >> SIGNS/turns\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    stage.await_line("turns");
    stage.ok(&format!("/flows/{flow}/cancel"), &json!({ "reason": "lunch" }));
    let shown = stage.settled(&flow, "aborted");
    assert_eq!(shown["reason"], "lunch");
    assert_eq!(stage.events(&flow, "flow.gate_opened"), Vec::<Value>::new());
    let session = id(&stage.events(&flow, "flow.invoked")[0], "session");
    until("the turn to end", || stage.get(&format!("/sessions/{session}"))["state"] != "executing");
    // What was not committed is kept on the branch.
    let branch = id(&shown["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:work.txt")]), "half\n");
    // Once more changes nothing.
    stage.ok(&format!("/flows/{flow}/cancel"), &json!({}));
    assert_eq!(stage.show(&flow)["reason"], "lunch");
}

/// S2-11: so does ending the turn or the session of its agent.
#[test]
fn a_turn_that_somebody_cancels_aborts_the_flow() {
    let stage = Stage::new();
    for end in ["cancel", "stop"] {
        stage.script("author", &format!("/touch SIGNS/{end}\n/wait-file SIGNS/never"));
        let flow = stage.begin(&json!({}));
        stage.await_sign(end);
        let session = id(&stage.events(&flow, "flow.invoked")[0], "session");
        stage.ok(&format!("/sessions/{session}/{end}"), &json!({}));
        let shown = stage.settled(&flow, "aborted");
        assert!(id(&shown, "reason").contains("author"), "{shown}");
        assert_eq!(stage.events(&flow, "flow.gate_opened"), Vec::<Value>::new(), "{end}");
    }
}

/// An aborted flow is taken up again where it was, in its worktree, with what was done.
#[test]
fn an_aborted_flow_goes_on_where_it_was() {
    let stage = Stage::new();
    stage.plan(&["Greet", "Part"]);
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    stage.script("author", "/touch SIGNS/second\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    stage.await_sign("second");
    let (status, code) = stage.no(&format!("/flows/{flow}/resume"), &json!({}));
    assert_eq!((status, code.as_str()), (409, "flow_not_aborted"));
    stage.ok(&format!("/flows/{flow}/cancel"), &json!({}));
    stage.settled(&flow, "aborted");
    stage.author("part", DONE);
    stage.reviewer("look-again", READY);
    stage.ok(&format!("/flows/{flow}/resume"), &json!({}));
    let shown = stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look", "part", "look-again"]);
    let branch = id(&shown["tree"], "branch");
    assert_eq!(git(&stage.repo(), &["show", &format!("{branch}:work.txt")]), "greet\npart\n");
    let (status, code) = stage.no(&format!("/flows/{flow}/cancel"), &json!({}));
    assert_eq!((status, code.as_str()), (409, "flow_ended"));
}

/// A question that was open when the flow was aborted is asked again.
#[test]
fn a_gate_is_open_again_after_a_resume() {
    let mut stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.ok(&format!("/flows/{flow}/cancel"), &json!({}));
    stage.settled(&flow, "aborted");
    assert_eq!(stage.asking(), Vec::<Value>::new());
    let path = format!("/flows/{flow}/gates/{}", id(&gate, "id"));
    let (status, code) = stage.no(&path, &json!({ "choice": "approve" }));
    assert_eq!((status, code.as_str()), (409, "flow_ended"));
    stage.up();
    stage.ok(&format!("/flows/{flow}/resume"), &json!({}));
    let again = stage.gate(&flow, "needs_human");
    stage.author("whole", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &again, "continue", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "whole", "look"]);
}

/// What became of a flow can be read by people and by programs.
#[test]
fn a_flow_is_reported() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", Some("The short one."));
    stage.settled(&flow, "completed");
    let told = stage.get(&format!("/flows/{flow}/report"));
    let text = id(&told, "markdown");
    for words in ["A polite program", "Greet", "Which greeting?", "The short one."] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(told["report"]["title"], "A polite program");
}
