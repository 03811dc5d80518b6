//! S0-64, S0-B14: steps, their rules, and whose they are.

use super::*;
use crate::id::PlanId;
use crate::paper::NewPlan;

const ONE: SessionId = SessionId::from_u128(1);
const TWO: SessionId = SessionId::from_u128(2);

fn plan(tasks: &[&str]) -> Plan {
    let phases = vec!["design".to_owned(), "build".to_owned()];
    let new = NewPlan { title: "Checkout".to_owned(), phases, ..NewPlan::default() };
    let mut plan = Plan::new(PlanId::from_u128(1), new, "local", Timestamp::from_millis(0)).unwrap();
    let steps = tasks.iter().map(|task| NewStep { task: (*task).to_owned(), ..NewStep::default() });
    plan.add_steps(steps.collect()).unwrap();
    plan
}

fn hand(session: SessionId) -> Hand<'static> {
    Hand { session: Some(session), name: "sess", now: Timestamp::from_millis(9) }
}

const PERSON: Hand<'static> = Hand { session: None, name: "local", now: Timestamp::from_millis(9) };

fn never(_: SessionId) -> bool {
    false
}

/// S0-64: phase, type, task, notes with acceptance criteria, done.
#[test]
fn a_step_carries_what_it_must() {
    let mut plan = plan(&["a"]);
    let new = NewStep {
        task: "write tests".to_owned(),
        phase: Some("build".to_owned()),
        kind: StepKind::Test,
        notes: Some("see the old ones".to_owned()),
        acceptance: vec!["all green".to_owned()],
    };
    assert_eq!(plan.add_steps(vec![new]).unwrap(), [2]);
    assert_eq!(
        serde_json::to_value(&plan.steps[1]).unwrap(),
        serde_json::json!({
            "number": 2, "phase": "build", "type": "test", "task": "write tests", "notes": "see the old ones",
            "acceptance": ["all green"], "done": false,
        })
    );
    // Left out, the phase is the plan's own.
    assert_eq!(plan.steps[0].phase.as_deref(), Some("design"));
}

#[test]
fn steps_are_added_all_or_none() {
    let mut plan = plan(&["a"]);
    let step = |task: &str, phase: &str| NewStep {
        task: task.to_owned(),
        phase: Some(phase.to_owned()),
        ..NewStep::default()
    };
    let refused = plan.add_steps(vec![step("b", "build"), step("c", "paint")]).unwrap_err();
    assert_eq!(refused.code(), "phase_unknown");
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.add_steps(Vec::new()).unwrap_err().code(), "field_missing");
    let many = vec![step("x", "build"); BATCH_MAX];
    for _ in 0..4 {
        plan.add_steps(many.clone()).unwrap();
    }
    assert_eq!(plan.add_steps(many).unwrap_err(), PaperRefusal::TooMany { field: "steps", max: STEPS_MAX });
}

#[test]
fn two_sessions_get_two_steps_and_asking_again_gives_the_same() {
    let mut plan = plan(&["a", "b"]);
    assert_eq!(plan.next_step(None, &hand(ONE), never).unwrap().unwrap().number, 1);
    assert_eq!(plan.next_step(None, &hand(TWO), never).unwrap().unwrap().number, 2);
    assert_eq!(plan.next_step(None, &hand(ONE), never).unwrap().unwrap().number, 1);
    assert_eq!(plan.next_step(None, &hand(SessionId::from_u128(3)), never).unwrap(), None);
    // A person looks and takes nothing.
    let before = plan.clone();
    assert_eq!(plan.next_step(None, &PERSON, never).unwrap(), None);
    assert_eq!(plan, before);
}

#[test]
fn a_step_another_session_is_at_is_left_alone_until_that_session_has_left() {
    let mut plan = plan(&["a"]);
    plan.next_step(None, &hand(ONE), never).unwrap();
    let refused = plan.complete_step(1, None, &hand(TWO), never).unwrap_err();
    assert_eq!(refused, PaperRefusal::StepTaken { step: 1, by: ONE });
    plan.complete_step(1, Some("cargo test: 12 passed".to_owned()), &hand(TWO), |id| id == ONE).unwrap();
    let step = &plan.steps[0];
    assert!(step.done && step.taken.is_none());
    assert_eq!(step.evidence.as_deref(), Some("cargo test: 12 passed"));
    let again = plan.complete_step(1, None, &hand(TWO), never).unwrap_err();
    assert_eq!(again, PaperRefusal::StepDone { step: 1 });
}

/// S0-B14: only what belongs to sessions that have left is freed.
#[test]
fn recovery_frees_the_steps_of_those_who_left_and_no_others() {
    let mut plan = plan(&["a", "b", "c"]);
    plan.next_step(None, &hand(ONE), never).unwrap();
    plan.next_step(None, &hand(TWO), never).unwrap();
    assert_eq!(plan.holders(), [ONE, TWO]);
    assert_eq!(plan.release(never), Vec::<u32>::new());
    assert_eq!(plan.release(|id| id == ONE), [1]);
    assert_eq!(plan.holders(), [TWO]);
}

#[test]
fn a_step_can_be_changed_and_opened_again() {
    let mut plan = plan(&["a"]);
    let done = StepChange {
        done: Some(true),
        notes: Some("not needed: done upstream".to_owned()),
        ..StepChange::default()
    };
    assert!(plan.update_step(1, done, &PERSON, never).unwrap().done);
    let open = StepChange { done: Some(false), kind: Some(StepKind::Build), ..StepChange::default() };
    let step = plan.update_step(1, open, &PERSON, never).unwrap();
    assert_eq!((step.done, step.done_at, step.kind), (false, None, StepKind::Build));
    assert_eq!(step.notes.as_deref(), Some("not needed: done upstream"));
    assert_eq!(
        plan.update_step(9, StepChange::default(), &PERSON, never).unwrap_err().code(),
        "step_not_found"
    );
}
