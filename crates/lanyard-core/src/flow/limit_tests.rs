//! How often something is tried before a person is asked, and whether it goes in circles (S1-36).

use expect_test::{Expect, expect};

use crate::actor::Actor;
use crate::flow::advance::{FlowWant, want};
use crate::flow::event::{FailKind, FlowEvent};
use crate::flow::gate::Choice;
use crate::flow::record::FlowState;
use crate::flow::settings::{Asking, FlowRules};
use crate::flow::testing::{
    Given, broken, complete, failed, failed_with, fold, needs_human, not_ready, passed, phases, phases_with,
    ready, verdict,
};
use crate::flow::verdict::Readiness;
use crate::log::Record as _;

fn why(given: &Given, expect: &Expect) {
    assert_eq!(given.flow.state, FlowState::Escalate);
    expect.assert_eq(&format!("{}: {}", given.gate().code, given.gate().reason));
}

#[test]
fn the_limits_are_what_is_written_about_them() {
    let rules = FlowRules::default();
    let limits = (
        rules.quality_retries,
        rules.review_iterations,
        rules.auto_retries,
        rules.steps,
        rules.stall_repeats,
    );
    assert_eq!(limits, (3, 5, 3, 250, 3));
}

/// Other errors each time: the author is sent back three times.
#[test]
fn checks_may_fail_three_times_before_a_person_is_asked() {
    let mut given = phases().works(complete());
    for output in ["a", "b", "c"] {
        given = given.checked(&broken(output));
        assert_eq!(given.flow.state, FlowState::QualityRetry, "{output}");
        given = given.works(complete());
    }
    let given = given.checked(&broken("d"));
    why(&given, &expect!["quality_failed: `test` still fails after 3 tries."]);
    assert_eq!(given.gate().evidence.as_deref(), Some("d"));
    // A person decided: the author has its tries again, whichever way.
    for choice in [Choice::ContinueSession, Choice::Continue] {
        let given = given.clone().answered(choice, None).works(complete()).checked(&broken("e"));
        assert_eq!((given.flow.state, given.flow.quality_retries), (FlowState::QualityRetry, 1));
    }
}

#[test]
fn a_round_of_checks_that_passes_begins_to_count_anew() {
    let given = phases().works(complete()).checked(&broken("a")).works(complete()).checked(&broken("a"));
    let given = given.works(complete()).checked(&passed());
    assert_eq!((given.flow.state, given.flow.stall.error_repeats), (FlowState::Review, 0));
    let given = given.works(not_ready("x")).works(complete()).checked(&broken("a"));
    assert_eq!((given.flow.state, given.flow.quality_retries), (FlowState::QualityRetry, 1));
}

#[test]
fn a_phase_is_reviewed_five_times_before_a_person_is_asked() {
    let mut given = phases().at_review();
    for title in ["a", "b", "c", "d"] {
        given = given.works(not_ready(title));
        assert_eq!(given.flow.state, FlowState::AutoFix, "{title}");
        given = given.at_review();
    }
    let given = given.works(not_ready("e"));
    why(&given, &expect!["review_iterations: It was reviewed 5 times and is not ready."]);
    assert_eq!((given.gate().iteration, given.gate().items.len()), (5, 1));
    let given = given.answered(Choice::Continue, None).at_review().works(not_ready("f"));
    assert_eq!((given.flow.state, given.flow.iteration), (FlowState::AutoFix, 1));
}

/// Other reasons each time: the flow goes on by itself three times in a row.
#[test]
fn a_lost_turn_is_gone_on_with_three_times() {
    let mut given = phases();
    for reason in ["a", "b", "c"] {
        given = given.works(failed_with(FailKind::Transient, reason));
        assert_eq!(given.flow.state, FlowState::Execute, "{reason}");
    }
    assert_eq!(given.flow.auto_retries, 3);
    let escalated = given.clone().works(failed_with(FailKind::Transient, "d"));
    why(&escalated, &expect!["transient: The author has no result: d"]);
    // In a row: one that has a result begins the count anew.
    let given = given.works(complete());
    assert_eq!(given.flow.auto_retries, 0);
}

#[test]
fn nobody_is_asked_for_two_hundred_and_fifty_steps() {
    let given = phases_with(|settings| {
        settings.quality.clear();
        (settings.rules.review_iterations, settings.rules.stall_repeats) = (1_000, 1_000);
    });
    let mut given = given;
    while want(&given.flow, false) != FlowWant::CutOff {
        let next = if given.flow.state == FlowState::Review { not_ready("x") } else { complete() };
        given = given.works(next);
    }
    assert_eq!(given.flow.step, 250);
    let given = given.cut_off();
    why(&given, &expect!["steps: It took 250 steps without an approval."]);
    assert_eq!(given.gate().continue_session, None);
    // The log makes the same flow, however long it is.
    assert_eq!(fold(&given.log), given.flow);
    let given = given.answered(Choice::Continue, None);
    assert!(matches!(want(&given.flow, false), FlowWant::Invoke { .. }));
}

