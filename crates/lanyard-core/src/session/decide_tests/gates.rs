//! Gates: questions that wait durably, and the first answer to each.

use super::*;
use crate::session::GateKind;

/// S2-B01: a question waits in the log, not in a process.
#[test]
fn a_question_opens_a_gate() {
    check(
        in_state(StateName::Executing).with_run(),
        gate_asked(1, 1),
        expect![[r#"
            gate.opened call=c1 detail={command="cargo test"} gate=gate#1 kind=permission options=[{id=yes kind=allow_once name=Allow}, {id=yes-all kind=allow_always name=Always}, {id=no kind=reject_once name=Reject}] request=1 run=run#1 title="Run the tests"
            executing, run 1 ready, open gates 1
        "#]],
    );
}

/// After a crash the agent's output is read again.
#[test]
fn a_question_asked_twice_opens_one_gate() {
    story(
        in_state(StateName::Executing).with_run(),
        [asked_again(1, 1, "7"), asked_again(2, 1, "7"), answer(1, "yes"), asked_again(3, 1, "7")],
        expect![[r#"
            > gate_asked
            gate.opened call=c1 detail={command="cargo test"} gate=gate#1 kind=permission options=[{id=yes kind=allow_once name=Allow}, {id=yes-all kind=allow_always name=Always}, {id=no kind=reject_once name=Reject}] request=7 run=run#1 title="Run the tests"
            executing, run 1 ready, open gates 1
            > gate_asked
            executing, run 1 ready, open gates 1
            > answer_gate
            gate.answered gate=gate#1 option=yes
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
            > gate_asked
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn another_question_opens_another_gate() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [gate_asked(2, 1)],
        expect![[r#"
            > gate_asked
            gate.opened call=c1 detail={command="cargo test"} gate=gate#2 kind=permission options=[{id=yes kind=allow_once name=Allow}, {id=yes-all kind=allow_always name=Always}, {id=no kind=reject_once name=Reject}] request=2 run=run#1 title="Run the tests"
            executing, run 1 ready, open gates 2
        "#]],
    );
}

/// S4-B01: a new run counts its questions anew.
#[test]
fn the_same_handle_in_another_run_is_another_question() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1).after_each([
            run_ended(1, None),
            run_started(2),
            run_ready(2),
        ]),
        [asked_again(2, 2, "1")],
        expect![[r#"
            > gate_asked
            gate.opened call=c1 detail={command="cargo test"} gate=gate#2 kind=permission options=[{id=yes kind=allow_once name=Allow}, {id=yes-all kind=allow_always name=Always}, {id=no kind=reject_once name=Reject}] request=1 run=run#2 title="Run the tests"
            executing, run 2 ready, open gates 1
        "#]],
    );
}

#[test]
fn a_gate_outside_a_turn_is_unexpected() {
    check(
        in_state(StateName::BetweenTurn).with_run(),
        gate_asked(1, 1),
        expect![[r"
            signal.unexpected signal=gate_asked state=between_turn
            between_turn, run 1 ready
        "]],
    );
}

/// S4-B01: nobody would be there to hear the answer.
#[test]
fn a_gate_of_another_run_is_unexpected() {
    story(
        in_state(StateName::Executing).with_run(),
        [gate_asked(1, 2), run_ended(1, None), gate_asked(1, 1)],
        expect![[r"
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            executing
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing
        "]],
    );
}

#[test]
fn a_gate_of_an_ended_session_is_unexpected() {
    check(
        in_state(StateName::Completed),
        gate_asked(1, 1),
        expect![[r"
            signal.unexpected signal=gate_asked state=completed
            completed
        "]],
    );
}

#[test]
fn a_gate_that_is_there_is_not_opened_again() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        asked_again(1, 1, "another"),
        expect![[r"
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready, open gates 1
        "]],
    );
}

/// X-01: stop, guidance and gate answers are recorded with the actor.
#[test]
fn an_answer_is_passed_on() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        answer(1, "yes"),
        expect![[r"
            gate.answered gate=gate#1 option=yes
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
        "]],
    );
}

#[test]
fn an_answer_says_who_and_when() {
    let given = in_state(StateName::Executing).with_run().with_gate(1).after(answer(1, "no"));
    let (by, at) = (crate::Actor::operator("ann"), given.log.last().unwrap().at);
    let status = GateStatus::Answered { option: "no".into(), message: None, by, at };
    assert_eq!(given.session.gates[0].status, status);
}

#[test]
fn an_answer_may_have_a_message() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        answer_because(1, "no", "not on main\nplease"),
        expect![[r#"
            gate.answered gate=gate#1 message="not on main\nplease" option=no
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
        "#]],
    );
}

/// S2-B01: answering is exactly-once; an identical repeat changes nothing.
#[test]
fn the_same_answer_again_changes_nothing() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [answer(1, "yes"), answer(1, "yes"), answer(1, "allow")],
        expect![[r"
            > answer_gate
            gate.answered gate=gate#1 option=yes
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
            > answer_gate
            executing, run 1 ready
            > answer_gate
            executing, run 1 ready
        "]],
    );
}

/// S2-B01: the first answer wins.
#[test]
fn another_answer_is_refused() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [answer(1, "yes"), answer(1, "no"), answer(1, "deny")],
        expect![[r"
            > answer_gate
            gate.answered gate=gate#1 option=yes
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
            > answer_gate
            refused gate_already_answered: approval gate#1 was answered with `yes`; the first answer stands; nothing was changed
            executing, run 1 ready
            > answer_gate
            refused gate_already_answered: approval gate#1 was answered with `yes`; the first answer stands; nothing was changed
            executing, run 1 ready
        "]],
    );
}

#[test]
fn an_answer_to_a_void_gate_is_refused() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [gate_withdrawn("1"), answer(1, "yes")],
        expect![[r#"
            > gate_withdrawn
            gate.withdrawn gate=gate#1 why="the agent went on"
            executing, run 1 ready
            > answer_gate
            refused gate_void: approval gate#1 is void: the agent went on; the agent no longer waits for it; look at `lanyard show`
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn an_unknown_option_is_refused_with_those_there_are() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        answer(1, "maybe"),
        expect![[r"
            refused gate_option_unknown: the approval has no option `maybe`; it has yes, yes-all, no; choose one of those, or say `allow` or `deny`
            executing, run 1 ready, open gates 1
        "]],
    );
}

#[test]
fn a_gate_there_never_was_is_refused() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        answer(9, "yes"),
        expect![[r"
            refused gate_not_found: the session has no approval gate#9; list open approvals with `lanyard approvals`
            executing, run 1 ready, open gates 1
        "]],
    );
}

#[test]
fn a_deleted_session_answers_nothing() {
    check(
        given([deleted()]),
        answer(1, "yes"),
        expect![[r"
            refused session_deleted: the session was deleted; create a new session
            command.refused code=session_deleted command=answer_gate state=beginning
            beginning, deleted
        "]],
    );
}

#[test]
fn a_message_has_visible_characters() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        answer_because(1, "no", " \n"),
        expect![[r"
            refused field_empty: message is empty; give at least one visible character
            executing, run 1 ready, open gates 1
        "]],
    );
}

/// S0-B19: it stays in the record, so it is bounded like a name.
#[test]
fn a_message_of_exactly_the_limit_is_taken() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [
            answer_because(1, "no", &"é".repeat(NAME_CHARS_MAX + 1)),
            answer_because(1, "no", &"é".repeat(NAME_CHARS_MAX)),
        ],
        expect![[r"
            > answer_gate
            refused field_too_long: message is longer than 1000 characters; shorten it; put long content into a file the agent can read
            executing, run 1 ready, open gates 1
            > answer_gate
            gate.answered gate=gate#1 message=éééééééé…(1000 characters) option=no
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
        "]],
    );
}

#[test]
fn words_choose_an_option_by_its_kind() {
    use OptionKind::{AllowAlways, AllowOnce, Other, RejectAlways, RejectOnce};
    let all: &[_] = &[Other, AllowOnce, AllowAlways, RejectOnce, RejectAlways];
    let once: &[_] = &[AllowOnce, RejectOnce];
    let always: &[_] = &[RejectAlways, AllowAlways];
    let none: &[_] = &[Other];
    let mut lines = Vec::new();
    for kinds in [all, once, always, none] {
        let question = of_kinds(kinds);
        let chosen: Vec<String> = ["allow", "always", "deny", "never", "other", "Allow", ""]
            .iter()
            .map(|word| {
                let option = question.choose(word).map_or("-", |option| option.id.as_str());
                format!("{word:?} {option}")
            })
            .collect();
        lines.push(format!("{kinds:?}: {}", chosen.join(", ")));
    }
    expect![[r#"
        [Other, AllowOnce, AllowAlways, RejectOnce, RejectAlways]: "allow" allow_once, "always" allow_always, "deny" reject_once, "never" reject_always, "other" other, "Allow" -, "" -
        [AllowOnce, RejectOnce]: "allow" allow_once, "always" -, "deny" reject_once, "never" -, "other" -, "Allow" -, "" -
        [RejectAlways, AllowAlways]: "allow" allow_always, "always" allow_always, "deny" reject_always, "never" reject_always, "other" -, "Allow" -, "" -
        [Other]: "allow" -, "always" -, "deny" -, "never" -, "other" other, "Allow" -, "" -"#]].assert_eq(&lines.join("\n"));
}

/// An agent may call its options what it likes.
#[test]
fn an_options_own_id_comes_before_the_words() {
    let mut question = of_kinds(&[OptionKind::AllowOnce, OptionKind::RejectOnce]);
    question.options[1].id = "allow".into();
    assert_eq!(question.choose("allow").unwrap().kind, OptionKind::RejectOnce);
    assert_eq!(question.choose("allow_once").unwrap().kind, OptionKind::AllowOnce);
}

#[test]
fn an_agent_may_withdraw_its_question() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [gate_withdrawn("1"), gate_withdrawn("1"), gate_withdrawn("nothing")],
        expect![[r#"
            > gate_withdrawn
            gate.withdrawn gate=gate#1 why="the agent went on"
            executing, run 1 ready
            > gate_withdrawn
            executing, run 1 ready
            > gate_withdrawn
            executing, run 1 ready
        "#]],
    );
}

#[test]
fn the_end_of_the_turn_voids_its_gates() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1).with_gate(2).after(answer(1, "yes")),
        [turn_finished(), answer(2, "yes"), answer(1, "yes")],
        expect![[r#"
            > turn_finished
            turn.finished outcome=completed review=true turn=turn#1
            context.checkpoint position=7 reason=turn_end
            gate.withdrawn gate=gate#2 why="the turn ended"
            executing -> between_turn, run 1 ready
            > answer_gate
            refused gate_void: approval gate#2 is void: the turn ended; the agent no longer waits for it; look at `lanyard show`
            between_turn, run 1 ready
            > answer_gate
            between_turn, run 1 ready
        "#]],
    );
}

#[test]
fn an_interrupted_turn_voids_its_gates() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        turn_lost(InterruptCause::Limit),
        expect![[r#"
            turn.interrupted cause=limit review=true turn=turn#1
            context.checkpoint position=5 reason=interruption
            gate.withdrawn gate=gate#1 why="the turn ended"
            executing -> interrupted, run 1 ready
        "#]],
    );
}

#[test]
fn the_end_of_the_run_voids_its_gates() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [run_ended(1, InterruptCause::Crash), answer(1, "yes")],
        expect![[r#"
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=crash review=true turn=turn#1
            context.checkpoint position=5 reason=interruption
            gate.withdrawn gate=gate#1 why="the turn ended"
            executing -> interrupted
            > answer_gate
            refused gate_void: approval gate#1 is void: the turn ended; the agent no longer waits for it; look at `lanyard show`
            interrupted
        "#]],
    );
}

/// The turn goes on in a further run, which knows nothing of the question.
#[test]
fn the_end_of_a_run_that_another_follows_voids_its_gates() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        run_ended(1, None),
        expect![[r#"
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            gate.withdrawn gate=gate#1 why="the agent's process ended"
            executing
        "#]],
    );
}

#[test]
fn the_end_of_the_session_voids_its_gates() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        complete(),
        expect![[r#"
            turn.finished outcome=completed turn=turn#1
            context.checkpoint position=5 reason=turn_end
            gate.withdrawn gate=gate#1 why="the session ended"
            session.ended how=completed
            do EndRun { answered: false }
            executing -> between_turn -> completed, run 1 ready
        "#]],
    );
}

#[test]
fn a_failed_session_voids_its_gates() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        fail(),
        expect![[r#"
            turn.finished outcome=failed review=true turn=turn#1
            context.checkpoint position=5 reason=turn_end
            gate.withdrawn gate=gate#1 why="the session ended"
            session.ended how=failed
            do EndRun { answered: false }
            executing -> between_turn -> failed, run 1 ready
        "#]],
    );
}

#[test]
fn a_stop_voids_its_gates_when_it_is_confirmed() {
    story(
        in_state(StateName::Executing).with_run().with_gate(1),
        [stop(), run_ended(1, None)],
        expect![[r#"
            > stop
            stop.requested level=1
            do StopWork { level: Graceful, scope: Session, executing: true, answered: false }
            executing, stop 1, run 1 ready, open gates 1
            > run_ended
            run.ended how={code=0 kind=exited} receipt={} run=run#1
            turn.interrupted cause=user turn=turn#1
            context.checkpoint position=6 reason=interruption
            gate.withdrawn gate=gate#1 why="the turn ended"
            session.ended how=stopped
            executing -> interrupted -> stopped, stop 1
        "#]],
    );
}

/// S4-B07.
#[test]
fn a_restart_that_finds_no_process_voids_its_gates() {
    check(
        in_state(StateName::Executing).with_run().with_gate(1),
        daemon_restarted(),
        expect![[r#"
            run.ended how={kind=lost} reason="the daemon restarted and the turn's work was gone" receipt={} run=run#1
            turn.interrupted cause=crash reason="the daemon restarted and the turn's work was gone" review=true turn=turn#1
            context.checkpoint position=5 reason=interruption
            gate.withdrawn gate=gate#1 why="the turn ended"
            executing -> interrupted
        "#]],
    );
}

/// An agent that asks on and on is answered no.
#[test]
fn no_more_than_sixty_four_gates_are_open() {
    let given =
        in_state(StateName::Executing).with_run().after_each((1..=64).map(|gate| gate_asked(gate, 1)));
    story(
        given,
        [gate_asked(65, 1), answer(7, "no"), gate_asked(65, 1), gate_asked(66, 1)],
        expect![[r#"
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready, open gates 64
            > answer_gate
            gate.answered gate=gate#7 option=no
            do AnswerGate { gate: gate#7 }
            executing, run 1 ready, open gates 63
            > gate_asked
            gate.opened call=c1 detail={command="cargo test"} gate=gate#65 kind=permission options=[{id=yes kind=allow_once name=Allow}, {id=yes-all kind=allow_always name=Always}, {id=no kind=reject_once name=Reject}] request=65 run=run#1 title="Run the tests"
            executing, run 1 ready, open gates 64
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready, open gates 64
        "#]],
    );
}

/// S1-B11: the record does not grow with the log, and a recent repeat is answered alike.
#[test]
fn the_newest_thirty_two_settled_gates_are_kept() {
    let each = |gate| [gate_asked(gate, 1), answer(gate, "no")];
    let given = in_state(StateName::Executing).with_run().after(gate_asked(1, 1));
    let given = given.after_each((2..=41).flat_map(each));
    let kept: Vec<_> = given.session.gates.iter().map(|gate| gate.id).collect();
    assert_eq!(kept, [1].into_iter().chain(10..=41).map(gate_id).collect::<Vec<_>>());
    story(
        given,
        [answer(10, "no"), answer(9, "no"), answer(1, "no")],
        expect![[r"
            > answer_gate
            executing, run 1 ready, open gates 1
            > answer_gate
            refused gate_not_found: the session has no approval gate#9; list open approvals with `lanyard approvals`
            executing, run 1 ready, open gates 1
            > answer_gate
            gate.answered gate=gate#1 option=no
            do AnswerGate { gate: gate#1 }
            executing, run 1 ready
        "]],
    );
}

/// S1-B11: a question may be of any size, and the record holds all that are open.
#[test]
fn a_question_is_bounded_but_for_its_handles() {
    let mut question = question("7");
    let long = "é".repeat(NAME_CHARS_MAX + 1);
    question.title.clone_from(&long);
    question.call = Some(long.clone());
    question.detail = serde_json::json!({ "content": "é".repeat(20_000) });
    question.options = (0..99).map(|number| option(&number.to_string(), &long)).collect();
    let given = in_state(StateName::Executing).with_run().after(asked(1, 1, question));
    let held = &given.session.gates[0].question;
    assert_eq!(held.title.chars().count(), NAME_CHARS_MAX);
    assert_eq!(held.call.as_ref().unwrap().chars().count(), NAME_CHARS_MAX);
    let text = held.detail.as_str().unwrap();
    assert!(text.starts_with(r#"{"content":"éé"#) && text.len() <= 16 * 1024, "{}", text.len());
    assert_eq!((held.options.len(), held.options[0].name.chars().count()), (32, 200));
}

/// Half a handle would reach nobody.
#[test]
fn a_handle_that_is_too_long_is_unexpected() {
    let long = "x".repeat(NAME_CHARS_MAX + 1);
    let mut strange = question("8");
    strange.options.push(option(&long, "Maybe"));
    story(
        in_state(StateName::Executing).with_run(),
        [asked(1, 1, question(&long)), asked(2, 1, strange)],
        expect![[r"
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready
            > gate_asked
            signal.unexpected signal=gate_asked state=executing
            executing, run 1 ready
        "]],
    );
}

#[test]
fn details_nested_too_deep_are_kept_as_text() {
    let mut question = question("7");
    question.detail = (0..100).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
    let given = in_state(StateName::Executing).with_run().after(asked(1, 1, question));
    assert!(given.session.gates[0].question.detail.is_string());
}

fn answer_because(gate: u128, option: &str, message: &str) -> Input {
    Command::AnswerGate { gate: gate_id(gate), option: option.into(), message: Some(message.into()) }.into()
}

fn option(id: &str, name: &str) -> GateOption {
    GateOption { id: id.into(), name: name.into(), kind: OptionKind::Other }
}

/// A question whose options are named after their kinds.
fn of_kinds(kinds: &[OptionKind]) -> Question {
    let named = |kind: &OptionKind| {
        let id = serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned();
        GateOption { name: id.clone(), id, kind: *kind }
    };
    Question { options: kinds.iter().map(named).collect(), ..question("7") }
}

/// A question of Lanyard's own about the session.
fn escalated(gate: u128) -> Input {
    asked(gate, 99, Question { kind: GateKind::Escalation, ..question(&gate.to_string()) })
}

/// S4-22: Lanyard itself asks about a session in whatever state it is, with a process or without, until it has ended.
#[test]
fn lanyard_asks_about_a_session_in_every_state() {
    for state in StateName::ALL {
        let mut given = in_state(state);
        let ended = given.session.state.is_ended();
        given.put(&escalated(1));
        assert_eq!(given.session.open_gates().count(), usize::from(!ended), "{state:?}");
    }
    let mut given = in_state(StateName::Executing).with_run().after(escalated(1));
    given.put(&run_ended(1, InterruptCause::Crash));
    assert_eq!(given.session.open_gates().count(), 1, "it outlives the process");
}

/// Nobody is asked about a session that has come to its end, whichever way.
#[test]
fn a_sessions_end_takes_the_question_about_it_along() {
    for state in [StateName::Executing, StateName::BetweenTurn] {
        for how in
            [vec![complete()], vec![stop(), Signal::WorkEnded { channel: "it ended".to_owned() }.into()]]
        {
            let given = in_state(state).after(escalated(1)).after_each(how);
            assert!(given.session.state.is_ended(), "{state:?}");
            assert_eq!(given.session.open_gates().count(), 0, "{state:?}");
        }
    }
}

/// S4-22: what an agent asks, however often, does not make forget that a person was asked about it and what was said.
#[test]
fn settled_questions_of_an_agent_do_not_push_out_those_about_it() {
    let mut given = in_state(StateName::Executing).with_run().after(escalated(500)).after(answer(500, "yes"));
    for gate in 1..=100 {
        given = given.after(asked(gate, 1, question(&gate.to_string()))).after(answer(gate, "yes"));
    }
    assert_eq!(given.session.open_gates().count(), 0);
    assert_eq!(given.session.gates.len(), 33, "the newest of one kind, and the other");
    assert!(given.session.gates.iter().any(|gate| gate.id == gate_id(500)));
}
