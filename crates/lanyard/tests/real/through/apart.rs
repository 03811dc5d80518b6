//! Two sessions in one folder keep apart, each with a process of its own.

use super::cases::Case;
use super::kit::{AFTER, HELD, Kit};
use super::processes;
use crate::agents::Rights;
use crate::model::{Role, marker};

#[test]
fn two_opencode_sessions_in_one_folder_keep_apart() {
    shows(&Case::opencode());
}

#[test]
fn two_opencode_acp_sessions_in_one_folder_keep_apart() {
    shows(&Case::opencode_acp());
}

fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let (one, two) = (kit.session(), kit.session());
    let held = kit.begin(&one, "hold");
    kit.is_held("hold");
    assert!(kit.turn(&two, "after").ends_with(AFTER), "the other goes on meanwhile");
    let runs = [kit.run(&one), kit.run(&two)];
    let [first, second] = runs.map(|run| processes::agents(&run));
    assert!(!first.is_empty() && !second.is_empty());
    assert!(first.keys().all(|pid| !second.contains_key(pid)), "{first:?} {second:?}");
    assert_ne!(kit.ready(&one)["native"], kit.ready(&two)["native"]);
    kit.model.release("hold");
    assert_eq!(kit.completed(&one, &held), HELD);
    assert!(!kit.answered("after", 0).asked.says(Role::User, &marker("hold")));
    assert!(!super::kit::said(&kit.log(&two)).contains(HELD));
    kit.ok("apart");
}
