//! Kill -9 of the daemon, and of the agent: the one leaves the turn running, after the other the conversation goes on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::cases::Case;
use super::kit::{AFTER, GREETING, HELD, Kit};
use super::processes;
use crate::agents::Rights;
use crate::model::{Role, marker};

pub(super) fn daemon(case: &Case) {
    let mut kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    kit.restart_daemon();
    kit.event(&session, "the run being taken over", |event| event["type"] == "run.adopted");
    kit.model.release("hold");
    let said = kit.completed(&session, &turn);
    assert!(said.ends_with(HELD), "{said}\n{}", kit.told(&session));
    assert_eq!(said.matches(HELD).count(), 1, "{said}");
    assert_eq!(kit.model.asked("hold").len(), 1, "asked once: {}", kit.told(&session));
    assert!(kit.turn(&session, "after").ends_with(AFTER));
    assert!(kit.answered("after", 0).asked.says(Role::Assistant, HELD), "it remembers what was before");
    kit.ok("daemon killed");
}

pub(super) fn agent(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    let run = kit.run(&session);
    let killed = processes::kill_main(&run);
    let end = kit.ended(&session, &turn);
    assert_eq!(end["data"]["cause"], "crash", "{killed}: {}", kit.told(&session));
    kit.event(&session, "the end of the run", |event| {
        event["type"] == "run.ended" && event["data"]["run"] == json!(run)
    });
    kit.nothing_left(&session, &run);
    if case.minute {
        next_minute();
    }
    let after = kit.turn(&session, "after");
    assert!(after.ends_with(AFTER), "{after}");
    assert_ne!(kit.run(&session), run);
    assert_eq!(kit.ready(&session)["continuity"], "native", "{}", kit.told(&session));
    let asked = kit.answered("after", 0).asked;
    assert!(asked.says(Role::User, &marker("greet")), "it remembers what it was asked");
    assert!(asked.says(Role::Assistant, GREETING), "it remembers what it said");
    assert_eq!(kit.log(&session).iter().filter(|event| event.to_string().contains(GREETING)).count(), 1);
    kit.ok("agent killed");
}

/// Waits for the next minute of the clock.
fn next_minute() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let left = Duration::from_secs(61 - now.as_secs() % 60);
    // sleep: an agent of which the suite knows that it looks at the minute.
    std::thread::sleep(left);
}
