//! The escalation gate: what is offered, to whom an answer goes, and that it is used once (S2).

use expect_test::{Expect, expect};

use crate::actor::Actor;
use crate::flow::advance::{Due, FlowWant, Looked, due, want};
use crate::flow::decide::{FlowCommand, GUIDANCE_CHARS_MAX};
use crate::flow::event::{Conclusion, FailKind, FlowEvent, Spent};
use crate::flow::gate::{Choice, FlowGate, Probe, parse};
use crate::flow::prompt;
use crate::flow::record::{FlowRole, FlowState, Stage};
use crate::flow::settings::GateDefault;
use crate::flow::testing::{
    Given, at, broken, busy, complete, failed, failed_with, fold, for_a_person, gate_id, gave_up,
    needs_human, not_ready, nowhere, passed, phases, phases_with, ready, review, session_id, verdict, well,
};
use crate::flow::verdict::Readiness;
use crate::log::Record as _;

fn c(given: Given) -> Given {
    given.answered(Choice::ContinueSession, None)
}

/// Whoever is wanted works, with this conclusion, and its session is found like this.
fn works_as(mut given: Given, conclusion: Conclusion, looked: Looked) -> Given {
    given.invoke();
    given.conclude(conclusion, looked);
    given
}

fn silent() -> Conclusion {
    verdict(Readiness::NotReady, &[], None)
}

fn at_fix() -> Given {
    phases().at_review().works(not_ready("a"))
}

fn at_retry() -> Given {
    phases().works(complete()).checked(&broken("e"))
}

fn with_probe(change: impl FnOnce(&mut Probe)) -> Looked {
    let mut looked = well();
    change(&mut looked.probe);
    looked
}

fn refusal(given: &mut Given, choice: Choice, guidance: Option<&str>) -> String {
    let answer = given.answer(choice, guidance);
    let before = given.flow.clone();
    let refusal = given.put(&answer).unwrap_err();
    assert_eq!(given.flow, before, "what is refused changes nothing");
    format!("{}: {refusal}; {}", refusal.code(), refusal.advice())
}

/// S2-01, S2-08, S2-T1, S2-T2, S2-T3: what can be typed at the prompt.
#[test]
fn what_is_typed_is_read() {
    let read = |text: &str| match parse(text) {
        None => "?".to_owned(),
        Some((choice, None)) => choice.as_str().to_owned(),
        Some((choice, Some(words))) => format!("{}: {words}", choice.as_str()),
    };
    for (typed, meant) in [
        ("c", "continue_session"),
        ("C\n", "continue_session"),
        (" c ", "continue_session"),
        ("continue-session", "continue_session"),
        ("Continue_Session", "continue_session"),
        ("c: fix the import", "continue_session: fix the import"),
        ("continue-session: fix: the import", "continue_session: fix: the import"),
        ("c:", "continue_session"),
        ("c:   ", "continue_session"),
        ("f", "continue"),
        ("fix", "continue"),
        ("continue: look at a.rs", "continue: look at a.rs"),
        ("o", "approve"),
        ("override", "approve"),
        ("approve", "approve"),
        ("q", "abort"),
        ("quit", "abort"),
        ("o: because", "?"),
        ("q: because", "?"),
        ("o:", "approve"),
        ("", "?"),
        (":", "?"),
        (": words", "?"),
        ("x", "?"),
        ("cc", "?"),
        ("yes", "?"),
        ("c fix the import", "?"),
    ] {
        assert_eq!(read(typed), meant, "{typed:?}");
    }
    for choice in Choice::ALL {
        assert_eq!(parse(&choice.letter().to_string()), Some((choice, None)));
        assert_eq!(parse(choice.as_str()), Some((choice, None)));
    }
}