/// S2-B07: a deadline is no person. What it answers goes on, and nothing begins to count anew.
#[test]
fn a_deadline_gives_no_new_tries() {
    let given = phases().works(complete()).checked(&broken("a")).works(needs_human());
    let (step, retries) = (given.flow.decided_at_step, given.flow.quality_retries);
    let command = given.answer(Choice::ContinueSession, None);
    let mut by_deadline = given.clone();
    by_deadline.put_as(&command, &Actor::system("flow")).unwrap();
    assert_eq!((by_deadline.flow.decided_at_step, by_deadline.flow.quality_retries), (step, retries));
    let by_person = given.answered(Choice::ContinueSession, None);
    assert_eq!((by_person.flow.decided_at_step, by_person.flow.quality_retries), (by_person.flow.step, 0));
}

/// S1-36: the same issues three times without a better score.
#[test]
fn issues_that_come_back_escalate_unless_it_gets_better() {
    let reviewed = |scores: [Option<u32>; 3]| {
        scores.into_iter().fold(phases().at_review(), |given, score| {
            let given = if given.flow.state == FlowState::Review { given } else { given.at_review() };
            given.works(verdict(Readiness::NotReady, &["The tests are slow", "No docs"], score))
        })
    };
    let stalled = expect!["stalled_issues: The same issues came back 3 times."];
    why(&reviewed([None, None, None]), &stalled);
    why(&reviewed([Some(50), Some(50), Some(50)]), &stalled);
    why(&reviewed([Some(50), Some(40), Some(40)]), &stalled);
    assert_eq!(reviewed([Some(50), Some(60), Some(60)]).flow.state, FlowState::AutoFix);
    assert_eq!(reviewed([Some(50), Some(50), Some(51)]).flow.state, FlowState::AutoFix);
    // The same in other words of numbers and in another order is the same; something else is not.
    let given = phases().at_review().works(verdict(Readiness::NotReady, &["a 1", "b"], None)).at_review();
    let given = given.works(verdict(Readiness::NotReady, &["B", "a 2"], None));
    assert_eq!(given.flow.stall.issue_repeats, 2);
    let given = given.at_review().works(not_ready("c"));
    assert_eq!(given.flow.stall.issue_repeats, 1);
}

/// S1-36: the same error three times, whether one check tells of it or two.
#[test]
fn errors_that_come_back_escalate() {
    let twice = |settings: &mut crate::flow::settings::FlowSettings| {
        settings.rules.quality_retries = 9;
        settings.quality.push(settings.quality[0].clone());
    };
    let round = |given: Given, first: &str, second: &str| {
        let mut given = given.works(complete());
        given.check(broken(first));
        given.check(broken(second));
        given
    };
    let given = phases_with(|settings| settings.rules.quality_retries = 9).works(complete());
    let given = given.checked(&broken("took 3 ms")).works(complete()).checked(&broken("took 4 ms"));
    let given = given.works(complete()).checked(&broken("took 5 ms"));
    why(&given, &expect!["stalled_errors: `test` failed with the same error 3 times."]);
    let given = round(round(phases_with(twice), "a", "b"), "a", "b");
    assert_eq!(given.flow.stall.error_repeats, 2);
    why(
        &round(given.clone(), "a", "b"),
        &expect!["stalled_errors: `test` failed with the same error 3 times."],
    );
    assert_eq!(round(given, "a", "c").flow.state, FlowState::QualityRetry);
    // A turn that is lost for the same reason again and again.
    let lost = || failed(FailKind::Transient);
    why(
        &phases().works(lost()).works(lost()).works(lost()),
        &expect!["stalled_errors: The author has no result: it broke"],
    );
}

#[test]
fn phases_that_need_nobody_go_to_the_end() {
    let given = phases_with(|settings| settings.rules.phase_gate = Asking::Auto);
    let given = given.at_review().works(ready()).at_review().works(ready());
    assert_eq!((given.flow.state, given.flow.gate.clone()), (FlowState::Completed, None));
    let states: Vec<&str> = given.flow.phases.iter().map(|phase| phase.state.as_str()).collect();
    assert_eq!(states, ["complete", "complete"]);
    assert_eq!(given.flow.phases[0].commit.as_deref(), Some("abcd1234"));
    // What is told of an end comes after it; nothing else does.
    let next = |event| crate::flow::event::FlowEnvelope {
        flow: given.flow.id,
        seq: given.flow.seq + 1,
        at: given.now(),
        actor: Actor::system("flow"),
        event,
    };
    let mut flow = given.flow.clone();
    let moved = FlowEvent::Moved { to: FlowState::Execute, reason: None };
    assert_eq!(flow.apply(&next(moved)).unwrap_err().what, "the flow has ended");
    assert_eq!(want(&flow, false), FlowWant::Settle);
    flow.apply(&next(FlowEvent::Settled { captured: None, tree_removed: true, failed: None })).unwrap();
    assert_eq!(want(&flow, false), FlowWant::Nothing);
}

/// S2-01: what was let pass although it was not found ready says so.
#[test]
fn an_override_is_remembered() {
    let given = phases().works(needs_human()).answered(Choice::Approve, None);
    assert_eq!((given.flow.phases[0].state.as_str(), given.flow.phase), ("overridden", 1));
    let given = given.works(needs_human()).answered(Choice::Approve, None);
    assert_eq!((given.flow.phases[1].state.as_str(), given.flow.state), ("overridden", FlowState::Completed));
}
