//! A stop of an agent that Lanyard does not run: its model hears it, its tools are denied, and it ends where its
//! harness can be made to.

use serde_json::json;

use super::cases::{Case, Third};
use super::kit::{Kit, latest};
use crate::model::Step;

const GRACEFUL: &str = "⚠️ SESSION STOP REQUESTED";
const IMMEDIATE: &str = "🛑 SESSION STOP — IMMEDIATE";
const TERMINATED: &str = "❌ SESSION TERMINATED";

/// A model that goes on calling: told at level 1, denied at level 2, and at level 3 ended or denied for good.
pub(super) fn ladder(case: &Case) {
    climbs(&Kit::new(case));
}

/// FND-R1: the same where the config has an agent of its name. It is not Lanyard's, and never confirmed before it was
/// told; a message to it is refused.
pub(super) fn named(case: &Case) {
    let kit = Kit::named(case);
    climbs(&kit);
    let session = kit.sessions()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(kit.get(&format!("/sessions/{session}"))["driven_by"], "host");
    let log = kit.daemon.log_after(&session, 0);
    assert!(log.iter().all(|event| event["type"] != "run.started"), "{log:#?}");
    let body = json!({ "prompt": "go" }).to_string();
    let path = format!("/api/v1/sessions/{}/turns", second(&kit));
    let refused = kit.daemon.request("POST", &path, &[], Some(&body));
    assert_eq!((refused.status, refused.code().as_str()), (409, "session_host_run"), "{}", refused.text());
    kit.say("its name in the config", true);
}

/// A further conversation of the agent, which ended by itself.
fn second(kit: &Kit<'_>) -> String {
    kit.model.script("more", [kit.plain("more"), Step::text("More-done.")]);
    let known: Vec<_> = kit.sessions().iter().map(|session| session["id"].clone()).collect();
    let mut running = kit.start("more", None);
    running.ended();
    let sessions = kit.sessions();
    let new = sessions.iter().find(|session| !known.contains(&session["id"])).unwrap();
    new["id"].as_str().unwrap().to_owned()
}

fn climbs(kit: &Kit<'_>) {
    let case = kit.case;
    let rest = ["two", "three", "four"].map(|name| kit.plain(name));
    let steps = [kit.held("one")].into_iter().chain(rest).chain([Step::text("Work-done.")]);
    kit.model.script("stop", steps.collect::<Vec<_>>());
    let mut running = kit.start("stop", None);
    kit.is_held("one", &running);
    let session = kit.session(&running);
    kit.post(&format!("/sessions/{session}/stop"), &json!({ "reason": "enough of it" }));
    kit.release("one");
    let said = running.ended();

    let told = latest(&kit.asked("stop", 1));
    assert!(told.contains(GRACEFUL) && told.contains("enough of it") && told.contains("DONE-one"), "{told}");
    kit.say("stop, level 1", true);
    let denied = latest(&kit.asked("stop", 2));
    assert!(denied.contains(IMMEDIATE) && !denied.contains("DONE-two"), "{denied}");
    kit.say("stop, level 2", true);
    for name in ["two", "three", "four"] {
        assert!(!kit.has_run(name), "{name} is not carried out\n{}", running.shown());
    }
    let ended = kit.get(&format!("/sessions/{session}"));
    assert_eq!(ended["state"], "stopped", "{ended:#}");
    assert_eq!(said.contains(TERMINATED), case.says_why, "{said}");
    match case.third {
        Third::Ends => {
            assert!(!kit.was_asked("stop", 3), "its model is not asked again\n{}", running.shown());
            assert!(!said.contains("Work-done."), "{said}");
        }
        Third::Refuses => {
            for step in [3, 4] {
                let denied = latest(&kit.asked("stop", step));
                assert!(denied.contains(TERMINATED), "{denied}");
            }
            assert!(said.contains("Work-done."), "{said}");
        }
    }
    kit.say("level 3 ends it", case.third == Third::Ends);
    kit.say("level 3 is heard", case.third == Third::Refuses);
}

/// A stop at level 2 that comes while a tool works.
pub(super) fn at_once(case: &Case) {
    let kit = Kit::new(case);
    kit.model.script("now", [kit.held("one"), kit.plain("two"), Step::text("Work-done.")]);
    let mut running = kit.start("now", None);
    kit.is_held("one", &running);
    let session = kit.session(&running);
    kit.post(&format!("/sessions/{session}/stop"), &json!({ "now": true }));
    kit.release("one");
    running.ended();
    let told = latest(&kit.asked("now", 1));
    assert!(told.contains(IMMEDIATE), "{told}");
    assert_eq!(!told.contains("DONE-one"), case.withholds, "{told}");
    assert!(!kit.has_run("two"), "{}", running.shown());
    kit.say("answer withheld", case.withholds);
}
