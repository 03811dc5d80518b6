//! S0-63, S0-64: what a plan carries, how its status moves, and its lineage.

use super::*;

fn plan() -> Plan {
    let new = NewPlan {
        title: "Checkout".to_owned(),
        phases: vec!["design".to_owned(), "build".to_owned()],
        ..NewPlan::default()
    };
    Plan::new(PlanId::from_u128(1), new, "local", Timestamp::from_millis(0)).unwrap()
}

fn to(status: PlanStatus) -> PlanChange {
    PlanChange { status: Some(status), ..PlanChange::default() }
}

/// S0-64: every status against every other.
#[test]
fn the_table_of_statuses() {
    let mut table = String::new();
    for from in PlanStatus::ALL {
        let mut row = format!("{from}:");
        for next in PlanStatus::ALL {
            let mut plan = Plan { status: from, ..plan() };
            if from != next && plan.update(to(next)).is_ok() {
                assert_eq!(plan.status, next);
                row.push(' ');
                row.push_str(&next.to_string());
            }
        }
        table += &(row + "\n");
    }
    expect_test::expect![[r"
        draft: active failed cancelled
        active: paused completed failed cancelled
        paused: active failed cancelled
        completed: active
        failed: active cancelled
        cancelled: active
    "]]
    .assert_eq(&table);
}

#[test]
fn a_plan_is_completed_when_its_steps_are() {
    let mut plan = Plan { status: PlanStatus::Active, ..plan() };
    plan.add_steps(vec![crate::paper::NewStep { task: "x".to_owned(), ..Default::default() }]).unwrap();
    let refused = plan.update(to(PlanStatus::Completed)).unwrap_err();
    assert_eq!(refused, PaperRefusal::StepsOpen { open: 1 });
    assert_eq!(plan.status, PlanStatus::Active);
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let mut plan = plan();
    let change = PlanChange {
        title: Some("Other".to_owned()),
        current_phase: Some("paint".to_owned()),
        ..PlanChange::default()
    };
    let refused = plan.update(change).unwrap_err();
    assert_eq!(refused.to_string(), "the plan has no phase `paint`; it has design, build");
    assert_eq!(plan.title, "Checkout");
    plan.update(PlanChange { current_phase: Some("build".to_owned()), ..PlanChange::default() }).unwrap();
    assert_eq!(plan.current_phase.as_deref(), Some("build"));
}

fn handover(from: &str, to: &str) -> Handover {
    let (from, to, reason) = (from.to_owned(), to.to_owned(), "User requested stop".to_owned());
    Handover { timestamp: Timestamp::from_millis(5), from, to, reason, notes: None, session: None }
}

/// S0-63: entries in order with {timestamp, from, to, reason}; handing off to oneself is allowed.
#[test]
fn lineage_is_ordered_and_a_self_hand_off_is_allowed() {
    let mut plan = plan();
    plan.hand_over(handover("Coordinator", "Executor")).unwrap();
    plan.hand_over(handover("Executor", "Coordinator")).unwrap();
    plan.hand_over(handover("Coordinator", "Coordinator")).unwrap();
    let path: Vec<&str> = plan.lineage.iter().map(|entry| entry.to.as_str()).collect();
    assert_eq!(path, ["Executor", "Coordinator", "Coordinator"]);
    assert_eq!(plan.current_agent.as_deref(), Some("Coordinator"));
    assert_eq!(
        serde_json::to_value(&plan.lineage[0]).unwrap(),
        serde_json::json!({
            "timestamp": "1970-01-01T00:00:00.005Z",
            "from": "Coordinator", "to": "Executor", "reason": "User requested stop",
        })
    );
    assert_eq!(plan.hand_over(handover("A", " ")).unwrap_err().code(), "field_empty");
}

#[test]
fn histories_are_bounded_and_keep_the_newest() {
    let mut plan = plan();
    for count in 0..NOTES_MAX + 10 {
        plan.note(&count.to_string(), "local", Timestamp::from_millis(0)).unwrap();
    }
    assert_eq!(plan.notes.len(), NOTES_MAX);
    assert_eq!(plan.notes.last().unwrap().text, (NOTES_MAX + 9).to_string());
}

#[test]
fn an_archived_plan_is_kept_as_it_is() {
    let mut plan = plan();
    assert!(plan.archive() && !plan.archive());
    assert_eq!(plan.update(to(PlanStatus::Active)), Err(PaperRefusal::Archived));
    assert_eq!(plan.note("x", "local", Timestamp::from_millis(0)), Err(PaperRefusal::Archived));
    assert_eq!(plan.add_steps(Vec::new()), Err(PaperRefusal::Archived));
}

/// Foreign names keep working beside the id.
#[test]
fn a_plan_is_called_by_its_id_or_its_name() {
    let named = Plan { name: Some("checkout".to_owned()), ..plan() };
    assert!(named.is_called("checkout") && named.is_called(&PlanId::from_u128(1).to_string()));
    assert!(!named.is_called("Checkout") && !plan().is_called("checkout"));
}
