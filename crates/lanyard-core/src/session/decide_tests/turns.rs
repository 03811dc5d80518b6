//! Turns: how they begin, how they end, and when they cannot begin.

use super::*;

/// S1-09, S1-18: the first message opens a new conversation.
#[test]
fn the_first_turn_opens_a_new_conversation() {
    check(
        given([]),
        start_turn(1),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=new} prompt=go turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

/// S1-24.
#[test]
fn a_custom_session_starts_like_any_other() {
    check(
        in_state(StateName::Custom),
        start_turn(1),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=new} prompt=go turn=turn#1
            do RunTurn { turn: turn#1 }
            custom -> executing
        "#]],
    );
}

/// S1-10, S1-21: waiting for the user is a state of its own, and a message ends it.
#[test]
fn the_next_turn_continues_the_conversation() {
    check(
        in_state(StateName::BetweenTurn),
        start_turn(2),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            between_turn -> executing
        "#]],
    );
}

/// S1-14.
#[test]
fn a_compacted_session_goes_on() {
    check(
        in_state(StateName::Compacted),
        start_turn(2),
        expect![[r#"
            turn.started governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            compacted -> executing
        "#]],
    );
}

/// S1-22, S1-B07: whatever the cause, an interrupted session can be resumed.
#[test]
fn an_interrupted_session_goes_on() {
    check(
        in_state(StateName::Interrupted),
        start_turn(2),
        expect![[r#"
            turn.started governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            interrupted -> executing
        "#]],
    );
}

/// S1-06.
#[test]
fn an_idle_session_goes_on() {
    check(
        in_state(StateName::Idle),
        start_turn(2),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            idle -> executing
        "#]],
    );
}

/// S1-16, S1-18: a return after days is told from a new conversation, and says how long it was.
#[test]
fn a_stale_session_is_returned_to() {
    check(
        in_state(StateName::Stale).later(50 * HOUR),
        start_turn(2),
        expect![[r#"
            turn.started memory={mode=session_only} opening={after_ms=180003000 kind=returned} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            stale -> executing
        "#]],
    );
}

/// S1-B10: a clock that was set back does not make the time away negative.
#[test]
fn a_return_after_the_clock_was_set_back_was_away_for_no_time() {
    let mut given = in_state(StateName::Stale);
    given.now = crate::Timestamp::from_millis(0);
    check(
        given,
        start_turn(2),
        expect![[r#"
            turn.started memory={mode=session_only} opening={after_ms=0 kind=returned} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            stale -> executing
        "#]],
    );
}

/// S3-14: one turn at a time; the refusal names the one that runs.
#[test]
fn a_second_turn_is_refused_while_one_runs() {
    check(
        in_state(StateName::Executing),
        start_turn(2),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=start_turn state=executing
            executing
        "#]],
    );
}

#[test]
fn an_archived_session_starts_no_turn() {
    check(
        given([archived()]),
        start_turn(1),
        expect![[r#"
            refused session_archived: the session is archived; bring it back with `lanyard archive --undo`
            command.refused code=session_archived command=start_turn state=beginning
            beginning, archived
        "#]],
    );
}

#[test]
fn a_session_that_is_being_stopped_starts_no_turn() {
    check(
        given([stop_at(StopLevel::Graceful)]),
        start_turn(1),
        expect![[r#"
            refused session_stopping: a stop is pending; withdraw the stop with `lanyard unstop`, or wait until it is confirmed
            command.refused code=session_stopping command=start_turn state=beginning
            beginning, stop 1
        "#]],
    );
}

#[test]
fn an_ended_session_starts_no_turn() {
    check(
        in_state(StateName::Completed),
        start_turn(1),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=start_turn state=completed
            completed
        "#]],
    );
}

/// FND-K9.
#[test]
fn fnd_k9_a_session_whose_log_is_full_takes_no_more_turns() {
    let full = || in_state(StateName::Idle).rules(|rules| rules.limits.log_events = 2);
    check(
        full(),
        start_turn(9),
        expect![[r#"
            refused log_full: the session's log has reached its limit of 2 events; go on with `lanyard fork`, or raise limits.log_events
            idle
        "#]],
    );
    let large = || in_state(StateName::Idle).after(said("0123456789"));
    check(
        large().rules(|rules| rules.limits.log_bytes = 10),
        start_turn(9),
        expect![[r#"
        refused log_full: the session's log has reached its limit of 10 bytes; go on with `lanyard fork`, or raise limits.log_bytes
        idle
    "#]],
    );
    check(
        large().rules(|rules| rules.limits.log_bytes = 1_000),
        start_turn(9),
        expect![[r#"
        turn.started memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#9
        do RunTurn { turn: turn#9 }
        idle -> executing
    "#]],
    );
    check(
        full().rules(|rules| rules.limits.log_events = 0),
        delete(0),
        expect![[r#"
            session.deleted
            idle, deleted
        "#]],
    );
}

#[test]
fn a_deleted_session_starts_no_turn() {
    check(
        given([deleted()]),
        start_turn(1),
        expect![[r#"
            refused session_deleted: the session was deleted; create a new session
            command.refused code=session_deleted command=start_turn state=beginning
            beginning, deleted
        "#]],
    );
}

/// The state is looked at before the text: the caller learns first what cannot be cured by editing.
#[test]
fn a_busy_session_says_so_before_it_reads_the_prompt() {
    check(
        in_state(StateName::Executing),
        prompt(""),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=start_turn state=executing
            executing
        "#]],
    );
}

#[test]
fn an_empty_prompt_is_refused_and_not_recorded() {
    check(
        given([]),
        prompt(""),
        expect![[r#"
            refused field_empty: prompt is empty; give at least one visible character
            beginning
        "#]],
    );
}

#[test]
fn a_blank_prompt_is_empty() {
    check(
        given([]),
        prompt(" \n\t\u{a0}"),
        expect![[r#"
            refused field_empty: prompt is empty; give at least one visible character
            beginning
        "#]],
    );
}

/// S0-B19 for prompts: their bound is in bytes, for the sake of the disk.
#[test]
fn a_prompt_of_exactly_the_limit_is_taken() {
    check(
        given([]),
        prompt(&"é".repeat(BODY_BYTES_MAX / 2)),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=new} prompt=éééééééé…(524288 characters) turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

#[test]
fn a_prompt_one_byte_over_the_limit_is_refused() {
    check(
        given([]),
        prompt(&"x".repeat(BODY_BYTES_MAX + 1)),
        expect![[r#"
            refused field_too_long: prompt is longer than 1048576 bytes; shorten it; put long content into a file the agent can read
            beginning
        "#]],
    );
}

#[test]
fn a_prompt_may_have_lines_and_tabs() {
    check(
        given([]),
        prompt("one\n\ttwo\u{1b}[0m"),
        expect![[r#"
            turn.started memory={mode=session_only} opening={kind=new} prompt="one\n\ttwo\u{1b}[0m" turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

/// S3-15.
#[test]
fn the_clients_own_name_for_the_turn_is_kept() {
    check(
        given([]),
        named_turn("mine-7"),
        expect![[r#"
            turn.started client_turn_id=mine-7 memory={mode=session_only} opening={kind=new} prompt=go turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

#[test]
fn the_clients_name_for_the_turn_is_one_line() {
    check(
        given([]),
        named_turn("mine\n7"),
        expect![[r#"
            refused field_bad_text: client_turn_id holds a control character; remove control characters such as NUL, escape or line breaks
            beginning
        "#]],
    );
}

/// S3-18, S3-B02: the prompt's fingerprint is in the log and in the record.
#[test]
fn the_prompt_is_fingerprinted() {
    let given = given([]).after(prompt("fix it"));
    assert_eq!(given.session.turn.unwrap().prompt_hash, content_hash(b"fix it"));
}

/// S1-11, S1-B01: the end of a turn is no end of the session.
#[test]
fn a_finished_turn_leaves_the_session_between_turns_with_a_checkpoint() {
    check(
        in_state(StateName::Executing),
        turn_finished(),
        expect![[r#"
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

#[test]
fn a_finished_turn_may_be_named() {
    check(
        in_state(StateName::Executing),
        turn_finished_as(1, TurnOutcome::Completed),
        expect![[r#"
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

#[test]
fn a_turn_that_failed_is_a_finished_turn() {
    check(
        in_state(StateName::Executing),
        turn_finished_as(1, TurnOutcome::Failed),
        expect![[r#"
            turn.finished outcome=failed review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

#[test]
fn a_turn_the_agent_refused_is_a_finished_turn() {
    check(
        in_state(StateName::Executing),
        turn_finished_as(1, TurnOutcome::Refused),
        expect![[r#"
            turn.finished outcome=refused review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

/// S4-B01: a late message about an old turn does not end the new one.
#[test]
fn the_end_of_another_turn_is_unexpected() {
    check(
        in_state(StateName::Executing),
        turn_finished_as(9, TurnOutcome::Completed),
        expect![[r#"
            signal.unexpected signal=turn_finished state=executing
            executing
        "#]],
    );
}

#[test]
fn the_end_of_a_turn_that_nobody_started_is_unexpected() {
    check(
        in_state(StateName::BetweenTurn),
        turn_finished(),
        expect![[r#"
            signal.unexpected signal=turn_finished state=between_turn
            between_turn
        "#]],
    );
}

/// S1-B01: three facts, never one word for all: turn finished, session idle, session ended.
#[test]
fn finished_idle_and_ended_are_three_events() {
    story(
        in_state(StateName::Executing),
        [turn_finished(), quiet(HOUR), complete()],
        expect![[r#"
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=2 reason=turn_end
            executing -> between_turn
            > quiet
            session.idle quiet_ms=3600000
            between_turn -> idle
            > complete
            session.ended how=completed
            idle -> completed
        "#]],
    );
}

fn prompt(prompt: &str) -> Input {
    Command::StartTurn { turn: turn_id(1), client_turn_id: None, prompt: prompt.into() }.into()
}

fn named_turn(client_turn_id: &str) -> Input {
    let client_turn_id = Some(client_turn_id.into());
    Command::StartTurn { turn: turn_id(1), client_turn_id, prompt: "go".into() }.into()
}
