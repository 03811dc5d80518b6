//! Tool calls that come by: whether they are carried out, and what their answers carry (S0-38..S0-50).

use super::*;
use crate::session::testing::{begins, complies, ends, notify};
use crate::session::{Compliance, StopScope};
use crate::time::Timestamp;

fn external() -> Given {
    born(&NewSession { source: Some("external".into()), ..NewSession::default() })
}

fn stop_of(scope: StopScope, now: bool) -> Input {
    Command::Stop { reason: None, scope, now }.into()
}

fn due(given: &Given, after_ms: u64) -> Input {
    Signal::Due { now: given.now.plus_millis(after_ms) }.into()
}

/// S0-T10, S0-20, S0-38: nothing is pending, so the answer stays as it is and the call is counted.
#[test]
fn a_call_of_a_session_nobody_wants_anything_of_passes() {
    let mut given = external();
    assert_eq!(given.told(&begins(1)), "goes\nbeginning\n");
    given.put(&ends(1));
    given.put(&ends(2));
    let last = given.session.last_tool_call.unwrap();
    assert_eq!((last.tool.as_str(), last.count), ("echo", 2));
}

/// S0-40..S0-43, S0-T11, S0-T12, S0-T13, S0-T17: three calls that do not comply get level 1, 2, 3; at level 1 the tool
/// runs, above it does not (S0-B05); level 3 is told for ever (S0-B06).
#[test]
fn levels_rise_with_each_call_that_does_not_comply() {
    let inputs = [stop(), begins(1), ends(1), begins(2), begins(3), work_ended(), begins(4), ends(4)];
    story(
        external(),
        inputs,
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > call
            goes
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
            > call
            stop.raised from=1 reason="a tool call that does not comply" to=2
            stop.applied call="call 2" channel=mcp level=2 refused=true tool=echo
            not carried out: level 2 of the session
            between_turn, stop 2
            > call
            stop.raised from=2 reason="a tool call that does not comply" to=3
            stop.applied call="call 3" channel=mcp level=3 refused=true tool=echo
            do StopWork { level: Terminated, scope: Session, executing: false, answered: true }
            not carried out: level 3 of the session
            between_turn, stop 3
            > work_ended
            session.ended how=stopped
            between_turn -> stopped, stop 3
            > call
            stop.applied call="call 4" channel=mcp level=3 refused=true tool=echo
            not carried out: level 3 of the session
            stopped, stop 3
            > answer
            told level 3 of the session instead of the answer
            stopped, stop 3
        "#]],
    );
}

/// S0-B02: handing off and completing are exempt, are carried out, and resolve the stop.
#[test]
fn an_agent_that_complies_is_not_punished_for_it() {
    let hand_off = Input::Begins(complies(Compliance::HandOff));
    let handed_off = Input::Ends(complies(Compliance::HandOff));
    let completes = Input::Begins(complies(Compliance::Complete));
    let inputs = [stop(), begins(1), ends(1), hand_off, handed_off, completes, complete(), begins(2)];
    story(
        external(),
        inputs,
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > call
            goes
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
            > call
            stop.complied how=hand_off
            goes
            between_turn, stop 1
            > answer
            tool.relayed bytes=0 call="call 9" channel=mcp is_error=false server=lanyard took_ms=0 tool=memory_agent
            answered as it is
            between_turn, stop 1
            > call
            stop.complied how=complete
            goes
            between_turn, stop 1
            > complete
            session.ended how=completed
            between_turn -> completed, stop 1
            > call
            stop.applied call="call 2" channel=mcp level=3 refused=true tool=echo
            not carried out: level 3 of the session
            completed, stop 1
        "#]],
    );
}

