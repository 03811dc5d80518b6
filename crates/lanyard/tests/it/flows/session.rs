//! Going on with the same session, and when that is not offered.

use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, corrections, id, work};

/// What one conversation of a role was told, that has this in it.
fn conversation(stage: &Stage, role: &str, words: &str) -> String {
    let told = stage.told(role);
    let found: Vec<&String> = told.iter().filter(|text| text.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {told:?}");
    found[0].clone()
}

/// S2-02, S2-03, S2-04, S2-09, S2-16, S2-17, S2-18, S2-20, S2-T5, S2-T6: the session that needed a person goes on with what
/// the person said and with everything it knew.
/// S2-21: one session, continued and not made anew.
#[test]
fn a_session_that_needs_a_person_is_continued() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    assert!(id(&gate, "reason").contains("Which greeting?"), "{gate}");
    assert_eq!(gate["evidence"], "there are two");
    let payload = &gate["continue_session"];
    assert_eq!((&payload["resume_state"], &payload["role"]), (&json!("execute"), &json!("author")));
    assert_eq!(payload["probe"]["exists"], true);
    let session = id(payload, "session");

    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", Some("The short one."));
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);

    let invoked = stage.events(&flow, "flow.invoked");
    assert_eq!((&invoked[1]["session"], &invoked[1]["continues"]), (&json!(session), &json!(true)));
    assert_eq!(invoked[1]["guidance"], "The short one.");
    // The agent had one conversation, in which the first prompt comes once and the second is short.
    let told = conversation(&stage, "author", "The short one.");
    assert_eq!(stage.told("author").len(), 1, "no other was begun");
    let place = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words} in {told}"));
    assert!(place("Work on one phase of a plan") < place("Continue the current session"));
    assert_eq!(told.matches("Work on one phase of a plan").count(), 1, "S2-17: nothing is sent again");
    assert_eq!(told.matches("Continue the current session and complete all remaining tasks.").count(), 1);
    assert_eq!(told.matches("The short one.").count(), 1, "S2-B09");
    let shown = stage.show(&flow);
    assert_eq!(
        (&shown["pending"], &shown["gate"]["answered"]["choice"]),
        (&Value::Null, &json!("continue_session"))
    );
}

/// FND-M2 (S2-09, S2-12): an author that asks again after `c` can be answered with `c` again, in the same conversation.
#[test]
fn fnd_m2_a_continued_author_that_asks_again_is_offered_again() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let mut gate = stage.gate(&flow, "needs_human");
    let session = gate["continue_session"]["session"].clone();
    for turn in ["more", "still-more"] {
        stage.author(turn, HELP);
        stage.answer(&flow, &gate, "continue_session", Some(turn));
        let before = gate["id"].clone();
        let asks = |seen: &Value| seen["gate"]["id"] != before && seen["gate"]["answered"].is_null();
        gate = stage.until(&flow, "asking again", asks)["gate"].clone();
        assert_eq!(gate["code"], "needs_human", "{gate}");
        assert_eq!(gate["continue_session"]["session"], session, "{gate}");
        assert_eq!(gate["not_offered"], Value::Null, "{gate}");
    }
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", None);
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "more", "still-more", "rest", "look"]);
    assert_eq!(stage.told("author").len(), 1, "one conversation");
}

/// S2-12, S2-T7: a continuation that failed is not offered again; a new session is.
#[test]
fn a_continuation_that_fails_is_not_offered_again() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.author("still-half", r#"{"status":"failed","reason":"I cannot."}"#);
    stage.answer(&flow, &gate, "continue_session", None);
    let second = stage.gate(&flow, "author_failed");
    assert_eq!(second["continue_session"], Value::Null);
    assert!(second["not_offered"].is_string(), "{second}");
    let path = format!("/flows/{flow}/gates/{}", id(&second, "id"));
    let refused = stage.no(&path, &json!({ "choice": "continue_session" }));
    assert_eq!(refused, (409, "choice_not_offered".to_owned()));
    assert_eq!(stage.gate(&flow, "author_failed")["id"], second["id"], "it still waits");

    stage.author("whole", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &second, "continue", Some("Begin anew."));
    stage.settled(&flow, "completed");
    let invoked = stage.events(&flow, "flow.invoked");
    assert_ne!(invoked[2]["session"], invoked[1]["session"]);
    assert!(conversation(&stage, "author", "Begin anew.").contains("Work on one phase of a plan"));
    assert_eq!(stage.lines("turns"), ["half", "still-half", "whole", "look"]);
}

