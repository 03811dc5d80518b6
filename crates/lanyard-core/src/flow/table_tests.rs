//! The transition table of flows: every state against everything that can come of what is done in it, printed into
//! `transitions.txt`. A change of behaviour is a diff of that file.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;

use crate::flow::decide::FlowCommand;
use crate::flow::event::{Conclusion, FailKind, FlowEvent};
use crate::flow::gate::Choice;
use crate::flow::record::{FlowKind, FlowState};
use crate::flow::testing::{
    Given, asking_for_corrections, begun, broken, complete, failed, for_a_person, gave_up, needs_human,
    not_ready, not_started, passed, phases, ready, review, settings, verdict, well,
};
use crate::flow::verdict::Readiness;

const LEGEND: &str = "\
What follows in each state of a flow from what comes of the work, of a check, of an answer. A change of behaviour is a
change of this file; `UPDATE_EXPECT=1` writes it anew.

  -> review                    the flow enters this state
  -> escalate code: c f o q    a person is asked for this reason, and these are the answers that are offered
  -> execute (next)            the next phase begins
  again in session 1           the flow goes on by itself, in that session or a new one
  !code                        refused with this code
  ·                            nothing happens
";

#[test]
fn every_state_and_all_that_can_come_of_it() {
    let mut text = LEGEND.to_owned();
    let mut seen = BTreeSet::new();
    for (name, given) in situations() {
        seen.insert((given.flow.kind.as_str(), given.flow.state));
        write!(text, "\n{}, {name}\n", given.flow.kind.as_str()).unwrap();
        let rows = rows(&given);
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap();
        for (name, cell) in rows {
            writeln!(text, "  {name:width$}  {cell}").unwrap();
        }
    }
    expect_file!["transitions.txt"].assert_eq(&text);
    // The phase's end is passed through in one write, and no flow rests there.
    let states: BTreeSet<FlowState> = seen.iter().map(|(_, state)| *state).collect();
    let all = FlowState::ALL.into_iter().filter(|state| *state != FlowState::PhaseComplete);
    assert_eq!(states, all.collect());
    // Quality, phases and their end are not for a plan's review.
    assert_eq!(seen.len(), 10 + 6);
}

fn situations() -> Vec<(&'static str, Given)> {
    let c = |given: Given| given.answered(Choice::ContinueSession, None).invoked();
    let at_review = || phases().at_review();
    let at_fix = || at_review().works(not_ready("a"));
    let checking = || phases().works(complete());
    let retrying = || checking().checked(&broken("e"));
    let plan_fix = || review().works(not_ready("a"));
    let asking_review = |kind| {
        let mut settings = settings();
        settings.rules.review_gate = crate::flow::settings::Asking::Ask;
        begun(kind, settings).at_review().works(not_ready("a"))
    };
    let aborted = |given: Given| given.after(&FlowCommand::Cancel { reason: None });
    let last_phase = || at_review().works(ready()).answered(Choice::Approve, None).at_review();
    vec![
        ("execute", phases().invoked()),
        ("execute, a session gone on with", c(phases().works(needs_human()))),
        ("quality_check", checking()),
        ("quality_check, after the last retry", worn_out()),
        ("quality_retry", retrying().invoked()),
        ("quality_retry, a session gone on with", c(retrying().works(gave_up()))),
        ("review", at_review().invoked()),
        ("review, a session gone on with", c(at_review().works(verdict(Readiness::NotReady, &[], None)))),
        ("review, the fifth", nth_review(5)),
        ("review, where corrections wait for a person", asking_for_corrections().at_review().invoked()),
        ("review of the last phase", last_phase().invoked()),
        ("auto_fix", at_fix().invoked()),
        ("auto_fix, a session gone on with", c(at_fix().works(needs_human()))),
        ("escalate, the session can be gone on with", phases().works(needs_human())),
        ("escalate, it cannot", phases().works(failed(FailKind::Gone))),
        ("escalate, after checks", worn_out().checked(&broken("last"))),
        ("review_gate", asking_review(FlowKind::Phases)),
        ("phase_gate", at_review().works(ready())),
        ("phase_gate of the last phase", last_phase().works(ready())),
        ("aborted", aborted(phases().invoked())),
        ("aborted, a gate is open", aborted(phases().works(needs_human()))),
        ("aborted at a gate", phases().works(needs_human()).answered(Choice::Abort, None)),
        ("completed", last_phase().works(ready()).answered(Choice::Approve, None)),
        ("review", review().invoked()),
        ("review, a session gone on with", c(review().works(verdict(Readiness::NotReady, &[], None)))),
        ("auto_fix", plan_fix().invoked()),
        ("escalate, the session can be gone on with", plan_fix().works(needs_human())),
        ("review_gate", asking_review(FlowKind::PlanReview)),
        ("aborted", aborted(review().invoked())),
        ("approved", review().works(ready())),
    ]
}