/// S2-03, S2-06, S2-T4: what is not offered is refused, and the gate stays.
#[test]
fn an_answer_that_is_not_offered_is_refused() {
    let mut given = phases().works(failed(FailKind::Gone));
    expect!["choice_not_offered: `continue_session` is not offered: its session is gone; choose one of continue, approve, abort"]
        .assert_eq(&refusal(&mut given, Choice::ContinueSession, None));
    let mut phase = phases().at_review().works(ready());
    expect!["choice_not_offered: `continue_session` is not offered: the last session is the reviewer's, and the next step is the author's; choose one of continue, approve, abort"]
        .assert_eq(&refusal(&mut phase, Choice::ContinueSession, Some("go")));
    assert_eq!(want(&given.flow, false), FlowWant::Answer);
    assert!(given.gate().is_open());
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
    let mut given = phases().works(needs_human());
    let long = "x".repeat(GUIDANCE_CHARS_MAX + 1);
    expect!["guidance_not_taken: `approve` takes no words; leave the words away, or choose `continue`"]
        .assert_eq(&refusal(&mut given, Choice::Approve, Some("fine")));
    expect!["guidance_too_long: the words are longer than 8000 characters; say it shorter, or put it into the plan"]
        .assert_eq(&refusal(&mut given, Choice::Continue, Some(&long)));
    let other = FlowCommand::Answer { gate: gate_id(99), choice: Choice::Abort, guidance: None, probe: None };
    assert_eq!(given.put(&other).unwrap_err().code(), "gate_not_open");
    // S2-07: no words are no words.
    let given = given.answered(Choice::Continue, Some("  \n"));
    assert_eq!(given.flow.pending.unwrap().guidance, None);
}

/// The first answer stands: the same once more changes nothing, another is told so.
#[test]
fn a_gate_is_answered_once() {
    let mut given = phases().works(needs_human());
    let first = given.answer(Choice::Continue, Some("so"));
    let other = given.answer(Choice::Abort, None);
    let words = given.answer(Choice::Continue, Some("not so"));
    assert!(!given.put(&first).unwrap().is_empty());
    assert_eq!(given.put_as(&first, &Actor::operator("bob")), Ok(Vec::new()));
    assert_eq!(given.put(&other).unwrap_err().code(), "gate_answered");
    assert_eq!(given.put(&words).unwrap_err().code(), "gate_answered");
    let mut given = given.invoked();
    assert_eq!(given.put(&first), Ok(Vec::new()));
    assert_eq!(given.flow.state, FlowState::Execute);
}

/// S2-04, S2-09, S2-16, S2-T5: the payload has the session, its role and the state, and the work goes on there in it.
#[test]
fn an_answer_goes_to_the_session_and_the_state_it_came_from() {
    let rows: Vec<(&str, Given, Expect)> = vec![
        ("execute", phases().works(needs_human()), expect!["session 1, author, execute"]),
        ("execute, failed", phases().works(gave_up()), expect!["session 1, author, execute"]),
        ("quality_retry", at_retry().works(needs_human()), expect!["session 2, author, quality_retry"]),
        ("quality_retry, failed", at_retry().works(gave_up()), expect!["session 2, author, quality_retry"]),
        ("review", phases().at_review().works(silent()), expect!["session 2, reviewer, review"]),
        (
            "review, failed",
            phases().at_review().works(failed(FailKind::Failed)),
            expect!["session 2, reviewer, review"],
        ),
        ("auto_fix", at_fix().works(needs_human()), expect!["session 3, author, auto_fix"]),
        ("auto_fix, failed", at_fix().works(gave_up()), expect!["session 3, author, auto_fix"]),
        ("plan, review", review().works(silent()), expect!["session 1, reviewer, review"]),
        (
            "plan, auto_fix",
            review().works(not_ready("a")).works(needs_human()),
            expect!["session 2, author, auto_fix"],
        ),
    ];
    for (name, given, expect) in rows {
        expect.assert_eq(&given.offer());
        let payload = given.gate().continue_session.clone().unwrap();
        assert_eq!(payload.resume_state, given.gate().from, "{name}: the state before the gate");
        let mut given = c(given);
        assert_eq!(given.flow.state, payload.resume_state, "{name}");
        let invocation = given.invoke();
        assert_eq!((invocation.session, invocation.role), (payload.session, payload.role), "{name}");
        assert!(invocation.continues && invocation.fork_of.is_none(), "{name}: no session is created");
    }
}

