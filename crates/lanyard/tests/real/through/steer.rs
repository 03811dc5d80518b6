//! Words for an agent that is at work: in its next request where it takes them, with the next prompt where it does not.

use serde_json::json;

use super::cases::Case;
use super::kit::{AFTER, Kit};
use crate::agents::Rights;
use crate::model::{Role, Step};

const WORDS: &str = "Mind the gap, please.";

pub(super) fn shows(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let work = (case.shell)("printf done", Rights::All).held();
    kit.model.script("work", [work, Step::text("Work done.")]);
    let session = kit.session();
    let turn = kit.begin(&session, "work");
    kit.is_held("work");
    // Words for a run that is not ready yet would wait for the next prompt.
    kit.event(&session, "the greeting", |event| event["type"] == "run.ready");
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    if case.steers {
        let delivered =
            kit.event(&session, "the words' delivery", |event| event["type"] == "guidance.delivered");
        assert_eq!(delivered["data"]["channel"], "steer");
        kit.model.release("work");
        kit.completed(&session, &turn);
        assert!(kit.answered("work", 1).asked.hears(WORDS), "{}", kit.told(&session));
        kit.ok("native steer");
    } else {
        kit.model.release("work");
        kit.completed(&session, &turn);
        assert!(!kit.answered("work", 1).asked.says(Role::User, WORDS), "{}", kit.told(&session));
        assert!(kit.turn(&session, "after").ends_with(AFTER));
        assert!(kit.answered("after", 0).asked.says(Role::User, WORDS), "{}", kit.told(&session));
        let delivered =
            kit.event(&session, "the words' delivery", |event| event["type"] == "guidance.delivered");
        assert_eq!(delivered["data"]["channel"], "prompt");
        kit.not_offered("native steer");
    }
}

/// Words for a turn whose last answer is being written: the agent answers them before the turn is over.
pub(super) fn late(case: &Case) {
    let kit = Kit::new(case, Rights::All);
    let session = kit.session();
    let turn = kit.begin(&session, "hold");
    kit.is_held("hold");
    kit.event(&session, "the greeting", |event| event["type"] == "run.ready");
    kit.post(&format!("/sessions/{session}/guidance"), &json!({ "text": WORDS }));
    let delivered = kit.event(&session, "the words' delivery", |event| event["type"] == "guidance.delivered");
    assert_eq!(delivered["data"]["channel"], "steer");
    kit.model.release("hold");
    kit.completed(&session, &turn);
    assert!(kit.answered("hold", 1).asked.says(Role::User, WORDS), "{}", kit.told(&session));
    assert!(kit.turn(&session, "after").ends_with(AFTER));
    kit.ok("late words");
}
