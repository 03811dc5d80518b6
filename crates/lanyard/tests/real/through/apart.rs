//! Two sessions of one agent in one folder keep apart, each with a process of its own.

use super::cases::Case;
use super::kit::{GREETING, HELD, Kit};
use super::processes;
use crate::agents::Rights;
use crate::model::{Role, Step, marker};

const OTHER: &str = "Words for the other one alone.";

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    kit.model.script("other", [Step::text(OTHER).held()]);
    let (one, two) = (kit.session(), kit.session());
    // Some agents cannot be started twice at once in a home that none of them has set up yet.
    assert!(kit.turn(&one, "greet").ends_with(GREETING));
    let (first, second) = (kit.begin(&one, "hold"), kit.begin(&two, "other"));
    for (session, script) in [(&one, "hold"), (&two, "other")] {
        let asked = || kit.model.asked(script).first().map(|_| ());
        kit.wait("the model being asked", session, asked);
    }
    let [of_one, of_two] = [kit.run(&one), kit.run(&two)].map(|run| processes::agents(&run));
    assert!(!of_one.is_empty() && !of_two.is_empty(), "{of_one:?} {of_two:?}");
    assert!(of_one.keys().all(|pid| !of_two.contains_key(pid)), "{of_one:?} {of_two:?}");
    kit.model.release("other");
    let said = kit.completed(&two, &second);
    assert!(said.ends_with(OTHER) && !said.contains(HELD), "{said}");
    kit.model.release("hold");
    let said = kit.completed(&one, &first);
    assert!(said.ends_with(HELD) && !said.contains(OTHER), "{said}");
    assert_ne!(kit.ready(&one)["native"], kit.ready(&two)["native"]);
    assert!(!kit.answered("other", 0).asked.says(Role::User, &marker("hold")));
    kit.ok("two apart");
}
