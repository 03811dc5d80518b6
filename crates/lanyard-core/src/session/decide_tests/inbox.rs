//! The inbox: how messages arrive while a turn runs, and what follows its end (S3-14, S3-15, S3-B04).

use super::*;
use Delivery::{Interrupt, Queue, Reject, Steer};

fn busy() -> Given {
    in_state(StateName::Executing)
}

/// S3-14: refused, naming the turn.
#[test]
fn a_plain_message_is_refused_while_a_turn_runs() {
    check(busy(), send(2, Reject), expect![[r#""#]]);
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
        expect![[r#""#]],
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
        expect![[r#""#]],
    );
}

#[test]
fn a_failed_or_lost_turn_pauses_the_inbox_too() {
    let waiting = || busy().after(send(2, Queue));
    check(waiting(), turn_finished_as(1, TurnOutcome::Failed), expect![[r#""#]]);
    check(waiting().after(turn_delivered(1)), daemon_restarted(), expect![[r#""#]]);
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
        expect![[r#""#]],
    );
}

#[test]
fn a_steer_goes_whole_by_a_note_and_is_no_turn_when_it_has_arrived() {
    story(busy(), [send(2, Steer), guidance_delivered(&[2]), turn_finished()], expect![[r#""#]]);
}

#[test]
fn a_steer_that_could_not_be_told_is_the_next_turn() {
    story(busy(), [send(2, Queue), send(3, Steer), turn_finished()], expect![[r#""#]]);
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
        delivery: Steer,
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
        expect![[r#""#]],
    );
}

#[test]
fn a_message_promoted_while_nothing_runs_starts() {
    let resting = busy().after_each([send(2, Queue), send(3, Queue), cancel_turn(), work_ended()]);
    check(resting.clone(), promote(3, Promotion::Interrupt), expect![[r#""#]]);
    check(resting, edit(3, Some("go left"), Some(Steer)), expect![[r#""#]]);
}

#[test]
fn a_steered_message_is_withdrawn_with_its_note_and_the_other_way_round() {
    check(busy().after(send(2, Steer)), withdraw_turn(2), expect![[r#""#]]);
    check(busy().after(send(2, Steer)), withdraw_guidance(2), expect![[r#""#]]);
}

#[test]
fn the_inbox_is_bounded_in_messages_and_in_bytes() {
    let full =
        busy().rules(|rules| rules.limits.inbox_turns = 2).after_each([send(2, Queue), send(3, Queue)]);
    check(full, send(4, Queue), expect![[r#""#]]);
    let full = busy().rules(|rules| rules.limits.inbox_bytes = 5).after(send(2, Queue));
    check(full.clone(), send(3, Steer), expect![[r#""#]]);
    check(full, edit(2, Some("go far"), None), expect![[r#""#]]);
}

#[test]
fn what_waits_is_withdrawn_with_its_session() {
    let waiting = || busy().after_each([send(2, Queue), send(3, Steer)]);
    check(waiting(), complete(), expect![[r#""#]]);
    check(waiting().after(stop()), work_ended(), expect![[r#""#]]);
    let resting = waiting().after_each([cancel_turn(), work_ended()]);
    check(resting, delete(0), expect![[r#""#]]);
}

#[test]
fn a_stop_of_the_session_takes_no_further_messages() {
    check(busy().after(stop()), send(2, Queue), expect![[r#""#]]);
}

#[test]
fn somebody_may_pause_the_inbox_before_the_turn_ends() {
    story(
        busy(),
        [send(2, Queue), to_inbox(InboxChange::Pause), to_inbox(InboxChange::Pause), turn_finished()],
        expect![[r#""#]],
    );
    check(busy(), to_inbox(InboxChange::Go), expect![[r#""#]]);
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
    check(busy(), turn_delivered(1), expect![[r#""#]]);
    check(busy().after(turn_delivered(1)), turn_delivered(1), expect![[r#""#]]);
    check(busy(), turn_delivered(9), expect![[r#""#]]);
}
