//! The inbox: how messages arrive while a turn runs, and what follows its end (S3-14, S3-15, S3-B04).

use super::*;
use Delivery::{Interrupt, Queue, Reject, Steer};

fn busy() -> Given {
    in_state(StateName::Executing)
}

/// S3-14: refused, naming the turn.
#[test]
fn a_plain_message_is_refused_while_a_turn_runs() {
    check(
        busy(),
        send(2, Reject),
        expect![[r#"
            refused turn_rejected_busy: turn turn#1 is running; wait for the turn to end, or cancel it with `lanyard cancel`; a message can wait with `--when next`
            command.refused code=turn_rejected_busy command=start_turn state=executing
            executing
        "#]],
    );
}

#[test]
fn with_nothing_running_every_delivery_starts_the_turn() {
    for delivery in [Reject, Queue, Steer, Interrupt] {
        let given = in_state(StateName::BetweenTurn).after(send(2, delivery));
        assert_eq!(given.session.turn.as_ref().map(|turn| turn.id), Some(turn_id(2)), "{delivery:?}");
        assert!(given.session.inbox.is_empty());
    }
}

#[test]
fn queued_messages_follow_completed_turns_in_order() {
    story(
        busy(),
        [send(2, Queue), send(3, Queue), turn_finished(), turn_finished(), turn_finished()],
        expect![[r#"
            > start_turn
            turn.queued delivery=queue prompt="go 2" turn=turn#2
            executing, waiting turn#2
            > start_turn
            turn.queued delivery=queue prompt="go 3" turn=turn#3
            executing, waiting turn#2 turn#3
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=4 reason=turn_end
            turn.started by={kind=operator name=ann} delivery=queue governance=true memory={mode=session_only} opening={kind=continued} prompt="go 2" queued=true turn=turn#2
            do RunTurn { turn: turn#2 }
            executing -> between_turn -> executing, waiting turn#3
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#2
            context.checkpoint position=7 reason=turn_end
            turn.started by={kind=operator name=ann} delivery=queue memory={mode=session_only} opening={kind=continued} prompt="go 3" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            executing -> between_turn -> executing
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#3
            context.checkpoint position=10 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

#[test]
fn after_a_cancel_the_rest_waits_until_somebody_says_go() {
    story(
        busy(),
        [
            send(2, Queue),
            send(3, Queue),
            cancel_turn(),
            work_ended(),
            send(4, Queue),
            to_inbox(InboxChange::Go),
            turn_finished(),
        ],
        expect![[r#"
            > start_turn
            turn.queued delivery=queue prompt="go 2" turn=turn#2
            executing, waiting turn#2
            > start_turn
            turn.queued delivery=queue prompt="go 3" turn=turn#3
            executing, waiting turn#2 turn#3
            > cancel_turn
            turn.cancel_requested forced=false turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested, waiting turn#2 turn#3
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=5 reason=interruption
            inbox.paused reason=interrupted
            executing -> interrupted, waiting turn#2 turn#3, paused (interrupted)
            > start_turn
            turn.queued delivery=queue prompt="go 4" turn=turn#4
            interrupted, waiting turn#2 turn#3 turn#4, paused (interrupted)
            > resume_inbox
            inbox.resumed
            turn.started by={kind=operator name=ann} delivery=queue governance=true memory={mode=session_only} opening={kind=continued} prompt="go 2" queued=true turn=turn#2
            do RunTurn { turn: turn#2 }
            interrupted -> executing, waiting turn#3 turn#4
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#2
            context.checkpoint position=11 reason=turn_end
            turn.started by={kind=operator name=ann} delivery=queue governance=true memory={mode=session_only} opening={kind=continued} prompt="go 3" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            executing -> between_turn -> executing, waiting turn#4
        "#]],
    );
}

#[test]
fn a_failed_or_lost_turn_pauses_the_inbox_too() {
    let waiting = || busy().after(send(2, Queue));
    check(
        waiting(),
        turn_finished_as(1, TurnOutcome::Failed),
        expect![[r#"
            turn.finished outcome=failed review=true turn=turn#1
            context.checkpoint position=3 reason=turn_end
            inbox.paused reason=failed
            executing -> between_turn, waiting turn#2, paused (failed)
        "#]],
    );
    check(
        waiting().after(turn_delivered(1)),
        daemon_restarted(),
        expect![[r#"
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1 uncertain=true
            context.checkpoint position=4 reason=interruption
            inbox.paused reason=failed
            executing -> interrupted, waiting turn#2, paused (failed)
        "#]],
    );
}

#[test]
fn an_interrupt_cancels_and_runs_first_and_the_rest_waits_for_go() {
    story(
        busy(),
        [
            send(2, Queue),
            send(3, Interrupt),
            send(4, Interrupt),
            work_ended(),
            turn_finished(),
            turn_finished(),
            to_inbox(InboxChange::Go),
        ],
        expect![[r#"
            > start_turn
            turn.queued delivery=queue prompt="go 2" turn=turn#2
            executing, waiting turn#2
            > start_turn
            turn.queued delivery=interrupt prompt="go 3" turn=turn#3
            turn.cancel_requested forced=false reason="a message takes its place" turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested, waiting turn#3 turn#2
            > start_turn
            turn.queued delivery=interrupt prompt="go 4" turn=turn#4
            executing, cancel requested, waiting turn#3 turn#4 turn#2
            > work_ended
            turn.interrupted cause=user reason=sigterm turn=turn#1
            context.checkpoint position=6 reason=interruption
            inbox.paused reason=interrupted
            turn.started by={kind=operator name=ann} delivery=interrupt governance=true memory={mode=session_only} opening={kind=continued} prompt="go 3" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            executing -> interrupted -> executing, waiting turn#4 turn#2, paused (interrupted)
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#3
            context.checkpoint position=10 reason=turn_end
            turn.started by={kind=operator name=ann} delivery=interrupt governance=true memory={mode=session_only} opening={kind=continued} prompt="go 4" queued=true turn=turn#4
            do RunTurn { turn: turn#4 }
            executing -> between_turn -> executing, waiting turn#2, paused (interrupted)
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#4
            context.checkpoint position=13 reason=turn_end
            executing -> between_turn, waiting turn#2, paused (interrupted)
            > resume_inbox
            inbox.resumed
            turn.started by={kind=operator name=ann} delivery=queue memory={mode=session_only} opening={kind=continued} prompt="go 2" queued=true turn=turn#2
            do RunTurn { turn: turn#2 }
            between_turn -> executing
        "#]],
    );
}

#[test]
fn a_steer_goes_whole_by_a_note_and_is_no_turn_when_it_has_arrived() {
    story(
        busy(),
        [send(2, Steer), guidance_delivered(&[2]), turn_finished()],
        expect![[r#"
            > start_turn
            turn.queued delivery=steer note=note#2 prompt="go 2" turn=turn#2
            guidance.queued kind=steer note=note#2 text="go 2"
            do Steer { note: note#2 }
            executing, waiting turn#2
            > guidance_delivered
            guidance.delivered channel=steer notes=[note#2]
            turn.steered channel=steer into=turn#1 turn=turn#2
            executing
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=6 reason=turn_end
            executing -> between_turn
        "#]],
    );
}

#[test]
fn a_steer_that_could_not_be_told_is_the_next_turn() {
    story(
        busy(),
        [send(2, Queue), send(3, Steer), turn_finished()],
        expect![[r#"
            > start_turn
            turn.queued delivery=queue prompt="go 2" turn=turn#2
            executing, waiting turn#2
            > start_turn
            turn.queued delivery=steer note=note#3 prompt="go 3" turn=turn#3
            guidance.queued kind=steer note=note#3 text="go 3"
            do Steer { note: note#3 }
            executing, waiting turn#3 turn#2
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=5 reason=turn_end
            guidance.settled how=withdrawn notes=[note#3]
            turn.started by={kind=operator name=ann} delivery=steer governance=true memory={mode=session_only} opening={kind=continued} prompt="go 3" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            executing -> between_turn -> executing, waiting turn#2
        "#]],
    );
}

/// X-08 does not hold for whole messages.
#[test]
fn steered_words_are_never_cut() {
    let prompt = "x".repeat(5_000);
    let message = crate::session::Message {
        turn: turn_id(2),
        note: note_id(2),
        client_turn_id: None,
        prompt: prompt.clone(),
        parts: Vec::new(),
        delivery: Steer,
        memory: None,
        choice: crate::session::AgentChoice::default(),
        forced: false,
        take_over: false,
        review: None,
    };
    let given = busy().after(to_inbox(InboxChange::Send(Box::new(message))));
    assert_eq!(given.session.guidance[0].text, prompt);
}

#[test]
fn what_waits_can_be_edited_ordered_promoted_and_withdrawn() {
    story(
        busy().after_each([send(2, Queue), send(3, Queue), send(4, Queue)]),
        [
            edit(3, Some("go slowly"), None),
            edit(3, Some("go slowly"), None),
            order(&[4, 2, 3]),
            order(&[4, 2]),
            promote(3, Promotion::Front),
            promote(2, Promotion::Steer),
            edit(2, Some("go left"), None),
            edit(2, None, Some(Queue)),
            edit(2, None, Some(Reject)),
            promote(4, Promotion::Interrupt),
            withdraw_turn(2),
            withdraw_turn(2),
        ],
        expect![[r#"
            > edit_turn
            turn.edited prompt="go slowly" turn=turn#3
            executing, waiting turn#2 turn#3 turn#4
            > edit_turn
            executing, waiting turn#2 turn#3 turn#4
            > order_inbox
            inbox.reordered turns=[turn#4, turn#2, turn#3]
            executing, waiting turn#4 turn#2 turn#3
            > order_inbox
            refused inbox_order_wrong: the order does not name each of the 3 messages that wait once; read the inbox again, and name all of it
            executing, waiting turn#4 turn#2 turn#3
            > promote_turn
            turn.promoted to=front turn=turn#3
            executing, waiting turn#3 turn#4 turn#2
            > promote_turn
            turn.promoted note=note#102 to=steer turn=turn#2
            guidance.queued kind=steer note=note#102 text="go 2"
            do Steer { note: note#102 }
            executing, waiting turn#2 turn#3 turn#4
            > edit_turn
            guidance.settled how=withdrawn notes=[note#102]
            turn.edited note=note#202 prompt="go left" turn=turn#2
            guidance.queued kind=steer note=note#202 text="go left"
            do Steer { note: note#202 }
            executing, waiting turn#2 turn#3 turn#4
            > edit_turn
            guidance.settled how=withdrawn notes=[note#202]
            turn.edited delivery=queue turn=turn#2
            executing, waiting turn#3 turn#4 turn#2
            > edit_turn
            refused delivery_waits: a message that waits cannot have the delivery `reject`; use `queue`, `steer` or `interrupt`, or withdraw the message
            executing, waiting turn#3 turn#4 turn#2
            > promote_turn
            turn.promoted to=interrupt turn=turn#4
            turn.cancel_requested forced=false reason="a message takes its place" turn=turn#1
            do CancelWork { turn: turn#1, forced: false }
            executing, cancel requested, waiting turn#4 turn#3 turn#2
            > withdraw_turn
            turn.withdrawn turn=turn#2
            executing, cancel requested, waiting turn#4 turn#3
            > withdraw_turn
            refused inbox_turn_unknown: no message turn#2 waits in the inbox; it may have started or been withdrawn; look at `lanyard inbox` and `lanyard turns`
            executing, cancel requested, waiting turn#4 turn#3
        "#]],
    );
}

#[test]
fn a_message_promoted_while_nothing_runs_starts() {
    let resting = busy().after_each([send(2, Queue), send(3, Queue), cancel_turn(), work_ended()]);
    check(
        resting.clone(),
        promote(3, Promotion::Interrupt),
        expect![[r#"
            turn.promoted to=interrupt turn=turn#3
            turn.started by={kind=operator name=ann} delivery=interrupt governance=true memory={mode=session_only} opening={kind=continued} prompt="go 3" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            interrupted -> executing, waiting turn#2, paused (interrupted)
        "#]],
    );
    check(
        resting,
        edit(3, Some("go left"), Some(Steer)),
        expect![[r#"
            turn.edited delivery=steer prompt="go left" turn=turn#3
            turn.started by={kind=operator name=ann} delivery=steer governance=true memory={mode=session_only} opening={kind=continued} prompt="go left" queued=true turn=turn#3
            do RunTurn { turn: turn#3 }
            interrupted -> executing, waiting turn#2, paused (interrupted)
        "#]],
    );
}

#[test]
fn a_steered_message_is_withdrawn_with_its_note_and_the_other_way_round() {
    check(
        busy().after(send(2, Steer)),
        withdraw_turn(2),
        expect![[r#"
        guidance.settled how=withdrawn notes=[note#2]
        turn.withdrawn turn=turn#2
        executing
    "#]],
    );
    check(
        busy().after(send(2, Steer)),
        withdraw_guidance(2),
        expect![[r#"
        guidance.settled how=withdrawn notes=[note#2]
        turn.withdrawn turn=turn#2
        executing
    "#]],
    );
}

#[test]
fn the_inbox_is_bounded_in_messages_and_in_bytes() {
    let full =
        busy().rules(|rules| rules.limits.inbox_turns = 2).after_each([send(2, Queue), send(3, Queue)]);
    check(
        full,
        send(4, Queue),
        expect![[r#"
            refused inbox_full: the inbox holds at most 2 messages; withdraw some with `lanyard inbox`, or wait
            executing, waiting turn#2 turn#3
        "#]],
    );
    let full = busy().rules(|rules| rules.limits.inbox_bytes = 5).after(send(2, Queue));
    check(
        full.clone(),
        send(3, Steer),
        expect![[r#"
            refused inbox_full: the inbox holds at most 5 bytes; withdraw some with `lanyard inbox`, or wait
            executing, waiting turn#2
        "#]],
    );
    check(
        full,
        edit(2, Some("go far"), None),
        expect![[r#"
            refused inbox_full: the inbox holds at most 5 bytes; withdraw some with `lanyard inbox`, or wait
            executing, waiting turn#2
        "#]],
    );
}

#[test]
fn what_waits_is_withdrawn_with_its_session() {
    let waiting = || busy().after_each([send(2, Queue), send(3, Steer)]);
    check(
        waiting(),
        complete(),
        expect![[r#"
        turn.finished outcome=completed turn=turn#1
        context.checkpoint position=5 reason=turn_end
        guidance.settled how=withdrawn notes=[note#3]
        turn.withdrawn reason="the session ended" turn=turn#3
        turn.withdrawn reason="the session ended" turn=turn#2
        session.ended how=completed
        executing -> between_turn -> completed
    "#]],
    );
    check(
        waiting().after(stop()),
        work_ended(),
        expect![[r#"
        turn.interrupted cause=user reason=sigterm turn=turn#1
        context.checkpoint position=6 reason=interruption
        guidance.settled how=withdrawn notes=[note#3]
        turn.withdrawn reason="the session ended" turn=turn#3
        turn.withdrawn reason="the session ended" turn=turn#2
        session.ended how=stopped
        executing -> interrupted -> stopped, stop 1
    "#]],
    );
    let resting = waiting().after_each([cancel_turn(), work_ended()]);
    check(
        resting,
        delete(0),
        expect![[r#"
        turn.withdrawn reason="the session was deleted" turn=turn#3
        turn.withdrawn reason="the session was deleted" turn=turn#2
        session.deleted
        interrupted, deleted
    "#]],
    );
}

#[test]
fn a_stop_of_the_session_takes_no_further_messages() {
    check(
        busy().after(stop()),
        send(2, Queue),
        expect![[r#"
        refused session_stopping: a stop is pending; withdraw the stop with `lanyard unstop`, or wait until it is confirmed
        command.refused code=session_stopping command=start_turn state=executing
        executing, stop 1
    "#]],
    );
}

#[test]
fn somebody_may_pause_the_inbox_before_the_turn_ends() {
    story(
        busy(),
        [send(2, Queue), to_inbox(InboxChange::Pause), to_inbox(InboxChange::Pause), turn_finished()],
        expect![[r#"
            > start_turn
            turn.queued delivery=queue prompt="go 2" turn=turn#2
            executing, waiting turn#2
            > pause_inbox
            inbox.paused reason=asked
            executing, waiting turn#2, paused (asked)
            > pause_inbox
            executing, waiting turn#2, paused (asked)
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=4 reason=turn_end
            executing -> between_turn, waiting turn#2, paused (asked)
        "#]],
    );
    check(
        busy(),
        to_inbox(InboxChange::Go),
        expect![[r#"
        executing
    "#]],
    );
}

/// A turn that was handed over and lost is uncertain; one that was not is not.
#[test]
fn only_what_the_agent_had_is_uncertain() {
    let lost = |given: Given| {
        let answer = given.clone().put(&daemon_restarted());
        event_line(&answer.events[0])
    };
    assert!(lost(busy().after(turn_delivered(1))).contains("uncertain=true"));
    assert!(lost(busy().after(said("hm"))).contains("uncertain=true"), "who answers has the question");
    assert!(!lost(busy()).contains("uncertain"));
    let cancelled = busy().after_each([turn_delivered(1), cancel_turn()]);
    assert!(!lost(cancelled).contains("uncertain"), "it was to end");
}

/// Told again by a daemon that adopted the run, it is written once.
#[test]
fn a_turn_is_delivered_once() {
    check(
        busy(),
        turn_delivered(1),
        expect![[r#"
        turn.delivered turn=turn#1
        executing
    "#]],
    );
    check(
        busy().after(turn_delivered(1)),
        turn_delivered(1),
        expect![[r#"
        executing
    "#]],
    );
    check(
        busy(),
        turn_delivered(9),
        expect![[r#"
        executing
    "#]],
    );
}