/// The author was sent back for each of its retries, and each time something else was wrong.
fn worn_out() -> Given {
    ["a", "b", "c"]
        .iter()
        .fold(phases().works(complete()), |given, output| given.checked(&broken(output)).works(complete()))
}

fn nth_review(number: u32) -> Given {
    let mut given = phases().at_review();
    for title in ["a", "b", "c", "d", "e"].iter().take(number as usize - 1) {
        given = given.works(not_ready(title)).at_review();
    }
    given.invoked()
}

fn rows(given: &Given) -> Vec<(String, String)> {
    if given.flow.invocation.is_some() {
        return conclusions()
            .into_iter()
            .map(|(name, conclusion)| (name, cell(given, |given| Ok(given.conclude(conclusion, well())))))
            .collect();
    }
    if given.flow.state == FlowState::QualityCheck {
        let results = [("passed", passed()), ("failed", broken("e")), ("not started", not_started())];
        return results
            .map(|(name, result)| (name.to_owned(), cell(given, |given| Ok(given.check(result)))))
            .into();
    }
    commands(given)
        .into_iter()
        .map(|(name, command)| {
            (name.to_owned(), cell(given, |given| given.put(&command).map_err(|no| no.code())))
        })
        .collect()
}

fn cell(given: &Given, act: impl FnOnce(&mut Given) -> Result<Vec<FlowEvent>, &'static str>) -> String {
    let mut after = given.clone();
    let events = match act(&mut after) {
        Err(code) => return format!("!{code}"),
        Ok(events) => events,
    };
    let flow = &after.flow;
    if events.is_empty() {
        return "·".to_owned();
    }
    if let Some(FlowEvent::Retried { session, .. }) = events.last() {
        let session = session
            .map_or_else(|| "a new session".to_owned(), |session| format!("session {}", session.as_u128()));
        return format!("again in {session}");
    }
    let next = if flow.phase == given.flow.phase { "" } else { " (next)" };
    let asked = flow.gate.as_ref().filter(|gate| gate.is_open() && flow.state.asks());
    let asked = asked.map(|gate| {
        let letters: Vec<String> = gate.offered().iter().map(|choice| choice.letter().to_string()).collect();
        format!(" {}: {}", gate.code, letters.join(" "))
    });
    format!("-> {}{next}{}", flow.state, asked.unwrap_or_default())
}

fn conclusions() -> Vec<(String, Conclusion)> {
    let mut all = vec![
        ("complete".to_owned(), complete()),
        ("needs_human".to_owned(), needs_human()),
        ("failed".to_owned(), gave_up()),
        ("ready".to_owned(), ready()),
        ("ready_with_corrections".to_owned(), verdict(Readiness::ReadyWithCorrections, &["a"], None)),
        (
            "ready_with_corrections, none named".to_owned(),
            verdict(Readiness::ReadyWithCorrections, &[], None),
        ),
        ("not_ready".to_owned(), not_ready("a")),
        ("not_ready, nothing named".to_owned(), verdict(Readiness::NotReady, &[], None)),
        ("not_ready, one for a person".to_owned(), for_a_person()),
    ];
    let kinds = [
        FailKind::Timeout,
        FailKind::Transient,
        FailKind::Busy,
        FailKind::Gone,
        FailKind::Exhausted,
        FailKind::Unreadable,
        FailKind::Failed,
        FailKind::NotStarted,
    ];
    all.extend(kinds.map(|kind| (format!("no result: {}", kind.as_str()), failed(kind))));
    all.push(("cancelled".to_owned(), Conclusion::Cancelled { reason: "enough".to_owned() }));
    all
}

fn commands(given: &Given) -> Vec<(&'static str, FlowCommand)> {
    let mut all = Vec::new();
    if given.flow.gate.is_some() {
        all.push(("c", given.answer(Choice::ContinueSession, None)));
        all.push(("c: guidance", given.answer(Choice::ContinueSession, Some("so"))));
        all.push(("f", given.answer(Choice::Continue, None)));
        all.push(("o", given.answer(Choice::Approve, None)));
        all.push(("o: guidance", given.answer(Choice::Approve, Some("so"))));
        all.push(("q", given.answer(Choice::Abort, None)));
    }
    all.push(("cancel", FlowCommand::Cancel { reason: None }));
    all.push(("resume", FlowCommand::Resume));
    all
}
