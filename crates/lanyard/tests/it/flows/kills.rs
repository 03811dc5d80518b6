//! The daemon dies: at each named place in the care for flows, and while a gate waits. No turn and no command is done twice,
//! and no answer is lost.

use lanyard_base::failpoint::OF_FLOWS;
use serde_json::{Value, json};

use super::kit::{DONE, HELP, READY, Stage, corrections, id, until};

/// S2-B01, X-06: the gate is open after the restart, with everything it offered, and the answer is heard.
#[test]
fn a_gate_is_answered_after_a_restart() {
    let mut stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.up();
    assert_eq!(stage.gate(&flow, "needs_human"), gate, "the same question with the same answers");
    assert_eq!(stage.get("/gates")["flows"][0]["gate"], gate);
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", Some("The short one."));
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
    let told = stage.told("author");
    assert_eq!(told.len(), 1, "one conversation");
    assert_eq!(told[0].matches("Work on one phase of a plan").count(), 1);
    assert_eq!(told[0].matches("The short one.").count(), 1);
    let leased = stage.events(&flow, "flow.leased");
    let epochs: Vec<u64> = leased.iter().map(|one| one["epoch"].as_u64().unwrap()).collect();
    assert_eq!(epochs, [1, 2], "S2-B05: whoever comes later has a higher number");
    assert_eq!(leased[1]["from"], leased[0]["holder"], "the takeover is shown");
}

/// The agent and the daemon are both gone while the gate waits: its conversation is taken up again.
#[test]
fn a_session_without_a_process_is_continued_after_a_restart() {
    let mut stage = Stage::new();
    stage.author("half", HELP);
    let flow = stage.begin(&json!({}));
    let gate = stage.gate(&flow, "needs_human");
    stage.lose_everything();
    stage.up();
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.answer(&flow, &gate, "continue_session", Some("The short one."));
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
    assert_eq!(stage.told("author").len(), 1, "one conversation");
}

/// A turn that comes to its end while there is no daemon is found finished.
#[test]
fn a_turn_outlives_the_daemon() {
    let mut stage = Stage::new();
    stage.script("author", &format!("/wait-file SIGNS/go\n{}\n/touch SIGNS/over", super::kit::work("greet")));
    stage.script("author", &format!("/say! {DONE}"));
    stage.reviewer("look", READY);
    let flow = stage.begin(&json!({}));
    until("the author to work", || stage.scripts_left() == 3);
    stage.daemon.kill_9();
    stage.touch("go");
    stage.await_sign("over");
    stage.up();
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["greet", "look"]);
}

/// A turn that was lost with everything is gone on with in its own conversation, by itself.
#[test]
fn a_turn_that_was_lost_with_everything_is_gone_on_with() {
    let mut stage = Stage::new();
    stage.script("author", "/run echo half >> SIGNS/turns\n/wait-file SIGNS/never");
    let flow = stage.begin(&json!({}));
    stage.await_line("turns");
    stage.lose_everything();
    stage.author("rest", DONE);
    stage.reviewer("look", READY);
    stage.up();
    stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), ["half", "rest", "look"]);
    let told = stage.told("author");
    assert_eq!(told.len(), 1, "one conversation");
    assert_eq!(told[0].matches("Work on one phase of a plan").count(), 1);
    assert_eq!(stage.events(&flow, "flow.gate_opened"), Vec::<Value>::new(), "nobody was asked");
}

