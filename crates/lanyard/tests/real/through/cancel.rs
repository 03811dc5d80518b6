//! A cancel in the middle of an answer reaches the model, and the conversation goes on. One in the middle of a command
//! is confirmed when the command has ended.

use std::collections::BTreeMap;

use serde_json::json;

use super::cases::Case;
use super::kit::{AFTER, GREETING, Kit};
use super::processes;
use crate::agents::Rights;
use crate::model::{Outcome, Role, Step, marker};
use crate::peer::PATIENCE;

/// How long a command sleeps before it writes its file: longer than any of this takes.
const LATE_S: u32 = 120;

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    assert!(kit.turn(&session, "greet").ends_with(GREETING));
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    kit.post(&format!("/sessions/{session}/cancel"), &json!({}));
    let end = kit.ended(&session, &turn);
    assert_eq!((&end["type"], &end["data"]["cause"]), (&json!("turn.interrupted"), &json!("user")), "{end}");
    kit.model.wait("hung up", PATIENCE, |asked| asked.is("hold", 0) && asked.outcome == Outcome::HungUp);
    let after = kit.turn(&session, "after");
    assert!(after.ends_with(AFTER), "{after}\n{}", kit.told(&session));
    assert!(kit.answered("after", 0).asked.says(Role::Assistant, GREETING), "it remembers what was before");
    kit.ok("cancel");
}

/// A command that would write a file later is gone at the moment its turn is told as interrupted.
pub(super) fn commands(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let ways = [
        ("cancel", "cancel", json!({})),
        ("stop", "stop", json!({ "scope": "turn", "now": true })),
        (
            "interrupt",
            "turns",
            json!({ "prompt": format!("go {}", marker("after")), "delivery": "interrupt" }),
        ),
    ];
    for (way, path, body) in ways {
        let [began, late] = ["began", "late"].map(|name| kit.work.join(format!("{name}-{way}")));
        let command = format!("touch {}; sleep {LATE_S}; touch {}", began.display(), late.display());
        kit.model.script(way, [(case.shell)(&command, Rights::All), Step::text("Done.")]);
        let session = kit.session();
        let turn = kit.begin(&session, way);
        kit.wait("the command", &session, || began.exists().then_some(()));
        kit.post(&format!("/sessions/{session}/{path}"), &body);
        let end = kit.ended(&session, &turn);
        let living = processes::with(&late.display().to_string());
        assert_eq!(living, BTreeMap::new(), "{way}: {end:#}\n{}", kit.told(&session));
        assert_eq!(
            (&end["type"], &end["data"]["cause"]),
            (&json!("turn.interrupted"), &json!("user")),
            "{end}"
        );
        assert!(!late.exists(), "{way}");
    }
    kit.ok("commands end");
}

/// A program that took the place of its shell is gone when the stop of its turn is confirmed, and no server is taken for
/// it.
pub(super) fn lone(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let line = format!("sleep {LATE_S}.{}", std::process::id());
    kit.model.script("lone", [(case.shell)(&format!("exec {line}"), Rights::All), Step::text("Done.")]);
    let session = kit.session();
    let turn = kit.begin(&session, "lone");
    // The command line of the program alone: a shell's holds more.
    let running = || processes::with(&line).into_values().any(|held| held.trim_end() == line);
    kit.wait("the program", &session, || running().then_some(()));
    kit.post(&format!("/sessions/{session}/stop"), &json!({ "scope": "turn", "now": true }));
    let end = kit.ended(&session, &turn);
    assert!(!running(), "{end:#}\n{}", kit.told(&session));
    kit.wait("the end of the stop", &session, || {
        let receipt = kit.get(&format!("/sessions/{session}/stop"));
        (receipt["confirmed"] == true).then_some(())
    });
    kit.ok("a program ends");
}
