//! Time and budgets of a turn.

use super::kit::{Stage, interrupted, tried};

/// S2-22.
#[test]
fn a_turn_that_takes_too_long_keeps_its_conversation() {
    let stage = Stage::with(&[], "turn_timeout_ms = 300\n");
    let mut talk = stage.talk();
    let end = talk.ask("/say begun\n/wait 60000");
    assert!(interrupted(&end, "timeout").contains("300 ms"), "{end:#}");
    assert_eq!(talk.answer_to("/recall"), "I know 1 earlier prompt: /say begun /wait 60000");
    assert_eq!(talk.runs(), 1, "the same process");
}

/// S2-23.
#[test]
fn an_agent_can_be_set_to_end_with_a_turn_that_takes_too_long() {
    let stage = Stage::with(&[], "turn_timeout_ms = 300\nabort_on_timeout = true\n");
    let mut talk = stage.talk();
    interrupted(&talk.ask("/wait 60000"), "timeout");
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["agent", "term"], "{ended:#}");
    assert!(ended["data"]["reason"].as_str().unwrap().contains("took too long"));
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.all("run.ready")[1]["data"]["continuity"], "native");
}

/// For the log the turn is over, for the agent not yet: the next prompt waits for it.
#[test]
fn a_prompt_after_a_timeout_waits_for_the_agent_to_come_to_rest() {
    let stage = Stage::with(&[], "turn_timeout_ms = 300\n");
    let mut talk = stage.talk();
    interrupted(&talk.ask("/answer-late 600\n/wait 60000"), "timeout");
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"));
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_prompt_after_a_timeout_waits_for_a_new_process_if_it_must() {
    let stage = Stage::with(&[], "turn_timeout_ms = 300\ncancel_grace_ms = 500\n");
    let mut talk = stage.talk();
    interrupted(&talk.ask("/ignore-cancel\n/ignore-term\n/wait 60000"), "timeout");
    assert!(talk.answer_to("/recall").starts_with("I know 1 earlier prompt"), "{:#?}", talk.seen);
    assert_eq!(talk.runs(), 2);
}

#[test]
fn a_budget_of_time_is_a_limit() {
    let stage = Stage::with(&[], "budget = { time_ms = 300 }\n");
    let mut talk = stage.talk();
    assert!(interrupted(&talk.ask("/wait 60000"), "limit").contains("300 ms"));
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_budget_of_tool_calls_is_a_limit() {
    let stage = Stage::with(&[], "budget = { tool_calls = 2 }\n");
    let mut talk = stage.talk();
    assert_eq!(talk.answer_to("/repeat 2 /tool read {}\n/say fine"), "fine", "as many as it may");
    let end = talk.ask("/repeat 3 /tool read {}\n/wait 60000");
    assert!(interrupted(&end, "limit").contains("2 tool calls"), "{end:#}");
    assert_eq!(talk.answer_to("/say on"), "on", "each turn has its own");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_budget_of_tokens_is_a_limit() {
    let stage = Stage::with(&[], "budget = { tokens = 1000 }\n");
    let mut talk = stage.talk();
    assert_eq!(talk.ask("/usage 600 400")["type"], "turn.finished");
    let end = talk.ask("/usage 600 401");
    assert!(interrupted(&end, "limit").contains("1000 tokens"), "{end:#}");
    assert_eq!(talk.answer_to("/say on"), "on");
    assert_eq!(talk.runs(), 1);
}

#[test]
fn a_process_nobody_needs_is_let_go_and_comes_back() {
    let stage = Stage::with(&[], "keep_alive_ms = 200\n");
    let mut talk = stage.talk();
    talk.answer_to("/say one");
    let ended = talk.run_over();
    assert_eq!(tried(&ended), ["term"]);
    assert_eq!(talk.record()["state"], "between_turn", "nothing was interrupted");
    assert_eq!(talk.answer_to("/recall"), "I know 1 earlier prompt: /say one");
}
