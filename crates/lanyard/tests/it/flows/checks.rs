//! Quality commands: they pass, fail, hang, are not there, and outlive the daemon.

use serde_json::{Value, json};

use super::kit::{DONE, READY, Stage, id, until};

fn quality(command: &str, more: &str) -> String {
    let command = serde_json::to_string(&["sh", "-c", command]).unwrap();
    format!("[[flow.quality]]\nname = \"tests\"\ncommand = {command}\n{more}\n")
}

/// A command that fails is told to the author, with what it wrote, until it passes.
#[test]
fn a_check_that_fails_goes_back_to_the_author() {
    let command =
        "echo run >> SIGNS/checks; test $(wc -l < work.txt) -ge 2 || { echo too short >&2; exit 3; }";
    let stage = Stage::with(&format!("rules.phase_gate = \"auto\"\n{}", quality(command, "")));
    stage.author("one", DONE);
    stage.author("two", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.settled(&flow, "completed");
    let ended = stage.events(&flow, "flow.check_ended");
    assert_eq!((&ended[0]["result"]["passed"], &ended[0]["result"]["exit_code"]), (&json!(false), &json!(3)));
    assert!(id(&ended[0]["result"], "output").contains("too short"), "{ended:?}");
    assert_eq!(ended[1]["result"]["passed"], true);
    assert_eq!(stage.lines("checks"), ["run", "run"]);
    assert_eq!(stage.lines("turns"), ["one", "two", "look"]);
    assert!(stage.told("author").iter().any(|told| told.contains("too short")));
}

/// After as many tries as are allowed a person is asked, and sees what the command wrote.
#[test]
fn a_check_that_fails_for_good_asks_a_person() {
    let stage = Stage::with(&format!(
        "rules.phase_gate = \"auto\"\nrules.quality_retries = 1\n{}",
        quality("echo run >> SIGNS/checks; echo no $(wc -l < work.txt); exit 1", "")
    ));
    stage.author("one", DONE);
    stage.author("two", DONE);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "quality_failed");
    assert!(id(&gate, "evidence").contains("no 2"), "{gate}");
    assert_eq!(stage.lines("checks"), ["run", "run"]);
    stage.reviewer("look", READY);
    // Overridden, the phase is over as it is: nobody looks at it.
    stage.answer(&flow, &gate, "approve", None);
    assert_eq!(stage.settled(&flow, "completed")["phases"][0]["state"], "overridden");
}

/// A command that hangs is ended with everything it started (S2-B10).
#[test]
fn a_check_that_hangs_is_ended_with_all_it_started() {
    let command = "sleep 4321 & echo waiting; echo run >> SIGNS/checks; trap '' TERM; sleep 4322; wait";
    let stage = Stage::with(&format!(
        "rules.phase_gate = \"auto\"\nrules.quality_retries = 0\n{}",
        quality(command, "timeout_ms = 2000")
    ));
    stage.author("one", DONE);
    let flow = stage.begin(&json!({}));
    until("the command to run", || stage.running("sleep 4321") == 1);
    let gate = stage.gate(&flow, "quality_failed");
    assert!(id(&gate, "evidence").contains("waiting"), "{gate}");
    assert_eq!(stage.running("sleep 432"), 0);
    let ended = stage.events(&flow, "flow.check_ended");
    assert_eq!(
        (&ended[0]["result"]["timed_out"], &ended[0]["result"]["passed"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(stage.lines("checks"), ["run"]);
}

/// A command that is not there asks a person at once: no author can mend the config.
#[test]
fn a_check_that_is_missing_asks_a_person() {
    let stage = Stage::with(
        "rules.phase_gate = \"auto\"\n[[flow.quality]]\nname = \"lint\"\ncommand = [\"no-such-linter\", \"--all\"]",
    );
    stage.author("one", DONE);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "quality_not_started");
    assert!(id(&gate, "reason").contains("lint"), "{gate}");
    assert_eq!(gate["continue_session"], Value::Null);
    assert_eq!(stage.lines("turns"), ["one"]);
}

/// A command that came to its end while there was no daemon is not run again.
#[test]
fn a_check_outlives_the_daemon() {
    let command = "echo run >> SIGNS/checks; until test -e SIGNS/go; do sleep 0.05; done; echo over >> SIGNS/over; echo fine";
    let mut stage = Stage::with(&format!("rules.phase_gate = \"auto\"\n{}", quality(command, "")));
    stage.author("one", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.await_line("checks");
    stage.daemon.kill_9();
    stage.touch("go");
    stage.await_line("over");
    stage.up();
    stage.settled(&flow, "completed");
    assert_eq!((stage.lines("checks").len(), stage.lines("over").len()), (1, 1));
    let ended = stage.events(&flow, "flow.check_ended");
    assert_eq!(
        (&ended[0]["result"]["passed"], &ended[0]["result"]["output"]),
        (&json!(true), &json!("fine\n"))
    );
}

/// One that still runs is gone on with by the next daemon.
#[test]
fn a_check_that_still_runs_is_taken_over() {
    let command = "echo run >> SIGNS/checks; until test -e SIGNS/go; do sleep 0.05; done";
    let mut stage = Stage::with(&format!("rules.phase_gate = \"auto\"\n{}", quality(command, "")));
    stage.author("one", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.await_line("checks");
    stage.up();
    stage.until(&flow, "at its check", |seen| seen["check"].is_object());
    stage.touch("go");
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("checks"), ["run"]);
}

/// One that was lost with everything else never came to its end, and is run again.
#[test]
fn a_check_that_was_lost_is_run_again() {
    let command =
        "echo run >> SIGNS/checks; until test -e SIGNS/go; do sleep 0.05; done; echo over >> SIGNS/over";
    let mut stage = Stage::with(&format!("rules.phase_gate = \"auto\"\n{}", quality(command, "")));
    stage.author("one", DONE);
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    stage.await_line("checks");
    stage.lose_everything();
    stage.touch("go");
    stage.up();
    stage.settled(&flow, "completed");
    assert_eq!((stage.lines("checks").len(), stage.lines("over").len()), (2, 1));
    assert_eq!(stage.lines("turns"), ["one", "look"]);
}

/// What a command writes is kept as far as it helps: the end of it.
#[test]
fn much_output_is_cut_at_its_beginning() {
    let command = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 1";
    let stage = Stage::with(&format!("rules.quality_retries = 0\n{}", quality(command, "")));
    stage.author("one", DONE);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "quality_failed");
    assert!(id(&gate, "evidence").ends_with("line 19999\n"), "{gate}");
    let ended = stage.events(&flow, "flow.check_ended");
    let output = id(&ended[0]["result"], "output");
    assert!(output.len() <= 32 * 1024 && output.ends_with("line 19999\n"));
    assert_eq!(ended[0]["result"]["truncated"], true);
}