/// A flow with something of everything: checks that fail and pass, a correction, a gate, two phases.
fn rich() -> Stage {
    let command = "echo run >> SIGNS/checks; test $(wc -l < work.txt) -ge 2";
    let command = serde_json::to_string(&["sh", "-c", command]).unwrap();
    // A turn that died with its daemon before its agent heard of it is begun again; here that happens more often than
    // anybody would put up with.
    let stage = Stage::with(&format!(
        "rules.phase_gate = \"auto\"\nrules.auto_retries = 100\nrules.stall_repeats = 100\n[[flow.quality]]\nname = \"tests\"\ncommand = {command}"
    ));
    stage.plan(&["Greet", "Part"]);
    stage.author("one", DONE);
    stage.author("two", DONE);
    stage.reviewer("look", &corrections("say it louder", "auto_fix"));
    stage.author("louder", HELP);
    stage.author("loudest", DONE);
    stage.reviewer("look-again", READY);
    stage.author("part", DONE);
    stage.reviewer("look-once-more", READY);
    stage
}

const TURNS: [&str; 8] = ["one", "two", "look", "louder", "loudest", "look-again", "part", "look-once-more"];
/// After `one`, `two`, `loudest` and `part`.
const CHECKS: usize = 4;

/// Answers the gate, if the daemon lives to hear it.
fn try_answer(stage: &Stage, flow: &str, gate: &Value) {
    let path = format!("/api/v1/flows/{flow}/gates/{}", id(gate, "id"));
    let body = json!({ "choice": "continue_session", "guidance": "The short one." }).to_string();
    if let Ok(answer) = stage.daemon.caller().try_request("POST", &path, &[], Some(&body)) {
        assert!(answer.status < 400 || answer.status == 503, "{}", answer.text());
    }
}

/// Lets one daemon after the other do a little and die at a place, until the flow is over.
fn die_often(place: &str, nth: u32) {
    let mut stage = rich();
    let flow = stage.begin(&json!({}));
    let mut deaths = 0;
    loop {
        // Further on as time goes by: what a daemon does in one go must come to its end some day.
        stage.up_to(&format!("{place}:{}", nth + deaths / 25));
        until("the daemon to die, or the flow to end", || {
            let Some(seen) = stage.glimpse(&flow) else { return !stage.daemon.is_alive() };
            if seen["gate"].is_object() && seen["gate"]["answered"].is_null() {
                try_answer(&stage, &flow, &seen["gate"]);
            }
            seen["settled"] == true
        });
        if stage.daemon.is_alive() {
            break;
        }
        deaths += 1;
        assert!(deaths < 200, "{place}:{nth} does not come to an end");
    }
    assert!(deaths > 3, "{place}:{nth} was hardly met");
    let shown = stage.settled(&flow, "completed");
    assert_eq!(stage.lines("turns"), TURNS, "{place}:{nth}");
    assert_eq!(stage.lines("checks").len(), CHECKS, "{place}:{nth}");
    assert_eq!(stage.scripts_left(), 0, "{place}:{nth}");
    let said = stage.told("author").concat().matches("The short one.").count();
    assert_eq!(said, 1, "{place}:{nth}: S2-B09");
    assert_eq!(stage.events(&flow, "flow.gate_answered").len(), 1);
    let branch = id(&shown["tree"], "branch");
    let kept = super::kit::git(&stage.repo(), &["show", &format!("{branch}:work.txt")]);
    assert_eq!(kept, "one\ntwo\nlouder\nloudest\npart\n");
}

/// S2-B09, S2-B10: nothing is done twice and nothing is left out, wherever the daemon dies.
#[test]
fn nothing_is_done_twice_when_the_daemon_dies_before_it_writes() {
    // The first that a daemon writes is that it drives the flow.
    die_often(OF_FLOWS[0], 3);
}

#[test]
fn nothing_is_done_twice_when_the_daemon_dies_after_it_wrote() {
    die_often(OF_FLOWS[1], 2);
}

#[test]
fn nothing_is_done_twice_when_the_daemon_dies_before_it_acts() {
    die_often(OF_FLOWS[2], 2);
}

#[test]
fn nothing_is_done_twice_when_the_daemon_dies_after_it_acted() {
    assert_eq!(OF_FLOWS.len(), 4, "a new place needs a test");
    die_often(OF_FLOWS[3], 1);
}
