//! Compaction of the agent's context, and the anchors that must survive it.

use super::*;
use crate::session::testing::finished;

/// S1-13, S1-20, S1-B09: the engine's own event, with sizes.
#[test]
fn a_compaction_tells_sizes_and_the_place_before_it() {
    check(
        given([]),
        context_compacted(9_000, 1_000, &[]),
        expect![[r#"
            context.compacted anchors_lost=[] anchors_survived=[] checkpoint=1 nth=1 size_after=1000 size_before=9000
            beginning -> compacted
        "#]],
    );
}

#[test]
fn a_compaction_in_mid_turn_leaves_the_session_executing() {
    check(
        in_state(StateName::Executing),
        context_compacted(9_000, 1_000, &[]),
        expect![[r#"
            context.compacted anchors_lost=[] anchors_survived=[] checkpoint=2 nth=1 size_after=1000 size_before=9000
            executing
        "#]],
    );
}

#[test]
fn an_ended_session_is_not_compacted() {
    check(
        in_state(StateName::Failed),
        context_compacted(9_000, 1_000, &[]),
        expect![[r#"
            signal.unexpected signal=context_compacted state=failed
            failed
        "#]],
    );
}

/// S1-19: first versus nth.
#[test]
fn compactions_are_numbered() {
    story(
        given([]),
        [context_compacted(9, 1, &[]), context_compacted(8, 2, &[]), context_compacted(7, 3, &[])],
        expect![[r#"
            > context_compacted
            context.compacted anchors_lost=[] anchors_survived=[] checkpoint=1 nth=1 size_after=1 size_before=9
            beginning -> compacted
            > context_compacted
            context.compacted anchors_lost=[] anchors_survived=[] checkpoint=2 nth=2 size_after=2 size_before=8
            compacted
            > context_compacted
            context.compacted anchors_lost=[] anchors_survived=[] checkpoint=3 nth=3 size_after=3 size_before=7
            compacted
        "#]],
    );
}

/// S1-19, S1-20: what survived and what was lost.
#[test]
fn anchors_survive_or_are_lost() {
    check(
        anchored(),
        context_compacted(9, 1, &["b"]),
        expect![[r#"
            context.compacted anchors_lost=[a] anchors_survived=[b] checkpoint=1 nth=1 size_after=1 size_before=9
            beginning -> compacted
        "#]],
    );
}

#[test]
fn what_was_never_an_anchor_is_no_survivor() {
    check(
        anchored(),
        context_compacted(9, 1, &["c", "a", "z"]),
        expect![[r#"
            context.compacted anchors_lost=[b] anchors_survived=[a] checkpoint=1 nth=1 size_after=1 size_before=9
            beginning -> compacted
        "#]],
    );
}

/// S1-39: lost anchors are told again with the next turn, once.
#[test]
fn lost_anchors_are_told_with_the_next_turn_and_not_again() {
    story(
        anchored().after_each([start_turn(1), turn_finished()]),
        [context_compacted(9, 1, &["b"]), start_turn(2), turn_finished(), start_turn(3)],
        expect![[r#"
            > context_compacted
            context.compacted anchors_lost=[a] anchors_survived=[b] checkpoint=4 nth=1 size_after=1 size_before=9
            between_turn -> compacted
            > start_turn
            turn.started anchors=[a] governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            compacted -> executing
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#2
            context.checkpoint position=6 reason=turn_end
            executing -> between_turn
            > start_turn
            turn.started memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#3
            do RunTurn { turn: turn#3 }
            between_turn -> executing
        "#]],
    );
}

#[test]
fn anchors_lost_in_mid_turn_are_told_with_the_next_turn() {
    let given = anchored().after_each([start_turn(1), context_compacted(9, 1, &["a"]), turn_finished()]);
    check(
        given,
        start_turn(2),
        expect![[r#"
            turn.started anchors=[b] memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            between_turn -> executing
        "#]],
    );
}

#[test]
fn an_anchor_that_was_lost_twice_is_told_once() {
    let given = anchored().after_each([start_turn(1), turn_finished()]);
    let given = given.after_each([context_compacted(9, 1, &[]), context_compacted(8, 1, &[])]);
    check(
        given,
        start_turn(2),
        expect![[r#"
            turn.started anchors=[a, b] governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            compacted -> executing
        "#]],
    );
}

/// S1-18, S1-39: a conversation opens with all its anchors.
#[test]
fn a_new_conversation_is_told_every_anchor() {
    check(
        anchored(),
        start_turn(1),
        expect![[r#"
            turn.started anchors=[a, b] memory={mode=session_only} opening={kind=new} prompt=go turn=turn#1
            do RunTurn { turn: turn#1 }
            beginning -> executing
        "#]],
    );
}

/// S1-18.
#[test]
fn whoever_returns_after_days_is_told_every_anchor() {
    let given = anchored().after_each([start_turn(1), turn_finished(), quiet(HOUR), quiet(48 * HOUR)]);
    check(
        given,
        start_turn(2),
        expect![[r#"
            turn.started anchors=[a, b] memory={mode=session_only} opening={after_ms=3000 kind=returned} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            stale -> executing
        "#]],
    );
}

#[test]
fn an_anchor_that_was_given_up_is_not_told_again() {
    let given = anchored().after_each([start_turn(1), context_compacted(9, 1, &[]), turn_finished()]);
    check(
        given.after(set_anchors(&["b", "new"])),
        start_turn(2),
        expect![[r#"
            turn.started anchors=[b] memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            between_turn -> executing
        "#]],
    );
}

#[test]
fn anchors_can_be_changed() {
    check(
        anchored(),
        set_anchors(&["b"]),
        expect![[r#"
            context.anchors_set anchors=[b]
            beginning
        "#]],
    );
}

#[test]
fn the_same_anchors_again_change_nothing() {
    check(
        anchored(),
        set_anchors(&["a", "b"]),
        expect![[r#"
            beginning
        "#]],
    );
}

#[test]
fn anchors_can_be_given_up_altogether() {
    check(
        anchored(),
        set_anchors(&[]),
        expect![[r#"
            context.anchors_set anchors=[]
            beginning
        "#]],
    );
}

#[test]
fn sixty_four_anchors_are_the_most() {
    let anchors = |count: usize| -> Input {
        let anchors = (0..count).map(|number| number.to_string()).collect();
        Command::SetAnchors { anchors }.into()
    };
    assert!(given([]).put(&anchors(64)).refusal.is_none());
    check(
        given([]),
        anchors(65),
        expect![[r#"
            refused field_too_many: anchors has more than 64 entries; send fewer
            beginning
        "#]],
    );
}

#[test]
fn an_anchor_has_text() {
    check(
        given([]),
        set_anchors(&["a", ""]),
        expect![[r#"
            refused field_empty: anchors is empty; give at least one visible character
            beginning
        "#]],
    );
}

#[test]
fn an_ended_session_needs_no_anchors() {
    check(
        in_state(StateName::Completed),
        set_anchors(&["a"]),
        expect![[r#"
            refused session_ended: the session has ended as completed; fork it with `lanyard fork` to go on from its log
            command.refused code=session_ended command=set_anchors state=completed
            completed
        "#]],
    );
}

fn anchored() -> Given {
    born(&NewSession { anchors: texts(&["a", "b"]), ..NewSession::default() })
}

/// FND-M9, S1-05, S1-39: after a compaction the agent's instructions are due again, and told with the next turn, once.
#[test]
fn fnd_m9_instructions_are_told_again_after_a_compaction() {
    let injected = |given: &Given| given.session.governance.injected;
    let given = given([]);
    assert!(!injected(&given), "nobody has told the agent yet");
    let given = given.after(start_turn(1)).after(turn_delivered(1));
    assert!(injected(&given));
    let given = given.after(context_compacted(9, 1, &[]));
    assert!(!injected(&given));
    // More of the same turn does not bring them back.
    let given = given.after(said("going on")).after(turn_finished());
    assert!(!injected(&given));
    let mut given = given;
    assert!(given.told(&start_turn(2)).contains("governance=true"));
    assert!(!injected(&given), "not before the prompt arrived");
    let mut given = given.after(turn_delivered(2)).after(turn_finished());
    assert!(injected(&given));
    assert!(!given.told(&start_turn(3)).contains("governance"));
}

/// FND-M9: a turn whose prompt never arrived leaves the instructions due; another agent and a reset need them anew.
#[test]
fn fnd_m9_instructions_are_due_until_they_arrived() {
    let lost = given([]).after(start_turn(1)).after(turn_lost(InterruptCause::Crash));
    assert!(!lost.session.governance.injected);
    let told = || given([started(1), finished(1)]);
    assert!(told().session.governance.injected);
    assert!(!told().after(reset()).session.governance.injected);
    assert!(!told().after(migrate_to_agent("other")).session.governance.injected);
    assert!(told().after(migrate_to_owner("bob")).session.governance.injected);
}

/// FND-M9: records from before this was written are read, and their agents count as told.
#[test]
fn fnd_m9_an_old_record_is_readable() {
    let given = given([started(1), finished(1)]);
    let mut record = serde_json::to_value(&given.session).unwrap();
    for field in ["governance", "first_tool", "plan_joined"] {
        record.as_object_mut().unwrap().remove(field);
    }
    let read: Session = serde_json::from_value(record).unwrap();
    assert_eq!(read, given.session);
}