/// S2-13, S2-T8, S2-B06: what the reviewer found is for the author, so the reviewer's session is not offered.
#[test]
fn another_role_does_not_continue_a_session() {
    let stage = Stage::new();
    stage.author("greet", DONE);
    stage.reviewer("look", &corrections("which language?", "human_required"));
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "review_items");
    assert_eq!(gate["continue_session"], Value::Null);
    let why = "the last session is the reviewer's, and the next step is the author's";
    assert_eq!(gate["not_offered"], why, "FND-M2");
    assert_eq!((&gate["next"], &gate["items"][0]["id"]), (&json!("auto_fix"), &json!("R1")));
    stage.author("translate", DONE);
    stage.reviewer("look-again", READY);
    stage.answer(&flow, &gate, "continue", Some("French."));
    stage.settled(&flow, "completed");
    let invoked = stage.events(&flow, "flow.invoked");
    assert_eq!(invoked[2]["fork_of"], invoked[0]["session"], "the author's own is forked");
    assert_ne!(invoked[2]["session"], invoked[0]["session"]);
    assert_eq!(stage.lines("turns"), ["greet", "look", "translate", "look-again"]);
}

/// A verdict that says no and not why asks a person, who may have the reviewer go on (S2-09).
#[test]
fn a_reviewer_that_does_not_say_why_is_continued() {
    let stage = Stage::new();
    stage.author("greet", DONE);
    stage.reviewer("look", r#"{"readiness":"not_ready"}"#);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "review_without_items");
    let payload = &gate["continue_session"];
    assert_eq!((&payload["resume_state"], &payload["role"]), (&json!("review"), &json!("reviewer")));
    stage.reviewer("look-closer", READY);
    stage.answer(&flow, &gate, "continue_session", Some("Say why."));
    stage.settled(&flow, "completed");
    let told = conversation(&stage, "reviewer", "Say why.");
    assert!(told.contains("Continue the current session and complete your review."), "{told}");
    assert_eq!(stage.lines("turns"), ["greet", "look", "look-closer"]);
}

/// S2-26, S2-B02, S2-B03: a session that is gone by the time of the answer cannot be continued; the gate stays, and says so.
#[test]
fn a_session_that_is_gone_is_no_longer_offered() {
    let stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    let session = id(&gate["continue_session"], "session");
    stage.ok(&format!("/sessions/{session}/stop"), &json!({ "now": true }));
    super::kit::until("the session to end", || {
        stage.get(&format!("/sessions/{session}"))["state"] == "stopped"
    });
    let path = format!("/flows/{flow}/gates/{}", id(&gate, "id"));
    let refused = stage.no(&path, &json!({ "choice": "continue_session", "guidance": "go" }));
    assert_eq!(refused, (409, "continuation_gone".to_owned()));
    let gate = stage.gate(&flow, "needs_human");
    assert_eq!(gate["continue_session"], Value::Null);
    assert!(id(&gate, "not_offered").contains("gone"), "{gate}");
    stage.author("whole", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue", None);
    stage.settled(&flow, "completed");
}

/// S2-B03: an agent that dies is lost for a moment only: the same session goes on by itself, and nobody is asked.
#[test]
fn a_turn_that_is_lost_is_gone_on_with() {
    let stage = Stage::new();
    stage.script("author", "/run echo half >> SIGNS/turns\n/die");
    stage.script("author", &work("rest"));
    stage.script("author", &format!("/say! {DONE}"));
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.settled(&flow, "completed");
    let invoked = stage.events(&flow, "flow.invoked");
    assert_eq!((&invoked[1]["session"], &invoked[1]["continues"]), (&invoked[0]["session"], &json!(true)));
    assert_eq!(stage.events(&flow, "flow.retried").len(), 1);
    assert_eq!(stage.events(&flow, "flow.gate_opened"), Vec::<Value>::new());
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
}

/// What an agent answers and nobody can read is asked for once more, with what is wrong; then a person is asked.
#[test]
fn an_answer_nobody_can_read_is_repaired_once() {
    let stage = Stage::new();
    stage.author("greet", "It went well!");
    stage.script("author", &format!("/say! Here it is:\\n```json\\n{DONE}\\n```"));
    stage.reviewer("look", r#"{"readiness":"splendid"}"#);
    stage.script("reviewer", r#"/say! {"readiness":"splendid","items":[]}"#);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "unreadable");
    let asked = stage.events(&flow, "flow.asked");
    let stages: Vec<String> = asked.iter().map(|one| id(one, "stage")).collect();
    assert_eq!(stages, ["summary", "repair", "summary", "repair"]);
    assert!(asked[1]["fault"].is_string() && asked[3]["fault"].is_string(), "{asked:?}");
    assert!(conversation(&stage, "author", "It went well!").contains("Your answer cannot be used"));
    assert_eq!(gate["continue_session"]["role"], "reviewer");
    stage.reviewer("look-again", READY);
    stage.answer(&flow, &gate, "continue_session", Some("Use the words of the schema."));
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look", "look-again"]);
}

/// `complete` without a commit, or with one that is not there, is not taken.
#[test]
fn a_commit_is_named_and_there() {
    let stage = Stage::new();
    stage.author("greet", r#"{"status":"complete"}"#);
    stage.script(
        "author",
        r#"/say! {"status":"complete","commit":"0123456789012345678901234567890123456789"}"#,
    );
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "unreadable");
    assert!(id(&gate, "reason").contains("0123456789"), "{gate}");
    let asked = stage.events(&flow, "flow.asked");
    assert!(id(&asked[1], "fault").contains("commit"), "{asked:?}");
}

/// S1-36: the same issues three times without a better score ask a person, with that as the reason.
#[test]
fn a_flow_that_goes_in_circles_asks() {
    let stage = Stage::new();
    for round in 1..=3 {
        stage.author(&format!("try-{round}"), DONE);
        stage.reviewer(&format!("look-{round}"), &corrections("say it louder", "auto_fix"));
    }
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "stalled_issues");
    assert_eq!((&gate["iteration"], &gate["items"][0]["id"]), (&json!(3), &json!("R1")));
    assert_eq!(stage.scripts_left(), 0);
    stage.answer(&flow, &gate, "approve", None);
    assert_eq!(stage.settled(&flow, "completed")["phases"][0]["state"], "overridden");
}

/// FND-R13. The commit the branch began at is nobody's work: an author that names it is asked once more with the reason,
/// and then a person is.
#[test]
fn fnd_r13_a_commit_that_is_not_new_is_no_work() {
    let stage = Stage::new();
    let base = super::kit::git(&stage.repo(), &["rev-parse", "HEAD"]);
    let says = format!("/say! {}", DONE.replace("COMMIT", base.trim()));
    stage.script("author", "/run echo idle >> SIGNS/turns");
    stage.script("author", &says);
    stage.script("author", &says);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "unreadable");
    assert!(id(&gate, "reason").contains("is not new"), "{gate}");
    let asked = stage.events(&flow, "flow.asked");
    assert!(asked[1]["fault"].as_str().unwrap().contains("git commit --allow-empty"), "{asked:?}");
    stage.author("greet", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", Some("Do the work, then commit it."));
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["idle", "greet", "look"]);
}
