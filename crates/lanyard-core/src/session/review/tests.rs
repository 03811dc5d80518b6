//! Comments from draft to answer, and where their lines are in a file that changed.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes snapshots with them")]

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::session::Delivery;
use crate::session::state::{InterruptCause, StateName};
use crate::session::testing::{
    Given, Input, cancel_turn, check, comment_id, complete, draft, draft_of, given, guidance_delivered,
    in_state, send_review, start_turn, story, turn_finished, turn_id, turn_lost, view, withdraw_turn,
};

fn state_of(given: &Given, comment: u128) -> Option<CommentState> {
    given.session.review.find(comment_id(comment)).map(|held| held.state)
}

fn resting() -> Given {
    in_state(StateName::BetweenTurn)
}

fn with_drafts() -> Given {
    resting().after_each([draft(1, 3), draft(2, 9)])
}

#[test]
fn two_drafts_become_one_turn_and_are_marked_with_it() {
    story(
        with_drafts(),
        [send_review(2, Delivery::Queue, &[2, 1]), turn_finished()],
        expect![[r#"
        > start_turn
        turn.started delivery=queue memory={mode=session_only} opening={kind=continued} prompt="Review of your changes: 2 comments. Address each.\n\nsrc/a.rs:3\n```\nline 3\n```\nwhy 1?\n\nsrc/a.rs:9\n```\nline 9\n```\nwhy 2?" turn=turn#2
        review.sent comments=[cmt#2, cmt#1] turn=turn#2
        do RunTurn { turn: turn#2 }
        between_turn -> executing
        > turn_finished
        turn.finished outcome=completed review=true turn=turn#2
        context.checkpoint position=7 reason=turn_end
        executing -> between_turn
    "#]],
    );
}

#[test]
fn a_comment_is_sent_once() {
    let given = with_drafts().after(send_review(2, Delivery::Queue, &[1, 2]));
    check(
        given,
        send_review(3, Delivery::Queue, &[1]),
        expect![[r#"
        refused comment_already_sent: comment cmt#1 was sent with turn turn#2; add another comment; a message that still waits can be withdrawn with `lanyard inbox`
        executing
    "#]],
    );
}

#[test]
fn nothing_to_send_is_refused() {
    check(
        resting(),
        send_review(2, Delivery::Queue, &[]),
        expect![[r#"
        refused review_empty: the session has no draft comments; add one with `lanyard review add`
        between_turn
    "#]],
    );
}

#[test]
fn a_completed_turn_answers_its_comments_and_no_others() {
    let given = with_drafts().after_each([send_review(2, Delivery::Queue, &[1]), turn_finished()]);
    let seq = given.session.last_turn.as_ref().map_or(0, |turn| turn.seq);
    assert_eq!(state_of(&given, 1), Some(CommentState::Answered { turn: turn_id(2), number: 2, seq }));
    assert_eq!(state_of(&given, 2), Some(CommentState::Draft));
}

#[test]
fn a_lost_turn_leaves_comments_that_can_be_sent_again() {
    let given =
        with_drafts().after_each([send_review(2, Delivery::Queue, &[1]), turn_lost(InterruptCause::Crash)]);
    let Some(CommentState::Unanswered { how, number: 2, .. }) = state_of(&given, 1) else {
        panic!("{given:?}")
    };
    assert_ne!(how, TurnEnd::Completed);
    let again = given.after(send_review(3, Delivery::Queue, &[1]));
    assert_eq!(state_of(&again, 1), Some(CommentState::Sent { turn: turn_id(3), number: Some(3) }));
}

#[test]
fn a_withdrawn_message_gives_its_drafts_back() {
    let given = with_drafts().after_each([start_turn(2), send_review(3, Delivery::Queue, &[1, 2])]);
    assert_eq!(state_of(&given, 1), Some(CommentState::Sent { turn: turn_id(3), number: None }));
    let given = given.after(withdraw_turn(3));
    assert_eq!(
        (state_of(&given, 1), state_of(&given, 2)),
        (Some(CommentState::Draft), Some(CommentState::Draft))
    );
    let ended = with_drafts().after_each([start_turn(2), send_review(3, Delivery::Queue, &[1]), complete()]);
    assert_eq!(state_of(&ended, 1), Some(CommentState::Draft));
}

#[test]
fn a_steered_review_is_answered_by_the_turn_it_went_into() {
    let given = with_drafts().after_each([start_turn(2), send_review(3, Delivery::Steer, &[1])]);
    assert_eq!(state_of(&given, 1), Some(CommentState::Sent { turn: turn_id(3), number: None }));
    let given = given.after(guidance_delivered(&[3]));
    assert_eq!(state_of(&given, 1), Some(CommentState::Sent { turn: turn_id(2), number: Some(2) }));
    let given = given.after(turn_finished());
    assert!(matches!(state_of(&given, 1), Some(CommentState::Answered { number: 2, .. })));
}

#[test]
fn an_interrupting_review_takes_the_place_of_the_turn() {
    let given = with_drafts().after_each([start_turn(2), send_review(3, Delivery::Interrupt, &[1])]);
    assert!(given.session.turn.as_ref().is_some_and(|turn| turn.cancel_requested));
    let given = given.after_each([cancel_turn(), turn_lost(InterruptCause::User)]);
    assert_eq!(state_of(&given, 1), Some(CommentState::Sent { turn: turn_id(3), number: Some(3) }));
}

/// Each line: what is wrong with the comment, and the code of the refusal.
#[test]
fn a_comment_that_breaks_a_bound_is_refused() {
    let with = |change: &dyn Fn(&mut DraftComment)| {
        let mut draft = draft_of(1, 3);
        change(&mut draft);
        ReviewCommand::Draft(Box::new(draft))
    };
    let long = |bytes: usize| "x".repeat(bytes + 1);
    let table: [(ReviewCommand, &str); 12] = [
        (with(&|draft| draft.path.clear()), "field_empty"),
        (with(&|draft| draft.path = "a\nb".into()), "field_bad_text"),
        (with(&|draft| draft.path = long(PATH_BYTES_MAX)), "field_too_long"),
        (with(&|draft| draft.text = " \n".into()), "field_empty"),
        (with(&|draft| draft.text = long(COMMENT_BYTES_MAX)), "field_too_long"),
        (with(&|draft| draft.quote = long(QUOTE_BYTES_MAX)), "field_too_long"),
        (with(&|draft| draft.quote = "a\nb".into()), "quote_differs"),
        (with(&|draft| draft.lines.first = 0), "line_range_invalid"),
        (with(&|draft| draft.lines.first = 4), "line_range_invalid"),
        (with(&|draft| draft.lines.last = 3 + SPAN_LINES_MAX), "line_range_invalid"),
        (ReviewCommand::Edit { comment: comment_id(9), text: "x".into() }, "comment_not_found"),
        (ReviewCommand::View { path: String::new(), hash: None }, "field_empty"),
    ];
    for (command, code) in table {
        let refused = resting().put(&command.clone().into()).refusal;
        assert_eq!(refused.map(|refusal| refusal.code()), Some(code), "{command:?}");
    }
}

#[test]
fn drafts_are_bounded_in_number_and_in_bytes() {
    let many = (0..u128::try_from(DRAFTS_MAX).unwrap()).map(|number| draft(number, 1));
    let mut full = resting().after_each(many);
    assert_eq!(full.put(&draft(900, 1)).refusal.map(|refusal| refusal.code()), Some("review_full"));
    let large = |number: u128| {
        let text = "x".repeat(COMMENT_BYTES_MAX);
        Input::from(ReviewCommand::Draft(Box::new(DraftComment { text, ..draft_of(number, 1) })))
    };
    let mut given = resting();
    let refused = (0..40).find_map(|number| given.put(&large(number)).refusal);
    assert_eq!(refused.map(|refusal| refusal.code()), Some("review_full"));
}

#[test]
fn the_record_keeps_the_newest_of_what_was_sent() {
    let mut given = resting();
    for round in 0..u128::try_from(SENT_MAX).unwrap() + 20 {
        given = given.after_each([
            draft(round, 1),
            send_review(10 + round, Delivery::Queue, &[round]),
            turn_finished(),
        ]);
    }
    assert_eq!(given.session.review.comments.len(), SENT_MAX);
    assert!(state_of(&given, 0).is_none() && state_of(&given, 119).is_some());
}

#[test]
fn a_mark_is_of_one_content() {
    let given = resting().after_each([view("a.rs", Some("0a")), view("b.rs", Some("0b"))]);
    assert!(given.session.review.is_viewed("a.rs", "0a") && !given.session.review.is_viewed("a.rs", "0c"));
    let given = given.after(view("a.rs", None));
    assert!(!given.session.review.is_viewed("a.rs", "0a") && given.session.review.is_viewed("b.rs", "0b"));
    let many = (0..VIEWED_MAX + 5).map(|number| view(&format!("{number}.rs"), Some("0a")));
    assert_eq!(given.after_each(many).session.review.viewed.len(), VIEWED_MAX);
}

#[test]
fn comments_stay_possible_when_the_session_has_ended() {
    let given = in_state(StateName::Completed).after(draft(1, 3));
    assert_eq!(state_of(&given, 1), Some(CommentState::Draft));
    let mut given = given;
    assert_eq!(
        given.put(&send_review(5, Delivery::Queue, &[1])).refusal.map(|refusal| refusal.code()),
        Some("session_ended")
    );
}

#[test]
fn the_message_names_files_and_lines_in_order() {
    let mut given = given([]);
    given.session.review.comments.clear();
    let several = DraftComment {
        lines: LineSpan { first: 3, last: 4 },
        quote: "let x = \"```\";\nlet y = 2;".into(),
        text: "  Use one name.\n".into(),
        ..draft_of(1, 3)
    };
    let old = DraftComment { side: DiffSide::Old, path: "b.rs".into(), ..draft_of(2, 7) };
    let given = given.after_each([
        ReviewCommand::Draft(Box::new(several)).into(),
        ReviewCommand::Draft(Box::new(old)).into(),
        draft(3, 20),
        draft(4, 1),
    ]);
    let book = &given.session.review;
    let anchors = [
        LineAnchor::Same,
        LineAnchor::Same,
        LineAnchor::Moved { now: LineSpan { first: 2, last: 2 } },
        LineAnchor::Stale,
    ];
    let chosen: Vec<_> = book.comments.iter().zip(anchors).collect();
    expect![[r#"
        Review of your changes: 4 comments. Address each.

        Mind the tests.

        b.rs:7 (before the change)
        ```
        line 7
        ```
        why 2?

        src/a.rs:1 (these lines changed since)
        ```
        line 1
        ```
        why 4?

        src/a.rs:2
        ```
        line 20
        ```
        why 3?

        src/a.rs:3-4
        ````
        let x = "```";
        let y = 2;
        ````
        Use one name."#]]
    .assert_eq(&message("Mind the tests.", &chosen));
}

/// Each line: the file, the quote, the old lines, and where they are now.
#[test]
fn lines_are_found_where_their_text_stands() {
    let span = |first, last| LineSpan { first, last };
    let table = [
        ("a\nb\nc\n", "b", span(2, 2), LineAnchor::Same),
        ("x\na\nb\nc\n", "b", span(2, 2), LineAnchor::Moved { now: span(3, 3) }),
        ("a\nB\nc\n", "b", span(2, 2), LineAnchor::Stale),
        ("a\r\nb\r\n", "a\nb", span(1, 2), LineAnchor::Same),
        ("b\na\nb\nb", "b", span(3, 3), LineAnchor::Same),
        ("b\na\na\na\nb", "b", span(3, 3), LineAnchor::Moved { now: span(1, 1) }),
        ("a\na\nb", "a\nb", span(1, 2), LineAnchor::Moved { now: span(2, 3) }),
        ("", "a", span(1, 1), LineAnchor::Stale),
        ("a\n\nb\n", "", span(2, 2), LineAnchor::Same),
        ("a\n\n", "a\n", span(1, 2), LineAnchor::Same),
        ("a", "a", span(u32::MAX, u32::MAX), LineAnchor::Moved { now: span(1, 1) }),
    ];
    for (file, quote, lines, expected) in table {
        assert_eq!(locate(file, quote, lines), expected, "{quote:?} in {file:?}");
    }
}

proptest! {
    /// Lines that are moved by text in front of them are found with it, unless their text stands nearer.
    #[test]
    fn an_anchor_is_always_a_place_with_the_quoted_text(
        file in "([ab]{0,2}\n){0,20}",
        quote in "[ab]{0,2}(\n[ab]{0,2}){0,3}",
        first in 1_u32..30,
    ) {
        let wanted: Vec<&str> = quote.split('\n').collect();
        let lines: Vec<&str> = file.strip_suffix('\n').unwrap_or(&file).split('\n').collect();
        let count = u32::try_from(wanted.len()).unwrap();
        let span = LineSpan { first, last: first + count - 1 };
        let places: Vec<u32> = lines
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, window)| *window == wanted.as_slice())
            .map(|(at, _)| u32::try_from(at).unwrap() + 1)
            .collect();
        let nearest = places.iter().map(|place| place.abs_diff(first)).min();
        match locate(&file, &quote, span) {
            LineAnchor::Stale => prop_assert!(places.is_empty()),
            LineAnchor::Same => prop_assert!(places.contains(&first)),
            LineAnchor::Moved { now } => {
                prop_assert!(places.contains(&now.first) && !places.contains(&first));
                prop_assert_eq!(Some(now.first.abs_diff(first)), nearest);
                prop_assert_eq!(now.len(), count);
            }
        }
    }

    /// Hostile text neither panics nor takes longer than reading it.
    #[test]
    fn any_text_has_an_anchor(file in any::<String>(), quote in any::<String>(), first in any::<u32>(), last in any::<u32>()) {
        let _ = locate(&file, &quote, LineSpan { first, last });
    }
}