/// S2-17: nothing is sent again but the wish to go on, and the words.
#[test]
fn a_session_that_goes_on_is_told_little() {
    let mut given =
        phases().works(needs_human()).answered(Choice::ContinueSession, Some("use the other one"));
    let invocation = given.invoke();
    expect![[r"
        Continue the current session and complete all remaining tasks.

        Guidance from the person in charge:
        use the other one"]]
    .assert_eq(&prompt::text(&given.flow, &invocation));
    let mut given = c(phases().at_review().works(silent()));
    let invocation = given.invoke();
    expect!["Continue the current session and complete your review."]
        .assert_eq(&prompt::text(&given.flow, &invocation));
    let mut given = phases().works(needs_human()).answered(Choice::Continue, Some("use the other one"));
    let invocation = given.invoke();
    let text = prompt::text(&given.flow, &invocation);
    assert!(text.starts_with("Work on one phase of a plan") && text.ends_with("use the other one"), "{text}");
}

/// S2-18, S2-T6: session and words are used once; what comes after has neither.
#[test]
fn what_an_answer_left_is_used_once() {
    let given = phases().works(needs_human()).answered(Choice::ContinueSession, Some("so"));
    let expected = FlowWant::Invoke {
        role: FlowRole::Author,
        session: Some(session_id(1)),
        fork_of: None,
        guidance: Some("so".to_owned()),
    };
    assert_eq!(want(&given.flow, false), expected);
    let mut given = given.invoked();
    assert_eq!(given.flow.pending, None);
    given.conclude(complete(), well());
    let mut given = given.checked(&broken("e"));
    let next = given.invoke();
    assert_eq!((next.session, next.continues, next.guidance), (session_id(2), false, None));
}

/// S2-B01, S2-B09: wherever the log is cut, what follows takes the words with it exactly once.
#[test]
fn words_are_used_once_wherever_the_daemon_is_killed() {
    for choice in [Choice::ContinueSession, Choice::Continue] {
        let whole = phases().works(needs_human()).answered(choice, Some("so")).invoked().asked();
        let answered =
            whole.log.iter().position(|entry| matches!(entry.event, FlowEvent::GateAnswered { .. })).unwrap();
        for cut in 1..=whole.log.len() {
            let flow = fold(&whole.log[..cut]);
            // An answer and where it leads are one write.
            if cut == answered + 1 {
                continue;
            }
            let told = flow.invocation.as_ref().and_then(|invocation| invocation.guidance.clone());
            let waits = flow.pending.as_ref().and_then(|pending| pending.guidance.clone());
            let open = flow.gate.as_ref().is_some_and(FlowGate::is_open);
            let places = usize::from(told.is_some()) + usize::from(waits.is_some());
            assert_eq!(places, usize::from(cut > answered), "{choice:?}, {cut}");
            assert!(!open || flow.state == FlowState::Escalate, "{choice:?}, {cut}");
        }
    }
}

/// S2-12, S2-T7: a continuation whose invocation failed is not offered again; the new session behind it is.
#[test]
fn a_continuation_that_failed_is_not_offered_again() {
    let again = expect!["not offered: continuing it failed"];
    for conclusion in
        [gave_up(), failed(FailKind::Failed), failed(FailKind::Unreadable), failed(FailKind::Timeout)]
    {
        let given = c(phases().works(needs_human())).works(conclusion);
        again.assert_eq(&given.offer());
        let given = given.answered(Choice::Continue, None).works(needs_human());
        expect!["session 2, author, execute"].assert_eq(&given.offer());
    }
}

/// What makes a session unfit to continue.
type Spoil = fn(&mut Probe);

/// FND-M2 (S2-09, S2-12, S2-B03): a continued session that asks again did not fail, and can be answered again.
#[test]
fn fnd_m2_a_continuation_that_asks_again_is_offered_again() {
    let mut given = phases().works(needs_human());
    for _ in 0..4 {
        expect!["session 1, author, execute"].assert_eq(&given.offer());
        given = c(given).works(needs_human());
    }
    let silenced = c(phases().at_review().works(silent())).works(silent());
    expect!["session 2, reviewer, review"].assert_eq(&silenced.offer());
    // The continued author did its work, and a check does not pass.
    let given = phases_with(|settings| settings.rules.quality_retries = 1);
    let given = given.works(complete()).checked(&broken("a")).works(complete()).checked(&broken("b"));
    expect!["session 2, author, quality_retry"].assert_eq(&given.offer());
    let mut given = c(given).works(complete());
    given.flow.settings.rules.quality_retries = 0;
    expect!["session 2, author, quality_retry"].assert_eq(&given.checked(&broken("c")).offer());
    // A session that cannot continue is not offered, however it ended.
    let rows: [(Spoil, Expect); 3] = [
        (|probe| probe.exists = false, expect!["not offered: its session is gone"]),
        (|probe| probe.context_left = false, expect!["not offered: its context is used up"]),
        (
            |probe| (probe.alive, probe.loadable) = (false, false),
            expect!["not offered: its agent cannot take the conversation up again"],
        ),
    ];
    for (spoil, expect) in rows {
        let mut looked = well();
        spoil(&mut looked.probe);
        let given = works_as(c(phases().works(needs_human())), needs_human(), looked);
        expect.assert_eq(&given.offer());
    }
}

/// FND-M2: a deadline continues a session once; a session that asks again waits for a person, who may continue it.
#[test]
fn fnd_m2_a_deadline_continues_a_session_once() {
    let given = phases_with(|settings| {
        settings.rules.gate_deadline_ms = 1_000;
        settings.rules.gate_default = GateDefault::ContinueSession;
    });
    let given = given.works(needs_human());
    let late = |given: &Given| due(&given.flow, given.gate().deadline.unwrap());
    assert_eq!(late(&given), [Due::Answer { gate: given.gate().id, choice: Choice::ContinueSession }]);
    let given = c(given).works(needs_human());
    expect!["session 1, author, execute"].assert_eq(&given.offer());
    assert_eq!(late(&given), []);
}

/// S2-B03: only what is gone or used up takes the offer away; what passes does not.
#[test]
fn what_passes_takes_no_offer_away() {
    let once = || phases_with(|settings| settings.rules.auto_retries = 0);
    for kind in [FailKind::Transient, FailKind::Busy] {
        let given = once().works(failed(kind));
        expect!["session 1, author, execute"].assert_eq(&given.offer());
        expect!["session 1, author, execute"].assert_eq(&c(given).works(failed(kind)).offer());
    }
    expect!["not offered: its session is gone"].assert_eq(&once().works(failed(FailKind::Gone)).offer());
    expect!["not offered: its context is used up"]
        .assert_eq(&once().works(failed(FailKind::Exhausted)).offer());
    expect!["not offered: there is no session yet"]
        .assert_eq(&once().works(failed(FailKind::NotStarted)).offer());
}

/// S2-09: a turn the flow went on with by itself was no choice of anybody's.
#[test]
fn a_try_of_the_flows_own_takes_no_offer_away() {
    let given = phases().works(failed(FailKind::Transient)).works(needs_human());
    expect!["session 1, author, execute"].assert_eq(&given.offer());
    // After one that was chosen it is still the chosen one.
    let given = c(given).works(failed(FailKind::Transient)).works(gave_up());
    expect!["not offered: continuing it failed"].assert_eq(&given.offer());
}

/// S2-13, S2-B06, S2-T8: a reviewer's session is not the author's; the author's is forked.
#[test]
fn another_role_gets_a_fork() {
    for conclusion in [for_a_person(), not_ready("b")] {
        let given =
            phases_with(|settings| settings.rules.review_iterations = 1).at_review().works(conclusion);
        expect!["not offered: the last session is the reviewer's, and the next step is the author's"]
            .assert_eq(&given.offer());
        assert_eq!(given.gate().fork_of, Some(session_id(1)));
        let mut given = given.answered(Choice::Continue, Some("so"));
        let invocation = given.invoke();
        assert_eq!((invocation.state, invocation.session), (FlowState::AutoFix, session_id(3)));
        assert_eq!((invocation.fork_of, invocation.continues), (Some(session_id(1)), false));
    }
    // Where nobody worked in that role there is nothing to fork.
    assert_eq!(review().works(for_a_person()).gate().fork_of, None);
}

/// S2-14, S2-T9: the review of a plan has the same gate.
#[test]
fn the_review_of_a_plan_asks_alike() {
    let given = review().works(failed(FailKind::Timeout));
    expect!["session 1, reviewer, review"].assert_eq(&given.offer());
    let given = c(given).works(not_ready("a")).works(needs_human());
    expect!["session 2, author, auto_fix"].assert_eq(&given.offer());
    let given = given.answered(Choice::ContinueSession, Some("so")).works(gave_up());
    expect!["not offered: continuing it failed"].assert_eq(&given.offer());
    let given = given.answered(Choice::Continue, None).works(complete()).works(ready());
    assert_eq!(given.flow.state, FlowState::Approved);
    let given = review().works(for_a_person()).answered(Choice::Approve, None);
    assert_eq!(
        (given.flow.state, given.flow.reason.as_deref()),
        (FlowState::Approved, Some("approved by ann"))
    );
}

/// S2-10, S2-22, S2-T10: a turn that took too long, with a session that is there and with one that is not.
#[test]
fn a_timeout_names_its_session_when_there_is_one() {
    let given = works_as(phases(), failed(FailKind::Timeout), busy());
    expect!["session 1, author, execute"].assert_eq(&given.offer());
    let kept = &given.flow.preserved[0];
    assert_eq!((kept.session, kept.tokens), (session_id(1), 7));
    assert_eq!(kept.until, Some(kept.since.plus_millis(given.flow.settings.rules.preserve_ms)));
    // S2-B04: it has its time, and then it is ended.
    assert_eq!(due(&given.flow, kept.since), Vec::new());
    assert_eq!(due(&given.flow, kept.until.unwrap()), vec![Due::Reap { session: session_id(1) }]);
    assert!(c(given).invoked().flow.preserved.is_empty(), "somebody waits for it again");

    let given = works_as(phases(), failed(FailKind::Timeout), nowhere());
    expect!["not offered: its session is gone"].assert_eq(&given.offer());
    assert!(given.flow.preserved.is_empty());
    expect!["The author took too long: it broke"].assert_eq(&given.gate().reason);
}

/// S2-23, S2-24: per role, the turn is ended and with it the way to go on.
#[test]
fn a_turn_that_is_ended_when_it_takes_too_long_is_not_gone_on_with() {
    let ends = |role: FlowRole| {
        phases_with(|settings| match role {
            FlowRole::Author => settings.author.abort_on_timeout = true,
            FlowRole::Reviewer => settings.reviewer.abort_on_timeout = true,
        })
    };
    let timeout = || failed(FailKind::Timeout);
    let given = works_as(ends(FlowRole::Author), timeout(), busy());
    expect!["not offered: its turn was ended when it took too long"].assert_eq(&given.offer());
    assert!(given.flow.preserved.is_empty());
    expect!["session 1, author, execute"].assert_eq(&ends(FlowRole::Reviewer).works(timeout()).offer());
    let given = ends(FlowRole::Reviewer).at_review().works(timeout());
    expect!["not offered: its turn was ended when it took too long"].assert_eq(&given.offer());
    expect!["session 2, reviewer, review"]
        .assert_eq(&ends(FlowRole::Author).at_review().works(timeout()).offer());
    // Only time does that.
    expect!["session 1, author, execute"].assert_eq(&ends(FlowRole::Author).works(gave_up()).offer());
}

/// S2-25: a review that took too long is taken up in its session, and its verdict counts.
#[test]
fn a_review_that_took_too_long_ends_in_a_verdict() {
    let given = c(phases().at_review().works(failed(FailKind::Timeout)));
    let mut given = given.invoked().asked();
    let invocation = given.flow.invocation.clone().unwrap();
    assert_eq!((invocation.session, invocation.stage), (session_id(2), Stage::Summary));
    assert!(prompt::text(&given.flow, &invocation).contains("Give your verdict."));
    given.conclude(ready(), well());
    assert_eq!(given.flow.state, FlowState::PhaseGate);
}

/// S2-26: what fails while it goes on fails as anything else does.
#[test]
fn a_continuation_that_cannot_begin_is_an_ordinary_failure() {
    for (kind, code) in
        [(FailKind::Gone, "gone"), (FailKind::Busy, "busy"), (FailKind::Failed, "agent_failed")]
    {
        let given = c(phases().works(needs_human())).works(failed(kind));
        assert_eq!((given.flow.state, given.gate().code.as_str()), (FlowState::Escalate, code));
        assert_eq!(given.gate().next, FlowState::Execute);
    }
}

/// S2-11: nobody is asked about what was cancelled.
#[test]
fn a_cancelled_turn_aborts_without_a_gate() {
    let cancelled = || Conclusion::Cancelled { reason: "stopped by ann".to_owned() };
    for given in
        [phases(), at_retry(), phases().at_review(), at_fix(), c(phases().works(needs_human())), review()]
    {
        let asked = given.flow.gate.clone();
        let given = given.works(cancelled());
        assert_eq!(
            (given.flow.state, given.flow.reason.as_deref()),
            (FlowState::Aborted, Some("stopped by ann"))
        );
        assert_eq!(given.flow.gate, asked);
    }
}

/// S2-B02: it is offered when it was found fit, and once more looked at when it is chosen.
#[test]
fn a_session_is_looked_at_before_it_is_offered_and_when_it_is_chosen() {
    let offer = |looked| works_as(phases(), needs_human(), looked).offer();
    expect!["not offered: its session is gone"].assert_eq(&offer(with_probe(|probe| probe.exists = false)));
    expect!["session 1, author, execute"].assert_eq(&offer(with_probe(|probe| probe.alive = false)));
    expect!["session 1, author, execute"].assert_eq(&offer(with_probe(|probe| probe.loadable = false)));
    expect!["session 1, author, execute"].assert_eq(&offer(with_probe(|probe| probe.idle = false)));
    expect!["not offered: its agent cannot take the conversation up again"]
        .assert_eq(&offer(with_probe(|probe| (probe.alive, probe.loadable) = (false, false))));
    expect!["not offered: its context is used up"]
        .assert_eq(&offer(with_probe(|probe| probe.context_left = false)));

    let mut given = phases().works(needs_human());
    assert_eq!(given.gate().continue_session.as_ref().unwrap().probe, well().probe);
    let FlowCommand::Answer { gate, choice, .. } = given.answer(Choice::ContinueSession, None) else {
        unreachable!()
    };
    let gone = FlowCommand::Answer { gate, choice, guidance: None, probe: Some(Probe::default()) };
    assert_eq!(given.put(&gone).unwrap_err().code(), "continuation_gone");
    given.add(FlowEvent::ContinuationWithdrawn { gate, why: "its session is gone".to_owned() });
    expect!["not offered: its session is gone"].assert_eq(&given.offer());
    assert_eq!(given.answered(Choice::Continue, None).flow.state, FlowState::Execute);
}

/// There is nothing to go on with in a session that was never told what to do.
#[test]
fn a_session_that_heard_nothing_is_not_gone_on_with() {
    let unheard = Looked { unheard: true, ..well() };
    let given = works_as(phases(), failed(FailKind::Timeout), unheard);
    expect!["not offered: it was never told what to do"].assert_eq(&given.offer());
    let mut given = works_as(phases(), failed(FailKind::Transient), unheard);
    assert!(!given.invoke().continues);
    given.conclude(needs_human(), well());
    // One that worked before knows it.
    let given = works_as(c(given), failed(FailKind::Timeout), Looked { unheard: true, ..busy() });
    expect!["not offered: continuing it failed"].assert_eq(&given.offer());
}

/// S2-B09: words that went with a turn that was lost are told to whoever has not heard them, and to nobody twice.
#[test]
fn words_of_a_lost_turn_reach_whoever_goes_on_once() {
    let lost = || failed(FailKind::Transient);
    let unheard = Looked { unheard: true, ..well() };
    let answered = |choice| phases().works(needs_human()).answered(choice, Some("so"));
    for choice in [Choice::ContinueSession, Choice::Continue] {
        // It has them.
        let mut given = works_as(answered(choice), lost(), well());
        let next = given.invoke();
        assert_eq!((next.continues, next.guidance), (true, None), "{choice:?}");
        // The next one does not.
        given.conclude(lost(), nowhere());
        let next = given.invoke();
        assert_eq!((next.continues, next.guidance.as_deref()), (false, Some("so")), "{choice:?}");
        // Nor one after an abort.
        let mut given = given.after(&FlowCommand::Cancel { reason: None }).after(&FlowCommand::Resume);
        assert_eq!(given.invoke().guidance.as_deref(), Some("so"), "{choice:?}");
        // They did not arrive.
        let mut given = works_as(answered(choice), lost(), unheard);
        assert_eq!(given.invoke().guidance.as_deref(), Some("so"), "{choice:?}");
        // They were not even sent.
        let given = answered(choice).after(&FlowCommand::Cancel { reason: None });
        let mut given = given.after(&FlowCommand::Resume);
        let next = given.invoke();
        assert_eq!((next.continues, next.guidance.as_deref()), (false, Some("so")), "{choice:?}");
        given.conclude(complete(), well());
        assert_eq!(given.at_review().invoke().guidance, None, "{choice:?}");
    }
}

/// S2-B07: without a deadline nothing is answered by itself; with one, what the policy says and the gate offers.
#[test]
fn a_gate_is_answered_by_itself_only_by_a_policy() {
    let asked = |default, deadline_ms, conclusion| {
        let given = phases_with(|settings| {
            (settings.rules.gate_default, settings.rules.gate_deadline_ms) = (default, deadline_ms);
        });
        given.works(conclusion)
    };
    let later = at(1_000_000);
    let answers = |given: &Given| due(&given.flow, later);
    let gone = || failed(FailKind::Gone);
    for default in [GateDefault::Wait, GateDefault::ContinueSession, GateDefault::Abort] {
        assert_eq!(answers(&asked(default, 0, needs_human())), Vec::new(), "{default:?}");
    }
    assert_eq!(answers(&asked(GateDefault::Wait, 1_000, needs_human())), Vec::new());
    assert_eq!(answers(&asked(GateDefault::ContinueSession, 1_000, gone())), Vec::new());
    let abort = asked(GateDefault::Abort, 1_000, gone());
    let answer = |given: &Given, choice| vec![Due::Answer { gate: given.gate().id, choice }];
    assert_eq!(answers(&abort), answer(&abort, Choice::Abort));
    let mut given = asked(GateDefault::ContinueSession, 60_000, needs_human());
    assert_eq!(answers(&given), answer(&given, Choice::ContinueSession));
    let deadline = given.gate().deadline.unwrap();
    assert_eq!(deadline, given.gate().opened_at.plus_millis(60_000));
    assert_eq!(due(&given.flow, deadline.minus_millis(1)), Vec::new());
    // A person was quicker.
    let command = given.answer(Choice::Continue, None);
    given.put(&command).unwrap();
    assert!(!answers(&given).iter().any(|due| matches!(due, Due::Answer { .. })));
}

/// A question that was open when the flow was aborted is open when it goes on, with its whole time.
#[test]
fn a_flow_that_goes_on_asks_again() {
    let given = phases_with(|settings| {
        (settings.rules.gate_default, settings.rules.gate_deadline_ms) = (GateDefault::Abort, 1_000);
    });
    let given = given.works(needs_human());
    let first = given.gate().clone();
    let aborted = given.after(&FlowCommand::Cancel { reason: None });
    let given = aborted.clone().after(&FlowCommand::Resume);
    assert_eq!((given.gate().id, given.flow.state), (first.id, FlowState::Escalate));
    assert!(given.gate().deadline > first.deadline, "it would be answered at once");
    expect!["not offered: the flow was aborted meanwhile"].assert_eq(&given.offer());

    // One that was answered with the abort is another question, and the old answer is none to it.
    let mut given = phases().at_review().works(ready());
    let abort = given.answer(Choice::Abort, None);
    given.put(&abort).unwrap();
    let mut given = given.after(&FlowCommand::Resume);
    assert_eq!((given.flow.state, given.gate().code.as_str()), (FlowState::PhaseGate, "phase_ready"));
    assert_eq!(given.put(&abort).unwrap_err().code(), "gate_not_open");
    let given = given.answered(Choice::Approve, None);
    assert_eq!((given.flow.state, given.flow.phase), (FlowState::Execute, 1));
}

/// Checks of a flow that goes on are a round of their own: no run has the name of another.
#[test]
fn a_flow_that_goes_on_checks_anew() {
    let mut given =
        phases_with(|settings| settings.quality.push(settings.quality[0].clone())).works(complete());
    given.check(passed());
    let step = given.flow.step;
    given.add(FlowEvent::CheckBegun { place: 1, run: format!("{step}-1") });
    let given = given.after(&FlowCommand::Cancel { reason: None }).after(&FlowCommand::Resume);
    assert_eq!(want(&given.flow, false), FlowWant::Check { place: 0 });
    assert_eq!(given.flow.step, step + 1);
}

/// A session that nobody chose is not gone on with, whatever is written.
#[test]
fn only_what_was_chosen_is_gone_on_with() {
    let given = phases().works(needs_human()).answered(Choice::Continue, None);
    let event = FlowEvent::Invoked {
        step: given.flow.step + 1,
        role: FlowRole::Author,
        session: session_id(1),
        turn: crate::flow::testing::turn_id(9),
        continues: true,
        fork_of: None,
        guidance: None,
        before: Spent::default(),
    };
    let entry = crate::flow::event::FlowEnvelope {
        flow: given.flow.id,
        seq: given.flow.seq + 1,
        at: given.now(),
        actor: Actor::system("flow"),
        event,
    };
    let mut flow = given.flow.clone();
    assert_eq!(flow.apply(&entry).unwrap_err().what, "nobody chose to go on with this session");
    assert_eq!(flow, given.flow, "what does not follow changes nothing");
}

/// The last reason there is to be asked for, told to a person with what speaks for it.
#[test]
fn a_gate_says_why_and_shows_it() {
    let given = phases().works(needs_human());
    let gate = given.gate();
    expect!["needs_human: The author needs a person: which one?"]
        .assert_eq(&format!("{}: {}", gate.code, gate.reason));
    assert_eq!(gate.evidence.as_deref(), Some("notes"));
    let given = phases().at_review().works(for_a_person());
    let gate = given.gate();
    expect!["review_items: The review has 1 of 2 items for a person."]
        .assert_eq(&format!("{}: {}", gate.code, gate.reason));
    assert_eq!((gate.items.len(), gate.iteration), (2, 1));
    let given = phases().works(failed_with(FailKind::NotStarted, "no such agent"));
    expect!["The author could not be started: no such agent"].assert_eq(&given.gate().reason);
}