/// A stop that was pressed while the tool ran is told with its answer; from level 2 on instead of it.
#[test]
fn a_stop_that_comes_while_the_tool_runs_is_told_with_its_answer() {
    story(
        external(),
        [begins(1), stop(), ends(1)],
        expect![[r#"
            > call
            goes
            beginning
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
        "#]],
    );
    story(
        external(),
        [begins(1), stop_of(StopScope::Session, true), ends(1)],
        expect![[r#"
            > call
            goes
            beginning
            > stop
            stop.requested level=2
            do StopWork { level: Immediate, scope: Session, executing: false, answered: false }
            beginning, stop 2
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=2 refused=false tool=echo
            told level 2 of the session instead of the answer
            beginning -> between_turn, stop 2
        "#]],
    );
}

/// S0-17, S0-T4: a directive is told once per level. Calls that were under way together are not held against the agent.
#[test]
fn calls_side_by_side_are_one_step() {
    story(
        external(),
        [stop(), begins(1), begins(2), ends(1), ends(2), begins(3)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > call
            goes
            beginning, stop 1
            > call
            goes
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            answered as it is
            between_turn, stop 1
            > call
            stop.raised from=1 reason="a tool call that does not comply" to=2
            stop.applied call="call 3" channel=mcp level=2 refused=true tool=echo
            not carried out: level 2 of the session
            between_turn, stop 2
        "#]],
    );
}

/// S0-B03: a session that makes no call is stopped by its deadlines.
#[test]
fn deadlines_raise_a_stop_nobody_answers() {
    let given = external().after(stop());
    let (early, late) = (due(&given, 1_000), due(&given, 31_000));
    let later = due(&given, 60_000);
    story(
        given,
        [early, late, later],
        expect![[r#"
            > due
            beginning, stop 1
            > due
            stop.raised from=1 reason="its deadline passed" to=2
            do StopWork { level: Immediate, scope: Session, executing: false, answered: false }
            beginning, stop 2
            > due
            stop.raised from=2 reason="its deadline passed" to=3
            do StopWork { level: Terminated, scope: Session, executing: false, answered: false }
            beginning, stop 3
        "#]],
    );
}

/// Whoever does what was asked gets the time for it.
#[test]
fn complying_starts_the_clock_of_a_level_anew() {
    let given = external().after(stop()).later(29_000);
    let complies = Input::Begins(complies(Compliance::HandOff));
    let soon = due(&given, 10_000);
    story(
        given,
        [complies, soon],
        expect![[r#"
        > call
        stop.complied how=hand_off
        goes
        beginning, stop 1
        > due
        beginning, stop 1
    "#]],
    );
}

/// S0-45, S0-T6, S0-T14, S0-T18: all that waits goes in the order it was written, and the next answer is clean.
#[test]
fn guidance_goes_before_the_next_answer_and_only_once() {
    let words = [guide(1, "one"), guide(2, "two"), guide(3, "three")];
    let given = external().after_each(words);
    story(
        given,
        [begins(1), ends(1), begins(2), ends(2)],
        expect![[r#"
            > call
            goes
            beginning
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 1" call="call 1" channel=mcp notes=[note#1, note#2, note#3] preview="one\ntwo\nthree"
            told note#1 "one", note#2 "two", note#3 "three" before the answer
            beginning -> between_turn
            > call
            guidance.settled how=acknowledged notes=[note#1, note#2, note#3]
            goes
            between_turn
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            answered as it is
            between_turn
        "#]],
    );
}

/// S0-39, S0-T15: a stop outranks guidance, which is kept.
#[test]
fn a_stop_goes_before_guidance() {
    let given = external().after(guide(1, "left")).after(stop());
    story(
        given,
        [begins(1), ends(1), withdraw_stop(), begins(2), ends(2)],
        expect![[r#"
            > call
            goes
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
            > withdraw_stop
            stop.withdrawn
            between_turn
            > call
            goes
            between_turn
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 1" call="call 2" channel=mcp notes=[note#1] preview=left
            told note#1 "left" before the answer
            between_turn
        "#]],
    );
}

/// S0-B10: what a daemon sent that was killed may not have arrived; it goes again and says so.
#[test]
fn guidance_whose_answer_may_be_lost_goes_again_marked_as_a_repeat() {
    let given = external().after(guide(1, "left"));
    story(
        given,
        [ends(1), Input::Restarted, begins(2), ends(2), begins(3)],
        expect![[r#"
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 1" call="call 1" channel=mcp notes=[note#1] preview=left
            told note#1 "left" before the answer
            beginning -> between_turn
            > daemon restarted
            between_turn
            > call
            guidance.returned notes=[note#1]
            goes
            between_turn
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 2" call="call 2" channel=mcp notes=[note#1] preview=left
            told note#1 again "left" before the answer
            between_turn
            > call
            guidance.settled how=acknowledged notes=[note#1]
            goes
            between_turn
        "#]],
    );
}

#[test]
fn guidance_whose_answer_broke_off_goes_again_also_when_another_call_came_meanwhile() {
    let given = external().after(guide(1, "left")).after(ends(1));
    let lost = || Input::from(Signal::AnswerLost { notes: vec![note_id(1)] });
    story(
        given.clone(),
        [lost(), begins(2), ends(2)],
        expect![[r#"
            > answer_lost
            guidance.returned notes=[note#1]
            between_turn
            > call
            goes
            between_turn
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 1" call="call 2" channel=mcp notes=[note#1] preview=left
            told note#1 again "left" before the answer
            between_turn
        "#]],
    );
    story(
        given,
        [begins(2), lost(), ends(2), begins(3), lost()],
        expect![[r#"
            > call
            guidance.settled how=acknowledged notes=[note#1]
            goes
            between_turn
            > answer_lost
            guidance.returned notes=[note#1]
            between_turn
            > answer
            tool.relayed bytes=0 call="call 2" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            guidance.delivered by="daemon 1" call="call 2" channel=mcp notes=[note#1] preview=left
            told note#1 again "left" before the answer
            between_turn
            > call
            guidance.settled how=acknowledged notes=[note#1]
            goes
            between_turn
            > answer_lost
            guidance.returned notes=[note#1]
            between_turn
        "#]],
    );
}

/// A call the agent reports itself may be the very one whose answer carried the words.
#[test]
fn words_in_an_answer_are_acknowledged_by_the_next_call_that_comes_by() {
    let given = given([started(1)]).after(guide(1, "left")).after(ends(1));
    story(
        given,
        [tool_called("c", "read"), begins(2)],
        expect![[r#"
        > tool_called
        tool.called call=c tool=read
        executing
        > call
        guidance.settled how=acknowledged notes=[note#1]
        goes
        executing
    "#]],
    );
}

#[test]
fn guidance_nobody_could_be_told_expires() {
    let given = external().after(guide(1, "left"));
    let (soon, late) = (due(&given, HOUR), due(&given, 25 * HOUR));
    story(
        given,
        [soon, late, begins(1), ends(1)],
        expect![[r#"
            > due
            beginning
            > due
            guidance.settled how=expired notes=[note#1]
            beginning
            > call
            goes
            beginning
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            answered as it is
            beginning -> between_turn
        "#]],
    );
}

/// DESIGN: a stop of the turn ends the turn and leaves the session to the next one.
#[test]
fn a_stop_of_the_turn_is_settled_by_its_end() {
    story(
        given([started(1)]),
        [stop_of(StopScope::Turn, false), turn_finished()],
        expect![[r#"
            > stop
            stop.requested level=1 scope=turn
            do StopWork { level: Graceful, scope: Turn, executing: true, answered: false }
            executing, stop 1
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=3 reason=turn_end
            stop.settled
            executing -> between_turn
        "#]],
    );
    story(
        given([started(1)]),
        [stop_of(StopScope::Turn, true), turn_lost(InterruptCause::User), start_turn(2)],
        expect![[r#"
            > stop
            stop.requested level=2 scope=turn
            do StopWork { level: Immediate, scope: Turn, executing: true, answered: false }
            executing, stop 2
            > turn_lost
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=3 reason=interruption
            stop.settled
            executing -> interrupted
            > start_turn
            turn.started governance=true memory={mode=session_only} opening={kind=continued} prompt=go turn=turn#2
            do RunTurn { turn: turn#2 }
            interrupted -> executing
        "#]],
    );
    check(
        given([]),
        stop_of(StopScope::Turn, false),
        expect![[r#"
        refused no_active_turn: no turn is running; look at its state with `lanyard show`
        command.refused code=no_active_turn command=stop state=beginning
        beginning
    "#]],
    );
}

/// S0-B17: a further press reaches further, never less far.
#[test]
fn a_further_press_may_widen_a_stop() {
    let inputs = [
        stop_of(StopScope::Turn, false),
        stop_of(StopScope::Subtree, false),
        stop_of(StopScope::Turn, false),
    ];
    story(
        given([started(1)]),
        inputs,
        expect![[r#"
            > stop
            stop.requested level=1 scope=turn
            do StopWork { level: Graceful, scope: Turn, executing: true, answered: false }
            executing, stop 1
            > stop
            stop.raised from=1 scope=subtree to=2
            do StopWork { level: Immediate, scope: Subtree, executing: true, answered: false }
            executing, stop 2
            > stop
            stop.raised from=2 to=3
            do StopWork { level: Terminated, scope: Subtree, executing: true, answered: false }
            executing, stop 3
        "#]],
    );
}

/// A child that is born after a stop of its subtree inherits the stop; one of the session alone it does not.
#[test]
fn a_child_inherits_a_stop_of_the_whole_family() {
    let inherited = |scope| {
        let parent = given([started(1)]).after(stop_of(scope, false));
        crate::session::inherited(&parent.session).map(|event| short_ids(&event_line(&event)))
    };
    assert_eq!(inherited(StopScope::Session), None);
    expect!["stop.requested inherited=sess#1 level=1 scope=subtree"]
        .assert_eq(&inherited(StopScope::Subtree).unwrap());
}

/// S0-49: a child that ends under a stop, obeyed or enforced, is told of once.
#[test]
fn the_parent_of_a_stopped_child_is_to_be_told() {
    let parent = given([started(1)]).session;
    let child = || given_created(created_under(&parent, &NewSession::default()));
    let sent =
        || Input::from(Signal::NoticeSent { to: Some(session_id(1)), note: Some(note_id(3)), since: None });
    story(
        child(),
        [stop(), work_ended(), sent(), sent()],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            custom, stop 1
            > work_ended
            session.ended how=stopped
            do TellParent
            custom -> stopped, stop 1
            > notice_sent
            notice.sent note=note#3 to=sess#1
            stopped, stop 1
            > notice_sent
            stopped, stop 1
        "#]],
    );
    story(
        child(),
        [stop(), complete(), sent()],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            custom, stop 1
            > complete
            session.ended how=completed
            do TellParent
            custom -> completed, stop 1
            > notice_sent
            notice.sent note=note#3 to=sess#1
            completed, stop 1
        "#]],
    );
    story(
        child(),
        [complete(), sent()],
        expect![[r#"
        > complete
        session.ended how=completed
        custom -> completed
        > notice_sent
        completed
    "#]],
    );
    // S0-50: without a parent there is nobody to tell.
    story(
        given([]),
        [stop(), work_ended()],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > work_ended
            session.ended how=stopped
            beginning -> stopped, stop 1
        "#]],
    );
}

#[test]
fn a_notice_waits_for_the_next_answer_and_stops_nobody() {
    story(
        given([started(1)]),
        [notify(1), begins(1), ends(1), begins(2)],
        expect![[r#"
        > notify
        guidance.queued about=sess#2 kind=notice note=note#1 text="a child was stopped"
        executing
        > call
        goes
        executing
        > answer
        tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
        guidance.delivered by="daemon 1" call="call 1" channel=mcp notes=[note#1] preview="a child was stopped"
        told note#1 "a child was stopped" before the answer
        executing
        > call
        guidance.settled how=acknowledged notes=[note#1]
        goes
        executing
    "#]],
    );
}

/// S0-B04: an agent whose process Lanyard does not own is not ended by a restart of the daemon.
#[test]
fn a_stop_of_an_external_session_waits_through_a_restart() {
    story(
        external(),
        [stop(), daemon_restarted(), begins(1), ends(1)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: false, answered: false }
            beginning, stop 1
            > daemon_restarted
            beginning, stop 1
            > call
            goes
            beginning, stop 1
            > answer
            tool.relayed bytes=0 call="call 1" channel=mcp is_error=false server=ev took_ms=0 tool=echo
            stop.applied call="call 1" channel=mcp level=1 refused=false tool=echo
            told level 1 of the session before the answer
            beginning -> between_turn, stop 1
        "#]],
    );
}

#[test]
fn when_to_look_again_is_the_sooner_of_both() {
    let rules = crate::policy::Rules::default();
    let next = |given: &Given| crate::session::next_due(&given.session, &rules).map(Timestamp::as_millis);
    assert_eq!(next(&external()), None);
    let guided = external().after(guide(1, "left"));
    let day = 24 * i64::try_from(HOUR).unwrap();
    assert_eq!(next(&guided), Some(guided.session.guidance[0].queued_at.as_millis() + day));
    let stopped = guided.after(stop());
    assert_eq!(next(&stopped), Some(stopped.session.stop.as_ref().unwrap().level_at.as_millis() + 30_000));
}

/// An answer that went out while nothing was pending carries nothing, whatever has come since.
#[test]
fn a_call_that_passed_delivers_nothing() {
    let given = external().after(guide(1, "left")).after(stop());
    let passed = crate::session::call_passed(
        &given.session,
        &crate::session::testing::call(1),
        &crate::session::Returned::default(),
    );
    assert_eq!(passed.len(), 1);
    assert!(event_line(&passed[0]).starts_with("tool.relayed "), "{passed:?}");
}
